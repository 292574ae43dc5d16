//! The answer on one screen.

use std::io::{self, Write};

use super::page::{Of, Page, call, caller, elided, ending, failures, losses};
use super::{fragmentation, timeline, torch};
use crate::live::{Direction, Sum};
use crate::render::table::Align::{Left, Right};
use crate::render::table::{Table, clean, counted, grouped};
use crate::report::{HeldReport, MovedReport};
use crate::units::{Bytes, Nanos};

/// Letters of the line over time.
const WIDTH: usize = 44;
/// Holders that are named.
const HOLDERS: usize = 3;

/// Everything that matters, in a line each.
pub fn write(page: &Page<'_>, out: &mut impl Write) -> io::Result<()> {
    page.head("Summary", out)?;
    writeln!(out, "Process    {}", ending(page.report))?;
    if page.report.trace.events == 0 {
        let window = page.report.window;
        let words = match window.since.or(window.until) {
            Some(_) => "no event in this window",
            None => "the log holds no event",
        };
        writeln!(out, "           {words}")?;
    }
    heights(page, out)?;
    for sum in Sum::ALL {
        holders(page, *sum, out)?;
    }
    used_ledgers(page, out)?;
    if let Some(sentence) = fragmentation::in_a_sentence(page) {
        writeln!(out, "Kept       {sentence}")?;
    }
    if let Some(sentence) = torch::in_a_sentence(page) {
        writeln!(out, "PyTorch    {sentence}")?;
    }
    copies(page, out)?;
    stalls(page, out)?;
    marks(page, out)?;
    doubts(page, out)
}

fn heights(page: &Page<'_>, out: &mut impl Write) -> io::Result<()> {
    for &sum in Sum::ALL {
        let Some(height) = page.height(Of::Sum(sum)).filter(|height| height.peak.0 > 0) else {
            continue;
        };
        let (peak, live) = (page.style.size(height.peak), page.style.size(height.live));
        let when = height.peak_at.map(|at| format!(" at {}", at.exact())).unwrap_or_default();
        let title = if sum == Sum::Gpu { "GPU" } else { "Host" };
        let heights = format!("peak {peak}{when}, {} {live}", page.live_title().to_lowercase());
        writeln!(out, "{title:<11}{}{}", page.style.strong(&heights), page.bound())?;
        if let Some(line) = timeline::of_sum(page, sum, WIDTH) {
            writeln!(out, "           {}", page.style.faint(&format!("▕{line}▏")))?;
        }
    }
    if page.height(Of::Sum(Sum::Gpu)).is_none_or(|height| height.peak.0 == 0) {
        writeln!(out, "GPU        nothing was allocated{}", page.bound())?;
    }
    Ok(())
}

fn holder(page: &Page<'_>, held: &HeldReport) -> String {
    let size = page.style.size(held.bytes);
    format!("{size} by {} in {}", call(&held.site), caller(&held.site))
}

fn holders(page: &Page<'_>, sum: Sum, out: &mut impl Write) -> io::Result<()> {
    let Some(height) = page.height(Of::Sum(sum)).filter(|_| sum == Sum::Gpu) else {
        return Ok(());
    };
    let parts = [
        ("At peak", &height.at_peak.held),
        (if page.at { "Then" } else { "Left" }, &height.at_end.held),
    ];
    for (title, held) in parts {
        let mut title = title;
        for entry in held.iter().take(HOLDERS) {
            writeln!(out, "{title:<11}{}", clean(&holder(page, entry)))?;
            title = "";
        }
        if held.len() > HOLDERS {
            let rest: u64 = held.iter().skip(HOLDERS).map(|entry| entry.bytes.0).sum();
            let size = page.style.size(Bytes(rest));
            let sites: u64 = held.iter().skip(HOLDERS).map(|held| held.site.others.max(1)).sum();
            writeln!(out, "           and {size} by {} more", grouped(sites))?;
        }
    }
    Ok(())
}

fn used_ledgers(page: &Page<'_>, out: &mut impl Write) -> io::Result<()> {
    let used = page.scope.ledgers.iter().filter(|ledger| ledger.tally.is_used());
    let mut table = Table::new([
        ("ledger", Left),
        ("allocs", Right),
        ("frees", Right),
        ("live", Right),
        ("peak", Right),
    ]);
    let mut any = false;
    for ledger in used.filter(|ledger| page.wants(ledger.ledger)) {
        any = true;
        let tally = &ledger.tally;
        table.row([
            ledger.ledger.name().to_owned(),
            grouped(tally.allocs),
            grouped(tally.frees.saturating_add(tally.implicit_frees)),
            page.style.size(Bytes(tally.live_bytes)),
            page.style.size(Bytes(tally.peak_bytes)),
        ]);
    }
    if any { table.write(out) } else { Ok(()) }
}

