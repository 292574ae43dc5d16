//! Parallel decoding and the merge.
//!
//! ```text
//! merge ──jobs──▶ workers (decode) ──results──▶ merge ──records──▶ sink
//!   ▲                                             │
//!   └──────────────── empty buffers ──────────────┘
//! ```
//!
//! Jobs go out in the order of the chunks' bases, a few ahead of the merge. When very many chunks
//! are open at the same time, a chunk is decoded anew for each window of its records, which
//! costs time and keeps memory bounded.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::thread;

use crossbeam_channel::{Receiver, Sender, unbounded};
use rustc_hash::FxHashMap;

use super::{Decoded, LaneStart, Record, Window, decode};
use crate::input::{ChunkRef, Log, OpenCalls, Salvage};
use crate::units::Ticks;

/// Chunks open at the same time that are kept whole.
const WHOLE: usize = 72;
/// Records kept of all chunks together when more are open.
const WINDOWED: usize = 1 << 18;

/// What the records are for.
pub trait Sink {
    /// A thread begins to write. Lanes are numbered from 0 in the order of these calls.
    fn lane(&mut self, ordinal: u32, start: &LaneStart);
    /// Further records in order, all of the chunk with these texts. A record's lane counts from
    /// `lane`.
    fn records(&mut self, lane: u32, records: &[Record], texts: &[u8]);
    /// So many of so many chunks are done.
    fn progress(&mut self, done: usize, all: usize) {
        let _ = (done, all);
    }
    /// Whether nothing more is wanted.
    fn is_done(&self) -> bool {
        false
    }
}

/// What the merge learned besides the records.
#[derive(Debug, Default)]
pub struct Outcome {
    /// What was damaged in the chunks' payloads.
    pub salvage: Vec<Salvage>,
    /// Events of kinds that this version does not know.
    pub unknown_kinds: u64,
    /// The greatest stamp of all.
    pub last: Ticks,
    /// Calls in flight: the lane, and what its chunk said.
    pub in_flight: Vec<(u32, OpenCalls)>,
    /// Chunks read.
    pub chunks: usize,
}

struct Job {
    index: usize,
    window: Window,
    buffer: Decoded,
}

struct Done {
    index: usize,
    window: Window,
    decoded: Decoded,
}

/// Hands every event of `log` to `sink`, in order.
pub fn run(log: &Log, sink: &mut impl Sink) -> Outcome {
    let (jobs, inbox) = unbounded::<Job>();
    let (outbox, results) = unbounded::<Done>();
    let workers = workers();
    thread::scope(|scope| {
        for _ in 0..workers {
            let (inbox, outbox) = (inbox.clone(), outbox.clone());
            scope.spawn(move || work(log, &inbox, &outbox));
        }
        drop((inbox, outbox));
        let mut merge = Merge::new(log, jobs, results, workers * 2 + 1);
        merge.run(sink);
        merge.outcome
    })
}

fn workers() -> usize {
    let cores = thread::available_parallelism().map_or(2, usize::from);
    cores.saturating_sub(1).clamp(1, 8)
}

fn calls_of(log: &Log, chunk: &ChunkRef) -> Option<OpenCalls> {
    chunk.in_flight.and_then(|at| log.slots.in_flight.get(at as usize)).copied()
}

fn work(log: &Log, inbox: &Receiver<Job>, outbox: &Sender<Done>) {
    let mut payload = Vec::new();
    for Job { index, window, mut buffer } in inbox {
        if let Some(chunk) = log.slots.events.get(index) {
            let calls = calls_of(log, chunk);
            decode(&log.file, chunk, calls, &log.shapes, window, &mut payload, &mut buffer);
        }
        if outbox.send(Done { index, window, decoded: buffer }).is_err() {
            return;
        }
    }
}

/// A chunk that the merge is inside of.
struct Open {
    index: usize,
    decoded: Decoded,
    /// The next record in `decoded`.
    at: usize,
    /// Records of the chunk before `decoded`'s first.
    skipped: usize,
    /// Lane of the chunk's owner.
    lane: u32,
    /// See [`tie`].
    tie: u64,
}

/// Where a record stands among all records: its stamp, and what decides at equal stamps.
type Key = (u64, u64);

impl Open {
    fn key(&self) -> Option<Key> {
        self.decoded.records.get(self.at).map(|record| full_key(record, self.tie))
    }
}

