//! Pools of stream-ordered memory: what is in use of each, from the events, and what it
//! reserves, as far as the driver told the process.
//!
//! An allocation from pool 0 comes from the pool that the device uses then. As long as no call
//! said which that is, such pools have no handle: one for each device. When a call names it, the
//! nameless pool becomes that one.

use gmmtrace_format::kind::pool;
use rustc_hash::FxHashMap;

use super::ledger::GpuSlot;
use crate::units::{Bytes, Handle, Ticks};

/// A location type that is a device.
const ON_DEVICE: u64 = 1;
/// Pools that are told apart. A log may say anything.
const POOLS: usize = 4096;

/// A pool's place in the table plus 1; 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolIndex(u32);

impl PoolIndex {
    fn of(place: usize) -> Self {
        Self(u32::try_from(place + 1).unwrap_or(0))
    }

    fn place(self) -> Option<usize> {
        (self.0 as usize).checked_sub(1)
    }
}

/// What the driver said that a pool reserves, and what was in use then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    /// Bytes reserved.
    pub reserved: Bytes,
    /// Bytes in use by the ledger, at that moment.
    pub used: Bytes,
    /// When.
    pub at: Ticks,
}

/// One pool.
#[derive(Clone, Debug, Default)]
pub struct Pool {
    /// Its handle, when a call named it.
    pub handle: Option<Handle>,
    /// Its device.
    pub gpu: GpuSlot,
    /// Whether it is its device's default pool.
    pub default: bool,
    /// Whether the process made it.
    pub made: bool,
    /// Allocations from it.
    pub allocs: u64,
    /// Blocks live now.
    pub live_count: u64,
    /// Their bytes.
    pub live: Bytes,
    /// The most bytes live.
    pub peak: Bytes,
    /// The most bytes live since it last gave memory back for certain.
    high: Bytes,
    /// What it reserves, when last told.
    pub told: Option<Told>,
    /// The most that it ever reserved, as told.
    pub reserved_high: Option<Bytes>,
    /// What it keeps without use, as set or told.
    pub threshold: Option<Bytes>,
    /// How often it was trimmed.
    pub trims: u64,
    /// When it was destroyed.
    pub destroyed_at: Option<Ticks>,
    /// The pool that this one turned out to be.
    same_as: Option<usize>,
}

/// All of them.
#[derive(Debug, Default)]
pub struct Pools {
    pools: Vec<Pool>,
    by_handle: FxHashMap<Handle, usize>,
    /// The nameless pool of each device.
    nameless: FxHashMap<GpuSlot, usize>,
    /// The pool that a call made a device use.
    current: FxHashMap<GpuSlot, usize>,
    /// What all pools together reserve, as told.
    reserved: Option<u64>,
    /// The most of that.
    pub reserved_peak: Option<Bytes>,
}

impl Pools {
    fn add(&mut self, pool: Pool) -> Option<usize> {
        if self.pools.len() >= POOLS {
            return None;
        }
        self.pools.push(pool);
        Some(self.pools.len() - 1)
    }

    fn named(&mut self, handle: Handle, gpu: GpuSlot) -> Option<usize> {
        if let Some(&place) = self.by_handle.get(&handle) {
            return Some(place);
        }
        let place = self.add(Pool { handle: Some(handle), gpu, ..Pool::default() })?;
        self.by_handle.insert(handle, place);
        Some(place)
    }

    fn get_mut(&mut self, index: PoolIndex) -> Option<&mut Pool> {
        let place = index.place()?;
        let place = self.pools.get(place)?.same_as.unwrap_or(place);
        self.pools.get_mut(place)
    }

    /// An allocation; handle 0 is the pool that the device uses. Returns whose it is.
    pub fn alloc(&mut self, handle: Handle, gpu: GpuSlot, bytes: Bytes) -> PoolIndex {
        let place = match handle.0 {
            0 => self.used_by(gpu),
            _ => self.named(handle, gpu),
        };
        let index = place.map(PoolIndex::of).unwrap_or_default();
        if let Some(pool) = self.get_mut(index) {
            pool.allocs += 1;
            pool.live_count += 1;
            pool.live = Bytes(pool.live.0.saturating_add(bytes.0));
            pool.peak = pool.peak.max(pool.live);
            pool.high = pool.high.max(pool.live);
        }
        index
    }

