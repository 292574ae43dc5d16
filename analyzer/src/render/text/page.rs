//! What all texts share: the report, what of it is wanted, how it is to look, and its words.

use std::io::{self, Write};
use std::path::Path;

use crate::analysis::names::SiteName;
use crate::input::WriterState;
use crate::live::{Ledger, Sum};
use crate::render::table::{clean, counted, grouped};
use crate::report::{Composition, Report, Scope, ScopeReport};
use crate::units::{Bytes, Gpu, Nanos};

/// A sum or a ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// A sum.
    Sum(Sum),
    /// A ledger.
    Ledger(Ledger),
}

impl Of {
    /// Every one.
    pub fn all() -> impl Iterator<Item = Self> {
        let sums = Sum::ALL.iter().map(|&sum| Self::Sum(sum));
        sums.chain(Ledger::ALL.iter().map(|&ledger| Self::Ledger(ledger)))
    }

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sum(sum) => sum.name(),
            Self::Ledger(ledger) => ledger.name(),
        }
    }

    /// Whether it is, or adds, a ledger.
    #[must_use]
    pub fn has(self, ledger: Ledger) -> bool {
        match self {
            Self::Sum(sum) => ledger.sum() == Some(sum),
            Self::Ledger(own) => own == ledger,
        }
    }
}

/// How high something was, and what it was made of.
#[derive(Clone, Copy, Debug)]
pub struct Height<'a> {
    /// Bytes live at the end.
    pub live: Bytes,
    /// The most bytes live.
    pub peak: Bytes,
    /// When that was first reached.
    pub peak_at: Option<Nanos>,
    /// What the peak was made of.
    pub at_peak: &'a Composition,
    /// What is left.
    pub at_end: &'a Composition,
}

/// How texts look.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// Rows of a table.
    pub top: usize,
    /// Bytes to the last one instead of binary units.
    pub bytes: bool,
    /// Whether the reader is a terminal that shows colours.
    pub colour: bool,
}

impl Default for Style {
    fn default() -> Self {
        Self { top: 15, bytes: false, colour: false }
    }
}

impl Style {
    /// A size.
    #[must_use]
    pub fn size(&self, bytes: Bytes) -> String {
        if self.bytes { grouped(bytes.0) } else { bytes.to_string() }
    }

    /// A size in both ways, or to the last byte alone.
    #[must_use]
    pub fn exact(&self, bytes: Bytes) -> String {
        if self.bytes { grouped(bytes.0) } else { exact(bytes) }
    }

