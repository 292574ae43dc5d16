//! `gmmtrace diff BASE... --against NEW...`: what changed, and whether that is allowed.
//!
//! Exit code 1 when a gate fails; a gate that cannot be decided is an error, and exits with 2.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use gmmtrace_format::layout::MAGIC;
use rustix::fs::{Mode, OFlags};
use serde_json::Value;

use super::output::{Output, refuse_existing, target};
use super::report;
use crate::diff::{Comparison, Gate, Run, Side, Verdict};
use crate::render::diff::{Manner, json, list, markdown, text};
use crate::{Error, input};

/// Arguments of `diff`.
#[derive(clap::Args)]
#[command(override_usage = "gmmtrace diff <BASE>... --against <NEW>... [OPTIONS]\n       \
                            gmmtrace diff <BASE>... --list")]
pub struct Arguments {
    /// The base side: each a log, a directory of logs that ran together, or a report saved as
    /// JSON. Several are several runs.
    #[arg(required = true, value_name = "BASE")]
    pub base: Vec<PathBuf>,
    /// The new side, likewise.
    #[arg(long, required_unless_present = "list", num_args = 1.., value_name = "NEW")]
    pub against: Vec<PathBuf>,
    /// Fail when this is so, as in 'peak.device>+5%', 'live.gpu>8GiB', 'copies.*.bytes>+10%'.
    #[arg(long, value_name = "EXPR", allow_hyphen_values = true)]
    pub fail_on: Vec<String>,
    /// What to write.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// The same as --format json.
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// Write to this file instead of stdout, which is `-`; sentences of failed gates go to stdout too.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Overwrite the file if it exists.
    #[arg(long, requires = "output")]
    pub force: bool,
    /// Rows of each table at most: 15 if it is not given.
    #[arg(long, value_name = "N", value_parser = super::question::top)]
    pub top: Option<usize>,
    /// Show bytes and times as whole numbers.
    #[arg(long)]
    pub bytes: bool,
    /// Compare nothing; list the figures of BASE that a gate can name.
    #[arg(long, conflicts_with_all = ["against", "fail_on", "json", "format"])]
    pub list: bool,
}

/// Formats of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    Text,
    /// For programs.
    Json,
    /// For a comment on a pull request.
    Markdown,
}

/// Runs the command.
///
/// # Errors
/// When a gate is no gate or cannot be decided, a side not be read, or the product not be
/// written. Nothing is written then.
pub fn run(arguments: &Arguments) -> Result<u8, Error> {
    let as_text = arguments.format != Format::Json && !arguments.json && !arguments.list;
    if !as_text && arguments.top.is_some() {
        return Err(Error::Said("--top is for tables; JSON and --list show everything".to_owned()));
    }
    let output = target(arguments.output.as_deref());
    refuse_existing(output, arguments.force)?;
    let gates = all(arguments.fail_on.iter().map(|text| Gate::parse(text).map_err(Error::Said)))?;
    let manner = Manner { exact: arguments.bytes, top: arguments.top.unwrap_or(15) };
    let base = side(&arguments.base)?;
    if arguments.list {
        return written(arguments, |mut out| {
            base.runs.iter().try_for_each(|run| list::write(run, manner, &mut out))
        });
    }
    let comparison = Comparison::of(base, side(&arguments.against)?);
    let judged = all(gates.iter().map(|gate| gate.judge(&comparison).map_err(Error::Said)))?;
    let verdicts: Vec<Verdict> = judged.into_iter().flatten().collect();
    // A reader that goes away early changes no verdict.
    match written(arguments, |out| write(&comparison, &verdicts, arguments, manner, out)) {
        Err(error) if !error.is_closed_pipe() => return Err(error),
        _ => {}
    }
    if output.is_some() {
        let told = text::write_failed(&verdicts, manner, &mut io::stdout().lock());
        told.map_err(Error::Output)?;
    }
    Ok(u8::from(verdicts.iter().any(|verdict| verdict.failed)))
}

fn write(
    comparison: &Comparison,
    verdicts: &[Verdict],
    arguments: &Arguments,
    manner: Manner,
    mut out: &mut dyn Write,
) -> io::Result<()> {
    match arguments.format {
        Format::Json => as_json(comparison, verdicts, manner, out),
        Format::Text if arguments.json => as_json(comparison, verdicts, manner, out),
        Format::Text => text::write(comparison, verdicts, manner, &mut out),
        Format::Markdown => markdown::write(comparison, verdicts, manner, &mut out),
    }
}