    fn used_by(&mut self, gpu: GpuSlot) -> Option<usize> {
        if let Some(&place) = self.current.get(&gpu).or_else(|| self.nameless.get(&gpu)) {
            return Some(place);
        }
        let place = self.add(Pool { gpu, ..Pool::default() })?;
        self.nameless.insert(gpu, place);
        Some(place)
    }

    /// A block is gone.
    pub fn free(&mut self, index: PoolIndex, bytes: Bytes) {
        if let Some(pool) = self.get_mut(index) {
            pool.live_count = pool.live_count.saturating_sub(1);
            pool.live = Bytes(pool.live.0.saturating_sub(bytes.0));
        }
    }

    /// A pool was made, on a device or, by location type 0, nobody says where.
    pub fn created(&mut self, handle: Handle, location_type: u64, gpu: GpuSlot) {
        // Whatever had the handle is gone.
        self.by_handle.remove(&handle);
        let gpu = if location_type == ON_DEVICE { gpu } else { GpuSlot::UNKNOWN };
        if let Some(place) = self.named(handle, gpu)
            && let Some(pool) = self.pools.get_mut(place)
        {
            pool.made = true;
        }
    }

    /// A pool was destroyed.
    pub fn destroyed(&mut self, handle: Handle, at: Ticks) {
        let Some(place) = self.by_handle.remove(&handle) else { return };
        self.current.retain(|_, current| *current != place);
        if let Some(pool) = self.pools.get_mut(place) {
            pool.destroyed_at = Some(at);
        }
        self.add_up();
    }

    /// A pool was trimmed.
    pub fn trimmed(&mut self, handle: Handle) {
        let place = self.named(handle, GpuSlot::UNKNOWN);
        if let Some(pool) = place.and_then(|place| self.pools.get_mut(place)) {
            pool.trims += 1;
            pool.high = pool.live;
        }
    }

    /// An attribute was told or set, or a call said which pool a place has.
    pub fn attribute(&mut self, handle: Handle, attribute: u64, value: u64, set: bool, at: Ticks) {
        if handle.0 == 0 {
            return;
        }
        if attribute == pool::DEFAULT_OF || attribute == pool::CURRENT_OF {
            return self.of_place(handle, attribute == pool::DEFAULT_OF, value, set);
        }
        let Some(place) = self.named(handle, GpuSlot::UNKNOWN) else { return };
        let Some(pool) = self.pools.get_mut(place) else { return };
        match attribute {
            pool::RELEASE_THRESHOLD => {
                // What was above the former one may be given back already.
                if set {
                    pool.high = pool.live;
                }
                pool.threshold = Some(Bytes(value));
            }
            pool::RESERVED if !set => {
                let reserved = Bytes(value);
                pool.told = Some(Told { reserved, used: pool.live, at });
                pool.reserved_high = pool.reserved_high.max(Some(reserved));
                self.add_up();
            }
            pool::RESERVED_HIGH if !set => {
                pool.reserved_high = pool.reserved_high.max(Some(Bytes(value)));
            }
            _ => {}
        }
    }

    fn of_place(&mut self, handle: Handle, default: bool, place: u64, set: bool) {
        let (location_type, device) = (place >> 32, place & 0xffff_ffff);
        let gpu = match location_type {
            ON_DEVICE => GpuSlot::of(i64::try_from(device).unwrap_or(-1)),
            _ => GpuSlot::UNKNOWN,
        };
        let Some(pool) = self.named(handle, gpu) else { return };
        if gpu == GpuSlot::UNKNOWN {
            return;
        }
        if let Some(known) = self.pools.get_mut(pool) {
            known.gpu = gpu;
            known.default |= default;
        }
        if set {
            self.current.insert(gpu, pool);
        } else if default || !self.current.contains_key(&gpu) {
            // No call chose another so far, so what had no name came from the default pool.
            self.name(gpu, pool);
        }
    }

