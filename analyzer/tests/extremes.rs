//! Logs that no sane process writes, and some that a sane one may: every report is made, is
//! valid, and says what can be said.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod support;

use gmmtrace::live::Window;
use gmmtrace::units::Ticks;
use gmmtrace::{render, report};
use gmmtrace_format::definition::{Definition, LENGTH, Layer};
use gmmtrace_format::header::Item;
use gmmtrace_format::kind::copy;
use gmmtrace_format::layout::{
    CHUNK_HEADER, CHUNK_SIZE, CONTENT_DEFINITIONS, PAYLOAD, chunk, file,
};
use gmmtrace_format::{Kind, Operand};
use serde_json::{Value, json};
use support::{Chunk, RUNTIME_SITE, Writer, Written, assert_valid, event, put32, put64};

const BLOCK: u64 = 2 << 20;
/// The longest text here: a little less than what a chunk holds. A text cannot be longer.
const LONG: usize = 60_000;

fn at(kind: Kind, stamp: u64, operands: &[u64]) -> Written {
    let mut written = event(kind, 0, operands);
    (written.event.start, written.event.end) = (stamp, stamp);
    written
}

fn alloc(stamp: u64, address: u64, bytes: u64) -> Written {
    at(Kind::DeviceAlloc, stamp, &[address, bytes])
}

/// The report in JSON, which is valid, and as text.
fn both(bytes: &[u8], window: Window) -> (Value, String) {
    let log = support::open(bytes);
    gmmtrace::cli::dump::write(&log, &mut std::io::sink()).unwrap();
    let report = report::read(&log, window, |_, _| ());
    let mut text = Vec::new();
    render::text::write(&report, &mut text).unwrap();
    let value = render::json::value(&report);
    assert_valid(&value);
    let edges = value["timeline"]["edges_ns"].as_array().unwrap();
    assert!(edges.len() <= 1_025, "{} edges", edges.len());
    assert!(edges.is_sorted_by_key(|edge| edge.as_i64()));
    (value, String::from_utf8(text).unwrap())
}

fn of(log: &Writer) -> Value {
    both(&log.bytes(), Window::default()).0
}

fn window(since: Option<u64>, until: Option<u64>) -> Window {
    Window { since: since.map(Ticks), until: until.map(Ticks) }
}

fn pick(object: &Value, keys: &[&str]) -> Value {
    keys.iter().map(|&key| object[key].clone()).collect()
}

const HEIGHT: [&str; 3] = ["live_bytes", "peak_bytes", "peak_at_ns"];

/// Chunks of definitions.
fn definitions<'a>(all: impl Iterator<Item = Definition<'a>>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut slot = Vec::new();
    let mut place = CHUNK_SIZE;
    for definition in all {
        loop {
            let word = slot.get_mut(place + 4..).and_then(|out| definition.encode(out));
            if let Some(word) = word {
                put32(&mut slot, place, word);
                place += (word & LENGTH) as usize;
                break;
            }
            bytes.append(&mut slot);
            slot = vec![0; CHUNK_SIZE];
            put32(&mut slot, chunk::STATE, 1);
            put32(&mut slot, chunk::CONTENT, CONTENT_DEFINITIONS);
            put32(&mut slot, chunk::COMMITTED, PAYLOAD as u32);
            place = CHUNK_HEADER;
        }
    }
    bytes.append(&mut slot);
    bytes
}

// Time

#[test]
fn stamps_from_0_to_the_greatest_fit_on_one_axis() {
    let log = Writer::of(vec![
        alloc(0, BLOCK, 100),
        alloc(1, 2 * BLOCK, 20),
        at(Kind::Free, u64::MAX - 10, &[BLOCK]),
        alloc(u64::MAX - 9, BLOCK, 50).lasting(9),
    ]);
    let report = of(&log);
    assert_eq!(pick(&report["sums"]["gpu"], &HEIGHT), json!([70, 120, 1]));
    // Times of a report end at 2⁶³ − 1.
    let live = &report["live_at_end"][0];
    assert_eq!(pick(live, &["bytes", "oldest_at_ns"]), json!([70, 1]));
    let series = &report["timeline"]["series"][0];
    assert_eq!((&series["max_bytes"][0], &series["min_bytes"][0]), (&json!(120), &json!(0)));
    assert_eq!(series["last_bytes"].as_array().unwrap().last(), Some(&json!(70)));
    assert_eq!(report["timeline"]["edges_ns"].as_array().unwrap().last(), Some(&json!(i64::MAX)));
}

