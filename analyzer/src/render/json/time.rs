//! Figures over time, and time in calls.

use serde_json::{Map, Value, json};

use super::site;
use crate::live::Level;
use crate::report::{
    CallTime, LengthClass, LongCallReport, Scope, SeriesReport, StallReport, TimelineReport,
};
use crate::units::Nanos;

/// Every series, over the same buckets.
pub fn timeline(timeline: &TimelineReport, bound: bool) -> Value {
    let of = |time: fn(&CallTime) -> Nanos| {
        timeline.calls.iter().map(|calls| time(calls).0).collect::<Vec<_>>()
    };
    json!({
        "edges_ns": timeline.edges.iter().map(|edge| edge.0).collect::<Vec<_>>(),
        "series": timeline.series.iter().map(|one| series(one, bound)).collect::<Vec<_>>(),
        "calls": {
            "alloc_ns": of(|calls| calls.alloc),
            "free_ns": of(|calls| calls.free),
            "copy_ns": of(|calls| calls.copy),
        },
    })
}

fn series(series: &SeriesReport, bound: bool) -> Value {
    let of = |value: fn(&Level) -> u64| series.levels.iter().map(value).collect::<Vec<_>>();
    let parts = series.parts.iter().filter(|(_, held)| held.iter().any(|&bytes| bytes > 0));
    let parts = parts.map(|(ledger, held)| (ledger.name().to_owned(), json!(held)));
    let gpu = match series.scope {
        Scope::All => json!("all"),
        Scope::On(gpu) => json!(gpu.map(|gpu| gpu.0)),
    };
    json!({
        "name": series.figure.name(),
        "gpu": gpu,
        "min_bytes": of(|level| level.min),
        "max_bytes": of(|level| level.max),
        "last_bytes": of(|level| level.last),
        "at_max": parts.collect::<Map<String, Value>>(),
        "bound": bound,
    })
}

/// By purpose of the call.
pub fn stalls(stalls: &[StallReport], bound: bool) -> Value {
    let one = |stall: &StallReport| {
        let value = json!({
            "count": stall.count,
            "total_ns": stall.total.0,
            "max_ns": stall.max.0,
            "by_length": stall.by_length.iter().map(length).collect::<Vec<_>>(),
            "longest": stall.longest.iter().map(long_call).collect::<Vec<_>>(),
            "bound": bound,
        });
        (stall.purpose.name().to_owned(), value)
    };
    Value::Object(stalls.iter().map(one).collect())
}

fn length(class: &LengthClass) -> Value {
    json!({
        "from_ns": class.from.0,
        "to_ns": class.to.map(|to| to.0),
        "count": class.count,
        "total_ns": class.total.0,
    })
}

fn long_call(call: &LongCallReport) -> Value {
    json!({
        "at_ns": call.at.0,
        "length_ns": call.length.0,
        "bytes": call.bytes.map(|bytes| bytes.0),
        "site": site(&call.site),
        "thread": call.thread,
    })
}
