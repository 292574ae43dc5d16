//! One question each, in the words of the same sections as the report.

use std::io::{self, Write};

use super::page::{Height, Of, Page};
use super::{fragmentation, gap, held, summary, timeline, torch, traffic};
use crate::live::{Ledger, Sum};
use crate::render::table::counted;
use crate::report::{ABSENT, Scope};
use crate::units::{Bytes, Nanos};

/// What can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// What matters, on one screen.
    Summary,
    /// How it went over time.
    Timeline,
    /// What the peak was made of.
    Peak,
    /// What is left.
    Leaks,
    /// What is taken and of no use.
    Fragmentation,
    /// What was copied and set.
    Copies,
    /// What NVML shows, and what explains it.
    Gap,
}

impl Question {
    /// Every one.
    pub const ALL: [Self; 7] = [
        Self::Summary,
        Self::Timeline,
        Self::Peak,
        Self::Leaks,
        Self::Fragmentation,
        Self::Copies,
        Self::Gap,
    ];

    /// The command that asks it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Summary => "summary",
            Self::Timeline => "timeline",
            Self::Peak => "peak",
            Self::Leaks => "leaks",
            Self::Fragmentation => "fragmentation",
            Self::Copies => "copies",
            Self::Gap => "gap",
        }
    }
}

/// Writes the answer.
///
/// # Errors
/// As `out` says.
pub fn answer(question: Question, page: &Page<'_>, out: &mut impl Write) -> io::Result<()> {
    match question {
        Question::Summary => summary::write(page, out),
        Question::Timeline => {
            page.head("Timeline", out)?;
            timeline::all(page, out)
        }
        Question::Peak => peak(page, out),
        Question::Leaks => leaks(page, out),
        Question::Fragmentation => {
            page.head("Fragmentation", out)?;
            let report = &page.scope.fragmentation;
            let no_ranges = report.vmm.as_ref().is_none_or(|vmm| vmm.ranges == 0);
            if report.device_worst.is_none() && no_ranges && report.pool.is_none() {
                writeln!(out, "\nno device blocks, no mappings and no pools were seen")?;
                return torch::segments(page, out);
            }
            writeln!(out)?;
            fragmentation::levels(page, out)
        }
        Question::Copies => copies(page, out),
        Question::Gap => {
            page.head("Gap", out)?;
            gap::whole(page, out)
        }
    }
}

/// The sums and ledgers that were asked for, else the sum `gpu`.
fn asked(page: &Page<'_>) -> Vec<Of> {
    if page.only.is_empty() { vec![Of::Sum(Sum::Gpu)] } else { page.only.to_vec() }
}

fn title(page: &Page<'_>, of: Of) -> String {
    let adds = match of {
        Of::Sum(sum) => {
            let names: Vec<&str> = sum.ledgers().map(|ledger| ledger.name()).collect();
            format!(" = {}", names.join(" + "))
        }
        Of::Ledger(_) => String::new(),
    };
    page.style.strong(&format!("{}{adds}", of.name()))
}

fn peak(page: &Page<'_>, out: &mut impl Write) -> io::Result<()> {
    page.head("Peak", out)?;
    for of in asked(page) {
        let Some(height) = page.height(of) else { continue };
        writeln!(out, "\n{}", title(page, of))?;
        if of == Of::Ledger(Ledger::Torch) && !page.report.torch.seen {
            writeln!(out, "  not known: {ABSENT}")?;
            continue;
        }
        if height.peak == Bytes(0) {
            writeln!(out, "  nothing was ever live{}", page.bound())?;
            continue;
        }
        writeln!(out, "  {}{}", peak_line(page, of, height), page.bound())?;
        held::by_site(page, "Held by", "", &height.at_peak.held, out)?;
        held::by_size_and_age(page, height.at_peak, height.peak_at, out)?;
    }
    Ok(())
}

fn peak_line(page: &Page<'_>, of: Of, height: Height<'_>) -> String {
    let named = match of {
        Of::Sum(Sum::Gpu) => "@peak".to_owned(),
        _ => format!("@peak.{}", of.name()),
    };
    let when = height.peak_at.map(|at| format!(" at {} ({named})", at.exact()));
    let (peak, live) = (page.style.size(height.peak), page.style.size(height.live));
    let live_title = page.live_title().to_lowercase();
    format!("peak {peak}{}; {live_title} {live}", when.unwrap_or_default())
}

fn leaks(page: &Page<'_>, out: &mut impl Write) -> io::Result<()> {
    let what = if page.at { "Live" } else { "Left at the end" };
    page.head(what, out)?;
    if !page.at {
        writeln!(
            out,
            "What is left is not yet a leak: this version gives no verdicts, and a process that\n\
             exits may leave its memory to the driver."
        )?;
    }
    if page.report.window.since.is_some() {
        writeln!(out, "Only what was made in this window.")?;
    }
    let end: Option<Nanos> =
        page.report.window.until.or(page.report.timeline.edges.last().copied());
    if page.only.is_empty() {
        let title = format!("{}{}", page.live_title(), page.bound());
        held::by_site(page, &title, "nothing is live", &page.scope.live_at_end, out)?;
        let Some(gpu) = page.height(Of::Sum(Sum::Gpu)) else { return Ok(()) };
        if !gpu.at_end.by_size.is_empty() {
            writeln!(out, "\nOf these, memory on devices")?;
        }
        return held::by_size_and_age(page, gpu.at_end, end, out);
    }
    for of in asked(page) {
        let Some(height) = page.height(of) else { continue };
        let title =
            format!("{}: {}{}", title(page, of), page.style.size(height.live), page.bound());
        held::by_site(page, &title, "nothing is live", &height.at_end.held, out)?;
        held::by_size_and_age(page, height.at_end, end, out)?;
    }
    Ok(())
}

fn copies(page: &Page<'_>, out: &mut impl Write) -> io::Result<()> {
    page.head("Copies", out)?;
    let none = page.scope.copies.is_empty() && page.scope.sets.moved.count == 0;
    if none {
        writeln!(out, "\nnothing was copied or set{}", page.copies_bound())?;
    }
    traffic::copies(page, out)?;
    if page.report.failed_copies > 0 || page.report.failed_sets > 0 {
        writeln!(
            out,
            "  failed: {}, {}{}",
            counted(page.report.failed_copies, "copy", "copies"),
            counted(page.report.failed_sets, "set", "sets"),
            if page.scope.scope == Scope::All { "" } else { " (of all devices)" },
        )?;
    }
    traffic::by_size(page, out)?;
    if page.scope.scope == Scope::All {
        traffic::stalls(page, out)?;
    }
    Ok(())
}
