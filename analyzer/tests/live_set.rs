//! The live set, by logs that say what happened and reports that must say the same.
#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use std::collections::BTreeMap;

use gmmtrace_format::kind::{copy, object, pool, source};
use gmmtrace_format::{Flags, Kind};
use proptest::prelude::*;
use serde_json::{Value, json};
use support::{ALLOC, ALONE_SITE, FREE_SITE, RUNTIME_SITE, Writer, assert_valid, event};

fn figures(report: &Value, ledger: &str, keys: [&str; 4]) -> [u64; 4] {
    keys.map(|key| report["ledgers"][ledger][key].as_u64().unwrap())
}

const LIFE: [&str; 4] = ["allocs", "frees", "implicit_frees", "live_bytes"];

#[test]
fn a_free_is_booked_where_the_block_is() {
    let report = Writer::of(vec![
        event(Kind::ManagedAlloc, 10, &[0x1000, 100, 1]),
        event(Kind::PoolAlloc, 20, &[0x2000, 200, 0, 0]),
        event(Kind::Free, 30, &[0x1000]),
        event(Kind::Free, 40, &[0x2000]),
    ])
    .json();
    assert_valid(&report);
    assert_eq!(figures(&report, "managed", LIFE), [1, 1, 0, 0]);
    assert_eq!(figures(&report, "async_pool", LIFE), [1, 1, 0, 0]);
    assert_eq!(figures(&report, "device", LIFE), [0, 0, 0, 0]);
    assert_eq!(report["ledgers"]["managed"]["peak_bytes"], 100);
    assert_eq!(report["ledgers"]["managed"]["peak_at_ns"], 15);
}

#[test]
fn what_failed_what_was_null_and_what_was_unknown_is_counted_apart() {
    let report = Writer::of(vec![
        event(Kind::DeviceAlloc, 10, &[0x1000, 100]),
        event(Kind::DeviceAlloc, 20, &[0, 300]).failed(),
        event(Kind::Free, 30, &[0x1000]).failed(),
        event(Kind::Free, 40, &[0x9000]).failed(),
        event(Kind::Free, 50, &[0]).site(FREE_SITE),
        event(Kind::Free, 60, &[0x7000]).site(FREE_SITE),
        event(Kind::PinnedFree, 65, &[0x1000]),
        event(Kind::RuntimeCall, 70, &[0, 0]).site(ALONE_SITE),
    ])
    .json();
    assert_valid(&report);
    assert_eq!(figures(&report, "device", LIFE), [1, 0, 0, 100]);
    assert_eq!(report["ledgers"]["device"]["failed"], 3);
    assert_eq!(report["null_calls"], 2);
    assert_eq!(report["unknown_frees"], 2);
    let example = &report["examples"]["unknown_frees"][0];
    assert_eq!(example["address"], "0x7000");
    assert_eq!(example["site"]["api"], "cuMemFree_v2");
    assert_eq!(example["site"]["library"], "/l/x.so");
}

#[test]
fn an_allocation_where_something_is_live_ends_the_old_block() {
    let report = Writer::of(vec![
        event(Kind::DeviceAlloc, 10, &[0x1000, 100]),
        event(Kind::DeviceAlloc, 20, &[0x1000, 70]),
    ])
    .json();
    assert_eq!(figures(&report, "device", LIFE), [2, 0, 1, 70]);
    assert_eq!(report["overlaps"], 1);
    assert_eq!(report["ledgers"]["device"]["peak_bytes"], 100);
}

/// Thread 2 gets the address that thread 1 gives back, with equal stamps: the free goes first.
#[test]
fn an_address_is_used_again_by_another_thread_at_the_same_stamp() {
    let mut log = Writer::default();
    log.push(1, event(Kind::DeviceAlloc, 0, &[0x1000, 8]));
    for round in 0..50 {
        let at = 100 + round * 10;
        let (giver, taker) = if round % 2 == 0 { (1, 0) } else { (0, 1) };
        log.push(giver, event(Kind::Free, at, &[0x1000]));
        log.push(taker, event(Kind::DeviceAlloc, at - 5, &[0x1000, 8]));
    }
    let report = log.json();
    assert_eq!(figures(&report, "device", LIFE), [51, 50, 0, 8]);
    assert_eq!((&report["overlaps"], &report["unknown_frees"]), (&json!(0), &json!(0)));
}

