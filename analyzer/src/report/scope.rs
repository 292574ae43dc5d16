//! What is said twice in the same words: of all devices together, and of each by itself.

use super::{HeldReport, PoolWaste};
use crate::analysis::names::SiteName;
use crate::live::{CopyKey, Ledger, Moved, RangeGaps, Sum, Tally};
use crate::units::{Bytes, Gpu, Nanos};

/// All devices, or one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Every device, and host memory.
    All,
    /// One device; `None` is what is on a device that is not known.
    On(Option<Gpu>),
}

/// The memory figures of one scope.
#[derive(Clone, Debug)]
pub struct ScopeReport {
    /// Which devices.
    pub scope: Scope,
    /// The named sums of ledgers.
    pub sums: Vec<SumReport>,
    /// One entry per ledger.
    pub ledgers: Vec<LedgerReport>,
    /// What is live when the log, or the window, ends: of every ledger, the largest first.
    pub live_at_end: Vec<HeldReport>,
    /// Copies by kind.
    pub copies: Vec<(CopyKey, MovedReport)>,
    /// Sets.
    pub sets: MovedReport,
    /// Memory that is kept from use.
    pub fragmentation: FragmentationReport,
}

impl ScopeReport {
    /// The figures of a sum.
    #[must_use]
    pub fn sum(&self, sum: Sum) -> Option<&SumReport> {
        self.sums.iter().find(|report| report.sum == sum)
    }

    /// The figures of a ledger.
    #[must_use]
    pub fn ledger(&self, ledger: Ledger) -> Option<&LedgerReport> {
        self.ledgers.iter().find(|report| report.ledger == ledger)
    }
}

/// A sum of ledgers, whose peak is that of the sum, not the sum of their peaks.
#[derive(Clone, Debug)]
pub struct SumReport {
    /// Which.
    pub sum: Sum,
    /// Bytes live at the end.
    pub live: Bytes,
    /// The most that was live at a time.
    pub peak: Bytes,
    /// When that was first reached; `None` when nothing was ever live.
    pub peak_at: Option<Nanos>,
    /// Who held it.
    pub at_peak: Composition,
    /// Who holds what is left. Within a window only what was made in it.
    pub at_end: Composition,
}

/// One ledger.
#[derive(Clone, Debug)]
pub struct LedgerReport {
    /// Which.
    pub ledger: Ledger,
    /// The numbers.
    pub tally: Tally,
    /// When the peak was first reached; `None` when nothing was ever live.
    pub peak_at: Option<Nanos>,
    /// What its peak was made of.
    pub at_peak: Composition,
    /// Who holds what is left. Within a window only what was made in it.
    pub at_end: Composition,
}

/// What an amount of memory is made of. Each list adds up to the whole.
#[derive(Clone, Debug, Default)]
pub struct Composition {
    /// By ledger, library, entry point and runtime call, the largest first.
    pub held: Vec<HeldReport>,
    /// By size of the blocks, the smallest first; classes without a block are left out.
    pub by_size: Vec<SizeClassReport>,
    /// By the time that the blocks were made, the oldest first.
    pub by_age: Vec<AgeReport>,
}

/// Blocks of `from` to `to` bytes, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeClassReport {
    /// The least size.
    pub from: Bytes,
    /// The greatest size.
    pub to: Bytes,
    /// Blocks.
    pub count: u64,
    /// Their bytes.
    pub bytes: Bytes,
}

/// Blocks made between two moments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgeReport {
    /// Not before this.
    pub from: Nanos,
    /// Before this.
    pub to: Nanos,
    /// Blocks.
    pub count: u64,
    /// Their bytes.
    pub bytes: Bytes,
}

/// Copies or sets of one kind.
#[derive(Clone, Debug, Default)]
pub struct MovedReport {
    /// How many, and how much.
    pub moved: Moved,
    /// Time in the calls together.
    pub total: Nanos,
    /// The longest call.
    pub max: Nanos,
    /// By size, the smallest first.
    pub by_size: Vec<SizeClassReport>,
}

/// Memory that is taken and of no use, by the level that keeps it.
#[derive(Clone, Debug)]
pub struct FragmentationReport {
    /// 2 MiB blocks behind the `device` ledger, at the end.
    pub device: BlocksReport,
    /// The same when the most was kept.
    pub device_worst: Option<(Nanos, BlocksReport)>,
    /// Who keeps the sparse blocks, the most kept first: at the worst moment that was looked at.
    pub pins: Vec<PinReport>,
    /// When the pins were looked at.
    pub pins_at: Option<Nanos>,
    /// Address ranges of virtual memory management; of all devices together only.
    pub vmm: Option<VmmReport>,
    /// The same at the worst moment that was looked at.
    pub vmm_worst: Option<(Nanos, VmmReport)>,
    /// Mappings that a call was to remove and did not; of all devices together only.
    pub stuck: Option<StuckReport>,
    /// What pools reserve without use; `None` when the driver told of none.
    pub pool: Option<PoolWaste>,
    /// How many moments were looked at for what needs the order of addresses.
    pub looked: u64,
}

/// The driver gives device memory out in blocks, which stay as long as anything is live in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlocksReport {
    /// Bytes asked for.
    pub requested: Bytes,
    /// Bytes of the blocks that they lie in.
    pub touched: Bytes,
    /// Blocks of which less than a tenth is in use.
    pub sparse: u64,
    /// Bytes in use in those.
    pub sparse_used: Bytes,
}

impl BlocksReport {
    /// Bytes kept from use.
    #[must_use]
    pub fn waste(&self) -> Bytes {
        Bytes(self.touched.0.saturating_sub(self.requested.0))
    }
}

/// Whose allocations keep sparse blocks.
#[derive(Clone, Debug)]
pub struct PinReport {
    /// The site, in words.
    pub site: SiteName,
    /// Sparse blocks that hold a block of it.
    pub blocks: u64,
    /// Bytes that it uses in them.
    pub used: Bytes,
}

/// Reserved address ranges and what is mapped there.
#[derive(Clone, Debug, Default)]
pub struct VmmReport {
    /// Ranges with a mapping.
    pub ranges: u64,
    /// Their bytes.
    pub reserved: Bytes,
    /// Bytes mapped in them.
    pub mapped: Bytes,
    /// Bytes not mapped between those that are.
    pub free: Bytes,
    /// Physical device memory that is created and mapped nowhere.
    pub unmapped_physical: Bytes,
    /// The ranges with the most holes below their highest mapping, the worst first.
    pub worst: Vec<RangeGaps>,
}

/// Memory that calls were to give back and that is still held.
#[derive(Clone, Debug, Default)]
pub struct StuckReport {
    /// Mappings that are there although a call was to remove them.
    pub mappings: u64,
    /// Their bytes.
    pub bytes: Bytes,
    /// The largest: where, how much, and whose.
    pub largest: Vec<(u64, Bytes, SiteName)>,
    /// Physical memory without a handle reference: mappings alone keep it.
    pub unreferenced: Bytes,
}
