//! The `gmmtrace` command.
#![forbid(unsafe_code)]

use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    match gmmtrace::cli::run() {
        Ok(code) => ExitCode::from(code),
        Err(error) if error.is_closed_pipe() => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr().lock(), "gmmtrace: {error}");
            ExitCode::from(2)
        }
    }
}