#[test]
fn memory_ends_with_its_context_and_pool_memory_does_not() {
    let report = Writer::of(vec![
        event(Kind::ContextCreate, 1, &[0xc0, 0]),
        event(Kind::ContextCurrent, 8, &[0xc0]).site(0),
        event(Kind::DeviceAlloc, 20, &[0x1000, 1]),
        event(Kind::ManagedAlloc, 30, &[0x2000, 2, 1]),
        event(Kind::PinnedAlloc, 40, &[0x3000, 4, 0]),
        event(Kind::HostRegister, 50, &[0x4000, 8, 0]),
        event(Kind::PoolAlloc, 60, &[0x5000, 16, 0, 0]),
        event(Kind::ContextCreate, 70, &[0xc1, 1]),
        event(Kind::ContextCurrent, 80, &[0xc1]).site(0),
        event(Kind::DeviceAlloc, 90, &[0x6000, 32]),
        event(Kind::ContextDestroy, 100, &[0xc0]).failed(),
        event(Kind::ContextDestroy, 110, &[0xc0]),
    ])
    .json();
    assert_valid(&report);
    for (ledger, left) in [("managed", 0), ("pinned", 0), ("registered", 0)] {
        assert_eq!(figures(&report, ledger, LIFE), [1, 0, 1, left], "{ledger}");
    }
    assert_eq!(figures(&report, "device", LIFE), [2, 0, 1, 32]);
    assert_eq!(figures(&report, "async_pool", LIFE), [1, 0, 0, 16]);
    let contexts = json!({"created": 2, "destroyed": 1, "live": 1});
    assert_eq!(report["handles"]["contexts"], contexts);
    let gpus = report["ledgers"]["device"]["by_gpu"].as_array().unwrap();
    let by_gpu: Vec<_> = gpus.iter().map(|row| (&row["gpu"], &row["live_bytes"])).collect();
    assert_eq!(by_gpu, [(&json!(0), &json!(0)), (&json!(1), &json!(32))]);
}

#[test]
fn a_primary_context_ends_by_reset_and_by_its_last_release() {
    let runtime = |written: support::Written| written.site(RUNTIME_SITE);
    let report = Writer::of(vec![
        // Under a runtime call, before any word about a device: device 0.
        runtime(event(Kind::DeviceAlloc, 10, &[0x1000, 1])),
        event(Kind::PrimaryRetain, 20, &[0xc0, 0]),
        event(Kind::PrimaryRetain, 30, &[0xc0, 0]),
        event(Kind::ContextCurrent, 40, &[0xc0]).site(0),
        event(Kind::DeviceAlloc, 50, &[0x2000, 2]),
        event(Kind::DeviceCurrent, 60, &[1]).site(0),
        runtime(event(Kind::DeviceAlloc, 70, &[0x3000, 4])),
        event(Kind::PrimaryRelease, 80, &[0]),
        event(Kind::Free, 90, &[0x2000]).failed(),
        event(Kind::PrimaryRelease, 100, &[0]),
        event(Kind::PrimaryReset, 110, &[1]),
    ])
    .json();
    assert_eq!(figures(&report, "device", LIFE), [3, 0, 3, 0]);
    assert_eq!(report["ledgers"]["device"]["failed"], 1, "live until the last release");
    assert_eq!(report["handles"]["contexts"]["live"], 0);
}

