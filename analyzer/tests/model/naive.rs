//! What a log means, by the dullest of means: a list of live blocks, of which every figure is
//! worked out anew after each change, from what `docs/reports.md` says of it.

use std::collections::{BTreeMap, BTreeSet};

use gmmtrace_format::Kind;
use gmmtrace_format::kind::copy;

use super::logs::Step;
use super::support::{ALONE_SITE, RUNTIME_SITE};

pub const LEDGERS: [&str; 9] = [
    "device",
    "managed",
    "pinned",
    "registered",
    "async_pool",
    "vmm_address",
    "vmm_physical",
    "vmm_host",
    "vmm_mapped",
];
const DEVICE: usize = 0;
const MANAGED: usize = 1;
const PINNED: usize = 2;
const REGISTERED: usize = 3;
const ASYNC_POOL: usize = 4;
const VMM_ADDRESS: usize = 5;
const VMM_PHYSICAL: usize = 6;
const VMM_HOST: usize = 7;
const VMM_MAPPED: usize = 8;
/// The sums `gpu` and `host`.
pub const SUMS: [(&str, [usize; 3]); 2] =
    [("gpu", [DEVICE, ASYNC_POOL, VMM_PHYSICAL]), ("host", [PINNED, REGISTERED, VMM_HOST])];
pub const GRANULE: u64 = 2 << 20;

/// The device of a mapping of host memory: none.
const NO_DEVICE: Gpu = Some(u32::MAX);

/// A device, when it is known.
pub type Gpu = Option<u32>;

/// All devices together, what is on none that is known, and three devices.
pub const SCOPES: [Option<Gpu>; 5] =
    [None, Some(None), Some(Some(0)), Some(Some(1)), Some(Some(2))];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Nobody,
    Context(u64),
    Primary(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Device(u64),
    Pinned(u64),
    Registered(u64),
    Reserved(u64),
    Physical(usize),
    Mapping(u64),
}

#[derive(Clone, Copy, Debug)]
pub struct Block {
    place: Place,
    pub ledger: usize,
    pub bytes: u64,
    pub at: u64,
    pub site: u32,
    gpu: Gpu,
    owner: Owner,
    /// Of a mapping: what is mapped.
    maps: Option<usize>,
}

impl Block {
    pub fn is_in(&self, scope: Option<Gpu>) -> bool {
        let host = [PINNED, REGISTERED, VMM_ADDRESS, VMM_HOST].contains(&self.ledger);
        scope.is_none_or(|gpu| !host && self.gpu == gpu)
    }
}

/// Sums over 2 MiB blocks: requested, touched, sparse, used in sparse ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Granules {
    pub requested: u64,
    pub touched: u64,
    pub sparse: u64,
    pub sparse_used: u64,
}

impl Granules {
    pub fn waste(&self) -> u64 {
        self.touched - self.requested
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    pub allocs: u64,
    pub alloc_bytes: u64,
    pub frees: u64,
    pub free_bytes: u64,
    pub failed: u64,
    pub implicit: u64,
    pub implicit_bytes: u64,
}

impl Tally {
    pub fn is_used(&self) -> bool {
        self.allocs + self.frees + self.failed + self.implicit > 0
    }
}

/// Live bytes by ledger, and bytes of 2 MiB blocks, from a moment on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Moment {
    pub stamp: u64,
    pub live: [u64; 9],
    pub touched: u64,
}

#[derive(Clone, Debug, Default)]
pub struct Peak {
    pub bytes: u64,
    pub at: u64,
    pub blocks: Vec<Block>,
}

#[derive(Clone, Debug, Default)]
pub struct Moved {
    pub sizes: Vec<u64>,
    pub lengths: Vec<u64>,
}

/// What is kept of one scope.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    pub tallies: [Tally; 9],
    pub moments: Vec<Moment>,
    /// Of each ledger, then of each sum.
    pub peaks: [Peak; 11],
    pub worst: Option<(u64, Granules)>,
    pub copies: BTreeMap<(u64, bool, u8), Moved>,
    pub sets: Moved,
}

