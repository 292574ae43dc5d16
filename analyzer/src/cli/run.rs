//! `gmmtrace run -- COMMAND`: preloads the library, runs the command, says what it held.
//!
//! stdout and stdin belong to the command; what gmmtrace says goes to stderr, at the end. The
//! exit code is the command's own, or 128 and the signal that ended it; 127 when there is no such
//! command and 126 when it cannot be run.

use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::preload::{Recorded, record};
use super::{executable, question};
use crate::Error;
use crate::input::Log;
use crate::order;
use crate::render::clean;

/// Arguments of `run`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Where logs go: a directory, or a name that ends in .gmmt or holds %p (pid), %e (executable),
    /// %h (host), %r (rank) or %t (time).
    #[arg(short, long, value_name = "PATH")]
    pub output: Option<PathBuf>,
    /// Say nothing at the end.
    #[arg(short, long)]
    pub quiet: bool,
    /// The command and its arguments.
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// Runs the command.
///
/// # Errors
/// When the library or the command cannot be started.
pub fn run(arguments: &Arguments) -> Result<u8, Error> {
    let (program, rest) = arguments.command.split_first().unzip();
    let program = program.map_or(OsStr::new(""), OsString::as_os_str);
    let mut command = Command::new(program);
    command.args(rest.unwrap_or_default());
    let recorded = match record(command, arguments.output.as_deref()) {
        Err(Error::Path { doing: "run", path, source }) => {
            // What shells, `env` and `timeout` exit with.
            let code = if source.kind() == io::ErrorKind::NotFound { 127 } else { 126 };
            let error = Error::Path { doing: "run", path, source };
            writeln!(io::stderr().lock(), "gmmtrace: {}", clean(&error.to_string()))
                .map_err(Error::Output)?;
            return Ok(code);
        }
        recorded => recorded?,
    };
    if !arguments.quiet {
        say(&recorded, program).map_err(Error::Output)?;
    }
    let signal = recorded.status.signal().map(|signal| signal.saturating_add(128));
    let code = recorded.status.code().or(signal).unwrap_or(255);
    Ok(u8::try_from(code).unwrap_or(255))
}

/// A name as a terminal can take it.
fn words(name: impl AsRef<OsStr>) -> String {
    clean(&name.as_ref().display().to_string())
}

fn say(recorded: &Recorded, program: &OsStr) -> io::Result<()> {
    let mut stderr = io::stderr().lock();
    writeln!(stderr)?;
    // A shell or launcher makes no calls itself: what its only child did is what was asked for.
    let (shown, others) = match (&recorded.own, recorded.others.as_slice()) {
        (Some(own), others) => (Some(own), others),
        (None, [only]) => (Some(only), [].as_slice()),
        (None, others) => (None, others),
    };
    match shown {
        Some(path) => {
            let terminal = stderr.is_terminal();
            match question::print_summary(path, terminal, &mut stderr) {
                Ok(()) => {
                    let path = words(path);
                    writeln!(
                        stderr,
                        "gmmtrace: recorded {path}; `gmmtrace report` says everything"
                    )?;
                }
                Err(error) => writeln!(stderr, "gmmtrace: {}", clean(&error.to_string()))?,
            }
        }
        None if others.is_empty() => explain(program, &mut stderr)?,
        None => {
            let program = words(program);
            writeln!(stderr, "gmmtrace: {program} made no CUDA call itself; its children did")?;
        }
    }
    for path in others {
        writeln!(stderr, "gmmtrace: also recorded: {}{}", words(path), events_of(path))?;
    }
    if !others.is_empty() {
        writeln!(stderr, "gmmtrace: `gmmtrace report FILE...` reports on them")?;
    }
    Ok(())
}

fn events_of(path: &Path) -> String {
    struct Count(u64);
    impl order::Sink for Count {
        fn lane(&mut self, _: u32, _: &order::LaneStart) {}
        fn records(&mut self, _: u32, records: &[order::Record], _: &[u8]) {
            self.0 = self.0.saturating_add(records.len() as u64);
        }
    }
    let Ok(log) = Log::open(path) else { return String::new() };
    let mut count = Count(0);
    order::run(&log, &mut count);
    format!(" (pid {}, {} events)", log.process.pid, count.0)
}

fn explain(program: &OsStr, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "gmmtrace: no CUDA memory call was seen in {}", words(program))?;
    match executable::obstacle(program) {
        Some(reason) => writeln!(out, "gmmtrace: {}", clean(&reason))?,
        None => writeln!(
            out,
            "gmmtrace: it made none, or LD_PRELOAD did not reach the process that did (an \
             environment cleared on the way, a setuid or static program, another C library)"
        )?,
    }
    if std::env::var_os("GMMTRACE").is_some_and(|value| value == "off" || value == "0") {
        writeln!(out, "gmmtrace: GMMTRACE switches recording off in this environment")?;
    }
    Ok(())
}
