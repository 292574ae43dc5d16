//! What each kind of event does to the live set. The `match` only dispatches.

mod objects;
mod torch;

use gmmtrace_format::Kind;
use gmmtrace_format::event::Flags;
use gmmtrace_format::kind::{copy, object};

use super::context::OwnerIndex;
use super::ledger::{GpuSlot, Ledger, Why};
use super::odd::Example;
use super::pools::PoolIndex;
use super::samples::Reading;
use super::space::{Block, Space};
use super::stalls::{LongCall, Purpose};
use super::traffic::{CopyKey, Direction, HostMemory, Transfer};
use super::vmm::{Piece, physical_ledger};
use super::{Account, LiveSet, MARKS, SiteIndex, Spaces};
use crate::order::Record;
use crate::units::{Address, Bytes, Ticks};

/// What every event has.
#[derive(Clone, Copy)]
pub(super) struct Call {
    pub(super) lane: u32,
    pub(super) site: SiteIndex,
    pub(super) at: Ticks,
    /// The bucket of the time axis.
    pub(super) now: usize,
    pub(super) failed: bool,
}

impl Call {
    pub(super) fn example(self, ledger: Ledger, place: u64) -> Example {
        Example { ledger, place, site: self.site, at: self.at }
    }
}

/// A space by ledger: each of these has one kind of address.
fn space(spaces: &mut Spaces, ledger: Ledger) -> &mut Space {
    match ledger {
        Ledger::Pinned => &mut spaces.pinned,
        Ledger::Registered => &mut spaces.registered,
        Ledger::VmmAddress => &mut spaces.reserved,
        Ledger::Array => &mut spaces.arrays,
        _ => &mut spaces.device,
    }
}

impl LiveSet {
    /// Applies one event.
    #[inline]
    pub(super) fn apply(&mut self, lane: u32, record: &Record, texts: &[u8]) {
        let site = self.sites.index(record.site);
        self.sites.count(site, record);
        let Some(kind) = Kind::from_id(record.kind) else { return };
        let at = record.stamp();
        let call = Call { lane, site, at, now: self.reach(at), failed: record.failed() };
        if record.flags().has(Flags::CAPTURED) {
            return self.captured(kind, call, record);
        }
        match kind {
            Kind::DeviceAlloc => self.alloc(Ledger::Device, call, record),
            Kind::ManagedAlloc => self.alloc(Ledger::Managed, call, record),
            Kind::PinnedAlloc => self.alloc(Ledger::Pinned, call, record),
            Kind::HostRegister => self.alloc(Ledger::Registered, call, record),
            Kind::PoolAlloc => self.alloc(Ledger::AsyncPool, call, record),
            Kind::Free => self.free(Ledger::Device, call, record),
            Kind::PinnedFree => self.free(Ledger::Pinned, call, record),
            Kind::HostUnregister => self.free(Ledger::Registered, call, record),
            Kind::PoolFree => self.free(Ledger::AsyncPool, call, record),
            Kind::Copy => self.copy(call, record),
            Kind::Set => self.set(call, record),
            Kind::TorchAlloc | Kind::TorchFree => self.torch_block(kind, call, record),
            _ => self.apply_rare(kind, call, record, texts),
        }
        self.views.settle(call.at, call.now);
    }

