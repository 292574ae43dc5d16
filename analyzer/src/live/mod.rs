//! The live set: the one state machine that events are applied to, in the order of their effect.
//!
//! ```text
//! alloc ok      null pointer → null call │ live there → overlap, the old block goes │ live
//! alloc failed  failed
//! free ok       null pointer → null call │ nothing there → unknown free │ gone
//! free failed   failed; the block stays
//! context ends  its blocks are gone, implicitly
//! ```
//!
//! Memory follows the number of live blocks and call sites, never the number of events. Events
//! may say anything: no sum overflows, no table is indexed by what a log says.

mod apply;
mod books;
mod context;
mod ledger;
mod marks;
mod odd;
mod samples;
mod sites;
mod space;
mod traffic;
mod vmm;

pub use books::{Account, Book, Books, Share, Sum};
pub use context::{Contexts, Counts};
pub use ledger::{GpuSlot, Ledger, NOT_COUNTED, Tally};
pub use marks::{MARKS, Mark, Marks, NAMES, RangeTotal};
pub use odd::{Example, Odd, Oddity};
pub use samples::{Sampled, Samples};
pub use sites::{Calls, SiteIndex, Sites};
pub use traffic::{CopyKey, Direction, HostMemory, Moved, Traffic};

use rustc_hash::FxHashMap;

use crate::input::Dictionary;
use crate::order::{LaneStart, Record, Sink};
use crate::units::{Bytes, Ticks};
use context::Current;
use marks::Stack;
use space::Space;
use vmm::Vmm;

/// A thread that writes events.
#[derive(Debug)]
pub struct Lane {
    /// Its kernel id.
    pub tid: u32,
    /// Its name.
    pub name: String,
    /// Whether it made a call, not only told facts.
    pub calls: bool,
    /// Its place in [`LiveSet::threads`]. A chunk in which another thread takes over begins
    /// lanes anew, so one thread may have several.
    thread: usize,
}

/// What a thread uses from event to event.
#[derive(Debug, Default)]
struct Thread {
    current: Current,
    ranges: Stack,
}

/// The live set, and what was counted on the way.
#[derive(Debug)]
pub struct LiveSet {
    /// Call sites and their calls.
    pub sites: Sites,
    /// The ledgers.
    pub books: Books,
    /// Contexts.
    pub contexts: Contexts,
    /// Threads.
    pub lanes: Vec<Lane>,
    /// Copies and sets.
    pub traffic: Traffic,
    /// Marks and ranges.
    pub marks: Marks,
    /// Readings of device memory.
    pub samples: Samples,
    /// What does not fit.
    pub odd: Odd,
    /// Events applied.
    pub events: u64,
    threads: Vec<Thread>,
    /// The lane that began last under each thread ordinal.
    last_lanes: FxHashMap<u32, usize>,
    spaces: Spaces,
    vmm: Vmm,
    /// The device that everything is on, when the machine has one.
    only_gpu: GpuSlot,
}

/// Live blocks by kind of address.
#[derive(Debug, Default)]
struct Spaces {
    device: Space,
    pinned: Space,
    registered: Space,
    reserved: Space,
}

/// A live block, as analyses see it.
#[derive(Clone, Copy, Debug)]
pub struct LiveBlock {
    /// Where it is booked.
    pub account: Account,
    /// Its size.
    pub bytes: Bytes,
    /// When it was made.
    pub at: Ticks,
}

impl LiveSet {
    /// Nothing is live yet.
    #[must_use]
    pub fn new(dictionary: &Dictionary) -> Self {
        let one = dictionary.gpus.len() == 1;
        Self {
            sites: Sites::new(dictionary),
            books: Books::default(),
            contexts: Contexts::default(),
            lanes: Vec::new(),
            traffic: Traffic::default(),
            marks: Marks::default(),
            samples: Samples::default(),
            odd: Odd::default(),
            events: 0,
            threads: Vec::new(),
            last_lanes: FxHashMap::default(),
            spaces: Spaces::default(),
            vmm: Vmm::default(),
            only_gpu: if one { GpuSlot::of(0) } else { GpuSlot::UNKNOWN },
        }
    }

    /// Every live block, in no order.
    pub fn live(&self) -> impl Iterator<Item = LiveBlock> {
        let spaces = &self.spaces;
        let all = [&spaces.device, &spaces.pinned, &spaces.registered, &spaces.reserved];
        let blocks = all.into_iter().flat_map(Space::blocks);
        let blocks = blocks.map(|block| LiveBlock {
            account: block.account,
            bytes: block.bytes,
            at: block.at,
        });
        blocks.chain(self.vmm.pieces().map(|piece| LiveBlock {
            account: piece.account,
            bytes: piece.bytes,
            at: piece.at,
        }))
    }
}

impl Sink for LiveSet {
    fn lane(&mut self, ordinal: u32, start: &LaneStart) {
        let last = self.last_lanes.insert(ordinal, self.lanes.len());
        let same = last.and_then(|last| self.lanes.get(last)).filter(|lane| lane.tid == start.tid);
        let thread = same.map_or(self.threads.len(), |lane| lane.thread);
        if thread == self.threads.len() {
            self.threads.push(Thread::default());
        }
        let (tid, name) = (start.tid, start.name.clone());
        self.lanes.push(Lane { tid, name, calls: false, thread });
    }

    fn records(&mut self, lane: u32, records: &[Record], texts: &[u8]) {
        self.events += records.len() as u64;
        let mut called = None;
        for record in records {
            let lane = lane.saturating_add(u32::from(record.lane));
            if record.site != 0 && called != Some(lane) {
                called = Some(lane);
                self.note_calls(lane);
            }
            self.apply(lane, record, texts);
        }
    }
}

impl LiveSet {
    fn thread(&mut self, lane: u32) -> Option<&mut Thread> {
        let thread = self.lanes.get(lane as usize)?.thread;
        self.threads.get_mut(thread)
    }

    fn note_calls(&mut self, lane: u32) {
        if let Some(lane) = self.lanes.get_mut(lane as usize) {
            lane.calls = true;
        }
    }
}
