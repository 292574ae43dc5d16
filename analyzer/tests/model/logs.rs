//! Logs at random, over so few addresses, handles and devices that they meet again and again.

use std::fmt;

use gmmtrace_format::Kind;
use gmmtrace_format::kind::copy;
use proptest::prelude::*;

use super::support::{ALONE_SITE, FREE_SITE, RUNTIME_SITE, SITE, Written, event};

const MIB: u64 = 1 << 20;
/// Where blocks of device memory may begin, and how large they may be: they meet, and none
/// begins within another. The first is a null pointer.
pub const DEVICE: [(u64, u64); 8] = [
    (0, 100),
    (0x4000_0000, 4_096),
    (0x4000_1000, 295_904),
    (0x4004_93e0, 5 * MIB - 300_000),
    (0x4050_0000, 3 * MIB),
    (0x4080_0000, 6 * MIB),
    (0x40ef_ff9c, 10 * MIB),
    (0x4200_0000, 1_000),
];
const HOST: [(u64, u64); 3] = [(0, 8), (0x7000_0000, 4_096), (0x7000_1000, 50_000)];
/// Reserved ranges and where something may be mapped in them, 1 MiB at most; the last is in none.
pub const RANGES: [(u64, u64); 2] = [(0x10_0000_0000, 8 * MIB), (0x10_0100_0000, 4 * MIB)];
const MAPS: [u64; 8] = [
    0x10_0000_0000,
    0x10_0010_0000,
    0x10_0030_0000,
    0x10_0040_0000,
    0x10_0060_0000,
    0x10_0110_0000,
    0x10_0130_0000,
    0x10_0200_0000,
];
/// Contexts made and destroyed, and from then on the primary ones of three devices.
const CONTEXTS: [u64; 5] = [0xc0, 0xc1, 0xd0, 0xd1, 0xd2];

/// An event, and the thread that wrote it.
#[derive(Clone)]
pub struct Step {
    pub thread: usize,
    pub kind: Kind,
    pub start: u64,
    pub end: u64,
    pub site: u32,
    pub failed: bool,
    pub operands: [u64; 5],
}

/// One line, for a case that failed has many.
impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { thread, kind, start, end, site, failed, operands } = self;
        let failed = if *failed { " failed" } else { "" };
        write!(f, "{thread}: {start}..{end} {kind:?} {operands:x?} site {site}{failed}")
    }
}

impl Step {
    pub fn written(&self) -> Written {
        let all = self.kind.operands().len();
        let written = event(self.kind, self.start, &self.operands[..all]);
        let written = if self.kind == Kind::Mark { written.text("mark") } else { written };
        written.lasting(self.end - self.start).site(self.site).failed_if(self.failed)
    }

    fn takes_away(&self) -> bool {
        use Kind::*;
        matches!(
            self.kind,
            Free | PinnedFree
                | HostUnregister
                | PoolFree
                | AddressFree
                | PhysicalRelease
                | Unmap
                | ContextDestroy
                | PrimaryRelease
                | PrimaryReset
        )
    }

    pub fn stamp(&self) -> u64 {
        if self.takes_away() { self.start } else { self.end }
    }

    /// By this they are applied; equal ones in the order in which the thread wrote them.
    pub fn order(&self) -> (u64, bool, usize) {
        (self.stamp(), !self.takes_away(), self.thread)
    }
}

/// A log, and a window on it.
#[derive(Clone, Debug)]
pub struct Case {
    pub steps: Vec<Step>,
    pub gpus: u32,
    pub per_chunk: usize,
    pub since: Option<u64>,
    pub until: Option<u64>,
}

#[derive(Clone, Debug)]
struct Draw {
    kind: Kind,
    choices: [usize; 4],
    thread: usize,
    gap: u64,
    length: u64,
    site: u32,
    failed: bool,
}

fn kind() -> impl Strategy<Value = Kind> {
    use Kind::*;
    prop_oneof![
        20 => prop::sample::select(vec![DeviceAlloc, DeviceAlloc, PoolAlloc, ManagedAlloc]),
        16 => prop::sample::select(vec![Free, Free, Free, PoolFree]),
        8 => prop::sample::select(vec![PinnedAlloc, PinnedFree, HostRegister, HostUnregister]),
        6 => prop::sample::select(vec![AddressReserve, AddressReserve, AddressFree]),
        16 => prop::sample::select(vec![PhysicalCreate, PhysicalRelease, Map, Map, Map, Unmap]),
        8 => prop::sample::select(vec![Copy, Copy, Set]),
        8 => prop::sample::select(vec![ContextCreate, ContextCurrent, ContextCurrent,
            DeviceCurrent, DeviceCurrent]),
        3 => prop::sample::select(vec![ContextDestroy, PrimaryRetain, PrimaryRelease,
            PrimaryReset]),
        3 => prop::sample::select(vec![RuntimeCall, Sample, Mark]),
    ]
}

fn draw() -> impl Strategy<Value = Draw> {
    let choice = 0..64_usize;
    let rest = (0..3_usize, 0..6_u64, prop_oneof![40 => 0..9_u64, 1 => 0..3_000_u64], 0..4_usize);
    let choices = [choice.clone(), choice.clone(), choice.clone(), choice];
    (kind(), choices, rest, prop::bool::weighted(0.08)).prop_map(|(kind, choices, rest, failed)| {
        let (thread, gap, length, site) = rest;
        let site = [SITE, SITE, RUNTIME_SITE, FREE_SITE][site];
        Draw { kind, choices, thread, gap, length, site, failed }
    })
}

