//! `gmmtrace summary|timeline|peak|leaks|fragmentation|copies|gap TRACE...`: one question each.

use std::env;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::moment::Moment;
use super::output::Output;
use super::report::{read_within, together};
use super::within::Within;
use serde_json::Value;

use crate::Error;
use crate::input;
use crate::render::json;
use crate::render::text::page::{Of, Page, Style};
use crate::render::text::{Question, answer};
use crate::report::{Report, Scope, ScopeReport};
use crate::units::Gpu;

/// Arguments of every question.
#[derive(clap::Args)]
pub struct Arguments {
    /// Logs, or directories of logs.
    #[arg(required = true, value_name = "TRACE")]
    pub traces: Vec<PathBuf>,
    /// Answer as JSON, with the keys of the report.
    #[arg(long)]
    pub json: bool,
    /// The state at this moment: 1.5s, 300ms, 2m, @TEXT for the first mark with that text, @peak,
    /// @peak.LEDGER or @end.
    #[arg(long, value_name = "TIME", conflicts_with_all = ["since", "until"])]
    pub at: Option<Moment>,
    /// The part of the log.
    #[command(flatten)]
    pub within: Within,
    /// Only this device.
    #[arg(long, value_name = "N")]
    pub gpu: Option<u32>,
    /// Only this ledger or sum; may be given several times.
    #[arg(long, value_name = "NAME", value_parser = of())]
    pub ledger: Vec<Of>,
    /// Rows of a table.
    #[arg(long, value_name = "N", default_value_t = 15, value_parser = top)]
    pub top: usize,
    /// Bytes to the last one instead of binary units.
    #[arg(long)]
    pub bytes: bool,
    /// Write to this file instead of stdout.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Overwrite the file if it exists.
    #[arg(long)]
    pub force: bool,
}

/// Names of ledgers and sums, which completions know too.
fn of() -> impl TypedValueParser<Value = Of> {
    let names = PossibleValuesParser::new(Of::all().map(Of::name));
    names.try_map(|name| Of::all().find(|of| of.name() == name).ok_or("no ledger"))
}

fn top(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("a number of rows, 1 or more".to_owned()),
        Ok(rows) => Ok(rows),
    }
}

/// Runs the command.
///
/// # Errors
/// When a log cannot be read, a moment or a device is not in it, or the answer not be written.
/// The other logs are answered first.
pub fn run(question: Question, arguments: &Arguments) -> Result<u8, Error> {
    if let Some(path) = arguments.output.as_deref().filter(|path| path.exists() && !arguments.force)
    {
        return Err(Error::Exists(path.to_path_buf()));
    }
    let mut paths = Vec::new();
    for trace in &arguments.traces {
        paths.append(&mut input::logs(trace)?);
    }
    let (mut reports, mut refused) = (Vec::new(), Vec::new());
    for path in &paths {
        match read_within(path, |log| {
            arguments.within.of(arguments.at.as_ref(), log, arguments.gpu.map(Gpu))
        }) {
            Ok(report) => reports.push(report),
            Err(error) => refused.push(error),
        }
    }
    if reports.is_empty() {
        return Err(together(&refused));
    }
    let mut pages = Vec::new();
    for report in &reports {
        match scope(report, arguments.gpu) {
            Ok(scope) => pages.push((report, scope)),
            Err(error) => refused.push(error),
        }
    }
    if !pages.is_empty() {
        let mut output = Output::open(arguments.output.as_deref(), arguments.force, &paths)?;
        let written = match arguments.json {
            true => write_json(question, arguments, &pages, output.writer()),
            false => write_text(question, arguments, &pages, output.writer()),
        };
        written.map_err(|error| output.failed(error))?;
        output.finish()?;
    }
    if refused.is_empty() { Ok(0) } else { Err(together(&refused)) }
}

fn scope(report: &Report, gpu: Option<u32>) -> Result<&ScopeReport, Error> {
    let Some(gpu) = gpu else { return Ok(&report.total) };
    let wanted = Scope::On(Some(Gpu(gpu)));
    report.by_gpu.iter().find(|scope| scope.scope == wanted).ok_or_else(|| {
        let used: Vec<String> = report
            .by_gpu
            .iter()
            .filter_map(|scope| match scope.scope {
                Scope::On(Some(gpu)) => Some(gpu.0.to_string()),
                _ => None,
            })
            .collect();
        let path = &report.trace.path;
        let used = if used.is_empty() { "none".to_owned() } else { used.join(", ") };
        Error::Said(format!("{path}: nothing was on GPU {gpu}; used devices: {used}"))
    })
}

/// Whether a terminal shows colours and its reader wants them.
fn wants_colour() -> bool {
    let set = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
    let dumb = env::var_os("TERM").is_none_or(|term| term == "dumb");
    !set("NO_COLOR") && !dumb
}

fn write_text(
    question: Question,
    arguments: &Arguments,
    pages: &[(&Report, &ScopeReport)],
    mut out: &mut dyn Write,
) -> io::Result<()> {
    let terminal = arguments.output.is_none() && io::stdout().is_terminal();
    let colour = terminal && wants_colour();
    let style = Style { top: arguments.top, bytes: arguments.bytes, colour };
    for (number, &(report, scope)) in pages.iter().enumerate() {
        if number > 0 {
            writeln!(out)?;
        }
        let (only, at) = (arguments.ledger.as_slice(), arguments.at.is_some());
        answer(question, &Page { report, scope, only, at, style }, &mut out)?;
    }
    Ok(())
}

fn write_json(
    question: Question,
    arguments: &Arguments,
    pages: &[(&Report, &ScopeReport)],
    mut out: &mut dyn Write,
) -> io::Result<()> {
    let mut values: Vec<Value> = pages
        .iter()
        .map(|(report, scope)| json::answer(question, report, scope, &arguments.ledger))
        .collect();
    let value = match values.len() {
        1 => values.pop().unwrap_or_default(),
        _ => Value::Array(values),
    };
    serde_json::to_writer_pretty(&mut out, &value)?;
    writeln!(out)
}

/// Writes the summary of one log to `out`, for a reader that may be a terminal.
///
/// # Errors
/// When the log cannot be read or `out` not be written to.
pub fn print_summary(path: &Path, terminal: bool, out: &mut impl Write) -> Result<(), Error> {
    let report = super::report::read(path)?;
    let style = Style { colour: terminal && wants_colour(), ..Style::default() };
    let page = Page { style, ..Page::whole(&report) };
    answer(Question::Summary, &page, out).map_err(Error::Output)
}
