//! The report as text, for a person at three in the morning: what matters first, in a line each,
//! then tables. Nothing is shown that was not counted; what may be inexact says so beside it.

mod calls;
mod coverage;
mod fragmentation;
mod gap;
mod graphs;
mod held;
mod ledgers;
pub mod page;
mod pools;
mod question;
mod summary;
mod timeline;
mod torch;
mod traffic;

use std::io::{self, Write};

use crate::live::Sum;
use crate::render::table::{clean, grouped};
use crate::report::Report;
use page::{Of, Page, command, ending, exact, failures, losses};

pub use question::{Question, answer};

/// Writes the report.
///
/// # Errors
/// As `out` says.
pub fn write(report: &Report, out: &mut impl Write) -> io::Result<()> {
    let page = &Page::whole(report);
    head(page, out)?;
    facts(page, out)?;
    calls::in_flight(page, out)?;
    ledgers::ledgers(page, out)?;
    ledgers::by_gpu(page, out)?;
    torch::allocator(page, out)?;
    pools::pools(page, out)?;
    pools::managed(page, out)?;
    held::by_site(page, page.live_title(), "nothing is live", &report.total.live_at_end, out)?;
    if let Some(gpu) = page.height(Of::Sum(Sum::Gpu)) {
        let title = "The peak of GPU memory was made of";
        held::by_site(page, title, "", &gpu.at_peak.held, out)?;
    }
    fragmentation::section(page, out)?;
    graphs::graphs(page, out)?;
    traffic::copies(page, out)?;
    traffic::stalls(page, out)?;
    calls::calls(page, out)?;
    coverage::sampled(page, out)?;
    gap::section(page, out)?;
    if report
        .handles
        .classes
        .iter()
        .any(|(_, counts)| counts.created + counts.failed + counts.unknown > 0)
    {
        gap::objects(page, out)?;
    }
    calls::odd("Frees of what was not live", &report.unknown_frees, out)?;
    calls::odd("Allocations where something was live", &report.overlaps, out)?;
    calls::stale(page, out)?;
    coverage::phases(page, out)?;
    coverage::coverage(page, out)
}

fn head(page: &Page<'_>, out: &mut impl Write) -> io::Result<()> {
    let report = page.report;
    let (trace, process) = (&report.trace, &report.process);
    let header = &process.header;
    writeln!(out, "gmmtrace report of {}", clean(&trace.path))?;
    let host = header.host.as_deref().unwrap_or("an unknown host");
    writeln!(out, "{}", clean(&command(report)))?;
    let threads = if process.threads == 1 { "thread" } else { "threads" };
    writeln!(
        out,
        "pid {} on {}, {} {threads} with GPU calls, {} events",
        header.pid,
        clean(host),
        process.threads,
        grouped(trace.events),
    )?;
    let window = page.window();
    if !window.is_empty() {
        writeln!(out, "only what took effect{window}")?;
    }
    for (gpu, facts) in &process.gpus {
        writeln!(out, "GPU {}: {}, {}", gpu.0, clean(&facts.name), facts.total)?;
    }
    writeln!(out)
}

/// The lines that answer before the tables do.
fn facts(page: &Page<'_>, out: &mut impl Write) -> io::Result<()> {
    let report = page.report;
    let bound = if report.bound {
        format!("  (bound: {}, see Losses)", report.doubt.words())
    } else {
        String::new()
    };
    let adds: Vec<&str> = Sum::Gpu.ledgers().map(|ledger| ledger.name()).collect();
    if let Some(gpu) = page.height(Of::Sum(Sum::Gpu)) {
        let when = gpu.peak_at.map(|at| format!(" at {}", at.exact())).unwrap_or_default();
        writeln!(out, "Peak GPU memory   {}{when}{bound}", exact(gpu.peak))?;
        writeln!(out, "{:<18}{}{bound}", page.live_title(), exact(gpu.live))?;
    }
    writeln!(out, "                  both are {}", adds.join(" + "))?;
    writeln!(out, "Failed calls      {}", failures(page))?;
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
