//! PyTorch's caching allocator: its totals, requests that found no memory, and its segments.

use std::io::{self, Write};

use super::fragmentation::percent;
use super::page::{Page, at, gpu_name};
use crate::live::{SegmentGaps, Segments};
use crate::render::table::Align::{Left, Right};
use crate::render::table::{Table, counted, grouped};
use crate::report::{Scope, TorchDeviceReport};
use crate::units::{Bytes, Gpu};

/// The devices that are wanted.
fn devices<'a>(page: &Page<'a>) -> Vec<&'a TorchDeviceReport> {
    let scope = page.scope.scope;
    let wanted = move |gpu: Option<Gpu>| scope == Scope::All || scope == Scope::On(gpu);
    page.report.torch.devices.iter().filter(|device| wanted(device.gpu)).collect()
}

/// What it has and keeps in one sentence, if it reported anything.
#[must_use]
pub fn in_a_sentence(page: &Page<'_>) -> Option<String> {
    let torch = &page.report.torch;
    if !torch.seen || page.scope.scope != Scope::All {
        return None;
    }
    let size = |bytes: u64| page.style.size(Bytes(bytes));
    let (allocated, reserved) = (size(torch.totals.allocated), size(torch.totals.reserved));
    let mut words = format!("{allocated} allocated of {reserved} reserved");
    if let Some((at, worst)) = torch.worst {
        let share = percent(Bytes(worst.free()), Bytes(worst.reserved));
        words.push_str(&format!(
            ", {} of no use at worst ({share}), at {}",
            size(worst.free()),
            at.exact()
        ));
    }
    let failures: u64 = torch.devices.iter().map(|found| found.device.failures).sum();
    if failures > 0 {
        words.push_str(&format!("; {} found no memory", counted(failures, "request", "requests")));
    }
    let wrong: u64 = torch.devices.iter().map(|found| found.device.mismatches).sum();
    if wrong > 0 {
        words.push_str(&format!(
            "; {} not what was counted",
            counted(wrong, "total is", "totals are")
        ));
    }
    Some(words)
}

/// What it has and keeps, by device.
pub fn allocator(page: &Page<'_>, out: &mut impl Write) -> io::Result<()> {
    let devices = devices(page);
    if devices.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nPyTorch's allocator{}", page.bound())?;
    let mut table = Table::new([
        ("", Left),
        ("allocated", Right),
        ("peak", Right),
        ("reserved", Right),
        ("peak", Right),
        ("peak at", Right),
        ("gave back", Right),
        ("out of memory", Right),
    ]);
    for found in &devices {
        let device = &found.device;
        let (released, releases) = (device.released, grouped(device.releases));
        table.row([
            gpu_name(found.gpu),
            page.style.size(Bytes(device.allocated)),
            page.style.size(Bytes(device.peak_allocated)),
            page.style.size(Bytes(device.reserved.now)),
            page.style.size(Bytes(device.reserved.peak)),
            at(found.peak_reserved_at),
            format!("{} in {releases}", page.style.size(Bytes(released.bytes))),
            grouped(device.failures),
        ]);
    }
    table.write(out)?;
    doubts(page, &devices, out)?;
    failures(page, out)
}

fn doubts(page: &Page<'_>, devices: &[&TorchDeviceReport], out: &mut impl Write) -> io::Result<()> {
    for found in devices.iter().filter(|found| found.device.mismatches > 0) {
        let (count, reports) = (found.device.mismatches, found.device.reports);
        writeln!(
            out,
            "  {}: {} of {} totals are not what was counted, the first at {}",
            gpu_name(found.gpu),
            grouped(count),
            grouped(reports),
            at(found.first_mismatch_at),
        )?;
    }
    let outside = page.report.torch.outside;
    if outside.count > 0 {
        let (count, bytes) = (grouped(outside.count), Bytes(outside.bytes));
        writeln!(out, "  blocks handed out in no segment that is known: {count}, {bytes}")?;
    }
    Ok(())
}