    #[inline(never)]
    fn apply_rare(&mut self, kind: Kind, call: Call, record: &Record, texts: &[u8]) {
        match kind {
            // Holes are looked for in ranges, so these can show something new.
            Kind::AddressReserve => {
                self.looks.changes += 1;
                self.alloc(Ledger::VmmAddress, call, record);
            }
            Kind::AddressFree => {
                self.looks.changes += 1;
                self.free(Ledger::VmmAddress, call, record);
            }
            Kind::PhysicalCreate => self.create(call, record),
            Kind::PhysicalRelease => self.release(call, record),
            Kind::Map => self.map(call, record),
            Kind::Unmap => self.unmap(call, record),
            Kind::PhysicalRetain if !call.failed => {
                self.vmm.retain(record.handle::<0>(), record.address::<1>());
            }
            // Arrays, and what was made elsewhere.
            Kind::ArrayCreate => self.alloc(Ledger::Array, call, record),
            Kind::ArrayDestroy => self.free(Ledger::Array, call, record),
            Kind::Import => self.import(call, record),
            Kind::ImportClose => self.import_closed(call, record),
            Kind::PhysicalImport => self.import_physical(call, record),
            Kind::PoolCreate | Kind::PoolDestroy | Kind::PoolTrim | Kind::PoolAttribute
                if !call.failed =>
            {
                self.pool(kind, call, record);
            }
            Kind::Prefetch => self.prefetch(call, record),
            Kind::Advise => self.advise(call, record),
            Kind::ObjectCreate if record.number::<1>() == object::MULTICAST => {
                self.multicast(call, record);
            }
            Kind::ContextCreate
            | Kind::ContextDestroy
            | Kind::PrimaryRetain
            | Kind::PrimaryRelease
            | Kind::PrimaryReset
            | Kind::ContextCurrent
            | Kind::ContextDevice
            | Kind::DeviceCurrent
                if !call.failed =>
            {
                self.context(kind, call, record);
            }
            Kind::Mark | Kind::RangePush | Kind::RangePop | Kind::RangeStart | Kind::RangeEnd => {
                self.phase(kind, call, record, texts);
            }
            Kind::RuntimeCall => self.runtime_call(call, record),
            Kind::ObjectCreate => self.object_made(call, record),
            Kind::ObjectDestroy => self.object_destroyed(call, record),
            Kind::GraphAlloc => self.graph_alloc(call, record),
            Kind::GraphFree => self.graph_free(call, record),
            Kind::GraphLaunch => self.graph_launch(call, record),
            Kind::GraphMemory if !call.failed => {
                let gpu = GpuSlot::of(record.signed::<0>());
                self.graphs.tell(gpu, record.number::<1>(), record.bytes::<2>());
            }
            Kind::Limit if !call.failed => {
                self.objects.limits.insert(record.number::<0>(), record.bytes::<1>());
            }
            Kind::GraphTrim if !call.failed => self.graphs.counts.trims += 1,
            Kind::TorchOom => self.torch_oom(call, record),
            Kind::Sample => {
                let (used, total) = (record.bytes::<1>(), record.bytes::<2>());
                let reading = Reading { used, total, process_used: record.number::<3>() };
                let device = record.signed::<0>();
                self.samples.add(device, reading, call.now);
                if self.steps.sample(device, reading.process_used) {
                    let explained = self.explained();
                    self.steps.read(call.at, explained, self.contexts.counts);
                }
            }
            _ => {}
        }
    }

    /// The device and owner of what this call allocates.
    #[inline]
    pub(super) fn place(&mut self, call: Call) -> (GpuSlot, OwnerIndex) {
        let thread = self.lanes.get(call.lane as usize).map(|lane| lane.thread);
        let (gpu, owner) = thread
            .and_then(|thread| self.threads.get_mut(thread))
            .map(|thread| self.contexts.place(&mut thread.current))
            .unwrap_or_default();
        if gpu != GpuSlot::UNKNOWN {
            return (gpu, owner);
        }
        // CUDA's default: a runtime call on a thread that never chose a device uses device 0.
        if self.sites.has_outer(call.site) {
            let first = GpuSlot::of(0);
            let nobody = owner == OwnerIndex(0);
            return (first, if nobody { self.contexts.primary(first) } else { owner });
        }
        (self.only_gpu, owner)
    }

    /// Whose a block of this ledger is, and on which device.
    #[inline]
    fn place_in(&mut self, ledger: Ledger, call: Call) -> (GpuSlot, OwnerIndex) {
        match ledger {
            Ledger::Device | Ledger::Managed | Ledger::Array | Ledger::Imported => self.place(call),
            Ledger::AsyncPool => (self.place(call).0, OwnerIndex(0)),
            Ledger::Pinned | Ledger::Registered => (GpuSlot::UNKNOWN, self.place(call).1),
            _ => (GpuSlot::UNKNOWN, OwnerIndex(0)),
        }
    }

