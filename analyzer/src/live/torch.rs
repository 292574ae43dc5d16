//! PyTorch's caching allocator, as it reports itself: blocks, within the segments that hold them.
//!
//! A segment is memory of the driver that the allocator cuts into blocks: one allocation, or with
//! expandable segments one reserved range with what is mapped in it. The allocator does not say
//! which memory is a segment; whatever a block was ever in is one, until it is given back.
//!
//! Each report carries the allocator's own totals of its device. Bytes in blocks are counted here
//! as well, and compared with them at every report. What is reserved is only told, and after the
//! last report less what was given back since.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::composition::Share;
use super::ledger::GpuSlot;
use super::segments::{self, Segments};
use super::series::Series;
use super::sites::SiteIndex;
use super::vmm::{Piece, Vmm};
use crate::units::{Address, Bytes, Ticks};

/// Releases that are told one by one.
const RELEASES: usize = 100;
/// Failed requests that are told one by one.
const FAILURES: usize = 100;
/// Failed requests at which the holes are looked at.
const LOOKED: usize = 16;

/// Memory of the driver that blocks are cut from.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    /// Its length; of a reserved range that of the range.
    pub bytes: Bytes,
    /// Whether it is a reserved range, of which only what is mapped counts.
    pub expandable: bool,
    /// The device of the blocks in it.
    pub gpu: GpuSlot,
}

/// What a report says of its device.
#[derive(Clone, Copy, Debug)]
pub struct Totals {
    /// Bytes in blocks.
    pub allocated: u64,
    /// Bytes in segments.
    pub reserved: u64,
}

impl Totals {
    /// Bytes in segments that are in no block.
    #[must_use]
    pub const fn free(&self) -> u64 {
        self.reserved.saturating_sub(self.allocated)
    }
}

/// A report whose total is not what was counted.
#[derive(Clone, Copy, Debug)]
pub struct Mismatch {
    /// When.
    pub at: Ticks,
    /// Bytes in blocks as counted.
    pub counted: u64,
    /// Bytes in blocks as told.
    pub told: u64,
}

/// Segments given back in a row, without a report between them.
#[derive(Clone, Copy, Debug)]
pub struct Release {
    /// The first one.
    pub at: Ticks,
    /// On which device.
    pub gpu: GpuSlot,
    /// How many; of an expandable segment, pieces unmapped.
    pub segments: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Whether an allocation of the driver had failed just before.
    pub after_failure: bool,
}

/// A request that found no memory.
#[derive(Clone, Copy, Debug)]
pub struct Failure {
    /// When.
    pub at: Ticks,
    /// On which device.
    pub gpu: GpuSlot,
    /// In which lane.
    pub lane: u32,
    /// Whose.
    pub site: SiteIndex,
    /// Bytes asked for.
    pub requested: Bytes,
    /// The allocator's totals.
    pub totals: Totals,
    /// Free on the device by the last reading before.
    pub device_free: Option<Bytes>,
    /// The largest hole in its segments, where it was looked for.
    pub largest: Option<Bytes>,
}

/// Bytes in segments, of one device or of all.
#[derive(Clone, Debug, Default)]
pub struct Reserved {
    /// Now.
    pub now: u64,
    /// The most so far.
    pub peak: u64,
    /// When that was first reached.
    pub peak_at: Ticks,
    /// Over time.
    pub series: Series,
    /// The totals when the most of them was in no block.
    pub worst: Option<(Ticks, Totals)>,
}

impl Reserved {
    fn set(&mut self, totals: Totals, at: Ticks, now: usize) {
        self.now = totals.reserved;
        if totals.reserved > self.peak {
            (self.peak, self.peak_at) = (totals.reserved, at);
        }
        self.series.set(now, totals.reserved);
        if totals.free() > self.worst.map_or(0, |(_, worst)| worst.free()) {
            self.worst = Some((at, totals));
        }
    }

    fn begin(&mut self, allocated: u64, at: Ticks) {
        (self.peak, self.peak_at) = (self.now, at);
        self.series.begin(self.now);
        let totals = Totals { allocated, reserved: self.now };
        self.worst = (totals.free() > 0).then_some((at, totals));
    }
}

