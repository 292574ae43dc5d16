//! Graphs: what their nodes ask for, what was captured, and what the driver told.

use std::io::{self, Write};

use super::page::Page;
use crate::live::GraphCounts;
use crate::render::table::{counted, grouped};
use crate::report::GraphsReport;
use crate::units::Bytes;

/// The section, when there was a graph.
pub fn graphs(page: &Page<'_>, out: &mut impl Write) -> io::Result<()> {
    let report = &page.report.graphs;
    if report.counts == GraphCounts::default() && report.told.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nGraphs")?;
    let counts = report.counts;
    let size = |bytes| page.style.size(Bytes(bytes));
    writeln!(
        out,
        "  {} launches; {} allocation nodes of {}, {} free nodes; executables at the end ask for {}",
        grouped(counts.launches),
        grouped(counts.alloc_nodes),
        size(counts.alloc_node_bytes),
        grouped(counts.free_nodes),
        page.style.size(report.executable_bytes),
    )?;
    let captured = counts.copies.count + counts.sets.count + counts.others;
    if captured > 0 {
        writeln!(
            out,
            "  captured, and done at launches: {} copies of {}, {} sets of {}, {} other calls",
            grouped(counts.copies.count),
            size(counts.copies.bytes),
            grouped(counts.sets.count),
            size(counts.sets.bytes),
            grouped(counts.others),
        )?;
    }
    doubts(&counts, out)?;
    told(page, report, out)
}

fn doubts(counts: &GraphCounts, out: &mut impl Write) -> io::Result<()> {
    let doubts = [
        (counts.failed_launches, ["launch failed", "launches failed"]),
        (
            counts.unknown_launches,
            [
                "launch of an executable whose making was not seen",
                "launches of executables whose making was not seen",
            ],
        ),
        (counts.uncounted_nodes, ["node was not counted", "nodes were not counted"]),
    ];
    for (count, [one, many]) in doubts.iter().filter(|(count, _)| *count > 0) {
        writeln!(out, "  {}", counted(*count, one, many))?;
    }
    Ok(())
}

fn told(page: &Page<'_>, report: &GraphsReport, out: &mut impl Write) -> io::Result<()> {
    for (gpu, told) in &report.told {
        let figures = [("used", told.used), ("reserved", told.reserved)];
        let words: Vec<String> = figures
            .iter()
            .filter_map(|(name, bytes)| bytes.map(|b| format!("{name} {}", page.style.size(b))))
            .collect();
        let gpu = gpu.map_or_else(|| "unknown".to_owned(), |gpu| gpu.0.to_string());
        if !words.is_empty() {
            writeln!(out, "  the driver told of GPU {gpu}: {}", words.join(", "))?;
        }
    }
    Ok(())
}