fn pick<T: Copy>(from: &[T], choice: usize) -> T {
    from[choice % from.len()]
}

fn size(largest: u64, choice: usize) -> u64 {
    pick(&[1, largest, largest / 2, 100.min(largest), largest / 20, largest - 1, 3, 0], choice)
}

/// An address that something may lie at, or within.
fn anywhere(place: usize, offset: usize) -> u64 {
    let device = DEVICE[1..].iter().map(|&(address, _)| address);
    let host = HOST[1..].iter().map(|&(address, _)| address);
    let all: Vec<u64> = device.chain(host).chain(MAPS).chain([0xdead_0000]).collect();
    pick(&all, place) + pick(&[0, 0, 1, 99, 2_048, 700_000], offset)
}

impl Draw {
    fn step(self, start: u64) -> Step {
        use Kind::*;
        let Self { kind, thread, length, mut site, failed, choices: [a, b, c, d], .. } = self;
        let device = pick(&[0, 0, 1, 2], b) as u64;
        let block = |slots: &[(u64, u64)]| {
            let (address, largest) = pick(slots, a);
            [address, size(largest, b), 0, 0, 0]
        };
        let operands = match kind {
            DeviceAlloc | ManagedAlloc | PoolAlloc => block(&DEVICE),
            Free | PoolFree => [pick(&DEVICE, a).0, 0, 0, 0, 0],
            PinnedAlloc | HostRegister => block(&HOST),
            PinnedFree | HostUnregister => [pick(&HOST, a).0, 0, 0, 0, 0],
            AddressReserve | AddressFree => {
                let (address, bytes) = pick(&RANGES, a);
                [address, bytes, 0, 0, 0]
            }
            PhysicalCreate => {
                [1 + a as u64 % 3, size(MIB, d), pick(&[1, 1, 1, 2, 3], c), device, 0]
            }
            PhysicalRelease => [1 + a as u64 % 3, 0, 0, 0, 0],
            Map => [pick(&MAPS, a), pick(&[MIB, MIB, MIB / 2], b), 0, 1 + c as u64 % 4, 0],
            Unmap => [pick(&MAPS, a), pick(&[MIB, MIB, 0, 3 * MIB], b), 0, 0, 0],
            Copy => {
                let mode = pick(&[copy::UNIFIED, copy::UNIFIED, copy::PEER, 1, 2, 8, 6], d);
                let mode = mode + if c % 2 == 0 { 16 } else { 0 };
                [mode, anywhere(a, c), anywhere(b, d), size(50_000, c), 0]
            }
            Set => [0, anywhere(a, c), size(50_000, b), 0, 0],
            ContextCreate => [pick(&CONTEXTS[..2], a), device, 0, 0, 0],
            ContextDestroy => [pick(&CONTEXTS[..2], a), 0, 0, 0, 0],
            ContextCurrent => [pick(&CONTEXTS, a), 0, 0, 0, 0],
            DeviceCurrent | PrimaryRelease | PrimaryReset => [device, 0, 0, 0, 0],
            PrimaryRetain => [0xd0 + device, device, 0, 0, 0],
            Sample => [device, size(MIB, a), MIB, pick(&[0, 1, 5, 5_000], c), 0],
            RuntimeCall => [a as u64 % 2, 1, 0, 0, 0],
            _ => [0; 5],
        };
        match kind {
            ContextCurrent | DeviceCurrent | Sample | Mark => site = 0,
            RuntimeCall => site = ALONE_SITE,
            _ => {}
        }
        let failed = failed && !matches!(kind, Sample | Mark);
        Step { thread, kind, start, end: start + length, site, failed, operands }
    }
}

/// Every primary context is known before anything else happens.
fn preamble() -> impl Iterator<Item = Step> {
    (0..3).map(|device| Step {
        thread: 0,
        kind: Kind::PrimaryRetain,
        start: device,
        end: device,
        site: 0,
        failed: false,
        operands: [0xd0 + device, device, 0, 0, 0],
    })
}

pub fn case() -> impl Strategy<Value = Case> {
    let scale = prop::sample::select(vec![1_u64, 1, 1, 7, 3_000]);
    let draws = prop::collection::vec(draw(), 0..90);
    let window = prop_oneof![
        3 => Just((false, false)),
        1 => Just((true, false)),
        1 => Just((false, true)),
        2 => Just((true, true)),
    ];
    let ends = (window, 0..110_u64, 0..110_u64);
    let gpus = prop::sample::select(vec![1_u32, 3]);
    (scale, draws, ends, gpus, 1..12_usize).prop_map(|(scale, draws, ends, gpus, per_chunk)| {
        let mut clock = 10;
        let steps = draws.into_iter().map(|draw| {
            clock += draw.gap * scale;
            draw.step(clock)
        });
        let steps: Vec<Step> = preamble().chain(steps).collect();
        let ((begins, ends), since, length) = ends;
        let since = since * clock / 100;
        let until = since + length * clock / 100;
        let (since, until) = (begins.then_some(since), ends.then_some(until));
        Case { steps, gpus, per_chunk, since, until }
    })
}