#[test]
fn physical_memory_lives_until_references_and_mappings_are_gone() {
    let report = Writer::of(vec![
        event(Kind::AddressReserve, 1, &[0x10_0000, 0x1000]),
        event(Kind::PhysicalCreate, 10, &[7, 64, 1, 1]),
        event(Kind::Map, 20, &[0x10_0000, 64, 0, 7]),
        event(Kind::PhysicalRelease, 30, &[7]),
        // The number is used again while the first still is mapped.
        event(Kind::PhysicalCreate, 40, &[7, 32, 1, 0]),
        event(Kind::Map, 50, &[0x10_0040, 32, 0, 7]),
        event(Kind::PhysicalRetain, 60, &[9, 0x10_0010]),
        event(Kind::Unmap, 70, &[0x10_0000, 96]),
        event(Kind::PhysicalRelease, 80, &[9]),
        event(Kind::PhysicalCreate, 90, &[8, 16, 3, 0]),
        event(Kind::PhysicalRelease, 100, &[55]),
        event(Kind::AddressFree, 110, &[0x10_0000, 0x1000]),
    ])
    .json();
    assert_valid(&report);
    assert_eq!(figures(&report, "vmm_physical", LIFE), [2, 1, 0, 32]);
    assert_eq!(figures(&report, "vmm_mapped", LIFE), [2, 2, 0, 0]);
    assert_eq!(figures(&report, "vmm_host", LIFE), [1, 0, 0, 16]);
    assert_eq!(figures(&report, "vmm_address", LIFE), [1, 1, 0, 0]);
    assert_eq!((&report["overlaps"], &report["unknown_frees"]), (&json!(0), &json!(1)));
    let first = &report["ledgers"]["vmm_physical"]["by_gpu"][1];
    assert_eq!((&first["gpu"], &first["peak_bytes"]), (&json!(1), &json!(64)));
}

/// A thread ended, and another goes on in its chunk. What the first used must last until then,
/// across the chunk's border, and must not pass to the second.
#[test]
fn a_thread_keeps_its_device_when_another_takes_over_its_chunk() {
    let mut log = Writer::of(vec![
        event(Kind::Thread, 1, &[501, 0]).site(0),
        event(Kind::ContextCreate, 10, &[0xc0, 3]),
        event(Kind::ContextCurrent, 20, &[0xc0]).site(0),
        event(Kind::DeviceAlloc, 30, &[0x1000, 1]),
        event(Kind::Thread, 40, &[502, 0]).site(0),
        event(Kind::DeviceAlloc, 50, &[0x2000, 2]),
    ]);
    (log.per_chunk, log.gpus) = (3, 4);
    let report = log.json();
    let rows = report["ledgers"]["device"]["by_gpu"].as_array().unwrap();
    let by_gpu: Vec<_> = rows.iter().map(|row| (&row["gpu"], &row["live_bytes"])).collect();
    assert_eq!(by_gpu, [(&Value::Null, &json!(2)), (&json!(3), &json!(1))]);
    assert_eq!(report["process"]["threads"], 2);
}

