//! What needs the order of addresses: holes in reserved ranges, and whose allocations keep
//! sparse blocks. Looked at when a bucket of the time axis begins, at marks, at failed
//! allocations and at the end, and only if that can show something worse than before.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::granules::Kept;
use super::ledger::Ledger;
use super::sites::SiteIndex;
use super::space::Space;
use super::vmm::Vmm;
use crate::units::{Address, Bytes, Ticks};

/// Ranges that are told one by one.
const RANGES: usize = 8;
/// Sites that are told.
const PINS: usize = 10;

/// One reserved range with mappings in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeGaps {
    /// Where it begins.
    pub address: u64,
    /// Its length.
    pub bytes: Bytes,
    /// Bytes mapped.
    pub mapped: Bytes,
    /// Bytes not mapped below the end of the last mapping.
    pub free: Bytes,
    /// The largest hole there.
    pub largest: Bytes,
    /// The mapping between two holes that keeps the largest one from being larger.
    pub pin: Option<(u64, Bytes)>,
}

/// All reserved ranges with mappings in them.
#[derive(Clone, Debug, Default)]
pub struct Gaps {
    /// How many.
    pub ranges: u64,
    /// Their bytes.
    pub reserved: Bytes,
    /// Bytes mapped.
    pub mapped: Bytes,
    /// Bytes in holes.
    pub free: Bytes,
    /// Physical memory of devices that is mapped nowhere.
    pub unmapped_physical: Bytes,
    /// Those with the most in holes.
    pub worst: Vec<RangeGaps>,
}

/// Whose allocations keep sparse blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pin {
    /// Whose.
    pub site: SiteIndex,
    /// Sparse blocks that one of its allocations begins or ends in.
    pub blocks: u64,
    /// Bytes of them that it uses.
    pub used: u64,
}

/// What was seen at the worst moments.
#[derive(Debug, Default)]
pub struct Looks {
    /// How often was looked.
    pub count: u64,
    /// The most bytes in holes and unmapped memory, and when.
    pub gaps: Option<(Ticks, Gaps)>,
    /// Who kept sparse blocks when the most was kept, and when.
    pub pins: Option<(Ticks, Vec<Pin>)>,
    /// Bytes kept from use at that moment.
    pub pinned_waste: u64,
    /// Events of virtual memory management since the last look.
    pub changes: u64,
}

impl Looks {
    /// Looks at the ranges, unless too little has changed for how much there is to see.
    pub fn at_ranges(&mut self, reserved: &Space, vmm: &Vmm, at: Ticks) {
        const FEW: u64 = 4_096;
        let size = vmm.mapping_count() as u64 + reserved.len() as u64;
        if self.changes == 0 || (size > FEW && self.changes.saturating_mul(16) < size) {
            return;
        }
        self.changes = 0;
        let gaps = gaps(reserved, vmm);
        let kept = |gaps: &Gaps| gaps.free.0.saturating_add(gaps.unmapped_physical.0);
        if kept(&gaps) > self.gaps.as_ref().map_or(0, |(_, worst)| kept(worst)) {
            self.gaps = Some((at, gaps));
        }
    }

    /// Looks at who keeps sparse blocks, when notably more is kept than at the last look.
    pub fn at_pins(&mut self, device: &Space, kept: &Kept, at: Ticks) {
        let waste = kept.now.waste();
        if waste <= self.pinned_waste.saturating_add(self.pinned_waste / 20) {
            return;
        }
        self.pinned_waste = waste;
        self.pins = Some((at, pins(device, kept)));
    }
}

/// The holes in every reserved range.
#[must_use]
pub fn gaps(reserved: &Space, vmm: &Vmm) -> Gaps {
    let mut all = Gaps { unmapped_physical: Bytes(vmm.unmapped_physical()), ..Gaps::default() };
    let mut worst = Vec::new();
    let ranges: BTreeMap<Address, Bytes> =
        reserved.iter().map(|(address, block)| (address, block.bytes)).collect();
    for (address, bytes) in ranges {
        let Some(range) = range_gaps(address, bytes, vmm) else { continue };
        all.ranges += 1;
        all.reserved.0 = all.reserved.0.saturating_add(bytes.0);
        all.mapped.0 = all.mapped.0.saturating_add(range.mapped.0);
        all.free.0 = all.free.0.saturating_add(range.free.0);
        if range.free.0 > 0 {
            worst.push(range);
        }
    }
    worst.sort_by(|a, b| b.free.cmp(&a.free).then(a.address.cmp(&b.address)));
    worst.truncate(RANGES);
    all.worst = worst;
    all
}

fn range_gaps(address: Address, bytes: Bytes, vmm: &Vmm) -> Option<RangeGaps> {
    let end = address.0.saturating_add(bytes.0);
    let (mut mapped, mut free, mut largest) = (0_u64, 0_u64, 0_u64);
    // The end of what is mapped so far, the hole before the last mapping, and that mapping.
    let (mut reached, mut before) = (address.0, None::<(u64, u64, u64)>);
    let mut pin = None::<(u64, u64, u64)>;
    for (start, size) in vmm.mapped_in(address, Address(end)) {
        let hole = start.0.saturating_sub(reached);
        if let Some((hole_before, last, length)) = before.filter(|_| hole > 0) {
            let merged = hole_before.saturating_add(length).saturating_add(hole);
            if hole_before > 0 && pin.is_none_or(|(most, ..)| merged > most) {
                pin = Some((merged, last, length));
            }
        }
        // Mappings that touch are one, to what lies before and behind them.
        before = match before.filter(|_| hole == 0) {
            Some((hole_before, last, length)) => {
                Some((hole_before, last, length.saturating_add(size.0)))
            }
            None => Some((hole, start.0, size.0)),
        };
        mapped = mapped.saturating_add(size.0);
        free = free.saturating_add(hole);
        largest = largest.max(hole);
        reached = start.0.saturating_add(size.0).max(reached);
    }
    before?;
    Some(RangeGaps {
        address: address.0,
        bytes,
        mapped: Bytes(mapped),
        free: Bytes(free),
        largest: Bytes(largest),
        pin: pin.map(|(_, start, length)| (start, Bytes(length))),
    })
}

/// Who keeps sparse blocks, the most blocks first.
#[must_use]
pub fn pins(device: &Space, kept: &Kept) -> Vec<Pin> {
    let mut by_site: FxHashMap<SiteIndex, Pin> = FxHashMap::default();
    for (address, block) in device.iter() {
        if block.account.ledger != Ledger::Device {
            continue;
        }
        for (_, used) in kept.sparse_ends(address, block.bytes) {
            let site = block.account.site;
            let pin = by_site.entry(site).or_insert(Pin { site, blocks: 0, used: 0 });
            pin.blocks += 1;
            pin.used = pin.used.saturating_add(used);
        }
    }
    let mut pins: Vec<Pin> = by_site.into_values().collect();
    pins.sort_by(|a, b| b.blocks.cmp(&a.blocks).then(a.site.cmp(&b.site)));
    pins.truncate(PINS);
    pins
}
