//! The merge is a sort, whatever the threads, chunks and lengths of calls are.
#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use gmmtrace::order::{self, LaneStart, Record, Sink};
use gmmtrace_format::Kind;
use gmmtrace_format::kind::Effect;
use proptest::prelude::*;
use support::{Writer, Written, event};

#[derive(Default)]
struct Collected(Vec<u64>);

impl Sink for Collected {
    fn lane(&mut self, _ordinal: u32, _start: &LaneStart) {}

    fn records(&mut self, _lane: u32, records: &[Record], _texts: &[u8]) {
        self.0.extend(records.iter().map(|record| record.number::<0>()));
    }
}

/// Each event's number, sorted as the contract of `order` says.
fn sorted(threads: &[Vec<Written>]) -> Vec<u64> {
    let mut keys = Vec::new();
    for (thread, events) in threads.iter().enumerate() {
        for (index, written) in events.iter().enumerate() {
            let adds = written.kind.effect() == Effect::AtEnd;
            let event = &written.event;
            keys.push((event.effective(), adds, thread, index, event.operands[0]));
        }
    }
    keys.sort_unstable();
    keys.into_iter().map(|(.., number)| number).collect()
}

fn call() -> impl Strategy<Value = (bool, u64, u64, usize)> {
    (any::<bool>(), 0..6_u64, 0..40_u64, 0..5_usize)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None,
        ..ProptestConfig::default() })]

    #[test]
    fn the_merge_is_a_sort(
        calls in prop::collection::vec(call(), 0..120),
        per_chunk in 1..12_usize,
    ) {
        let mut log = Writer { per_chunk, ..Writer::default() };
        let mut clocks = [100_u64; 5];
        for (number, &(free, gap, length, thread)) in calls.iter().enumerate() {
            let kind = if free { Kind::Free } else { Kind::DeviceAlloc };
            let clock = &mut clocks[thread];
            *clock += gap;
            log.push(thread, event(kind, *clock, &[number as u64 + 1]).lasting(length));
            *clock += length;
        }
        let mut collected = Collected::default();
        order::run(&log.log(), &mut collected);
        prop_assert_eq!(collected.0, sorted(&log.threads));
    }
}

/// More chunks open at the same time than are kept whole.
#[test]
fn many_threads_at_once_are_merged_all_the_same() {
    let mut log = Writer::default();
    for step in 0..200_u64 {
        for thread in 0..150 {
            let number = step * 150 + thread as u64 + 1;
            log.push(thread, event(Kind::DeviceAlloc, 10 + step * 7 % 50, &[number]));
        }
    }
    for events in &mut log.threads {
        events.sort_by_key(|written| written.event.start);
    }
    let mut collected = Collected::default();
    order::run(&log.log(), &mut collected);
    assert_eq!(collected.0, sorted(&log.threads));
}
