//! Names that the process gives to moments and phases: `gmmtrace_mark`, and NVTX.

use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use core::sync::atomic::{AtomicU64, Ordering};

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

// The part of NVTX's injection interface that carries text: callback ids of its core module.
const CORE: c_int = 1;
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

/// Message type of a plain C string.
const ASCII: i32 = 1;

unsafe fn message(attributes: *const Attributes) -> *const c_char {
    // SAFETY: NVTX passes null or its structure.
    match unsafe { attributes.as_ref() } {
        Some(attributes) if attributes.message_type == ASCII => attributes.message,
        _ => core::ptr::null(),
    }
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
    let (mut functions, mut count) = (core::ptr::null_mut(), 0);
    // SAFETY: both out-parameters are ours.
    if unsafe { (table.functions)(CORE, &raw mut functions, &raw mut count) } == 0 {
        return 0;
    }
    let ours: [(usize, *const c_void); 8] = [
        (1, mark_ex as *const c_void),
        (2, mark_a as *const c_void),
        (4, start_ex as *const c_void),
        (5, start_a as *const c_void),
        (7, range_end as *const c_void),
        (8, push_ex as *const c_void),
        (9, push_a as *const c_void),
        (11, pop as *const c_void),
    ];
    for (id, function) in ours {
        if id < count as usize {
            // SAFETY: NVTX's table has `count` entries, each a pointer to a function pointer.
            unsafe {
                let entry = *functions.add(id);
                if !entry.is_null() {
                    *entry = function;
                }
            }
        }
    }
    1
}
