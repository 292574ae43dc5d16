//! Graphs, objects without bytes, and what NVML shows beside the ledgers, by logs that say what
//! happened.
#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use gmmtrace_format::kind::object;
use gmmtrace_format::{Flags, Kind};
use serde_json::{Value, json};
use support::{FREE_SITE, Writer, Written, assert_valid, event};

const MIB: u64 = 1 << 20;

fn made(at: u64, class: u64, handle: u64, of: u64) -> Written {
    event(Kind::ObjectCreate, at, &[handle, class, of])
}

fn gone(at: u64, class: u64, handle: u64) -> Written {
    event(Kind::ObjectDestroy, at, &[handle, class])
}

fn captured(kind: Kind, at: u64, operands: &[u64]) -> Written {
    event(kind, at, operands).flags(Flags::CAPTURED)
}

fn sample(at: u64, device: u64, used: u64, process: Option<u64>) -> Written {
    let process = process.map_or(0, |bytes| bytes + 1);
    event(Kind::Sample, at, &[device, used, 100 * MIB, process]).site(0)
}

fn counts(report: &Value, class: &str) -> [u64; 6] {
    ["created", "destroyed", "implicit", "failed", "unknown", "live"]
        .map(|key| report["handles"][class][key].as_u64().unwrap())
}

/// Two captures at once, told apart by the streams that they began on.
#[test]
fn captured_memory_is_taken_by_the_launch_of_its_own_graph() {
    let (first, second) = (0x100, 0x200);
    let report = Writer::of(vec![
        captured(Kind::PoolAlloc, 10, &[0x1000, 5 * MIB, first, 0]),
        captured(Kind::PoolAlloc, 20, &[0x9000, 7 * MIB, second, 0]),
        captured(Kind::PoolFree, 30, &[0x1000, first]),
        captured(Kind::PoolAlloc, 35, &[0, 9, first, 0]).failed(),
        captured(Kind::Copy, 40, &[1, 0x1000, 0x77, 30, first]),
        captured(Kind::Copy, 45, &[1, 0x1000, 0x77, 30, first]).failed(),
        captured(Kind::Set, 50, &[16, 0x1000, 40, first]),
        made(60, object::GRAPH, 0xa, first),
        made(70, object::GRAPH, 0xb, second),
        made(80, object::GRAPH_EXEC, 0xc, 0xa),
        made(90, object::GRAPH_EXEC, 0xd, 0xb),
        event(Kind::GraphLaunch, 100, &[0xd, 0]),
        event(Kind::GraphLaunch, 110, &[0xc, 0]),
        event(Kind::GraphLaunch, 120, &[0xc, 0]),
        event(Kind::GraphLaunch, 130, &[0xc, 0]).failed(),
        event(Kind::GraphLaunch, 140, &[0xe, 0]),
        event(Kind::Free, 150, &[0x9000]),
    ])
    .json();
    assert_valid(&report);
    let graph = &report["ledgers"]["graph"];
    assert_eq!([&graph["allocs"], &graph["frees"], &graph["live_bytes"]], [3, 3, 0]);
    assert_eq!(graph["peak_bytes"], 12 * MIB);
    assert_eq!(graph["failed"], 1);
    assert_eq!(report["ledgers"]["async_pool"]["allocs"], 0);
    assert_eq!(report["unknown_frees"], 0);
    assert_eq!([&report["failed_copies"], &report["sets"]["count"]], [1, 0]);
    assert_eq!(report["copies"], json!([]));
    let graphs = &report["graphs"];
    assert_eq!(graphs["captured"]["copies"], json!({"count": 1, "bytes": 30, "empty": 0}));
    assert_eq!(graphs["captured"]["sets"], json!({"count": 1, "bytes": 40, "empty": 0}));
    let launches = ["launches", "failed_launches", "unknown_launches"].map(|key| &graphs[key]);
    assert_eq!(launches, [4, 1, 1]);
    assert_eq!(graphs["executable_bytes"], 12 * MIB);
    assert!(report["stalls"].to_string().contains("\"count\":0"), "no time in captured copies");
}

