//! What NVML shows for the process, and what explains it.

use std::io::{self, Write};

use super::page::{Page, at, call, caller};
use crate::live::Made;
use crate::render::table::Align::{Left, Right};
use crate::render::table::{Table, grouped};
use crate::render::words::{limit, of_class};
use crate::report::{GapReport, StepReport};
use crate::units::Bytes;

/// The section of the report: the greatest reading.
pub fn section(page: &Page<'_>, out: &mut impl Write) -> io::Result<()> {
    match &page.report.gap.max {
        Some(gap) => reading(page, "What NVML showed for this process at most", gap, out),
        None => Ok(()),
    }
}

/// The answer to the question.
pub fn whole(page: &Page<'_>, out: &mut impl Write) -> io::Result<()> {
    let report = &page.report.gap;
    let Some((max, last)) = report.max.as_ref().zip(report.last.as_ref()) else {
        writeln!(
            out,
            "\nNVML showed nothing for this process: no reading, or its pids are not ours"
        )?;
        return objects(page, out);
    };
    reading(page, "At most", max, out)?;
    if last.at != max.at {
        reading(page, "In the last reading", last, out)?;
    }
    steps(page, &report.steps, report.step_count, out)?;
    objects(page, out)
}

fn reading(page: &Page<'_>, title: &str, gap: &GapReport, out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "\n{title}: {} at {}{}",
        page.style.size(gap.process),
        gap.at.exact(),
        page.bound()
    )?;
    let explained = &gap.explained;
    let graph = if explained.graph_told { "graphs, as the driver told" } else { "graphs in use" };
    let pool = match explained.async_reserved {
        Some(_) => (explained.pools(), "stream-ordered pools, reserved"),
        None if explained.async_kept > explained.async_pool => {
            (explained.async_kept, "stream-ordered pools, at least (by use and release threshold)")
        }
        None => {
            (explained.async_pool, "stream-ordered memory in use (what pools reserve: unknown)")
        }
    };
    let mut rows: Vec<(String, String)> = [
        (explained.device_blocks, "2 MiB blocks of the ledger device"),
        pool,
        (explained.vmm_physical, "physical memory of virtual memory management"),
        (explained.array, "arrays (estimated: sizes of their descriptors)"),
        (explained.graph, graph),
    ]
    .iter()
    .filter(|(bytes, _)| bytes.0 > 0)
    .map(|(bytes, what)| (page.style.size(*bytes), (*what).to_owned()))
    .collect();
    for (of, bytes) in &gap.objects {
        let what = format!("{} (estimated: it rose when they were made)", names(of));
        rows.push((page.style.size(*bytes), what));
    }
    rows.push((signed(page, gap.unexplained), "unexplained".to_owned()));
    let width = rows.iter().map(|(size, _)| size.chars().count()).max().unwrap_or(0);
    rows.iter().try_for_each(|(size, what)| writeln!(out, "  {size:>width$}  {what}"))
}

fn names(made: &[Made]) -> String {
    let names: Vec<String> = made.iter().map(|made| made.name().replace('_', " ")).collect();
    names.join(", ")
}

fn signed(page: &Page<'_>, bytes: i64) -> String {
    let size = page.style.size(Bytes(bytes.unsigned_abs()));
    if bytes < 0 { format!("-{size}") } else { size }
}

fn steps(
    page: &Page<'_>,
    steps: &[StepReport],
    count: u64,
    out: &mut impl Write,
) -> io::Result<()> {
    if steps.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nDevice memory changed, without a ledger, between readings (estimates)")?;
    let mut table = Table::new([
        ("", Right),
        ("from", Right),
        ("to", Right),
        ("made between", Left),
        ("destroyed between", Left),
    ]);
    for step in steps.iter().take(page.style.top) {
        table.row([
            signed(page, step.unexplained),
            at(step.since),
            step.at.exact(),
            counted(&step.made),
            counted(&step.destroyed),
        ]);
    }
    table.write(out)?;
    page.more(usize::try_from(count).unwrap_or(usize::MAX), out)
}

fn counted(made: &[(Made, u64)]) -> String {
    let words = made.iter().map(|(made, count)| of_class(*count, made.name()));
    words.collect::<Vec<String>>().join(", ")
}

/// Objects by class, and who made those that are left.
pub fn objects(page: &Page<'_>, out: &mut impl Write) -> io::Result<()> {
    let handles = &page.report.handles;
    let used = handles
        .classes
        .iter()
        .filter(|(_, counts)| counts.created + counts.failed + counts.unknown + counts.live > 0);
    let mut table = Table::new([
        ("", Left),
        ("created", Right),
        ("destroyed", Right),
        ("implicit", Right),
        ("failed", Right),
        ("unknown", Right),
        ("live", Right),
        ("at most", Right),
    ]);
    let contexts = handles.contexts;
    table.row([
        "contexts".to_owned(),
        grouped(contexts.created),
        grouped(contexts.destroyed),
        String::new(),
        String::new(),
        String::new(),
        grouped(contexts.live),
        String::new(),
    ]);
    for (class, counts) in used {
        table.row([
            class.name().replace('_', " "),
            grouped(counts.created),
            grouped(counts.destroyed),
            grouped(counts.implicit),
            grouped(counts.failed),
            grouped(counts.unknown),
            grouped(counts.live),
            grouped(counts.peak),
        ]);
    }
    writeln!(out, "\nObjects")?;
    table.write(out)?;
    for (number, value) in &handles.limits {
        writeln!(out, "  limit {} set to {}", limit_name(*number), grouped(value.0))?;
    }
    left(page, out)
}

fn limit_name(number: u64) -> String {
    match limit(number) {
        "" => number.to_string(),
        name => name.to_owned(),
    }
}

fn left(page: &Page<'_>, out: &mut impl Write) -> io::Result<()> {
    let live = &page.report.handles.live;
    if live.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nObjects that are left were made by")?;
    let mut table = Table::new([
        ("", Right),
        ("", Left),
        ("call", Left),
        ("library", Left),
        ("oldest at", Right),
    ]);
    for made in live.iter().take(page.style.top) {
        table.row([
            grouped(made.count),
            made.class.name().replace('_', " "),
            call(&made.site),
            caller(&made.site),
            made.oldest.exact(),
        ]);
    }
    table.write(out)?;
    page.more(live.len(), out)
}
