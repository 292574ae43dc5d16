//! The report as text, for a person at three in the morning: what matters first, in a line each,
//! then tables. Nothing is shown that was not counted; what may be inexact says so beside it.

use std::io::{self, Write};
use std::path::Path;

use super::table::Align::{Left, Right};
use super::table::{Table, clean, grouped};
use crate::analysis::held::SiteName;
use crate::input::WriterState;
use crate::live::{MARKS, NOT_COUNTED, Sum};
use crate::report::{
    HeldReport, LedgerReport, MovedReport, OddReport, Report, Scope, ScopeReport, layer_name,
};
use crate::units::{Bytes, Gpu, Nanos};

/// Rows shown of a long table.
const ROWS: usize = 15;

/// Writes the report.
///
/// # Errors
/// As `out` says.
pub fn write(report: &Report, out: &mut impl Write) -> io::Result<()> {
    head(report, out)?;
    facts(report, out)?;
    in_flight(report, out)?;
    ledgers(report, out)?;
    by_gpu(report, out)?;
    held(live_title(report), "nothing is live", &report.total.live_at_end, true, out)?;
    let peak = report.total.sum(Sum::Gpu).map(|sum| sum.at_peak.held.as_slice());
    held("The peak of GPU memory was made of", "", peak.unwrap_or_default(), false, out)?;
    traffic(report, out)?;
    calls(report, out)?;
    sampled(report, out)?;
    odd("Frees of what was not live", &report.unknown_frees, out)?;
    odd("Allocations where something was live", &report.overlaps, out)?;
    phases(report, out)?;
    coverage(report, out)
}

fn exact(bytes: Bytes) -> String {
    if bytes.0 < 1024 { format!("{bytes}") } else { format!("{bytes} ({} B)", grouped(bytes.0)) }
}

fn at(time: Option<Nanos>) -> String {
    time.map_or_else(|| "-".to_owned(), |time| time.to_string())
}

fn gpu_name(gpu: Option<Gpu>) -> String {
    gpu.map_or_else(|| "unknown".to_owned(), |gpu| format!("GPU {}", gpu.0))
}

fn scope_name(scope: Scope) -> String {
    match scope {
        Scope::All => "all".to_owned(),
        Scope::On(gpu) => gpu_name(gpu),
    }
}

fn head(report: &Report, out: &mut impl Write) -> io::Result<()> {
    let (trace, process) = (&report.trace, &report.process);
    let header = &process.header;
    writeln!(out, "gmmtrace report of {}", clean(&trace.path))?;
    let command = if header.command_line.is_empty() {
        header.executable.clone().unwrap_or_else(|| "unknown command".to_owned())
    } else {
        header.command_line.join(" ")
    };
    let host = header.host.as_deref().unwrap_or("an unknown host");
    writeln!(out, "{}", clean(&command))?;
    let threads = if process.threads == 1 { "thread" } else { "threads" };
    writeln!(
        out,
        "pid {} on {}, {} {threads} with GPU calls, {} events",
        header.pid,
        clean(host),
        process.threads,
        grouped(trace.events),
    )?;
    for (gpu, facts) in &process.gpus {
        writeln!(out, "GPU {}: {}, {}", gpu.0, clean(&facts.name), facts.total)?;
    }
    writeln!(out)
}

/// The lines that answer before the tables do.
fn facts(report: &Report, out: &mut impl Write) -> io::Result<()> {
    let bound = if report.bound { "  (bound: events are missing, see Losses)" } else { "" };
    let adds: Vec<&str> = Sum::Gpu.ledgers().map(|ledger| ledger.name()).collect();
    if let Some(gpu) = report.total.sum(Sum::Gpu) {
        let when = gpu.peak_at.map(|at| format!(" at {at}")).unwrap_or_default();
        writeln!(out, "Peak GPU memory   {}{when}{bound}", exact(gpu.peak))?;
        writeln!(out, "{:<18}{}{bound}", live_title(report), exact(gpu.live))?;
    }
    writeln!(out, "                  both are {}", adds.join(" + "))?;
    writeln!(out, "Failed calls      {}", failures(report))?;
    writeln!(out, "Losses            {}", losses(report))?;
    writeln!(out, "Process           {}", ending(report))?;
    if report.trace.events == 0 {
        writeln!(out, "                  the log holds no event")?;
    }
    if !report.trace.calibrated {
        writeln!(out, "                  the clock could not be calibrated: times are in ticks")?;
    }
    Ok(())
}

