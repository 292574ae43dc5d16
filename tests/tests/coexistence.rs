//! Other libraries that stand in every process's way.
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::Command;

use gmmtrace_tests::{Run, fake_cuda, products, programs, programs_source, tally};

/// A file that the compiler knows, when it has it.
fn of_compiler(name: &str) -> Option<PathBuf> {
    let output = Command::new("cc").arg(format!("-print-file-name={name}")).output().ok()?;
    let path = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim_end());
    path.is_absolute().then_some(path)
}

/// The address sanitizer insists on being the first preload.
#[test]
fn under_the_address_sanitizer_everything_is_seen() {
    let Some(sanitizer) = of_compiler("libasan.so") else {
        println!("not run: this compiler has no address sanitizer");
        return;
    };
    let program = programs().join("three_ways_sanitized");
    let mut compiler = Command::new("cc");
    compiler.args(["-std=gnu11", "-g", "-fsanitize=address", "-pthread", "-o"]).arg(&program);
    compiler.arg(programs_source().join("three_ways.c"));
    compiler.arg("-I").arg(fake_cuda().join("include")).arg("-L").arg(fake_cuda());
    assert!(compiler.args(["-lcuda", "-ldl"]).status().unwrap().success());
    let run = Run::of(&program).environment("ASAN_OPTIONS", "detect_leaks=0");
    let outcome = run.preload(&[&sanitizer, &products().library]).finish();
    assert_eq!((outcome.code(), outcome.stderr.as_str()), (0, ""));
    tally::assert_exact(&outcome.report(), &outcome.keys(""));
}

/// Interpreters, compilers and shells inherit LD_PRELOAD.
#[test]
fn programs_without_cuda_do_what_they_did_and_leave_nothing() {
    for (program, arguments) in [
        ("/bin/sh", &["-c", "echo a | cat; exit 3"][..]),
        ("/usr/bin/env", &["cc", "--version"]),
        (
            "/usr/bin/env",
            &["python3", "-c", "import ctypes, threading; print(ctypes.CDLL(None).getpid() > 0)"],
        ),
    ] {
        let run = || Run::of(program.as_ref()).arguments(arguments);
        let (plain, traced) = (run().finish(), run().preload(&[&products().library]).finish());
        assert_eq!(traced.status, plain.status, "{program} {arguments:?}: {}", traced.stderr);
        assert_eq!((&traced.stdout, &traced.stderr), (&plain.stdout, &plain.stderr), "{program}");
        assert_eq!(traced.logs().len(), 0, "{program} {arguments:?}");
    }
}