/// An executable keeps what its graph was when it was made; a refused end leaves the capture.
#[test]
fn a_graph_that_changes_does_not_change_its_executable() {
    let invalidated = |at: u64, status: u32| {
        let mut end = made(at, object::GRAPH, 0, 0x200).failed();
        end.event.status = status;
        end
    };
    let report = Writer::of(vec![
        made(10, object::GRAPH, 0xa, 0),
        event(Kind::GraphAlloc, 20, &[0x1000, MIB, 0xa]),
        made(30, object::GRAPH_EXEC, 0xc, 0xa),
        event(Kind::GraphAlloc, 40, &[0x2000, 2 * MIB, 0xa]),
        event(Kind::GraphLaunch, 50, &[0xc, 0]),
        captured(Kind::PoolAlloc, 60, &[0x3000, 4 * MIB, 0x200, 0]),
        invalidated(70, 903),
        made(80, object::GRAPH, 0xa, 0x200),
        made(90, object::GRAPH_EXEC, 0xd, 0xa),
        event(Kind::GraphFree, 100, &[0x2000, 0xa]),
        made(105, object::GRAPH_EXEC, 0xd, 0xa),
        event(Kind::GraphLaunch, 110, &[0xd, 0]),
        captured(Kind::PoolAlloc, 120, &[0x5000, 8 * MIB, 0x200, 0]),
        invalidated(130, 901),
        made(140, object::GRAPH, 0xe, 0x200),
        made(150, object::GRAPH_EXEC, 0xf, 0xe),
        event(Kind::GraphLaunch, 160, &[0xf, 0]),
    ])
    .json();
    assert_valid(&report);
    let graph = &report["ledgers"]["graph"];
    // 1 by the first launch; that again, 2, and 4 by the second, of which 2 is freed.
    assert_eq!(graph["alloc_bytes"], 8 * MIB);
    assert_eq!([&graph["implicit_bytes"], &graph["free_bytes"]], [MIB, 2 * MIB]);
    assert_eq!(graph["live_bytes"], 5 * MIB);
    // Captured into a graph that is there, and updated: nothing new.
    assert_eq!(counts(&report, "graphs"), [2, 0, 0, 2, 0, 2]);
    assert_eq!(counts(&report, "graph_execs"), [3, 0, 0, 0, 0, 3]);
}

#[test]
fn objects_are_counted_by_class_and_end_with_their_context() {
    let report = Writer::of(vec![
        event(Kind::ContextCreate, 1, &[0x77, 0]),
        event(Kind::ContextCurrent, 2, &[0x77]).site(0),
        made(10, object::STREAM, 0x1, 0),
        made(20, object::STREAM, 0x2, 0),
        made(30, object::EVENT, 0x1, 0).site(FREE_SITE),
        made(40, object::LIBRARY, 0x3, 0),
        made(50, object::MODULE, 0, 0).failed(),
        gone(60, object::STREAM, 0x1),
        gone(70, object::STREAM, 0x1),
        gone(80, object::STREAM, 0x9).failed(),
        made(90, object::STREAM, 0x2, 0),
        made(95, 99, 0x5, 0),
        event(Kind::ContextDestroy, 100, &[0x77]),
        made(110, object::EVENT, 0x4, 0).site(FREE_SITE),
        made(120, object::EVENT, 0x5, 0).site(FREE_SITE),
        event(Kind::Limit, 130, &[0, 1024]),
        event(Kind::Limit, 140, &[0, 2048]),
        event(Kind::Limit, 150, &[77, 5]),
        event(Kind::Limit, 160, &[1, 5]).failed(),
    ])
    .json();
    assert_valid(&report);
    assert_eq!(counts(&report, "streams"), [3, 1, 2, 1, 1, 0]);
    assert_eq!(report["handles"]["streams"]["peak"], 2);
    assert_eq!(counts(&report, "events"), [3, 0, 1, 0, 0, 2]);
    assert_eq!(counts(&report, "libraries"), [1, 0, 0, 0, 0, 1]);
    assert_eq!(counts(&report, "modules"), [0, 0, 0, 1, 0, 0]);
    let left = &report["handles"]["live_at_end"];
    assert_eq!(left[0]["class"], "events");
    assert_eq!([&left[0]["count"], &left[0]["oldest_at_ns"]], [2, 115]);
    assert_eq!(left[0]["site"]["api"], "cuMemFree_v2");
    assert_eq!(left[1]["class"], "libraries");
    let limits = json!([
        {"name": "stack_size", "number": 0, "value": 2048},
        {"name": "", "number": 77, "value": 5},
    ]);
    assert_eq!(report["handles"]["limits"], limits);
}

