//! The example that compares two releases, as a newcomer runs it.
#![forbid(unsafe_code)]

use std::env;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use gmmtrace_tests::{capture, fake_cuda, products};

#[test]
fn the_release_that_leaks_fails_its_gates_by_name() {
    let script =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/compare-releases/simulated.sh");
    let folder = products().gmmtrace.parent().unwrap();
    let mut path = OsString::from(folder);
    path.push(":");
    path.push(env::var_os("PATH").unwrap_or_default());
    let mut command = Command::new(script);
    command.arg(fake_cuda()).env("PATH", path).env("RUNS", "2").env_remove("GMMTRACE_OUT");
    let said = capture(&mut command);
    assert_eq!(said.code(), 1, "{}{}", said.stdout, said.stderr);
    for text in [
        "FAILED peak.gpu>+5%: peak.gpu is 134.00 MiB",
        "FAILED live.gpu>+0: live.gpu is 32.00 MiB",
        "by +31.50 MiB",
        "executable",
    ] {
        assert!(said.stdout.contains(text), "{text}\n{}", said.stdout);
    }
    assert_eq!(said.stdout.matches("FAILED").count(), 2, "{}", said.stdout);
}