/// One device.
#[derive(Clone, Debug, Default)]
pub struct TorchDevice {
    /// Reports about blocks.
    pub reports: u64,
    /// Bytes in blocks as told last.
    pub allocated: u64,
    /// The most that was told.
    pub peak_allocated: u64,
    /// Bytes in segments.
    pub reserved: Reserved,
    /// Reports whose total is not what was counted.
    pub mismatches: u64,
    /// The first of them.
    pub first_mismatch: Option<Mismatch>,
    /// Failed requests.
    pub failures: u64,
    /// Releases, and what they gave back together.
    pub releases: u64,
    /// Segments given back.
    pub released: Share,
    /// Bytes in blocks as counted.
    counted: u64,
    /// Whether segments were given back since the last report, and which of the list that is.
    release: Option<Option<usize>>,
    /// Whether the driver has refused memory since the last report.
    refused: bool,
}

/// The allocator on every device.
#[derive(Debug, Default)]
pub struct Torch {
    /// Whether it ever reported anything, before a window too.
    pub seen: bool,
    /// By device.
    pub devices: BTreeMap<GpuSlot, TorchDevice>,
    /// Bytes in segments of all devices.
    pub reserved: Reserved,
    /// Blocks that were handed out in no segment that is known.
    pub outside: Share,
    /// The first few releases.
    pub releases: Vec<Release>,
    /// The first few failed requests.
    pub failures: Vec<Failure>,
    /// The holes at the worst moment that was looked at.
    pub worst: Option<(Ticks, Segments)>,
    /// How often the holes were looked at.
    pub looked: u64,
    looked_free: u64,
    blocks: FxHashMap<Address, Piece>,
    segments: BTreeMap<Address, Segment>,
}

impl Torch {
    /// Adds a block, in a segment or not; returns the one that was live there.
    pub fn add(&mut self, address: Address, piece: Piece, in_segment: bool) -> Option<Piece> {
        let former = self.take(address);
        if !in_segment {
            self.outside = self.outside.plus(Share { bytes: piece.bytes.0, count: 1 });
        }
        self.blocks.insert(address, piece);
        let device = self.devices.entry(piece.account.gpu).or_default();
        device.counted = device.counted.saturating_add(piece.bytes.0);
        former
    }

    /// Takes the block that begins at `address`.
    pub fn take(&mut self, address: Address) -> Option<Piece> {
        let piece = self.blocks.remove(&address)?;
        let device = self.devices.entry(piece.account.gpu).or_default();
        device.counted = device.counted.saturating_sub(piece.bytes.0);
        Some(piece)
    }

    /// What a report says when its block is booked.
    pub fn report(&mut self, gpu: GpuSlot, told: Totals, at: Ticks, now: usize) {
        let device = self.devices.entry(gpu).or_default();
        device.reports += 1;
        if told.allocated != device.counted {
            device.mismatches += 1;
            let counted = device.counted;
            device.first_mismatch.get_or_insert(Mismatch { at, counted, told: told.allocated });
        }
        device.allocated = told.allocated;
        device.peak_allocated = device.peak_allocated.max(told.allocated);
        (device.release, device.refused) = (None, false);
        self.reserve(gpu, told.reserved, at, now);
    }

    /// The device has this much in segments.
    fn reserve(&mut self, gpu: GpuSlot, reserved: u64, at: Ticks, now: usize) {
        let device = self.devices.entry(gpu).or_default();
        let others = self.reserved.now.saturating_sub(device.reserved.now);
        device.reserved.set(Totals { allocated: device.allocated, reserved }, at, now);
        // One device, as nearly always, is all of them.
        let allocated = match self.devices.len() {
            1 => self.devices.values().map(|device| device.allocated).next().unwrap_or(0),
            _ => self.allocated(),
        };
        let reserved = others.saturating_add(reserved);
        self.reserved.set(Totals { allocated, reserved }, at, now);
    }

    /// Bytes in blocks on all devices, as told last.
    #[must_use]
    pub fn allocated(&self) -> u64 {
        self.devices.values().fold(0, |sum, device| sum.saturating_add(device.allocated))
    }

    /// The totals of all devices now.
    #[must_use]
    pub fn totals(&self) -> Totals {
        Totals { allocated: self.allocated(), reserved: self.reserved.now }
    }

    /// A request that found no memory, of a device whose free memory by the last reading is known.
    pub fn fail(&mut self, failure: Failure, vmm: &Vmm, now: usize) {
        let device = self.devices.entry(failure.gpu).or_default();
        device.failures += 1;
        device.allocated = failure.totals.allocated;
        self.reserve(failure.gpu, failure.totals.reserved, failure.at, now);
        if self.failures.len() < FAILURES {
            let look = self.failures.len() < LOOKED;
            let holes = look.then(|| segments::of(self, vmm, Some(failure.gpu)));
            let largest = holes.map(|holes| holes.largest);
            self.failures.push(Failure { largest, ..failure });
        }
    }