#[test]
fn unified_copies_go_by_what_the_ledgers_hold_at_their_ends() {
    let mode = copy::UNIFIED;
    let report = Writer::of(vec![
        event(Kind::DeviceAlloc, 1, &[0x1000, 0x100]),
        event(Kind::PinnedAlloc, 2, &[0x8000, 0x100, 0]),
        event(Kind::HostRegister, 3, &[0x9000, 0x100, 0]),
        event(Kind::PhysicalCreate, 4, &[7, 64, 1, 0]),
        event(Kind::Map, 5, &[0x5000, 64, 0, 7]),
        event(Kind::Copy, 20, &[mode, 0x1010, 0x8010, 1, 0]),
        event(Kind::Copy, 30, &[mode | 16, 0x90ff, 0x10ff, 2, 0]),
        event(Kind::Copy, 40, &[mode, 0x1000, 0x503f, 4, 0]),
        event(Kind::Copy, 50, &[mode, 0x1100, 0x8000, 8, 0]),
        event(Kind::Copy, 60, &[copy::PEER, 0x1000, 0x5000, 0, 0]),
        event(Kind::Copy, 65, &[copy::PEER, 0x1000, 0xf000, 16, 0]),
        event(Kind::Copy, 70, &[mode, 0x1000, 0x8000, 99, 0]).failed(),
        event(Kind::Set, 80, &[0, 0x1000, 5, 0]),
        event(Kind::Set, 90, &[0, 0x1000, 5, 0]).failed(),
    ])
    .json();
    assert_valid(&report);
    let row = |direction: &str, asynchronous: bool, host: Option<&str>, numbers: [u64; 3]| {
        let [count, bytes, empty] = numbers;
        json!({"direction": direction, "asynchronous": asynchronous, "host_memory": host,
               "count": count, "bytes": bytes, "empty": empty})
    };
    let expected = json!([
        row("host_to_device", false, Some("pinned"), [1, 1, 0]),
        row("device_to_host", true, Some("registered"), [1, 2, 0]),
        row("device_to_device", false, None, [2, 4, 1]),
        row("host_to_host", false, Some("pageable"), [1, 8, 0]),
        row("peer", false, None, [1, 16, 0]),
    ]);
    let rows = report["copies"].as_array().unwrap().iter().map(|found| {
        assert_eq!(found["total_ns"], 5 * found["count"].as_u64().unwrap());
        assert_eq!(found["max_ns"], 5);
        let classes = found["by_size"].as_array().unwrap();
        let count: u64 = classes.iter().map(|class| class["count"].as_u64().unwrap()).sum();
        assert_eq!(found["count"], count);
        let keys = ["direction", "asynchronous", "host_memory", "count", "bytes", "empty"];
        Value::Object(keys.map(|key| (key.to_owned(), found[key].clone())).into_iter().collect())
    });
    assert_eq!(Value::Array(rows.collect()), expected);
    assert_eq!((&report["sets"]["count"], &report["sets"]["bytes"]), (&json!(1), &json!(5)));
    assert_eq!((&report["failed_copies"], &report["failed_sets"]), (&json!(1), &json!(1)));
}

/// JAX reads its loops' counters from pinned memory by `cuMemcpyDtoHAsync`.
#[test]
fn page_locked_memory_at_an_end_on_the_device_is_host_memory() {
    let (to_device, to_host, within) =
        (copy::HOST_TO_DEVICE, copy::DEVICE_TO_HOST, copy::DEVICE_TO_DEVICE);
    let report = Writer::of(vec![
        event(Kind::DeviceAlloc, 1, &[0x1000, 0x100]),
        event(Kind::PinnedAlloc, 2, &[0x8000, 0x100, 0]),
        event(Kind::HostRegister, 3, &[0x9000, 0x100, 0]),
        event(Kind::Copy, 20, &[to_host, 0x7777, 0x8008, 1, 0]),
        event(Kind::Copy, 30, &[to_device, 0x9008, 0x7777, 2, 0]),
        event(Kind::Copy, 40, &[within, 0x8000, 0x9000, 4, 0]),
        event(Kind::Copy, 50, &[within, 0x1000, 0x9000, 8, 0]),
        event(Kind::Copy, 60, &[within, 0x8000, 0x1000, 16, 0]),
        event(Kind::Copy, 70, &[to_host, 0x8000, 0x1000, 32, 0]),
        event(Kind::Copy, 80, &[to_device, 0x5000, 0x8000, 64, 0]),
    ])
    .json();
    assert_valid(&report);
    let rows = report["copies"].as_array().unwrap().iter();
    let bytes: Vec<_> = rows
        .map(|row| [&row["direction"], &row["host_memory"], &row["bytes"]].map(Value::to_string))
        .map(|row| row.join(" ").replace('"', ""))
        .collect();
    let expected = [
        "host_to_device pinned 64",
        "host_to_device registered 8",
        "device_to_host pinned 48",
        "host_to_host registered 4",
        "host_to_host pageable 3",
    ];
    assert_eq!(bytes, expected);
}

