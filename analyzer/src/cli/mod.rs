//! The command line: one file per command, each with its `Arguments` and its `run`.
//!
//! Exit codes: 0 fine, 1 a gate or check found something, 2 could not do it. stdout is the
//! product, stderr is for people.

pub mod demo;
pub mod doctor;
pub mod dump;
mod executable;
pub mod files;
pub mod library;
pub mod output;
pub mod preload;
mod progress;
pub mod report;
pub mod run;

use clap::{Parser, Subcommand};

use crate::Error;

#[derive(Parser)]
#[command(name = "gmmtrace", version, about = "GPU memory of unmodified processes, from logs.")]
#[command(arg_required_else_help = true, propagate_version = true)]
struct Line {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a command under the library and say what it held.
    Run(run::Arguments),
    /// Say everything about one or more logs.
    Report(report::Arguments),
    /// Print every record of a log as text.
    Dump(dump::Arguments),
    /// Check this machine, or what a log has seen.
    Doctor(doctor::Arguments),
    /// Print the path of the library, for LD_PRELOAD.
    Lib(library::Arguments),
    /// Record a small program on a simulated GPU and show the report.
    Demo(demo::Arguments),
}

/// Runs the command of this process's command line and returns the exit code. A wrong command
/// line exits with 2, `--help` and `--version` with 0.
///
/// # Errors
/// When the command could not do its work.
pub fn run() -> Result<u8, Error> {
    match Line::parse().command {
        Command::Report(arguments) => report::run(&arguments),
        Command::Dump(arguments) => dump::run(&arguments),
        Command::Run(arguments) => run::run(&arguments),
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Lib(arguments) => library::run(&arguments),
        Command::Demo(arguments) => demo::run(&arguments),
    }
}
