//! The one table of hooks, and what is derived from it: names by hash, stubs by address.
//!
//! The rows themselves stand in `hooks::driver` and `hooks::runtime`.

use core::ffi::CStr;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use gmmtrace_format::definition::Layer;

use crate::hooks::{driver, runtime, torch};
use crate::lookup;

/// Driver entry points have ids from here on; runtime ones from 1.
pub const DRIVER_BASE: u16 = 256;
/// Reporters of PyTorch have ids from here on: the last of the nine bits that a site's key has for
/// entry points other than the runtime's.
pub const TORCH_BASE: u16 = DRIVER_BASE + 0x1f0;
const _: () = assert!(driver::ROWS.len() <= 0x1f0 && torch::ROWS.len() <= 0x10);
/// Copies of a runtime function that can be told apart when they were looked up by handle.
pub const SLOTS: usize = 7;

/// A stub as an address.
pub type Stub = unsafe extern "C" fn();

/// One row.
pub struct Row {
    /// The exported symbol.
    pub name: &'static CStr,
    /// The exported stub.
    pub stub: Stub,
    /// Stubs bound to one real function each; runtime rows only.
    pub slots: &'static [Stub],
}

/// Which row a name stands for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// Row of the driver table.
    Driver(usize),
    /// Row of the runtime table.
    Runtime(usize),
    /// `cuGetProcAddress` and its kind.
    Resolver(usize),
}

const fn row(code: u16) -> Option<&'static Row> {
    let code = code as usize;
    let (rows, index): (&'static [Row], usize) = if code < RUNTIME {
        (driver::ROWS, code)
    } else if code < RESOLVERS {
        (runtime::ROWS, code - RUNTIME)
    } else {
        (lookup::RESOLVERS, code - RESOLVERS)
    };
    if index < rows.len() { Some(&rows[index]) } else { None }
}

/// Row codes of the driver end here; a site's key has as many bits for them.
const RUNTIME: usize = 0x200;
/// Row codes of the runtime end here.
const RESOLVERS: usize = 0x300;
const _: () = assert!(driver::ROWS.len() < RUNTIME);
const _: () = assert!(runtime::ROWS.len() < DRIVER_BASE as usize);
const BUCKETS: usize = 2048;

// A site's key has 9 bits for the driver's entry point and 8 for the runtime's.
const _: () = assert!(driver::ROWS.len() <= RUNTIME && runtime::ROWS.len() < 256);

const fn hash(name: &[u8]) -> usize {
    let mut value: u32 = 0x811c_9dc5;
    let mut at = 0;
    while at < name.len() {
        value = (value ^ name[at] as u32).wrapping_mul(0x0100_0193);
        at += 1;
    }
    (value ^ value >> 15) as usize & (BUCKETS - 1)
}

/// Row codes plus 1 by hash of the name, made at compile time.
static NAMES: [u16; BUCKETS] = {
    let mut buckets = [0; BUCKETS];
    let mut code = 0;
    while code < RESOLVERS + lookup::RESOLVERS.len() {
        if let Some(row) = row(code as u16) {
            let mut at = hash(row.name.to_bytes());
            while buckets[at] != 0 {
                at = (at + 1) & (BUCKETS - 1);
            }
            buckets[at] = code as u16 + 1;
        }
        code += 1;
    }
    buckets
};

/// The row of exactly this name.
pub fn find(name: &[u8]) -> Option<Entry> {
    if !name.starts_with(b"cu") {
        return None;
    }
    let mut at = name
        .iter()
        .fold(0x811c_9dc5_u32, |value, &byte| (value ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    at = (at ^ at >> 15) & (BUCKETS as u32 - 1);
    for step in 0..BUCKETS {
        let code = NAMES.get((at as usize + step) & (BUCKETS - 1)).copied()?.checked_sub(1)?;
        if row(code).is_some_and(|row| row.name.to_bytes() == name) {
            let code = usize::from(code);
            return Some(match code {
                0..RUNTIME => Entry::Driver(code),
                RUNTIME..RESOLVERS => Entry::Runtime(code - RUNTIME),
                _ => Entry::Resolver(code - RESOLVERS),
            });
        }
    }
    None
}

/// The row of an entry.
pub fn row_of(entry: Entry) -> Option<&'static Row> {
    match entry {
        Entry::Driver(index) => driver::ROWS.get(index),
        Entry::Runtime(index) => runtime::ROWS.get(index),
        Entry::Resolver(index) => lookup::RESOLVERS.get(index),
    }
}

/// Id, layer and name of every entry point. The ids are those of sites and in-flight words.
pub fn apis() -> impl Iterator<Item = (u32, Layer, &'static [u8])> {
    let named = |first: u16, layer, rows: &'static [Row]| {
        let ids = u32::from(first)..;
        ids.zip(rows).map(move |(id, row)| (id, layer, row.name.to_bytes()))
    };
    let reporters = (u32::from(TORCH_BASE)..).zip(torch::SHOWN);
    named(1, Layer::Runtime, runtime::ROWS)
        .chain(named(DRIVER_BASE, Layer::Driver, driver::ROWS))
        .chain(reporters.map(|(id, name)| (id, Layer::Framework, name.as_bytes())))
}