#[test]
fn a_peak_says_what_it_was_made_of() {
    let report = Writer::of(vec![
        event(Kind::DeviceAlloc, 10, &[0x1000, 100]),
        event(Kind::PoolAlloc, 20, &[0x2000, 50, 0, 0]).site(RUNTIME_SITE),
        event(Kind::Free, 30, &[0x1000]),
        event(Kind::DeviceAlloc, 40, &[0x3000, 60]).site(RUNTIME_SITE),
        event(Kind::ManagedAlloc, 50, &[0x4000, 1000, 1]),
    ])
    .json();
    let peak = &report["peak"];
    assert_eq!((&peak["bytes"], &peak["at_ns"]), (&json!(150), &json!(25)));
    let held: Vec<_> = peak["held"].as_array().unwrap().iter().collect();
    let shown: Vec<_> = held.iter().map(|row| (&row["ledger"], &row["bytes"])).collect();
    let expected = [("device", 100), ("async_pool", 50)].map(|(name, n)| (json!(name), json!(n)));
    assert_eq!(shown, expected.iter().map(|(name, n)| (name, n)).collect::<Vec<_>>());
    assert_eq!(held[1]["site"]["call"], "cudaMalloc");
    assert_eq!(report["live"]["bytes"], 110);
    assert_eq!(report["live_at_end"][0]["ledger"], "managed");
    assert_eq!(report["live_at_end"][0]["oldest_at_ns"], 55);
}

#[test]
fn a_runtime_call_counts_once_however_many_driver_calls_it_makes() {
    let report = Writer::of(vec![
        event(Kind::DeviceAlloc, 10, &[0x1000, 1]).site(RUNTIME_SITE).flags(Flags::CALL_FIRST),
        event(Kind::DeviceAlloc, 20, &[0x2000, 1]).site(RUNTIME_SITE).flags(Flags::CALL_NEXT),
        event(Kind::DeviceAlloc, 30, &[0x3000, 1]),
        event(Kind::RuntimeCall, 40, &[0x10, 1]).site(ALONE_SITE).failed(),
    ])
    .json();
    let calls = report["calls"].as_array().unwrap();
    let by_name = |name: &str| calls.iter().find(|call| call["api"] == name).unwrap();
    let (driver, runtime) = (by_name("cuMemAlloc_v2"), by_name("cudaMalloc"));
    assert_eq!((&driver["calls"], &driver["total_ns"]), (&json!(3), &json!(15)));
    assert_eq!((&runtime["calls"], &runtime["failed"]), (&json!(2), &json!(1)));
}

#[test]
fn marks_ranges_samples_and_calls_in_flight_are_told() {
    let mut log = Writer::of(vec![
        event(Kind::Thread, 1, &[501, 0]).site(0).text("worker"),
        event(Kind::Mark, 10, &[0]).site(0).text("warm").lasting(0),
        event(Kind::RangePush, 20, &[0]).site(0).text("step").lasting(0),
        event(Kind::RangePop, 50, &[]).site(0).lasting(0),
        event(Kind::RangeStart, 60, &[3, 0]).site(0).text("phase").lasting(0),
        event(Kind::Sample, 70, &[0, 9, 10, 0]).site(0),
        event(Kind::Sample, 80, &[0, 5, 10, 4]).site(0),
    ]);
    log.exited = false;
    log.in_flight = Some((ALLOC as u16, 90, 0x55));
    let report = log.json();
    assert_valid(&report);
    assert_eq!(report["marks"], json!([{"at_ns": 10, "text": "warm", "thread": 501}]));
    let ranges = json!([
        {"name": "step", "count": 1, "total_ns": 30, "open": 0},
        {"name": "phase", "count": 0, "total_ns": 0, "open": 1},
    ]);
    assert_eq!(report["ranges"], ranges);
    let sampled = &report["sampled"][0];
    assert_eq!((&sampled["last_used_bytes"], &sampled["max_used_bytes"]), (&json!(5), &json!(9)));
    assert_eq!(sampled["last_process_bytes"], 3);
    let call = json!({"api": "cuMemAlloc_v2", "layer": "driver", "thread": 501, "since_ns": 90,
                      "argument": "0x55"});
    assert_eq!(report["in_flight"], json!([call]));
}

