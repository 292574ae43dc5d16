//! `gmmtrace summary|timeline|peak|leaks|fragmentation|copies|gap TRACE...`: one question each.

use std::env;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::moment::Moment;
use super::output::{Output, refuse_existing, target};
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
    /// Rows of a table: 15 if it is not given.
    #[arg(long, value_name = "N", value_parser = top, conflicts_with = "json")]
    pub top: Option<usize>,
    /// Bytes to the last one instead of binary units.
    #[arg(long, conflicts_with = "json")]
    pub bytes: bool,
    /// Write to this file instead of stdout, which is `-`.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Overwrite the file if it exists.
    #[arg(long, requires = "output")]
    pub force: bool,
}

/// Options that a question has no use for: they are not in its help, and refused.
#[must_use]
pub const fn without(question: Question) -> &'static [&'static str] {
    match question {
        Question::Timeline | Question::Peak | Question::Leaks => &[],
        Question::Fragmentation => &["ledger"],
        Question::Summary | Question::Copies => &["ledger", "top"],
        Question::Gap => &["ledger", "gpu"],
    }
}

/// Refuses what the question would not look at.
fn check(question: Question, arguments: &Arguments) -> Result<(), Error> {
    let given = [
        ("ledger", !arguments.ledger.is_empty()),
        ("top", arguments.top.is_some()),
        ("gpu", arguments.gpu.is_some()),
    ];
    let refused = |name: &str| without(question).contains(&name);
    let Some((name, _)) = given.into_iter().find(|&(name, given)| given && refused(name)) else {
        return Ok(());
    };
    let takes = |question: &&Question| !without(**question).contains(&name);
    let others: Vec<&str> = Question::ALL.iter().filter(takes).map(|one| one.name()).collect();
    let text = format!("`{}` has no --{name}; {} have", question.name(), others.join(", "));
    Err(Error::Said(text))
}

/// Names of ledgers and sums, which completions know too.
fn of() -> impl TypedValueParser<Value = Of> {
    let names = PossibleValuesParser::new(Of::all().map(Of::name));
    names.try_map(|name| Of::all().find(|of| of.name() == name).ok_or("no ledger"))
}

/// A number of rows.
pub(super) fn top(text: &str) -> Result<usize, String> {
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
    check(question, arguments)?;
    let output = target(arguments.output.as_deref());
    refuse_existing(output, arguments.force)?;
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
        let mut output = Output::open(output, arguments.force, &paths)?;
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
    let terminal = target(arguments.output.as_deref()).is_none() && io::stdout().is_terminal();
    let colour = terminal && wants_colour();
    let top = arguments.top.unwrap_or(Style::default().top);
    let style = Style { top, bytes: arguments.bytes, colour };
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
