//! Every analysis by a small log whose answer was worked out by hand from `docs/reports.md`.
//!
//! The logs' clock is in nanoseconds from time zero, so stamps here are times of the report. A
//! test marked `ignore` says what the page promises and the report does not say yet.
#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use gmmtrace::live::Window;
use gmmtrace::units::Ticks;
use gmmtrace::{render, report};
use gmmtrace_format::kind::copy;
use gmmtrace_format::layout::{CHUNK_HEADER, CHUNK_SIZE, file};
use gmmtrace_format::{Flags, Kind};
use serde_json::{Value, json};
use support::{ALONE_SITE, FREE_SITE, RUNTIME_SITE, Writer, Written, assert_valid, event, put64};

const MIB: u64 = 1 << 20;
/// A 2 MiB block, which is also where the first of them begins here.
const BLOCK: u64 = 2 * MIB;

/// A successful event that takes effect at `stamp` and takes no time.
fn at(kind: Kind, stamp: u64, operands: &[u64]) -> Written {
    event(kind, stamp, operands).lasting(0)
}

fn alloc(stamp: u64, address: u64, bytes: u64) -> Written {
    at(Kind::DeviceAlloc, stamp, &[address, bytes])
}

fn pool(stamp: u64, address: u64, bytes: u64) -> Written {
    at(Kind::PoolAlloc, stamp, &[address, bytes, 0, 0])
}

fn free(stamp: u64, address: u64) -> Written {
    at(Kind::Free, stamp, &[address])
}

fn mark(stamp: u64) -> Written {
    at(Kind::Mark, stamp, &[0]).site(0).text("mark")
}

/// The thread's runtime calls use this device from here on.
fn use_device(stamp: u64, device: u64) -> Written {
    at(Kind::DeviceCurrent, stamp, &[device]).site(0)
}

fn told(log: &Writer) -> Value {
    within(log, None, None)
}

fn of(events: Vec<Written>) -> Value {
    told(&Writer::of(events))
}

fn within(log: &Writer, since: Option<u64>, until: Option<u64>) -> Value {
    within_bytes(&log.bytes(), since, until)
}

fn within_bytes(bytes: &[u8], since: Option<u64>, until: Option<u64>) -> Value {
    let window = Window { since: since.map(Ticks), until: until.map(Ticks) };
    let report = report::read(&support::open(bytes), window, |_, _| ());
    render::text::write(&report, &mut std::io::sink()).unwrap();
    let report = render::json::value(&report);
    assert_valid(&report);
    report
}

/// Those of an object's values, in this order.
fn pick(object: &Value, keys: &[&str]) -> Value {
    keys.iter().map(|&key| object[key].clone()).collect()
}

fn series<'a>(report: &'a Value, name: &str, gpu: &Value) -> &'a Value {
    let all = report["timeline"]["series"].as_array().unwrap();
    let found = all.iter().find(|one| one["name"] == name && one["gpu"] == *gpu);
    found.unwrap_or(&Value::Null)
}

fn names(report: &Value) -> Vec<(&str, &Value)> {
    let all = report["timeline"]["series"].as_array().unwrap();
    all.iter().map(|one| (one["name"].as_str().unwrap(), &one["gpu"])).collect()
}

/// Least, greatest and last values of a series of all devices.
fn levels(report: &Value, name: &str) -> Value {
    pick(series(report, name, &json!("all")), &["min_bytes", "max_bytes", "last_bytes"])
}

/// Equal neighbours as one: how many, and what.
fn runs(values: &Value) -> Vec<(usize, u64)> {
    let mut found: Vec<(usize, u64)> = Vec::new();
    for value in values.as_array().unwrap().iter().map(|value| value.as_u64().unwrap()) {
        match found.last_mut() {
            Some((count, last)) if *last == value => *count += 1,
            _ => found.push((1, value)),
        }
    }
    found
}

const LIFE: [&str; 8] = [
    "allocs",
    "alloc_bytes",
    "frees",
    "free_bytes",
    "live_count",
    "live_bytes",
    "peak_bytes",
    "peak_at_ns",
];

const HEIGHT: [&str; 3] = ["live_bytes", "peak_bytes", "peak_at_ns"];

/// One row per device: its number, then these.
fn by_gpu(rows: &Value, keys: &[&str]) -> Value {
    let keys: Vec<&str> = ["gpu"].iter().chain(keys).copied().collect();
    rows.as_array().unwrap().iter().map(|row| pick(row, &keys)).collect()
}

fn class(from: u64, to: u64, count: u64, bytes: u64) -> Value {
    json!({"from_bytes": from, "to_bytes": to, "count": count, "bytes": bytes})
}

fn stretch(from: u64, to: u64, count: u64, bytes: u64) -> Value {
    json!({"from_ns": from, "to_ns": to, "count": count, "bytes": bytes})
}

// Timeline

#[test]
fn each_bucket_knows_its_least_greatest_and_last_value() {
    let report = of(vec![
        alloc(1, BLOCK, 100),
        pool(1, 0x1000, 50),
        free(2, BLOCK),
        alloc(4, 3 * BLOCK, 30),
    ]);
    assert_eq!(report["timeline"]["edges_ns"], json!([0, 1, 2, 3, 4, 4]));
    // The value that a bucket begins with is one of its values.
    let expected = json!([[0, 0, 50, 50, 50], [0, 150, 150, 50, 80], [0, 150, 50, 50, 80]]);
    assert_eq!(levels(&report, "gpu"), expected);
    let parts = json!({"device": [0, 100, 100, 0, 30], "async_pool": [0, 50, 50, 50, 50]});
    assert_eq!(series(&report, "gpu", &json!("all"))["at_max"], parts);
    let expected = json!([[0, 0, 0, 0, 0], [0, 100, 100, 0, 30], [0, 100, 0, 0, 30]]);
    assert_eq!(levels(&report, "device"), expected);
    let expected = json!([[0, 0, 50, 50, 50], [0, 50, 50, 50, 50], [0, 50, 50, 50, 50]]);
    assert_eq!(levels(&report, "async_pool"), expected);
    let whole = 2_097_152;
    let expected = json!([[0, 0, 0, 0, 0], [0, whole, whole, 0, whole], [0, whole, 0, 0, whole]]);
    assert_eq!(levels(&report, "device_blocks"), expected);
    // Nothing else was ever above zero, and there is one device only.
    let all = json!("all");
    let shown = ["gpu", "device", "async_pool", "device_blocks"].map(|name| (name, &all));
    assert_eq!(names(&report), shown);
}

#[test]
fn buckets_double_when_time_outgrows_them_and_no_extreme_is_lost() {
    let report = of(vec![
        alloc(14, BLOCK, 100),
        free(16, BLOCK),
        alloc(31, BLOCK, 40),
        pool(32, 0x1000, 10),
        free(40, BLOCK),
        mark(10_000),
    ]);
    // Buckets of 16: 10,000 ÷ 8 would be 1,250 of them.
    let edges = report["timeline"]["edges_ns"].as_array().unwrap();
    assert_eq!((edges.len(), &edges[1], &edges[625]), (627, &json!(16), &json!(10_000)));
    assert_eq!(edges[626], 10_000);
    let gpu = series(&report, "gpu", &json!("all"));
    assert_eq!(runs(&gpu["min_bytes"]), [(2, 0), (624, 10)]);
    assert_eq!(runs(&gpu["max_bytes"]), [(2, 100), (1, 50), (623, 10)]);
    assert_eq!(runs(&gpu["last_bytes"]), [(1, 100), (1, 40), (624, 10)]);
    assert_eq!(runs(&gpu["at_max"]["device"]), [(2, 100), (1, 40), (623, 0)]);
    assert_eq!(runs(&gpu["at_max"]["async_pool"]), [(2, 0), (624, 10)]);
}

#[test]
fn there_are_1_024_buckets_at_most() {
    let last = |stamp| of(vec![alloc(0, BLOCK, 1), mark(stamp)])["timeline"].clone();
    for (stamp, buckets, width) in [
        (0, 1, 0),
        (1, 2, 1),
        (1_023, 1_024, 1),
        (1_024, 513, 2),
        (2_047, 1_024, 2),
        (2_048, 513, 4),
        (1_000_000, 977, 1_024),
    ] {
        let timeline = last(stamp);
        let edges = timeline["edges_ns"].as_array().unwrap();
        assert_eq!((edges.len(), &edges[1]), (buckets + 1, &json!(width)), "{stamp}");
        assert_eq!(edges[buckets], stamp);
        assert_eq!(runs(&timeline["series"][0]["max_bytes"]), [(buckets, 1)]);
        assert_eq!(timeline["calls"]["alloc_ns"].as_array().unwrap().len(), buckets);
    }
}

#[test]
fn a_log_in_which_nothing_happens_has_no_series_and_one_without_events_no_buckets() {
    let quiet = of(vec![mark(3), mark(5)]);
    assert_eq!(quiet["timeline"]["edges_ns"], json!([0, 1, 2, 3, 4, 5, 5]));
    assert_eq!(quiet["timeline"]["series"], json!([]));
    assert_eq!(quiet["timeline"]["calls"]["free_ns"], json!([0, 0, 0, 0, 0, 0]));
    let empty = told(&Writer::default());
    let calls = json!({"alloc_ns": [], "free_ns": [], "copy_ns": []});
    assert_eq!(empty["timeline"], json!({"edges_ns": [], "series": [], "calls": calls}));
    assert_eq!(pick(&empty["peak"], &["bytes", "at_ns", "held"]), json!([0, null, []]));
}