    /// Text that answers the question.
    #[must_use]
    pub fn strong(&self, text: &str) -> String {
        if self.colour { format!("\x1b[1m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// Text that something is wrong.
    #[must_use]
    pub fn warning(&self, text: &str) -> String {
        if self.colour { format!("\x1b[1;31m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// Text that stands back.
    #[must_use]
    pub fn faint(&self, text: &str) -> String {
        if self.colour { format!("\x1b[2m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// What a text is made from.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    /// Everything that is known.
    pub report: &'a Report,
    /// The devices that are wanted.
    pub scope: &'a ScopeReport,
    /// The ledgers and sums that are wanted; empty for all.
    pub only: &'a [Of],
    /// Whether the window ends at a moment that was asked for, and begins with the log.
    pub at: bool,
    /// How it looks.
    pub style: Style,
}

impl<'a> Page<'a> {
    /// Everything about all devices.
    #[must_use]
    pub fn whole(report: &'a Report) -> Self {
        Self { report, scope: &report.total, only: &[], at: false, style: Style::default() }
    }

    /// Whether a ledger is wanted.
    #[must_use]
    pub fn wants(&self, ledger: Ledger) -> bool {
        self.only.is_empty() || self.only.iter().any(|of| of.has(ledger))
    }

    /// The heights of a sum or a ledger.
    #[must_use]
    pub fn height(&self, of: Of) -> Option<Height<'a>> {
        match of {
            Of::Sum(sum) => self.scope.sum(sum).map(|sum| Height {
                live: sum.live,
                peak: sum.peak,
                peak_at: sum.peak_at,
                at_peak: &sum.at_peak,
                at_end: &sum.at_end,
            }),
            Of::Ledger(ledger) => self.scope.ledger(ledger).map(|ledger| Height {
                live: Bytes(ledger.tally.live_bytes),
                peak: Bytes(ledger.tally.peak_bytes),
                peak_at: ledger.peak_at,
                at_peak: &ledger.at_peak,
                at_end: &ledger.at_end,
            }),
        }
    }

    /// What stands behind figures that are bounds.
    #[must_use]
    pub fn bound(&self) -> String {
        self.bound_if(self.report.bound)
    }

    /// The same behind figures of copies and sets.
    #[must_use]
    pub fn copies_bound(&self) -> String {
        self.bound_if(self.report.copies_bound)
    }

    fn bound_if(&self, bound: bool) -> String {
        if bound {
            self.style.warning(&format!("  (bound: {})", self.report.doubt.words()))
        } else {
            String::new()
        }
    }

    /// The words for what is left.
    #[must_use]
    pub fn live_title(&self) -> &'static str {
        match (self.at, self.report.window.until.is_some(), self.report.trace.state) {
            (true, ..) => "Live then",
            (false, true, _) => "Live at its end",
            (false, false, WriterState::Running) => "Live so far",
            _ => "Live at end",
        }
    }

    /// When what is left is left, in words.
    #[must_use]
    pub fn end(&self) -> &'static str {
        match (self.at, self.report.window.until.is_some(), self.report.trace.state) {
            (true, ..) => "then",
            (false, true, _) => "at the window's end",
            (false, false, WriterState::Running) => "so far",
            _ => "at the end",
        }
    }

    /// The first line: which process, which window, which devices.
    ///
    /// # Errors
    /// As `out` says.
    pub fn head(&self, what: &str, out: &mut impl Write) -> io::Result<()> {
        let header = &self.report.process.header;
        let gpu = match self.scope.scope {
            Scope::All => String::new(),
            scope => format!(", {}", scope_name(scope)),
        };
        let command = clean(&elided(&command(self.report), 60));
        writeln!(
            out,
            "{}{gpu}{}: {command} (pid {}){}",
            self.style.strong(what),
            self.window(),
            header.pid,
            self.bound(),
        )
    }

    /// The part of the log that this is about, in words behind others; nothing for all of it.
    #[must_use]
    pub fn window(&self) -> String {
        let window = self.report.window;
        let end = self.report.process.duration;
        let behind = [window.since, window.until].into_iter().flatten().max();
        let behind = end.filter(|&end| behind.is_some_and(|moment| moment > end));
        let behind = behind.map(|end| format!(", behind the log's end at {}", end.exact()));
        let words = match (self.at, window.since, window.until) {
            (true, _, Some(at)) => format!(" at {}", at.exact()),
            (_, Some(since), Some(until)) => {
                format!(" from {} to {}", since.exact(), until.exact())
            }
            (_, Some(since), None) => format!(" since {}", since.exact()),
            (_, None, Some(until)) => format!(" until {}", until.exact()),
            _ => String::new(),
        };
        words + &behind.unwrap_or_default()
    }

    /// How many rows of a table are not shown.
    ///
    /// # Errors
    /// As `out` says.
    pub fn more(&self, all: usize, out: &mut impl Write) -> io::Result<()> {
        let top = self.style.top;
        if all > top {
            let rest = grouped((all - top) as u64);
            writeln!(out, "  and {rest} more in JSON")?;
        }
        Ok(())
    }
}

/// Columns that a line of words has at most, unless one word is longer.
const COLUMNS: usize = 100;

/// Words behind a title, with commas between them, in as many lines as they need.
///
/// # Errors
/// As `out` says.
pub fn list(title: &str, words: &[String], out: &mut impl Write) -> io::Result<()> {
    let mut line = format!("  {title}:");
    for (number, word) in words.iter().enumerate() {
        let comma = if number + 1 < words.len() { "," } else { "" };
        if line.chars().count() + word.chars().count() + 2 > COLUMNS {
            writeln!(out, "{line}")?;
            line = "   ".to_owned();
        }
        line.push_str(&format!(" {word}{comma}"));
    }
    writeln!(out, "{line}")
}

/// Bytes in both ways.
#[must_use]
pub fn exact(bytes: Bytes) -> String {
    if bytes.0 < 1024 { format!("{bytes}") } else { format!("{bytes} ({} B)", grouped(bytes.0)) }
}

/// A moment to the last nanosecond, so that `--at` finds what was then; or a dash.
#[must_use]
pub fn at(time: Option<Nanos>) -> String {
    time.map_or_else(|| "-".to_owned(), Nanos::exact)
}

/// A device, in words.
#[must_use]
pub fn gpu_name(gpu: Option<Gpu>) -> String {
    gpu.map_or_else(|| "unknown".to_owned(), |gpu| format!("GPU {}", gpu.0))
}

/// Devices, in words.
#[must_use]
pub fn scope_name(scope: Scope) -> String {
    match scope {
        Scope::All => "all".to_owned(),
        Scope::On(gpu) => gpu_name(gpu),
    }
}

/// The command line, or the executable.
#[must_use]
pub fn command(report: &Report) -> String {
    let header = &report.process.header;
    if header.command_line.is_empty() {
        header.executable.clone().unwrap_or_else(|| "unknown command".to_owned())
    } else {
        header.command_line.join(" ")
    }
}

/// A call as a person names it: the runtime call, and what it made of the driver.
#[must_use]
pub fn call(site: &SiteName) -> String {
    if let Some(others) = other_sites(site) {
        return others;
    }
    let api = site.api.as_deref().unwrap_or("unknown call");
    let text =
        site.call.as_deref().map_or_else(|| api.to_owned(), |call| format!("{call} > {api}"));
    elided(&text, 100)
}

/// The sites that a row stands for, where a list does not name them.
#[must_use]
pub fn other_sites(site: &SiteName) -> Option<String> {
    (site.others > 0).then(|| counted(site.others, "other site", "other sites"))
}

/// Who called: the Python line where it is known, else the library by the name of its file;
/// nothing for sites that a list does not name.
#[must_use]
pub fn caller(site: &SiteName) -> String {
    if site.others > 0 {
        return String::new();
    }
    if let Some(caller) = &site.caller {
        return elided(&caller.to_string(), 100);
    }
    let Some(path) = &site.library else { return "unknown library".to_owned() };
    let name = Path::new(&**path).file_name();
    let text = name.map_or_else(|| path.to_string(), |name| name.to_string_lossy().into_owned());
    elided(&text, 100)
}

/// The text with its middle left out when it is longer than `most` letters.
#[must_use]
pub fn elided(text: &str, most: usize) -> String {
    let count = text.chars().count();
    if count <= most {
        return text.to_owned();
    }
    let half = most.saturating_sub(1) / 2;
    let head: String = text.chars().take(most.saturating_sub(half + 1)).collect();
    let tail: String = text.chars().skip(count - half).collect();
    format!("{head}…{tail}")
}

/// How the process ended.
#[must_use]
pub fn ending(report: &Report) -> String {
    let duration = report.process.duration;
    let lasted = duration.map(|time| format!(" {time} after the log began")).unwrap_or_default();
    match report.trace.state {
        WriterState::Exited => format!("exited{lasted}"),
        WriterState::Running => {
            format!("still running, read as far as it has written; last event{lasted}")
        }
        WriterState::Gone => {
            format!("gone without exit (killed, crashed, or _exit); last event{lasted}")
        }
        WriterState::Unknown => {
            format!("not known (other machine, boot or container); last event{lasted}")
        }
    }
}

/// What failed.
#[must_use]
pub fn failures(page: &Page<'_>) -> String {
    let used = page.scope.ledgers.iter().filter(|ledger| ledger.tally.failed > 0);
    let named = used.map(|used| (used.ledger.name(), used.tally.failed));
    let report = page.report;
    let others = [("copies", report.failed_copies), ("sets", report.failed_sets)];
    let all = named.chain(others).filter(|&(_, count)| count > 0);
    let words: Vec<String> =
        all.map(|(name, count)| format!("{} of {name}", grouped(count))).collect();
    if words.is_empty() { "none".to_owned() } else { words.join(", ") }
}

/// What is missing.
#[must_use]
pub fn losses(report: &Report) -> String {
    let coverage = &report.coverage;
    let mut words: Vec<String> = coverage
        .losses
        .iter()
        .map(|loss| format!("{} {}", grouped(loss.count), loss.cause.replace('_', " ")))
        .collect();
    if !coverage.salvage.is_empty() {
        let places = counted(coverage.salvage.len() as u64, "place", "places");
        words.push(format!("the log is damaged in {places}"));
    }
    if coverage.unknown_kinds > 0 {
        let events = counted(coverage.unknown_kinds, "event", "events");
        words.push(format!("{events} of unknown kinds"));
    }
    if words.is_empty() { "none".to_owned() } else { words.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_keeps_its_ends() {
        assert_eq!(elided("abcdef", 6), "abcdef");
        assert_eq!(elided("abcdefg", 6), "abc…fg");
        assert_eq!(elided("äöü", 1), "…");
    }
}