#[derive(Clone, Copy, Debug)]
pub struct Call {
    pub start: u64,
    pub length: u64,
    pub stamp: u64,
    pub bytes: Option<u64>,
    pub thread: usize,
}

#[derive(Clone, Debug, Default)]
pub struct Readings {
    /// Those within the window: used, and by this process.
    pub counted: Vec<(u64, Option<u64>)>,
    pub used: Vec<(u64, u64)>,
    pub process: Vec<(u64, u64)>,
}

/// Everything that begins anew with a window.
#[derive(Clone, Debug, Default)]
pub struct Counted {
    pub zero: u64,
    pub scopes: [Figures; 5],
    /// For `alloc`, `free`, `copy` and `set`.
    pub calls: [Vec<Call>; 4],
    pub readings: BTreeMap<u32, Readings>,
    pub threads: BTreeSet<usize>,
    pub events: u64,
    pub marks: u64,
    pub nulls: u64,
    pub unknown: u64,
    pub overlaps: u64,
    pub failed_copies: u64,
    pub failed_sets: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Thread {
    context: Option<u64>,
    device: Option<u32>,
}

#[derive(Debug, Default)]
pub struct Model {
    pub counted: Counted,
    pub live: Vec<Block>,
    /// Contexts made, and ended.
    pub contexts: (u64, u64),
    pub live_contexts: u64,
    /// The same when counting began.
    pub contexts_before: (u64, u64),
    only: Gpu,
    /// Physical allocations: the handle that names one, and references.
    physical: Vec<(Option<u64>, u64)>,
    devices: BTreeMap<u64, (u32, bool)>,
    references: BTreeMap<u32, u64>,
    threads: [Thread; 3],
    stamp: u64,
}

fn used_by_granule(blocks: &[&Block]) -> BTreeMap<u64, u64> {
    let mut used = BTreeMap::new();
    for block in blocks {
        let Place::Device(address) = block.place else { continue };
        let last = address + block.bytes.max(1) - 1;
        for granule in address / GRANULE..=last / GRANULE {
            let from = address.max(granule * GRANULE);
            let to = (address + block.bytes).min((granule + 1) * GRANULE);
            *used.entry(granule).or_default() += to - from;
        }
    }
    used
}

impl Model {
    pub fn new(only: Gpu) -> Self {
        let mut model = Self { only, ..Self::default() };
        model.begin(0);
        model
    }

    /// Counts from here on.
    pub fn begin(&mut self, since: u64) {
        let mut readings = std::mem::take(&mut self.counted.readings);
        for known in readings.values_mut() {
            let standing =
                |of: &[(u64, u64)]| vec![(since, of.last().map_or(0, |&(_, value)| value))];
            known.counted.clear();
            (known.used, known.process) = (standing(&known.used), standing(&known.process));
        }
        self.counted = Counted { zero: since, readings, ..Counted::default() };
        self.contexts_before = self.contexts;
        self.stamp = since;
        self.settle();
    }

    pub fn of(&self, scope: Option<Gpu>) -> Vec<&Block> {
        self.live.iter().filter(|block| block.is_in(scope)).collect()
    }

    pub fn granules(&self, scope: Option<Gpu>) -> Granules {
        let blocks: Vec<&Block> =
            self.of(scope).into_iter().filter(|block| block.ledger == DEVICE).collect();
        let used = used_by_granule(&blocks);
        let sparse = || used.values().filter(|&&used| used * 10 < GRANULE);
        Granules {
            requested: blocks.iter().map(|block| block.bytes).sum(),
            touched: used.len() as u64 * GRANULE,
            sparse: sparse().count() as u64,
            sparse_used: sparse().sum(),
        }
    }