    #[inline]
    fn alloc(&mut self, ledger: Ledger, call: Call, record: &Record) {
        let (gpu, owner) = self.place_in(ledger, call);
        let (address, bytes) = (record.address::<0>(), record.bytes::<1>());
        self.stall(Purpose::Alloc, call, record, Some(bytes));
        if call.failed {
            self.look(call.at);
            self.torch.refuse(gpu);
            return self.views.fail(ledger, gpu);
        }
        if address.0 == 0 {
            self.odd.null_calls += 1;
            return;
        }
        let account = Account { ledger, gpu, site: call.site };
        let pool = match ledger {
            Ledger::AsyncPool => self.pools.alloc(record.handle::<3>(), gpu, bytes),
            _ => PoolIndex::default(),
        };
        let block = Block { bytes, at: call.at, owner, account, pool };
        self.looks.changes += u64::from(ledger == Ledger::VmmAddress);
        if let Some(old) = space(&mut self.spaces, ledger).insert(address, block) {
            self.odd.overlaps.note(call.example(ledger, address.0));
            self.gone(address, &old, Why::Implicit, call);
        }
        self.contexts.add_block(owner);
        if ledger == Ledger::Device {
            self.views.keep(gpu, address, bytes);
        }
        self.book(account, bytes, call);
    }

    #[inline]
    pub(super) fn book(&mut self, account: Account, bytes: Bytes, call: Call) {
        self.steps.moved(account.ledger);
        let block = self.traits(account, bytes, call.at);
        self.views.add(account, block, call.at, call.now);
    }

    #[inline]
    pub(super) fn gone(&mut self, address: Address, block: &Block, why: Why, call: Call) {
        self.contexts.take_block(block.owner);
        if !self.torch.has_no_segments() {
            self.torch.gone(address, why == Why::Asked, call.at, call.now);
        }
        if block.account.ledger == Ledger::Device {
            self.views.leave(block.account.gpu, address, block.bytes);
        }
        if block.pool != PoolIndex::default() {
            self.pools.free(block.pool, block.bytes);
        }
        self.steps.moved(block.account.ledger);
        let traits = self.traits(block.account, block.bytes, block.at);
        self.views.take(block.account, traits, why, call.now);
    }

    #[inline]
    pub(super) fn stall(
        &mut self,
        purpose: Purpose,
        call: Call,
        record: &Record,
        bytes: Option<Bytes>,
    ) {
        let long = LongCall::of(record, bytes, call.site, call.lane);
        self.stalls.count(purpose, long, call.now);
    }

    /// A free is booked where the block is, which may be in another ledger of its space.
    #[inline]
    pub(super) fn free(&mut self, ledger: Ledger, call: Call, record: &Record) {
        let address = record.address::<0>();
        if call.failed {
            self.stall(Purpose::Free, call, record, None);
            return self.free_failed(ledger, call, address);
        }
        self.looks.changes += u64::from(ledger == Ledger::VmmAddress);
        let block = space(&mut self.spaces, ledger).remove(address);
        self.stall(Purpose::Free, call, record, block.map(|block| block.bytes));
        match block {
            Some(block) => self.gone(address, &block, Why::Asked, call),
            None if address.0 == 0 => self.odd.null_calls += 1,
            None => self.odd.unknown_frees.note(call.example(ledger, address.0)),
        }
    }

    /// `cuMemFree` serves several ledgers, so a block that is known says which; every other call
    /// has one of its own.
    #[cold]
    fn free_failed(&mut self, ledger: Ledger, call: Call, address: Address) {
        let known = match ledger {
            Ledger::Device => self.spaces.device.get(address).map(|block| block.account),
            _ => None,
        };
        match known {
            Some(account) => self.views.fail(account.ledger, account.gpu),
            None => {
                let (gpu, _) = self.place_in(ledger, call);
                self.views.fail(ledger, gpu);
            }
        }
    }
}

