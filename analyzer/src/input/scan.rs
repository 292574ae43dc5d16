//! Walks the slots of a file and reads the chunk headers, not the payloads.

use std::fs::File;
use std::io;

use gmmtrace_format::header::{Anchor, InFlight};
use gmmtrace_format::layout::{
    CHUNK_HEADER, CHUNK_SIZE, CONTENT_DEFINITIONS, CONTENT_EVENTS, PAYLOAD, State,
};
use gmmtrace_format::{ChunkHeader, DecodeError};

use rustc_hash::FxHashMap;

use super::{Salvage, read_up_to};

/// A chunk of events, as far as its header was true when it was read.
#[derive(Clone, Copy, Debug)]
pub struct ChunkRef {
    /// Which slot of the file.
    pub slot: u64,
    /// No event takes effect before it.
    pub base: u64,
    /// Payload bytes to read.
    pub committed: u32,
    /// Kernel id of the owner.
    pub tid: u32,
    /// Ordinal of the owner in this log.
    pub thread: u32,
    /// Which chunk of that owner.
    pub sequence: u32,
    /// Whether its owner has moved on to another chunk.
    pub sealed: bool,
    /// Where its in-flight slots are in [`Slots::in_flight`], when it has any.
    pub in_flight: Option<u32>,
}

/// The in-flight slots of a chunk that was open.
#[derive(Clone, Copy, Debug)]
pub struct OpenCalls {
    /// The runtime call.
    pub runtime: Option<InFlight>,
    /// The driver call.
    pub driver: Option<InFlight>,
}

/// What the walk found.
#[derive(Default)]
pub struct Slots {
    /// Chunks of events, by rising base.
    pub events: Vec<ChunkRef>,
    /// Chunks of definitions: slot and committed length.
    pub definitions: Vec<(u64, u32)>,
    /// Calls that may be in flight.
    pub in_flight: Vec<OpenCalls>,
    /// The moments most far apart at which chunks were taken.
    pub first_taken: Option<Anchor>,
    /// See `first_taken`.
    pub last_taken: Option<Anchor>,
    /// Slots of the file behind the header, used or not.
    pub count: u64,
}

pub(super) fn scan(
    opened: &File,
    size: u64,
    running: bool,
    salvage: &mut Vec<Salvage>,
) -> io::Result<Slots> {
    let mut slots =
        Slots { count: size.div_ceil(CHUNK_SIZE as u64).saturating_sub(1), ..Slots::default() };
    let mut empty = Vec::new();
    for slot in 1..=slots.count {
        match read_header(opened, slot)? {
            None => empty.push(slot),
            Some(Err(_)) => salvage.push(Salvage::ChunkCut { slot, missing: 0 }),
            Some(Ok(header)) => slots.add(slot, &header, size, salvage),
        }
    }
    if running {
        slots.fill_gaps(opened, &empty, size, salvage)?;
    }
    slots.events.sort_by_key(|chunk| (chunk.base, chunk.thread, chunk.sequence));
    slots.check_sequences(running, salvage);
    Ok(slots)
}

/// `None` is a slot where nothing was written, an error one that the file ends in.
fn read_header(opened: &File, slot: u64) -> io::Result<Option<Result<ChunkHeader, DecodeError>>> {
    let mut bytes = [0; CHUNK_HEADER];
    let length = read_up_to(opened, &mut bytes, slot * CHUNK_SIZE as u64)?;
    if bytes.iter().all(|&byte| byte == 0) {
        return Ok(None);
    }
    Ok(Some(ChunkHeader::parse(bytes.get(..length).unwrap_or(&[]))))
}

impl Slots {
    /// A log that is being written can gain a chunk behind the walk and its follower before it.
    /// Such a chunk was there before its follower, so it is found now.
    fn fill_gaps(
        &mut self,
        opened: &File,
        empty: &[u64],
        size: u64,
        salvage: &mut Vec<Salvage>,
    ) -> io::Result<()> {
        let mut last = FxHashMap::default();
        for chunk in &self.events {
            let known = last.entry(chunk.thread).or_insert(0);
            *known = chunk.sequence.max(*known);
        }
        for &slot in empty {
            let Some(Ok(header)) = read_header(opened, slot)? else { continue };
            let followed = last.get(&header.thread).is_some_and(|&last| header.sequence < last);
            if followed && header.content == CONTENT_EVENTS {
                self.add(slot, &header, size, salvage);
            }
        }
        Ok(())
    }