    /// Works out everything that has a greatest value.
    fn settle(&mut self) {
        let stamp = self.stamp;
        for (index, &scope) in SCOPES.iter().enumerate() {
            let blocks: Vec<Block> = self.of(scope).into_iter().copied().collect();
            let granules = self.granules(scope);
            let figures = &mut self.counted.scopes[index];
            let mut live = [0; 9];
            blocks.iter().for_each(|block| live[block.ledger] += block.bytes);
            figures.moments.push(Moment { stamp, live, touched: granules.touched });
            let single = (0..9).map(|ledger| vec![ledger]);
            let parts = single.chain(SUMS.iter().map(|(_, ledgers)| ledgers.to_vec()));
            for (peak, ledgers) in figures.peaks.iter_mut().zip(parts) {
                let bytes = ledgers.iter().map(|&ledger| live[ledger]).sum();
                if bytes > peak.bytes {
                    let held = blocks.iter().filter(|block| ledgers.contains(&block.ledger));
                    *peak = Peak { bytes, at: stamp, blocks: held.copied().collect() };
                }
            }
            if granules.waste() > figures.worst.map_or(0, |(_, worst)| worst.waste()) {
                figures.worst = Some((stamp, granules));
            }
        }
    }

    fn tally(&mut self, ledger: usize, gpu: Gpu, change: impl Fn(&mut Tally)) {
        let host = [PINNED, REGISTERED, VMM_ADDRESS, VMM_HOST].contains(&ledger);
        for (index, scope) in SCOPES.iter().enumerate() {
            if scope.is_none_or(|wanted| !host && wanted == gpu) {
                change(&mut self.counted.scopes[index].tallies[ledger]);
            }
        }
    }

    fn fail(&mut self, ledger: usize, gpu: Gpu) {
        self.tally(ledger, gpu, |tally| tally.failed += 1);
    }

    fn add(&mut self, block: Block) {
        self.live.push(block);
        self.tally(block.ledger, block.gpu, |tally| {
            tally.allocs += 1;
            tally.alloc_bytes += block.bytes;
        });
    }

    fn find(&self, place: Place) -> Option<usize> {
        self.live.iter().position(|block| block.place == place)
    }

    fn remove(&mut self, index: usize, asked: bool) -> Block {
        let block = self.live.remove(index);
        self.tally(block.ledger, block.gpu, |tally| {
            let (count, bytes) = match asked {
                true => (&mut tally.frees, &mut tally.free_bytes),
                false => (&mut tally.implicit, &mut tally.implicit_bytes),
            };
            *count += 1;
            *bytes += block.bytes;
        });
        // Physical memory goes with the last that holds it.
        if let Some(number) = block.maps {
            self.let_go(number, asked);
        }
        block
    }

    fn let_go(&mut self, number: usize, asked: bool) {
        let mapped = self.live.iter().any(|block| block.maps == Some(number));
        if self.physical[number].1 == 0 && !mapped {
            let there = self.find(Place::Physical(number));
            there.map(|index| self.remove(index, asked));
        }
    }

    /// The device and the owner of what a thread takes.
    fn place(&self, step: &Step) -> (Gpu, Owner) {
        let thread = self.threads[step.thread];
        let (gpu, owner) = match (thread.context, thread.device) {
            (Some(handle), _) => match self.devices.get(&handle) {
                Some(&(device, true)) => (Some(device), Owner::Primary(device)),
                Some(&(device, false)) => (Some(device), Owner::Context(handle)),
                None => (None, Owner::Context(handle)),
            },
            (None, Some(device)) => (Some(device), Owner::Primary(device)),
            (None, None) => (None, Owner::Nobody),
        };
        match gpu {
            Some(_) => (gpu, owner),
            None if step.site == RUNTIME_SITE && owner == Owner::Nobody => {
                (Some(0), Owner::Primary(0))
            }
            None if step.site == RUNTIME_SITE => (Some(0), owner),
            None => (self.only, owner),
        }
    }