fn copies(page: &Page<'_>, out: &mut impl Write) -> io::Result<()> {
    let mut parts = Vec::new();
    for &direction in Direction::ALL {
        let of = page.scope.copies.iter().filter(|(key, _)| key.direction == direction);
        let (count, bytes) = of.fold((0_u64, 0_u64), |(count, bytes), (_, report)| {
            let MovedReport { moved, .. } = report;
            (count.saturating_add(moved.count), bytes.saturating_add(moved.bytes))
        });
        if count > 0 {
            let size = page.style.size(Bytes(bytes));
            parts.push(format!(
                "{} {size} in {}",
                direction.name().replace('_', " "),
                grouped(count)
            ));
        }
    }
    if let Some(last) = parts.last_mut() {
        last.push_str(&page.copies_bound());
    } else if page.report.copies_bound {
        parts.push(format!("none seen{}", page.copies_bound()));
    }
    wrapped("Copies", &parts, out)
}

fn stalls(page: &Page<'_>, out: &mut impl Write) -> io::Result<()> {
    /// A call of this length is worth a word.
    const LONG: Nanos = Nanos(1_000_000);
    let used = page.report.stalls.iter().filter(|stall| stall.count > 0);
    let mut parts: Vec<String> = used
        .map(|stall| {
            let (count, name) = (grouped(stall.count), stall.purpose.name());
            match stall.max >= LONG {
                true => format!("{count} {name} in {}, longest {}", stall.total, stall.max),
                false => format!("{count} {name} in {}", stall.total),
            }
        })
        .collect();
    if let Some(last) = parts.last_mut() {
        last.push_str(&page.copies_bound());
    }
    wrapped("Calls", &parts, out)
}

/// How many marks there are, and the first of them.
fn marks(page: &Page<'_>, out: &mut impl Write) -> io::Result<()> {
    /// Marks that are named.
    const NAMED: usize = 3;
    let report = page.report;
    let named = report.marks.iter().take(NAMED);
    let mut parts: Vec<String> = named
        .map(|mark| format!("{} at {}", clean(&elided(&mark.text, 40)), mark.at.exact()))
        .collect();
    let more = report.mark_count.saturating_sub(parts.len() as u64);
    if more > 0 {
        parts.push(format!("and {} more", grouped(more)));
    }
    wrapped("Marks", &parts, out)
}

/// Parts in as few lines of a terminal's width as they need.
fn wrapped(title: &str, parts: &[String], out: &mut impl Write) -> io::Result<()> {
    const COLUMNS: usize = 80;
    let mut lines: Vec<String> = Vec::new();
    for part in parts {
        let letters = |line: &String| line.chars().count();
        match lines.last_mut() {
            Some(line) if letters(line) + letters(part) + 13 <= COLUMNS => {
                line.push_str("; ");
                line.push_str(part);
            }
            _ => lines.push(part.clone()),
        }
    }
    let mut title = title;
    for line in lines {
        writeln!(out, "{title:<11}{line}")?;
        title = "";
    }
    Ok(())
}

fn doubts(page: &Page<'_>, out: &mut impl Write) -> io::Result<()> {
    let report = page.report;
    let show = |title: &str, text: String| {
        let text = clean(&text);
        let text = if text == "none" { text } else { page.style.warning(&text) };
        format!("{title:<11}{text}")
    };
    writeln!(out, "{}", show("Failed", failures(page)))?;
    writeln!(out, "{}", show("Losses", losses(report)))?;
    let memory = report.coverage.passed_names.iter().filter(|passed| passed.memory).count();
    let odd = [
        (report.unknown_frees.count, "free", "frees", "of what was not live"),
        (report.overlaps.count, "allocation", "allocations", "where something was live"),
        (report.stale.count, "live block", "live blocks", "of which a later one takes a part"),
        (memory as u64, "memory function", "memory functions", "looked up without a hook"),
        (report.in_flight.len() as u64, "call", "calls", "that had not returned"),
    ];
    let words: Vec<String> = odd
        .iter()
        .filter(|(count, ..)| *count > 0)
        .map(|(count, one, many, what)| format!("{} {what}", counted(*count, one, many)))
        .collect();
    if !words.is_empty() {
        writeln!(out, "{}", show("Doubts", words.join("; ")))?;
    }
    if !report.trace.calibrated {
        writeln!(out, "           the clock could not be calibrated: times are in ticks")?;
    }
    let peak = page.height(Of::Sum(Sum::Gpu)).map(|height| page.style.exact(height.peak));
    let used = report.sampled.iter().map(|entry| entry.sampled.max_process).max().flatten();
    if let Some((peak, used)) = peak.zip(used) {
        let used = page.style.size(used);
        writeln!(out, "NVML       this process used {used} at most; the ledgers' peak is {peak}")?;
    }
    Ok(())
}
