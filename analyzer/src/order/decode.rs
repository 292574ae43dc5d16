//! One chunk's payload into records, sorted.

use std::fs::File;
use std::ops::Range;

use gmmtrace_format::layout::{CHUNK_HEADER, CHUNK_SIZE, IN_FLIGHT_TICKS};
use gmmtrace_format::varint::Input;
use gmmtrace_format::{Codec, Event, Kind, Shapes};

use super::Record;
use crate::input::{ChunkRef, OpenCalls, Salvage};
use crate::units::Ticks;

/// A thread that begins to write within a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneStart {
    /// Its kernel id.
    pub tid: u32,
    /// Its name.
    pub name: String,
}

/// Which records of a chunk, in sorted order, are wanted.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// Records before it.
    pub skip: usize,
    /// Records in it; `None` for all that are left.
    pub limit: Option<usize>,
}

impl Window {
    /// Every record.
    pub const ALL: Self = Self { skip: 0, limit: None };

    fn range(self, length: usize) -> Range<usize> {
        let start = self.skip.min(length);
        let end = self.limit.map_or(length, |limit| start.saturating_add(limit).min(length));
        start..end
    }
}

/// A decoded chunk. Its buffers are used again for the next one.
#[derive(Debug, Default)]
pub struct Decoded {
    /// Records in the window, sorted by [`Record::key`].
    pub records: Vec<Record>,
    /// Texts of the records.
    pub texts: Vec<u8>,
    /// Threads that begin in this chunk; a record's lane 0 is the chunk's owner, lane `n` the
    /// thread that begins `n`-th.
    pub lanes: Vec<LaneStart>,
    /// Records of the whole chunk.
    pub total: usize,
    /// What is wrong with it.
    pub damage: Option<Salvage>,
    /// Events of kinds that this version does not know.
    pub unknown_kinds: u64,
    /// The greatest stamp in it.
    pub last: Ticks,
    /// Whether the chunk's driver call has an event.
    pub driver_returned: bool,
    /// Whether the chunk's runtime call has an event of its own.
    pub runtime_returned: bool,
}

impl Decoded {
    fn clear(&mut self) {
        self.records.clear();
        self.texts.clear();
        self.lanes.clear();
        *self = Self {
            records: std::mem::take(&mut self.records),
            texts: std::mem::take(&mut self.texts),
            lanes: std::mem::take(&mut self.lanes),
            ..Self::default()
        };
    }

    /// Gives memory back that a window does not need.
    fn keep(&mut self, window: Window) {
        let range = window.range(self.records.len());
        if window.limit.is_some() {
            self.records = self.records.get(range).unwrap_or(&[]).to_vec();
            self.texts.shrink_to_fit();
        } else {
            self.records.drain(..range.start);
        }
    }
}

/// Reads and decodes a chunk. `payload` is scratch space of the caller.
pub fn decode(
    file: &File,
    chunk: &ChunkRef,
    calls: Option<OpenCalls>,
    shapes: &Shapes,
    window: Window,
    payload: &mut Vec<u8>,
    out: &mut Decoded,
) {
    out.clear();
    payload.resize(chunk.committed as usize, 0);
    let start = chunk.slot * CHUNK_SIZE as u64 + CHUNK_HEADER as u64;
    let length = crate::input::read_up_to(file, payload, start).unwrap_or(0);
    let there = payload.get(..length).unwrap_or(&[]);
    decode_payload(there, chunk, calls, shapes, out);
    if length < payload.len() {
        out.damage = Some(Salvage::Unreadable { slot: chunk.slot });
    }
    out.total = out.records.len();
    sort(&mut out.records);
    out.last = out.records.last().map(Record::stamp).unwrap_or_default();
    out.keep(window);
}

fn decode_payload(
    payload: &[u8],
    chunk: &ChunkRef,
    calls: Option<OpenCalls>,
    shapes: &Shapes,
    out: &mut Decoded,
) {
    let mut codec = Codec::new(chunk.base);
    let mut input = Input::new(payload);
    let mut lane = 0;
    // 8 bytes are a usual event; more grow the buffer once.
    out.records.reserve(payload.len() / 8);
    loop {
        let offset = input.offset();
        let error = match codec.decode(shapes, &mut input) {
            Ok(Some(event)) => {
                out.push(&event, &mut lane);
                continue;
            }
            Ok(None) if offset >= payload.len() => break,
            Ok(None) => None,
            Err(error) => Some(error),
        };
        let lost = (payload.len() - offset) as u64;
        out.damage = Some(Salvage::Events { slot: chunk.slot, lost, error });
        break;
    }
    if let Some(calls) = calls {
        out.note_returned(calls);
    }
}

impl Decoded {
    #[inline]
    fn push(&mut self, event: &Event<'_>, lane: &mut u16) {
        let mut text = 0;
        if !event.text.is_empty() {
            text = self.texts.len() as u32;
            self.texts.extend_from_slice(event.text);
        }
        if event.kind == Kind::Thread as u8 {
            let [tid, ..] = event.operands;
            let name = String::from_utf8_lossy(event.text).into_owned();
            self.lanes.push(LaneStart { tid: u32::try_from(tid).unwrap_or(0), name });
            *lane = lane.saturating_add(1);
        }
        if event.known().is_none() {
            self.unknown_kinds += 1;
        }
        self.records.push(Record::new(event, *lane, text));
    }

    /// A call has returned when an event with its start was committed. The runtime's slot is
    /// cleared on return, so only a call that wrote an event of its own can be stale there.
    fn note_returned(&mut self, calls: OpenCalls) {
        let low = |record: &Record| record.start().0 & IN_FLIGHT_TICKS;
        let (driver, runtime) = (calls.driver, calls.runtime);
        self.driver_returned = self
            .records
            .iter()
            .any(|record| driver.is_some_and(|call| low(record) == call.ticks_low));
        self.runtime_returned = self.records.iter().any(|record| {
            record.kind == Kind::RuntimeCall as u8
                && runtime.is_some_and(|call| low(record) == call.ticks_low)
        });
    }
}

/// Records are nearly in order already: only calls within calls are not.
fn sort(records: &mut [Record]) {
    if !records.is_sorted_by_key(Record::key) {
        records.sort_by_key(Record::key);
    }
}
