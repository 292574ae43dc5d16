//! How callers come to our stubs instead of the real functions.
//!
//! A lookup is answered by the real resolver first. Only when it succeeded, and only when the
//! **address** it gave is that of a hooked function, the stub is handed out instead: so ABI
//! version and stream variant are always those that were asked for. `dlsym` for any other name
//! is a tail jump, because its answer can depend on the return address.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use gmmtrace_format::definition::{Definition, Resolver};
use gmmtrace_format::layout::Counter;

use crate::libc_symbols::{self, LinkMap};
use crate::session::{self, Session};
use crate::stub::{Origin, stub};
use crate::table::{self, Entry, Row};
use crate::{clock, options};

/// What a runtime call answers when there is no runtime behind its name.
pub const INSUFFICIENT_DRIVER: u32 = 35;
/// What a driver call answers when there is no driver behind its name.
pub const NOT_INITIALIZED: u32 = 3;

// ---- dlsym and dlvsym --------------------------------------------------------------------

macro_rules! naked_lookup {
    ($name:ident, $answer:ident, $real:ident) => {
        /// Exported in place of the C library's. Looks at the name; everything that is not ours
        /// leaves by a jump, with the caller's registers and return address as they came.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                ".cfi_startproc", "endbr64",
                "push rdi", ".cfi_adjust_cfa_offset 8",
                "push rsi", ".cfi_adjust_cfa_offset 8",
                "push rdx", ".cfi_adjust_cfa_offset 8",
                "mov rcx, qword ptr [rsp + 24]",
                "call {answer}",
                "pop rdx", ".cfi_adjust_cfa_offset -8",
                "pop rsi", ".cfi_adjust_cfa_offset -8",
                "pop rdi", ".cfi_adjust_cfa_offset -8",
                // rax: 0 = jump to the real function, 1 = null, else the answer.
                "cmp rax, 1", "jb 2f", "jne 3f", "xor eax, eax",
                "3:", "ret",
                "2:", "mov rax, qword ptr [rip + {real}]", "test rax, rax", "je 4f", "jmp rax",
                "4:", "ret", ".cfi_endproc",
                answer = sym $answer, real = sym $real,
            )
        }
    };
}

/// Exported in place of the C library's: passes on, and remembers that addresses may mean something
/// else from here on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlclose(handle: *mut c_void) -> c_int {
    // Without the real one the object stays, which is no harm.
    let Some(real) = crate::libc_symbols::dlclose() else { return 0 };
    // SAFETY: the caller's own argument.
    let status = unsafe { real(handle) };
    crate::stacks::native::unloaded();
    status
}

static REAL_DLSYM: AtomicUsize = AtomicUsize::new(0);
static REAL_DLVSYM: AtomicUsize = AtomicUsize::new(0);
naked_lookup!(dlsym, answer_dlsym, REAL_DLSYM);
naked_lookup!(dlvsym, answer_dlvsym, REAL_DLVSYM);

/// Tail-jump to the real function.
const PASS: usize = 0;
/// Answer null.
const NULL: usize = 1;

/// The real `dlsym` to jump to: the next interposer's, if there is one, else libc's.
fn prepare() -> bool {
    if REAL_DLSYM.load(Ordering::Relaxed) == 0 {
        let (Some(dlsym), Some(dlvsym)) = (libc_symbols::dlsym(), libc_symbols::dlvsym()) else {
            return false;
        };
        // SAFETY: asks for the definitions behind ours in the search order.
        let (next, next_versioned) = unsafe {
            (dlsym(libc::RTLD_NEXT, c"dlsym".as_ptr()), dlsym(libc::RTLD_NEXT, c"dlvsym".as_ptr()))
        };
        let or = |next: *mut c_void, own: usize| if next.is_null() { own } else { next as usize };
        REAL_DLVSYM.store(or(next_versioned, dlvsym as usize), Ordering::Relaxed);
        REAL_DLSYM.store(or(next, dlsym as usize), Ordering::Release);
    }
    true
}

