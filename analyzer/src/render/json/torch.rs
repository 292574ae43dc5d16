//! PyTorch's caching allocator.

use serde_json::{Value, json};

use super::memory::with;
use super::{hexadecimal, nanos, site};
use crate::live::{PinnedRun, Release, SegmentGaps, Segments, Totals};
use crate::report::{ABSENT, FailureReport, Report, TorchDeviceReport, TorchReport};
use crate::units::Nanos;

/// What it reported, by device.
pub fn torch(torch: &TorchReport, bound: bool) -> Value {
    json!({
        "absent": if torch.seen { Value::Null } else { json!(ABSENT) },
        "devices": torch.devices.iter().map(|found| device(found, bound)).collect::<Vec<_>>(),
        "outside": { "count": torch.outside.count, "bytes": torch.outside.bytes },
        "release_list": torch.releases.iter().map(release).collect::<Vec<_>>(),
    })
}

fn device(report: &TorchDeviceReport, bound: bool) -> Value {
    let found = &report.device;
    let mismatch = found.first_mismatch.map(|first| {
        json!({
            "at_ns": nanos(report.first_mismatch_at),
            "counted_bytes": first.counted,
            "told_bytes": first.told,
        })
    });
    json!({
        "gpu": report.gpu.map(|gpu| gpu.0),
        "reports": found.reports,
        "allocated_bytes": found.allocated,
        "peak_allocated_bytes": found.peak_allocated,
        "reserved_bytes": found.reserved.now,
        "peak_reserved_bytes": found.reserved.peak,
        "peak_reserved_at_ns": nanos(report.peak_reserved_at),
        "mismatches": found.mismatches,
        "first_mismatch": mismatch,
        "out_of_memory": found.failures,
        "releases": found.releases,
        "released_segments": found.released.count,
        "released_bytes": found.released.bytes,
        "worst": report.worst.map(worst),
        "bound": bound,
    })
}

fn totals(totals: Totals) -> Value {
    json!({
        "reserved_bytes": totals.reserved,
        "allocated_bytes": totals.allocated,
        "free_bytes": totals.free(),
    })
}

fn worst((at, found): (Nanos, Totals)) -> Value {
    with(totals(found), [("at_ns", json!(at.0))])
}

fn release((at, release): &(Nanos, Release)) -> Value {
    json!({
        "at_ns": at.0,
        "gpu": release.gpu.ordinal(),
        "segments": release.segments,
        "bytes": release.bytes,
        "after_failure": release.after_failure,
    })
}

/// Requests that found no memory.
pub fn oom(torch: &TorchReport) -> Value {
    let one = |failure: &FailureReport| {
        let head = json!({
            "at_ns": failure.at.0,
            "gpu": failure.gpu.map(|gpu| gpu.0),
            "thread": failure.thread,
            "site": site(&failure.site),
            "requested_bytes": failure.requested.0,
            "largest_free_bytes": failure.largest.map(|bytes| bytes.0),
            "device_free_bytes": failure.device_free.map(|bytes| bytes.0),
        });
        let Totals { reserved, allocated } = failure.totals;
        let more = [("reserved_bytes", json!(reserved)), ("allocated_bytes", json!(allocated))];
        with(head, more)
    };
    torch.failures.iter().map(one).collect()
}

/// The levels of fragmentation, with that of segments where it is known.
pub fn with_segments(levels: Value, report: &Report) -> Value {
    let torch = &report.torch;
    if !torch.seen {
        return levels;
    }
    let at_worst = torch.worst_segments.as_ref();
    let look = at_worst.map(|(at, found)| with(segments(found), [("at_ns", json!(at.0))]));
    let level = with(
        totals(torch.totals),
        [
            ("worst", torch.worst.map_or(Value::Null, worst)),
            ("now", segments(&torch.segments)),
            ("worst_look", look.unwrap_or_default()),
            ("looked", json!(torch.looked)),
            ("bound", json!(report.bound)),
        ],
    );
    with(levels, [("segment", level)])
}

fn segments(found: &Segments) -> Value {
    json!({
        "segments": found.all.count,
        "segment_bytes": found.all.bytes,
        "empty_segments": found.empty.count,
        "empty_bytes": found.empty.bytes,
        "blocks": found.blocks.count,
        "block_bytes": found.blocks.bytes,
        "outside_blocks": found.outside.count,
        "outside_bytes": found.outside.bytes,
        "hole_bytes": found.free.0,
        "largest_free_bytes": found.largest.0,
        "worst_segments": found.worst.iter().map(segment).collect::<Vec<_>>(),
    })
}

fn segment(gaps: &SegmentGaps) -> Value {
    let pin = |run: PinnedRun| {
        json!({
            "address": hexadecimal(run.address), "bytes": run.bytes.0, "blocks": run.blocks,
        })
    };
    json!({
        "address": hexadecimal(gaps.address),
        "gpu": gaps.gpu.ordinal(),
        "expandable": gaps.expandable,
        "bytes": gaps.bytes.0,
        "used_bytes": gaps.used.0,
        "blocks": gaps.blocks,
        "free_bytes": gaps.free.0,
        "largest_free_bytes": gaps.largest.0,
        "pin": gaps.pin.map(pin),
    })
}