#[test]
fn a_log_that_is_only_at_the_end_of_time_is_read() {
    let log = Writer::of(vec![alloc(u64::MAX - 1, BLOCK, 100), alloc(u64::MAX, 2 * BLOCK, 20)]);
    let report = of(&log);
    assert_eq!(pick(&report["sums"]["gpu"], &HEIGHT), json!([120, 120, i64::MAX]));
    for (since, until) in [(0, 1), (u64::MAX, u64::MAX), (u64::MAX - 1, 0), (5, u64::MAX - 1)] {
        let found = both(&log.bytes(), window(Some(since), Some(until))).0;
        let within = |stamp| u64::from(since <= stamp && stamp <= until);
        let events = within(u64::MAX - 1) + within(u64::MAX);
        assert_eq!(found["trace"]["events"], events, "{since} {until}");
    }
}

#[test]
fn a_clock_that_jumps_back_within_a_thread_and_between_threads_loses_nothing() {
    let far = 1 << 40;
    let mut log = Writer::default();
    for step in 0..20 {
        let base = if step % 2 == 0 { far } else { 10 };
        log.push(0, alloc(base + step, (1 + step) * BLOCK, 1));
        log.push(1, alloc(far + 10 - base / 2 + step, (101 + step) * BLOCK, 1));
    }
    for per_chunk in [1, 3, 100] {
        log.per_chunk = per_chunk;
        let report = of(&log);
        assert_eq!(pick(&report["sums"]["gpu"], &HEIGHT), json!([40, 40, far + 24]));
        assert_eq!(report["coverage"]["salvage"], json!([]));
        assert_eq!(report["trace"]["events"], 40);
    }
}

/// A chunk whose base lies: its events take effect before it, so they are applied late.
#[test]
fn events_from_before_their_chunk_are_applied_and_shown_late() {
    let mut bytes = Writer::of(vec![alloc(5_000, BLOCK, 7)]).bytes();
    let mut liar = Chunk::new(2, 0, 9_000);
    for one in [alloc(10, 2 * BLOCK, 100), alloc(4_000, 3 * BLOCK, 20)] {
        assert!(liar.push(one.kind, &one.event));
    }
    bytes.append(&mut liar.slot);
    let (report, _) = both(&bytes, Window::default());
    assert_eq!(report["sums"]["gpu"]["live_bytes"], 127);
    assert_eq!(report["sums"]["gpu"]["peak_bytes"], 127);
    for (since, until) in [(None, Some(4_500)), (Some(4_500), None), (Some(20), Some(30))] {
        both(&bytes, window(since, until));
    }
}

#[test]
fn time_zero_may_lie_behind_every_event() {
    let mut bytes = Writer::of(vec![alloc(10, BLOCK, 100), alloc(20, 2 * BLOCK, 5)]).bytes();
    put64(&mut bytes, file::START_TICKS, 1_000_000);
    let (report, _) = both(&bytes, Window::default());
    let expected = json!([105, 105, -999_980]);
    assert_eq!(pick(&report["sums"]["gpu"], &HEIGHT), expected);
    put64(&mut bytes, file::START_TICKS, u64::MAX);
    both(&bytes, Window::default());
    both(&bytes, window(Some(u64::MAX), None));
}

#[test]
fn an_event_of_a_kind_that_is_not_known_long_after_the_others_does_not_stretch_the_timeline() {
    let mut log = Writer::of(vec![alloc(5, BLOCK, 100)]);
    log.push(1, at(Kind::Mark, 3_600_000_000_000, &[0]).site(0).text("new"));
    let mut bytes = log.bytes();
    // The mark becomes an event of a kind whose shape the header declares: one text.
    bytes[2 * CHUNK_SIZE + CHUNK_HEADER] = 0x7e;
    let length = u32::from_le_bytes(*bytes[file::ITEMS_LENGTH..].first_chunk().unwrap());
    let item = [Item::Kinds as u8, 0, 3, 0, 0x7e, 1, Operand::Text as u8];
    bytes[file::ITEMS + length as usize..][..item.len()].copy_from_slice(&item);
    put32(&mut bytes, file::ITEMS_LENGTH, length + item.len() as u32);
    let (report, _) = both(&bytes, Window::default());
    assert_eq!(report["coverage"]["unknown_kinds"], 1);
    assert_eq!(pick(&report["live"], &["bytes", "bound"]), json!([100, true]));
    assert_eq!(
        report["timeline"]["edges_ns"].as_array().unwrap().last(),
        Some(&json!(3_600_000_000_000_u64))
    );
}

