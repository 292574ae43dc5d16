//! Logs that are torn, flipped or no logs at all.
#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use gmmtrace_format::layout::{CHUNK_HEADER, CHUNK_SIZE, Counter, chunk, file};
use gmmtrace_format::{Flags, Kind};
use serde_json::json;
use support::{
    ALONE_SITE, Chunk, RUNTIME_SITE, Writer, Written, assert_valid, event, exercise, json, open,
    put32, try_open,
};

fn events() -> Vec<Written> {
    vec![
        event(Kind::Thread, 1, &[501, 0]).site(0).text("main"),
        event(Kind::ContextCreate, 10, &[0xc0, 0]),
        event(Kind::ContextCurrent, 20, &[0xc0]).site(0),
        event(Kind::DeviceAlloc, 30, &[0x7f00_0000_0000, 1 << 21]),
        event(Kind::PoolAlloc, 40, &[0x7f00_1000_0000, 513, 0, 9]).site(RUNTIME_SITE),
        event(Kind::PhysicalCreate, 50, &[7, 4096, 1, 0]),
        event(Kind::Map, 60, &[0x7f00_2000_0000, 4096, 0, 7]),
        event(Kind::Copy, 70, &[16, 0x7f00_0000_0010, 0x55, 33, 0]).flags(Flags::CALL_FIRST),
        event(Kind::RuntimeCall, 80, &[0, 0]).site(ALONE_SITE),
        event(Kind::RangePush, 90, &[0]).site(0).text("phase"),
        event(Kind::Sample, 100, &[0, 512, 1024, 513]).site(0),
        event(Kind::Free, 110, &[0x7f00_0000_0000]).failed(),
        event(Kind::Unmap, 120, &[0x7f00_2000_0000, 4096]),
        event(Kind::ContextDestroy, 130, &[0xc0]),
    ]
}

/// Where each event ends in its chunk's payload.
fn ends() -> Vec<usize> {
    let mut chunk = Chunk::new(1, 0, 1);
    let mut ends = Vec::new();
    for written in events() {
        let event = gmmtrace_format::Event { text: &written.text, ..written.event };
        assert!(chunk.push(written.kind, &event));
        ends.push(chunk.at);
    }
    ends
}

#[test]
fn every_event_before_a_tear_is_read() {
    let whole = Writer::of(events()).bytes();
    let payload = CHUNK_SIZE + CHUNK_HEADER;
    let ends = ends();
    for cut in 0..=*ends.last().unwrap() {
        let read = exercise(&whole[..payload + cut]).unwrap();
        let before = ends.iter().filter(|&&end| end <= cut).count() as u64;
        assert_eq!(read, before, "cut after {cut} bytes of payload");
    }
}

#[test]
fn a_chunk_that_was_committed_in_part_yields_that_part() {
    let whole = Writer::of(events()).bytes();
    let ends = ends();
    for committed in 0..=*ends.last().unwrap() {
        let mut log = whole.clone();
        put32(&mut log, CHUNK_SIZE + chunk::COMMITTED, committed as u32);
        let before = ends.iter().filter(|&&end| end <= committed).count() as u64;
        assert_eq!(exercise(&log), Some(before), "{committed} bytes committed");
    }
}

#[test]
fn a_file_cut_anywhere_is_no_panic() {
    let whole = Writer::of(events()).bytes();
    let near = |place: usize| place.saturating_sub(40)..place + 160;
    let dense = (0..file::COUNTERS + 64).chain(near(file::ITEMS)).chain(near(CHUNK_SIZE));
    let sparse = (0..whole.len()).step_by(2_999);
    for cut in dense.chain(near(2 * CHUNK_SIZE)).chain(sparse) {
        exercise(whole.get(..cut).unwrap_or(&whole));
    }
}

/// A generator that is the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) as usize % sides
    }
}

#[test]
fn flipped_bytes_are_no_panic() {
    let mut writer = Writer::of(events());
    writer.in_flight = Some((256, 140, 7));
    let whole = writer.bytes();
    // Header, chunk header and events, definitions: where bytes mean something.
    let places = [(0, 1200), (CHUNK_SIZE, CHUNK_HEADER + 220), (2 * CHUNK_SIZE, 500)];
    let mut dice = Dice(42);
    for _ in 0..1_200 {
        let mut log = whole.clone();
        for _ in 0..1 + dice.roll(4) {
            let (start, length) = places[dice.roll(places.len())];
            log[start + dice.roll(length)] ^= 1 << dice.roll(8);
        }
        exercise(&log);
    }
}

#[test]
fn extreme_operands_are_no_panic() {
    let values = [0, 1, 2, u64::MAX, u64::MAX - 1, 1 << 63, 0x1000];
    let mut dice = Dice(7);
    for _ in 0..150 {
        let mut written = Vec::new();
        for _ in 0..100 {
            let kind = Kind::ALL[dice.roll(Kind::ALL.len())];
            let operands: Vec<u64> = (0..5).map(|_| values[dice.roll(values.len())]).collect();
            let at = dice.roll(1000) as u64;
            let failed = dice.roll(5) == 0;
            let lasting = values[dice.roll(values.len())] >> 1;
            written.push(event(kind, at, &operands).failed_if(failed).lasting(lasting));
        }
        exercise(&Writer::of(written).bytes()).unwrap();
    }
}

#[test]
fn losses_stand_beside_the_figures_that_they_touch() {
    let mut writer = Writer::of(events());
    writer.counters = vec![(Counter::LostLive, 3), (Counter::HelperMissing, 1)];
    let report = writer.json();
    assert_valid(&report);
    assert_eq!(report["coverage"]["losses"], json!({"lost_live_events": 3}));
    assert_eq!(report["coverage"]["notes"], json!({"helper_missing": 1}));
    assert_eq!(report["ledgers"]["device"]["bound"], true);
    assert_eq!(report["peak"]["bound"], true);
    assert_eq!(report["trace"]["complete"], false);
    writer.counters = vec![(Counter::LostCopies, 3)];
    let report = writer.json();
    assert_eq!(report["ledgers"]["device"]["bound"], false, "copies hold no memory");
    assert_eq!(report["trace"]["complete"], false);
}

#[test]
fn a_missing_chunk_is_told_and_makes_bounds() {
    let mut writer = Writer::of(events());
    writer.per_chunk = 5;
    let mut log = writer.bytes();
    log.drain(2 * CHUNK_SIZE..3 * CHUNK_SIZE);
    let report = json(&open(&log));
    assert_valid(&report);
    assert_eq!(report["trace"]["events"], 9);
    let salvage = report["coverage"]["salvage"][0].as_str().unwrap();
    assert_eq!(salvage, "chunk missing: 1 of thread 1, from number 1");
    assert_eq!(report["ledgers"]["device"]["bound"], true);
}

#[test]
fn what_is_no_log_is_refused_in_one_sentence() {
    let whole = Writer::of(events()).bytes();
    let mut other = whole.clone();
    other[file::MAJOR] = 9;
    let cases: [(&[u8], &str); 4] = [
        (b"", "the file is empty"),
        (b"hello, this is text\n", "not a gmmtrace log"),
        (&[0; 4096], "an unfinished log: its header was never published"),
        (&other, "written in format 9.0, and this program reads format 1.x"),
    ];
    for (bytes, sentence) in cases {
        let Err(error) = try_open(bytes) else { panic!("{sentence}: was read") };
        let text = error.to_string();
        assert!(text.ends_with(sentence), "{text}");
        assert_eq!(text.lines().count(), 1);
    }
}
