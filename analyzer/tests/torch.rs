//! PyTorch's caching allocator: its blocks, its totals, its segments, with answers worked out by
//! hand.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod support;

use gmmtrace::live::Window;
use gmmtrace::render::text::page::Page;
use gmmtrace::render::text::{self, Question};
use gmmtrace::units::Ticks;
use gmmtrace::{render, report};
use gmmtrace_format::Kind;
use serde_json::{Value, json};
use support::{Writer, Written, assert_valid, event};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
/// Where a segment is.
const S: u64 = 0x7f00_0000_0000;

fn pick(value: &Value, keys: &[&str]) -> Value {
    keys.iter().map(|&key| value[key].clone()).collect()
}

/// A block handed out or taken back, with PyTorch's totals after it.
fn block(at: u64, address: u64, bytes: i64, allocated: u64, reserved: u64, gpu: u64) -> Written {
    let kind = if bytes > 0 { Kind::TorchAlloc } else { Kind::TorchFree };
    event(kind, at, &[address, bytes.unsigned_abs(), allocated, reserved, gpu]).lasting(0)
}

fn oom(at: u64, requested: u64, allocated: u64, reserved: u64, gpu: u64) -> Written {
    event(Kind::TorchOom, at, &[requested, allocated, reserved, gpu]).lasting(0)
}

fn kib(count: u64) -> i64 {
    i64::try_from(count * KIB).unwrap()
}

fn checked(log: &Writer) -> Value {
    let report = log.json();
    assert_valid(&report);
    report
}

/// 2 MiB: A 512 KiB, B 256 KiB, a hole of 256 KiB, C 512 KiB, a hole of 512 KiB. Then A goes.
fn two_holes() -> Vec<Written> {
    let device = |at, bytes| event(Kind::DeviceAlloc, at, &[S, bytes]);
    vec![
        device(10, 2 * MIB),
        block(20, S, kib(512), 512 * KIB, 2 * MIB, 0),
        block(21, S + 512 * KIB, kib(256), 768 * KIB, 2 * MIB, 0),
        block(22, S + MIB, kib(512), 1280 * KIB, 2 * MIB, 0),
        block(30, S, -kib(512), 768 * KIB, 2 * MIB, 0),
    ]
}

const SHAPE: [&str; 6] =
    ["bytes", "used_bytes", "blocks", "free_bytes", "largest_free_bytes", "pin"];

#[test]
fn blocks_lie_in_the_allocation_of_the_driver_that_holds_them() {
    let report = checked(&Writer::of(two_holes()));
    let ledger = &report["ledgers"]["torch"];
    let keys = ["allocs", "frees", "failed", "live_count", "live_bytes", "peak_bytes"];
    assert_eq!(pick(ledger, &keys), json!([3, 1, 0, 2, 768 * KIB, 1280 * KIB]));
    assert_eq!(ledger["peak_at_ns"], 22);
    let device = &report["torch"]["devices"][0];
    assert_eq!(pick(device, &["gpu", "reports", "mismatches"]), json!([0, 4, 0]));
    assert_eq!(pick(&report["torch"], &["absent"]), json!([null]));
    // Blocks are within segments: no sum adds them.
    assert_eq!(report["sums"]["gpu"]["peak_bytes"], 2 * MIB);
    let level = &report["fragmentation"]["segment"];
    let totals = ["reserved_bytes", "allocated_bytes", "free_bytes"];
    assert_eq!(pick(level, &totals), json!([2 * MIB, 768 * KIB, 1280 * KIB]));
    // The most of no use was at the first block, with 512 KiB of 2 MiB in use.
    let worst = pick(&level["worst"], &["at_ns", "free_bytes"]);
    assert_eq!(worst, json!([20, 1536 * KIB]));
    let pin = json!({ "address": format!("{:#x}", S + MIB), "bytes": 512 * KIB, "blocks": 1 });
    let segment = &level["now"]["worst_segments"][0];
    let shape = json!([2 * MIB, 768 * KIB, 2, 1280 * KIB, 512 * KIB, pin]);
    assert_eq!(pick(segment, &SHAPE), shape);
    assert_eq!(segment["expandable"], false);
    let counts = ["segments", "segment_bytes", "empty_segments", "hole_bytes", "outside_blocks"];
    assert_eq!(pick(&level["now"], &counts), json!([1, 2 * MIB, 0, 1280 * KIB, 0]));
}

