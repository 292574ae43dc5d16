//! Holes in the segments of PyTorch's allocator, which need the order of addresses.

use super::composition::Share;
use super::ledger::GpuSlot;
use super::torch::{Segment, Torch};
use super::vmm::Vmm;
use crate::units::{Address, Bytes};

/// Segments that are told one by one.
const SEGMENTS: usize = 8;

/// Blocks that touch, between two holes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PinnedRun {
    /// Where they begin.
    pub address: u64,
    /// Their bytes.
    pub bytes: Bytes,
    /// How many.
    pub blocks: u64,
}

/// One segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentGaps {
    /// Where it begins.
    pub address: u64,
    /// On which device.
    pub gpu: GpuSlot,
    /// Whether it is a reserved range, of which only what is mapped counts.
    pub expandable: bool,
    /// Its bytes.
    pub bytes: Bytes,
    /// Bytes in blocks.
    pub used: Bytes,
    /// How many blocks.
    pub blocks: u64,
    /// Bytes in holes.
    pub free: Bytes,
    /// The largest hole.
    pub largest: Bytes,
    /// The blocks that keep the largest hole from being larger: without them it would be the
    /// largest that one run of blocks can make.
    pub pin: Option<PinnedRun>,
}

/// All segments.
#[derive(Clone, Debug, Default)]
pub struct Segments {
    /// How many, and their bytes.
    pub all: Share,
    /// Those of them without a block.
    pub empty: Share,
    /// Blocks in them.
    pub blocks: Share,
    /// Blocks in no segment that is known.
    pub outside: Share,
    /// Bytes in holes.
    pub free: Bytes,
    /// The largest hole.
    pub largest: Bytes,
    /// Segments with blocks and the most bytes in holes.
    pub worst: Vec<SegmentGaps>,
}

/// What a segment is made of, from its first byte to its last.
#[derive(Default)]
struct Sweep {
    used: u64,
    blocks: u64,
    free: u64,
    largest: u64,
    bytes: u64,
    /// The hole before the run of blocks that is being read.
    before: u64,
    run: Option<PinnedRun>,
    /// The hole that the pin's absence would make.
    without: u64,
    pin: Option<PinnedRun>,
}

impl Sweep {
    fn hole(&mut self, bytes: u64) {
        if bytes == 0 {
            return;
        }
        self.free = self.free.saturating_add(bytes);
        self.largest = self.largest.max(bytes);
        if let Some(run) = self.run.take().filter(|_| self.before > 0) {
            let without = self.before.saturating_add(run.bytes.0).saturating_add(bytes);
            if without > self.without {
                (self.without, self.pin) = (without, Some(run));
            }
        }
        self.before = bytes;
    }

    fn block(&mut self, address: Address, bytes: u64) {
        self.used = self.used.saturating_add(bytes);
        self.blocks += 1;
        let new = PinnedRun { address: address.0, bytes: Bytes(0), blocks: 0 };
        let run = self.run.get_or_insert(new);
        run.bytes = Bytes(run.bytes.0.saturating_add(bytes));
        run.blocks += 1;
    }

    /// Memory from here on does not touch what was before.
    fn apart(&mut self) {
        self.before = 0;
        self.run = None;
    }

    /// A stretch of memory and the blocks that begin in it, by address.
    fn stretch(&mut self, start: u64, end: u64, blocks: &[(Address, Bytes)]) {
        self.apart();
        self.bytes = self.bytes.saturating_add(end.saturating_sub(start));
        let mut reached = start;
        for &(address, bytes) in blocks {
            self.hole(address.0.saturating_sub(reached));
            self.block(address, bytes.0);
            reached = reached.max(address.0.saturating_add(bytes.0));
        }
        self.hole(end.saturating_sub(reached));
    }
}

/// Memory of a segment that lies without a gap: first address, and the one behind the last.
fn stretches(start: Address, segment: &Segment, vmm: &Vmm) -> Vec<(u64, u64)> {
    let end = Address(start.0.saturating_add(segment.bytes.0));
    if !segment.expandable {
        return vec![(start.0, end.0)];
    }
    let mut found: Vec<(u64, u64)> = Vec::new();
    for (address, bytes) in vmm.mapped_in(start, end) {
        let behind = address.0.saturating_add(bytes.0);
        match found.last_mut() {
            Some(last) if last.1 >= address.0 => last.1 = last.1.max(behind),
            _ => found.push((address.0, behind)),
        }
    }
    found
}

/// The holes in the segments of all devices, or of one.
#[must_use]
pub fn of(torch: &Torch, vmm: &Vmm, gpu: Option<GpuSlot>) -> Segments {
    let wanted = |other: GpuSlot| gpu.is_none_or(|gpu| gpu == other);
    let live = torch.blocks().filter(|(_, piece)| wanted(piece.account.gpu));
    let mut blocks: Vec<(Address, Bytes)> =
        live.map(|(address, piece)| (address, piece.bytes)).collect();
    blocks.sort_unstable();
    let mut all = Segments::default();
    let share = |bytes: u64, count: u64| Share { bytes, count };
    for (start, segment) in torch.segments().filter(|(_, segment)| wanted(segment.gpu)) {
        let mut sweep = Sweep::default();
        for (from, to) in stretches(start, segment, vmm) {
            let first = blocks.partition_point(|(address, _)| address.0 < from);
            let behind = blocks.partition_point(|(address, _)| address.0 < to);
            sweep.stretch(from, to, blocks.get(first..behind).unwrap_or(&[]));
        }
        all.all = all.all.plus(share(sweep.bytes, 1));
        all.blocks = all.blocks.plus(share(sweep.used, sweep.blocks));
        all.free = Bytes(all.free.0.saturating_add(sweep.free));
        all.largest = all.largest.max(Bytes(sweep.largest));
        if sweep.blocks == 0 {
            all.empty = all.empty.plus(share(sweep.bytes, 1));
        } else if sweep.free > 0 {
            all.worst.push(gaps(start, segment, &sweep));
        }
    }
    let count = (blocks.len() as u64).saturating_sub(all.blocks.count);
    let sum = blocks.iter().fold(0_u64, |sum, (_, bytes)| sum.saturating_add(bytes.0));
    all.outside = share(sum.saturating_sub(all.blocks.bytes), count);
    all.worst.sort_by(|a, b| b.free.cmp(&a.free).then(a.address.cmp(&b.address)));
    all.worst.truncate(SEGMENTS);
    all
}

fn gaps(start: Address, segment: &Segment, sweep: &Sweep) -> SegmentGaps {
    SegmentGaps {
        address: start.0,
        gpu: segment.gpu,
        expandable: segment.expandable,
        bytes: Bytes(sweep.bytes),
        used: Bytes(sweep.used),
        blocks: sweep.blocks,
        free: Bytes(sweep.free),
        largest: Bytes(sweep.largest),
        pin: sweep.pin,
    }
}