// Little

#[test]
fn a_log_without_events_has_a_report() {
    let (report, text) = both(&Writer::default().bytes(), Window::default());
    assert_eq!(pick(&report["peak"], &["bytes", "at_ns"]), json!([0, null]));
    assert_eq!(report["trace"]["events"], 0);
    assert_eq!(report["process"]["duration_ns"], 1_000_000);
    assert!(!text.is_empty());
    let header = Writer::default().header();
    let (report, _) = both(&header, Window::default());
    assert_eq!(report["trace"]["events"], 0);
    let (report, _) = both(&header, window(Some(5), Some(9)));
    assert_eq!(report["timeline"]["edges_ns"], json!([5, 5]));
}

#[test]
fn a_log_of_one_event_has_a_report_whatever_the_event() {
    for &kind in Kind::ALL {
        let one = at(kind, 0, &[0; 5]);
        let one = if kind.has_text() { one.text("text") } else { one };
        for (failed, per_gpu) in [(false, 1), (true, 1), (false, 3), (true, 3)] {
            let mut log = Writer::of(vec![one.clone().failed_if(failed)]);
            log.gpus = per_gpu;
            let report = of(&log);
            assert_eq!(report["trace"]["events"], 1, "{kind:?}");
            assert_eq!(report["timeline"]["edges_ns"], json!([0, 0]), "{kind:?}");
        }
    }
}

#[test]
fn a_log_of_failed_calls_alone_counts_them_and_nothing_else() {
    let kinds = Kind::ALL.iter().filter(|&&kind| !kind.has_text() && kind != Kind::Sample);
    let events: Vec<Written> = kinds
        .zip(1..)
        .flat_map(|(&kind, stamp)| (0..50).map(move |_| at(kind, stamp, &[1, 2, 1, 1]).failed()))
        .collect();
    let report = of(&Writer::of(events));
    for (name, ledger) in report["ledgers"].as_object().unwrap() {
        let counts = pick(ledger, &["allocs", "frees", "live_count", "peak_bytes", "peak_at_ns"]);
        assert_eq!(counts, json!([0, 0, 0, 0, null]), "{name}");
        if name != "vmm_host" {
            assert!(ledger["failed"].as_u64().unwrap() >= 50, "{name}");
        }
    }
    assert_eq!(report["timeline"]["series"], json!([]));
    assert_eq!((&report["failed_copies"], &report["failed_sets"]), (&json!(50), &json!(50)));
    assert_eq!((&report["copies"], &report["live_at_end"]), (&json!([]), &json!([])));
    // Eleven ways to take memory or to open it, and nine to give it back.
    assert_eq!(report["stalls"]["alloc"]["count"], 11 * 50);
    assert_eq!(report["stalls"]["free"]["count"], 9 * 50);
    let odd = pick(&report, &["null_calls", "unknown_frees", "overlaps"]);
    assert_eq!(odd, json!([0, 0, 0]));
    let contexts = json!({"created": 0, "destroyed": 0, "live": 0});
    assert_eq!(report["handles"]["contexts"], contexts);
}

// Much

/// 120,000 sites; a million take twenty seconds in a debug build and show nothing else.
#[test]
fn hundreds_of_thousands_of_sites_are_one_line() {
    const SITES: u32 = 120_000;
    let sites = (0..SITES).map(|number| Definition::Site {
        id: 1_000 + number,
        api: support::ALLOC,
        outer: 0,
        address: 0x1000 + u64::from(number),
        module: 1,
    });
    let mut log = Writer { per_chunk: 2_000, ..Writer::default() };
    for number in 0..SITES {
        let address = u64::from(number + 1) * 512;
        log.push(0, alloc(u64::from(number), address, 512).site(1_000 + number));
    }
    let mut bytes = log.bytes();
    bytes.append(&mut definitions(sites));
    let (report, _) = both(&bytes, Window::default());
    let bytes = 512 * u64::from(SITES);
    let row = pick(&report["live_at_end"][0], &["count", "bytes", "oldest_at_ns"]);
    assert_eq!(row, json!([SITES, bytes, 0]));
    assert_eq!(report["live_at_end"].as_array().unwrap().len(), 1);
    assert_eq!(pick(&report["peak"]["held"][0], &["count", "bytes"]), json!([SITES, bytes]));
    assert_eq!(pick(&report["calls"][0], &["api", "calls"]), json!(["cuMemAlloc_v2", SITES]));
}

