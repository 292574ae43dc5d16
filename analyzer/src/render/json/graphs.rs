//! Graphs.

use serde_json::{Value, json};

use crate::live::{GraphCounts, GraphTold, Moved};
use crate::report::GraphsReport;
use crate::units::{Bytes, Gpu};

/// What was counted, captured and told.
pub fn graphs(report: &GraphsReport) -> Value {
    let GraphCounts { alloc_nodes, alloc_node_bytes, free_nodes, uncounted_nodes, .. } =
        report.counts;
    json!({
        "alloc_nodes": alloc_nodes,
        "alloc_node_bytes": alloc_node_bytes,
        "free_nodes": free_nodes,
        "uncounted_nodes": uncounted_nodes,
        "executable_bytes": report.executable_bytes.0,
        "launches": report.counts.launches,
        "failed_launches": report.counts.failed_launches,
        "unknown_launches": report.counts.unknown_launches,
        "trims": report.counts.trims,
        "captured": {
            "copies": moved(report.counts.copies),
            "sets": moved(report.counts.sets),
            "others": report.counts.others,
        },
        "told": report.told.iter().map(told).collect::<Vec<_>>(),
    })
}

fn moved(moved: Moved) -> Value {
    json!({ "count": moved.count, "bytes": moved.bytes, "empty": moved.empty })
}

fn told((gpu, told): &(Option<Gpu>, GraphTold)) -> Value {
    let bytes = |bytes: Option<Bytes>| bytes.map(|bytes| bytes.0);
    json!({
        "gpu": gpu.map(|gpu| gpu.0),
        "used_bytes": bytes(told.used),
        "used_high_bytes": bytes(told.used_high),
        "reserved_bytes": bytes(told.reserved),
        "reserved_high_bytes": bytes(told.reserved_high),
    })
}