unsafe extern "C" fn answer_dlsym(
    handle: *mut c_void,
    name: *const c_char,
    _: usize,
    caller: usize,
) -> usize {
    if !prepare() || name.is_null() {
        return PASS;
    }
    // SAFETY: the caller passes a C string, as the real function demands.
    let name = unsafe { CStr::from_ptr(name) };
    let Some(dlsym) = libc_symbols::dlsym() else { return PASS };
    // SAFETY: the real function with the caller's arguments.
    answer(handle, name, caller, Resolver::Dlsym, &|handle| unsafe { dlsym(handle, name.as_ptr()) })
}

unsafe extern "C" fn answer_dlvsym(
    handle: *mut c_void,
    name: *const c_char,
    version: *const c_char,
    caller: usize,
) -> usize {
    if !prepare() || name.is_null() || version.is_null() {
        return PASS;
    }
    // SAFETY: the caller passes a C string, as the real function demands.
    let name = unsafe { CStr::from_ptr(name) };
    let Some(dlvsym) = libc_symbols::dlvsym() else { return PASS };
    if handle == libc::RTLD_NEXT && comes_before_us(caller) {
        // Another interposer looks for the next one. Ours has no version, so the real function
        // would step over it.
        match name.to_bytes() {
            b"dlsym" => return self::dlsym as *const () as usize,
            b"dlvsym" => return self::dlvsym as *const () as usize,
            _ => {}
        }
    }
    // SAFETY: the real function with the caller's arguments.
    answer(handle, name, caller, Resolver::Dlvsym, &|handle| unsafe {
        dlvsym(handle, name.as_ptr(), version)
    })
}

fn answer(
    handle: *mut c_void,
    name: &CStr,
    caller: usize,
    resolver: Resolver,
    real: &dyn Fn(*mut c_void) -> *mut c_void,
) -> usize {
    let text = name.to_bytes();
    let Some(entry) = table::find(text) else {
        if is_cuda_name(text) {
            note(text, resolver, false, 0, 0, caller);
        }
        return PASS;
    };
    if options::off() {
        return PASS;
    }
    if handle == libc::RTLD_NEXT {
        session::count(Counter::LookupsNext);
        return PASS;
    }
    let own = table::row_of(entry).map_or(0, |row| row.stub as usize);
    let mut found = real(handle) as usize;
    if found == own {
        // Only ourselves so far: the scope behind us, then the caller's own.
        found = real(libc::RTLD_NEXT) as usize;
        if found == 0 && handle == libc::RTLD_DEFAULT {
            found = in_callers_scope(caller, real);
        }
        if found == own {
            found = 0;
        }
    }
    if found == 0 {
        return NULL;
    }
    let stub = substitute(entry, found);
    note(text, resolver, stub.is_some(), 0, 0, caller);
    stub.unwrap_or(found)
}

/// The stub for a real function that was found under a hooked name.
fn substitute(entry: Entry, found: usize) -> Option<usize> {
    match entry {
        Entry::Driver(_) | Entry::Resolver(_) => {
            bind_driver_of(found);
            let stub = table::stub_for(found);
            if stub.is_none() {
                session::count(Counter::OtherDriver);
            }
            stub.map(|stub| stub as usize)
        }
        Entry::Runtime(index) => {
            pin(found);
            let stub = table::bind_runtime(index, found);
            if stub.is_none() {
                session::count(Counter::OtherRuntime);
            }
            stub.map(|stub| stub as usize)
        }
    }
}

