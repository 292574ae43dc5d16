//! Call sites: which entry point was called from where. A site is interned once and an event
//! carries its id; its definition names the module that the address lies in.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use gmmtrace_format::definition::Definition;
use gmmtrace_format::layout::Counter;
use gmmtrace_ring::ErrnoGuard;

use crate::session::Session;
use crate::{clock, table};

/// Sites that can be told apart; ids fit two bytes.
pub const SITES: usize = 1 << 14;
/// Cells tried before the table counts as full.
const TRIES: usize = 64;
const MODULES: usize = 4096;

/// Sites and modules of one session. All zeros is empty.
pub struct Sites {
    keys: [AtomicU64; SITES],
    modules: [Module; MODULES],
    modules_used: AtomicU32,
}

struct Module {
    start: AtomicU64,
    end: AtomicU64,
}

/// A site's key: the address (47 bits), the driver entry point (9) and the runtime one (8).
#[inline(always)]
pub fn key(address: u64, driver: u16, runtime: u16) -> u64 {
    address & ((1 << 47) - 1)
        | u64::from(driver.wrapping_sub(table::DRIVER_BASE) & 0x1ff) << 47
        | u64::from(runtime & 0xff) << 56
}

#[inline(always)]
fn place(key: u64) -> usize {
    (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 50) as usize & (SITES - 1)
}

impl Sites {
    /// Id of the site, defined now if it is new; 0 when the table is full.
    #[inline(always)]
    pub fn id(&self, session: &Session, key: u64, runtime_only: bool) -> u32 {
        let index = place(key);
        match self.keys.get(index) {
            Some(cell) if cell.load(Ordering::Relaxed) == key => index as u32 + 1,
            _ => self.search(session, key, runtime_only),
        }
    }

    #[cold]
    #[inline(never)]
    fn search(&self, session: &Session, key: u64, runtime_only: bool) -> u32 {
        let first = place(key);
        for step in 0..TRIES {
            let index = (first + step) & (SITES - 1);
            let Some(cell) = self.keys.get(index) else { break };
            let found = match cell.load(Ordering::Relaxed) {
                0 => cell
                    .compare_exchange(0, key, Ordering::AcqRel, Ordering::Acquire)
                    .map_or_else(|other| other, |_| 0),
                other => other,
            };
            let id = index as u32 + 1;
            if found == 0 {
                let errno = ErrnoGuard::new();
                self.define(session, key, id, runtime_only);
                drop(errno);
                return id;
            }
            if found == key {
                return id;
            }
        }
        session.log.header().count(Counter::LostDefinitions, 1);
        0
    }

    fn define(&self, session: &Session, key: u64, id: u32, runtime_only: bool) {
        let address = key & ((1 << 47) - 1);
        let outer = (key >> 56) as u16;
        let driver = table::DRIVER_BASE + (key >> 47 & 0x1ff) as u16;
        let (api, outer) = if runtime_only { (outer, 0) } else { (driver, outer) };
        let module = self.module_of(session, address);
        let site =
            Definition::Site { id, api: u32::from(api), outer: u32::from(outer), address, module };
        session.dictionary.define(session.log, clock::now(), &site);
    }

    /// Id of the module that `address` lies in, defined now if it is new; 0 when unknown.
    pub fn module_of(&self, session: &Session, address: u64) -> u32 {
        let Some(found) = find_object(address) else { return 0 };
        let used = (self.modules_used.load(Ordering::Acquire) as usize).min(MODULES);
        for (index, module) in self.modules.iter().take(used).enumerate() {
            let same = module.start.load(Ordering::Acquire) == found.start
                && module.end.load(Ordering::Relaxed) == found.end;
            if same {
                return index as u32 + 1;
            }
        }
        let index = self.modules_used.fetch_add(1, Ordering::AcqRel);
        let Some(module) = self.modules.get(index as usize) else {
            session.log.header().count(Counter::LostDefinitions, 1);
            return 0;
        };
        let definition = Definition::Module {
            id: index + 1,
            start: found.start,
            end: found.end,
            build_id: build_id(&found),
            path: found.path.get(..found.path.len().min(4096)).unwrap_or(&[]),
        };
        session.dictionary.define(session.log, clock::now(), &definition);
        module.end.store(found.end, Ordering::Relaxed);
        module.start.store(found.start, Ordering::Release);
        index + 1
    }
}