/// Virtual memory management.
impl LiveSet {
    fn create(&mut self, call: Call, record: &Record) {
        let (handle, bytes) = (record.handle::<0>(), record.bytes::<1>());
        let ledger = physical_ledger(record.number::<2>());
        let on_device = ledger == Ledger::VmmPhysical;
        let location = GpuSlot::of(record.signed::<3>());
        let gpu = if on_device { location } else { GpuSlot::UNKNOWN };
        self.changed(Purpose::Alloc, call, record, Some(bytes));
        if call.failed {
            self.look(call.at);
            self.torch.refuse(gpu);
            return self.views.fail(ledger, gpu);
        }
        let account = Account { ledger, gpu, site: call.site };
        if let Some(former) = self.vmm.create(handle, Piece { bytes, at: call.at, account }) {
            self.odd.overlaps.note(call.example(ledger, handle.0));
            self.pieces_gone(former, Why::Implicit, call);
        }
        self.book(account, bytes, call);
    }

    pub(super) fn changed(
        &mut self,
        purpose: Purpose,
        call: Call,
        record: &Record,
        bytes: Option<Bytes>,
    ) {
        self.looks.changes += 1;
        self.stall(purpose, call, record, bytes);
    }

    pub(super) fn pieces_gone(
        &mut self,
        pieces: impl IntoIterator<Item = Piece>,
        why: Why,
        call: Call,
    ) {
        for piece in pieces {
            let traits = self.traits(piece.account, piece.bytes, piece.at);
            self.views.take(piece.account, traits, why, call.now);
        }
    }

    fn release(&mut self, call: Call, record: &Record) {
        let handle = record.handle::<0>();
        if call.failed {
            self.changed(Purpose::Free, call, record, None);
            let account = self.vmm.account(handle);
            let (ledger, gpu) = account
                .map_or((Ledger::VmmPhysical, self.only_gpu), |known| (known.ledger, known.gpu));
            return self.views.fail(ledger, gpu);
        }
        let released = self.vmm.release(handle);
        let gone = released.flatten().map(|piece| piece.bytes);
        self.changed(Purpose::Free, call, record, gone);
        match released {
            Some(gone) => self.pieces_gone(gone, Why::Asked, call),
            None => self.odd.unknown_frees.note(call.example(Ledger::VmmPhysical, handle.0)),
        }
    }

    fn map(&mut self, call: Call, record: &Record) {
        let (address, bytes) = (record.address::<0>(), record.bytes::<1>());
        let handle = record.handle::<3>();
        let account = self.vmm.mapped_account(handle, call.site);
        let unknown = account.gpu == GpuSlot::UNKNOWN;
        let account = Account { gpu: if unknown { self.only_gpu } else { account.gpu }, ..account };
        self.changed(Purpose::Alloc, call, record, Some(bytes));
        if call.failed {
            return self.views.fail(Ledger::VmmMapped, account.gpu);
        }
        if address.0 == 0 {
            self.odd.null_calls += 1;
            return;
        }
        self.import_mapped(handle, bytes, call);
        let former = self.vmm.map(address, handle, Piece { bytes, at: call.at, account });
        if !former.is_empty() {
            self.odd.overlaps.note(call.example(Ledger::VmmMapped, address.0));
            self.pieces_gone(former, Why::Implicit, call);
        }
        self.book(account, bytes, call);
    }

    fn unmap(&mut self, call: Call, record: &Record) {
        let (address, bytes) = (record.address::<0>(), record.bytes::<1>());
        self.changed(Purpose::Free, call, record, Some(bytes));
        if call.failed {
            let gpu = self.vmm.device_at(address).unwrap_or(self.only_gpu);
            self.vmm.unmap_failed(address, bytes);
            return self.views.fail(Ledger::VmmMapped, gpu);
        }
        let gone = self.vmm.unmap(address, bytes);
        if gone.is_empty() {
            self.odd.unknown_frees.note(call.example(Ledger::VmmMapped, address.0));
        }
        if !self.torch.has_no_segments() {
            let mapped = gone.iter().filter(|piece| piece.account.ledger == Ledger::VmmMapped);
            let bytes = mapped.fold(0, |sum: u64, piece| sum.saturating_add(piece.bytes.0));
            self.torch.unmapped(address, bytes, call.at, call.now);
        }
        self.pieces_gone(gone, Why::Asked, call);
    }
}