fn as_json(
    comparison: &Comparison,
    verdicts: &[Verdict],
    manner: Manner,
    out: &mut dyn Write,
) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, &json::value(comparison, verdicts, manner))?;
    writeln!(out)
}

fn written(
    arguments: &Arguments,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<u8, Error> {
    let mut inputs = Vec::new();
    for path in arguments.base.iter().chain(&arguments.against) {
        inputs.append(&mut input::logs(path)?);
    }
    let mut output = Output::open(target(arguments.output.as_deref()), arguments.force, &inputs)?;
    write(output.writer()).map_err(|error| output.failed(error))?;
    output.finish()?;
    Ok(0)
}

/// Everything, or everything that is wrong.
fn all<T>(results: impl Iterator<Item = Result<T, Error>>) -> Result<Vec<T>, Error> {
    let (mut fine, mut wrong) = (Vec::new(), Vec::new());
    for result in results {
        match result {
            Ok(value) => fine.push(value),
            Err(error) => wrong.push(error),
        }
    }
    match wrong.len() {
        0 => Ok(fine),
        _ => Err(report::together(&wrong)),
    }
}

fn side(paths: &[PathBuf]) -> Result<Side, Error> {
    Ok(Side { runs: all(paths.iter().map(|path| read(path)))? })
}

/// Reads an argument as a run: a directory by its logs, a file by what it begins with.
fn read(path: &Path) -> Result<Run, Error> {
    let told = |source| Error::path("read", path, source);
    let name = path.display().to_string();
    if fs::metadata(path).map_err(told)?.is_dir() {
        let logs = input::logs(path)?;
        let reports = all(logs.iter().map(|log| from_log(log)))?;
        return Run::of(name, &reports).map_err(Error::Said);
    }
    let mut file = open(path).map_err(told)?;
    let mut start = Vec::new();
    Read::by_ref(&mut file).take(SNIFFED).read_to_end(&mut start).map_err(told)?;
    let what = file.metadata().map_err(told)?.file_type();
    let regular = what.is_file();
    let reports = match kind(&start) {
        Kind::Log if what.is_fifo() && start.is_empty() => {
            return Err(Error::Said(format!("{name}: a pipe that nobody writes to")));
        }
        Kind::Log if !regular && start.is_empty() => {
            return Err(Error::Said(format!("{name}: not a file, and nothing comes from it")));
        }
        Kind::Log if !regular => {
            let text = "a log in a pipe cannot be read from its middle; save it to a file";
            return Err(Error::Said(format!("{name}: {text}")));
        }
        Kind::Log => vec![from_log(path)?],
        Kind::Json => from_json(path, start, file)?,
        Kind::Other => {
            let text = format!("{name}: neither a gmmtrace log nor a report saved as JSON");
            return Err(Error::Said(text));
        }
    };
    Run::of(name, &reports).map_err(Error::Said)
}

/// Opens a file, or a pipe that somebody has opened to write to: of one that nobody writes to the
/// end comes at once, where a plain open would wait for ever.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let waits = rustix::fs::fcntl_getfl(&file)? - OFlags::NONBLOCK;
    rustix::fs::fcntl_setfl(&file, waits)?;
    Ok(file)
}

/// Bytes that are read to know what a file is; JSON may begin with white space.
const SNIFFED: u64 = 4_096;

enum Kind {
    Log,
    Json,
    Other,
}

fn kind(start: &[u8]) -> Kind {
    let first = start.iter().find(|byte| !byte.is_ascii_whitespace());
    match first {
        // A file without a byte is a log that was not begun; its reader says so.
        _ if start.is_empty() || start.starts_with(&MAGIC) => Kind::Log,
        Some(b'{' | b'[') => Kind::Json,
        _ => Kind::Other,
    }
}

fn from_log(path: &Path) -> Result<Value, Error> {
    Ok(crate::render::json::value(&report::read(path)?))
}

/// Reads what stands behind `start`, once: a pipe has it only once.
fn from_json(path: &Path, start: Vec<u8>, mut rest: File) -> Result<Vec<Value>, Error> {
    let mut bytes = start;
    rest.read_to_end(&mut bytes).map_err(|source| Error::path("read", path, source))?;
    let value = serde_json::from_slice(&bytes)
        .map_err(|error| Error::Said(format!("{}: not JSON: {error}", path.display())))?;
    Ok(match value {
        Value::Array(reports) => reports,
        report => vec![report],
    })
}
