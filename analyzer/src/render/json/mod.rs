//! The report as JSON. `docs/report.schema.json` is its contract, and tests hold it to that.

mod answer;
mod graphs;
mod handles;
mod memory;
mod time;
mod torch;

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::analysis::names::SiteName;
use crate::input::GpuFacts;
use crate::live::NOT_COUNTED;
use crate::report::{
    CallReport, Coverage, InFlightReport, Loss, OddReport, ProcessFacts, Report, SampledReport,
    Trace, layer_name,
};
use crate::units::{Gpu, Nanos};

pub use answer::answer;

/// Number of the schema.
pub const SCHEMA: u32 = 1;

/// The report as a value.
#[must_use]
pub fn value(report: &Report) -> Value {
    let bound = report.bound;
    let total = &report.total;
    json!({
        "schema": SCHEMA,
        "trace": trace(&report.trace),
        "process": process(&report.process),
        "window": {
            "since_ns": nanos(report.window.since),
            "until_ns": nanos(report.window.until),
        },
        "coverage": coverage(&report.coverage),
        "ledgers": memory::ledgers(report),
        "sums": memory::sums(report),
        "not_counted": NOT_COUNTED.iter().map(|&name| (name.to_owned(), Value::Null))
            .collect::<Map<String, Value>>(),
        "null_calls": report.null_calls,
        "unknown_frees": report.unknown_frees.count,
        "overlaps": report.overlaps.count,
        "stale": { "count": report.stale.count, "bytes": report.stale.bytes },
        "examples": {
            "unknown_frees": oddities(&report.unknown_frees),
            "overlaps": oddities(&report.overlaps),
        },
        "sampled": report.sampled.iter().map(sampled).collect::<Vec<_>>(),
        "graphs": graphs::graphs(&report.graphs),
        "handles": handles::handles(&report.handles),
        "gap": handles::gap(&report.gap, bound),
        "pools": memory::pools(&report.pools, bound),
        "managed": memory::managed(&report.residency),
        "copies": memory::copies(total, report.copies_bound),
        "failed_copies": report.failed_copies,
        "sets": memory::sets(total, report.copies_bound),
        "failed_sets": report.failed_sets,
        "peak": memory::peak(total, bound),
        "live": memory::live(total, bound),
        "live_at_end": memory::held(&total.live_at_end, bound),
        "fragmentation":
            torch::with_segments(memory::fragmentation(&total.fragmentation, bound), report),
        "torch": torch::torch(&report.torch, bound),
        "oom": torch::oom(&report.torch),
        "by_gpu": memory::by_gpu(report),
        "stalls": time::stalls(&report.stalls, report.copies_bound),
        "timeline": time::timeline(&report.timeline, bound),
        "calls": report.calls.iter().map(call).collect::<Vec<_>>(),
        "marks": marks(report),
        "mark_count": report.mark_count,
        "ranges": ranges(report),
        "uncounted_ranges": report.uncounted_ranges,
        "in_flight": report.in_flight.iter().map(in_flight).collect::<Vec<_>>(),
    })
}

fn trace(trace: &Trace) -> Value {
    json!({
        "path": trace.path,
        "size": trace.size.0,
        "state": trace.state.name(),
        "complete": trace.complete,
        "format": trace.format,
        "events": trace.events,
        "calibrated": trace.calibrated,
    })
}

fn process(process: &ProcessFacts) -> Value {
    let header = &process.header;
    json!({
        "pid": header.pid,
        "parent_pid": header.parent_pid,
        "generation": header.generation,
        "executable": header.executable,
        "command_line": header.command_line,
        "directory": header.directory,
        "host": header.host,
        "kernel": header.kernel,
        "environment": header.environment,
        "recorder": header.recorder,
        "start_realtime_ns": header.start_realtime_ns,
        "duration_ns": process.duration.map(|duration| duration.0),
        "threads": process.threads,
        "driver": process.driver,
        "gpus": process.gpus.iter().map(gpu_facts).collect::<Vec<_>>(),
    })
}

