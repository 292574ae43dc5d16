//! The `gmmtrace` command.
#![forbid(unsafe_code)]

use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    match gmmtrace::cli::run() {
        Ok(code) => ExitCode::from(code),
        Err(error) if error.is_closed_pipe() => ExitCode::SUCCESS,
        Err(error) => {
            // A sentence may name a file, and a file may have any name.
            for line in error.to_string().lines() {
                let line = gmmtrace::render::clean(line);
                let start = if line.starts_with("gmmtrace: ") { "" } else { "gmmtrace: " };
                let _ = writeln!(std::io::stderr().lock(), "{start}{line}");
            }
            ExitCode::from(2)
        }
    }
}
