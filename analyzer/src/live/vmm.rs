//! Virtual memory management: physical allocations and their mappings.
//!
//! ```text
//! create ─▶ references 1 ──retain +1, release −1──▶ references 0, mappings 0 ─▶ gone
//!                 map: mappings +1, unmap: mappings −1
//! ```
//!
//! An allocation lives until references *and* mappings are gone. Its handle may by then name
//! another one, so allocations have numbers of their own.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::books::Account;
use super::ledger::{GpuSlot, Ledger};
use super::sites::SiteIndex;
use crate::units::{Address, Bytes, Handle, Ticks};

/// A location type that is a device.
const ON_DEVICE: u64 = 1;

/// The ledger of physical memory at a location. A failed call may not say any.
#[must_use]
pub fn physical_ledger(location_type: u64) -> Ledger {
    if location_type > ON_DEVICE { Ledger::VmmHost } else { Ledger::VmmPhysical }
}

/// A live piece of physical memory, or a live mapping, with where it is booked.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// Its size.
    pub bytes: Bytes,
    /// When it was made.
    pub at: Ticks,
    /// Where it is booked.
    pub account: Account,
}

#[derive(Clone, Copy, Debug)]
struct Physical {
    piece: Piece,
    references: u64,
    mappings: u64,
    /// Whether it is in a ledger. Multicast objects are not: they have handles and no memory.
    booked: bool,
}

#[derive(Clone, Copy, Debug)]
struct Mapping {
    piece: Piece,
    physical: Option<u64>,
    /// Whether a call that was to remove it failed.
    stuck: bool,
}

/// Mappings that a call was to remove, and physical memory that only mappings keep.
#[derive(Clone, Debug, Default)]
pub struct Stuck {
    /// Mappings that are there although a call was to remove them.
    pub mappings: u64,
    /// Their bytes.
    pub bytes: Bytes,
    /// The largest of them.
    pub largest: Vec<(Address, Piece)>,
    /// Physical memory without a reference: mappings alone keep it.
    pub unreferenced: Bytes,
}

/// Stuck mappings that are told one by one.
const LARGEST: usize = 8;

/// Every physical allocation and mapping.
#[derive(Debug, Default)]
pub struct Vmm {
    physical: FxHashMap<u64, Physical>,
    handles: FxHashMap<Handle, u64>,
    mappings: BTreeMap<Address, Mapping>,
    next: u64,
}

impl Vmm {
    /// Adds an allocation. Returns the piece that held the handle and can no longer be released.
    pub fn create(&mut self, handle: Handle, piece: Piece) -> Option<Option<Piece>> {
        let number = self.next;
        self.next += 1;
        let physical = Physical { piece, references: 1, mappings: 0, booked: true };
        self.physical.insert(number, physical);
        let former = self.handles.insert(handle, number)?;
        // Its last reference may have gone by another handle: then it was free to be given anew.
        self.referenced(former)?.references = 0;
        Some(self.settle(former))
    }

    /// Adds a reference when the handle names an allocation that was opened from elsewhere
    /// before. False when it does not.
    pub fn opened_again(&mut self, handle: Handle) -> bool {
        let number = self.handles.get(&handle).copied();
        let known = number.and_then(|number| self.referenced(number));
        let known = known.filter(|known| known.piece.account.ledger == Ledger::Imported);
        if let Some(known) = known {
            known.references = known.references.saturating_add(1);
            return true;
        }
        false
    }

    /// Adds a handle without memory.
    pub fn multicast(&mut self, handle: Handle, account: Account, at: Ticks) -> Option<Piece> {
        let former = self.create(handle, Piece { bytes: Bytes(0), at, account });
        let number = self.handles.get(&handle);
        if let Some(made) = number.and_then(|number| self.physical.get_mut(number)) {
            made.booked = false;
        }
        former.flatten()
    }

    /// A mapping tells the size of what was imported. Returns the piece as it was and as it is.
    pub fn sized(&mut self, handle: Handle, bytes: Bytes, at: Ticks) -> Option<(Piece, Piece)> {
        let number = self.handles.get(&handle)?;
        let physical = self.physical.get_mut(number)?;
        let before = physical.piece;
        if before.account.ledger != Ledger::Imported || before.bytes.0 != 0 || bytes.0 == 0 {
            return None;
        }
        physical.piece = Piece { bytes, at, ..before };
        Some((before, physical.piece))
    }

    /// The account of the allocation that a handle names.
    #[must_use]
    pub fn account(&self, handle: Handle) -> Option<Account> {
        self.by_handle(handle).map(|physical| physical.piece.account)
    }

    fn by_handle(&self, handle: Handle) -> Option<&Physical> {
        self.handles.get(&handle).and_then(|number| self.physical.get(number))
    }

    fn referenced(&mut self, number: u64) -> Option<&mut Physical> {
        self.physical.get_mut(&number).filter(|physical| physical.references > 0)
    }

    /// Adds a reference, found by an address that it is mapped at, else by the handle.
    pub fn retain(&mut self, handle: Handle, mapped_at: Address) {
        let mapped = self.mapping_at(mapped_at).and_then(|mapping| mapping.physical);
        let Some(number) = mapped.or_else(|| self.handles.get(&handle).copied()) else { return };
        if let Some(physical) = self.physical.get_mut(&number) {
            physical.references = physical.references.saturating_add(1);
            self.handles.insert(handle, number);
        }
    }

    /// Drops a reference. `None` when the handle names nothing; else the memory that is gone,
    /// if it is.
    pub fn release(&mut self, handle: Handle) -> Option<Option<Piece>> {
        let number = *self.handles.get(&handle)?;
        let physical = self.referenced(number)?;
        physical.references -= 1;
        if physical.references == 0 {
            self.handles.remove(&handle);
        }
        Some(self.settle(number))
    }