    fn add(&mut self, slot: u64, header: &ChunkHeader, size: u64, salvage: &mut Vec<Salvage>) {
        let available = size.saturating_sub(slot * CHUNK_SIZE as u64 + CHUNK_HEADER as u64);
        match header.state {
            Some(State::Empty) => return,
            Some(State::Open | State::Sealed) => {}
            Some(State::Recycled) => return salvage.push(Salvage::Recycled { slot }),
            None => return salvage.push(Salvage::BadChunk { slot, value: header.content }),
        }
        let committed = readable(slot, header.committed, available, salvage);
        match header.content {
            CONTENT_EVENTS => self.add_events(slot, header, committed),
            CONTENT_DEFINITIONS => self.definitions.push((slot, committed)),
            value => return salvage.push(Salvage::BadChunk { slot, value }),
        }
        self.note_taken(header.taken);
    }

    /// Only an open chunk's in-flight slots mean something: a thread that moved on took its
    /// runtime call with it, and its driver call is an event of the next chunk.
    fn add_events(&mut self, slot: u64, header: &ChunkHeader, committed: u32) {
        let calls = OpenCalls { runtime: header.runtime_call, driver: header.driver_call };
        let any = calls.runtime.is_some() || calls.driver.is_some();
        let open = header.state == Some(State::Open) && any;
        let in_flight = u32::try_from(self.in_flight.len()).ok().filter(|_| open);
        if in_flight.is_some() {
            self.in_flight.push(calls);
        }
        self.events.push(ChunkRef {
            slot,
            base: header.base,
            committed,
            tid: header.tid,
            thread: header.thread,
            sequence: header.sequence,
            sealed: header.state == Some(State::Sealed),
            in_flight,
        });
    }

    fn note_taken(&mut self, taken: Anchor) {
        if taken.ticks == 0 {
            return;
        }
        if self.first_taken.is_none_or(|first| taken.ticks < first.ticks) {
            self.first_taken = Some(taken);
        }
        if self.last_taken.is_none_or(|last| taken.ticks > last.ticks) {
            self.last_taken = Some(taken);
        }
    }

    /// While the log is being written a chunk can be sealed after its follower was looked for.
    fn check_sequences(&self, running: bool, salvage: &mut Vec<Salvage>) {
        let mut order: Vec<(u32, u32, bool)> =
            self.events.iter().map(|chunk| (chunk.thread, chunk.sequence, chunk.sealed)).collect();
        order.sort_unstable();
        let mut expected = (0, 0);
        let mut rest = order.iter().peekable();
        while let Some(&(thread, sequence, sealed)) = rest.next() {
            let next = if expected.0 == thread { expected.1 } else { 0 };
            if sequence > next {
                salvage.push(Salvage::ChunkMissing { thread, first: next, count: sequence - next });
            } else if sequence < next {
                salvage.push(Salvage::ChunkTwice { thread, sequence });
            }
            let first = sequence.saturating_add(1);
            let last = rest.peek().is_none_or(|&&(other, ..)| other != thread);
            if last && sealed && !running {
                salvage.push(Salvage::NextMissing { thread, first });
            }
            expected = (thread, first);
        }
    }
}

fn readable(slot: u64, committed: u32, available: u64, salvage: &mut Vec<Salvage>) -> u32 {
    let limit = PAYLOAD as u32;
    if committed > limit {
        salvage.push(Salvage::BadChunk { slot, value: committed });
    }
    let committed = committed.min(limit);
    let there = u32::try_from(available).map_or(committed, |available| available.min(committed));
    if there < committed {
        salvage.push(Salvage::ChunkCut { slot, missing: u64::from(committed - there) });
    }
    there
}