#[test]
fn blocks_that_touch_pin_a_hole_together() {
    let mut events = two_holes();
    events.pop();
    // Now 768 KiB, of which A and B touch, then the hole, C, the hole; D fills the rest but 4 KiB.
    events.push(block(30, S + 1536 * KIB, kib(508), 1788 * KIB, 2 * MIB, 0));
    let report = checked(&Writer::of(events));
    let segment = &report["fragmentation"]["segment"]["now"]["worst_segments"][0];
    let pin = json!({ "address": format!("{:#x}", S + MIB), "bytes": 1020 * KIB, "blocks": 2 });
    let shape = json!([2 * MIB, 1788 * KIB, 4, 260 * KIB, 256 * KIB, pin]);
    assert_eq!(pick(segment, &SHAPE), shape);
}

/// A range of 64 MiB with mappings of 20 MiB at 0 and 20 MiB, and of 2 MiB at 60 MiB.
fn expandable() -> Vec<Written> {
    let create = |at, handle, bytes| event(Kind::PhysicalCreate, at, &[handle, bytes, 1, 0]);
    let map = |at, offset, bytes, handle| event(Kind::Map, at, &[S + offset, bytes, 0, handle]);
    vec![
        event(Kind::AddressReserve, 10, &[S, 64 * MIB]),
        create(20, 1, 20 * MIB),
        map(30, 0, 20 * MIB, 1),
        create(40, 2, 20 * MIB),
        map(50, 20 * MIB, 20 * MIB, 2),
        create(60, 3, 2 * MIB),
        map(70, 60 * MIB, 2 * MIB, 3),
        // Across the border of two mappings.
        block(80, S + 10 * MIB, kib(15 << 10), 15 * MIB, 42 * MIB, 0),
        block(90, S + 60 * MIB, kib(1 << 10), 16 * MIB, 42 * MIB, 0),
    ]
}

#[test]
fn an_expandable_segment_is_what_is_mapped_in_its_range() {
    let report = checked(&Writer::of(expandable()));
    let level = &report["fragmentation"]["segment"];
    let segment = &level["now"]["worst_segments"][0];
    // Holes: 10 MiB below the block, 15 MiB above it, and 1 MiB in the last mapping. What is not
    // mapped is no hole, so nothing but the first block lies between two.
    let pin = json!({ "address": format!("{:#x}", S + 10 * MIB), "bytes": 15 * MIB, "blocks": 1 });
    let shape = json!([42 * MIB, 16 * MIB, 2, 26 * MIB, 15 * MIB, pin]);
    assert_eq!(pick(segment, &SHAPE), shape);
    assert_eq!((&segment["expandable"], &segment["gpu"]), (&json!(true), &json!(0)));
    assert_eq!(pick(&level["now"], &["segments", "outside_blocks"]), json!([1, 0]));
}

#[test]
fn pieces_unmapped_and_segments_freed_without_a_report_between_are_one_release() {
    let mut events = expandable();
    events.extend([
        event(Kind::DeviceAlloc, 100, &[S + (1 << 40), 2 * MIB]),
        block(110, S + (1 << 40), kib(1), 16 * MIB + KIB, 44 * MIB, 0),
        block(120, S + (1 << 40), -kib(1), 16 * MIB, 44 * MIB, 0),
        block(130, S + 60 * MIB, -kib(1 << 10), 15 * MIB, 44 * MIB, 0),
        event(Kind::Unmap, 140, &[S + 60 * MIB, 2 * MIB]),
        event(Kind::PhysicalRelease, 150, &[3]),
        event(Kind::Free, 160, &[S + (1 << 40)]),
        block(170, S + 10 * MIB, -kib(15 << 10), 0, 40 * MIB, 0),
        event(Kind::Unmap, 180, &[S, 40 * MIB]),
    ]);
    let report = checked(&Writer::of(events));
    let device = &report["torch"]["devices"][0];
    let keys = ["releases", "released_segments", "released_bytes", "reserved_bytes", "mismatches"];
    // The last unmapping removes two mappings by one call.
    assert_eq!(pick(device, &keys), json!([2, 3, 44 * MIB, 0, 0]));
    let list = &report["torch"]["release_list"];
    let keys = ["at_ns", "gpu", "segments", "bytes", "after_failure"];
    assert_eq!(pick(&list[0], &keys), json!([140, 0, 2, 4 * MIB, false]));
    assert_eq!(pick(&list[1], &keys), json!([180, 0, 1, 40 * MIB, false]));
    let keys = ["peak_reserved_bytes", "peak_reserved_at_ns"];
    assert_eq!(pick(device, &keys), json!([44 * MIB, 110]));
    let series = report["timeline"]["series"].as_array().unwrap();
    let reserved = series.iter().find(|series| series["name"] == "torch_reserved").unwrap();
    let highest = reserved["max_bytes"].as_array().unwrap();
    let most = highest.iter().filter_map(Value::as_u64).max();
    assert_eq!(most, Some(44 * MIB));
    assert_eq!(reserved["last_bytes"].as_array().unwrap().last(), Some(&json!(0)));
}