#[test]
fn time_in_calls_stands_in_the_bucket_in_which_they_take_effect() {
    let report = of(vec![
        event(Kind::DeviceAlloc, 1, &[BLOCK, 8]).lasting(3),
        event(Kind::DeviceAlloc, 2, &[0, 8]).lasting(2).failed(),
        // A free takes effect when it begins.
        event(Kind::Free, 6, &[BLOCK]).lasting(100),
        event(Kind::Copy, 5, &[copy::HOST_TO_DEVICE, 1, 2, 3, 0]).lasting(2),
        event(Kind::Set, 3, &[0, 1, 2, 0]).lasting(4),
        // Facts and runtime calls are not calls for memory.
        event(Kind::RuntimeCall, 1, &[1, 1]).lasting(6).site(ALONE_SITE),
    ]);
    let calls = &report["timeline"]["calls"];
    assert_eq!(calls["alloc_ns"], json!([0, 0, 0, 0, 5, 0, 0, 0]));
    assert_eq!(calls["free_ns"], json!([0, 0, 0, 0, 0, 0, 100, 0]));
    assert_eq!(calls["copy_ns"], json!([0, 0, 0, 0, 0, 0, 0, 6]));
}

#[test]
fn a_reading_stands_until_the_next() {
    let sample = |stamp, device, used, process| {
        at(Kind::Sample, stamp, &[device, used, 99, process]).site(0)
    };
    let mut log =
        Writer::of(vec![sample(2, 0, 9, 5), sample(3, 1, 7, 0), sample(5, 0, 6, 0), mark(6)]);
    log.gpus = 2;
    let report = told(&log);
    let of = |name, gpu| {
        pick(series(&report, name, &json!(gpu)), &["min_bytes", "max_bytes", "last_bytes"])
    };
    let expected = [[0, 0, 0, 9, 9, 6, 6], [0, 0, 9, 9, 9, 9, 6], [0, 0, 9, 9, 9, 6, 6]];
    assert_eq!(of("sampled_used", 0), json!(expected));
    let expected = [[0, 0, 0, 4, 4, 4, 4], [0, 0, 4, 4, 4, 4, 4], [0, 0, 4, 4, 4, 4, 4]];
    assert_eq!(of("sampled_process", 0), json!(expected));
    let expected = [[0, 0, 0, 0, 7, 7, 7], [0, 0, 0, 7, 7, 7, 7], [0, 0, 0, 7, 7, 7, 7]];
    assert_eq!(of("sampled_used", 1), json!(expected));
    assert_eq!(series(&report, "sampled_process", &json!(1)), &Value::Null, "never known");
}

#[test]
fn the_parts_of_the_bucket_of_a_peak_are_those_of_the_peak() {
    // Buckets of 2 from the mark on; 100 is reached at 2,000 and again, otherwise, at 2,001.
    let report = of(vec![
        mark(2_000),
        alloc(2_000, BLOCK, 100),
        free(2_001, BLOCK),
        pool(2_001, 0x1000, 100),
    ]);
    assert_eq!(report["peak"]["held"][0]["ledger"], "device");
    let parts = &series(&report, "gpu", &json!("all"))["at_max"];
    assert_eq!(parts["device"][1_000], 100);
}

// Sums, peaks and what they are made of

#[test]
fn sums_add_ledgers_event_by_event() {
    let report = of(vec![
        alloc(1, BLOCK, 100),
        at(Kind::PinnedAlloc, 2, &[0x10, 10, 0]),
        at(Kind::HostRegister, 3, &[0x20, 20, 0]),
        free(4, BLOCK),
        pool(5, 0x1000, 60),
        at(Kind::PhysicalCreate, 6, &[1, 30, 1, 0]),
        at(Kind::PhysicalCreate, 7, &[2, 5, 2, 0]),
        at(Kind::PinnedFree, 8, &[0x10]),
        at(Kind::ManagedAlloc, 9, &[0x2000, 1_000, 1]),
        at(Kind::AddressReserve, 10, &[0x9000, 5_000]),
        at(Kind::Map, 11, &[0x9000, 30, 0, 1]),
    ]);
    let (gpu, host) = (&report["sums"]["gpu"], &report["sums"]["host"]);
    assert_eq!(pick(gpu, &HEIGHT), json!([90, 100, 1]));
    assert_eq!(gpu["adds"], json!(["device", "async_pool", "vmm_physical", "graph", "array"]));
    assert_eq!(by_gpu(&gpu["by_gpu"], &HEIGHT), json!([[0, 90, 100, 1]]));
    assert_eq!(pick(host, &HEIGHT), json!([25, 35, 7]));
    assert_eq!(host["adds"], json!(["pinned", "registered", "vmm_host"]));
    assert_eq!(host["by_gpu"], json!([]), "host memory is on no device");
    assert_eq!(pick(&report["peak"], &["bytes", "at_ns"]), json!([100, 1]));
    assert_eq!(report["live"]["bytes"], 90);
    let parts = &series(&report, "host", &json!("all"))["at_max"];
    assert_eq!(parts["pinned"], json!([0, 0, 10, 10, 10, 10, 10, 10, 10, 0, 0, 0]));
    assert_eq!(parts["registered"], json!([0, 0, 0, 20, 20, 20, 20, 20, 20, 20, 20, 20]));
    assert_eq!(parts["vmm_host"], json!([0, 0, 0, 0, 0, 0, 0, 5, 5, 5, 5, 5]));
}

#[test]
fn the_peak_of_a_sum_is_a_moment_and_not_the_sum_of_its_ledgers_peaks() {
    let report = of(vec![
        alloc(1, BLOCK, 100),
        free(2, BLOCK),
        pool(3, 0x1000, 90),
        alloc(4, BLOCK, 20),
        free(5, 0x1000),
        pool(6, 0x1000, 90),
        alloc(7, BLOCK + 512, 1),
    ]);
    let peak = &report["peak"];
    // 110 was reached at 4 and again at 6; 111 at 7 for the first time.
    assert_eq!(pick(peak, &["bytes", "at_ns"]), json!([111, 7]));
    let held = peak["held"].as_array().unwrap().iter();
    let held: Vec<Value> = held.map(|row| pick(row, &["ledger", "count", "bytes"])).collect();
    assert_eq!(held, [json!(["async_pool", 1, 90]), json!(["device", 2, 21])]);
    let device = &peak["ledgers"]["device"];
    assert_eq!(pick(device, &["bytes", "at_ns"]), json!([100, 1]));
    assert_eq!(device["by_size"], json!([class(64, 127, 1, 100)]));
    let pool = &peak["ledgers"]["async_pool"];
    assert_eq!(pick(pool, &["bytes", "at_ns"]), json!([90, 3]), "when it was first reached");
}

#[test]
fn a_peak_and_the_end_are_cut_by_size_and_by_age() {
    let report = of(vec![
        alloc(10, BLOCK, 100),
        alloc(300, 2 * BLOCK, 3),
        pool(511, 0x1000, 2),
        free(600, BLOCK),
        alloc(5_000, 3 * BLOCK, 50),
        mark(10_000),
    ]);
    // Buckets of 16, so stretches of 256.
    let peak = &report["peak"];
    assert_eq!(pick(peak, &["bytes", "at_ns"]), json!([105, 511]));
    assert_eq!(peak["by_size"], json!([class(2, 3, 2, 5), class(64, 127, 1, 100)]));
    assert_eq!(peak["by_age"], json!([stretch(0, 256, 1, 100), stretch(256, 512, 2, 5)]));
    let live = &report["live"];
    assert_eq!(live["bytes"], 55);
    assert_eq!(live["by_size"], json!([class(2, 3, 2, 5), class(32, 63, 1, 50)]));
    let ages = json!([stretch(256, 512, 2, 5), stretch(4_864, 5_120, 1, 50)]);
    assert_eq!(live["by_age"], ages);
    let pool = &peak["ledgers"]["async_pool"];
    assert_eq!(pool["by_age"], json!([stretch(256, 512, 1, 2)]));
}

#[test]
fn sizes_fall_into_classes_from_one_power_of_two_to_the_next() {
    let sizes = [1, 2, 3, 4, 1_023, 1_024, 2_047, 2_048];
    let blocks = sizes.iter().zip(1..).map(|(&bytes, stamp)| alloc(stamp, stamp * BLOCK, bytes));
    let report = of(blocks.collect());
    let expected = json!([
        class(1, 1, 1, 1),
        class(2, 3, 2, 5),
        class(4, 7, 1, 4),
        class(512, 1_023, 1, 1_023),
        class(1_024, 2_047, 2, 3_071),
        class(2_048, 4_095, 1, 2_048),
    ]);
    assert_eq!(report["live"]["by_size"], expected);
    assert_eq!(report["peak"]["by_size"], expected);
}