fn gpu_facts((gpu, facts): &(Gpu, GpuFacts)) -> Value {
    json!({
        "gpu": gpu.0,
        "name": facts.name,
        "uuid": facts.uuid,
        "total_bytes": facts.total.0,
    })
}

fn coverage(coverage: &Coverage) -> Value {
    let counts = |losses: &[Loss]| {
        let pairs = losses.iter().map(|loss| (loss.cause.to_owned(), json!(loss.count)));
        pairs.collect::<Map<String, Value>>()
    };
    let explained = coverage.losses.iter().chain(&coverage.notes);
    let passed = coverage.passed_names.iter().map(|passed| {
        json!({
            "name": passed.name,
            "count": passed.count,
            "resolvers": passed.resolvers,
            "memory": passed.memory,
        })
    });
    json!({
        "hooked": coverage.hooked,
        "passed": coverage.passed,
        "next": coverage.next,
        "lookups": passed.collect::<Vec<_>>(),
        "losses": counts(&coverage.losses),
        "notes": counts(&coverage.notes),
        "meanings": explained.map(|loss| (loss.cause.to_owned(), json!(loss.meaning)))
            .collect::<Map<String, Value>>(),
        "salvage": coverage.salvage,
        "unknown_kinds": coverage.unknown_kinds,
        "lost_definitions": coverage.lost_definitions,
        "remarks": coverage.remarks,
    })
}

fn nanos(time: Option<Nanos>) -> Value {
    json!(time.map(|time| time.0))
}

fn oddities(odd: &OddReport) -> Value {
    let examples = odd.examples.iter().map(|example| {
        json!({
            "ledger": example.ledger.name(),
            "address": hexadecimal(example.place),
            "site": site(&example.site),
            "at_ns": example.at.0,
        })
    });
    examples.collect()
}

fn hexadecimal(number: u64) -> String {
    format!("{number:#x}")
}

fn site(site: &SiteName) -> Value {
    let text = |text: &Option<Arc<str>>| json!(text.as_deref());
    let caller = site.caller.as_ref().map(
        |caller| json!({ "file": &*caller.file, "line": caller.line, "function": &*caller.function }),
    );
    json!({
        "frames": [],
        "library": text(&site.library),
        "api": text(&site.api),
        "call": text(&site.call),
        "caller": caller,
        "others": site.others,
    })
}

fn sampled(report: &SampledReport) -> Value {
    let sampled = &report.sampled;
    json!({
        "gpu": report.gpu.map(|gpu| gpu.0),
        "samples": sampled.count,
        "last_used_bytes": sampled.last_used.0,
        "max_used_bytes": sampled.max_used.0,
        "total_bytes": sampled.total.0,
        "last_process_bytes": sampled.last_process.map(|bytes| bytes.0),
        "max_process_bytes": sampled.max_process.map(|bytes| bytes.0),
    })
}

fn call(call: &CallReport) -> Value {
    json!({
        "api": call.api.as_deref(),
        "layer": call.layer.map(layer_name),
        "others": call.others,
        "calls": call.calls,
        "failed": call.failed,
        "total_ns": call.total.0,
        "max_ns": call.max.0,
    })
}

fn marks(report: &Report) -> Value {
    let kept = report.marks.iter();
    let kept =
        kept.map(|mark| json!({ "at_ns": mark.at.0, "text": mark.text, "thread": mark.thread }));
    kept.collect()
}

fn ranges(report: &Report) -> Value {
    let kept = report.ranges.iter().map(|range| {
        json!({
            "name": range.name,
            "count": range.count,
            "total_ns": range.total.0,
            "open": range.open,
        })
    });
    kept.collect()
}

fn in_flight(call: &InFlightReport) -> Value {
    json!({
        "api": call.api.as_deref(),
        "layer": call.layer.map(layer_name),
        "thread": call.thread,
        "since_ns": call.since.0,
        "argument": hexadecimal(call.argument),
    })
}
