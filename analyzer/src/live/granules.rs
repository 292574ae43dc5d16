//! The 2 MiB blocks behind the `device` ledger. The driver takes memory in such blocks, puts
//! small allocations into them side by side, and gives a block back when nothing is live in it.
//!
//! Only the first and the last block of an allocation may be shared, so only those are kept in a
//! table; what lies between them is counted.

use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;

use super::series::Series;
use crate::units::{Address, Bytes, Ticks};

/// Bytes of a block.
pub const GRANULE: u64 = 2 << 20;
/// A block with less than one part in this many in use is sparse.
pub const SPARSE: u64 = 10;

/// A block that allocations may share.
#[derive(Clone, Copy, Debug, Default)]
struct Edge {
    used: u64,
    count: u64,
}

impl Edge {
    const fn is_sparse(self) -> bool {
        self.count > 0 && self.used.saturating_mul(SPARSE) < GRANULE
    }
}

/// Sums over blocks, or a change of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Granules {
    /// Bytes asked for.
    pub requested: u64,
    /// Blocks that they lie in.
    pub touched: u64,
    /// Those of them that are sparse.
    pub sparse: u64,
    /// Bytes in use in sparse ones.
    pub sparse_used: u64,
}

impl Granules {
    /// Bytes of the blocks.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.touched.saturating_mul(GRANULE)
    }

    /// Bytes of the blocks that were not asked for.
    #[must_use]
    pub const fn waste(&self) -> u64 {
        self.bytes().saturating_sub(self.requested)
    }

    fn note(&mut self, edge: Edge) {
        self.touched += u64::from(edge.count > 0);
        if edge.is_sparse() {
            self.sparse += 1;
            self.sparse_used = self.sparse_used.saturating_add(edge.used);
        }
    }

    fn forget(&mut self, edge: Edge) {
        self.touched = self.touched.saturating_sub(u64::from(edge.count > 0));
        if edge.is_sparse() {
            self.sparse = self.sparse.saturating_sub(1);
            self.sparse_used = self.sparse_used.saturating_sub(edge.used);
        }
    }
}

/// The first block of a range, the last one, and how many bytes of it lie in each.
fn ends(address: Address, bytes: Bytes) -> [(u64, u64); 2] {
    let last_byte = address.0.saturating_add(bytes.0.saturating_sub(1));
    let (first, last) = (address.0 / GRANULE, last_byte / GRANULE);
    if first == last {
        return [(first, bytes.0), (last, 0)];
    }
    let in_first = GRANULE - address.0 % GRANULE;
    [(first, in_first), (last, last_byte % GRANULE + 1)]
}

/// The blocks of one scope, with their worst moment.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    /// Now.
    pub now: Granules,
    /// When the most was kept from use.
    pub worst: Option<(Ticks, Granules)>,
    /// Bytes of the blocks over time.
    pub series: Series,
    /// The blocks that allocations may share.
    edges: FxHashMap<u64, Edge>,
    /// Whether something has changed since the worst moment was looked for.
    unsettled: bool,
}

impl Kept {
    /// An allocation is made.
    #[inline]
    pub fn add(&mut self, address: Address, bytes: Bytes) {
        self.now.requested = self.now.requested.saturating_add(bytes.0);
        let [first, last] = ends(address, bytes);
        let between = (last.0 - first.0).saturating_sub(1);
        self.now.touched = self.now.touched.saturating_add(between);
        let more = |used: u64| {
            move |edge: &mut Edge| {
                let used = edge.used.saturating_add(used);
                *edge = Edge { used, count: edge.count + 1 };
            }
        };
        self.change(first.0, more(first.1));
        if last.0 != first.0 {
            self.change(last.0, more(last.1));
        }
        self.unsettled = true;
    }

