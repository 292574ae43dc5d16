//! Asking the real binary about a log.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::process::{Captured, capture};
use crate::products;

/// Runs the binary with these arguments.
#[must_use]
pub fn gmmtrace(arguments: &[&OsStr]) -> Captured {
    capture(Command::new(&products().gmmtrace).args(arguments))
}

/// What `gmmtrace report --format json` says about `log`.
///
/// # Panics
/// When it says nothing, or no JSON.
#[must_use]
pub fn report(log: &Path) -> Value {
    let said = gmmtrace(&["report".as_ref(), "--format".as_ref(), "json".as_ref(), log.as_ref()]);
    assert_eq!(said.code(), 0, "{}: {}", log.display(), said.stderr);
    let value = serde_json::from_str(&said.stdout);
    value.unwrap_or_else(|error| panic!("{}: {error}: {}", log.display(), said.stdout))
}

/// The number at `path` (`/ledgers/device/allocs`) of a report.
///
/// # Panics
/// When there is none.
#[must_use]
pub fn number(report: &Value, path: &str) -> u64 {
    let found = report.pointer(path).and_then(Value::as_u64);
    found.unwrap_or_else(|| panic!("no number {path} in {report:#}"))
}