    pub fn apply(&mut self, step: &Step) {
        use Kind::*;
        self.stamp = step.stamp();
        self.counted.events += 1;
        if step.site != 0 {
            self.counted.threads.insert(step.thread);
        }
        let address = step.operands[0];
        match step.kind {
            DeviceAlloc => self.alloc(DEVICE, Place::Device(address), step),
            ManagedAlloc => self.alloc(MANAGED, Place::Device(address), step),
            PoolAlloc => self.alloc(ASYNC_POOL, Place::Device(address), step),
            PinnedAlloc => self.alloc(PINNED, Place::Pinned(address), step),
            HostRegister => self.alloc(REGISTERED, Place::Registered(address), step),
            AddressReserve => self.alloc(VMM_ADDRESS, Place::Reserved(address), step),
            Free => self.free(DEVICE, Place::Device(address), step),
            PoolFree => self.free(ASYNC_POOL, Place::Device(address), step),
            PinnedFree => self.free(PINNED, Place::Pinned(address), step),
            HostUnregister => self.free(REGISTERED, Place::Registered(address), step),
            AddressFree => self.free(VMM_ADDRESS, Place::Reserved(address), step),
            PhysicalCreate => self.create(step),
            PhysicalRelease => self.release(step),
            Map => self.map(step),
            Unmap => self.unmap(step),
            Copy => self.copy(step),
            Set => self.set(step),
            Sample => self.sample(step),
            Mark => self.counted.marks += 1,
            RuntimeCall => {
                let null = !step.failed && address == 0 && step.site == ALONE_SITE;
                self.counted.nulls += u64::from(null);
            }
            _ if !step.failed => self.context(step),
            _ => {}
        }
        self.settle();
    }

    fn call(&mut self, purpose: usize, step: &Step, bytes: Option<u64>) {
        let Step { start, thread, .. } = *step;
        let call = Call { start, length: step.end - start, stamp: step.stamp(), bytes, thread };
        self.counted.calls[purpose].push(call);
    }

    fn alloc(&mut self, ledger: usize, place: Place, step: &Step) {
        let bytes = step.operands[1];
        self.call(0, step, Some(bytes));
        let (gpu, owner) = self.place(step);
        let (gpu, owner) = match ledger {
            DEVICE | MANAGED => (gpu, owner),
            ASYNC_POOL => (gpu, Owner::Nobody),
            PINNED | REGISTERED => (None, owner),
            _ => (None, Owner::Nobody),
        };
        if step.failed {
            return self.fail(ledger, gpu);
        }
        if step.operands[0] == 0 {
            self.counted.nulls += 1;
            return;
        }
        if let Some(old) = self.find(place) {
            self.counted.overlaps += 1;
            self.remove(old, false);
        }
        let (at, site) = (self.stamp, step.site);
        self.add(Block { place, ledger, bytes, at, site, gpu, owner, maps: None });
    }

    fn free(&mut self, ledger: usize, place: Place, step: &Step) {
        let found = self.find(place);
        let size = found.map(|index| self.live[index].bytes).filter(|_| !step.failed);
        self.call(1, step, size);
        if step.failed {
            let known = found.filter(|_| ledger == DEVICE).map(|index| self.live[index]);
            let (ledger, gpu) =
                known.map_or((ledger, self.place(step).0), |block| (block.ledger, block.gpu));
            return self.fail(ledger, gpu);
        }
        match found {
            Some(index) => {
                self.remove(index, true);
            }
            None if step.operands[0] == 0 => self.counted.nulls += 1,
            None => self.counted.unknown += 1,
        }
    }

    fn named(&self, handle: u64) -> Option<usize> {
        self.physical.iter().position(|&(name, references)| name == Some(handle) && references > 0)
    }

    /// What a handle names: its number and its block.
    fn physical(&self, handle: u64) -> Option<(usize, Block)> {
        let number = self.named(handle)?;
        self.find(Place::Physical(number)).map(|index| (number, self.live[index]))
    }