#[test]
fn what_is_left_is_grouped_by_site_and_knows_its_oldest() {
    let report = of(vec![
        alloc(5, BLOCK, 7),
        alloc(3, 2 * BLOCK, 4),
        alloc(1, 3 * BLOCK, 2),
        alloc(9, 4 * BLOCK, 50).site(RUNTIME_SITE),
        free(10, 3 * BLOCK),
        at(Kind::AddressReserve, 11, &[0x9000, 5]).site(999),
    ]);
    let rows = report["live_at_end"].as_array().unwrap().iter();
    let keys = ["ledger", "count", "bytes", "oldest_at_ns"];
    let rows: Vec<Value> = rows.map(|row| pick(row, &keys)).collect();
    let expected = [
        json!(["device", 1, 50, 9]),
        json!(["device", 2, 11, 3]),
        json!(["vmm_address", 1, 5, 11]),
    ];
    assert_eq!(rows, expected);
    assert_eq!(report["live_at_end"][0]["site"]["call"], "cudaMalloc");
    assert_eq!(report["live_at_end"][2]["site"]["api"], Value::Null, "no such site");
}

// The window

/// 100 is live at 35, 137 at 50, 37 at 60 and 38 at the end.
fn seven() -> Writer {
    Writer::of(vec![
        alloc(10, BLOCK, 100),
        pool(20, 0x1000, 50),
        free(30, 0x1000),
        alloc(40, 2 * BLOCK, 30),
        pool(50, 0x2000, 7),
        free(60, BLOCK),
        alloc(70, 3 * BLOCK, 1),
    ])
}

#[test]
fn counts_begin_with_the_window_and_what_was_live_stays_live() {
    let report = within(&seven(), Some(35), Some(60));
    assert_eq!(report["window"], json!({"since_ns": 35, "until_ns": 60}));
    assert_eq!(report["trace"]["events"], 3);
    let device = &report["ledgers"]["device"];
    assert_eq!(pick(device, &LIFE), json!([1, 30, 1, 100, 1, 30, 130, 40]));
    let pool = &report["ledgers"]["async_pool"];
    assert_eq!(pick(pool, &LIFE), json!([1, 7, 0, 0, 1, 7, 7, 50]));
    assert_eq!(pick(&report["sums"]["gpu"], &HEIGHT), json!([37, 137, 50]));
    assert_eq!(by_gpu(&device["by_gpu"], &["allocs", "frees"]), json!([[0, 1, 1]]));
    let rows = report["live_at_end"].as_array().unwrap().iter();
    let rows: Vec<Value> = rows.map(|row| pick(row, &["ledger", "bytes"])).collect();
    assert_eq!(rows, [json!(["device", 30]), json!(["async_pool", 7])]);
    // 25 buckets of one from 35 on, and that of the end.
    let edges = report["timeline"]["edges_ns"].as_array().unwrap();
    assert_eq!((&edges[0], edges.len(), &edges[26]), (&json!(35), 27, &json!(60)));
    let gpu = series(&report, "gpu", &json!("all"));
    assert_eq!(runs(&gpu["max_bytes"]), [(5, 100), (10, 130), (11, 137)]);
    assert_eq!(runs(&gpu["min_bytes"]), [(6, 100), (10, 130), (9, 137), (1, 37)]);
    assert_eq!(runs(&gpu["at_max"]["device"]), [(5, 100), (21, 130)]);
    let pool = series(&report, "async_pool", &json!("all"));
    assert_eq!(runs(&pool["max_bytes"]), [(15, 0), (11, 7)], "what came before is not in it");
}

#[test]
fn a_peak_begins_with_what_is_live_when_the_window_begins() {
    let report = within(&seven(), Some(55), Some(69));
    let peak = &report["peak"];
    assert_eq!(pick(peak, &["bytes", "at_ns"]), json!([137, 55]));
    assert_eq!(pick(&report["ledgers"]["device"], &LIFE), json!([0, 0, 1, 100, 1, 30, 130, 55]));
    let held = peak["held"].as_array().unwrap().iter();
    let held: Vec<Value> = held.map(|row| pick(row, &["ledger", "count", "bytes"])).collect();
    assert_eq!(held, [json!(["device", 2, 130]), json!(["async_pool", 1, 7])]);
    // What is older than the window stands in its first stretch.
    assert_eq!(peak["by_age"], json!([stretch(55, 71, 3, 137)]));
    let sizes = [class(4, 7, 1, 7), class(16, 31, 1, 30), class(64, 127, 1, 100)];
    assert_eq!(peak["by_size"], json!(sizes));
    // Nothing of it was made within.
    assert_eq!(report["live_at_end"], json!([]));
    assert_eq!(pick(&report["live"], &["bytes", "by_size", "by_age"]), json!([37, [], []]));
}

#[test]
fn both_ends_are_within_the_window() {
    let log = seven();
    let allocs = |since, until| within(&log, since, until)["ledgers"]["device"]["allocs"].clone();
    assert_eq!(allocs(Some(40), Some(70)), 2);
    assert_eq!(allocs(Some(41), Some(70)), 1);
    assert_eq!(allocs(Some(40), Some(69)), 1);
    assert_eq!(allocs(None, Some(40)), 2);
    assert_eq!(allocs(None, Some(9)), 0);
    let cut = within(&log, None, Some(40));
    assert_eq!(pick(&cut["sums"]["gpu"], &HEIGHT), json!([130, 150, 20]));
    assert_eq!(cut["timeline"]["edges_ns"].as_array().unwrap().last(), Some(&json!(40)));
    assert_eq!(pick(&cut["window"], &["since_ns", "until_ns"]), json!([null, 40]));
}

#[test]
fn an_event_is_within_the_window_when_its_effect_is() {
    let log = Writer::of(vec![
        event(Kind::DeviceAlloc, 10, &[BLOCK, 100]).lasting(20),
        event(Kind::Free, 40, &[BLOCK]).lasting(20),
    ]);
    // The allocation takes effect at 30, the free at 40.
    let counts = |since, until| {
        let report = within(&log, Some(since), Some(until));
        pick(&report["ledgers"]["device"], &["allocs", "frees"])
    };
    assert_eq!(counts(11, 30), json!([1, 0]));
    assert_eq!(counts(11, 29), json!([0, 0]));
    assert_eq!(counts(31, 40), json!([0, 1]));
    assert_eq!(counts(41, 60), json!([0, 0]));
    let stalls = &within(&log, Some(11), Some(45))["stalls"];
    assert_eq!(stalls["alloc"]["total_ns"], 20, "a call counts whole");
}

#[test]
fn a_window_behind_the_end_counts_nothing_and_still_knows_what_is_live() {
    let report = within(&seven(), Some(1_000), None);
    assert_eq!(report["trace"]["events"], 0);
    assert_eq!(pick(&report["ledgers"]["device"], &LIFE), json!([0, 0, 0, 0, 2, 31, 31, 1_000]));
    assert_eq!(pick(&report["peak"], &["bytes", "at_ns"]), json!([38, 1_000]));
    assert_eq!(report["timeline"]["edges_ns"], json!([1_000, 1_000]));
    assert_eq!(levels(&report, "gpu"), json!([[38], [38], [38]]));
    assert_eq!(report["stalls"]["alloc"]["count"], 0);
    assert_eq!(report["calls"], json!([]));
    assert_eq!(report["process"]["threads"], 0);
}

#[test]
fn a_window_that_ends_before_it_begins_counts_nothing() {
    // What is behind its end is not applied, so 100 is live.
    let report = within(&seven(), Some(60), Some(30));
    assert_eq!(report["trace"]["events"], 0);
    assert_eq!(pick(&report["sums"]["gpu"], &HEIGHT), json!([100, 100, 60]));
    assert_eq!(report["live_at_end"], json!([]));
    assert_eq!(levels(&report, "gpu"), json!([[100], [100], [100]]));
}

#[test]
fn a_window_from_before_time_zero_counts_everything() {
    let mut bytes = seven().bytes();
    put64(&mut bytes, file::START_TICKS, 8);
    let report = within_bytes(&bytes, Some(3), None);
    assert_eq!(report["window"], json!({"since_ns": -5, "until_ns": null}));
    assert_eq!(pick(&report["ledgers"]["device"], &LIFE), json!([3, 131, 1, 100, 2, 31, 130, 32]));
    let edges = report["timeline"]["edges_ns"].as_array().unwrap();
    assert_eq!((&edges[0], edges.last()), (&json!(-5), Some(&json!(62))));
    assert_eq!(report["live_at_end"].as_array().unwrap().len(), 1 + 1);
}

