//! `gmmtrace report TRACE...`: everything that is known, as text or JSON.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde_json::Value;

use super::output::Output;
use crate::Error;
use crate::input::{self, Log};
use crate::live::LiveSet;
use crate::order::{self, LaneStart, Record, Sink};
use crate::render::{json, text};
use crate::report::{self, Report};

/// Arguments of `report`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Logs, or directories of logs.
    #[arg(required = true, value_name = "TRACE")]
    pub traces: Vec<PathBuf>,
    /// What to write.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// Write to this file instead of stdout.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Overwrite the file if it exists.
    #[arg(long)]
    pub force: bool,
}

/// Formats of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    Text,
    /// For programs; an array when there is more than one log.
    Json,
}

/// Runs the command.
///
/// # Errors
/// When a log cannot be read or the report not be written. The other logs are reported first.
pub fn run(arguments: &Arguments) -> Result<u8, Error> {
    if let Some(path) = arguments.output.as_deref().filter(|path| path.exists() && !arguments.force)
    {
        return Err(Error::Exists(path.to_path_buf()));
    }
    let mut paths = Vec::new();
    for trace in &arguments.traces {
        paths.append(&mut input::logs(trace)?);
    }
    // One log that cannot be read leaves no output file behind.
    let mut refused = Vec::new();
    let mut reports = Vec::new();
    let single = paths.len() == 1;
    let mut output = None;
    for path in &paths {
        match read(path) {
            Ok(report) => reports.push(report),
            Err(error) if single => return Err(error),
            Err(error) => refused.push(error),
        }
        if arguments.format == Format::Text {
            let output = opened(&mut output, arguments, &paths)?;
            write_text(&reports, output)?;
            reports = Vec::new();
        }
    }
    if arguments.format == Format::Json {
        write_json(&reports, single, opened(&mut output, arguments, &paths)?)?;
    }
    output.map_or(Ok(()), Output::finish)?;
    if refused.is_empty() { Ok(0) } else { Err(together(&refused)) }
}

fn opened<'a>(
    output: &'a mut Option<Output>,
    arguments: &Arguments,
    inputs: &[PathBuf],
) -> Result<&'a mut Output, Error> {
    match output {
        Some(output) => Ok(output),
        None => {
            let made = Output::open(arguments.output.as_deref(), arguments.force, inputs)?;
            Ok(output.insert(made))
        }
    }
}

fn write_text(reports: &[Report], output: &mut Output) -> Result<(), Error> {
    for report in reports {
        let written =
            text::write(report, &mut output.writer()).and_then(|()| writeln!(output.writer()));
        written.map_err(|error| output.failed(error))?;
    }
    Ok(())
}

fn write_json(reports: &[Report], single: bool, output: &mut Output) -> Result<(), Error> {
    let mut values: Vec<Value> = reports.iter().map(json::value).collect();
    let value = if single { values.pop().unwrap_or_default() } else { Value::Array(values) };
    let written = serde_json::to_writer_pretty(output.writer(), &value)
        .map_err(io::Error::from)
        .and_then(|()| writeln!(output.writer()));
    written.map_err(|error| output.failed(error))
}

pub(super) fn together(errors: &[Error]) -> Error {
    let sentences: Vec<String> = errors.iter().map(ToString::to_string).collect();
    Error::Said(sentences.join("\ngmmtrace: "))
}

/// Reads a log whole and reports on it.
///
/// # Errors
/// When it cannot be read as a log.
pub fn read(path: &Path) -> Result<Report, Error> {
    let log = Log::open(path)?;
    let mut progress = Progress::new(LiveSet::new(&log.dictionary), &log);
    let outcome = order::run(&log, &mut progress);
    progress.clear();
    Ok(report::build(&log, &progress.live, &outcome))
}

/// Writes the text report of one log to `out`.
///
/// # Errors
/// When the log cannot be read or `out` not be written to.
pub fn print_text(path: &Path, out: &mut impl Write) -> Result<(), Error> {
    text::write(&read(path)?, out).map_err(Error::Output)
}

/// Chunks of a log that takes long enough for a person to wonder.
const LONG: usize = 4_096;

/// The live set, and how far it has come, for a person at a terminal.
struct Progress {
    live: LiveSet,
    shown: bool,
    percent: usize,
}

impl Progress {
    fn new(live: LiveSet, log: &Log) -> Self {
        let shown = log.slots.events.len() >= LONG && io::stderr().is_terminal();
        Self { live, shown, percent: usize::MAX }
    }

    fn say(&self, text: &str) {
        let mut stderr = io::stderr().lock();
        let _ = write!(stderr, "\r\x1b[K{text}").and_then(|()| stderr.flush());
    }

    fn clear(&self) {
        if self.shown {
            self.say("");
        }
    }
}

impl Sink for Progress {
    fn lane(&mut self, ordinal: u32, start: &LaneStart) {
        self.live.lane(ordinal, start);
    }

    #[inline]
    fn records(&mut self, lane: u32, records: &[Record], texts: &[u8]) {
        self.live.records(lane, records, texts);
    }

    fn progress(&mut self, done: usize, all: usize) {
        if !self.shown {
            return;
        }
        let percent = done.saturating_mul(100) / all.max(1);
        if percent != self.percent {
            self.percent = percent;
            self.say(&format!("reading: {percent} %"));
        }
    }
}
