//! Figures over time, in buckets of equal length, each with its least, greatest and last value:
//! no peak is lost, however long the log is.

use super::Scope;
use crate::live::{Ledger, Level, Sum};
use crate::units::Nanos;

/// Every series, over the same buckets.
#[derive(Clone, Debug, Default)]
pub struct TimelineReport {
    /// Where buckets begin, and at last where the last one ends: one more than there are buckets.
    pub edges: Vec<Nanos>,
    /// The series that were ever above zero.
    pub series: Vec<SeriesReport>,
    /// Time in calls, by bucket.
    pub calls: Vec<CallTime>,
}

impl TimelineReport {
    /// A series.
    #[must_use]
    pub fn series(&self, figure: Figure, scope: Scope) -> Option<&SeriesReport> {
        self.series.iter().find(|series| series.figure == figure && series.scope == scope)
    }

    /// Number of buckets.
    #[must_use]
    pub fn len(&self) -> usize {
        self.edges.len().saturating_sub(1)
    }

    /// Whether there is no bucket.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What a series shows, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// A sum of ledgers.
    Sum(Sum),
    /// A ledger.
    Ledger(Ledger),
    /// 2 MiB blocks behind the `device` ledger.
    Touched,
    /// Memory in the segments of PyTorch's allocator.
    TorchReserved,
    /// Memory used on the device by anybody, as NVML read it.
    SampledUsed,
    /// This process's share, as NVML told it.
    SampledProcess,
}

impl Figure {
    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sum(sum) => sum.name(),
            Self::Ledger(ledger) => ledger.name(),
            Self::Touched => "device_blocks",
            Self::TorchReserved => "torch_reserved",
            Self::SampledUsed => "sampled_used",
            Self::SampledProcess => "sampled_process",
        }
    }
}

/// One figure over time.
#[derive(Clone, Debug)]
pub struct SeriesReport {
    /// What it shows.
    pub figure: Figure,
    /// Of which devices.
    pub scope: Scope,
    /// One per bucket.
    pub levels: Vec<Level>,
    /// Of a sum: for each of its ledgers what it held at the moment of each bucket's greatest
    /// value, so that stacked they make exactly that.
    pub parts: Vec<(Ledger, Vec<u64>)>,
}

/// Time that threads spent in calls that took effect in a bucket, all threads together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallTime {
    /// In calls that take memory.
    pub alloc: Nanos,
    /// In calls that give it back.
    pub free: Nanos,
    /// In copies and sets.
    pub copy: Nanos,
}