#[test]
fn everything_that_is_counted_begins_with_the_window() {
    let sample = |stamp, used| at(Kind::Sample, stamp, &[0, used, 99, used + 1]).site(0);
    let busy = |from: u64, address: u64| {
        let copied = [copy::HOST_TO_DEVICE, address, 0x10, 8, 0];
        vec![
            event(Kind::DeviceAlloc, from, &[address, 64]).lasting(2),
            alloc(from + 3, 0, 5),
            at(Kind::DeviceAlloc, from + 4, &[0, 5]).failed(),
            alloc(from + 5, address, 32),
            free(from + 6, 0xdead_0000),
            event(Kind::Copy, from + 7, &copied).lasting(1),
            event(Kind::Copy, from + 8, &copied).lasting(1).failed(),
            event(Kind::Set, from + 9, &[0, address, 8, 0]).lasting(1),
            event(Kind::Set, from + 10, &[0, address, 8, 0]).lasting(1).failed(),
            mark(from + 12),
        ]
    };
    let mut log = Writer::default();
    busy(10, BLOCK).into_iter().for_each(|one| log.push(0, one));
    log.push(0, sample(30, 90));
    busy(110, 2 * BLOCK).into_iter().for_each(|one| log.push(1, one));
    log.push(1, sample(130, 40));
    let whole = told(&log);
    let half = within(&log, Some(100), None);
    for (report, times) in [(&whole, 2), (&half, 1)] {
        assert_eq!(report["trace"]["events"], 11 * times);
        assert_eq!(report["process"]["threads"], times);
        assert_eq!((&report["null_calls"], &report["overlaps"]), (&json!(times), &json!(times)));
        assert_eq!(report["unknown_frees"], times);
        assert_eq!(report["failed_copies"], times);
        assert_eq!(report["failed_sets"], times);
        let device = &report["ledgers"]["device"];
        let keys = ["allocs", "alloc_bytes", "failed", "implicit_frees", "implicit_bytes"];
        let expected = json!([2 * times, 96 * times, times, times, 64 * times]);
        assert_eq!(pick(device, &keys), expected);
        let moved = ["count", "bytes", "total_ns", "max_ns"];
        let expected = json!([times, 8 * times, times, 1]);
        assert_eq!(pick(&report["copies"][0], &moved), expected);
        assert_eq!(report["copies"][0]["by_size"], json!([class(8, 15, times, 8 * times)]));
        assert_eq!(pick(&report["sets"], &moved), expected);
        assert_eq!(report["by_gpu"][0]["copies"][0]["count"], times);
        let stalls = &report["stalls"];
        let count = |purpose: &str| stalls[purpose]["count"].as_u64().unwrap();
        assert_eq!(["alloc", "free", "copy", "set"].map(count), [4, 1, 2, 2].map(|n| n * times));
        assert_eq!(stalls["alloc"]["total_ns"], 2 * times);
        assert_eq!(stalls["alloc"]["longest"].as_array().unwrap().len() as u64, 4 * times);
        assert_eq!(report["mark_count"], times);
        assert_eq!(report["marks"].as_array().unwrap().len() as u64, times);
        assert_eq!(report["calls"][0]["calls"], 9 * times);
    }
    assert_eq!(half["marks"][0]["at_ns"], 122);
    assert_eq!(half["examples"]["unknown_frees"][0]["at_ns"], 116);
    let sampled = ["samples", "last_used_bytes", "max_used_bytes", "max_process_bytes"];
    assert_eq!(pick(&whole["sampled"][0], &sampled), json!([2, 40, 90, 90]));
    assert_eq!(pick(&half["sampled"][0], &sampled), json!([1, 40, 40, 40]));
    // The reading from before stands until the first one within.
    let used = series(&half, "sampled_used", &json!(0));
    assert_eq!(runs(&used["max_bytes"]), [(31, 90)]);
    assert_eq!(runs(&used["last_bytes"]), [(30, 90), (1, 40)]);
}

#[test]
fn a_range_that_is_open_when_the_window_begins_ends_within_it() {
    let log = Writer::of(vec![
        at(Kind::RangePush, 10, &[0]).site(0).text("outer"),
        at(Kind::RangePush, 11, &[0]).site(0).text("inner"),
        at(Kind::RangePop, 12, &[]).site(0),
        at(Kind::RangeStart, 13, &[5, 0]).site(0).text("phase"),
        at(Kind::RangePush, 20, &[0]).site(0).text("inner"),
        at(Kind::RangePop, 23, &[]).site(0),
        at(Kind::RangePop, 30, &[]).site(0),
    ]);
    let report = within(&log, Some(15), None);
    let row = |name: &str| {
        let rows = report["ranges"].as_array().unwrap();
        let row = rows.iter().find(|row| row["name"] == name).unwrap();
        pick(row, &["count", "total_ns", "open"])
    };
    assert_eq!(row("outer"), json!([1, 20, 0]), "its whole length");
    assert_eq!(row("inner"), json!([1, 3, 0]), "only the second");
    assert_eq!(row("phase"), json!([0, 0, 1]));
    let cut = within(&log, Some(15), Some(25));
    assert_eq!(cut["ranges"][0], json!({"name": "outer", "count": 0, "total_ns": 0, "open": 1}));
}

#[test]
fn a_window_over_a_long_silence_has_no_more_buckets_than_any_other() {
    let hour = 3_600_000_000_000;
    let log = Writer::of(vec![alloc(5, BLOCK, 7), mark(2 * hour)]);
    for (since, until) in
        [(None, Some(hour)), (Some(100), Some(hour)), (Some(hour / 2), Some(hour))]
    {
        let report = within(&log, since, until);
        let edges = report["timeline"]["edges_ns"].as_array().unwrap();
        assert!((512..=1_025).contains(&edges.len()), "{} edges", edges.len());
        assert_eq!(edges.first(), Some(&json!(since.unwrap_or(0))));
        assert_eq!(edges.last(), Some(&json!(hour)));
        assert_eq!(pick(&report["peak"], &["bytes", "at_ns"]), json!([7, since.unwrap_or(5)]));
    }
}

#[test]
fn nothing_is_looked_at_before_the_window_begins() {
    let log = Writer::of(vec![alloc(5, BLOCK, 7), at(Kind::PhysicalCreate, 6, &[1, 30, 1, 0])]);
    let found = within(&log, Some(1_000), None)["fragmentation"].clone();
    assert_eq!(found["device"]["worst"]["at_ns"], 1_000);
    assert_eq!(found["device"]["pins_at_ns"], 1_000);
    assert_eq!(
        pick(&found["vmm"]["worst"], &["at_ns", "unmapped_physical_bytes"]),
        json!([1_000, 30])
    );
}

#[test]
fn contexts_are_counted_from_the_window_on() {
    let log = Writer::of(vec![
        at(Kind::ContextCreate, 1, &[0xc0, 0]),
        at(Kind::ContextCreate, 2, &[0xc1, 0]),
        at(Kind::ContextDestroy, 20, &[0xc0]),
    ]);
    let expected = json!({"created": 0, "destroyed": 1, "live": 1});
    assert_eq!(within(&log, Some(10), None)["handles"]["contexts"], expected);
}

#[test]
fn ranges_that_ended_before_the_window_are_not_told() {
    let range = |stamp: u64, name: String| {
        [
            at(Kind::RangePush, stamp, &[0]).site(0).text(&name),
            at(Kind::RangePop, stamp, &[]).site(0),
        ]
    };
    let before = (0..1_000).flat_map(|number| range(1, format!("before {number}")));
    let log = Writer::of(before.chain(range(20, "within".to_owned())).collect());
    let report = within(&log, Some(10), None);
    assert_eq!(report["uncounted_ranges"], 0);
    assert_eq!(report["ranges"].as_array().unwrap().len(), 1);
}

#[test]
fn the_worst_ranges_begin_with_those_at_the_beginning_of_the_window() {
    let log = Writer::of(vec![
        at(Kind::PhysicalCreate, 1, &[1, 30, 1, 0]),
        at(Kind::PhysicalRelease, 10, &[1]),
        mark(12),
    ]);
    let found = within(&log, Some(10), None)["fragmentation"]["vmm"]["worst"].clone();
    assert_eq!(pick(&found, &["at_ns", "unmapped_physical_bytes"]), json!([10, 30]));
}

#[test]
fn a_window_does_not_make_a_damaged_log_whole() {
    let mut bytes = Writer { per_chunk: 1, ..seven() }.bytes();
    // The last event's kind, which no version has.
    bytes[7 * CHUNK_SIZE + CHUNK_HEADER] = 0x7e;
    let complete = |until| within_bytes(&bytes, None, until)["trace"]["complete"].clone();
    assert_eq!(complete(None), complete(Some(25)));
}

#[test]
fn a_window_does_not_change_how_long_the_process_ran() {
    let mut log = Writer { per_chunk: 1, exited: false, ..seven() };
    log.gpus = 1;
    assert_eq!(told(&log)["process"]["duration_ns"], 70);
    assert_eq!(within(&log, None, Some(25))["process"]["duration_ns"], 70);
}

// Devices

/// Two devices; the second is used from 10 on, by another thread.
fn two_devices() -> Writer {
    let mut log = Writer { gpus: 2, ..Writer::default() };
    log.push(0, use_device(1, 0));
    log.push(0, alloc(2, BLOCK, 100));
    log.push(0, at(Kind::PinnedAlloc, 3, &[0x10, 5, 0]));
    log.push(1, use_device(10, 1));
    log.push(1, alloc(11, 8 * BLOCK, 70));
    log.push(0, free(12, BLOCK));
    log.push(1, pool(13, 0x1000, 20));
    // Whoever frees it, it is taken from the device that it is on.
    log.push(0, free(14, 8 * BLOCK));
    log
}

