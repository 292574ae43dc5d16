//! The live set: the one state machine that events are applied to, in the order of their effect.
//!
//! ```text
//! alloc ok      null pointer → null call │ live there → overlap, the old block goes │ live
//! alloc failed  failed
//! free ok       null pointer → null call │ nothing there → unknown free │ gone
//! free failed   failed; the block stays
//! context ends  its blocks are gone, implicitly
//! import        see `elsewhere`: openings and references are counted
//! ```
//!
//! Memory follows the number of live blocks and call sites, never the number of events. Events
//! may say anything: no sum overflows, no table is indexed by what a log says.

mod apply;
mod axis;
mod books;
mod composition;
mod context;
mod elsewhere;
mod granules;
mod graphs;
mod ledger;
mod looks;
mod marks;
mod objects;
mod odd;
mod pools;
mod residency;
mod samples;
mod segments;
mod series;
mod sites;
mod space;
mod stalls;
mod steps;
mod torch;
mod traffic;
mod view;
mod vmm;
mod window;

pub use axis::{AGE_SHIFT, Axis};
pub use books::{Account, Book, Books, SumBook};
pub use composition::{Epochs, Holdings, Moment, Share, size_class, sizes_of_class};
pub use context::{Contexts, Counts};
pub use granules::{GRANULE, Granules, Kept};
pub use graphs::{GraphCounts, GraphTold, Graphs};
pub use ledger::{GpuSlot, Ledger, NOT_COUNTED, Sum, Tally};
pub use looks::{Gaps, Looks, Pin, RangeGaps, gaps};
pub use marks::{MARKS, Mark, Marks, NAMES, RangeTotal};
pub use objects::{Class, LiveObject, ObjectCounts, Objects};
pub use odd::{Example, Odd, Oddity};
pub use pools::{Pool, Pools, Told};
pub use residency::{Asked, Place, Residency};
pub use samples::{Sampled, SampledSeries, Samples};
pub use segments::{PinnedRun, SegmentGaps, Segments};
pub use series::{Level, Series};
pub use sites::{Calls, SiteIndex, Sites};
pub use stalls::{LongCall, Purpose, Stall, Stalls};
pub use steps::{Explained, Gap, Made, Step, Steps};
pub use torch::{Failure, Mismatch, Release, Reserved, Torch, TorchDevice, Totals};
pub use traffic::{CopyKey, Direction, HostMemory, Moved, Traffic, Transfers};
pub use view::{View, Views};
pub use vmm::{Piece, Stuck};
pub use window::{Window, Windowed};

use rustc_hash::FxHashMap;

