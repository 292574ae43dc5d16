//! `run`, `demo`, `lib` and `doctor`: what a person types first.
#![forbid(unsafe_code)]

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;

use gmmtrace_tests::{Captured, Folder, capture, fake_cuda, gmmtrace, number, products, programs};

/// `gmmtrace run` of this, in `folder`, with the simulated CUDA.
fn run_in(folder: &Folder, arguments: &[&OsStr]) -> Captured {
    let mut command = Command::new(&products().gmmtrace);
    command.arg("run").args(arguments).current_dir(&**folder);
    command.env("LD_LIBRARY_PATH", fake_cuda()).env_remove("GMMTRACE_OUT");
    capture(&mut command)
}

fn shell(folder: &Folder, script: &str) -> Captured {
    run_in(folder, &["--".as_ref(), "sh".as_ref(), "-c".as_ref(), script.as_ref()])
}

#[test]
fn run_leaves_the_output_and_the_exit_code_to_the_command() {
    let folder = Folder::new();
    for (script, code) in [("echo out; echo err >&2; exit 7", 7), ("kill -TERM $$", 128 + 15)] {
        let said = shell(&folder, script);
        assert_eq!(said.code(), code, "{script}");
        assert_eq!(said.stdout, if code == 7 { "out\n" } else { "" });
        assert!(said.stderr.contains("no CUDA memory call was seen in sh"), "{}", said.stderr);
    }
    assert!(folder.logs().is_empty(), "a process without CUDA leaves no log");
}

#[test]
fn run_prints_the_report_to_stderr_and_names_the_logs_of_children() {
    let folder = Folder::new();
    let program = programs().join("fork_both");
    let said =
        run_in(&folder, &["-o".as_ref(), "traces".as_ref(), "--".as_ref(), program.as_ref()]);
    assert_eq!(said.code(), 0, "{}", said.stderr);
    assert!(said.stderr.contains("live at end"), "{}", said.stderr);
    assert!(said.stderr.contains("also recorded: "), "{}", said.stderr);
    assert!(!said.stdout.contains("gmmtrace"), "{}", said.stdout);
    let logs = fs::read_dir(folder.join("traces")).unwrap().count();
    assert_eq!(logs, 2, "the directory was made and holds both logs");
}

#[test]
fn run_tells_why_a_static_program_cannot_be_seen() {
    let folder = Folder::new();
    fs::write(folder.join("s.c"), "int main(void) { return 3; }").unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(["-static", "-o", "s", "s.c"]).current_dir(&*folder);
    assert!(compiler.status().unwrap().success());
    let said = run_in(&folder, &["--".as_ref(), "./s".as_ref()]);
    assert_eq!(said.code(), 3);
    assert!(said.stderr.contains("static program"), "{}", said.stderr);
}

#[test]
fn run_refuses_what_is_not_there() {
    let said = run_in(&Folder::new(), &["--".as_ref(), "/nowhere/program".as_ref()]);
    assert_eq!((said.code(), said.stdout.as_str()), (127, ""));
    assert!(said.stderr.starts_with("gmmtrace: /nowhere/program: "), "{}", said.stderr);
    let said = run_in(&Folder::new(), &["--".as_ref(), "/etc/passwd".as_ref()]);
    assert_eq!((said.code(), said.stdout.as_str()), (126, ""));
}

#[test]
fn lib_prints_the_library_that_was_built_beside_it() {
    let said = gmmtrace(&["lib".as_ref()]);
    assert_eq!(Path::new(said.stdout.trim_end()), products().library.canonicalize().unwrap());
}

#[test]
fn the_demo_records_a_leak_and_says_that_it_simulates() {
    let folder = Folder::new();
    let said = gmmtrace(&["demo".as_ref(), "-o".as_ref(), folder.as_ref()]);
    assert_eq!(said.code(), 0, "{}", said.stderr);
    assert!(said.stdout.contains("SIMULATED"), "{}", said.stdout);
    let logs = folder.logs();
    let report = gmmtrace_tests::report(logs.first().unwrap());
    assert_eq!(number(&report, "/ledgers/device/live_count"), 160);
    assert_eq!(number(&report, "/ledgers/device/live_bytes"), 120 << 20);
    assert_eq!(number(&report, "/ledgers/device/failed"), 3);
}

#[test]
fn doctor_names_the_library_and_a_switch_that_it_does_not_know() {
    let folder = Folder::new();
    let mut command = Command::new(&products().gmmtrace);
    command.arg("doctor").current_dir(&*folder).env("GMMTRACE_OUTPUT", "x");
    let said = capture(&mut command);
    assert_eq!(said.code(), 0, "{}", said.stdout);
    assert!(said.stdout.contains("libgmmtrace.so loads"), "{}", said.stdout);
    assert!(said.stdout.contains("GMMTRACE_OUTPUT is not one of gmmtrace's"), "{}", said.stdout);
}

/// A pipe beside the logs must not be waited for.
#[test]
fn run_looks_at_files_only_and_refuses_what_has_no_end() {
    let folder = Folder::new();
    for name in ["pipe", "pipe.gmmt"] {
        assert!(Command::new("mkfifo").arg(folder.join(name)).status().unwrap().success());
    }
    let program = programs().join("three_ways");
    let said = run_in(&folder, &["-o".as_ref(), ".".as_ref(), "--".as_ref(), program.as_ref()]);
    assert_eq!(said.code(), 0, "{}", said.stderr);
    assert!(said.stderr.contains("live at end"), "{}", said.stderr);
    let said = gmmtrace(&["report".as_ref(), folder.join("pipe.gmmt").as_ref()]);
    assert_eq!(said.code(), 2);
    assert!(said.stderr.contains("not a regular file"), "{}", said.stderr);
}

/// A launcher makes no calls itself; its child's report is what was asked for.
#[test]
fn run_of_a_shell_reports_on_its_only_child_with_calls() {
    let folder = Folder::new();
    let said = shell(&folder, &format!("{}; true", programs().join("three_ways").display()));
    assert_eq!(said.code(), 0);
    assert!(said.stderr.contains("live at end"), "{}", said.stderr);
    assert!(!said.stderr.contains("no CUDA memory call"), "{}", said.stderr);
}
