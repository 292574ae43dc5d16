//! What NVML shows for the process, beside what the ledgers and the driver's own words explain of
//! it; and the rises between readings that nothing explains but objects made meanwhile.
//!
//! A reading is complete when the last device's sample is there. The first reading that knows the
//! process is a rise from nothing, and there was a context.
//!
//! What pools and graphs reserve beyond what is in use no call tells unless the process asks. So a
//! rise counts for them, too, when they were used since the reading before; and a fall that nothing
//! explains is taken from them, because they give back at any synchronisation, and because what is
//! in use may grow within what they reserve.
//!
//! Code is loaded when a kernel of it is first launched, and so may the memory for its threads be. A
//! launch makes no event, but the kernel is looked up before it, once: a rise in which nothing was
//! made counts for what was made before the reading before, if that is of the kind that takes memory
//! late.

use std::collections::{BTreeMap, BTreeSet};

use super::context::Counts;
use super::ledger::{GpuSlot, Ledger};
use super::objects::Class;
use crate::units::{Bytes, Ticks};

/// Steps that are kept, the largest.
const STEPS: usize = 32;

/// What was made or went between two readings; contexts are among it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Made {
    /// A context.
    Context,
    /// A kernel that was looked up.
    Kernel,
    /// Memory that pools reserve, of which some was used.
    Pools,
    /// Memory that is reserved for graphs, of which some was used.
    GraphMemory,
    /// Another object.
    Object(Class),
}

impl Made {
    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Context => "contexts",
            Self::Kernel => "kernels",
            Self::Pools => "pools",
            Self::GraphMemory => "graph_memory",
            Self::Object(class) => class.name(),
        }
    }

    /// Whether it takes memory at its first use.
    const fn is_late(self) -> bool {
        matches!(self, Self::Context | Self::Kernel | Self::Object(Class::Library | Class::Module))
    }

    /// Whether it keeps memory beyond what is in use.
    const fn is_reserve(self) -> bool {
        matches!(self, Self::Pools | Self::GraphMemory)
    }
}

/// Device memory that is explained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Explained {
    /// 2 MiB blocks behind the ledger `device`.
    pub device_blocks: Bytes,
    /// Stream-ordered memory in use.
    pub async_pool: Bytes,
    /// What its pools reserve, where that is known; it includes what is in use.
    pub async_reserved: Option<Bytes>,
    /// The least that they keep, by that, what was in use, and their release thresholds.
    pub async_kept: Bytes,
    /// Physical memory of virtual memory management.
    pub vmm_physical: Bytes,
    /// Arrays, with the sizes that follow from their descriptors.
    pub array: Bytes,
    /// Reserved for graphs, as the driver told, or else the ledger `graph`.
    pub graph: Bytes,
    /// Whether the driver told.
    pub graph_told: bool,
}

impl Explained {
    /// Stream-ordered memory, in use or kept.
    #[must_use]
    pub fn pools(&self) -> Bytes {
        self.async_kept.max(self.async_pool)
    }

    /// All of it.
    #[must_use]
    pub fn sum(&self) -> u64 {
        [self.device_blocks, self.pools(), self.vmm_physical, self.array, self.graph]
            .iter()
            .fold(0, |sum: u64, bytes| sum.saturating_add(bytes.0))
    }
}

/// A rise, or a fall, of what is not explained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The reading before; `None` when there was none.
    pub since: Option<Ticks>,
    /// The reading.
    pub at: Ticks,
    /// The change of what NVML shows for the process.
    pub change: i64,
    /// The part of it that is not explained.
    pub unexplained: i64,
    /// What was made between, and how many.
    pub made: BTreeMap<Made, u64>,
    /// What was destroyed between.
    pub destroyed: BTreeMap<Made, u64>,
}

/// A reading, explained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// When.
    pub at: Ticks,
    /// What NVML shows for the process, on all devices.
    pub process: Bytes,
    /// What is explained.
    pub explained: Explained,
    /// Estimates by what was made when it rose, the largest first.
    pub objects: Vec<(Vec<Made>, Bytes)>,
}

impl Gap {
    /// What is left when the estimates are taken too; below 0 when more is explained than shown.
    #[must_use]
    pub fn unexplained(&self) -> i64 {
        let objects = self.objects.iter().map(|(_, bytes)| bytes.0);
        let known = objects.fold(self.explained.sum(), u64::saturating_add);
        difference(self.process.0, known)
    }
}

fn difference(a: u64, b: u64) -> i64 {
    let size = i64::try_from(a.abs_diff(b)).unwrap_or(i64::MAX);
    if a < b { -size } else { size }
}

/// Readings and what happened between them.
#[derive(Debug, Default)]
pub struct Steps {
    /// Devices that are sampled in one reading.
    devices: u32,
    now: BTreeMap<GpuSlot, u64>,
    last: Option<(Ticks, u64, u64)>,
    made: BTreeMap<Made, u64>,
    destroyed: BTreeMap<Made, u64>,
    /// What was made between the two readings before and may take memory yet.
    late: BTreeSet<Made>,
    /// Whether memory of pools was taken or given back since the last reading, and of graphs.
    pools_used: bool,
    graphs_used: bool,
    contexts: Counts,
    estimates: BTreeMap<BTreeSet<Made>, u64>,
    /// The largest steps in which something was made or destroyed, by time.
    pub steps: Vec<Step>,
    /// How many there were.
    pub count: u64,
    /// The reading in which the process used most, and the last one.
    pub max: Option<Gap>,
    /// The last reading.
    pub last_gap: Option<Gap>,
}

impl Steps {
    /// For a machine with so many devices; 0 is unknown.
    #[must_use]
    pub fn new(devices: usize) -> Self {
        Self { devices: u32::try_from(devices).unwrap_or(0), ..Self::default() }
    }