struct Object {
    start: u64,
    end: u64,
    path: &'static [u8],
}

/// glibc's `struct dl_find_object`, with room for its reserved words.
#[repr(C)]
struct Found {
    flags: u64,
    start: *const c_void,
    end: *const c_void,
    map: *const crate::libc_symbols::LinkMap,
    rest: [u64; 16],
}

type FindObject = unsafe extern "C" fn(*const c_void, *mut Found) -> c_int;

/// The object at an address, by `_dl_find_object`: no lock, no allocation. Without it (glibc
/// before 2.35) modules stay unknown, because the alternatives take the loader's lock.
fn find_object(address: u64) -> Option<Object> {
    static FUNCTION: AtomicUsize = AtomicUsize::new(0);
    let mut function = FUNCTION.load(Ordering::Relaxed);
    if function == 0 {
        let dlsym = crate::libc_symbols::dlsym()?;
        // SAFETY: looks up a name in the global scope; the C library is in it.
        let found = unsafe { dlsym(libc::RTLD_DEFAULT, c"_dl_find_object".as_ptr()) };
        function = if found.is_null() { 1 } else { found as usize };
        FUNCTION.store(function, Ordering::Relaxed);
    }
    if function == 1 {
        return None;
    }
    // SAFETY: the symbol's address and type.
    let function = unsafe { core::mem::transmute::<usize, FindObject>(function) };
    let mut found = Found {
        flags: 0,
        start: core::ptr::null(),
        end: core::ptr::null(),
        map: core::ptr::null(),
        rest: [0; 16],
    };
    // SAFETY: accepts any address and fills the structure when it returns 0.
    if unsafe { function(address as *const c_void, &raw mut found) } != 0 || found.map.is_null() {
        return None;
    }
    // SAFETY: the loader's link map and its name live as long as the object, and the object
    // lives as long as the call that returns into it.
    let path = unsafe { CStr::from_ptr((*found.map).name.cast::<c_char>()) }.to_bytes();
    Some(Object { start: found.start as u64, end: found.end as u64, path })
}

/// The GNU build id of a mapped object, or nothing.
fn build_id(object: &Object) -> &'static [u8] {
    const PROGRAM_NOTE: u32 = 4;
    const BUILD_ID: u32 = 3;
    let start = object.start as *const u8;
    let size = object.end.saturating_sub(object.start) as usize;
    if size < 4096 {
        return &[];
    }
    // SAFETY: the first page of a mapped object, read-only memory.
    let page = unsafe { core::slice::from_raw_parts(start, 4096) };
    let word = |at: usize| {
        page.get(at..at + 8).and_then(|b| b.first_chunk::<8>()).map(|b| u64::from_le_bytes(*b))
    };
    let half = |bytes: &[u8], at: usize| {
        bytes.get(at..).and_then(|b| b.first_chunk::<4>()).map_or(0, |b| u32::from_le_bytes(*b))
    };
    if !page.starts_with(b"\x7fELF\x02\x01") {
        return &[];
    }
    let table = word(32).unwrap_or(0) as usize;
    let count = half(page, 56) as usize & 0xffff;
    for index in 0..count.min(32) {
        let header = table + index * 56;
        if half(page.get(header..).unwrap_or(&[]), 0) != PROGRAM_NOTE {
            continue;
        }
        let offset = word(header + 8).unwrap_or(0) as usize;
        let length = word(header + 32).unwrap_or(0) as usize;
        // Only notes inside the first page: they are mapped for sure, and build ids lie there.
        let mut notes = page.get(offset..offset.saturating_add(length)).unwrap_or(&[]);
        while notes.len() >= 12 {
            let (name, body, kind) =
                (half(notes, 0) as usize, half(notes, 4) as usize, half(notes, 8));
            let body_at = 12 + name.next_multiple_of(4);
            let end = body_at.saturating_add(body);
            if kind == BUILD_ID && notes.get(12..16) == Some(b"GNU\0") {
                return notes.get(body_at..end).unwrap_or(&[]);
            }
            notes = notes.get(end.next_multiple_of(4)..).unwrap_or(&[]);
        }
    }
    &[]
}