/// What the ledgers must say, by the dullest of means.
#[derive(Default)]
struct Naive {
    live: BTreeMap<(bool, u64), (usize, u64)>,
    sums: [[u64; 8]; 4],
    odd: [u64; 3],
}

const NAMES: [&str; 4] = ["device", "managed", "async_pool", "pinned"];
const KEYS: [&str; 8] = [
    "allocs",
    "frees",
    "failed",
    "implicit_frees",
    "alloc_bytes",
    "free_bytes",
    "live_bytes",
    "peak_bytes",
];

impl Naive {
    fn add(&mut self, ledger: usize, key: &str, by: u64) {
        let place = KEYS.iter().position(|&name| name == key).unwrap();
        self.sums[ledger][place] += by;
    }

    fn settle(&mut self) {
        for ledger in 0..4 {
            let mine = self.live.values().filter(|&&(of, _)| of == ledger);
            let live = mine.map(|&(_, bytes)| bytes).sum::<u64>();
            self.sums[ledger][6] = live;
            self.sums[ledger][7] = self.sums[ledger][7].max(live);
        }
    }

    fn alloc(&mut self, ledger: usize, address: u64, bytes: u64, failed: bool) {
        if failed {
            return self.add(ledger, "failed", 1);
        }
        if address == 0 {
            self.odd[0] += 1;
            return;
        }
        if let Some((old, _)) = self.live.remove(&(ledger == 3, address)) {
            self.odd[2] += 1;
            self.add(old, "implicit_frees", 1);
        }
        self.add(ledger, "allocs", 1);
        self.add(ledger, "alloc_bytes", bytes);
        self.live.insert((ledger == 3, address), (ledger, bytes));
        self.settle();
    }

    fn free(&mut self, kind: Kind, address: u64, failed: bool) {
        let ledger = match kind {
            Kind::Free => 0,
            Kind::PoolFree => 2,
            _ => 3,
        };
        let place = (ledger == 3, address);
        if failed {
            let known = self.live.get(&place).filter(|_| kind == Kind::Free);
            return self.add(known.map_or(ledger, |&(of, _)| of), "failed", 1);
        }
        if address == 0 {
            self.odd[0] += 1;
        } else if let Some((of, bytes)) = self.live.remove(&place) {
            self.add(of, "frees", 1);
            self.add(of, "free_bytes", bytes);
            self.settle();
        } else {
            self.odd[1] += 1;
        }
    }
}

fn operation() -> impl Strategy<Value = (usize, u64, u64, bool, usize)> {
    (0..7_usize, 0..6_u64, 1..10_000_u64, prop::bool::weighted(0.2), 0..3_usize)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None,
        ..ProptestConfig::default() })]

    #[test]
    fn the_ledgers_are_those_of_a_naive_map(
        operations in prop::collection::vec(operation(), 0..80),
        per_chunk in 1..9_usize,
    ) {
        let mut log = Writer { per_chunk, ..Writer::default() };
        let mut naive = Naive::default();
        for (step, &(what, place, bytes, failed, thread)) in operations.iter().enumerate() {
            let (at, address) = (10 + 10 * step as u64, place * 0x1000);
            let kinds = [Kind::DeviceAlloc, Kind::ManagedAlloc, Kind::PoolAlloc,
                Kind::PinnedAlloc, Kind::Free, Kind::PoolFree, Kind::PinnedFree];
            let kind = kinds[what];
            if what < 4 {
                naive.alloc(what, address, bytes, failed);
            } else {
                naive.free(kind, address, failed);
            }
            let operands = if what < 4 { vec![address, bytes] } else { vec![address] };
            log.push(thread, event(kind, at, &operands).failed_if(failed));
        }
        let report = log.json();
        for (ledger, sums) in NAMES.iter().zip(naive.sums) {
            for (key, expected) in KEYS.iter().zip(sums) {
                prop_assert_eq!(&report["ledgers"][ledger][key], expected, "{} {}", ledger, key);
            }
        }
        let odd = ["null_calls", "unknown_frees", "overlaps"].map(|key| &report[key]);
        prop_assert_eq!(odd, [&json!(naive.odd[0]), &json!(naive.odd[1]), &json!(naive.odd[2])]);
    }
}

