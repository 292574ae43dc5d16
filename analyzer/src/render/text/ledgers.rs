//! Ledgers, in total and by device.

use std::io::{self, Write};

use super::page::{Page, at, scope_name};
use crate::live::NOT_COUNTED;
use crate::render::table::Align::{Left, Right};
use crate::render::table::{Table, grouped};
use crate::report::{LedgerReport, Scope, ScopeReport};
use crate::units::{Bytes, Gpu};

/// Every ledger that was used.
pub fn ledgers(page: &Page<'_>, out: &mut impl Write) -> io::Result<()> {
    let used: Vec<&LedgerReport> = page
        .scope
        .ledgers
        .iter()
        .filter(|ledger| ledger.tally.is_used() && page.wants(ledger.ledger))
        .collect();
    writeln!(
        out,
        "\nLedgers{}",
        if page.report.bound { " (live and peak are bounds)" } else { "" }
    )?;
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
    for ledger in used {
        remarks(ledger, out)?;
    }
    let missing = NOT_COUNTED.join(", ");
    if missing.is_empty() {
        return Ok(());
    }
    writeln!(out, "  not counted by this version: {missing}")
}

/// What makes the bytes of a ledger less than told.
fn remarks(report: &LedgerReport, out: &mut impl Write) -> io::Result<()> {
    let name = report.ledger.name();
    if report.ledger.is_estimated() {
        writeln!(out, "  {name}: bytes are estimated from descriptors")?;
    }
    match report.tally.unsized_count {
        0 => Ok(()),
        count => writeln!(
            out,
            "  {name}: {} live without a size: none is told, or it owns no memory",
            grouped(count),
        ),
    }
}

/// The same by device, when that says more.
pub fn by_gpu(page: &Page<'_>, out: &mut impl Write) -> io::Result<()> {
    let on_gpu = |scope: &&ScopeReport| matches!(scope.scope, Scope::On(Some(_)));
    let several = page.report.by_gpu.iter().filter(on_gpu).count() > 1
        || page
            .report
            .by_gpu
            .iter()
            .filter(on_gpu)
            .any(|scope| scope.scope != Scope::On(Some(Gpu(0))));
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
    for scope in &page.report.by_gpu {
        let used = scope.ledgers.iter().filter(|ledger| ledger.tally.allocs > 0);
        for ledger in used.filter(|ledger| page.wants(ledger.ledger)) {
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