    /// The driver refused memory on a device.
    pub fn refuse(&mut self, gpu: GpuSlot) {
        if let Some(device) = self.devices.get_mut(&gpu) {
            device.refused = true;
        }
    }

    /// Whether nothing is known to be a segment.
    #[must_use]
    #[inline]
    pub fn has_no_segments(&self) -> bool {
        self.segments.is_empty()
    }

    /// The segment that an address lies in.
    #[must_use]
    #[inline]
    pub fn segment(&self, address: Address) -> Option<&Segment> {
        let (start, segment) = self.segments.range(..=address).next_back()?;
        (address.0 - start.0 < segment.bytes.0).then_some(segment)
    }

    /// This is a segment from here on.
    pub fn learn(&mut self, start: Address, segment: Segment) {
        self.segments.insert(start, segment);
    }

    /// The driver took back what begins here. If it is a segment, that is a release.
    pub fn gone(&mut self, start: Address, asked: bool, at: Ticks, now: usize) {
        let Some(segment) = self.segments.remove(&start) else { return };
        if asked && !segment.expandable {
            self.release(segment.gpu, segment.bytes.0, at, now);
        }
    }

    /// Mappings of so many bytes are gone at an address. If it is in a segment, that is a release.
    pub fn unmapped(&mut self, address: Address, bytes: u64, at: Ticks, now: usize) {
        if let Some(segment) = self.segment(address).filter(|found| found.expandable) {
            self.release(segment.gpu, bytes, at, now);
        }
    }

    fn release(&mut self, gpu: GpuSlot, bytes: u64, at: Ticks, now: usize) {
        let device = self.devices.entry(gpu).or_default();
        device.released = device.released.plus(Share { bytes, count: 1 });
        if device.release.is_none() {
            device.releases += 1;
            let place = self.releases.len();
            let after_failure = device.refused;
            device.release = Some((place < RELEASES).then_some(place));
            if place < RELEASES {
                self.releases.push(Release { at, gpu, segments: 0, bytes: 0, after_failure });
            }
        }
        let place = device.release.flatten();
        if let Some(release) = place.and_then(|place| self.releases.get_mut(place)) {
            release.segments += 1;
            release.bytes = release.bytes.saturating_add(bytes);
        }
        let reserved = device.reserved.now.saturating_sub(bytes);
        self.reserve(gpu, reserved, at, now);
    }

    /// Looks at the holes, when notably more is in no block than at the last look.
    pub fn look(&mut self, vmm: &Vmm, at: Ticks) {
        let free = self.totals().free();
        if free <= self.looked_free.saturating_add(self.looked_free / 20) {
            return;
        }
        self.looked += 1;
        self.looked_free = free;
        self.worst = Some((at, segments::of(self, vmm, None)));
    }

    /// The time axis has doubled its buckets.
    pub fn halve(&mut self) {
        self.reserved.series.halve();
        for device in self.devices.values_mut() {
            device.reserved.series.halve();
        }
    }

    /// Begins to count anew; what is live stays.
    pub fn begin(&mut self, at: Ticks) {
        let allocated = self.allocated();
        self.reserved.begin(allocated, at);
        for device in self.devices.values_mut() {
            let mut reserved = std::mem::take(&mut device.reserved);
            reserved.begin(device.allocated, at);
            *device = TorchDevice {
                allocated: device.allocated,
                peak_allocated: device.allocated,
                counted: device.counted,
                refused: device.refused,
                reserved,
                ..TorchDevice::default()
            };
        }
        self.outside = Share::default();
        self.releases.clear();
        self.failures.clear();
        self.worst = None;
        (self.looked, self.looked_free) = (0, 0);
    }

    /// Every segment, by address.
    pub fn segments(&self) -> impl Iterator<Item = (Address, &Segment)> {
        self.segments.iter().map(|(&start, segment)| (start, segment))
    }

    /// Every live block with its address, in no order.
    pub fn blocks(&self) -> impl Iterator<Item = (Address, &Piece)> {
        self.blocks.iter().map(|(&address, piece)| (address, piece))
    }
}
