//! Names that the process gives to moments and phases: `gmmtrace_mark`, and NVTX.

use core::cell::UnsafeCell;
use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use gmmtrace_format::kind::Kind;

use crate::record;

/// Writes a mark with this text. For programs that look the name up by `dlsym`.
///
/// # Safety
/// `text` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gmmtrace_mark(text: *const c_char) {
    // SAFETY: by the caller's promise.
    unsafe { named(Kind::Mark, 0, text) };
}

unsafe fn named(kind: Kind, number: u64, text: *const c_char) {
    if text.is_null() {
        return;
    }
    // SAFETY: by the caller's promise.
    let text = unsafe { CStr::from_ptr(text) }.to_bytes();
    record::fact(kind, [number, 0, 0, 0, 0], text);
}

// The parts of NVTX's injection interface that carry text: the functions without a domain and
// those with one. Domains are not told apart.
const CORE: c_int = 1;
const CORE2: c_int = 5;
const CALLBACKS: u32 = 1;

#[repr(C)]
struct ExportTable {
    size: usize,
    functions: unsafe extern "C" fn(c_int, *mut *mut *mut *const c_void, *mut c_uint) -> c_int,
}

/// `nvtxEventAttributes_t`, up to its message.
#[repr(C)]
struct Attributes {
    version: u16,
    size: u16,
    category: u32,
    color_type: i32,
    color: u32,
    payload_type: i32,
    reserved: i32,
    payload: u64,
    message_type: i32,
    message: *const c_char,
}

/// Message type of a plain C string, and of one that was registered: ours is a C string too.
const ASCII: i32 = 1;
const REGISTERED: i32 = 3;

unsafe fn message(attributes: *const Attributes) -> *const c_char {
    // SAFETY: NVTX passes null or its structure.
    match unsafe { attributes.as_ref() } {
        Some(Attributes { message_type: ASCII | REGISTERED, message, .. }) => *message,
        _ => core::ptr::null(),
    }
}

/// Bytes for registered strings of a process.
const STRINGS: usize = 1 << 18;

struct Strings(UnsafeCell<[u8; STRINGS]>);
// SAFETY: each byte is written once, by the thread that claimed it from `STRINGS_USED`, before its
// address is given away.
unsafe impl Sync for Strings {}

static REGISTERED_STRINGS: Strings = Strings(UnsafeCell::new([0; STRINGS]));
static STRINGS_USED: AtomicUsize = AtomicUsize::new(0);

/// Keeps a copy of a string for as long as the process lives. Null when there is no room, and a
/// range with that name then has none.
unsafe extern "C" fn register(_: *const c_void, text: *const c_char) -> *const c_char {
    if text.is_null() {
        return core::ptr::null();
    }
    // SAFETY: NVTX's own argument, a C string.
    let text = unsafe { CStr::from_ptr(text) }.to_bytes_with_nul();
    let claim = |used: usize| used.checked_add(text.len()).filter(|&end| end <= STRINGS);
    let Ok(at) = STRINGS_USED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, claim) else {
        return core::ptr::null();
    };
    // SAFETY: `at` and what was claimed behind it lie within the array; nobody else writes there.
    unsafe {
        let copy = REGISTERED_STRINGS.0.get().cast::<u8>().add(at);
        core::ptr::copy_nonoverlapping(text.as_ptr(), copy, text.len());
        copy.cast::<c_char>()
    }
}

unsafe extern "C" fn domain_mark(_: *const c_void, attributes: *const Attributes) {
    // SAFETY: NVTX's own argument.
    unsafe { mark_ex(attributes) };
}

unsafe extern "C" fn domain_start(_: *const c_void, attributes: *const Attributes) -> u64 {
    // SAFETY: NVTX's own argument.
    unsafe { start_ex(attributes) }
}

unsafe extern "C" fn domain_end(_: *const c_void, id: u64) {
    // SAFETY: no preconditions.
    unsafe { range_end(id) };
}

unsafe extern "C" fn domain_push(_: *const c_void, attributes: *const Attributes) -> c_int {
    // SAFETY: NVTX's own argument.
    unsafe { push_ex(attributes) }
}

unsafe extern "C" fn domain_pop(_: *const c_void) -> c_int {
    // SAFETY: no preconditions.
    unsafe { pop() }
}