    fn create(&mut self, step: &Step) {
        let [handle, bytes, location, device, _] = step.operands;
        self.call(0, step, Some(bytes));
        let ledger = if location > 1 { VMM_HOST } else { VMM_PHYSICAL };
        let gpu = (ledger == VMM_PHYSICAL).then_some(device as u32);
        if step.failed {
            return self.fail(ledger, gpu);
        }
        if let Some(former) = self.named(handle) {
            self.counted.overlaps += 1;
            self.physical[former] = (None, 0);
            self.let_go(former, false);
        }
        let place = Place::Physical(self.physical.len());
        self.physical.push((Some(handle), 1));
        let (at, site, owner) = (self.stamp, step.site, Owner::Nobody);
        self.add(Block { place, ledger, bytes, at, site, gpu, owner, maps: None });
    }

    fn release(&mut self, step: &Step) {
        let known = self.physical(step.operands[0]);
        let mapped = |number| self.live.iter().any(|block| block.maps == Some(number));
        let freed = known.filter(|&(number, _)| self.physical[number].1 == 1 && !mapped(number));
        let size = freed.filter(|_| !step.failed).map(|(_, block)| block.bytes);
        self.call(1, step, size);
        if step.failed {
            let (ledger, gpu) =
                known.map_or((VMM_PHYSICAL, self.only), |(_, block)| (block.ledger, block.gpu));
            return self.fail(ledger, gpu);
        }
        match known {
            Some((number, _)) => {
                self.physical[number] = (None, 0);
                self.let_go(number, true);
            }
            None => self.counted.unknown += 1,
        }
    }

    fn map(&mut self, step: &Step) {
        let [address, bytes, _, handle, _] = step.operands;
        self.call(0, step, Some(bytes));
        // A mapping is where its memory is.
        let known = self.physical(handle);
        let gpu = match known {
            Some((_, block)) if block.ledger == VMM_HOST => NO_DEVICE,
            Some((_, block)) => block.gpu,
            None => self.only,
        };
        if step.failed {
            return self.fail(VMM_MAPPED, gpu);
        }
        if let Some(old) = self.find(Place::Mapping(address)) {
            self.counted.overlaps += 1;
            self.remove(old, false);
        }
        let (place, maps) = (Place::Mapping(address), known.map(|(number, _)| number));
        let (at, site, owner) = (self.stamp, step.site, Owner::Nobody);
        self.add(Block { place, ledger: VMM_MAPPED, bytes, at, site, gpu, owner, maps });
    }

    fn unmap(&mut self, step: &Step) {
        let [address, bytes, ..] = step.operands;
        self.call(1, step, Some(bytes));
        if step.failed {
            let gpu = self.at(address, VMM_MAPPED).map_or(self.only, |block| block.gpu);
            return self.fail(VMM_MAPPED, gpu);
        }
        let mut within: Vec<u64> = self
            .live
            .iter()
            .filter_map(|block| match block.place {
                Place::Mapping(start) if (address..address + bytes.max(1)).contains(&start) => {
                    Some(start)
                }
                _ => None,
            })
            .collect();
        within.sort_unstable();
        self.counted.unknown += u64::from(within.is_empty());
        for start in within {
            let index = self.find(Place::Mapping(start)).unwrap();
            self.remove(index, true);
        }
    }

    fn context(&mut self, step: &Step) {
        let [first, second, ..] = step.operands;
        match step.kind {
            Kind::ContextCreate => {
                self.made();
                self.devices.insert(first, (second as u32, false));
            }
            Kind::ContextDestroy => {
                self.unmade();
                self.devices.remove(&first);
                self.end(Owner::Context(first));
            }
            Kind::ContextCurrent => self.threads[step.thread].context = Some(first),
            Kind::DeviceCurrent => {
                self.threads[step.thread] = Thread { context: None, device: Some(first as u32) };
            }
            Kind::PrimaryRetain => {
                let references = self.references.entry(second as u32).or_default();
                *references += 1;
                if *references == 1 {
                    self.made();
                }
                self.devices.insert(first, (second as u32, true));
            }
            Kind::PrimaryRelease => {
                let references = self.references.entry(first as u32).or_default();
                if *references == 1 {
                    self.end_primary(first as u32);
                } else {
                    *references = references.saturating_sub(1);
                }
            }
            Kind::PrimaryReset => self.end_primary(first as u32),
            _ => {}
        }
    }