#[test]
fn a_device_that_appears_late_has_figures_of_its_own_from_the_beginning_on() {
    let report = told(&two_devices());
    assert_eq!(pick(&report["sums"]["gpu"], &HEIGHT), json!([20, 170, 11]));
    let rows = json!([[0, 0, 100, 2], [1, 20, 90, 13]]);
    assert_eq!(by_gpu(&report["sums"]["gpu"]["by_gpu"], &HEIGHT), rows);
    let device = &report["ledgers"]["device"]["by_gpu"];
    let expected = json!([[0, 1, 1, 0, 100, 2], [1, 1, 1, 0, 70, 11]]);
    assert_eq!(
        by_gpu(device, &["allocs", "frees", "live_bytes", "peak_bytes", "peak_at_ns"]),
        expected
    );
    assert_eq!(by_gpu(&report["ledgers"]["async_pool"]["by_gpu"], &["allocs"]), json!([[1, 1]]));
    let zero_then = |name, gpu: u64| {
        let one = series(&report, name, &json!(gpu));
        (runs(&one["max_bytes"]), runs(&one["last_bytes"]))
    };
    assert_eq!(
        zero_then("gpu", 0),
        (vec![(2, 0), (11, 100), (2, 0)], vec![(2, 0), (10, 100), (3, 0)])
    );
    let max = vec![(11, 0), (2, 70), (2, 90)];
    assert_eq!(zero_then("gpu", 1), (max, vec![(11, 0), (2, 70), (1, 90), (1, 20)]));
    assert_eq!(zero_then("device_blocks", 1).0, [(11, 0), (4, BLOCK)]);
    let parts = &series(&report, "gpu", &json!(1))["at_max"];
    assert_eq!(runs(&parts["device"]), [(11, 0), (4, 70)]);
    assert_eq!(runs(&parts["async_pool"]), [(13, 0), (2, 20)]);
}

#[test]
fn each_device_has_a_peak_and_an_end_of_its_own() {
    let report = told(&two_devices());
    let peaks: Vec<Value> = report["by_gpu"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            let held = row["peak"]["held"].as_array().unwrap().iter();
            let held: Vec<Value> = held.map(|row| pick(row, &["ledger", "bytes"])).collect();
            json!([
                row["gpu"],
                row["peak"]["bytes"],
                row["peak"]["at_ns"],
                held,
                row["live"]["bytes"]
            ])
        })
        .collect();
    let expected = [
        json!([0, 100, 2, [["device", 100]], 0]),
        json!([1, 90, 13, [["device", 70], ["async_pool", 20]], 20]),
    ];
    assert_eq!(peaks, expected);
    assert_eq!(report["by_gpu"][0]["live_at_end"], json!([]));
    assert_eq!(report["by_gpu"][1]["live_at_end"][0]["bytes"], 20);
    assert_eq!(report["by_gpu"][1]["fragmentation"]["device"]["worst"]["waste_bytes"], BLOCK - 70);
    assert_eq!(report["by_gpu"][1]["fragmentation"]["vmm"], Value::Null);
}

#[test]
fn host_memory_and_address_space_are_on_no_device() {
    let report = told(&two_devices());
    assert_eq!(report["ledgers"]["pinned"]["by_gpu"], json!([]));
    assert!(names(&report).contains(&("pinned", &json!("all"))));
    let devices = names(&report).into_iter().filter(|(_, gpu)| **gpu != json!("all"));
    let of_devices: Vec<&str> = devices.map(|(name, _)| name).collect();
    let each = ["gpu", "device", "device_blocks"];
    let late = ["gpu", "device", "async_pool", "device_blocks"];
    assert_eq!(of_devices, [each.as_slice(), late.as_slice()].concat());
    // With one device too, and as long as no other was used.
    let report = of(vec![
        at(Kind::PinnedAlloc, 1, &[0x10, 5, 0]),
        at(Kind::AddressReserve, 2, &[0x9000, 5]),
        at(Kind::Copy, 3, &[copy::HOST_TO_HOST, 1, 2, 3, 0]),
        at(Kind::PinnedAlloc, 4, &[0, 5, 0]).failed(),
    ]);
    assert_eq!(report["by_gpu"], json!([]));
    assert_eq!(report["copies"][0]["count"], 1);
}

#[test]
fn figures_of_devices_go_on_through_a_window() {
    let report = within(&two_devices(), Some(12), Some(13));
    let rows = json!([[0, 0, 100, 12], [1, 90, 90, 13]]);
    assert_eq!(by_gpu(&report["sums"]["gpu"]["by_gpu"], &HEIGHT), rows);
    let device = &report["ledgers"]["device"]["by_gpu"];
    assert_eq!(by_gpu(device, &["allocs", "frees"]), json!([[0, 0, 1], [1, 0, 0]]));
    assert_eq!(pick(&report["sums"]["gpu"], &HEIGHT), json!([90, 170, 12]));
    let one = series(&report, "gpu", &json!(1));
    assert_eq!(one["max_bytes"], json!([70, 90]));
    assert_eq!(one["at_max"]["device"], json!([70, 70]));
    assert_eq!(report["by_gpu"][1]["live_at_end"][0]["ledger"], "async_pool");
}

#[test]
fn the_device_is_that_of_the_last_word_about_it_else_not_known() {
    let runtime = |written: Written| written.site(RUNTIME_SITE);
    let mut log = Writer::of(vec![
        // No word yet: a call of the driver is on no known device, one of the runtime on 0.
        alloc(1, BLOCK, 1),
        runtime(alloc(2, 2 * BLOCK, 2)),
        use_device(3, 2),
        runtime(alloc(4, 3 * BLOCK, 4)),
        at(Kind::ContextCreate, 5, &[0xc0, 1]),
        at(Kind::ContextCurrent, 6, &[0xc0]).site(0),
        alloc(7, 4 * BLOCK, 8),
        runtime(alloc(8, 5 * BLOCK, 16)),
        use_device(9, 2),
        alloc(10, 6 * BLOCK, 32),
        // A context that nothing was said about.
        at(Kind::ContextCurrent, 11, &[0xc7]).site(0),
        alloc(12, 7 * BLOCK, 64),
        at(Kind::ContextDevice, 13, &[0xc7, 1]).site(0),
        alloc(14, 8 * BLOCK, 128),
        // Physical memory lies where it was put.
        at(Kind::PhysicalCreate, 15, &[1, 1_000, 1, 0]),
    ]);
    log.gpus = 3;
    let report = told(&log);
    let expected = json!([[null, 65], [0, 2], [1, 152], [2, 36]]);
    assert_eq!(by_gpu(&report["ledgers"]["device"]["by_gpu"], &["live_bytes"]), expected);
    let expected =
        json!([[null, 65, 65, 12], [0, 1_002, 1_002, 15], [1, 152, 152, 14], [2, 36, 36, 10]]);
    assert_eq!(by_gpu(&report["sums"]["gpu"]["by_gpu"], &HEIGHT), expected);
    let gpus: Vec<&Value> =
        report["by_gpu"].as_array().unwrap().iter().map(|row| &row["gpu"]).collect();
    assert_eq!(gpus, [&Value::Null, &json!(0), &json!(1), &json!(2)]);
    assert!(names(&report).contains(&("gpu", &Value::Null)));
    // On a machine with one GPU there is no other.
    let report = of(vec![alloc(1, BLOCK, 1)]);
    assert_eq!(by_gpu(&report["ledgers"]["device"]["by_gpu"], &["live_bytes"]), json!([[0, 1]]));
}

