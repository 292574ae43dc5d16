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
            self.sparse_used += edge.used;
        }
    }
}

/// A change: what is there afterwards that was not before, and the other way round.
#[derive(Clone, Copy, Debug, Default)]
pub struct Change {
    gained: Granules,
    lost: Granules,
}

/// The blocks that allocations share, of all devices: addresses are one space.
#[derive(Debug, Default)]
pub struct Edges(FxHashMap<u64, Edge>);

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

impl Edges {
    /// An allocation is made.
    #[inline]
    pub fn add(&mut self, address: Address, bytes: Bytes) -> Change {
        let mut change = Change::default();
        change.gained.requested = bytes.0;
        let [first, last] = ends(address, bytes);
        change.gained.touched += (last.0 - first.0).saturating_sub(1);
        self.change(first.0, &mut change, |edge| {
            *edge = Edge { used: edge.used.saturating_add(first.1), count: edge.count + 1 };
        });
        if last.0 != first.0 {
            self.change(last.0, &mut change, |edge| {
                *edge = Edge { used: edge.used.saturating_add(last.1), count: edge.count + 1 };
            });
        }
        change
    }

    /// An allocation is gone.
    #[inline]
    pub fn take(&mut self, address: Address, bytes: Bytes) -> Change {
        let mut change = Change::default();
        change.lost.requested = bytes.0;
        let [first, last] = ends(address, bytes);
        change.lost.touched += (last.0 - first.0).saturating_sub(1);
        let less = |edge: &mut Edge, used: u64| {
            let count = edge.count.saturating_sub(1);
            *edge = Edge { used: edge.used.saturating_sub(used), count };
        };
        self.change(first.0, &mut change, |edge| less(edge, first.1));
        if last.0 != first.0 {
            self.change(last.0, &mut change, |edge| less(edge, last.1));
        }
        change
    }

    #[inline]
    fn change(&mut self, block: u64, change: &mut Change, apply: impl FnOnce(&mut Edge)) {
        match self.0.entry(block) {
            Entry::Occupied(mut entry) => {
                change.lost.note(*entry.get());
                apply(entry.get_mut());
                change.gained.note(*entry.get());
                if entry.get().count == 0 {
                    entry.remove();
                }
            }
            Entry::Vacant(entry) => {
                let mut edge = Edge::default();
                apply(&mut edge);
                change.gained.note(edge);
                if edge.count > 0 {
                    entry.insert(edge);
                }
            }
        }
    }

    /// The sparse blocks that a range begins or ends in, with its bytes there.
    pub fn sparse_ends(
        &self,
        address: Address,
        bytes: Bytes,
    ) -> impl Iterator<Item = (u64, u64)> + '_ {
        let ends = ends(address, bytes).into_iter().filter(|&(_, used)| used > 0);
        ends.filter(|(block, _)| self.0.get(block).is_some_and(|edge| edge.is_sparse()))
    }
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
}

impl Kept {
    /// Applies a change.
    #[inline]
    pub fn apply(&mut self, change: &Change, at: Ticks, bucket: usize) {
        let now = &mut self.now;
        let (gained, lost) = (&change.gained, &change.lost);
        let net =
            |value: u64, gained: u64, lost: u64| value.saturating_add(gained).saturating_sub(lost);
        now.requested = net(now.requested, gained.requested, lost.requested);
        now.touched = net(now.touched, gained.touched, lost.touched);
        now.sparse = net(now.sparse, gained.sparse, lost.sparse);
        now.sparse_used = net(now.sparse_used, gained.sparse_used, lost.sparse_used);
        let waste = now.waste();
        if waste > self.worst.map_or(0, |(_, worst)| worst.waste()) {
            self.worst = Some((at, *now));
        }
        self.series.set(bucket, now.bytes());
    }

    /// Begins anew: the first moment is the worst so far.
    pub fn begin(&mut self, at: Ticks) {
        self.worst = (self.now.waste() > 0).then_some((at, self.now));
        self.series.begin(self.now.bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn neighbours_share_a_block_and_it_stays_for_the_last_of_them() {
        let (mut edges, mut kept) = (Edges::default(), Kept::default());
        let base = 64 * MIB;
        let mut apply = |change: Change, at| {
            kept.apply(&change, Ticks(at), 0);
            kept.now
        };
        // 512 B and 5 MiB − 512 B behind it: blocks 0 to 2, the last one half full.
        apply(edges.add(Address(base), Bytes(512)), 1);
        let now = apply(edges.add(Address(base + 512), Bytes(5 * MIB - 512)), 2);
        assert_eq!((now.touched, now.requested, now.sparse), (3, 5 * MIB, 0));
        let now = apply(edges.take(Address(base + 512), Bytes(5 * MIB - 512)), 3);
        assert_eq!((now.touched, now.requested), (1, 512));
        assert_eq!((now.sparse, now.sparse_used), (1, 512));
        let now = apply(edges.take(Address(base), Bytes(512)), 4);
        assert_eq!(now, Granules::default());
        assert_eq!(
            kept.worst.map(|(at, worst)| (at, worst.waste())),
            Some((Ticks(1), 2 * MIB - 512))
        );
        assert!(edges.0.is_empty());
    }

    #[test]
    fn ranges_at_the_end_of_the_address_space_overflow_nothing() {
        let mut edges = Edges::default();
        for (address, bytes) in [(u64::MAX, u64::MAX), (u64::MAX - 5, 3), (0, 0), (1, u64::MAX)] {
            let mut kept = Kept::default();
            kept.apply(&edges.add(Address(address), Bytes(bytes)), Ticks(0), 0);
            kept.apply(&edges.take(Address(address), Bytes(bytes)), Ticks(0), 0);
            assert_eq!(kept.now.touched, 0, "{address:x} {bytes:x}");
        }
        assert!(edges.0.is_empty());
    }
}