#[test]
fn names_as_long_as_a_chunk_and_of_any_bytes_are_told() {
    let long = "m".repeat(LONG);
    let wild = "a\0b\n\u{1b}[31mc\u{202e}\t".to_owned();
    for name in [&long, &wild] {
        let mut log = Writer { per_chunk: 1, ..Writer::default() };
        log.push(0, at(Kind::Thread, 1, &[501, 0]).site(0).text(name));
        log.push(0, at(Kind::Mark, 2, &[0]).site(0).text(name));
        log.push(0, at(Kind::RangePush, 3, &[0]).site(0).text(name));
        log.push(0, at(Kind::RangeStart, 4, &[7, 0]).site(0).text(name));
        log.push(0, alloc(5, BLOCK, 10).site(1_000));
        log.push(0, at(Kind::Free, 6, &[0xdead_0000]).site(1_000));
        let site = Definition::Site { id: 1_000, api: 900, outer: 901, address: 1, module: 9 };
        let text = name.as_bytes();
        let module =
            Definition::Module { id: 9, start: 0, end: 9, build_id: &text[..10], path: text };
        let driver = Layer::Driver as u64;
        let all = [
            site,
            module,
            Definition::Api { id: 900, layer: driver, name: text },
            Definition::Api { id: 901, layer: 77, name: text },
            Definition::Remark { text },
            Definition::Driver { version: text },
            Definition::Gpu { index: 3, total: u64::MAX, uuid: b"", name: text },
        ];
        let mut bytes = log.bytes();
        bytes.append(&mut definitions(all.into_iter()));
        let (report, shown) = both(&bytes, Window::default());
        let expected = json!(name);
        assert_eq!(report["marks"][0]["text"], expected);
        assert_eq!(report["ranges"][0]["name"], expected);
        assert_eq!(report["ranges"][0]["open"], 2);
        let site = &report["live_at_end"][0]["site"];
        assert_eq!(pick(site, &["library", "api", "call"]), json!([expected, expected, expected]));
        assert_eq!(report["process"]["driver"], expected);
        assert_eq!(report["process"]["gpus"][1]["name"], expected);
        let control = shown.chars().filter(|&c| c.is_control() && c != '\n' && c != '\t');
        assert_eq!(control.count(), 0, "a terminal takes them for commands");
    }
}

/// A definition that claims a megabyte, where the chunk has less.
#[test]
fn a_name_that_claims_to_be_longer_than_its_chunk_is_damage() {
    let mut bytes = Writer::of(vec![alloc(1, BLOCK, 10)]).bytes();
    let mut dictionary = definitions([Definition::Remark { text: b"short" }].into_iter());
    put32(&mut dictionary, CHUNK_HEADER, 1 << 31 | 5 << 24 | 1 << 20);
    bytes.append(&mut dictionary);
    let (report, _) = both(&bytes, Window::default());
    assert_eq!(report["live"]["bytes"], 10);
    assert_ne!(report["coverage"]["salvage"], json!([]));
}