    fn made(&mut self) {
        self.contexts.0 += 1;
        self.live_contexts += 1;
    }

    fn unmade(&mut self) {
        self.contexts.1 += 1;
        self.live_contexts = self.live_contexts.saturating_sub(1);
    }

    fn end_primary(&mut self, device: u32) {
        let references = self.references.insert(device, 0);
        if references.unwrap_or(0) > 0 {
            self.unmade();
        }
        self.end(Owner::Primary(device));
    }

    fn end(&mut self, owner: Owner) {
        let mut places: Vec<(u8, u64)> = Vec::new();
        for block in self.live.iter().filter(|block| block.owner == owner) {
            match block.place {
                Place::Device(address) => places.push((0, address)),
                Place::Pinned(address) => places.push((1, address)),
                Place::Registered(address) => places.push((2, address)),
                _ => {}
            }
        }
        places.sort_unstable();
        for (space, address) in places {
            let place = match space {
                0 => Place::Device(address),
                1 => Place::Pinned(address),
                _ => Place::Registered(address),
            };
            let index = self.find(place).unwrap();
            self.remove(index, false);
        }
    }

    /// The block of device memory, of a mapping or of a ledger of host memory at an address.
    fn at(&self, address: u64, ledger: usize) -> Option<Block> {
        let found = self.live.iter().find(|block| {
            let (start, space) = match block.place {
                Place::Device(start) => (start, DEVICE),
                Place::Pinned(start) => (start, PINNED),
                Place::Registered(start) => (start, REGISTERED),
                Place::Mapping(start) => (start, VMM_MAPPED),
                _ => return false,
            };
            // What has no length lies where it begins, but nothing can be mapped there.
            let least = u64::from(space != VMM_MAPPED);
            space == ledger && (start..start + block.bytes.max(least)).contains(&address)
        });
        found.copied()
    }

    fn on_device(&self, address: u64) -> Option<Gpu> {
        let block = self.at(address, DEVICE).or_else(|| self.at(address, VMM_MAPPED));
        block.map(|block| block.gpu)
    }

    fn host(&self, address: u64) -> u8 {
        let locked = [PINNED, REGISTERED].iter().position(|&of| self.at(address, of).is_some());
        locked.unwrap_or(2) as u8
    }

    fn moved(
        &mut self,
        gpus: &[Gpu],
        step: &Step,
        bytes: u64,
        of: impl Fn(&mut Figures) -> &mut Moved,
    ) {
        for (index, scope) in SCOPES.iter().enumerate() {
            if scope.is_none_or(|gpu| gpus.contains(&gpu)) {
                let moved = of(&mut self.counted.scopes[index]);
                moved.sizes.push(bytes);
                moved.lengths.push(step.end - step.start);
            }
        }
    }