/// Contexts.
impl LiveSet {
    fn context(&mut self, kind: Kind, call: Call, record: &Record) {
        let handle = record.handle::<0>();
        let first = GpuSlot::of(record.signed::<0>());
        let second = GpuSlot::of(record.signed::<1>());
        let ended = match kind {
            Kind::ContextDestroy => self.contexts.destroyed(handle),
            Kind::PrimaryRelease => self.contexts.released(first),
            Kind::PrimaryReset => self.contexts.reset(first),
            Kind::ContextCreate => return self.contexts.created(handle, second),
            Kind::PrimaryRetain => return self.contexts.retained(handle, second),
            Kind::ContextDevice => return self.contexts.told_device(handle, second),
            Kind::ContextCurrent => {
                let thread = self.thread(call.lane);
                return thread.map(|thread| thread.current.use_context(handle)).unwrap_or_default();
            }
            _ => {
                let thread = self.thread(call.lane);
                return thread.map(|thread| thread.current.use_device(first)).unwrap_or_default();
            }
        };
        for owner in ended {
            self.end_owner(owner, call);
        }
    }

    fn end_owner(&mut self, owner: OwnerIndex, call: Call) {
        let spaces = &mut self.spaces;
        let mut ended = spaces.device.drain_owned(owner);
        ended.append(&mut spaces.pinned.drain_owned(owner));
        ended.append(&mut spaces.registered.drain_owned(owner));
        ended.append(&mut spaces.arrays.drain_owned(owner));
        for (address, block) in &ended {
            self.gone(*address, block, Why::Implicit, call);
        }
        for _ in 0..self.objects.end_owner(owner) {
            self.contexts.take_block(owner);
        }
    }
}

/// Copies, sets, phases and runtime calls.
impl LiveSet {
    #[inline]
    fn copy(&mut self, call: Call, record: &Record) {
        let bytes = record.bytes::<3>();
        self.stall(Purpose::Copy, call, record, Some(bytes));
        if call.failed {
            self.odd.failed_copies += 1;
            return;
        }
        let mode = record.number::<0>();
        let (to, from) = (record.address::<1>(), record.address::<2>());
        let direction = match Direction::of_mode(mode) {
            Some(Direction::Peer) => self.peer(to, from),
            Some(said) => self.as_it_lies(said, to, from),
            None => self.unified(to, from),
        };
        let host = match direction {
            Direction::HostToDevice | Direction::HostToArray => Some(self.host_memory(from)),
            Direction::DeviceToHost | Direction::ArrayToHost => Some(self.host_memory(to)),
            Direction::HostToHost => Some(self.host_memory(from).max(self.host_memory(to))),
            _ => None,
        };
        let asynchronous = mode & copy::ASYNCHRONOUS != 0;
        let key = CopyKey { direction, asynchronous, host };
        let gpus = self.copy_gpus(direction, to, from, call);
        self.views.copied(key, Transfer { bytes, length: record.duration() }, gpus);
    }

    /// The devices at the ends of a copy. Where an address is not known, the device that the
    /// thread uses.
    #[inline]
    fn copy_gpus(
        &mut self,
        direction: Direction,
        to: Address,
        from: Address,
        call: Call,
    ) -> [Option<GpuSlot>; 2] {
        let (takes, gives) = match direction {
            Direction::HostToHost => return [None, None],
            Direction::HostToDevice | Direction::HostToArray => (true, false),
            Direction::DeviceToHost | Direction::ArrayToHost => (false, true),
            _ => (true, true),
        };
        if self.only_gpu != GpuSlot::UNKNOWN {
            return [Some(self.only_gpu), None];
        }
        let mut gpu = |address| match self.device_at(address) {
            Some(gpu) if gpu != GpuSlot::UNKNOWN && gpu != GpuSlot::NONE => gpu,
            _ => self.place(call).0,
        };
        [takes.then(|| gpu(to)), gives.then(|| gpu(from))]
    }

    /// The device behind an address, when a ledger of device memory has it.
    fn device_at(&mut self, address: Address) -> Option<GpuSlot> {
        let block = self.spaces.device.containing(address).map(|block| block.account.gpu);
        block.or_else(|| self.vmm.device_at(address))
    }

