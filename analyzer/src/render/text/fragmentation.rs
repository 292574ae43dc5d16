//! Memory that is taken and of no use, level by level.

use std::io::{self, Write};

use super::page::{Page, call, caller};
use super::torch;
use crate::live::RangeGaps;
use crate::render::table::Align::{Left, Right};
use crate::render::table::{Table, counted, grouped, share};
use crate::report::{BlocksReport, StuckReport, VmmReport};
use crate::units::{Bytes, Nanos};

/// A part of a whole, in words.
pub(super) fn percent(part: Bytes, whole: Bytes) -> String {
    share(part.0, whole.0)
}

/// Every level that is known, under a heading.
pub fn section(page: &Page<'_>, out: &mut impl Write) -> io::Result<()> {
    let mut told = Vec::new();
    levels(page, &mut told)?;
    if told.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nFragmentation{}", page.bound())?;
    out.write_all(&told)
}

/// Every level that is known.
pub fn levels(page: &Page<'_>, out: &mut impl Write) -> io::Result<()> {
    let report = &page.scope.fragmentation;
    let no_ranges = report.vmm.as_ref().is_none_or(|vmm| vmm.ranges == 0);
    if report.device_worst.is_none() && no_ranges && report.pool.is_none() {
        return Ok(());
    }
    if let Some((at, worst)) = &report.device_worst {
        writeln!(out, "  device: 2 MiB blocks behind cuMemAlloc")?;
        blocks(page, &format!("at worst, at {}", at.exact()), worst, out)?;
        blocks(page, page.end(), &report.device, out)?;
        pins(page, out)?;
    }
    if let Some(vmm) = report.vmm.as_ref().filter(|vmm| vmm.ranges > 0) {
        writeln!(out, "  vmm: reserved ranges with mappings")?;
        if let Some((at, worst)) = &report.vmm_worst {
            ranges(page, &format!("at worst, at {}", at.exact()), worst, out)?;
        }
        ranges(page, page.end(), vmm, out)?;
        writeln!(out, "    looked at {}", counted(report.looked, "moment", "moments"))?;
    }
    if let Some(stuck) = &report.stuck {
        held_back(page, stuck, out)?;
    }
    if let Some(pool) = &report.pool {
        writeln!(
            out,
            "  pools: {} reserved, {} in use: {} of no use, as last told of {} of {}, at {}",
            page.style.size(pool.reserved),
            page.style.size(pool.used),
            page.style.exact(pool.bytes()),
            grouped(pool.told),
            grouped(pool.pools),
            pool.at,
        )?;
    } else if !page.report.pools.pools.is_empty() {
        writeln!(
            out,
            "  pools: unknown, because the process asked none that is left what it reserves"
        )?;
    }
    torch::segments(page, out)
}

/// Memory that calls were to give back.
fn held_back(page: &Page<'_>, stuck: &StuckReport, out: &mut impl Write) -> io::Result<()> {
    if stuck.unreferenced.0 > 0 {
        let bytes = page.style.exact(stuck.unreferenced);
        writeln!(out, "    held by mappings alone, its handles are released: {bytes}")?;
    }
    if stuck.mappings == 0 {
        return Ok(());
    }
    let count = counted(stuck.mappings, "mapping", "mappings");
    let (count, bytes) = (count, page.style.exact(stuck.bytes));
    writeln!(out, "    stuck: {count} of {bytes}, whose cuMemUnmap failed")?;
    let mut table =
        Table::new([("at", Right), ("", Right), ("mapped by", Left), ("library", Left)]);
    for (address, bytes, site) in stuck.largest.iter().take(page.style.top) {
        let (call, library) = (call(site), caller(site));
        table.row([format!("{address:#x}"), page.style.size(*bytes), call, library]);
    }
    table.write(out)
}

fn blocks(
    page: &Page<'_>,
    when: &str,
    blocks: &BlocksReport,
    out: &mut impl Write,
) -> io::Result<()> {
    writeln!(
        out,
        "    {when}: {} of no use ({})\n      {} asked for lie in {} of blocks",
        page.style.exact(blocks.waste()),
        percent(blocks.waste(), blocks.touched),
        page.style.size(blocks.requested),
        page.style.size(blocks.touched),
    )?;
    if blocks.sparse > 0 {
        writeln!(
            out,
            "      blocks under a tenth in use: {}, with {} in them",
            grouped(blocks.sparse),
            page.style.size(blocks.sparse_used),
        )?;
    }
    Ok(())
}

fn pins(page: &Page<'_>, out: &mut impl Write) -> io::Result<()> {
    let report = &page.scope.fragmentation;
    let Some(at) = report.pins_at.filter(|_| !report.pins.is_empty()) else { return Ok(()) };
    writeln!(out, "    whose memory lay in blocks under a tenth in use, at {}", at.exact())?;
    let mut table =
        Table::new([("blocks", Right), ("using", Right), ("call", Left), ("library", Left)]);
    for pin in report.pins.iter().take(page.style.top) {
        let (call, library) = (call(&pin.site), caller(&pin.site));
        table.row([grouped(pin.blocks), page.style.size(pin.used), call, library]);
    }
    table.write(out)
}

fn ranges(page: &Page<'_>, when: &str, vmm: &VmmReport, out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "    {when}: {} of {}, {} mapped, {} in holes",
        counted(vmm.ranges, "range", "ranges"),
        page.style.size(vmm.reserved),
        page.style.size(vmm.mapped),
        page.style.size(vmm.free),
    )?;
    if vmm.unmapped_physical.0 > 0 {
        let bytes = page.style.size(vmm.unmapped_physical);
        writeln!(out, "      physical memory mapped nowhere: {bytes}")?;
    }
    if vmm.worst.is_empty() {
        return Ok(());
    }
    let mut table = Table::new([
        ("range", Right),
        ("mapped", Right),
        ("in holes", Right),
        ("largest hole", Right),
        ("shattered", Right),
        ("kept apart by", Left),
    ]);
    for range in vmm.worst.iter().take(page.style.top) {
        table.row(row(page, range));
    }
    table.write(out)
}

fn row(page: &Page<'_>, range: &RangeGaps) -> [String; 6] {
    let other = Bytes(range.free.0.saturating_sub(range.largest.0));
    [
        format!("{:#x}", range.address),
        page.style.size(range.mapped),
        page.style.size(range.free),
        page.style.size(range.largest),
        percent(other, range.free),
        range
            .pin
            .map(|(at, bytes)| format!("{} at {at:#x}", page.style.size(bytes)))
            .unwrap_or_default(),
    ]
}

/// The worst moment in one sentence, if anything was ever of no use.
#[must_use]
pub fn in_a_sentence(page: &Page<'_>) -> Option<String> {
    let report = &page.scope.fragmentation;
    let (at, worst): &(Nanos, BlocksReport) = report.device_worst.as_ref()?;
    let share = percent(worst.waste(), worst.touched);
    Some(format!(
        "{} of 2 MiB blocks of no use at worst ({share}), at {}",
        worst.waste(),
        at.exact()
    ))
}