#[inline]
fn full_key(record: &Record, tie: u64) -> Key {
    let (stamp, effect) = record.key();
    (stamp, u64::from(effect) << 56 | tie)
}

/// Thread, then chunk: 31 and 32 bits. The top bit is left to what takes away coming first.
fn tie(chunk: &ChunkRef) -> u64 {
    let thread = u64::from(chunk.thread & 0x7f_ffff);
    thread << 32 | u64::from(chunk.sequence)
}

struct Merge<'a> {
    log: &'a Log,
    jobs: Sender<Job>,
    results: Receiver<Done>,
    /// Jobs to keep ahead of the merge.
    ahead: usize,
    /// First chunk that no job was sent for.
    unsent: usize,
    /// First chunk that is not open yet.
    unopened: usize,
    arrived: FxHashMap<usize, Done>,
    spare: Vec<Decoded>,
    open: Vec<Option<Open>>,
    free: Vec<usize>,
    heap: BinaryHeap<Reverse<(Key, usize)>>,
    /// The lane that writes last under each thread ordinal.
    lanes: FxHashMap<u32, u32>,
    lane_count: u32,
    outcome: Outcome,
}

impl<'a> Merge<'a> {
    fn new(log: &'a Log, jobs: Sender<Job>, results: Receiver<Done>, ahead: usize) -> Self {
        Self {
            log,
            jobs,
            results,
            ahead,
            unsent: 0,
            unopened: 0,
            arrived: FxHashMap::default(),
            spare: Vec::new(),
            open: Vec::new(),
            free: Vec::new(),
            heap: BinaryHeap::new(),
            lanes: FxHashMap::default(),
            lane_count: 0,
            outcome: Outcome::default(),
        }
    }

    fn run(&mut self, sink: &mut impl Sink) {
        while !sink.is_done() {
            self.open_due(sink);
            let Some(&Reverse((_, place))) = self.heap.peek() else { return };
            let bound = self.bound();
            let next = self.emit(place, bound, sink);
            if let Some(mut top) = self.heap.peek_mut() {
                match next {
                    Some(key) => top.0.0 = key,
                    None => drop(PeekMut::pop(top)),
                }
            }
        }
    }

    /// Opens every chunk that may hold the next record.
    fn open_due(&mut self, sink: &mut impl Sink) {
        while let Some(chunk) = self.log.slots.events.get(self.unopened) {
            let due = self.heap.peek().is_none_or(|Reverse((key, _))| chunk.base <= key.0);
            if !due {
                return;
            }
            self.open_next(*chunk, sink);
        }
    }

    fn open_next(&mut self, chunk: ChunkRef, sink: &mut impl Sink) {
        let index = self.unopened;
        self.send_ahead();
        self.unopened += 1;
        let Some(done) = self.wait_for(index) else { return };
        let lane = self.begin_lanes(&chunk, &done.decoded, sink);
        self.take_stock(&chunk, &done.decoded, lane);
        let tie = tie(&chunk);
        let opened = Open { index, decoded: done.decoded, at: 0, skipped: 0, lane, tie };
        let key = opened.key();
        match key {
            Some(key) => {
                let place = self.place(opened);
                self.heap.push(Reverse((key, place)));
            }
            None => self.spare.push(opened.decoded),
        }
        sink.progress(self.unopened, self.log.slots.events.len());
    }

    fn place(&mut self, opened: Open) -> usize {
        match self.free.pop() {
            Some(place) => {
                if let Some(slot) = self.open.get_mut(place) {
                    *slot = Some(opened);
                }
                place
            }
            None => {
                self.open.push(Some(opened));
                self.open.len() - 1
            }
        }
    }

    fn send_ahead(&mut self) {
        let until = (self.unopened + self.ahead).min(self.log.slots.events.len());
        let limit = self.window_limit();
        while self.unsent < until {
            self.send(self.unsent, Window { skip: 0, limit });
            self.unsent += 1;
        }
    }

    fn window_limit(&self) -> Option<usize> {
        let open = self.open.len() - self.free.len();
        (open >= WHOLE).then(|| (WINDOWED / (open + self.ahead)).max(64))
    }

    fn send(&mut self, index: usize, window: Window) {
        let buffer = self.spare.pop().unwrap_or_default();
        let _ = self.jobs.send(Job { index, window, buffer });
    }

