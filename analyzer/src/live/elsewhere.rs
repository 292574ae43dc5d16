//! Arrays, and memory that was made elsewhere.
//!
//! ```text
//! open by IPC    the same address again → one opening more │ live
//! close          openings left → one less │ gone
//! import handle  the same handle again → one reference more │ live without a size
//!   first mapping of it: the size is known from here on
//! ```
//!
//! What another process made is in no sum: it is in a sum of that process already
//! (`docs/decisions/0009`). Below stands what events say of pools and of the places that managed
//! memory is asked to be in; neither changes a ledger.

use gmmtrace_format::Kind;
use gmmtrace_format::kind::source;

use super::apply::Call;
use super::books::Account;
use super::ledger::{GpuSlot, Ledger, Why};
use super::pools::PoolIndex;
use super::space::Block;
use super::stalls::Purpose;
use super::vmm::Piece;
use super::{LiveSet, Place};
use crate::order::Record;
use crate::units::{Address, Bytes, Handle};

impl LiveSet {
    /// Memory opened at an address, or as an array.
    pub(super) fn import(&mut self, call: Call, record: &Record) {
        let (address, bytes) = (record.address::<0>(), record.bytes::<1>());
        let from = record.number::<2>();
        let (gpu, owner) = self.place(call);
        self.stall(Purpose::Alloc, call, record, Some(bytes));
        if call.failed {
            return self.views.fail(Ledger::Imported, gpu);
        }
        if address.0 == 0 {
            self.odd.null_calls += 1;
            return;
        }
        if from == source::IPC && self.is_open(address) {
            let more = self.openings.entry(address).or_insert(0);
            *more = more.saturating_add(1);
            return;
        }
        self.openings.remove(&address);
        let account = Account { ledger: Ledger::Imported, gpu, site: call.site };
        let pool = PoolIndex::default();
        let block = Block { bytes, at: call.at, owner, account, pool };
        let space = match from {
            source::EXTERNAL_ARRAY => &mut self.spaces.arrays,
            _ => &mut self.spaces.device,
        };
        if let Some(old) = space.insert(address, block) {
            self.odd.overlaps.note(call.example(Ledger::Imported, address.0));
            self.gone(address, &old, Why::Implicit, call);
        }
        self.contexts.add_block(owner);
        self.book(account, bytes, call);
    }

    fn is_open(&self, address: Address) -> bool {
        let block = self.spaces.device.get(address);
        block.is_some_and(|block| block.account.ledger == Ledger::Imported)
    }

    /// An IPC handle closed.
    pub(super) fn import_closed(&mut self, call: Call, record: &Record) {
        let address = record.address::<0>();
        if !call.failed
            && let Some(more) = self.openings.get_mut(&address)
        {
            *more -= 1;
            if *more == 0 {
                self.openings.remove(&address);
            }
            return self.stall(Purpose::Free, call, record, None);
        }
        self.free(Ledger::Imported, call, record);
    }

    /// A physical allocation opened. Its size and its device are told by no call.
    pub(super) fn import_physical(&mut self, call: Call, record: &Record) {
        let handle = record.handle::<0>();
        let gpu = self.only_gpu;
        self.changed(Purpose::Alloc, call, record, None);
        if call.failed {
            return self.views.fail(Ledger::Imported, gpu);
        }
        if self.vmm.opened_again(handle) {
            return;
        }
        let account = Account { ledger: Ledger::Imported, gpu, site: call.site };
        let piece = Piece { bytes: Bytes(0), at: call.at, account };
        if let Some(former) = self.vmm.create(handle, piece) {
            self.odd.overlaps.note(call.example(Ledger::Imported, handle.0));
            self.pieces_gone(former, Why::Implicit, call);
        }
        self.book(account, piece.bytes, call);
    }

    /// What was imported is mapped: from here on its size is known.
    pub(super) fn import_mapped(&mut self, handle: Handle, bytes: Bytes, call: Call) {
        if let Some((before, now)) = self.vmm.sized(handle, bytes, call.at) {
            self.pieces_gone([before], Why::Resized, call);
            self.book(now.account, now.bytes, call);
        }
    }

    /// A multicast object: a handle like those of physical memory, without memory.
    pub(super) fn multicast(&mut self, call: Call, record: &Record) {
        if call.failed {
            return;
        }
        let account =
            Account { ledger: Ledger::VmmPhysical, gpu: GpuSlot::UNKNOWN, site: call.site };
        let former = self.vmm.multicast(record.handle::<0>(), account, call.at);
        self.pieces_gone(former, Why::Implicit, call);
    }
}

/// Pools, and where managed memory is to be.
impl LiveSet {
    pub(super) fn pool(&mut self, kind: Kind, call: Call, record: &Record) {
        let handle = record.handle::<0>();
        match kind {
            Kind::PoolCreate => {
                let gpu = GpuSlot::of(record.signed::<2>());
                self.pools.created(handle, record.number::<1>(), gpu);
            }
            Kind::PoolDestroy => self.pools.destroyed(handle, call.at),
            Kind::PoolTrim => self.pools.trimmed(handle),
            _ => {
                let (attribute, value) = (record.number::<1>(), record.number::<2>());
                let set = record.number::<3>() != 0;
                self.pools.attribute(handle, attribute, value, set, call.at);
            }
        }
    }

    pub(super) fn prefetch(&mut self, call: Call, record: &Record) {
        let place = Place { location_type: record.number::<2>(), location: record.signed::<3>() };
        self.residency.prefetch(place, record.bytes::<1>(), call.failed);
    }

    pub(super) fn advise(&mut self, call: Call, record: &Record) {
        let place = Place { location_type: record.number::<3>(), location: record.signed::<4>() };
        let advice = record.number::<2>();
        self.residency.advise(advice, place, record.bytes::<1>(), call.failed);
    }
}
