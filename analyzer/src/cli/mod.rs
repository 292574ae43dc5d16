//! The command line: one file per command, each with its `Arguments` and its `run`.
//!
//! Exit codes: 0 fine, 1 a gate or check found something, 2 could not do it. stdout is the
//! product, stderr is for people.

pub mod demo;
pub mod diff;
pub mod doctor;
mod documents;
pub mod dump;
mod executable;
pub mod files;
pub mod library;
pub mod moment;
pub mod output;
pub mod preload;
mod progress;
pub mod question;
pub mod report;
pub mod run;
pub mod within;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::Error;
use crate::render::text::Question;

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
    /// What matters about a log, on one screen.
    Summary(question::Arguments),
    /// Memory over time.
    Timeline(question::Arguments),
    /// What the peak was made of, by call site, size and age.
    Peak(question::Arguments),
    /// What is left at the end, by call site, size and age.
    Leaks(question::Arguments),
    /// Memory that is taken and of no use.
    Fragmentation(question::Arguments),
    /// Copies and sets by direction, size and time, and time in calls.
    Copies(question::Arguments),
    /// What NVML shows for the process, and what explains it.
    Gap(question::Arguments),
    /// Compare two sides of logs or saved reports, and fail on what must not grow.
    Diff(diff::Arguments),
    /// Print every record of a log as text.
    Dump(dump::Arguments),
    /// Check this machine, or what a log has seen.
    Doctor(doctor::Arguments),
    /// Print the path of the library, for LD_PRELOAD.
    Lib(library::Arguments),
    /// Record a small program on a simulated GPU and show the report.
    Demo(demo::Arguments),
    /// Print the completions of a shell.
    Completions(documents::Completions),
    /// Write the manual pages.
    Man(documents::Man),
}

/// Runs the command of this process's command line and returns the exit code. A wrong command
/// line exits with 2, `--help` and `--version` with 0.
///
/// # Errors
/// When the command could not do its work.
pub fn run() -> Result<u8, Error> {
    let line = Line::from_arg_matches(&definition().get_matches());
    match line.unwrap_or_else(|error| error.exit()).command {
        Command::Report(arguments) => report::run(&arguments),
        Command::Summary(arguments) => question::run(Question::Summary, &arguments),
        Command::Timeline(arguments) => question::run(Question::Timeline, &arguments),
        Command::Peak(arguments) => question::run(Question::Peak, &arguments),
        Command::Leaks(arguments) => question::run(Question::Leaks, &arguments),
        Command::Fragmentation(arguments) => question::run(Question::Fragmentation, &arguments),
        Command::Copies(arguments) => question::run(Question::Copies, &arguments),
        Command::Gap(arguments) => question::run(Question::Gap, &arguments),
        Command::Diff(arguments) => diff::run(&arguments),
        Command::Dump(arguments) => dump::run(&arguments),
        Command::Run(arguments) => run::run(&arguments),
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Lib(arguments) => library::run(&arguments),
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Completions(arguments) => documents::completions(&arguments, definition()),
        Command::Man(arguments) => documents::man(&arguments, definition()),
    }
}

/// The command line, without the options that a question has no use for in its help.
fn definition() -> clap::Command {
    Question::ALL.iter().fold(Line::command(), |line, &question| {
        line.mut_subcommand(question.name(), |command| {
            let hide = |command: clap::Command, name: &&str| {
                command.mut_arg(*name, |argument| argument.hide(true))
            };
            question::without(question).iter().fold(command, hide)
        })
    })
}