/// Notes the real functions of the driver that `address` lies in: all of them, the first time.
/// Threads that come together write the same values.
fn bind_driver_of(address: usize) {
    static DRIVER: AtomicUsize = AtomicUsize::new(0);
    let Some(map) = libc_symbols::object_of(address) else { return };
    let map_address = core::ptr::from_ref(map) as usize;
    let known = DRIVER.load(Ordering::Acquire);
    if known == map_address || known != 0 || map.base == own_base() {
        return;
    }
    let (Some(dlsym), Some(handle)) = (libc_symbols::dlsym(), open_again(map)) else { return };
    // SAFETY: a handle of a loaded object and a C string.
    let real = |name: &CStr| unsafe { dlsym(handle, name.as_ptr()) } as usize;
    for (index, row) in crate::hooks::driver::ROWS.iter().enumerate() {
        let found = real(row.name);
        if found != 0 && found != row.stub as usize {
            table::bind_driver(index, found);
        }
    }
    for (index, row) in RESOLVERS.iter().enumerate() {
        let found = real(row.name);
        if found != 0 && found != row.stub as usize {
            table::bind_resolver(index, found);
        }
    }
    DRIVER.store(map_address, Ordering::Release);
}

/// Where our own object is loaded.
fn own_base() -> usize {
    libc_symbols::object_of(own_base as *const () as usize).map_or(0, |map| map.base)
}

/// Whether the object of `caller` stands before ours in the search order. The objects that the
/// program started with are never unloaded, and a preload has only such before it.
fn comes_before_us(caller: usize) -> bool {
    let Some(caller) = libc_symbols::object_of(caller) else { return false };
    let mut object = libc_symbols::object_of(comes_before_us as *const () as usize);
    while let Some(map) = object {
        if core::ptr::eq(map, caller) {
            return map.base != own_base();
        }
        object = map.previous();
    }
    false
}

/// A handle of an object that is loaded already; it is never given back, so that the functions
/// found in it stay where they are.
fn open_again(map: &LinkMap) -> Option<*mut c_void> {
    // SAFETY: the loader's own name of the object; NOLOAD opens nothing new.
    let handle = unsafe {
        // The executable's name is empty, and a null name means the executable.
        let name = if *map.name == 0 { core::ptr::null() } else { map.name };
        libc::dlopen(name, libc::RTLD_LAZY | libc::RTLD_NOLOAD)
    };
    (!handle.is_null()).then_some(handle)
}

/// Keeps the object of a function loaded.
fn pin(address: usize) {
    if let Some(map) = libc_symbols::object_of(address) {
        open_again(map);
    }
}

fn in_callers_scope(caller: usize, real: &dyn Fn(*mut c_void) -> *mut c_void) -> usize {
    let handle = libc_symbols::object_of(caller).and_then(open_again);
    handle.map_or(0, |handle| real(handle) as usize)
}

// ---- real functions behind the exported names ---------------------------------------------

/// Caller (47 bits) and row (17 bits), and the real function for it.
static CALLERS: [(AtomicU64, AtomicUsize); 4096] =
    [const { (AtomicU64::new(0), AtomicUsize::new(0)) }; 4096];

/// The real function behind a runtime stub.
#[inline(always)]
pub fn runtime_real(index: usize, origin: Origin) -> usize {
    let slot = origin.slot();
    if slot != 0 {
        let real = table::RUNTIME_REAL.get(index).and_then(|row| row.get(slot));
        return real.map_or(0, |real| real.load(Ordering::Relaxed));
    }
    real_for(crate::hooks::runtime::ROWS, index, index, origin)
}

/// The real function behind a reporter of PyTorch.
#[inline(always)]
pub fn torch_real(index: usize, origin: Origin) -> usize {
    real_for(crate::hooks::torch::ROWS, index, TORCH + index, origin)
}

/// Rows of PyTorch's have numbers from here on among those that callers are noted with.
const TORCH: usize = 0x1_0000;

/// What the caller would have reached, kept by its address and the row's `number`.
#[inline(always)]
fn real_for(rows: &'static [Row], index: usize, number: usize, origin: Origin) -> usize {
    let key = origin.address() & ((1 << 47) - 1) | (number as u64 + 1) << 47;
    let first = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52) as usize & 4095;
    match CALLERS.get(first) {
        Some((known, real)) if known.load(Ordering::Acquire) == key => {
            match real.load(Ordering::Acquire) {
                0 => real_for_slow(rows, index, origin, key, first),
                real => real,
            }
        }
        _ => real_for_slow(rows, index, origin, key, first),
    }
}

