//! What the process said about itself, what others read, and what was seen and not seen.

use std::io::{self, Write};

use super::page::{Page, gpu_name, list};
use crate::live::MARKS;
use crate::render::table::Align::{Left, Right};
use crate::render::table::{Table, clean, counted, grouped};

/// Readings of device memory.
pub fn sampled(page: &Page<'_>, out: &mut impl Write) -> io::Result<()> {
    let report = page.report;
    if report.sampled.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nDevice memory as NVML read it")?;
    let mut table = Table::new([
        ("", Left),
        ("readings", Right),
        ("used at last", Right),
        ("used at most", Right),
        ("of", Right),
        ("this process at most", Right),
    ]);
    for entry in &report.sampled {
        let sampled = &entry.sampled;
        table.row([
            gpu_name(entry.gpu),
            grouped(sampled.count),
            sampled.last_used.to_string(),
            sampled.max_used.to_string(),
            sampled.total.to_string(),
            sampled.max_process.map_or_else(|| "unknown".to_owned(), |bytes| bytes.to_string()),
        ]);
    }
    table.write(out)
}

/// Marks and ranges.
pub fn phases(page: &Page<'_>, out: &mut impl Write) -> io::Result<()> {
    let report = page.report;
    if report.mark_count > 0 {
        writeln!(out, "\nMarks: {}", grouped(report.mark_count))?;
        let mut table = Table::new([("at", Right), ("", Left)]);
        for mark in report.marks.iter().take(page.style.top) {
            table.row([mark.at.exact(), mark.text.clone()]);
        }
        table.write(out)?;
        page.more(report.marks.len(), out)?;
        if report.mark_count > report.marks.len() as u64 {
            writeln!(out, "  only the first {} marks are kept", grouped(MARKS as u64))?;
        }
    }
    if !report.ranges.is_empty() {
        writeln!(out, "\nRanges")?;
        let heads = [("", Left), ("count", Right), ("time", Right), ("open", Right)];
        let mut table = Table::new(heads);
        for range in report.ranges.iter().take(page.style.top) {
            let [count, open] = [range.count, range.open].map(grouped);
            table.row([range.name.clone(), count, range.total.to_string(), open]);
        }
        table.write(out)?;
        page.more(report.ranges.len(), out)?;
    }
    if report.uncounted_ranges > 0 {
        writeln!(out, "  {} past the cap", counted(report.uncounted_ranges, "range", "ranges"))?;
    }
    Ok(())
}

/// What was seen and what was not.
pub fn coverage(page: &Page<'_>, out: &mut impl Write) -> io::Result<()> {
    let report = page.report;
    let coverage = &report.coverage;
    writeln!(out, "\nCoverage")?;
    writeln!(
        out,
        "  lookups: {} hooked, {} passed through, {} with RTLD_NEXT",
        grouped(coverage.hooked),
        grouped(coverage.passed),
        grouped(coverage.next),
    )?;
    let memory = coverage.passed_names.iter().filter(|passed| passed.memory);
    let names: Vec<String> = memory.map(|passed| clean(&passed.name)).collect();
    if !names.is_empty() {
        let shown: Vec<String> = names.iter().take(page.style.top).cloned().collect();
        list("memory functions that were looked up and are not hooked", &shown, out)?;
        page.more(names.len(), out)?;
    }
    if report.null_calls > 0 {
        let count = grouped(report.null_calls);
        writeln!(out, "  calls with a null pointer, counted in no ledger: {count}")?;
    }
    for loss in coverage.losses.iter().chain(&coverage.notes) {
        writeln!(out, "  {} {}: {}", grouped(loss.count), loss.cause, loss.meaning.trim())?;
    }
    if coverage.lost_definitions > 0 {
        writeln!(
            out,
            "  {} unreadable",
            counted(coverage.lost_definitions, "definition", "definitions")
        )?;
    }
    for line in coverage.salvage.iter().take(page.style.top) {
        writeln!(out, "  damaged: {line}")?;
    }
    page.more(coverage.salvage.len(), out)?;
    for remark in &coverage.remarks {
        writeln!(out, "  the recorder says: {}", clean(remark))?;
    }
    Ok(())
}
