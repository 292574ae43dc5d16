//! `gmmtrace report TRACE...`: everything that is known, as text, JSON, a page or pictures.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde_json::Value;

use super::files::{Content, Plan};
use super::output::{Output, refuse_existing, target};
use super::progress::Progress;
use super::within::Within;
use crate::Error;
use crate::input::{self, Log};
use crate::live::Window;
use crate::render::picture::{Picture, Size, Theme};
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
    /// Write to this file instead of stdout, or instead of beside the log (html, svg, png); `-` is
    /// stdout.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// The part of the log.
    #[command(flatten)]
    pub within: Within,
    /// Overwrite files that exist.
    #[arg(long)]
    pub force: bool,
    /// The picture to draw (svg, png). Default: all of them, or the timeline with -o.
    #[arg(long, value_enum)]
    pub picture: Option<Picture>,
    /// Size of a picture in pixels (svg, png). Default: 1200x700.
    #[arg(long, value_name = "WIDTHxHEIGHT")]
    pub size: Option<Size>,
    /// Ground of a picture (svg, png). Default: light.
    #[arg(long, value_enum)]
    pub theme: Option<Theme>,
}

/// Formats of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    Text,
    /// For programs; an array when there is more than one log.
    Json,
    /// A page for a browser, which needs no network.
    Html,
    /// Pictures that scale.
    Svg,
    /// Pictures of pixels.
    Png,
}

impl Arguments {
    /// What goes to files of its own; `None` when it is one text for stdout.
    fn plan(&self) -> Result<Option<Plan>, Error> {
        let drawn = matches!(self.format, Format::Svg | Format::Png);
        if !drawn && (self.picture.is_some() || self.size.is_some() || self.theme.is_some()) {
            let text = "--picture, --size and --theme are for --format svg and png";
            return Err(Error::Said(text.to_owned()));
        }
        let stdout = target(self.output.as_deref()).is_none();
        if matches!(self.format, Format::Text | Format::Json) && stdout && self.force {
            return Err(Error::Said("--force is for files; name one with -o".to_owned()));
        }
        let pictures = match (self.picture, &self.output) {
            (Some(picture), _) => vec![picture],
            (None, Some(_)) => vec![Picture::Timeline],
            (None, None) => Picture::ALL.to_vec(),
        };
        let contents = match self.format {
            Format::Text | Format::Json => return Ok(None),
            Format::Html => vec![Content::Page],
            Format::Svg => pictures.into_iter().map(Content::Svg).collect(),
            Format::Png => pictures.into_iter().map(Content::Png).collect(),
        };
        Ok(Some(Plan {
            contents,
            output: self.output.clone(),
            force: self.force,
            size: self.size.unwrap_or_default(),
            theme: self.theme.unwrap_or_default(),
        }))
    }
}

/// Writes files of their own for each log. What cannot be read leaves none behind.
fn write_files(plan: &Plan, within: &Within, logs: &[PathBuf]) -> Result<u8, Error> {
    let mut refused = Vec::new();
    for job in &plan.jobs(logs)? {
        match read_within(&job.log, |log| within.of(None, log, None)) {
            Ok(report) => plan.write(job, &report, logs)?,
            Err(error) => refused.push(error),
        }
    }
    match refused.len() {
        0 => Ok(0),
        1 => Err(refused.swap_remove(0)),
        _ => Err(together(&refused)),
    }
}

/// Runs the command.
///
/// # Errors
/// When a log cannot be read or the report not be written. The other logs are reported first.
pub fn run(arguments: &Arguments) -> Result<u8, Error> {
    let plan = arguments.plan()?;
    refuse_existing(target(arguments.output.as_deref()), arguments.force)?;
    let mut paths = Vec::new();
    for trace in &arguments.traces {
        paths.append(&mut input::logs(trace)?);
    }
    if let Some(plan) = plan {
        return write_files(&plan, &arguments.within, &paths);
    }
    // One log that cannot be read leaves no output file behind.
    let mut refused = Vec::new();
    let mut reports = Vec::new();
    let single = paths.len() == 1;
    let mut output = None;
    for path in &paths {
        match read_within(path, |log| arguments.within.of(None, log, None)) {
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
            let made = Output::open(target(arguments.output.as_deref()), arguments.force, inputs)?;
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

/// Several errors as one.
pub(super) fn together(errors: &[Error]) -> Error {
    let sentences: Vec<String> = errors.iter().map(ToString::to_string).collect();
    Error::Said(sentences.join("\ngmmtrace: "))
}

/// Reads a log whole and reports on it.
///
/// # Errors
/// When it cannot be read as a log.
pub fn read(path: &Path) -> Result<Report, Error> {
    read_within(path, |_| Ok(Window::default()))
}

/// Reads a log and reports on a window of it.
///
/// # Errors
/// When it cannot be read as a log, or has no such window.
pub fn read_within(
    path: &Path,
    window: impl Fn(&Log) -> Result<Window, Error>,
) -> Result<Report, Error> {
    let log = Log::open(path)?;
    let window = window(&log)?;
    let mut progress = Progress::new(log.slots.events.len());
    let report = report::read(&log, window, |done, all| progress.tell(done, all));
    progress.clear();
    Ok(report)
}

/// Writes the text report of one log to `out`.
///
/// # Errors
/// When the log cannot be read or `out` not be written to.
pub fn print_text(path: &Path, out: &mut impl Write) -> Result<(), Error> {
    text::write(&read(path)?, out).map_err(Error::Output)
}