    fn unified(&mut self, to: Address, from: Address) -> Direction {
        let array = |place: Address| self.spaces.arrays.get(place).is_some();
        let (from_array, to_array) = (array(from), array(to));
        if from_array || to_array {
            return match (self.device_at(from).is_some(), self.device_at(to).is_some()) {
                _ if from_array && to_array => Direction::ArrayToArray,
                (_, true) => Direction::ArrayToDevice,
                (true, _) => Direction::DeviceToArray,
                _ if from_array => Direction::ArrayToHost,
                _ => Direction::HostToArray,
            };
        }
        match (self.device_at(from).is_some(), self.device_at(to).is_some()) {
            (false, true) => Direction::HostToDevice,
            (true, false) => Direction::DeviceToHost,
            (true, true) => Direction::DeviceToDevice,
            (false, false) => Direction::HostToHost,
        }
    }

    /// The device addresses page-locked memory like its own, so that may lie at an end that the
    /// call says is on the device.
    #[inline]
    fn as_it_lies(&mut self, said: Direction, to: Address, from: Address) -> Direction {
        let mut locked = |address| self.host_memory(address) != HostMemory::Pageable;
        match said {
            Direction::HostToDevice if locked(to) => Direction::HostToHost,
            Direction::DeviceToHost if locked(from) => Direction::HostToHost,
            Direction::DeviceToDevice => match (locked(from), locked(to)) {
                (true, true) => Direction::HostToHost,
                (true, false) => Direction::HostToDevice,
                (false, true) => Direction::DeviceToHost,
                (false, false) => said,
            },
            _ => said,
        }
    }

    /// A copy between two contexts of one device stays within it.
    fn peer(&mut self, to: Address, from: Address) -> Direction {
        let known = |gpu: &GpuSlot| gpu.ordinal().is_some();
        let to = self.device_at(to).filter(known);
        if to.is_some() && to == self.device_at(from) {
            Direction::DeviceToDevice
        } else {
            Direction::Peer
        }
    }

    fn host_memory(&mut self, address: Address) -> HostMemory {
        if self.spaces.pinned.containing(address).is_some() {
            HostMemory::Pinned
        } else if self.spaces.registered.containing(address).is_some() {
            HostMemory::Registered
        } else {
            HostMemory::Pageable
        }
    }

    #[inline]
    fn set(&mut self, call: Call, record: &Record) {
        let bytes = record.bytes::<2>();
        self.stall(Purpose::Set, call, record, Some(bytes));
        if call.failed {
            self.odd.failed_sets += 1;
            return;
        }
        let length = record.duration();
        let [gpu, _] =
            self.copy_gpus(Direction::HostToDevice, record.address::<1>(), Address(0), call);
        self.views.set(Transfer { bytes, length }, gpu.unwrap_or_default());
    }

    fn phase(&mut self, kind: Kind, call: Call, record: &Record, texts: &[u8]) {
        let text = record.text(texts);
        let thread = self.lanes.get(call.lane as usize).map(|lane| lane.thread);
        let thread = thread.and_then(|thread| self.threads.get_mut(thread));
        let marks = &mut self.marks;
        match (kind, thread) {
            (Kind::Mark, _) => {
                marks.mark(call.lane, call.at, text);
                if marks.mark_count <= MARKS as u64 {
                    self.look(call.at);
                }
            }
            (Kind::RangePush, Some(thread)) => marks.push(&mut thread.ranges, call.at, text),
            (Kind::RangePop, Some(thread)) => marks.pop(&mut thread.ranges, call.at),
            (Kind::RangeStart, _) => marks.start(record.number::<0>(), call.at, text),
            (Kind::RangeEnd, _) => marks.finish(record.number::<0>(), call.at),
            _ => {}
        }
    }

    /// A runtime call that reached no driver call: of those for memory, the null ones.
    fn runtime_call(&mut self, call: Call, record: &Record) {
        let null = record.address::<0>() == Address(0);
        if !call.failed && null && self.sites.null_is_a_call(call.site) {
            self.odd.null_calls += 1;
        }
    }
}