    /// The result for a chunk. `None` cannot happen while workers live.
    fn wait_for(&mut self, index: usize) -> Option<Done> {
        loop {
            if let Some(done) = self.arrived.remove(&index) {
                return Some(done);
            }
            let done = self.results.recv().ok()?;
            self.arrived.insert(done.index, done);
        }
    }

    /// Gives the chunk's threads their lanes; returns that of its owner.
    fn begin_lanes(&mut self, chunk: &ChunkRef, decoded: &Decoded, sink: &mut impl Sink) -> u32 {
        let owner = LaneStart { tid: chunk.tid, name: String::new() };
        // A first chunk whose first event names the thread: the owner never writes as itself.
        match self.lanes.get(&chunk.thread) {
            Some(&lane) if decoded.lanes.is_empty() => lane,
            _ => {
                let first = self.begin_lane(chunk.thread, &owner, sink);
                for start in &decoded.lanes {
                    self.begin_lane(chunk.thread, start, sink);
                }
                first
            }
        }
    }

    fn begin_lane(&mut self, ordinal: u32, start: &LaneStart, sink: &mut impl Sink) -> u32 {
        let lane = self.lane_count;
        self.lane_count += 1;
        self.lanes.insert(ordinal, lane);
        sink.lane(ordinal, start);
        lane
    }

    fn take_stock(&mut self, chunk: &ChunkRef, decoded: &Decoded, lane: u32) {
        let outcome = &mut self.outcome;
        outcome.chunks += 1;
        outcome.salvage.extend(decoded.damage);
        outcome.unknown_kinds += decoded.unknown_kinds;
        outcome.last = outcome.last.max(decoded.last);
        if let Some(calls) = calls_of(self.log, chunk) {
            let runtime = calls.runtime.filter(|_| !decoded.runtime_returned);
            let driver = calls.driver.filter(|_| !decoded.driver_returned);
            if runtime.is_some() || driver.is_some() {
                let lane = lane.saturating_add(decoded.lanes.len() as u32);
                outcome.in_flight.push((lane, OpenCalls { runtime, driver }));
            }
        }
    }

    /// The key that the current chunk's records must stay below.
    fn bound(&self) -> Key {
        // The two children of the heap's root are the candidates for second place.
        let slice = self.heap.as_slice();
        let second = slice.iter().skip(1).take(2).map(|Reverse((key, _))| *key).min();
        let unopened = self.log.slots.events.get(self.unopened).map(|chunk| (chunk.base, 0));
        [second, unopened].into_iter().flatten().min().unwrap_or((u64::MAX, u64::MAX))
    }

    /// Hands on records of one chunk up to `bound`, at least one. Returns the chunk's next key,
    /// or `None` when it is at its end and closed.
    fn emit(&mut self, place: usize, bound: Key, sink: &mut impl Sink) -> Option<Key> {
        let open = self.open.get_mut(place)?.as_mut()?;
        let rest = open.decoded.records.get(open.at..)?;
        let more = rest.iter().skip(1).take_while(|record| full_key(record, open.tie) < bound);
        let count = 1 + more.count();
        let run = rest.get(..count).unwrap_or(rest);
        sink.records(open.lane, run, &open.decoded.texts);
        open.at += run.len();
        if let Some(key) = open.key() {
            return Some(key);
        }
        self.refill(place)
    }

    /// The next window of a chunk, when there is one; else closes it.
    fn refill(&mut self, place: usize) -> Option<Key> {
        let mut open = self.open.get_mut(place)?.take()?;
        let read = open.skipped + open.decoded.records.len();
        if read >= open.decoded.total {
            self.spare.push(open.decoded);
            self.free.push(place);
            return None;
        }
        let limit = self.window_limit().or(Some(WINDOWED));
        self.spare.push(std::mem::take(&mut open.decoded));
        self.send(open.index, Window { skip: read, limit });
        let done = self.wait_for(open.index)?;
        (open.decoded, open.at, open.skipped) = (done.decoded, 0, done.window.skip);
        let key = open.key();
        match key {
            Some(_) => {
                if let Some(slot) = self.open.get_mut(place) {
                    *slot = Some(open);
                }
            }
            None => self.free.push(place),
        }
        key
    }
}