fn live_title(report: &Report) -> &'static str {
    if report.trace.state == WriterState::Running { "Live so far" } else { "Live at end" }
}

fn failures(report: &Report) -> String {
    let used = report.total.ledgers.iter().filter(|ledger| ledger.tally.failed > 0);
    let named = used.map(|used| (used.ledger.name(), used.tally.failed));
    let others = [("copies", report.failed_copies), ("sets", report.failed_sets)];
    let all = named.chain(others).filter(|&(_, count)| count > 0);
    let words: Vec<String> =
        all.map(|(name, count)| format!("{} of {name}", grouped(count))).collect();
    if words.is_empty() { "none".to_owned() } else { words.join(", ") }
}

fn losses(report: &Report) -> String {
    let coverage = &report.coverage;
    let mut words: Vec<String> = coverage
        .losses
        .iter()
        .map(|loss| format!("{} {}", grouped(loss.count), loss.cause.replace('_', " ")))
        .collect();
    if !coverage.salvage.is_empty() {
        words.push(format!("the log is damaged in {} places", coverage.salvage.len()));
    }
    if coverage.unknown_kinds > 0 {
        words.push(format!("{} events of unknown kinds", grouped(coverage.unknown_kinds)));
    }
    if words.is_empty() { "none".to_owned() } else { words.join(", ") }
}