#[test]
fn each_device_has_totals_of_its_own() {
    let mut log = Writer { gpus: 2, ..Writer::default() };
    let far = S + (1 << 32);
    log.push(0, event(Kind::DeviceCurrent, 1, &[0]).site(0));
    log.push(0, event(Kind::DeviceAlloc, 10, &[S, 2 * MIB]));
    log.push(1, event(Kind::DeviceCurrent, 1, &[1]).site(0));
    log.push(1, event(Kind::DeviceAlloc, 11, &[far, 4 * MIB]));
    log.push(0, block(20, S, kib(1024), MIB, 2 * MIB, 0));
    log.push(1, block(21, far, kib(3072), 3 * MIB, 4 * MIB, 1));
    // Given back by the other thread, and handed out again at the same address.
    log.push(0, block(30, far, -kib(3072), 0, 4 * MIB, 1));
    log.push(1, block(31, far, kib(512), 512 * KIB, 4 * MIB, 1));
    let report = checked(&log);
    let ledger = &report["ledgers"]["torch"];
    let keys = ["allocs", "frees", "implicit_frees", "live_bytes", "peak_bytes"];
    assert_eq!(pick(ledger, &keys), json!([3, 1, 0, 1536 * KIB, 4 * MIB]));
    let keys = ["gpu", "allocs", "live_bytes", "peak_bytes"];
    let by_gpu: Vec<Value> =
        ledger["by_gpu"].as_array().unwrap().iter().map(|row| pick(row, &keys)).collect();
    assert_eq!(by_gpu, [json!([0, 1, MIB, MIB]), json!([1, 2, 512 * KIB, 3 * MIB])]);
    let keys = ["gpu", "allocated_bytes", "peak_allocated_bytes", "reserved_bytes", "mismatches"];
    let devices: Vec<Value> =
        report["torch"]["devices"].as_array().unwrap().iter().map(|row| pick(row, &keys)).collect();
    let first = json!([0, MIB, MIB, 2 * MIB, 0]);
    assert_eq!(devices, [first, json!([1, 512 * KIB, 3 * MIB, 4 * MIB, 0])]);
    assert_eq!(report["fragmentation"]["segment"]["free_bytes"], 6 * MIB - 1536 * KIB);
    assert_eq!((&report["overlaps"], &report["unknown_frees"]), (&json!(0), &json!(0)));
}

#[test]
fn what_does_not_fit_is_counted_and_shown() {
    let report = checked(&Writer::of(vec![
        event(Kind::DeviceAlloc, 10, &[S, 2 * MIB]),
        block(20, S, kib(4), 4 * KIB, 2 * MIB, 0),
        // Its free was not seen: the address is handed out again, and PyTorch's total is less.
        block(30, S, kib(8), 8 * KIB, 2 * MIB, 0),
        // Never handed out.
        block(40, S + MIB, -kib(2), 6 * KIB, 2 * MIB, 0),
        // Nothing of the driver's lies there.
        block(50, 0x1000, kib(1), 7 * KIB, 2 * MIB, 0),
    ]));
    let ledger = &report["ledgers"]["torch"];
    let keys = ["allocs", "frees", "implicit_frees", "live_count", "live_bytes"];
    assert_eq!(pick(ledger, &keys), json!([3, 0, 1, 2, 9 * KIB]));
    assert_eq!((&report["overlaps"], &report["unknown_frees"]), (&json!(1), &json!(1)));
    assert_eq!(report["examples"]["unknown_frees"][0]["ledger"], "torch");
    let device = &report["torch"]["devices"][0];
    assert_eq!(pick(device, &["reports", "mismatches"]), json!([4, 2]));
    let first = json!({ "at_ns": 40, "counted_bytes": 8 * KIB, "told_bytes": 6 * KIB });
    assert_eq!(device["first_mismatch"], first);
    assert_eq!(report["torch"]["outside"], json!({ "count": 1, "bytes": KIB }));
    let now = &report["fragmentation"]["segment"]["now"];
    assert_eq!(pick(now, &["blocks", "outside_blocks", "outside_bytes"]), json!([1, 1, KIB]));
    // A block of PyTorch's at the address of the driver's block is another block.
    assert_eq!(report["ledgers"]["device"]["live_bytes"], 2 * MIB);
}