    fn copy(&mut self, step: &Step) {
        let [mode, to, from, bytes, _] = step.operands;
        self.call(2, step, Some(bytes));
        if step.failed {
            self.counted.failed_copies += 1;
            return;
        }
        let (source, target) = (self.on_device(from), self.on_device(to));
        let direction = match mode % 16 {
            copy::UNIFIED => match (source.is_some(), target.is_some()) {
                (false, true) => copy::HOST_TO_DEVICE,
                (true, false) => copy::DEVICE_TO_HOST,
                (true, true) => copy::DEVICE_TO_DEVICE,
                (false, false) => copy::HOST_TO_HOST,
            },
            copy::PEER
                if source.flatten().is_some() && source != Some(NO_DEVICE) && source == target =>
            {
                copy::DEVICE_TO_DEVICE
            }
            other => {
                let locked = |address| self.host(address) < 2;
                let (from_host, to_host) = match other {
                    copy::HOST_TO_DEVICE => (true, locked(to)),
                    copy::DEVICE_TO_HOST => (locked(from), true),
                    copy::DEVICE_TO_DEVICE => (locked(from), locked(to)),
                    _ => (false, false),
                };
                match (from_host, to_host) {
                    (true, true) => copy::HOST_TO_HOST,
                    (true, false) => copy::HOST_TO_DEVICE,
                    (false, true) => copy::DEVICE_TO_HOST,
                    (false, false) => other,
                }
            }
        };
        let (takes, gives) = match direction {
            copy::HOST_TO_HOST => (false, false),
            copy::HOST_TO_DEVICE => (true, false),
            copy::DEVICE_TO_HOST => (false, true),
            _ => (true, true),
        };
        let host = match direction {
            copy::HOST_TO_DEVICE => self.host(from),
            copy::DEVICE_TO_HOST => self.host(to),
            copy::HOST_TO_HOST => self.host(from).max(self.host(to)),
            _ => 3,
        };
        let thread = self.place(step).0;
        let mut gpus = Vec::new();
        let known = |gpu: Option<Gpu>| gpu.filter(|&gpu| gpu != NO_DEVICE).flatten();
        gpus.extend(takes.then(|| known(target).or(thread)));
        gpus.extend(gives.then(|| known(source).or(thread)));
        if self.only.is_some() && (takes || gives) {
            gpus = vec![self.only];
        }
        let key = (direction, mode >= 16, host);
        self.moved(&gpus, step, bytes, |figures| figures.copies.entry(key).or_default());
    }

    fn set(&mut self, step: &Step) {
        let [_, address, bytes, ..] = step.operands;
        self.call(3, step, Some(bytes));
        if step.failed {
            self.counted.failed_sets += 1;
            return;
        }
        let known = self
            .on_device(address)
            .filter(|&gpu| gpu != NO_DEVICE)
            .flatten()
            .or(self.place(step).0);
        let gpu = if self.only.is_some() { self.only } else { known };
        self.moved(&[gpu], step, bytes, |figures| &mut figures.sets);
    }

    fn sample(&mut self, step: &Step) {
        let [device, used, _, process, _] = step.operands;
        let zero = self.counted.zero;
        let readings = self.counted.readings.entry(device as u32).or_insert_with(|| Readings {
            counted: Vec::new(),
            used: vec![(zero, 0)],
            process: vec![(zero, 0)],
        });
        let process = process.checked_sub(1);
        readings.counted.push((used, process));
        readings.used.push((self.stamp, used));
        readings.process.extend(process.map(|process| (self.stamp, process)));
    }

    /// Bytes of physical device memory that nothing maps.
    pub fn unmapped_physical(&self) -> u64 {
        let physical = self.live.iter().filter(|block| block.ledger == VMM_PHYSICAL);
        let unmapped = physical.filter(|block| {
            let Place::Physical(number) = block.place else { return false };
            !self.live.iter().any(|other| other.maps == Some(number))
        });
        unmapped.map(|block| block.bytes).sum()
    }

    /// What is reserved, and what is mapped there, as first and last byte.
    pub fn ranges(&self) -> BTreeMap<(u64, u64), Vec<(u64, u64)>> {
        let mut ranges = BTreeMap::new();
        for block in &self.live {
            let Place::Reserved(start) = block.place else { continue };
            let end = start + block.bytes;
            let mut mapped: Vec<(u64, u64)> = self
                .live
                .iter()
                .filter_map(|other| match other.place {
                    Place::Mapping(at) if (start..end).contains(&at) => {
                        Some((at, at + other.bytes))
                    }
                    _ => None,
                })
                .collect();
            mapped.sort_unstable();
            ranges.insert((start, end), mapped);
        }
        ranges
    }
}