#[test]
fn sizes_of_the_greatest_number_saturate_and_overflow_nothing() {
    let huge = u64::MAX;
    let log = Writer::of(vec![
        alloc(1, BLOCK, huge),
        alloc(2, 2 * BLOCK, huge),
        at(Kind::ManagedAlloc, 3, &[0x10, huge, huge]),
        at(Kind::PoolAlloc, 4, &[0x20, huge, huge, huge]),
        at(Kind::PinnedAlloc, 5, &[huge, huge, huge]),
        at(Kind::HostRegister, 6, &[huge, huge, huge]),
        at(Kind::AddressReserve, 7, &[huge, huge]),
        at(Kind::AddressReserve, 8, &[1, huge]),
        at(Kind::PhysicalCreate, 9, &[huge, huge, 1, huge]),
        at(Kind::PhysicalCreate, 9, &[1, huge, huge, huge]),
        at(Kind::Map, 10, &[huge, huge, huge, huge]),
        at(Kind::Map, 11, &[5, huge, huge, 1]),
        at(Kind::Map, 12, &[9, huge, huge, 1]),
        at(Kind::Copy, 13, &[copy::UNIFIED, huge, huge, huge, huge]),
        at(Kind::Copy, 14, &[huge, 5, huge, huge, huge]),
        at(Kind::Set, 15, &[huge, huge, huge, huge]),
        at(Kind::Sample, 16, &[huge, huge, huge, huge]),
        event(Kind::Set, 17, &[0, 1, 2, 0]).lasting(u64::MAX - 17),
        at(Kind::Unmap, 18, &[1, huge]),
        at(Kind::Free, 19, &[BLOCK]),
    ]);
    let report = of(&log);
    let device = &report["ledgers"]["device"];
    let keys = ["allocs", "alloc_bytes", "frees", "free_bytes", "live_count", "peak_bytes"];
    assert_eq!(pick(device, &keys), json!([2, huge, 1, huge, 1, huge]));
    assert_eq!(pick(&report["peak"], &["bytes", "at_ns"]), json!([huge, 1]));
    let class = &report["peak"]["by_size"][0];
    assert_eq!(pick(class, &["from_bytes", "to_bytes"]), json!([1_u64 << 63, huge]));
    let total: u64 = report["copies"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            assert_eq!(row["bytes"], huge);
            row["count"].as_u64().unwrap()
        })
        .sum();
    assert_eq!(total, 2);
    assert_eq!(pick(&report["sets"], &["count", "bytes"]), json!([2, huge]));
    assert_eq!(report["sampled"][0]["max_used_bytes"], huge);
    assert_eq!(report["stalls"]["set"]["max_ns"], i64::MAX);
    assert_eq!(report["stalls"]["set"]["by_length"][1]["to_ns"], Value::Null);
}

#[test]
fn ranges_in_which_nothing_is_mapped_cost_nothing_at_each_look() {
    let mut log = Writer { per_chunk: 2_000, ..Writer::default() };
    for number in 0..30_000 {
        log.push(0, at(Kind::AddressReserve, 1, &[(number + 1) << 21, 1 << 21]));
    }
    let mut stamp = 2;
    for _ in 0..3_000 {
        log.push(0, at(Kind::PhysicalCreate, stamp, &[1, 5, 1, 0]));
        log.push(0, at(Kind::PhysicalRelease, stamp, &[1]));
        stamp += 1 + stamp / 200;
    }
    let began = std::time::Instant::now();
    let report = of(&log);
    assert_eq!(report["ledgers"]["vmm_address"]["live_count"], 30_000);
    let took = began.elapsed();
    assert!(took < std::time::Duration::from_secs(5), "{took:?}");
}

/// Devices up to number 254 are told apart; what is above is no number of a device.
#[test]
fn three_hundred_devices_have_a_row_each_as_far_as_they_can_be_numbered() {
    let mut log = Writer { gpus: 300, ..Writer::default() };
    for gpu in 0..300 {
        log.push(0, at(Kind::DeviceCurrent, 10 * gpu, &[gpu]).site(0));
        log.push(0, alloc(10 * gpu + 1, (gpu + 1) * BLOCK, 1_000 + gpu).site(RUNTIME_SITE));
    }
    let report = of(&log);
    let rows = report["by_gpu"].as_array().unwrap();
    // 254 to 299 are not known, so CUDA's default takes them: they stand with device 0.
    assert_eq!(rows.len(), 254);
    let bytes = |gpu: usize| rows[gpu]["live"]["bytes"].as_u64().unwrap();
    assert_eq!(bytes(0), 1_000 + (254..300).map(|gpu| 1_000 + gpu).sum::<u64>());
    assert_eq!((bytes(1), bytes(253)), (1_001, 1_253));
    assert_eq!(rows[253]["gpu"], 253);
    let all: u64 = (0..300).map(|gpu| 1_000 + gpu).sum();
    assert_eq!(pick(&report["sums"]["gpu"], &HEIGHT), json!([all, all, 2_991]));
    assert_eq!(report["fragmentation"]["device"]["touched_bytes"], 300 * BLOCK);
    let series = report["timeline"]["series"].as_array().unwrap();
    // `gpu`, `device` and `device_blocks` of all together and of each.
    assert_eq!(series.len(), 3 * 255);
    let last = series.iter().find(|one| one["gpu"] == 253).unwrap();
    assert_eq!(last["max_bytes"].as_array().unwrap().last(), Some(&json!(1_253)));
    assert_eq!(last["max_bytes"][0], 0);
}
