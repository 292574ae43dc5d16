//! What NVML shows for the process, and objects without bytes of their own.

use super::table::{Cell, Table, note, section, sub};
use crate::live::{Made, ObjectCounts};
use crate::render::picture::site_words;
use crate::report::{GapReport, Report};
use crate::units::Bytes;

/// The sections, in HTML.
pub fn sections(report: &Report) -> String {
    let mut out = String::new();
    if let Some(gap) = &report.gap.max {
        reading(gap, &mut out);
        steps(report, &mut out);
    }
    objects(report, &mut out);
    out
}

fn names(made: impl Iterator<Item = Made>) -> String {
    made.map(|made| made.name().replace('_', " ")).collect::<Vec<String>>().join(", ")
}

fn reading(gap: &GapReport, out: &mut String) {
    let about = format!("{} at {}: the most of all readings.", gap.process, gap.at);
    section(out, "gap", "What NVML showed for this process", &about);
    let explained = &gap.explained;
    let graph = if explained.graph_told { "graphs, as the driver told" } else { "graphs in use" };
    let mut rows: Vec<(String, Bytes)> = [
        ("2 MiB blocks of the ledger device", explained.device_blocks),
        ("stream-ordered memory", explained.pools()),
        ("physical memory of virtual memory management", explained.vmm_physical),
        ("arrays (estimated)", explained.array),
        (graph, explained.graph),
    ]
    .into_iter()
    .filter(|(_, bytes)| bytes.0 > 0)
    .map(|(what, bytes)| (what.to_owned(), bytes))
    .collect();
    for (of, bytes) in &gap.objects {
        rows.push((format!("{} (estimated)", names(of.iter().copied())), *bytes));
    }
    let more = gap.unexplained < 0;
    let rest = if more { "explained, and not shown" } else { "unexplained" };
    rows.push((rest.to_owned(), Bytes(gap.unexplained.unsigned_abs())));
    let head = ["what", "#bytes", "#exactly"];
    let row = |(what, bytes): &(String, Bytes)| {
        vec![Cell::words(what), Cell::bytes(*bytes), Cell::exact(*bytes)]
    };
    Table::of(&head, &rows, row).write(out);
}

fn steps(report: &Report, out: &mut String) {
    if report.gap.steps.is_empty() {
        return;
    }
    sub(out, "Changes between readings that no ledger explains");
    note(out, "Estimates: what was made between two readings need not have taken it.");
    let head = ["#from", "#to", "change", "#bytes", "made between", "destroyed between"];
    let table = Table::of(&head, &report.gap.steps, |step| {
        vec![
            Cell::known(step.since, Cell::time),
            Cell::time(step.at),
            Cell::words(if step.unexplained < 0 { "fall" } else { "rise" }),
            Cell::bytes(Bytes(step.unexplained.unsigned_abs())),
            Cell::words(&names(step.made.iter().map(|(made, _)| *made))),
            Cell::words(&names(step.destroyed.iter().map(|(made, _)| *made))),
        ]
    });
    table.write(out);
}

fn objects(report: &Report, out: &mut String) {
    let used =
        |counts: &ObjectCounts| counts.created + counts.failed + counts.unknown + counts.live > 0;
    let all: Vec<_> = report.handles.classes.iter().filter(|(_, counts)| used(counts)).collect();
    if all.is_empty() {
        return;
    }
    section(out, "objects", "Objects", "They may own device memory that no call tells.");
    let head =
        ["class", "#created", "#destroyed", "#implicit", "#failed", "#unknown", "#live", "#most"];
    let table = Table::of(&head, &all, |(class, counts)| {
        vec![
            Cell::words(&class.name().replace('_', " ")),
            Cell::count(counts.created),
            Cell::count(counts.destroyed),
            Cell::count(counts.implicit),
            Cell::count(counts.failed),
            Cell::count(counts.unknown),
            Cell::count(counts.live),
            Cell::count(counts.peak),
        ]
    });
    table.write(out);
    if report.handles.live.is_empty() {
        return;
    }
    sub(out, "Those that are left were made by");
    let head = ["class", "#objects", "call and library", "#oldest at"];
    let table = Table::of(&head, &report.handles.live, |made| {
        vec![
            Cell::words(&made.class.name().replace('_', " ")),
            Cell::count(made.count),
            Cell::words(&site_words(&made.site)),
            Cell::time(made.oldest),
        ]
    });
    table.write(out);
}
