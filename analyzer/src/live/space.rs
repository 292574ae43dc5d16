//! Live blocks of one kind of address, found by their first byte, and when need be by any byte.
//!
//! The hot path is a hash map. The ordered index is built when a copy first asks what lies at an
//! address inside a block, and kept from then on.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use super::books::Account;
use super::composition::Share;
use super::context::OwnerIndex;
use super::pools::PoolIndex;
use crate::units::{Address, Bytes, Ticks};

/// A live block.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    /// Its size.
    pub bytes: Bytes,
    /// When it was made.
    pub at: Ticks,
    /// Whose end ends it.
    pub owner: OwnerIndex,
    /// Where it is booked.
    pub account: Account,
    /// The pool that it came from.
    pub pool: PoolIndex,
}

/// Live blocks by address.
#[derive(Debug, Default)]
pub struct Space {
    blocks: FxHashMap<Address, Block>,
    index: Option<BTreeMap<Address, Bytes>>,
}

impl Space {
    /// Adds a block; returns the one that was live at the same address.
    #[inline]
    pub fn insert(&mut self, address: Address, block: Block) -> Option<Block> {
        if let Some(index) = &mut self.index {
            index.insert(address, block.bytes);
        }
        self.blocks.insert(address, block)
    }

    /// Takes the block that begins at `address`.
    #[inline]
    pub fn remove(&mut self, address: Address) -> Option<Block> {
        let block = self.blocks.remove(&address)?;
        if let Some(index) = &mut self.index {
            index.remove(&address);
        }
        Some(block)
    }

    /// The block that begins at `address`.
    #[must_use]
    #[inline]
    pub fn get(&self, address: Address) -> Option<&Block> {
        self.blocks.get(&address)
    }

    /// The block that `address` lies in.
    pub fn containing(&mut self, address: Address) -> Option<&Block> {
        self.holder(address).map(|(_, block)| block)
    }

    /// The block that `address` lies in, and where it begins.
    pub fn holder(&mut self, address: Address) -> Option<(Address, &Block)> {
        if self.blocks.is_empty() {
            return None;
        }
        if self.blocks.contains_key(&address) {
            return self.blocks.get(&address).map(|block| (address, block));
        }
        let index = self.index.get_or_insert_with(|| {
            self.blocks.iter().map(|(&address, block)| (address, block.bytes)).collect()
        });
        let (start, bytes) = index.range(..address).next_back()?;
        let inside = address.0 - start.0 < bytes.0;
        self.blocks.get(start).filter(|_| inside).map(|block| (*start, block))
    }

    /// Takes every block of an owner.
    pub fn drain_owned(&mut self, owner: OwnerIndex) -> Vec<(Address, Block)> {
        let owned = self.blocks.iter().filter(|(_, block)| block.owner == owner);
        let mut addresses: Vec<Address> = owned.map(|(&address, _)| address).collect();
        addresses.sort_unstable();
        let removed = |address| self.remove(address).map(|block| (address, block));
        addresses.into_iter().filter_map(removed).collect()
    }

    /// Number of live blocks.
    #[must_use]
    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Live blocks that a later one lies in, or that lie in a later one, though the driver never
    /// gives an address twice: their free was not seen. Bytes and number.
    #[must_use]
    pub fn stale(&self) -> Share {
        let mut blocks: Vec<(Address, &Block)> = self.iter().collect();
        blocks.sort_unstable_by_key(|&(address, block)| (address, Reverse(block.bytes)));
        let mut stale = FxHashSet::default();
        // The blocks that reach behind the start of the one that is looked at.
        let mut open: Vec<(Address, &Block)> = Vec::new();
        for (address, block) in blocks {
            open.retain(|&(start, open)| address.0 - start.0 < open.bytes.0);
            for &(start, other) in &open {
                let older = if other.at < block.at { start } else { address };
                stale.insert(older);
            }
            // Of blocks that overlap one goes, so no more than one is ever open.
            open.retain(|(start, _)| !stale.contains(start));
            if block.bytes.0 > 0 && !stale.contains(&address) {
                open.push((address, block));
            }
        }
        let shares = stale.iter().filter_map(|address| self.blocks.get(address));
        let add = |sum: Share, block: &Block| sum.plus(Share { bytes: block.bytes.0, count: 1 });
        shares.fold(Share::default(), add)
    }

    /// Every live block with its address, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (Address, &Block)> {
        self.blocks.iter().map(|(&address, block)| (address, block))
    }

    /// Every live block, in no order.
    pub fn blocks(&self) -> impl Iterator<Item = &Block> {
        self.blocks.values()
    }
}