use crate::input::Log;
use crate::order::{LaneStart, Record, Sink};
use crate::units::{Address, Bytes, Ticks};
use composition::Traits;
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
    /// Ledgers, sums, copies and sets, of all devices and of each.
    pub views: Views,
    /// The axis of everything over time.
    pub axis: Axis,
    /// Time in calls.
    pub stalls: Stalls,
    /// What needed the order of addresses.
    pub looks: Looks,
    /// Contexts.
    pub contexts: Contexts,
    /// Threads.
    pub lanes: Vec<Lane>,
    /// Marks and ranges.
    pub marks: Marks,
    /// Readings of device memory.
    pub samples: Samples,
    /// Graphs.
    pub graphs: Graphs,
    /// Objects that own memory without an allocation call.
    pub objects: Objects,
    /// What NVML shows for the process, and what explains it.
    pub steps: Steps,
    /// Pools of stream-ordered memory.
    pub pools: Pools,
    /// Where managed memory was asked to be.
    pub residency: Residency,
    /// PyTorch's caching allocator.
    pub torch: Torch,
    /// What does not fit.
    pub odd: Odd,
    /// Events counted.
    pub events: u64,
    /// When counting began, if not with the log.
    pub since: Option<Ticks>,
    /// The last bucket of the axis that an event was in.
    bucket: usize,
    threads: Vec<Thread>,
    /// The lane that began last under each thread ordinal.
    last_lanes: FxHashMap<u32, usize>,
    spaces: Spaces,
    /// IPC handles that are open more than once, by address: how often more.
    openings: FxHashMap<Address, u64>,
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
    /// By handle.
    arrays: Space,
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
    pub fn new(log: &Log) -> Self {
        let one = log.dictionary.gpus.len() == 1;
        Self {
            sites: Sites::new(&log.dictionary),
            views: Views::default(),
            axis: Axis::new(log.timeline.zero()),
            stalls: Stalls::new(&log.timeline),
            looks: Looks::default(),
            contexts: Contexts::default(),
            lanes: Vec::new(),
            marks: Marks::default(),
            samples: Samples::default(),
            graphs: Graphs::default(),
            objects: Objects::default(),
            steps: Steps::new(log.dictionary.gpus.len()),
            pools: Pools::default(),
            residency: Residency::default(),
            torch: Torch::default(),
            odd: Odd::default(),
            events: 0,
            since: None,
            bucket: 0,
            threads: Vec::new(),
            last_lanes: FxHashMap::default(),
            spaces: Spaces::default(),
            openings: FxHashMap::default(),
            vmm: Vmm::default(),
            only_gpu: if one { GpuSlot::of(0) } else { GpuSlot::UNKNOWN },
        }
    }

    /// Begins to count anew. What is live stays live, and every peak begins with it.
    pub fn begin(&mut self, at: Ticks) {
        self.since = Some(at);
        self.axis = Axis::new(at);
        self.bucket = 0;
        self.views.begin(at);
        self.stalls.begin();
        self.sites.begin();
        self.samples.begin();
        self.pools.begin();
        self.residency = Residency::default();
        self.looks = Looks { changes: 1, ..Looks::default() };
        self.marks.restart(self.threads.iter_mut().map(|thread| &mut thread.ranges));
        self.steps.begin(self.contexts.counts);
        self.contexts.counts.begin();
        self.graphs.begin();
        self.objects.begin();
        self.torch.begin(at);
        self.odd = Odd::default();
        self.events = 0;
        self.lanes.iter_mut().for_each(|lane| lane.calls = false);
        self.look(at);
    }

    /// Nothing more happens up to this moment, which may be long after the last event.
    pub fn end(&mut self, at: Ticks) {
        if self.axis.is_outgrown(at) {
            self.outgrow(at);
        }
        self.look(at);
    }

    /// Looks at what needs the order of addresses, as it is now.
    fn look(&mut self, at: Ticks) {
        self.looks.count += 1;
        self.looks.at_ranges(&self.spaces.reserved, &self.vmm, at);
        self.looks.at_pins(&self.spaces.device, &self.views.all.kept, at);
        self.torch.look(&self.vmm, at);
    }

    /// The last bucket of the time axis that an event was in.
    #[must_use]
    pub const fn reached(&self) -> usize {
        self.bucket
    }

    /// Live blocks of which a later one takes a part: their free was not seen.
    #[must_use]
    pub fn stale(&self) -> Share {
        self.spaces.device.stale()
    }

    /// The holes in reserved ranges now.
    #[must_use]
    pub fn gaps(&self) -> Gaps {
        gaps(&self.spaces.reserved, &self.vmm)
    }

    /// Mappings that a call was to remove and did not, and what only mappings keep.
    #[must_use]
    pub fn stuck(&self) -> Stuck {
        self.vmm.stuck()
    }

    /// The holes in the segments of PyTorch's allocator now.
    #[must_use]
    pub fn segments(&self) -> Segments {
        segments::of(&self.torch, &self.vmm, None)
    }

    /// The bucket of a stamp, on an axis that reaches it.
    #[inline]
    fn reach(&mut self, at: Ticks) -> usize {
        if self.axis.is_outgrown(at) {
            self.outgrow(at);
        }
        let bucket = self.axis.bucket(at);
        if bucket > self.bucket {
            self.bucket = bucket;
            // The state until now is that of the end of the bucket before.
            self.look(self.axis.start(bucket));
        }
        self.bucket
    }

    #[cold]
    fn outgrow(&mut self, at: Ticks) {
        while self.axis.is_outgrown(at) {
            self.axis.double();
            self.bucket /= 2;
            self.views.halve();
            self.stalls.halve();
            self.samples.halve();
            self.torch.halve();
        }
    }

    /// What is asked about a block.
    #[inline]
    fn traits(&self, account: Account, bytes: Bytes, at: Ticks) -> Traits {
        Traits { site: account.site, bytes, bucket: self.axis.bucket(at) }
    }

    /// Every live block, in no order.
    pub fn live(&self) -> impl Iterator<Item = LiveBlock> {
        let spaces = &self.spaces;
        let all =
            [&spaces.device, &spaces.pinned, &spaces.registered, &spaces.reserved, &spaces.arrays];
        let blocks = all.into_iter().flat_map(Space::blocks);
        let blocks = blocks.map(|block| LiveBlock {
            account: block.account,
            bytes: block.bytes,
            at: block.at,
        });
        let of_torch = self.torch.blocks().map(|(_, piece)| piece);
        blocks.chain(self.vmm.pieces().chain(of_torch).map(|piece| LiveBlock {
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