    /// An allocation is gone.
    #[inline]
    pub fn take(&mut self, address: Address, bytes: Bytes) {
        self.now.requested = self.now.requested.saturating_sub(bytes.0);
        let [first, last] = ends(address, bytes);
        let between = (last.0 - first.0).saturating_sub(1);
        self.now.touched = self.now.touched.saturating_sub(between);
        let less = |used: u64| {
            move |edge: &mut Edge| {
                let count = edge.count.saturating_sub(1);
                *edge = Edge { used: edge.used.saturating_sub(used), count };
            }
        };
        self.change(first.0, less(first.1));
        if last.0 != first.0 {
            self.change(last.0, less(last.1));
        }
        self.unsettled = true;
    }

    #[inline]
    fn change(&mut self, block: u64, apply: impl FnOnce(&mut Edge)) {
        match self.edges.entry(block) {
            Entry::Occupied(mut entry) => {
                self.now.forget(*entry.get());
                apply(entry.get_mut());
                self.now.note(*entry.get());
                if entry.get().count == 0 {
                    entry.remove();
                }
            }
            Entry::Vacant(entry) => {
                let mut edge = Edge::default();
                apply(&mut edge);
                self.now.note(edge);
                if edge.count > 0 {
                    entry.insert(edge);
                }
            }
        }
    }

    /// Everything that one event does is done: what is there now is a moment.
    #[inline]
    pub fn settle(&mut self, at: Ticks, bucket: usize) {
        if !self.unsettled {
            return;
        }
        self.unsettled = false;
        if self.now.waste() > self.worst.map_or(0, |(_, worst)| worst.waste()) {
            self.worst = Some((at, self.now));
        }
        self.series.set(bucket, self.now.bytes());
    }

    /// Begins anew: the first moment is the worst so far.
    pub fn begin(&mut self, at: Ticks) {
        self.worst = (self.now.waste() > 0).then_some((at, self.now));
        self.series.begin(self.now.bytes());
    }

    /// The sparse blocks that a range begins or ends in, with its bytes there.
    pub fn sparse_ends(
        &self,
        address: Address,
        bytes: Bytes,
    ) -> impl Iterator<Item = (u64, u64)> + '_ {
        let ends = ends(address, bytes).into_iter().filter(|&(_, used)| used > 0);
        ends.filter(|(block, _)| self.edges.get(block).is_some_and(|edge| edge.is_sparse()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn neighbours_share_a_block_and_it_stays_for_the_last_of_them() {
        let mut kept = Kept::default();
        let base = 64 * MIB;
        // 512 B and 5 MiB − 512 B behind it: blocks 0 to 2, the last one half full.
        let (small, large) = (Bytes(512), Bytes(5 * MIB - 512));
        kept.add(Address(base), small);
        kept.settle(Ticks(1), 0);
        kept.add(Address(base + 512), large);
        kept.settle(Ticks(2), 0);
        let now = kept.now;
        assert_eq!((now.touched, now.requested, now.sparse), (3, 5 * MIB, 0));
        kept.take(Address(base + 512), large);
        kept.settle(Ticks(3), 0);
        let now = kept.now;
        assert_eq!((now.touched, now.requested), (1, 512));
        assert_eq!((now.sparse, now.sparse_used), (1, 512));
        kept.take(Address(base), small);
        assert_eq!(kept.now, Granules::default());
        let worst = kept.worst.map(|(at, worst)| (at, worst.waste()));
        assert_eq!(worst, Some((Ticks(1), 2 * MIB - 512)));
        assert!(kept.edges.is_empty());
    }

    #[test]
    fn ranges_at_the_end_of_the_address_space_overflow_nothing() {
        let mut kept = Kept::default();
        for (address, bytes) in [(u64::MAX, u64::MAX), (u64::MAX - 5, 3), (0, 0), (1, u64::MAX)] {
            kept.add(Address(address), Bytes(bytes));
            kept.take(Address(address), Bytes(bytes));
            assert_eq!(kept.now.touched, 0, "{address:x} {bytes:x}");
        }
        assert!(kept.edges.is_empty());
    }
}