/// Real functions of driver rows.
pub static DRIVER_REAL: [AtomicUsize; RUNTIME] = [const { AtomicUsize::new(0) }; RUNTIME];
/// Real functions of the resolvers.
pub static RESOLVER_REAL: [AtomicUsize; 4] = [const { AtomicUsize::new(0) }; 4];
/// Real functions behind the slots of runtime rows.
pub static RUNTIME_REAL: [[AtomicUsize; SLOTS + 1]; 256] =
    [const { [const { AtomicUsize::new(0) }; SLOTS + 1] }; 256];

/// Real address (48 bits) and what replaces it (16 bits), open addressing. One word, so that an
/// entry appears whole; never removed.
static ADDRESSES: [AtomicU64; 4096] = [const { AtomicU64::new(0) }; 4096];

fn first_cell(address: usize) -> usize {
    (address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52) & 4095
}

/// Notes that `stub code` replaces the function at `address`.
fn replace(address: usize, code: usize) {
    let word = (address as u64) << 16 | code as u64;
    for step in 0..4096 {
        let Some(cell) = ADDRESSES.get((first_cell(address) + step) & 4095) else { return };
        match cell.compare_exchange(0, word, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return,
            Err(taken) if taken >> 16 == address as u64 => return,
            Err(_) => {}
        }
    }
}

/// The stub that replaces the function at `address`, if any.
pub fn stub_for(address: usize) -> Option<Stub> {
    for step in 0..4096 {
        let word = ADDRESSES.get((first_cell(address) + step) & 4095)?.load(Ordering::Acquire);
        if word == 0 {
            return None;
        }
        if word >> 16 == address as u64 {
            return stub_of(word as usize & 0xffff);
        }
    }
    None
}

/// Bit that marks the code of a runtime slot: row in the bits above the slot's three.
const SLOT_MARK: usize = 0x8000;

fn stub_of(code: usize) -> Option<Stub> {
    if code & SLOT_MARK != 0 {
        let row = runtime::ROWS.get((code & !SLOT_MARK) >> 3)?;
        return row.slots.get((code & 7).wrapping_sub(1)).copied();
    }
    row(code as u16).map(|row| row.stub)
}

/// Sets the real function of a driver row. False when another one is set already.
pub fn bind_driver(index: usize, address: usize) -> bool {
    let Some(cell) = DRIVER_REAL.get(index) else { return false };
    let bound = cell.compare_exchange(0, address, Ordering::AcqRel, Ordering::Acquire);
    let same = bound.map_or_else(|other| other == address, |_| true);
    if same {
        replace(address, index);
    }
    same
}

/// Sets the real function of a resolver.
pub fn bind_resolver(index: usize, address: usize) -> bool {
    let Some(cell) = RESOLVER_REAL.get(index) else { return false };
    let bound = cell.compare_exchange(0, address, Ordering::AcqRel, Ordering::Acquire);
    let same = bound.map_or_else(|other| other == address, |_| true);
    if same {
        replace(address, RESOLVERS + index);
    }
    same
}

/// The stub for one copy of a runtime function; None when there are more copies than slots.
pub fn bind_runtime(index: usize, address: usize) -> Option<Stub> {
    if let Some(stub) = stub_for(address) {
        return Some(stub);
    }
    let reals = RUNTIME_REAL.get(index)?;
    for (slot, cell) in reals.iter().enumerate().skip(1) {
        let bound = cell.compare_exchange(0, address, Ordering::AcqRel, Ordering::Acquire);
        if bound.map_or_else(|other| other == address, |_| true) {
            let code = SLOT_MARK | index << 3 | slot;
            replace(address, code);
            return stub_of(code);
        }
    }
    None
}