#[test]
fn an_array_is_estimated_and_goes_with_its_context() {
    let report = Writer::of(vec![
        event(Kind::ContextCreate, 1, &[0xc0, 0]),
        event(Kind::ContextCurrent, 8, &[0xc0]).site(0),
        event(Kind::ArrayCreate, 20, &[0x55aa, 4096, 0]),
        event(Kind::ArrayCreate, 30, &[0x55bb, 0, 0x40]),
        event(Kind::ArrayCreate, 40, &[0, 64, 0]).failed(),
        event(Kind::ArrayCreate, 50, &[0x55cc, 16, 0]),
        event(Kind::ArrayDestroy, 60, &[0x55cc]),
        event(Kind::ArrayDestroy, 70, &[0x55cc]),
        event(Kind::Copy, 80, &[copy::UNIFIED, 0x1000, 0x55aa, 8, 0]),
        event(Kind::ContextDestroy, 110, &[0xc0]),
    ])
    .json();
    assert_valid(&report);
    assert_eq!(figures(&report, "array", LIFE), [3, 1, 2, 0]);
    let array = &report["ledgers"]["array"];
    assert_eq!((&array["failed"], &array["estimated"]), (&json!(1), &json!(true)));
    assert_eq!(report["sums"]["gpu"]["peak_bytes"], 4112);
    assert_eq!(report["unknown_frees"], 1);
    assert_eq!(report["copies"][0]["direction"], "array_to_host");
}

#[test]
fn an_ipc_handle_is_open_until_it_was_closed_as_often() {
    let report = Writer::of(vec![
        event(Kind::Import, 10, &[0x1000, 0, source::IPC, 0]),
        event(Kind::Import, 20, &[0x1000, 0, source::IPC, 0]),
        event(Kind::Import, 30, &[0x2000, 0, source::IPC, 0]),
        event(Kind::ImportClose, 40, &[0x1000]),
        event(Kind::ImportClose, 50, &[0x2000]).failed(),
        event(Kind::ImportClose, 60, &[0x1000]),
        event(Kind::ImportClose, 70, &[0x1000]),
        event(Kind::Import, 80, &[0x3000, 500, source::EXTERNAL, 7]),
        event(Kind::Free, 90, &[0x3000]),
        event(Kind::Import, 100, &[0x4000, 0, source::POOL_POINTER, 7]),
        event(Kind::PoolFree, 110, &[0x4000, 0]),
    ])
    .json();
    assert_valid(&report);
    assert_eq!(figures(&report, "imported", LIFE), [4, 3, 0, 0]);
    assert_eq!(report["ledgers"]["imported"]["failed"], 1);
    assert_eq!(report["ledgers"]["imported"]["unsized_count"], 1);
    assert_eq!(report["unknown_frees"], 1);
    assert_eq!((&report["overlaps"], &report["sums"]["gpu"]["peak_bytes"]), (&json!(0), &json!(0)));
}