#[test]
fn a_request_without_memory_says_what_there_was() {
    let used = 15 << 30;
    let report = checked(&Writer::of(vec![
        event(Kind::DeviceAlloc, 10, &[S, 8 * MIB]),
        event(Kind::DeviceAlloc, 11, &[S + (8 << 20), 2 * MIB]),
        block(20, S, kib(2048), 2 * MIB, 10 * MIB, 0),
        block(22, S + 8 * MIB, kib(1024), 3 * MIB, 10 * MIB, 0),
        block(24, S + 5 * MIB, kib(1024), 4 * MIB, 10 * MIB, 0),
        block(26, S + 8 * MIB, -kib(1024), 3 * MIB, 10 * MIB, 0),
        event(Kind::Sample, 30, &[0, used, 16 << 30, 0]).site(0).lasting(0),
        event(Kind::DeviceAlloc, 40, &[0, 4 << 30]).failed(),
        // It makes room by itself, and asks again.
        event(Kind::Free, 50, &[S + (8 << 20)]),
        event(Kind::DeviceAlloc, 60, &[0, 4 << 30]).failed(),
        oom(70, 4 << 30, 3 * MIB, 8 * MIB, 0),
    ]));
    let told = &report["oom"][0];
    let keys = ["at_ns", "gpu", "requested_bytes", "allocated_bytes", "reserved_bytes", "thread"];
    assert_eq!(pick(told, &keys), json!([70, 0, 4_u64 << 30, 3 * MIB, 8 * MIB, 1001]));
    assert_eq!(told["device_free_bytes"], 1_u64 << 30);
    // Between 2 and 5 MiB; 6 to 8 MiB is less.
    assert_eq!(told["largest_free_bytes"], 3 * MIB);
    assert_eq!(report["ledgers"]["torch"]["failed"], 1);
    assert_eq!(report["torch"]["devices"][0]["out_of_memory"], 1);
    let release = &report["torch"]["release_list"][0];
    assert_eq!(pick(release, &["segments", "bytes", "after_failure"]), json!([1, 2 * MIB, true]));
}

#[test]
fn without_a_report_of_pytorch_nothing_is_known_about_it() {
    let log = Writer::of(vec![event(Kind::PoolAlloc, 10, &[S, MIB, 0, 0])]);
    let report = checked(&log);
    assert_eq!(report["ledgers"]["torch"], Value::Null);
    assert_eq!(report["fragmentation"]["segment"], Value::Null);
    assert!(report["torch"]["absent"].as_str().unwrap().starts_with("no report of PyTorch"));
    assert_eq!(report["oom"], json!([]));
    let read = support::read(&log.log());
    let only = [text::page::Of::Ledger(gmmtrace::live::Ledger::Torch)];
    let mut said = Vec::new();
    let page = Page { only: &only, ..Page::whole(&read) };
    text::answer(Question::Peak, &page, &mut said).unwrap();
    let said = String::from_utf8(said).unwrap();
    assert!(said.contains("not known: no report of PyTorch's allocator was seen"), "{said}");
}

#[test]
fn a_window_counts_from_its_first_moment_on() {
    let log = Writer::of(two_holes()).log();
    let window = Window { since: Some(Ticks(25)), until: None };
    let read = report::read(&log, window, |_, _| ());
    let report = render::json::value(&read);
    assert_valid(&report);
    let ledger = &report["ledgers"]["torch"];
    let keys = ["allocs", "frees", "live_bytes", "peak_bytes"];
    assert_eq!(pick(ledger, &keys), json!([0, 1, 768 * KIB, 1280 * KIB]));
    let device = &report["torch"]["devices"][0];
    let keys = ["reports", "mismatches", "peak_reserved_bytes", "peak_allocated_bytes"];
    assert_eq!(pick(device, &keys), json!([1, 0, 2 * MIB, 1280 * KIB]));
    let worst = &report["fragmentation"]["segment"]["worst"];
    assert_eq!(pick(worst, &["at_ns", "free_bytes"]), json!([30, 1280 * KIB]));
    // What is listed was made in the window: nothing.
    let held = report["live_at_end"].as_array().unwrap();
    assert!(held.iter().all(|row| row["ledger"] != "torch"));
}

#[test]
fn texts_say_the_same() {
    let mut events = expandable();
    events.push(oom(95, 1 << 30, 16 * MIB, 42 * MIB, 0));
    let read = support::read(&Writer::of(events).log());
    let mut said = Vec::new();
    text::write(&read, &mut said).unwrap();
    text::answer(Question::Summary, &Page::whole(&read), &mut said).unwrap();
    text::answer(Question::Fragmentation, &Page::whole(&read), &mut said).unwrap();
    text::answer(Question::Timeline, &Page::whole(&read), &mut said).unwrap();
    let said = String::from_utf8(said).unwrap();
    for words in [
        "PyTorch    16.00 MiB allocated of 42.00 MiB reserved, 27.00 MiB of no use at worst",
        "; 1 request found no memory",
        "torch_reserved",
        "PyTorch's allocator",
        "Requests that found no memory",
        "at the end: 42.00 MiB reserved, 16.00 MiB allocated: 26.00 MiB of no use (61.9 %)",
        "1 block of 15.00 MiB at 0x7f0000a00000",
    ] {
        assert!(said.contains(words), "{words:?} in\n{said}");
    }
}