#[cold]
#[inline(never)]
fn real_for_slow(
    rows: &'static [Row],
    index: usize,
    origin: Origin,
    key: u64,
    first: usize,
) -> usize {
    let errno = gmmtrace_ring::ErrnoGuard::new();
    let mut real = 0;
    let mut free = None;
    for step in 0..32 {
        let Some(cell) = CALLERS.get((first + step) & 4095) else { break };
        let known = cell.0.load(Ordering::Acquire);
        if known == key {
            real = cell.1.load(Ordering::Acquire);
            free = Some(cell);
            break;
        }
        if known == 0 {
            free = Some(cell);
            break;
        }
    }
    if real == 0 {
        real = rows.get(index).map_or(0, |row| behind(row, origin));
        if real != 0 {
            pin(real);
            if let Some((known, cell)) = free {
                let claimed = known.compare_exchange(0, key, Ordering::AcqRel, Ordering::Acquire);
                if claimed.map_or_else(|other| other == key, |_| true) {
                    cell.store(real, Ordering::Release);
                }
            }
        }
    }
    drop(errno);
    if real == 0 {
        session::count(Counter::NoRealFunction);
    }
    real
}

/// The real function behind a driver stub.
#[inline(always)]
pub fn driver_real(index: usize, origin: Origin) -> usize {
    match table::DRIVER_REAL.get(index).map_or(0, |real| real.load(Ordering::Relaxed)) {
        0 => driver_real_slow(index, origin),
        real => real,
    }
}

#[cold]
#[inline(never)]
fn driver_real_slow(index: usize, origin: Origin) -> usize {
    let errno = gmmtrace_ring::ErrnoGuard::new();
    let real = crate::hooks::driver::ROWS.get(index).map_or(0, |row| behind(row, origin));
    if real != 0 {
        bind_driver_of(real);
        table::bind_driver(index, real);
    }
    drop(errno);
    if real == 0 {
        session::count(Counter::NoRealFunction);
    }
    real
}

/// The function that the caller would have reached without us: in its own scope, with the
/// version it was linked against, and for the executable in the scope behind us.
fn behind(row: &Row, origin: Origin) -> usize {
    let Some(dlsym) = libc_symbols::dlsym() else { return 0 };
    let own = row.stub as usize;
    let caller = libc_symbols::object_of(origin.address() as usize);
    if let Some(map) = caller
        // SAFETY: the loader's own name of the object.
        && unsafe { *map.name } != 0
        && let Some(handle) = open_again(map)
    {
        // SAFETY: a handle of a loaded object and a C string.
        let found = unsafe { dlsym(handle, row.name.as_ptr()) } as usize;
        if found != 0 && found != own {
            return found;
        }
    }
    // SAFETY: the search order behind us.
    let found = unsafe { dlsym(libc::RTLD_NEXT, row.name.as_ptr()) } as usize;
    if found != 0 && found != own {
        return found;
    }
    // The caller left by a tail call, so the return address is that of somebody who cannot see
    // the function. It is one that is loaded, and nearly always the only one.
    let loaded = libc_symbols::definitions(row.name, own);
    if loaded.count > 1 {
        session::count(Counter::AmbiguousReal);
    }
    loaded.first
}

// ---- cuGetProcAddress ---------------------------------------------------------------------

/// The driver's own resolvers.
pub static RESOLVERS: &[Row] = &[
    Row { name: c"cuGetProcAddress", stub: cuGetProcAddress, slots: &[] },
    Row { name: c"cuGetProcAddress_v2", stub: cuGetProcAddress_v2, slots: &[] },
];