fn failures(page: &Page<'_>, out: &mut impl Write) -> io::Result<()> {
    let all = &page.report.torch.failures;
    let wanted = |gpu| page.scope.scope == Scope::All || page.scope.scope == Scope::On(gpu);
    let failures: Vec<_> = all.iter().filter(|failure| wanted(failure.gpu)).collect();
    if failures.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nRequests that found no memory")?;
    let mut table = Table::new([
        ("at", Right),
        ("", Left),
        ("requested", Right),
        ("allocated", Right),
        ("reserved", Right),
        ("largest hole", Right),
        ("free on device", Right),
    ]);
    let size = |bytes: Bytes| page.style.size(bytes);
    let unknown = || "unknown".to_owned();
    for failure in failures.iter().take(page.style.top) {
        table.row([
            failure.at.exact(),
            gpu_name(failure.gpu),
            size(failure.requested),
            size(Bytes(failure.totals.allocated)),
            size(Bytes(failure.totals.reserved)),
            failure.largest.map_or_else(unknown, size),
            failure.device_free.map_or_else(unknown, size),
        ]);
    }
    table.write(out)?;
    page.more(failures.len(), out)
}

/// Memory in segments and in no block.
pub fn segments(page: &Page<'_>, out: &mut impl Write) -> io::Result<()> {
    let torch = &page.report.torch;
    if page.scope.scope != Scope::All {
        return Ok(());
    }
    if !torch.seen {
        return writeln!(out, "  framework segments: no report of PyTorch's allocator was seen");
    }
    writeln!(out, "  segment: PyTorch's segments, reserved less allocated")?;
    let size = |bytes: u64| page.style.size(Bytes(bytes));
    let moments = [
        torch.worst.map(|(at, totals)| (format!("at worst, at {}", at.exact()), totals)),
        Some((page.end().to_owned(), torch.totals)),
    ];
    for (when, totals) in moments.into_iter().flatten() {
        writeln!(
            out,
            "    {when}: {} reserved, {} allocated: {} of no use ({})",
            size(totals.reserved),
            size(totals.allocated),
            size(totals.free()),
            percent(Bytes(totals.free()), Bytes(totals.reserved)),
        )?;
    }
    if let Some((at, found)) = &torch.worst_segments {
        holes(
            page,
            &format!("at worst of {}, at {}", counted(torch.looked, "look", "looks"), at.exact()),
            found,
            out,
        )?;
    }
    holes(page, page.end(), &torch.segments, out)
}

fn holes(page: &Page<'_>, when: &str, found: &Segments, out: &mut impl Write) -> io::Result<()> {
    let size = |bytes: u64| page.style.size(Bytes(bytes));
    writeln!(
        out,
        "    {when}: {} of {}, {} of them empty ({}); largest hole {}",
        counted(found.all.count, "segment", "segments"),
        size(found.all.bytes),
        grouped(found.empty.count),
        size(found.empty.bytes),
        size(found.largest.0),
    )?;
    if found.outside.count > 0 {
        let (count, bytes) = (grouped(found.outside.count), size(found.outside.bytes));
        writeln!(out, "      blocks in no segment that is known: {count}, {bytes}")?;
    }
    if found.worst.is_empty() {
        return Ok(());
    }
    let mut table = Table::new([
        ("segment", Right),
        ("size", Right),
        ("blocks", Right),
        ("in holes", Right),
        ("largest hole", Right),
        ("shattered", Right),
        ("kept apart by", Left),
    ]);
    for gaps in found.worst.iter().take(page.style.top) {
        table.row(row(page, gaps));
    }
    table.write(out)
}

fn row(page: &Page<'_>, gaps: &SegmentGaps) -> [String; 7] {
    let other = Bytes(gaps.free.0.saturating_sub(gaps.largest.0));
    let pin = gaps.pin.map(|run| {
        let blocks = counted(run.blocks, "block", "blocks");
        format!("{blocks} of {} at {:#x}", page.style.size(run.bytes), run.address)
    });
    [
        format!("{:#x}", gaps.address),
        page.style.size(gaps.bytes),
        grouped(gaps.blocks),
        page.style.size(gaps.free),
        page.style.size(gaps.largest),
        percent(other, gaps.free),
        pin.unwrap_or_default(),
    ]
}