#[test]
fn what_nvml_shows_is_explained_and_rises_are_set_beside_what_was_made() {
    let report = Writer::of(vec![
        event(Kind::ContextCreate, 1, &[0x77, 0]),
        sample(10, 0, 60 * MIB, Some(50 * MIB)),
        event(Kind::DeviceAlloc, 20, &[0x4000_0000, 3 * MIB]),
        event(Kind::PoolAlloc, 30, &[0x8000_0000, MIB, 0, 0]),
        event(Kind::PhysicalCreate, 40, &[7, 2 * MIB, 1, 0]),
        made(50, object::LIBRARY, 0x1, 0),
        made(51, object::LIBRARY, 0x2, 0),
        made(52, object::GRAPH_EXEC, 0x3, 0),
        event(Kind::GraphMemory, 55, &[0, 2, 6 * MIB]),
        sample(60, 0, 90 * MIB, Some(50 * MIB + 4 * MIB + MIB + 2 * MIB + 6 * MIB + 9 * MIB)),
        gone(70, object::LIBRARY, 0x1),
        sample(80, 0, 90 * MIB, Some(50 * MIB + 13 * MIB + 7 * MIB)),
        // Nothing was made: not explained.
        sample(90, 0, 90 * MIB, Some(50 * MIB + 13 * MIB + 8 * MIB)),
    ])
    .json();
    assert_valid(&report);
    let max = &report["gap"]["max"];
    assert_eq!(max["process_bytes"], 72 * MIB);
    assert_eq!(max["device_blocks_bytes"], 4 * MIB);
    assert_eq!(max["async_pool_bytes"], MIB);
    assert_eq!(max["async_reserved_bytes"], Value::Null);
    assert_eq!(max["vmm_physical_bytes"], 2 * MIB);
    assert_eq!([&max["graph_bytes"], &max["graph_told"]], [&json!(6 * MIB), &json!(true)]);
    assert_eq!(
        max["objects"],
        json!([
            {"of": ["contexts"], "bytes": 50 * MIB, "estimated": true},
            {"of": ["pools", "libraries", "graph_execs"], "bytes": 9 * MIB, "estimated": true},
        ])
    );
    assert_eq!(max["unexplained_bytes"], 0);
    let last = &report["gap"]["last"];
    assert_eq!([&last["objects_bytes"], &last["unexplained_bytes"]], [57 * MIB, MIB]);
    let steps = &report["gap"]["steps"];
    assert_eq!(report["gap"]["step_count"], 3);
    assert_eq!(steps[0]["since_ns"], Value::Null);
    assert_eq!(steps[0]["created"], json!({"contexts": 1}));
    assert_eq!(steps[1]["created"], json!({"libraries": 2, "graph_execs": 1}));
    assert_eq!([&steps[1]["change_bytes"], &steps[1]["unexplained_bytes"]], [22 * MIB, 9 * MIB]);
    assert_eq!(steps[2]["destroyed"], json!({"libraries": 1}));
    assert_eq!(steps[2]["unexplained_bytes"], -2 * 1_048_576);
}

fn gap_at(events: &[Written], at: usize) -> (Value, i64) {
    let report = Writer::of(events[..=at].to_vec()).json();
    assert_valid(&report);
    let last = &report["gap"]["last"];
    let rows = last["objects"].as_array().unwrap().iter();
    let rows: Vec<Value> = rows.map(|row| json!([row["of"], row["bytes"]])).collect();
    (Value::Array(rows), last["unexplained_bytes"].as_i64().unwrap())
}

/// What pools reserve no call tells: PyTorch's backend `cudaMallocAsync` keeps all of it, without
/// asking the driver how much that is.
#[test]
fn what_pools_keep_counts_for_them() {
    let take = |at, address, bytes| event(Kind::PoolAlloc, at, &[address, bytes, 0, 0]);
    let give = |at, address| event(Kind::PoolFree, at, &[address, 0]);
    let events = [
        sample(10, 0, 900 * MIB, Some(500 * MIB)),
        take(20, 0x1000_0000, 10 * MIB),
        sample(30, 0, 900 * MIB, Some(532 * MIB)),
        // Within what is reserved.
        take(40, 0x2000_0000, 15 * MIB),
        sample(50, 0, 900 * MIB, Some(532 * MIB)),
        give(60, 0x1000_0000),
        give(70, 0x2000_0000),
        sample(80, 0, 900 * MIB, Some(532 * MIB)),
        // At a synchronisation, which makes no event.
        sample(90, 0, 900 * MIB, Some(500 * MIB)),
    ];
    let contexts = json!([["contexts"], 500 * MIB]);
    let pools = |bytes: u64| json!([contexts.clone(), [["pools"], bytes]]);
    assert_eq!(gap_at(&events, 2), (pools(22 * MIB), 0));
    assert_eq!(gap_at(&events, 4), (pools(7 * MIB), 0));
    assert_eq!(gap_at(&events, 7), (pools(32 * MIB), 0));
    assert_eq!(gap_at(&events, 8), (json!([contexts]), 0));
}

