//! `gmmtrace diff` run on logs that are written for a test.
#![allow(dead_code, reason = "each test uses a part of it")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use gmmtrace_format::Kind;
use serde_json::Value;

use crate::support::{RUNTIME_SITE, Writer, event};

pub const MIB: u64 = 1 << 20;

/// A folder with logs and reports in it.
pub struct Place(tempfile::TempDir);

impl Place {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A log of a process that holds so many MiB by two calls, and frees one of them.
    pub fn log(&self, name: &str, weights: u64, scratch: u64) -> String {
        self.write(name, &a_log(weights, scratch).bytes())
    }

    pub fn json(&self, name: &str, value: &Value) -> String {
        self.write(name, &serde_json::to_vec(value).unwrap())
    }

    pub fn write(&self, name: &str, bytes: &[u8]) -> String {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), bytes).unwrap();
        self.path(name).to_str().unwrap().to_owned()
    }
}

pub fn a_log(weights: u64, scratch: u64) -> Writer {
    Writer::of(vec![
        event(Kind::DeviceAlloc, 1_000, &[0x1000_0000, weights * MIB]).site(RUNTIME_SITE),
        event(Kind::DeviceAlloc, 2_000, &[0x9000_0000, scratch * MIB]),
        event(Kind::Free, 3_000, &[0x9000_0000]),
    ])
}

pub fn diff(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gmmtrace"));
    command.arg("diff").args(arguments).output().unwrap()
}

pub fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub fn refused(arguments: &[&str]) -> String {
    let output = diff(arguments);
    assert_eq!(output.status.code(), Some(2), "{}", out(&output));
    assert_eq!(out(&output), "");
    String::from_utf8(output.stderr).unwrap()
}

/// The comparison as JSON, held against its schema.
pub fn compared(arguments: &[&str]) -> Value {
    let output = diff(&[arguments, &["--json"]].concat());
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/diff.schema.json");
    let mut schemas = boon::Schemas::new();
    let mut compiler = boon::Compiler::new();
    let schema = compiler.compile(path.to_str().unwrap(), &mut schemas).unwrap();
    let found = schemas.validate(&value, schema).map_err(|error| format!("{error:#}"));
    assert_eq!(found, Ok(()));
    assert_eq!(output.status.code(), Some(i32::from(value["failed"].as_bool().unwrap())));
    value
}

pub fn change<'a>(compared: &'a Value, figure: &str) -> Option<&'a Value> {
    compared["changes"].as_array().unwrap().iter().find(|change| change["figure"] == figure)
}
