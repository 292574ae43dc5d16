//! Pools, and where managed memory was asked to be.

use super::build::{Builder, gpu};
use crate::live::{Asked, GpuSlot, Place, Pool};
use crate::units::{Bytes, Gpu, Handle, Nanos};

/// Pools of stream-ordered memory.
#[derive(Clone, Debug)]
pub struct PoolsReport {
    /// What they reserve together, as last told of each; `None` when it was told of none.
    pub reserved: Option<Bytes>,
    /// The most of that at a time.
    pub reserved_peak: Option<Bytes>,
    /// Each.
    pub pools: Vec<PoolReport>,
}

/// One pool.
#[derive(Clone, Debug)]
pub struct PoolReport {
    /// What it is called: `default`, `in use` for one that no call named, else by its number.
    pub label: String,
    /// Its handle, when a call named it.
    pub handle: Option<Handle>,
    /// Its device.
    pub gpu: Option<Gpu>,
    /// Allocations from it.
    pub allocs: u64,
    /// Blocks live.
    pub live_count: u64,
    /// Their bytes.
    pub live: Bytes,
    /// The most bytes live.
    pub peak: Bytes,
    /// What it reserves, as last told.
    pub reserved: Option<Bytes>,
    /// Of that what was in no block when it was told.
    pub unused: Option<Bytes>,
    /// When it was told.
    pub told_at: Option<Nanos>,
    /// The most that it ever reserved, as told.
    pub reserved_high: Option<Bytes>,
    /// What it keeps without use, as set or told.
    pub threshold: Option<Bytes>,
    /// How often it was trimmed.
    pub trims: u64,
    /// When it was destroyed.
    pub destroyed_at: Option<Nanos>,
}

/// What pools reserve without use, at the moments when they were last told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolWaste {
    /// Reserved.
    pub reserved: Bytes,
    /// In use at those moments.
    pub used: Bytes,
    /// Pools that it was told of.
    pub told: u64,
    /// Pools that there are.
    pub pools: u64,
    /// The last of the moments.
    pub at: Nanos,
}

impl PoolWaste {
    /// Bytes kept from use.
    #[must_use]
    pub const fn bytes(&self) -> Bytes {
        Bytes(self.reserved.0.saturating_sub(self.used.0))
    }
}

/// Where managed memory was asked to be.
#[derive(Clone, Debug)]
pub struct ResidencyReport {
    /// Prefetches by target.
    pub prefetches: Vec<(String, Asked)>,
    /// Advice by what it is and the place that it is about.
    pub advice: Vec<(String, String, Asked)>,
    /// Prefetches that failed.
    pub failed_prefetches: u64,
    /// Advice that failed.
    pub failed_advice: u64,
    /// Calls to more places than are told apart.
    pub uncounted: u64,
}

pub(super) fn pools(builder: &Builder<'_>) -> PoolsReport {
    let pools = &builder.live.pools;
    let numbered = pools.all().enumerate();
    let all = numbered.map(|(number, pool)| one(builder, number, pool));
    PoolsReport {
        reserved: pools.reserved(),
        reserved_peak: pools.reserved_peak,
        pools: all.collect(),
    }
}

fn one(builder: &Builder<'_>, number: usize, pool: &Pool) -> PoolReport {
    let at = |ticks| builder.clock.at(ticks);
    let label = match (pool.default, pool.handle) {
        (true, _) => "default".to_owned(),
        (_, None) => "in use".to_owned(),
        _ => format!("pool {}", number + 1),
    };
    PoolReport {
        label,
        handle: pool.handle,
        gpu: gpu(pool.gpu),
        allocs: pool.allocs,
        live_count: pool.live_count,
        live: pool.live,
        peak: pool.peak,
        reserved: pool.told.map(|told| told.reserved),
        unused: pool.told.map(|told| Bytes(told.reserved.0.saturating_sub(told.used.0))),
        told_at: pool.told.map(|told| at(told.at)),
        reserved_high: pool.reserved_high,
        threshold: pool.threshold,
        trims: pool.trims,
        destroyed_at: pool.destroyed_at.map(at),
    }
}

/// On one device, or on all. `None` when no pool was told of.
pub(super) fn waste(builder: &Builder<'_>, slot: Option<GpuSlot>) -> Option<PoolWaste> {
    let here = builder
        .live
        .pools
        .all()
        .filter(|pool| pool.destroyed_at.is_none() && slot.is_none_or(|slot| pool.gpu == slot));
    let here: Vec<&Pool> = here.collect();
    let told = || here.iter().filter_map(|pool| pool.told);
    let last = told().map(|told| told.at).max()?;
    let sum = |of: fn(&crate::live::Told) -> Bytes| {
        Bytes(told().fold(0, |sum: u64, told| sum.saturating_add(of(&told).0)))
    };
    Some(PoolWaste {
        reserved: sum(|told| told.reserved),
        used: sum(|told| told.used),
        told: told().count() as u64,
        pools: here.len() as u64,
        at: builder.clock.at(last),
    })
}

pub(super) fn residency(builder: &Builder<'_>) -> ResidencyReport {
    let found = &builder.live.residency;
    let prefetches = found.prefetches.iter().map(|(&to, &asked)| (place(to), asked));
    let advice = found.advice.iter();
    ResidencyReport {
        prefetches: prefetches.collect(),
        advice: advice.map(|(&(what, on), &asked)| (advised(what), place(on), asked)).collect(),
        failed_prefetches: found.failed_prefetches,
        failed_advice: found.failed_advice,
        uncounted: found.uncounted,
    }
}

fn place(place: Place) -> String {
    match (place.location_type, place.location) {
        (1, device) => format!("gpu {device}"),
        (2, _) => "host".to_owned(),
        (3, node) => format!("host numa node {node}"),
        (4, _) => "host numa node of the thread".to_owned(),
        (kind, id) => format!("location type {kind}, number {id}"),
    }
}

fn advised(advice: u64) -> String {
    match advice {
        1 => "set_read_mostly".to_owned(),
        2 => "unset_read_mostly".to_owned(),
        3 => "set_preferred_location".to_owned(),
        4 => "unset_preferred_location".to_owned(),
        5 => "set_accessed_by".to_owned(),
        6 => "unset_accessed_by".to_owned(),
        other => format!("advice {other}"),
    }
}