    /// An object was made.
    pub fn made(&mut self, class: Class) {
        *self.made.entry(Made::Object(class)).or_default() += 1;
    }

    /// Memory of a ledger was taken or given back.
    #[inline]
    pub fn moved(&mut self, ledger: Ledger) {
        self.pools_used |= ledger == Ledger::AsyncPool;
        self.graphs_used |= ledger == Ledger::Graph;
    }

    /// A kernel was looked up.
    pub fn looked_up(&mut self) {
        *self.made.entry(Made::Kernel).or_default() += 1;
    }

    /// An object was destroyed.
    pub fn destroyed(&mut self, class: Class) {
        *self.destroyed.entry(Made::Object(class)).or_default() += 1;
    }

    /// One device's part of a reading; `process_used` is 0 for unknown, else bytes and 1. True
    /// when the reading is complete.
    pub fn sample(&mut self, device: i64, process_used: u64) -> bool {
        let slot = GpuSlot::of(device);
        match process_used.checked_sub(1) {
            Some(bytes) => {
                self.now.insert(slot, bytes);
            }
            // A process that is known and no longer there has given everything back.
            None => {
                self.now.entry(slot).and_modify(|bytes| *bytes = 0);
            }
        }
        let is_last = slot.ordinal().is_none_or(|ordinal| ordinal + 1 >= self.devices);
        is_last && !self.now.is_empty()
    }

    /// A reading is complete, while so much is explained.
    pub fn read(&mut self, at: Ticks, explained: Explained, contexts: Counts) {
        let process = self.now.values().fold(0, |sum: u64, &bytes| sum.saturating_add(bytes));
        let known = explained.sum();
        self.count_contexts(contexts);
        let (since, before, known_before) = match self.last {
            Some((since, before, known)) => (Some(since), before, known),
            None => {
                self.made.entry(Made::Context).or_insert(1);
                (None, 0, 0)
            }
        };
        let change = difference(process, before);
        let unexplained = change.saturating_sub(difference(known, known_before));
        let step = Step {
            since,
            at,
            change,
            unexplained,
            made: std::mem::take(&mut self.made),
            destroyed: std::mem::take(&mut self.destroyed),
        };
        self.estimate(&step);
        self.keep(step);
        self.last = Some((at, process, known));
        let gap = self.gap(at, process, explained);
        if self.max.as_ref().is_none_or(|max| gap.process > max.process) {
            self.max = Some(gap.clone());
        }
        self.last_gap = Some(gap);
    }

    fn count_contexts(&mut self, contexts: Counts) {
        let made = contexts.created.saturating_sub(self.contexts.created);
        let gone = contexts.destroyed.saturating_sub(self.contexts.destroyed);
        for (count, table) in [(made, &mut self.made), (gone, &mut self.destroyed)] {
            if count > 0 {
                *table.entry(Made::Context).or_default() += count;
            }
        }
        self.contexts = contexts;
    }

    /// A rise belongs to what was made or used; a fall is taken from what was destroyed, and from
    /// reserves.
    fn estimate(&mut self, step: &Step) {
        let size = step.unexplained.unsigned_abs();
        let mut causes: BTreeSet<Made> = step.made.keys().copied().collect();
        causes.extend(std::mem::take(&mut self.pools_used).then_some(Made::Pools));
        causes.extend(std::mem::take(&mut self.graphs_used).then_some(Made::GraphMemory));
        let late = step.made.keys().copied().filter(|made| made.is_late()).collect();
        let before = std::mem::replace(&mut self.late, late);
        if causes.is_empty() {
            causes = before;
        }
        if step.unexplained > 0 && !causes.is_empty() {
            *self.estimates.entry(causes).or_default() += size;
        }
        if step.unexplained < 0 {
            let mut left = size;
            for (of, bytes) in &mut self.estimates {
                let gives = |made: &Made| made.is_reserve() || step.destroyed.contains_key(made);
                if of.iter().any(gives) {
                    let taken = left.min(*bytes);
                    *bytes -= taken;
                    left -= taken;
                }
            }
        }
    }

    fn keep(&mut self, step: Step) {
        let nothing = step.made.is_empty() && step.destroyed.is_empty();
        if step.unexplained == 0 || nothing {
            return;
        }
        self.count += 1;
        self.steps.push(step);
        if self.steps.len() > STEPS {
            let sizes = self.steps.iter().enumerate();
            let least = sizes.min_by_key(|(_, step)| step.unexplained.unsigned_abs());
            if let Some(place) = least.map(|(place, _)| place) {
                self.steps.remove(place);
            }
        }
    }

    fn gap(&self, at: Ticks, process: u64, explained: Explained) -> Gap {
        let mut objects: Vec<(Vec<Made>, Bytes)> = self
            .estimates
            .iter()
            .filter(|(_, bytes)| **bytes > 0)
            .map(|(of, &bytes)| (of.iter().copied().collect(), Bytes(bytes)))
            .collect();
        objects.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        // An estimate cannot explain more than there is.
        let mut rest = process.saturating_sub(explained.sum());
        for (_, bytes) in &mut objects {
            bytes.0 = bytes.0.min(rest);
            rest -= bytes.0;
        }
        objects.retain(|(_, bytes)| bytes.0 > 0);
        Gap { at, process: Bytes(process), explained, objects }
    }

    /// Begins to count anew, after so many contexts; the last reading still stands.
    pub fn begin(&mut self, contexts: Counts) {
        self.count_contexts(contexts);
        self.steps.clear();
        self.count = 0;
        self.max = self.last_gap.clone();
        // Contexts are counted anew as well.
        self.contexts = Counts::default();
    }
}