static RANGES: AtomicU64 = AtomicU64::new(1);

unsafe extern "C" fn mark_ex(attributes: *const Attributes) {
    // SAFETY: NVTX's own argument.
    unsafe { named(Kind::Mark, 0, message(attributes)) };
}

unsafe extern "C" fn mark_a(text: *const c_char) {
    // SAFETY: NVTX's own argument.
    unsafe { named(Kind::Mark, 0, text) };
}

unsafe extern "C" fn push_ex(attributes: *const Attributes) -> c_int {
    // SAFETY: NVTX's own argument.
    let text = unsafe { message(attributes) };
    push(if text.is_null() {
        c""
    } else {
        // SAFETY: a C string by its message type.
        unsafe { CStr::from_ptr(text) }
    })
}

unsafe extern "C" fn push_a(text: *const c_char) -> c_int {
    // SAFETY: NVTX's own argument, a C string.
    push(if text.is_null() { c"" } else { unsafe { CStr::from_ptr(text) } })
}

fn push(text: &CStr) -> c_int {
    record::fact(Kind::RangePush, [0; 5], text.to_bytes());
    0
}

unsafe extern "C" fn pop() -> c_int {
    record::fact(Kind::RangePop, [0; 5], &[]);
    0
}

unsafe extern "C" fn start_ex(attributes: *const Attributes) -> u64 {
    let id = RANGES.fetch_add(1, Ordering::Relaxed);
    // SAFETY: NVTX's own argument.
    unsafe { named(Kind::RangeStart, id, message(attributes)) };
    id
}

unsafe extern "C" fn start_a(text: *const c_char) -> u64 {
    let id = RANGES.fetch_add(1, Ordering::Relaxed);
    // SAFETY: NVTX's own argument.
    unsafe { named(Kind::RangeStart, id, text) };
    id
}

unsafe extern "C" fn range_end(id: u64) {
    record::fact(Kind::RangeEnd, [id, 0, 0, 0, 0], &[]);
}

/// NVTX calls it when `NVTX_INJECTION64_PATH` names this library.
///
/// # Safety
/// `export` is NVTX's own function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn InitializeInjectionNvtx2(
    export: Option<unsafe extern "C" fn(u32) -> *const c_void>,
) -> c_int {
    let Some(export) = export.filter(|_| !crate::options::off()) else { return 0 };
    // SAFETY: NVTX's function, with an id of its documentation.
    let table = unsafe { export(CALLBACKS) }.cast::<ExportTable>();
    // SAFETY: null or the table asked for.
    let Some(table) = (unsafe { table.as_ref() }) else { return 0 };
    if table.size < size_of::<ExportTable>() {
        return 0;
    }
    let plain: [(usize, *const c_void); 8] = [
        (1, mark_ex as *const c_void),
        (2, mark_a as *const c_void),
        (4, start_ex as *const c_void),
        (5, start_a as *const c_void),
        (7, range_end as *const c_void),
        (8, push_ex as *const c_void),
        (9, push_a as *const c_void),
        (11, pop as *const c_void),
    ];
    let with_domain: [(usize, *const c_void); 6] = [
        (1, domain_mark as *const c_void),
        (2, domain_start as *const c_void),
        (3, domain_end as *const c_void),
        (4, domain_push as *const c_void),
        (5, domain_pop as *const c_void),
        (10, register as *const c_void),
    ];
    // SAFETY: NVTX's own table.
    unsafe {
        install(table, CORE, &plain);
        install(table, CORE2, &with_domain);
    }
    1
}

/// Puts functions into a module's table, by their callback ids.
///
/// # Safety
/// `table` is NVTX's, and the functions have the types of their ids.
unsafe fn install(table: &ExportTable, module: c_int, functions: &[(usize, *const c_void)]) {
    let (mut entries, mut count) = (core::ptr::null_mut(), 0);
    // SAFETY: both out-parameters are ours.
    if unsafe { (table.functions)(module, &raw mut entries, &raw mut count) } == 0 {
        return;
    }
    for &(id, function) in functions.iter().filter(|(id, _)| *id < count as usize) {
        // SAFETY: NVTX's table has `count` entries, each a pointer to a function pointer.
        unsafe {
            let entry = *entries.add(id);
            if !entry.is_null() {
                *entry = function;
            }
        }
    }
}
