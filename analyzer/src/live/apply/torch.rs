//! What PyTorch's reports do to the live set.

use gmmtrace_format::Kind;

use super::Call;
use crate::live::ledger::{GpuSlot, Ledger, Why};
use crate::live::torch::{Failure, Segment, Totals};
use crate::live::vmm::Piece;
use crate::live::{Account, LiveSet};
use crate::order::Record;
use crate::units::{Address, Bytes};

impl LiveSet {
    /// A report about a block.
    pub(super) fn torch_block(&mut self, kind: Kind, call: Call, record: &Record) {
        self.torch.seen = true;
        let (address, bytes) = (record.address::<0>(), record.bytes::<1>());
        let gpu = GpuSlot::of(record.signed::<4>());
        if call.failed {
            // No recorder writes that.
            return self.views.fail(Ledger::Torch, gpu);
        }
        match kind {
            Kind::TorchAlloc => self.torch_alloc(address, bytes, gpu, call),
            _ => self.torch_free(address, call),
        }
        let told = Totals { allocated: record.bytes::<2>().0, reserved: record.bytes::<3>().0 };
        self.torch.report(gpu, told, call.at, call.now);
    }

    fn torch_alloc(&mut self, address: Address, bytes: Bytes, gpu: GpuSlot, call: Call) {
        let account = Account { ledger: Ledger::Torch, gpu, site: call.site };
        let in_segment = self.in_segment(address, gpu);
        let piece = Piece { bytes, at: call.at, account };
        if let Some(former) = self.torch.add(address, piece, in_segment) {
            self.odd.overlaps.note(call.example(Ledger::Torch, address.0));
            self.pieces_gone([former], Why::Implicit, call);
        }
        self.book(account, bytes, call);
    }

    fn torch_free(&mut self, address: Address, call: Call) {
        match self.torch.take(address) {
            Some(piece) => self.pieces_gone([piece], Why::Asked, call),
            None => self.odd.unknown_frees.note(call.example(Ledger::Torch, address.0)),
        }
    }

    /// Whether an address lies in memory of the driver that is known: in an allocation, or in a
    /// range where something is mapped. That is a segment from here on.
    fn in_segment(&mut self, address: Address, gpu: GpuSlot) -> bool {
        if let Some(known) = self.torch.segment(address) {
            return !known.expandable || self.vmm.device_at(address).is_some();
        }
        if let Some((start, block)) = self.spaces.device.holder(address) {
            let segment = Segment { bytes: block.bytes, expandable: false, gpu };
            self.torch.learn(start, segment);
            return true;
        }
        let mapped = self.vmm.device_at(address).is_some();
        let range = mapped.then(|| self.spaces.reserved.holder(address)).flatten();
        let Some((start, range)) = range else { return false };
        self.torch.learn(start, Segment { bytes: range.bytes, expandable: true, gpu });
        true
    }

    /// A request that found no memory.
    pub(super) fn torch_oom(&mut self, call: Call, record: &Record) {
        self.torch.seen = true;
        let gpu = GpuSlot::of(record.signed::<3>());
        self.views.fail(Ledger::Torch, gpu);
        if call.failed {
            return;
        }
        let reading = self.samples.totals.get(&gpu);
        let free = reading.map(|last| Bytes(last.total.0.saturating_sub(last.last_used.0)));
        let failure = Failure {
            at: call.at,
            gpu,
            lane: call.lane,
            site: call.site,
            requested: record.bytes::<0>(),
            totals: Totals { allocated: record.bytes::<1>().0, reserved: record.bytes::<2>().0 },
            device_free: free,
            largest: None,
        };
        self.torch.fail(failure, &self.vmm, call.now);
    }
}
