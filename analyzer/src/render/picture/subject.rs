//! What pictures are drawn from.

use super::font::label;
use crate::report::{Doubt, MarkReport, Report, ScopeReport, TimelineReport};

/// Whose pictures they are.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The process in a line.
    pub process: String,
    /// Whether live figures are bounds only.
    pub bound: bool,
    /// Whether figures of copies are bounds only.
    pub copies_bound: bool,
    /// Why.
    pub doubt: Doubt,
    /// Whether times are nanoseconds, not ticks.
    pub calibrated: bool,
}

impl Subject {
    /// The process of a report.
    #[must_use]
    pub fn of(report: &Report) -> Self {
        let header = &report.process.header;
        let command = match header.command_line.as_slice() {
            [] => header.executable.clone().unwrap_or_else(|| "unknown command".to_owned()),
            words => words.join(" "),
        };
        let host = header.host.as_deref().unwrap_or("an unknown host");
        let window = match (report.window.since, report.window.until) {
            (None, None) => String::new(),
            (Some(since), None) => format!(", from {since} on"),
            (None, Some(until)) => format!(", until {until}"),
            (Some(since), Some(until)) => format!(", from {since} to {until}"),
        };
        let pid = header.pid;
        Self {
            process: format!("pid {pid} on {}{window}: {}", label(host), label(&command)),
            bound: report.bound,
            copies_bound: report.copies_bound,
            doubt: report.doubt,
            calibrated: report.trace.calibrated,
        }
    }
}

/// The parts of a report that pictures show.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// Whose they are.
    pub subject: &'a Subject,
    /// Figures over time.
    pub timeline: &'a TimelineReport,
    /// Figures of all devices.
    pub total: &'a ScopeReport,
    /// Marks.
    pub marks: &'a [MarkReport],
}

impl<'a> Facts<'a> {
    /// Those of a report.
    #[must_use]
    pub fn of(subject: &'a Subject, report: &'a Report) -> Self {
        Self { subject, timeline: &report.timeline, total: &report.total, marks: &report.marks }
    }
}