    /// The nameless pool of a device is this one.
    fn name(&mut self, gpu: GpuSlot, place: usize) {
        let former = self.nameless.insert(gpu, place).filter(|&former| former != place);
        let Some(former) = former.and_then(|former| self.pools.get_mut(former)) else { return };
        if former.handle.is_some() {
            return;
        }
        former.same_as = Some(place);
        let (allocs, count, live, peak) =
            (former.allocs, former.live_count, former.live, former.peak);
        let high = former.high;
        if let Some(pool) = self.pools.get_mut(place) {
            pool.allocs = pool.allocs.saturating_add(allocs);
            pool.live_count = pool.live_count.saturating_add(count);
            pool.live = Bytes(pool.live.0.saturating_add(live.0));
            pool.peak = pool.peak.max(peak).max(pool.live);
            pool.high = pool.high.max(high).max(pool.live);
        }
    }

    /// The least that all pools together keep: what is in use, what was in use and is not to be
    /// released, and what the driver told last.
    #[must_use]
    pub fn kept(&self) -> Bytes {
        let one = |pool: &Pool| {
            if pool.destroyed_at.is_some() {
                return pool.live.0;
            }
            let unreleased = pool.high.min(pool.threshold.unwrap_or_default());
            let told = pool.told.map_or(Bytes(0), |told| told.reserved);
            pool.live.max(unreleased).max(told).0
        };
        Bytes(self.all().map(one).fold(0, u64::saturating_add))
    }

    fn add_up(&mut self) {
        let told = self.all().filter(|pool| pool.destroyed_at.is_none());
        let reserved = told.filter_map(|pool| pool.told).map(|told| told.reserved.0);
        self.reserved = reserved.reduce(u64::saturating_add);
        self.reserved_peak = self.reserved_peak.max(self.reserved.map(Bytes));
    }

    /// What all pools together reserve, as last told of each; `None` when it was told of none.
    #[must_use]
    pub fn reserved(&self) -> Option<Bytes> {
        self.reserved.map(Bytes)
    }

    /// Every pool, in the order that they were met.
    pub fn all(&self) -> impl Iterator<Item = &Pool> {
        self.pools.iter().filter(|pool| pool.same_as.is_none())
    }

    /// Begins to count anew.
    pub fn begin(&mut self) {
        for pool in &mut self.pools {
            (pool.allocs, pool.trims, pool.peak) = (0, 0, pool.live);
        }
        self.reserved_peak = self.reserved.map(Bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEVICE: u64 = 1 << 32;
    const AT: Ticks = Ticks(1);

    fn figures(pools: &Pools) -> Vec<(Option<u64>, u64, bool)> {
        pools.all().map(|pool| (pool.handle.map(|h| h.0), pool.live.0, pool.default)).collect()
    }

    #[test]
    fn a_nameless_pool_gets_its_name_when_a_call_says_it() {
        let (mut pools, gpu) = (Pools::default(), GpuSlot::of(0));
        let early = pools.alloc(Handle(0), gpu, Bytes(10));
        pools.attribute(Handle(7), pool::RESERVED, 32, false, AT);
        assert_eq!(figures(&pools), [(None, 10, false), (Some(7), 0, false)]);
        pools.attribute(Handle(7), pool::DEFAULT_OF, DEVICE, false, AT);
        let late = pools.alloc(Handle(0), gpu, Bytes(5));
        assert_eq!(figures(&pools), [(Some(7), 15, true)]);
        pools.free(early, Bytes(10));
        pools.free(late, Bytes(5));
        assert_eq!(figures(&pools), [(Some(7), 0, true)]);
    }

    #[test]
    fn what_a_device_uses_changes_by_a_call_and_back_with_the_pools_end() {
        let (mut pools, gpu) = (Pools::default(), GpuSlot::of(0));
        pools.alloc(Handle(0), gpu, Bytes(1));
        pools.created(Handle(9), 1, gpu);
        pools.attribute(Handle(9), pool::CURRENT_OF, DEVICE, true, AT);
        pools.alloc(Handle(0), gpu, Bytes(2));
        pools.destroyed(Handle(9), AT);
        pools.alloc(Handle(0), gpu, Bytes(4));
        assert_eq!(figures(&pools), [(None, 5, false), (Some(9), 2, false)]);
    }
}