fn ending(report: &Report) -> String {
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

fn ledgers(report: &Report, out: &mut impl Write) -> io::Result<()> {
    let used: Vec<&LedgerReport> =
        report.total.ledgers.iter().filter(|ledger| ledger.tally.is_used()).collect();
    writeln!(out, "\nLedgers{}", if report.bound { " (live and peak are bounds)" } else { "" })?;
    if used.is_empty() {
        return writeln!(out, "  no call that takes or gives memory was seen");
    }
    let mut table = Table::new([
        ("", Left),
        ("allocs", Right),
        ("frees", Right),
        ("implicit", Right),
        ("failed", Right),
        ("allocated", Right),
        ("live", Right),
        ("live bytes", Right),
        ("peak", Right),
        ("peak at", Right),
    ]);
    for ledger in &used {
        let tally = &ledger.tally;
        table.row([
            ledger.ledger.name().to_owned(),
            grouped(tally.allocs),
            grouped(tally.frees),
            grouped(tally.implicit_frees),
            grouped(tally.failed),
            Bytes(tally.alloc_bytes).to_string(),
            grouped(tally.live_count),
            grouped(tally.live_bytes),
            Bytes(tally.peak_bytes).to_string(),
            at(ledger.peak_at),
        ]);
    }
    table.write(out)?;
    writeln!(out, "  not counted by this version: {}", NOT_COUNTED.join(", "))
}

fn by_gpu(report: &Report, out: &mut impl Write) -> io::Result<()> {
    let on_gpu = |scope: &&ScopeReport| matches!(scope.scope, Scope::On(Some(_)));
    let several = report.by_gpu.iter().filter(on_gpu).count() > 1
        || report.by_gpu.iter().filter(on_gpu).any(|scope| scope.scope != Scope::On(Some(Gpu(0))));
    if !several {
        return Ok(());
    }
    writeln!(out, "\nBy device")?;
    let mut table = Table::new([
        ("", Left),
        ("", Left),
        ("allocs", Right),
        ("live", Right),
        ("live bytes", Right),
        ("peak", Right),
        ("peak at", Right),
    ]);
    for scope in &report.by_gpu {
        let used = scope.ledgers.iter().filter(|ledger| ledger.tally.allocs > 0);
        for ledger in used.filter(|ledger| ledger.ledger.sum() != Some(Sum::Host)) {
            table.row([
                scope_name(scope.scope),
                ledger.ledger.name().to_owned(),
                grouped(ledger.tally.allocs),
                grouped(ledger.tally.live_count),
                grouped(ledger.tally.live_bytes),
                Bytes(ledger.tally.peak_bytes).to_string(),
                at(ledger.peak_at),
            ]);
        }
    }
    table.write(out)
}

/// A call as a person names it: the runtime call, and what it made of the driver.
fn call(site: &SiteName) -> String {
    let api = site.api.as_deref().unwrap_or("unknown call");
    site.call.as_ref().map_or_else(|| api.to_owned(), |call| format!("{call} > {api}"))
}

fn library(site: &SiteName) -> String {
    let Some(path) = &site.library else { return "unknown library".to_owned() };
    let name = Path::new(path).file_name();
    name.map_or_else(|| path.clone(), |name| name.to_string_lossy().into_owned())
}

fn more(all: usize, out: &mut impl Write) -> io::Result<()> {
    if all > ROWS {
        writeln!(out, "  and {} more; --format json has them all", grouped((all - ROWS) as u64))?;
    }
    Ok(())
}

fn held(
    title: &str,
    nothing: &str,
    held: &[HeldReport],
    oldest: bool,
    out: &mut impl Write,
) -> io::Result<()> {
    if held.is_empty() {
        return if nothing.is_empty() { Ok(()) } else { writeln!(out, "\n{title}\n  {nothing}") };
    }
    writeln!(out, "\n{title}")?;
    let last = if oldest { "oldest at" } else { "" };
    let mut table = Table::new([
        ("", Right),
        ("bytes", Right),
        ("blocks", Right),
        ("ledger", Left),
        ("call", Left),
        ("library", Left),
        (last, Right),
    ]);
    for entry in held.iter().take(ROWS) {
        table.row([
            entry.bytes.to_string(),
            grouped(entry.bytes.0),
            grouped(entry.count),
            entry.ledger.name().to_owned(),
            call(&entry.site),
            library(&entry.site),
            if oldest { at(entry.oldest) } else { String::new() },
        ]);
    }
    table.write(out)?;
    more(held.len(), out)
}

fn traffic(report: &Report, out: &mut impl Write) -> io::Result<()> {
    let sets = report.total.sets.moved;
    let copies = &report.total.copies;
    if copies.is_empty() && sets.count == 0 {
        return Ok(());
    }
    writeln!(out, "\nCopies and sets")?;
    let mut table = Table::new([
        ("", Left),
        ("", Left),
        ("host side", Left),
        ("count", Right),
        ("", Right),
        ("bytes", Right),
    ]);
    for (key, MovedReport { moved, .. }) in copies {
        table.row([
            key.direction.name().replace('_', " "),
            if key.asynchronous { "async" } else { "sync" }.to_owned(),
            key.host.map(|host| host.name()).unwrap_or_default().to_owned(),
            grouped(moved.count),
            Bytes(moved.bytes).to_string(),
            grouped(moved.bytes),
        ]);
    }
    if sets.count > 0 {
        let [words, empty, none] = ["set", "", ""].map(str::to_owned);
        let bytes = Bytes(sets.bytes).to_string();
        table.row([words, empty, none, grouped(sets.count), bytes, grouped(sets.bytes)]);
    }
    table.write(out)
}

fn calls(report: &Report, out: &mut impl Write) -> io::Result<()> {
    if report.calls.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nCalls")?;
    let mut table = Table::new([
        ("", Left),
        ("layer", Left),
        ("calls", Right),
        ("failed", Right),
        ("time", Right),
        ("longest", Right),
    ]);
    for call in report.calls.iter().take(ROWS) {
        table.row([
            call.api.clone().unwrap_or_else(|| "unknown".to_owned()),
            call.layer.map(layer_name).unwrap_or_default().to_owned(),
            grouped(call.calls),
            grouped(call.failed),
            call.total.to_string(),
            call.max.to_string(),
        ]);
    }
    table.write(out)?;
    more(report.calls.len(), out)
}

fn in_flight(report: &Report, out: &mut impl Write) -> io::Result<()> {
    if report.in_flight.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nCalls that had not returned")?;
    let mut table = Table::new([
        ("", Left),
        ("layer", Left),
        ("thread", Right),
        ("since", Right),
        ("argument", Right),
    ]);
    for call in &report.in_flight {
        table.row([
            call.api.clone().unwrap_or_else(|| "unknown".to_owned()),
            call.layer.map(layer_name).unwrap_or_default().to_owned(),
            call.thread.map_or_else(|| "unknown".to_owned(), |thread| thread.to_string()),
            call.since.to_string(),
            format!("{:#x}", call.argument),
        ]);
    }
    table.write(out)
}

fn sampled(report: &Report, out: &mut impl Write) -> io::Result<()> {
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

fn odd(title: &str, odd: &OddReport, out: &mut impl Write) -> io::Result<()> {
    if odd.count == 0 {
        return Ok(());
    }
    writeln!(out, "\n{title}: {}", grouped(odd.count))?;
    let mut table = Table::new([
        ("address", Right),
        ("ledger", Left),
        ("call", Left),
        ("library", Left),
        ("at", Right),
    ]);
    for example in &odd.examples {
        table.row([
            format!("{:#x}", example.place),
            example.ledger.name().to_owned(),
            call(&example.site),
            library(&example.site),
            example.at.to_string(),
        ]);
    }
    table.write(out)?;
    let shown = odd.examples.len() as u64;
    if odd.count > shown {
        writeln!(out, "  the first {shown} are shown")?;
    }
    Ok(())
}

fn phases(report: &Report, out: &mut impl Write) -> io::Result<()> {
    if report.mark_count > 0 {
        writeln!(out, "\nMarks: {}", grouped(report.mark_count))?;
        let mut table = Table::new([("at", Right), ("", Left)]);
        for mark in report.marks.iter().take(ROWS) {
            table.row([mark.at.to_string(), mark.text.clone()]);
        }
        table.write(out)?;
        more(report.marks.len(), out)?;
        if report.mark_count > report.marks.len() as u64 {
            writeln!(out, "  only the first {} marks are kept", grouped(MARKS as u64))?;
        }
    }
    if !report.ranges.is_empty() {
        writeln!(out, "\nRanges")?;
        let heads = [("", Left), ("count", Right), ("time", Right), ("open", Right)];
        let mut table = Table::new(heads);
        for range in report.ranges.iter().take(ROWS) {
            let [count, open] = [range.count, range.open].map(grouped);
            table.row([range.name.clone(), count, range.total.to_string(), open]);
        }
        table.write(out)?;
        more(report.ranges.len(), out)?;
    }
    if report.uncounted_ranges > 0 {
        writeln!(out, "  {} ranges past the cap", grouped(report.uncounted_ranges))?;
    }
    Ok(())
}

fn coverage(report: &Report, out: &mut impl Write) -> io::Result<()> {
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
        let shown = names.iter().take(ROWS).cloned().collect::<Vec<_>>().join(", ");
        writeln!(out, "  memory functions that were looked up and are not hooked: {shown}")?;
        more(names.len(), out)?;
    }
    if report.null_calls > 0 {
        let count = grouped(report.null_calls);
        writeln!(out, "  calls with a null pointer, counted in no ledger: {count}")?;
    }
    for loss in coverage.losses.iter().chain(&coverage.notes) {
        writeln!(out, "  {} {}: {}", grouped(loss.count), loss.cause, loss.meaning.trim())?;
    }
    if coverage.lost_definitions > 0 {
        writeln!(out, "  {} definitions unreadable", grouped(coverage.lost_definitions))?;
    }
    for line in coverage.salvage.iter().take(ROWS) {
        writeln!(out, "  damaged: {line}")?;
    }
    more(coverage.salvage.len(), out)?;
    for remark in &coverage.remarks {
        writeln!(out, "  the recorder says: {}", clean(remark))?;
    }
    Ok(())
}