#[test]
fn an_imported_handle_has_a_size_from_its_first_mapping_on() {
    let report = Writer::of(vec![
        event(Kind::PhysicalImport, 10, &[7, 1]),
        event(Kind::PhysicalImport, 20, &[7, 1]),
        event(Kind::Map, 30, &[0x10_0000, 64, 0, 7]),
        event(Kind::Map, 40, &[0x10_0040, 64, 0, 7]),
        event(Kind::PhysicalRelease, 50, &[7]),
        event(Kind::PhysicalRelease, 60, &[7]),
        event(Kind::Unmap, 70, &[0x10_0000, 128]),
        event(Kind::PhysicalImport, 80, &[8, 1]),
        event(Kind::ObjectCreate, 90, &[9, object::MULTICAST, 0]),
        event(Kind::Map, 100, &[0x20_0000, 32, 0, 9]),
        event(Kind::PhysicalRelease, 110, &[9]),
        event(Kind::Unmap, 120, &[0x20_0000, 32]),
    ])
    .json();
    assert_valid(&report);
    assert_eq!(figures(&report, "imported", LIFE), [2, 1, 0, 0]);
    assert_eq!(report["ledgers"]["imported"]["alloc_bytes"], 64);
    assert_eq!(report["ledgers"]["imported"]["peak_bytes"], 64);
    assert_eq!(figures(&report, "vmm_physical", LIFE), [0, 0, 0, 0]);
    assert_eq!(report["unknown_frees"], 0);
    assert_eq!(report["fragmentation"]["vmm"]["stuck"]["unreferenced_bytes"], 0);
}

#[test]
fn pools_tell_what_the_driver_said_and_what_was_in_use_then() {
    let device = |id: u64| 1 << 32 | id;
    let report = Writer::of(vec![
        event(Kind::ContextCreate, 1, &[0xc0, 0]),
        event(Kind::ContextCurrent, 8, &[0xc0]).site(0),
        event(Kind::PoolAlloc, 20, &[0x1000, 100, 0, 0]),
        event(Kind::PoolAttribute, 30, &[0xd0, pool::DEFAULT_OF, device(0), 0]),
        event(Kind::PoolCreate, 40, &[0xd1, 1, 0]),
        event(Kind::PoolAttribute, 50, &[0xd1, pool::RELEASE_THRESHOLD, u64::MAX, 1]),
        event(Kind::PoolAlloc, 60, &[0x2000, 300, 0, 0xd1]),
        event(Kind::PoolAttribute, 70, &[0xd0, pool::RESERVED, 1000, 0]),
        event(Kind::PoolAttribute, 80, &[0xd1, pool::RESERVED, 5000, 0]),
        event(Kind::PoolAttribute, 90, &[0xd1, pool::RESERVED, 9000, 0]).failed(),
        event(Kind::PoolTrim, 100, &[0xd0, 0]),
        event(Kind::PoolDestroy, 110, &[0xd1]),
        event(Kind::PoolFree, 120, &[0x1000, 0]),
        event(Kind::Prefetch, 130, &[0x5000, 10, 1, 0, 0]),
        event(Kind::Prefetch, 140, &[0x5000, 20, 3, 1, 0]),
        event(Kind::Advise, 150, &[0x5000, 30, 1, 2, 0]),
    ])
    .json();
    assert_valid(&report);
    let pools = &report["pools"];
    assert_eq!(pools["reserved_bytes"], 1000, "the destroyed one has gone");
    assert_eq!(pools["reserved_peak_bytes"], 6000);
    let keys = ["label", "handle", "gpu", "allocs", "live_bytes", "unused_bytes", "trims"];
    let row = |row: &Value| keys.map(|key| row[key].clone());
    let [first, second] = [&pools["pools"][0], &pools["pools"][1]].map(row);
    assert_eq!(json!(first), json!(["default", "0xd0", 0, 1, 0, 900, 1]));
    assert_eq!(json!(second), json!(["pool 2", "0xd1", 0, 1, 300, 4700, 0]));
    let waste = &report["fragmentation"]["pool"];
    assert_eq!((&waste["waste_bytes"], &waste["told"]), (&json!(900), &json!(1)));
    assert_eq!(report["by_gpu"][0]["fragmentation"]["pool"], *waste);
    let managed = &report["managed"];
    assert_eq!(managed["prefetches"][0], json!({"label": "gpu 0", "count": 1, "bytes": 10}));
    assert_eq!(managed["prefetches"][1]["label"], "host numa node 1");
    assert_eq!(managed["advice"][0]["name"], "set_read_mostly");
}
