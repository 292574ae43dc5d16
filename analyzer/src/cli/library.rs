//! `gmmtrace lib`: where `libgmmtrace.so` is.

use std::env;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::Error;

/// The library's file name.
const NAME: &str = "libgmmtrace.so";

/// Arguments of `lib`.
#[derive(clap::Args)]
pub struct Arguments {}

/// Runs the command.
///
/// # Errors
/// When the library is not found.
pub fn run(_: &Arguments) -> Result<u8, Error> {
    writeln!(io::stdout().lock(), "{}", find()?.display()).map_err(Error::Output)?;
    Ok(0)
}

/// The library: beside this executable, else in `../lib/gmmtrace`.
///
/// # Errors
/// When it is in neither place.
pub fn find() -> Result<PathBuf, Error> {
    let executable = env::current_exe()
        .and_then(fs::canonicalize)
        .map_err(|error| Error::Said(format!("cannot find this executable: {error}")))?;
    let beside = executable.parent().unwrap_or(Path::new("/"));
    let places = [beside.join(NAME), beside.join("../lib/gmmtrace").join(NAME)];
    let found = places.iter().find_map(|place| fs::canonicalize(place).ok());
    found.ok_or_else(|| {
        let [first, second] = places.map(|place| place.display().to_string());
        Error::Said(format!("{NAME} is neither {first} nor {second}"))
    })
}