stub!(#[unsafe(no_mangle)] cuGetProcAddress, get_proc_address, 0, [], (symbol pfn version flags));
stub!(#[unsafe(no_mangle)] cuGetProcAddress_v2, get_proc_address_v2, 0, [], (symbol pfn version flags status));

fn resolver_real(index: usize, origin: Origin) -> usize {
    let real = table::RESOLVER_REAL.get(index).map_or(0, |real| real.load(Ordering::Relaxed));
    if real != 0 {
        return real;
    }
    let found = RESOLVERS.get(index).map_or(0, |row| behind(row, origin));
    if found != 0 {
        bind_driver_of(found);
        table::bind_resolver(index, found);
    }
    found
}

unsafe extern "C" fn get_proc_address(
    symbol: *const c_char,
    pfn: *mut *mut c_void,
    version: c_int,
    flags: u64,
    origin: Origin,
) -> u32 {
    type Real = unsafe extern "C" fn(*const c_char, *mut *mut c_void, c_int, u64) -> u32;
    let real = resolver_real(0, origin);
    if real == 0 {
        return NOT_INITIALIZED;
    }
    // SAFETY: the real function's address and type.
    let real = unsafe { core::mem::transmute::<usize, Real>(real) };
    // SAFETY: the caller's own arguments.
    let result = unsafe { real(symbol, pfn, version, flags) };
    // SAFETY: what the real function was given.
    unsafe { replace_answer(result, symbol, pfn, version, flags, origin) };
    result
}

unsafe extern "C" fn get_proc_address_v2(
    symbol: *const c_char,
    pfn: *mut *mut c_void,
    version: c_int,
    flags: u64,
    status: *mut c_int,
    origin: Origin,
) -> u32 {
    type Real =
        unsafe extern "C" fn(*const c_char, *mut *mut c_void, c_int, u64, *mut c_int) -> u32;
    let real = resolver_real(1, origin);
    if real == 0 {
        return NOT_INITIALIZED;
    }
    // SAFETY: the real function's address and type.
    let real = unsafe { core::mem::transmute::<usize, Real>(real) };
    // SAFETY: the caller's own arguments.
    let result = unsafe { real(symbol, pfn, version, flags, status) };
    // SAFETY: what the real function was given.
    unsafe { replace_answer(result, symbol, pfn, version, flags, origin) };
    result
}

/// Replaces a hooked function's address in a successful answer.
///
/// # Safety
/// `symbol` and `pfn` are what a successful cuGetProcAddress was called with.
unsafe fn replace_answer(
    result: u32,
    symbol: *const c_char,
    pfn: *mut *mut c_void,
    version: c_int,
    flags: u64,
    origin: Origin,
) {
    if result != 0 || symbol.is_null() || pfn.is_null() || options::off() {
        return;
    }
    // SAFETY: the call succeeded, so both are readable.
    let (name, found) = unsafe { (CStr::from_ptr(symbol), *pfn as usize) };
    if found == 0 {
        return;
    }
    let stub = table::stub_for(found);
    if let Some(stub) = stub {
        // SAFETY: the caller's own out-parameter.
        unsafe { *pfn = stub as *mut c_void };
    }
    let version = u64::from(version.unsigned_abs());
    let caller = origin.address() as usize;
    note(name.to_bytes(), Resolver::GetProcAddress, stub.is_some(), version, flags, caller);
}

// ---- what was asked for -------------------------------------------------------------------

/// Longest name that is noted whole.
const NAME: usize = 56;
const NOTED: usize = 4096;

/// One noted lookup. `key` is claimed first, `ready` published last.
struct Noted {
    key: AtomicU64,
    count: AtomicU64,
    facts: AtomicU64,
    caller: AtomicUsize,
    name: [AtomicU64; NAME / 8],
    /// 0 not yet, 1 noted, 2 written to the log of generation `written`.
    ready: AtomicU32,
    written: AtomicU32,
}

static TABLE: [Noted; NOTED] = [const {
    Noted {
        key: AtomicU64::new(0),
        count: AtomicU64::new(0),
        facts: AtomicU64::new(0),
        caller: AtomicUsize::new(0),
        name: [const { AtomicU64::new(0) }; NAME / 8],
        ready: AtomicU32::new(0),
        written: AtomicU32::new(0),
    }
}; NOTED];
static NOTED_NEW: AtomicU64 = AtomicU64::new(0);
static NOTED_LOST: AtomicU64 = AtomicU64::new(0);
static HOOKED: AtomicU64 = AtomicU64::new(0);
static PASSED: AtomicU64 = AtomicU64::new(0);

/// `cu` or `cuda` and an upper-case letter: `cuMemAlloc`, not `cublasCreate` or `curl_init`.
fn is_cuda_name(name: &[u8]) -> bool {
    let rest = match name {
        [b'c', b'u', b'd', b'a', rest @ ..] | [b'c', b'u', rest @ ..] => rest,
        _ => return false,
    };
    rest.first().is_some_and(u8::is_ascii_uppercase)
}

/// Notes a lookup in memory. It may be long before the first memory call, or without one.
fn note(name: &[u8], resolver: Resolver, hooked: bool, version: u64, flags: u64, caller: usize) {
    if hooked { &HOOKED } else { &PASSED }.fetch_add(1, Ordering::Relaxed);
    let facts =
        resolver as u64 | u64::from(hooked) << 8 | (version & 0xff_ffff) << 16 | flags << 40;
    let mut key = facts ^ 0xcbf2_9ce4_8422_2325;
    for &byte in name {
        key = (key ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    key |= 1;
    for step in 0..NOTED {
        let Some(cell) = TABLE.get((key as usize >> 8).wrapping_add(step) & (NOTED - 1)) else {
            break;
        };
        match cell.key.compare_exchange(0, key, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => {
                cell.facts.store(facts, Ordering::Relaxed);
                cell.caller.store(caller, Ordering::Relaxed);
                for (word, bytes) in cell.name.iter().zip(name.chunks(8)) {
                    let mut padded = [0; 8];
                    for (slot, &byte) in padded.iter_mut().zip(bytes) {
                        *slot = byte;
                    }
                    word.store(u64::from_le_bytes(padded), Ordering::Relaxed);
                }
                cell.count.fetch_add(1, Ordering::Relaxed);
                cell.ready.store(1, Ordering::Release);
                NOTED_NEW.fetch_add(1, Ordering::Release);
                return;
            }
            Err(taken) if taken == key => {
                cell.count.fetch_add(1, Ordering::Relaxed);
                return;
            }
            Err(_) => {}
        }
    }
    NOTED_LOST.fetch_add(1, Ordering::Relaxed);
}

/// Number that changes when there is something to flush.
pub fn noted() -> u64 {
    NOTED_NEW.load(Ordering::Acquire)
}

/// Writes what was noted since the last time to the session's log.
pub fn flush(session: &Session) {
    let generation = session.generation as u32;
    for cell in &TABLE {
        let ready = cell.ready.load(Ordering::Acquire) != 0;
        if !ready || cell.written.swap(generation, Ordering::Relaxed) == generation {
            continue;
        }
        let mut name = [0; NAME];
        for (slots, word) in name.chunks_mut(8).zip(&cell.name) {
            let bytes = word.load(Ordering::Relaxed).to_le_bytes();
            for (slot, byte) in slots.iter_mut().zip(bytes) {
                *slot = byte;
            }
        }
        let facts = cell.facts.load(Ordering::Relaxed);
        let caller = cell.caller.load(Ordering::Relaxed) as u64;
        let definition = Definition::Lookup {
            resolver: facts & 0xff,
            hooked: facts >> 8 & 1 != 0,
            version: facts >> 16 & 0xff_ffff,
            flags: facts >> 40,
            count: cell.count.load(Ordering::Relaxed),
            module: session.sites.module_of(session, caller),
            name: name.split(|&byte| byte == 0).next().unwrap_or(&[]),
        };
        session.dictionary.define(session.log, clock::now(), &definition);
    }
    let header = session.log.header();
    header.set(Counter::LookupsHooked, HOOKED.load(Ordering::Relaxed));
    header.set(Counter::LookupsPassed, PASSED.load(Ordering::Relaxed));
    header.set(Counter::LostLookups, NOTED_LOST.load(Ordering::Relaxed));
}