#[test]
fn an_allocation_does_not_change_the_device_of_later_ones() {
    // A context on device 1, then none: whether something was allocated between must not matter.
    let devices = |between: Option<Written>| {
        let before =
            [at(Kind::ContextCreate, 1, &[0xc0, 1]), at(Kind::ContextCurrent, 2, &[0xc0]).site(0)];
        let after = [at(Kind::ContextCurrent, 4, &[0]).site(0), alloc(5, BLOCK, 7).site(FREE_SITE)];
        let mut log = Writer::of(before.into_iter().chain(between).chain(after).collect());
        log.gpus = 2;
        let report = told(&log);
        let rows = report["by_gpu"].as_array().unwrap().iter();
        let left = |row: &Value| row["live_at_end"].as_array().unwrap().clone();
        let ours = |row: &&Value| left(row).iter().any(|held| held["bytes"] == 7);
        rows.filter(ours).map(|row| row["gpu"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(devices(Some(alloc(3, 2 * BLOCK, 100))), devices(None));
}

#[test]
fn a_copy_counts_on_each_device_that_it_has_an_end_on() {
    let copied = |stamp, mode, to, from, bytes| at(Kind::Copy, stamp, &[mode, to, from, bytes, 0]);
    let mut log = Writer::of(vec![
        use_device(1, 0),
        alloc(2, BLOCK, 100),
        use_device(3, 1),
        alloc(4, 8 * BLOCK, 100),
        use_device(5, 2),
        copied(6, copy::UNIFIED, BLOCK, 0x10, 1),
        copied(7, copy::UNIFIED, 8 * BLOCK, BLOCK, 2),
        copied(8, copy::PEER, BLOCK, 8 * BLOCK, 4),
        // An end that no ledger knows is on the device of the thread.
        copied(9, copy::DEVICE_TO_DEVICE, BLOCK, 0x7000_0000, 8),
        copied(10, copy::DEVICE_TO_HOST, 0x10, 8 * BLOCK, 16),
        copied(11, copy::HOST_TO_HOST, 0x10, 0x20, 32),
        copied(12, copy::DEVICE_TO_DEVICE, BLOCK, BLOCK + 50, 64),
        at(Kind::Set, 13, &[0, 8 * BLOCK, 7, 0]),
        at(Kind::Set, 14, &[0, 0x7000_0000, 9, 0]),
    ]);
    log.gpus = 3;
    let report = told(&log);
    let rows = |copies: &Value| {
        let rows = copies.as_array().unwrap().iter();
        rows.map(|row| pick(row, &["direction", "count", "bytes"])).collect::<Vec<_>>()
    };
    let of = |gpu: usize| rows(&report["by_gpu"][gpu]["copies"]);
    let all = [
        json!(["host_to_device", 1, 1]),
        json!(["device_to_host", 1, 16]),
        json!(["device_to_device", 3, 74]),
        json!(["host_to_host", 1, 32]),
        json!(["peer", 1, 4]),
    ];
    assert_eq!(rows(&report["copies"]), all);
    let first = [
        json!(["host_to_device", 1, 1]),
        json!(["device_to_device", 3, 74]),
        json!(["peer", 1, 4]),
    ];
    assert_eq!(of(0), first);
    let second = [
        json!(["device_to_host", 1, 16]),
        json!(["device_to_device", 1, 2]),
        json!(["peer", 1, 4]),
    ];
    assert_eq!(of(1), second);
    assert_eq!(of(2), [json!(["device_to_device", 1, 8])]);
    let sets = report["by_gpu"].as_array().unwrap().iter();
    let sets: Vec<Value> = sets.map(|row| pick(&row["sets"], &["count", "bytes"])).collect();
    assert_eq!(sets, [json!([0, 0]), json!([1, 7]), json!([1, 9])]);
    assert_eq!(pick(&report["sets"], &["count", "bytes"]), json!([2, 16]));
}

#[test]
fn three_devices_double_their_buckets_together() {
    let mut log = Writer { gpus: 3, ..Writer::default() };
    for gpu in 0..3 {
        log.push(gpu, use_device(gpu as u64, gpu as u64));
        log.push(gpu, alloc(100 * gpu as u64 + 10, (10 + gpu as u64) * BLOCK, 1 << gpu));
    }
    log.push(1, free(3_000, 12 * BLOCK));
    log.push(2, mark(4_000));
    let report = told(&log);
    // Buckets of 4, and 4,000 begins the last.
    let one = |gpu: u64| runs(&series(&report, "gpu", &json!(gpu))["max_bytes"]);
    assert_eq!(one(0), [(2, 0), (999, 1)]);
    assert_eq!(one(1), [(27, 0), (974, 2)]);
    assert_eq!(one(2), [(52, 0), (699, 4), (250, 0)]);
    let all = runs(&series(&report, "gpu", &json!("all"))["max_bytes"]);
    assert_eq!(all, [(2, 0), (25, 1), (25, 3), (699, 7), (250, 3)]);
}

// 2 MiB blocks

const BLOCKS: [&str; 5] =
    ["requested_bytes", "touched_bytes", "waste_bytes", "sparse_blocks", "sparse_used_bytes"];
const BASE: u64 = 0x4000_0000;

#[test]
fn a_block_counts_when_an_allocation_begins_ends_or_lies_in_it() {
    let mut log = vec![
        alloc(1, BASE, 1),
        // From 1 to 4 MiB: the first block is shared, the second full.
        alloc(2, BASE + MIB, 3 * MIB),
        free(3, BASE + MIB),
        // From 2 to 7 MiB.
        alloc(4, BASE + 2 * MIB, 5 * MIB),
        alloc(5, BASE + 64 * MIB, 200_000).site(FREE_SITE),
    ];
    let device = |events: &[Written]| of(events.to_vec())["fragmentation"]["device"].clone();
    let one = json!([1, BLOCK, BLOCK - 1, 1, 1]);
    assert_eq!(pick(&device(&log[..1]), &BLOCKS), one);
    let found = pick(&device(&log[..2]), &BLOCKS);
    assert_eq!(found, json!([3 * MIB + 1, 4 * MIB, MIB - 1, 0, 0]));
    let found = device(&log[..3]);
    assert_eq!(pick(&found, &BLOCKS), one);
    assert_eq!(found["worst"]["at_ns"], 1, "when it was first as much");
    let found = device(&log[..4]);
    assert_eq!(pick(&found, &BLOCKS), json!([5_242_881, 8_388_608, 3_145_727, 1, 1]));
    assert_eq!(pick(&found["worst"], &["waste_bytes", "at_ns"]), json!([3_145_727, 4]));
    let found = device(&log);
    assert_eq!(pick(&found, &BLOCKS), json!([5_442_881, 10_485_760, 5_042_879, 2, 200_001]));
    assert_eq!(pick(&found["worst"], &["waste_bytes", "at_ns"]), json!([5_042_879, 5]));
    assert_eq!(found["block_bytes"], 2_097_152);
    // All gone: the worst stays.
    for (stamp, address) in [(6, BASE), (7, BASE + 2 * MIB), (8, BASE + 64 * MIB)] {
        log.push(free(stamp, address));
    }
    let found = device(&log);
    assert_eq!(pick(&found, &BLOCKS), json!([0, 0, 0, 0, 0]));
    let worst = pick(&found["worst"], &BLOCKS);
    assert_eq!(worst, json!([5_442_881, 10_485_760, 5_042_879, 2, 200_001]));
}

#[test]
fn less_than_a_tenth_of_a_block_is_sparse() {
    // A tenth of 2,097,152 is 209,715.2.
    for (bytes, sparse) in [(209_714, 1), (209_715, 1), (209_716, 0)] {
        let report = of(vec![alloc(1, BASE, bytes)]);
        let found = &report["fragmentation"]["device"];
        let expected = json!([sparse, sparse * bytes]);
        assert_eq!(pick(found, &["sparse_blocks", "sparse_used_bytes"]), expected, "{bytes}");
    }
}

#[test]
fn only_the_device_ledger_is_in_blocks() {
    let report = of(vec![
        at(Kind::ManagedAlloc, 1, &[BASE, 5, 1]),
        pool(2, BASE + BLOCK, 5),
        at(Kind::PinnedAlloc, 3, &[BASE + 2 * BLOCK, 5, 0]),
    ]);
    let found = &report["fragmentation"]["device"];
    assert_eq!(pick(found, &BLOCKS), json!([0, 0, 0, 0, 0]));
    assert_eq!(pick(found, &["worst", "pins", "pins_at_ns"]), json!([null, [], null]));
}

#[test]
fn pins_are_the_sites_of_allocations_that_begin_or_end_in_sparse_blocks() {
    let report = of(vec![
        // Its ends lie in two sparse blocks, what is between them is full.
        alloc(1, BASE + BLOCK - 100, BLOCK + 300),
        alloc(2, BASE + 10 * BLOCK, 50).site(FREE_SITE),
        // Not sparse.
        alloc(3, BASE + 20 * BLOCK, MIB).site(RUNTIME_SITE),
        mark(9),
    ]);
    let found = &report["fragmentation"]["device"];
    assert_eq!(pick(found, &BLOCKS), json!([3_146_078, 10_485_760, 7_339_682, 3, 350]));
    let pins = found["pins"].as_array().unwrap().iter();
    let pins: Vec<Value> =
        pins.map(|pin| json!([pin["site"]["api"], pin["blocks"], pin["used_bytes"]])).collect();
    assert_eq!(pins, [json!(["cuMemAlloc_v2", 2, 300]), json!(["cuMemFree_v2", 1, 50])]);
    // Seen by the first event of the next bucket.
    assert_eq!(found["pins_at_ns"], 9);
}

#[test]
fn pins_are_those_of_the_last_look_at_which_the_waste_was_5_percent_greater() {
    let report = of(vec![
        alloc(1, BASE, 97_152),
        alloc(2, BASE + BLOCK, 2_000_000).site(FREE_SITE),
        alloc(3, BASE + 2 * BLOCK, 2_097_000).site(FREE_SITE),
        mark(5),
    ]);
    // 2,000,000 are wasted at first, 2,097,304 in the end: 4.9 % more.
    let found = &report["fragmentation"]["device"];
    assert_eq!(pick(found, &["waste_bytes", "pins_at_ns"]), json!([2_097_304, 2]));
    assert_eq!(found["pins"][0]["used_bytes"], 97_152);
}

#[test]
fn a_block_counts_for_each_device_that_has_an_allocation_in_it() {
    // The thread that is on no known device is most likely on 0 too.
    let mut log = Writer { gpus: 2, ..Writer::default() };
    log.push(0, alloc(1, BASE, 512));
    log.push(1, use_device(2, 0));
    log.push(1, alloc(3, BASE + 512, 512));
    log.push(0, free(4, BASE));
    let report = told(&log);
    let row = |gpu: usize| {
        let row = &report["by_gpu"][gpu];
        json!([row["gpu"], pick(&row["fragmentation"]["device"], &BLOCKS)])
    };
    assert_eq!(row(0), json!([null, [0, 0, 0, 0, 0]]));
    assert_eq!(row(1), json!([0, [512, BLOCK, BLOCK - 512, 1, 512]]));
}

#[test]
fn a_block_that_a_later_one_takes_a_part_of_is_stale() {
    let stale = |events| of(events)["stale"].clone();
    let inside = vec![alloc(1, BASE, 3 * BLOCK), alloc(2, BASE + BLOCK, BLOCK)];
    assert_eq!(stale(inside), json!({"count": 1, "bytes": 3 * BLOCK}));
    let around = vec![alloc(1, BASE + BLOCK, BLOCK), alloc(2, BASE, 3 * BLOCK)];
    assert_eq!(stale(around), json!({"count": 1, "bytes": BLOCK}));
    let beside = vec![alloc(1, BASE, BLOCK), alloc(2, BASE + BLOCK, BLOCK)];
    assert_eq!(stale(beside), json!({"count": 0, "bytes": 0}));
}

#[test]
fn the_end_of_a_context_is_one_moment() {
    let report = of(vec![
        at(Kind::ContextCreate, 1, &[0xc0, 0]),
        at(Kind::ContextCurrent, 2, &[0xc0]).site(0),
        alloc(3, BASE, MIB),
        alloc(4, BASE + MIB, 100),
        at(Kind::ContextDestroy, 5, &[0xc0]),
    ]);
    let worst = &report["fragmentation"]["device"]["worst"];
    assert_eq!(pick(worst, &["waste_bytes", "at_ns"]), json!([MIB, 3]));
}

#[test]
fn an_overlap_is_one_moment() {
    let report = of(vec![alloc(1, BASE, MIB), alloc(2, BASE + MIB, 100), alloc(3, BASE, MIB)]);
    let worst = &report["fragmentation"]["device"]["worst"];
    assert_eq!(pick(worst, &["waste_bytes", "at_ns"]), json!([MIB, 1]));
    assert_eq!(levels(&report, "device")[0], json!([0, 0, MIB, MIB + 100]));
}

// Address ranges

const RANGE: u64 = 0x10_0000_0000;

fn map(stamp: u64, address: u64, bytes: u64, handle: u64) -> Written {
    at(Kind::Map, stamp, &[address, bytes, 0, handle])
}

fn create(stamp: u64, handle: u64, bytes: u64) -> Written {
    at(Kind::PhysicalCreate, stamp, &[handle, bytes, 1, 0])
}

const GAPS: [&str; 5] =
    ["ranges", "reserved_bytes", "mapped_bytes", "free_bytes", "unmapped_physical_bytes"];

/// Mapped are, in MiB: 0 to 4, 8 to 12, 12 to 16, 24 to 28 of 64, and 2 to 4 of 16.
fn shattered() -> Vec<Written> {
    vec![
        at(Kind::AddressReserve, 1, &[RANGE, 64 * MIB]),
        at(Kind::AddressReserve, 2, &[RANGE + 256 * MIB, 16 * MIB]),
        // Nothing is ever mapped here.
        at(Kind::AddressReserve, 3, &[RANGE + 512 * MIB, 8 * MIB]),
        create(4, 1, 4 * MIB),
        create(5, 2, 2 * MIB),
        create(6, 3, 6 * MIB),
        map(7, RANGE, 4 * MIB, 1),
        map(8, RANGE + 24 * MIB, 4 * MIB, 1),
        map(9, RANGE + 8 * MIB, 4 * MIB, 1),
        map(10, RANGE + 12 * MIB, 4 * MIB, 1),
        map(11, RANGE + 258 * MIB, 2 * MIB, 2),
    ]
}

#[test]
fn holes_lie_below_the_end_of_the_last_mapping_of_each_range() {
    let report = of(shattered());
    let vmm = &report["fragmentation"]["vmm"];
    // Holes of 4 and 8 MiB in the first range, of 2 in the second; handle 3 is mapped nowhere.
    assert_eq!(pick(vmm, &GAPS), json!([2, 80 * MIB, 18 * MIB, 14 * MIB, 6 * MIB]));
    let expected = json!([
        {
            "address": "0x1000000000", "bytes": 64 * MIB, "mapped_bytes": 16 * MIB,
            "free_bytes": 12 * MIB, "largest_free_bytes": 8 * MIB,
            // Both mappings between the holes: without them there would be one of 20 MiB.
            "pin": {"address": "0x1000800000", "bytes": 8 * MIB},
        },
        {
            "address": "0x1010000000", "bytes": 16 * MIB, "mapped_bytes": 2 * MIB,
            "free_bytes": 2 * MIB, "largest_free_bytes": 2 * MIB, "pin": null,
        },
    ]);
    assert_eq!(vmm["worst_ranges"], expected);
}

#[test]
fn the_pin_is_the_run_that_would_leave_the_largest_hole() {
    let mapped = [(4, 1), (6, 8), (16, 1), (20, 1)];
    let maps = mapped.iter().zip(2..);
    let maps = maps.map(|(&(from, long), stamp)| map(stamp, RANGE + from * MIB, long * MIB, 9));
    let reserve = at(Kind::AddressReserve, 1, &[RANGE, 64 * MIB]);
    let report = of([reserve].into_iter().chain(maps).collect());
    // Holes: 0 to 4, 5 to 6, 14 to 16, 17 to 20. Without 4 to 5: 6. Without 6 to 14: 11.
    // Without 16 to 17: 6. Behind 20 to 21 is no hole.
    let range = &report["fragmentation"]["vmm"]["worst_ranges"][0];
    assert_eq!(pick(range, &["free_bytes", "largest_free_bytes"]), json!([10 * MIB, 4 * MIB]));
    assert_eq!(range["pin"], json!({"address": "0x1000600000", "bytes": 8 * MIB}));
}

#[test]
fn a_run_with_one_hole_beside_it_is_no_pin() {
    let report = of(vec![
        at(Kind::AddressReserve, 1, &[RANGE, 64 * MIB]),
        map(2, RANGE, 20 * MIB, 9),
        map(3, RANGE + 24 * MIB, 20 * MIB, 9),
    ]);
    let range = &report["fragmentation"]["vmm"]["worst_ranges"][0];
    assert_eq!(pick(range, &["free_bytes", "pin"]), json!([4 * MIB, null]));
}

#[test]
fn a_range_without_holes_counts_and_is_not_among_the_worst() {
    let report = of(vec![
        at(Kind::AddressReserve, 1, &[RANGE, 64 * MIB]),
        create(2, 1, 4 * MIB),
        map(3, RANGE, 4 * MIB, 1),
    ]);
    let vmm = &report["fragmentation"]["vmm"];
    assert_eq!(pick(vmm, &GAPS), json!([1, 64 * MIB, 4 * MIB, 0, 0]));
    assert_eq!(vmm["worst_ranges"], json!([]));
    // Between 2 and 3 it was mapped nowhere.
    let worst = pick(&vmm["worst"], &["at_ns", "unmapped_physical_bytes"]);
    assert_eq!(worst, json!([3, 4 * MIB]));
}

#[test]
fn the_worst_is_kept_of_the_moments_that_were_looked_at() {
    let mut events = shattered();
    let worst =
        pick(&of(events.clone())["fragmentation"]["vmm"]["worst"], &["at_ns", "free_bytes"]);
    // 24 to 28 was mapped at 8 and 8 to 12 at 9: by then 20 MiB lay in holes.
    assert_eq!(worst, json!([9, 20 * MIB]));
    events.push(at(Kind::Unmap, 12, &[RANGE, 64 * MIB]));
    events.push(at(Kind::Unmap, 13, &[RANGE + 256 * MIB, 16 * MIB]));
    let vmm = of(events)["fragmentation"]["vmm"].clone();
    // Nothing is mapped any more, and the physical memory still is there.
    assert_eq!(pick(&vmm, &GAPS), json!([0, 0, 0, 0, 12 * MIB]));
    let worst = &vmm["worst"];
    let expected = json!([1, 64 * MIB, 8 * MIB, 20 * MIB, 8 * MIB, 9]);
    let keys: Vec<&str> = GAPS.into_iter().chain(["at_ns"]).collect();
    assert_eq!(pick(worst, &keys), expected);
}

#[test]
fn moments_looked_at_are_first_events_of_buckets_marks_failed_allocations_and_the_end() {
    let looked = |events| of(events)["fragmentation"]["vmm"]["looked"].clone();
    assert_eq!(looked(vec![alloc(0, BASE, 1)]), 1, "the end");
    assert_eq!(looked(vec![alloc(0, BASE, 1), alloc(7, BASE + 1, 1), alloc(7, BASE + 2, 1)]), 2);
    assert_eq!(looked(vec![alloc(0, BASE, 1), mark(0), mark(0)]), 3);
    let failed = at(Kind::DeviceAlloc, 0, &[0, 1]).failed();
    assert_eq!(looked(vec![failed.clone(), failed]), 3);
    // A failed allocation is looked at for what could have made it fail.
    let report = of(vec![create(0, 1, 5), at(Kind::PhysicalCreate, 0, &[0, 5, 1, 0]).failed()]);
    assert_eq!(report["fragmentation"]["vmm"]["worst"]["unmapped_physical_bytes"], 5);
}

#[test]
fn unmapped_physical_memory_is_that_of_devices() {
    let report = of(vec![
        create(1, 1, 10),
        at(Kind::PhysicalCreate, 2, &[2, 100, 2, 0]),
        create(3, 3, 1_000),
        at(Kind::AddressReserve, 4, &[RANGE, 64 * MIB]),
        map(5, RANGE, 1_000, 3),
        // Released and still mapped, then unmapped: gone.
        at(Kind::PhysicalRelease, 6, &[3]),
        at(Kind::Unmap, 7, &[RANGE, 1_000]),
    ]);
    assert_eq!(report["fragmentation"]["vmm"]["unmapped_physical_bytes"], 10);
    assert_eq!(report["ledgers"]["vmm_physical"]["live_bytes"], 10);
    assert_eq!(report["ledgers"]["vmm_host"]["live_bytes"], 100);
}

#[test]
fn a_handle_is_free_again_when_the_last_reference_to_its_memory_went_by_another_name() {
    let report = of(vec![
        create(1, 7, 64),
        at(Kind::AddressReserve, 2, &[RANGE, 64 * MIB]),
        map(3, RANGE, 64, 7),
        at(Kind::PhysicalRetain, 4, &[9, RANGE]),
        at(Kind::Unmap, 5, &[RANGE, 64]),
        at(Kind::PhysicalRelease, 6, &[7]),
        at(Kind::PhysicalRelease, 7, &[9]),
        create(8, 7, 32),
    ]);
    assert_eq!(report["ledgers"]["vmm_physical"]["live_bytes"], 32);
    assert_eq!((&report["overlaps"], &report["unknown_frees"]), (&json!(0), &json!(0)));
}

#[test]
fn a_mapping_of_host_memory_is_on_no_device() {
    let report = of(vec![
        at(Kind::PhysicalCreate, 1, &[2, 100, 2, 0]),
        at(Kind::AddressReserve, 2, &[RANGE, 64 * MIB]),
        map(3, RANGE, 100, 2),
    ]);
    assert_eq!(report["ledgers"]["vmm_mapped"]["by_gpu"], json!([]));
}

#[test]
fn a_range_that_is_reserved_around_a_mapping_is_looked_at() {
    // The reservation that the mapping needed was not seen.
    let report = of(vec![
        map(1, RANGE + MIB, MIB, 1),
        mark(2),
        at(Kind::AddressReserve, 3, &[RANGE, 64 * MIB]),
    ]);
    let vmm = &report["fragmentation"]["vmm"];
    assert_eq!(vmm["free_bytes"], MIB);
    assert_eq!(vmm["worst"]["free_bytes"], MIB, "the end is looked at");
}

#[test]
fn on_a_machine_with_one_gpu_no_mapping_is_on_another() {
    // Memory of another process, which no hook sees being imported.
    let report = of(vec![
        alloc(1, BASE, 1),
        at(Kind::AddressReserve, 2, &[RANGE, 64 * MIB]),
        map(3, RANGE, 100, 77),
        at(Kind::PhysicalRelease, 4, &[77]).failed(),
    ]);
    assert_eq!(
        by_gpu(&report["ledgers"]["vmm_mapped"]["by_gpu"], &["live_bytes"]),
        json!([[0, 100]])
    );
    let gpus = report["by_gpu"].as_array().unwrap().iter();
    assert_eq!(gpus.map(|row| &row["gpu"]).collect::<Vec<_>>(), [&json!(0)]);
}

// Copies and stalls

#[test]
fn copies_and_sets_are_cut_by_size_and_know_their_time() {
    let copied = |stamp, length, bytes| {
        event(Kind::Copy, stamp, &[copy::DEVICE_TO_HOST, 1, 2, bytes, 0]).lasting(length)
    };
    let report = of(vec![
        copied(1, 30, 0),
        copied(2, 50, 1),
        copied(3, 7, 4_095),
        copied(4, 1, 4_096),
        copied(5, 2, 8_191),
        copied(6, 99, 5).failed(),
        event(Kind::Set, 7, &[16, 1, 3, 0]).lasting(11),
        event(Kind::Set, 8, &[0, 1, 2, 0]).lasting(13),
        event(Kind::Set, 9, &[0, 1, 0, 0]).lasting(1),
    ]);
    let moved = ["count", "bytes", "empty", "total_ns", "max_ns"];
    assert_eq!(pick(&report["copies"][0], &moved), json!([5, 16_383, 1, 90, 50]));
    let sizes = json!([
        class(0, 0, 1, 0),
        class(1, 1, 1, 1),
        class(2_048, 4_095, 1, 4_095),
        class(4_096, 8_191, 2, 12_287),
    ]);
    assert_eq!(report["copies"][0]["by_size"], sizes);
    assert_eq!(pick(&report["sets"], &moved), json!([3, 5, 1, 25, 13]));
    assert_eq!(report["sets"]["by_size"], json!([class(0, 0, 1, 0), class(2, 3, 2, 5)]));
    assert_eq!(report["failed_copies"], 1);
}

#[test]
fn stalls_are_cut_by_length_at_one_two_and_five() {
    let lengths = [
        0,
        999,
        1_000,
        1_999,
        2_000,
        4_999,
        5_000,
        9_999,
        10_000,
        4_999_999_999,
        5_000_000_000,
        9_999_999_999,
        10_000_000_000,
        u64::from(u32::MAX) * 10,
    ];
    let sets = lengths.iter().map(|&length| event(Kind::Set, 1, &[0, 1, 2, 0]).lasting(length));
    let report = of(sets.collect());
    let row = |from: u64, to: u64, count: u64, total: u64| {
        let to = if to == 0 { Value::Null } else { json!(to) };
        json!({"from_ns": from, "to_ns": to, "count": count, "total_ns": total})
    };
    let expected = json!([
        row(0, 1_000, 2, 999),
        row(1_000, 2_000, 2, 2_999),
        row(2_000, 5_000, 2, 6_999),
        row(5_000, 10_000, 2, 14_999),
        row(10_000, 20_000, 1, 10_000),
        row(2_000_000_000, 5_000_000_000, 1, 4_999_999_999),
        row(5_000_000_000, 10_000_000_000, 2, 14_999_999_999),
        row(10_000_000_000, 0, 2, 52_949_672_950),
    ]);
    let set = &report["stalls"]["set"];
    assert_eq!(set["by_length"], expected);
    assert_eq!(
        pick(set, &["count", "total_ns", "max_ns"]),
        json!([14, 72_949_708_944_u64, 42_949_672_950_u64])
    );
}

#[test]
fn the_ten_longest_calls_are_told_with_what_they_were_about() {
    let mut log = Writer::default();
    for length in 1..=12 {
        let one = event(Kind::DeviceAlloc, 100 * length, &[length * BLOCK, 1_000 + length]);
        log.push(0, one.lasting(length % 7 + 1));
    }
    log.push(1, event(Kind::Free, 5_000, &[3 * BLOCK]).lasting(9).site(FREE_SITE));
    log.push(1, event(Kind::Free, 6_000, &[0xdead_0000]).lasting(4));
    log.push(1, event(Kind::Free, 6_100, &[4 * BLOCK]).lasting(3).failed());
    let report = told(&log);
    let told = |purpose: &str| {
        let calls = report["stalls"][purpose]["longest"].as_array().unwrap().iter();
        let keys = ["at_ns", "length_ns", "bytes", "thread"];
        calls.map(|call| pick(call, &keys)).collect::<Vec<_>>()
    };
    // Of equal ones the first come first, and what begins is told, not when it took effect.
    let expected: Vec<Value> = [6, 5, 12, 4, 11, 3, 10, 2, 9, 1]
        .iter()
        .map(|&number: &u64| json!([100 * number, number % 7 + 1, 1_000 + number, 1_001]))
        .collect();
    assert_eq!(told("alloc"), expected);
    // A free tells the size of what it freed.
    let frees = [
        json!([5_000, 9, 1_003, 1_002]),
        json!([6_000, 4, null, 1_002]),
        json!([6_100, 3, null, 1_002]),
    ];
    assert_eq!(told("free"), frees);
    assert_eq!(report["stalls"]["free"]["longest"][0]["site"]["api"], "cuMemFree_v2");
    assert_eq!(
        pick(&report["stalls"]["free"], &["count", "total_ns", "max_ns"]),
        json!([3, 16, 9])
    );
}

#[test]
fn each_call_is_for_one_thing() {
    let report = of(vec![
        alloc(1, BLOCK, 1),
        at(Kind::ManagedAlloc, 1, &[2 * BLOCK, 1, 1]),
        at(Kind::PinnedAlloc, 1, &[1, 1, 0]),
        at(Kind::HostRegister, 1, &[2, 1, 0]),
        pool(1, 0x1000, 1),
        at(Kind::AddressReserve, 1, &[RANGE, MIB]),
        create(1, 1, MIB),
        map(2, RANGE, MIB, 1),
        at(Kind::Unmap, 3, &[RANGE, MIB]),
        at(Kind::PhysicalRelease, 4, &[1]),
        at(Kind::AddressFree, 5, &[RANGE, MIB]),
        at(Kind::PoolFree, 5, &[0x1000, 0]),
        at(Kind::HostUnregister, 5, &[2]),
        at(Kind::PinnedFree, 5, &[1]),
        free(5, BLOCK),
        // None of these is for memory.
        at(Kind::SetAccess, 6, &[RANGE, MIB, 1]),
        at(Kind::MemoryInfo, 6, &[1, 2]),
        at(Kind::PhysicalRetain, 6, &[1, RANGE]),
        at(Kind::ContextCreate, 6, &[0xc0, 0]),
        // The driver's event beneath a runtime call, and a runtime call without one.
        free(7, 2 * BLOCK).site(RUNTIME_SITE).flags(Flags::CALL_FIRST),
        at(Kind::RuntimeCall, 8, &[1, 1]).site(ALONE_SITE),
    ]);
    let count = |purpose: &str| report["stalls"][purpose]["count"].as_u64().unwrap();
    assert_eq!(["alloc", "free", "copy", "set"].map(count), [8, 8, 0, 0]);
    assert_eq!((&report["unknown_frees"], &report["overlaps"]), (&json!(0), &json!(0)));
}

#[test]
fn a_release_tells_the_size_of_what_it_freed() {
    let report = of(vec![create(1, 1, 77), at(Kind::PhysicalRelease, 4, &[1])]);
    assert_eq!(report["stalls"]["free"]["longest"][0]["bytes"], 77);
}
