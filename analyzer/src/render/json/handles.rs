//! Objects, and what NVML shows beside the ledgers.

use serde_json::{Map, Value, json};

use super::memory::with;
use super::{nanos, site};
use crate::live::{Made, ObjectCounts};
use crate::render::words::limit;
use crate::report::{GapReport, GapsReport, HandlesReport, StepReport};
use crate::units::{Bytes, Nanos};

/// By class, with who made what is left.
pub fn handles(report: &HandlesReport) -> Value {
    let contexts = json!({
        "created": report.contexts.created,
        "destroyed": report.contexts.destroyed,
        "live": report.contexts.live,
    });
    let classes = report.classes.iter().map(|(class, counts)| (class.name(), one(*counts)));
    let live = report.live.iter().map(|made| {
        json!({
            "class": made.class.name(),
            "site": site(&made.site),
            "count": made.count,
            "oldest_at_ns": made.oldest.0,
        })
    });
    let limits = report.limits.iter().map(|&(number, Bytes(value))| {
        json!({ "name": limit(number), "number": number, "value": value })
    });
    let more = [("live_at_end", live.collect()), ("limits", limits.collect())];
    with(json!({ "contexts": contexts }), classes.chain(more))
}

fn one(counts: ObjectCounts) -> Value {
    json!({
        "created": counts.created,
        "destroyed": counts.destroyed,
        "implicit": counts.implicit,
        "failed": counts.failed,
        "unknown": counts.unknown,
        "live": counts.live,
        "peak": counts.peak,
    })
}

/// Readings and steps.
pub fn gap(report: &GapsReport, bound: bool) -> Value {
    let reading =
        |gap: &Option<GapReport>| gap.as_ref().map_or(Value::Null, |gap| reading(gap, bound));
    json!({
        "max": reading(&report.max),
        "last": reading(&report.last),
        "steps": report.steps.iter().map(step).collect::<Vec<_>>(),
        "step_count": report.step_count,
    })
}

fn reading(gap: &GapReport, bound: bool) -> Value {
    let explained = &gap.explained;
    let objects = gap.objects.iter().map(|(of, bytes)| {
        let names: Vec<&str> = of.iter().map(|made| made.name()).collect();
        json!({ "of": names, "bytes": bytes.0, "estimated": true })
    });
    let estimated = gap.objects.iter().fold(0_u64, |sum, (_, bytes)| sum.saturating_add(bytes.0));
    json!({
        "at_ns": gap.at.0,
        "process_bytes": gap.process.0,
        "device_blocks_bytes": explained.device_blocks.0,
        "async_pool_bytes": explained.async_pool.0,
        "async_reserved_bytes": explained.async_reserved.map(|bytes| bytes.0),
        "async_kept_bytes": explained.async_kept.0,
        "vmm_physical_bytes": explained.vmm_physical.0,
        "array_bytes": explained.array.0,
        "graph_bytes": explained.graph.0,
        "graph_told": explained.graph_told,
        "objects_bytes": estimated,
        "objects": objects.collect::<Vec<_>>(),
        "unexplained_bytes": gap.unexplained,
        "bound": bound,
    })
}

fn step(step: &StepReport) -> Value {
    let since: Option<Nanos> = step.since;
    json!({
        "since_ns": nanos(since),
        "at_ns": step.at.0,
        "change_bytes": step.change,
        "unexplained_bytes": step.unexplained,
        "created": counted(&step.made),
        "destroyed": counted(&step.destroyed),
        "estimated": true,
    })
}

fn counted(made: &[(Made, u64)]) -> Value {
    let pairs = made.iter().map(|(made, count)| (made.name().to_owned(), json!(count)));
    Value::Object(pairs.collect::<Map<String, Value>>())
}
