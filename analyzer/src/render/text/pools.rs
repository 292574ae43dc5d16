//! Pools of stream-ordered memory, and where managed memory was asked to be.

use std::io::{self, Write};

use super::page::{Page, at};
use crate::live::Asked;
use crate::render::table::Align::{Left, Right};
use crate::render::table::{Table, grouped};
use crate::report::PoolReport;
use crate::units::Bytes;

/// A figure that only the driver can tell.
fn told(bytes: Option<Bytes>) -> String {
    bytes.map_or_else(|| "not told".to_owned(), |bytes| bytes.to_string())
}

/// Every pool that was met.
pub fn pools(page: &Page<'_>, out: &mut impl Write) -> io::Result<()> {
    let report = &page.report.pools;
    if report.pools.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nPools of stream-ordered memory{}", page.bound())?;
    let mut table = Table::new([
        ("", Left),
        ("GPU", Right),
        ("allocs", Right),
        ("live", Right),
        ("live bytes", Right),
        ("peak", Right),
        ("reserves", Right),
        ("told at", Right),
        ("keeps", Right),
        ("", Left),
    ]);
    for pool in &report.pools {
        table.row([
            pool.label.clone(),
            pool.gpu.map_or_else(|| "?".to_owned(), |gpu| gpu.0.to_string()),
            grouped(pool.allocs),
            grouped(pool.live_count),
            grouped(pool.live.0),
            pool.peak.to_string(),
            told(pool.reserved),
            at(pool.told_at),
            pool.threshold.map(keeps).unwrap_or_default(),
            ending(pool),
        ]);
    }
    table.write(out)?;
    match report.reserved {
        Some(reserved) => writeln!(out, "  together they reserve {reserved}, as last told"),
        None => writeln!(out, "  of no pool that is left the process asked what it reserves"),
    }
}

/// A threshold of all ones is a pool that gives nothing back.
fn keeps(threshold: Bytes) -> String {
    if threshold.0 == u64::MAX { "all".to_owned() } else { threshold.to_string() }
}

fn ending(pool: &PoolReport) -> String {
    match (pool.destroyed_at, pool.live_count) {
        (None, _) => String::new(),
        (Some(at), 0) => format!("destroyed at {at}"),
        (Some(at), _) => format!("destroyed at {at}, still in use"),
    }
}

/// Prefetches and advice.
pub fn managed(page: &Page<'_>, out: &mut impl Write) -> io::Result<()> {
    let report = &page.report.residency;
    let failed = report.failed_prefetches + report.failed_advice;
    if report.prefetches.is_empty() && report.advice.is_empty() && failed == 0 {
        return Ok(());
    }
    writeln!(out, "\nManaged memory: what it was asked")?;
    let mut table = Table::new([("", Left), ("", Left), ("count", Right), ("bytes", Right)]);
    let row = |what: &str, place: &str, asked: &Asked| {
        let bytes = Bytes(asked.bytes).to_string();
        [what.replace('_', " "), place.to_owned(), grouped(asked.count), bytes]
    };
    for (place, asked) in &report.prefetches {
        table.row(row("prefetch to", place, asked));
    }
    for (advice, place, asked) in &report.advice {
        table.row(row(advice, place, asked));
    }
    table.write(out)?;
    if failed > 0 {
        writeln!(out, "  failed: {}", grouped(failed))?;
    }
    Ok(())
}