    /// Adds a mapping of `handle` at `address`. Returns the mapping that was live there, and the
    /// physical memory that is gone with it.
    pub fn map(&mut self, address: Address, handle: Handle, piece: Piece) -> Vec<Piece> {
        let former = self.mappings.remove(&address);
        let gone = former.map(|former| self.unmapped(former)).unwrap_or_default();
        let physical = self.handles.get(&handle).copied();
        if let Some(physical) = physical.and_then(|number| self.physical.get_mut(&number)) {
            physical.mappings += 1;
        }
        self.mappings.insert(address, Mapping { piece, physical, stuck: false });
        gone
    }

    /// Where a mapping of `handle` is booked: with the device of what it maps.
    #[must_use]
    pub fn mapped_account(&self, handle: Handle, site: SiteIndex) -> Account {
        let gpu = match self.account(handle) {
            Some(account) if account.ledger == Ledger::VmmHost => GpuSlot::NONE,
            account => account.map_or(GpuSlot::UNKNOWN, |account| account.gpu),
        };
        Account { ledger: Ledger::VmmMapped, gpu, site }
    }

    /// Removes every mapping that begins in a range. Returns them, and the physical memory that
    /// is gone with them.
    pub fn unmap(&mut self, address: Address, bytes: Bytes) -> Vec<Piece> {
        let end = Address(address.0.saturating_add(bytes.0.max(1)));
        let within = self.mappings.range(address..end).map(|(&start, _)| start);
        let starts: Vec<Address> = within.collect();
        let mut gone = Vec::new();
        for start in starts {
            if let Some(mapping) = self.mappings.remove(&start) {
                gone.append(&mut self.unmapped(mapping));
            }
        }
        gone
    }

    fn unmapped(&mut self, mapping: Mapping) -> Vec<Piece> {
        let mut gone = vec![mapping.piece];
        if let Some(number) = mapping.physical {
            if let Some(physical) = self.physical.get_mut(&number) {
                physical.mappings = physical.mappings.saturating_sub(1);
            }
            gone.extend(self.settle(number));
        }
        gone
    }

    /// Ends an allocation that nothing holds any more.
    fn settle(&mut self, number: u64) -> Option<Piece> {
        let physical = self.physical.get(&number)?;
        if physical.references > 0 || physical.mappings > 0 {
            return None;
        }
        let gone = self.physical.remove(&number).filter(|physical| physical.booked);
        gone.map(|physical| physical.piece)
    }

    fn mapping_at(&self, address: Address) -> Option<&Mapping> {
        let (start, mapping) = self.mappings.range(..=address).next_back()?;
        (address.0 - start.0 < mapping.piece.bytes.0).then_some(mapping)
    }

    /// The device behind an address, when something is mapped there.
    #[must_use]
    pub fn device_at(&self, address: Address) -> Option<GpuSlot> {
        self.mapping_at(address).map(|mapping| mapping.piece.account.gpu)
    }

    /// Mappings that begin in a range, by address.
    pub fn mapped_in(
        &self,
        start: Address,
        end: Address,
    ) -> impl Iterator<Item = (Address, Bytes)> + '_ {
        let within = self.mappings.range(start..end.max(start));
        within.map(|(&address, mapping)| (address, mapping.piece.bytes))
    }

    /// Number of mappings.
    #[must_use]
    pub fn mapping_count(&self) -> usize {
        self.mappings.len()
    }

    /// A call that was to remove the mappings in a range failed.
    pub fn unmap_failed(&mut self, address: Address, bytes: Bytes) {
        let end = Address(address.0.saturating_add(bytes.0.max(1)));
        for (_, mapping) in self.mappings.range_mut(address..end) {
            mapping.stuck = true;
        }
    }

    /// What is stuck now.
    #[must_use]
    pub fn stuck(&self) -> Stuck {
        let mut stuck = Stuck::default();
        for (&address, mapping) in self.mappings.iter().filter(|(_, mapping)| mapping.stuck) {
            stuck.mappings += 1;
            stuck.bytes = Bytes(stuck.bytes.0.saturating_add(mapping.piece.bytes.0));
            stuck.largest.push((address, mapping.piece));
        }
        stuck.largest.sort_by_key(|(_, piece)| std::cmp::Reverse(piece.bytes));
        stuck.largest.truncate(LARGEST);
        let kept = self.physical.values().filter(|physical| physical.references == 0);
        let kept = kept.filter(|physical| physical.booked);
        let bytes = kept.fold(0, |sum: u64, kept| sum.saturating_add(kept.piece.bytes.0));
        stuck.unreferenced = Bytes(bytes);
        stuck
    }

    /// Bytes of physical memory of devices that is mapped nowhere.
    #[must_use]
    pub fn unmapped_physical(&self) -> u64 {
        let unmapped = self.physical.values();
        let unmapped = unmapped.filter(|physical| physical.booked && physical.mappings == 0);
        let pieces = unmapped.map(|physical| &physical.piece);
        let on_device = pieces.filter(|piece| piece.account.ledger == Ledger::VmmPhysical);
        on_device.fold(0, |sum: u64, piece| sum.saturating_add(piece.bytes.0))
    }

    /// Every live piece, in no order.
    pub fn pieces(&self) -> impl Iterator<Item = &Piece> {
        let booked = self.physical.values().filter(|physical| physical.booked);
        let physical = booked.map(|physical| &physical.piece);
        physical.chain(self.mappings.values().map(|mapping| &mapping.piece))
    }
}