/// What must not be released is still there, whoever asks.
#[test]
fn a_release_threshold_says_what_pools_keep_at_least() {
    let attribute = |at, value| event(Kind::PoolAttribute, at, &[0x7, 4, value, 1]);
    let take = |at, address, bytes| event(Kind::PoolAlloc, at, &[address, bytes, 0, 0x7]);
    let events = [
        take(10, 0x1000_0000, 90 * MIB),
        event(Kind::PoolFree, 20, &[0x1000_0000, 0]),
        attribute(30, 64 * MIB),
        take(40, 0x2000_0000, 40 * MIB),
        take(44, 0x3000_0000, 30 * MIB),
        event(Kind::PoolFree, 50, &[0x3000_0000, 0]),
        sample(60, 0, 900 * MIB, Some(600 * MIB)),
        event(Kind::PoolTrim, 70, &[0x7, 0]),
        sample(80, 0, 900 * MIB, Some(572 * MIB)),
    ];
    let kept = |at: usize| {
        let report = Writer::of(events[..=at].to_vec()).json();
        assert_valid(&report);
        report["gap"]["last"]["async_kept_bytes"].as_u64().unwrap()
    };
    assert_eq!([kept(6), kept(8)], [64 * MIB, 40 * MIB]);
}

/// Code is loaded at the first launch, which makes no event; the lookup before it does.
#[test]
fn a_rise_after_the_reading_after_a_lookup_counts_for_the_kernel() {
    let events = [
        sample(10, 0, 900 * MIB, Some(500 * MIB)),
        made(20, object::KERNEL, 0x1, 0x9),
        sample(30, 0, 900 * MIB, Some(520 * MIB)),
        sample(40, 0, 900 * MIB, Some(592 * MIB)),
        made(45, object::KERNEL, 0, 0x9).failed(),
        sample(50, 0, 900 * MIB, Some(599 * MIB)),
    ];
    let kernels = |bytes: u64| json!([[["contexts"], 500 * MIB], [["kernels"], bytes]]);
    assert_eq!(gap_at(&events, 2), (kernels(20 * MIB), 0));
    assert_eq!(gap_at(&events, 3), (kernels(92 * MIB), 0));
    assert_eq!(gap_at(&events, 5), (kernels(92 * MIB), 7 * 1_048_576), "nothing was made");
    let report = Writer::of(events.to_vec()).json();
    assert_eq!(report["gap"]["steps"][1]["created"], json!({"kernels": 1}));
}

/// A reading of two devices is one; where NVML does not know the process there is nothing to say.
#[test]
fn readings_of_several_devices_are_added_and_unknown_is_null() {
    let unknown = Writer::of(vec![
        event(Kind::DeviceAlloc, 5, &[0x4000_0000, MIB]),
        sample(10, 0, 60 * MIB, None),
    ]);
    let report = unknown.json();
    assert_valid(&report);
    assert_eq!([&report["gap"]["max"], &report["gap"]["last"]], [&Value::Null, &Value::Null]);

    let mut two = Writer::of(vec![
        sample(10, 0, 60 * MIB, Some(10 * MIB)),
        sample(11, 1, 60 * MIB, Some(20 * MIB)),
        event(Kind::DeviceAlloc, 20, &[0x4000_0000, 2 * MIB]),
        sample(30, 0, 60 * MIB, Some(13 * MIB)),
        sample(31, 1, 60 * MIB, None),
    ]);
    two.gpus = 2;
    let report = two.json();
    assert_valid(&report);
    assert_eq!(report["gap"]["max"]["process_bytes"], 30 * MIB);
    assert_eq!(report["gap"]["last"]["process_bytes"], 13 * MIB);
    assert_eq!(report["gap"]["last"]["unexplained_bytes"], 0, "an estimate fits into the rest");
}

/// A hostile log cannot make executables hold more nodes than a fixed number.
#[test]
fn nodes_beyond_the_cap_are_counted_and_not_followed() {
    let mut events = vec![made(1, object::GRAPH, 0xa, 0)];
    let nodes = 20_000_u64;
    let node = |n| event(Kind::GraphAlloc, 10 + n, &[0x1000 + n * 0x1000, 16, 0xa]);
    events.extend((0..nodes).map(node));
    events.extend((0..100).map(|n| made(30_000 + n, object::GRAPH_EXEC, 0x100 + n, 0xa)));
    let launch = |n: u64| event(Kind::GraphLaunch, 40_000 + n, &[0x100 + n, 0]);
    events.extend((0..100).map(launch));
    // A thread writes one chunk here.
    let mut log = Writer::default();
    for (number, event) in events.into_iter().enumerate() {
        log.push(number / 2_000, event);
    }
    let report = log.json();
    assert_valid(&report);
    let followed = 1 << 14;
    let held = (1_u64 << 20) / followed;
    assert_eq!(report["graphs"]["alloc_nodes"], nodes);
    let uncounted = nodes - followed + (100 - held) * followed;
    assert_eq!(report["graphs"]["uncounted_nodes"], uncounted);
    assert_eq!(report["ledgers"]["graph"]["allocs"], held * followed);
    assert_eq!(report["ledgers"]["graph"]["live_count"], followed);
}
