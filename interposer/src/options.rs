//! The `GMMTRACE_*` switches, read once when the library is loaded and copied, because the host
//! may change its environment later.
//!
//! | switch | meaning |
//! | --- | --- |
//! | `GMMTRACE=off` | nothing is recorded; hooks only pass on. `on` says the default |
//! | `GMMTRACE_OUT` | the log's name: `%p` pid, `%h` host, `%e` executable, `%r` rank, `%t` time |
//! | `GMMTRACE_MAX_BYTES` | the log's size cap, with K, M or G; 1M at least |
//! | `GMMTRACE_SAMPLE` | `off`, or seconds between two readings of device memory |
//! | `GMMTRACE_STACKS` | what is recorded of the callers of allocations and tensors: `caller` (or `off`), the calling library alone; `python` or `native`, frames of this kind too; `full`, both; `auto` (default), both where memory is taken from the driver, Python frames at stream-ordered allocations, and none at PyTorch's blocks |
//! | `GMMTRACE_COPY_STACKS` | the same for copies and sets; default `caller` |

use core::cell::UnsafeCell;
use core::ffi::{CStr, c_char};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use gmmtrace_format::header::Anchor;

use crate::stacks::Class;

/// The smallest cap.
const SMALLEST: u64 = 1 << 20;
/// Room for a copied value.
const SPACE: usize = 2048;

/// What was read. Written by `read` only, before other threads look.
pub struct Options {
    out: [u8; SPACE],
    out_length: usize,
    rank: [u8; 32],
    rank_length: usize,
    /// When the library was loaded.
    pub load: Anchor,
    /// Most bytes a log may have.
    pub max_bytes: u64,
    /// Nanoseconds between two samples, 0 for none.
    pub sample_ns: u64,
    stacks: Stacks,
    /// Which value could not be understood, as a bit per switch.
    pub misread: u8,
}

/// Classes of events that get frames, as bits of [`Class`].
#[derive(Clone, Copy)]
pub struct Stacks {
    /// Python frames.
    pub python: u8,
    /// Native frames.
    pub native: u8,
}

/// What is said in the log about a value that could not be understood, by bit of
/// [`Options::misread`].
pub const MISREAD: [(u8, &[u8]); 8] = [
    (64, b"GMMTRACE is neither off nor on; everything is recorded"),
    (
        128,
        b"GMMTRACE_ begins the name of a variable that is not one of gmmtrace's; it has no effect",
    ),
    (1, b"GMMTRACE_OUT is too long; the default name is used"),
    (2, b"GMMTRACE_MAX_BYTES is not a size such as 500M; there is no cap"),
    (8, b"GMMTRACE_MAX_BYTES is below 1M; the cap is 1M"),
    (4, b"GMMTRACE_SAMPLE is neither off nor whole seconds; memory is read every second"),
    (16, b"GMMTRACE_STACKS is not off, caller, python, native, full or auto; it is auto"),
    (32, b"GMMTRACE_COPY_STACKS is not off, caller, python, native, full or auto; it is caller"),
];

struct Cell(UnsafeCell<Options>);
// SAFETY: written once, under the loader's lock, before READ is set.
unsafe impl Sync for Cell {}

static OPTIONS: Cell = Cell(UnsafeCell::new(Options {
    out: [0; SPACE],
    out_length: 0,
    rank: [0; 32],
    rank_length: 0,
    load: Anchor { ticks: 0, monotonic_ns: 0 },
    max_bytes: u64::MAX,
    sample_ns: 1_000_000_000,
    stacks: AUTO,
    misread: 0,
}));
/// The switches, and what `gmmtrace run` marks the logs of a run with.
const KNOWN: [&[u8]; 7] = [
    b"GMMTRACE",
    b"GMMTRACE_OUT",
    b"GMMTRACE_MAX_BYTES",
    b"GMMTRACE_SAMPLE",
    b"GMMTRACE_STACKS",
    b"GMMTRACE_COPY_STACKS",
    b"GMMTRACE_RUN",
];
/// What `GMMTRACE_STACKS` speaks of, and `GMMTRACE_COPY_STACKS`.
const ALLOCATIONS: u8 = Class::Allocation as u8 | Class::Pooled as u8 | Class::Tensor as u8;
const COPIES: u8 = Class::Copy as u8;
/// What takes memory from the driver costs tens of microseconds anyway. A block of a stream-ordered
/// pool costs less than one; blocks of PyTorch and copies are many and cheap.
const AUTO: Stacks = Stacks {
    python: Class::Allocation as u8 | Class::Pooled as u8,
    native: Class::Allocation as u8,
};

static READ: AtomicBool = AtomicBool::new(false);
static OFF: AtomicBool = AtomicBool::new(false);
static LOADS: AtomicU64 = AtomicU64::new(0);

/// Whether the kill switch is on.
#[inline]
pub fn off() -> bool {
    if !READ.load(Ordering::Acquire) {
        read();
    }
    OFF.load(Ordering::Relaxed)
}

/// The options.
pub fn get() -> &'static Options {
    if !READ.load(Ordering::Acquire) {
        read();
    }
    // SAFETY: not written any more once READ is set.
    unsafe { &*OPTIONS.0.get() }
}

/// What is recorded of callers.
#[inline(always)]
pub fn stacks() -> Stacks {
    // SAFETY: written before a session began; `without_native_stacks` changes one byte.
    unsafe { (*OPTIONS.0.get()).stacks }
}

/// Records no native frames, because they cannot be found. To be called while a session starts.
pub fn without_native_stacks() {
    // SAFETY: one byte; a thread that still reads the old one finds no rules.
    unsafe { (&raw mut (*OPTIONS.0.get()).stacks.native).write(0) };
}

impl Stacks {
    /// Sets what the given classes get.
    const fn choose(&mut self, classes: u8, python: u8, native: u8) {
        self.python = self.python & !classes | python & classes;
        self.native = self.native & !classes | native & classes;
    }
}

impl Options {
    /// Pattern of the log's name, empty for the default.
    pub fn out(&self) -> &[u8] {
        self.out.get(..self.out_length).unwrap_or(&[])
    }

    /// The process's rank in its job, as text, or nothing.
    pub fn rank(&self) -> &[u8] {
        self.rank.get(..self.rank_length).unwrap_or(&[])
    }
}

fn variable(name: &CStr) -> Option<&'static [u8]> {
    // SAFETY: getenv returns null or a NUL-terminated string; no thread but the loader's runs.
    let value = unsafe { libc::getenv(name.as_ptr()) };
    if value.is_null() {
        return None;
    }
    // SAFETY: as above.
    Some(unsafe { CStr::from_ptr(value) }.to_bytes())
}

unsafe extern "C" {
    static environ: *const *const c_char;
}

/// Whether a variable looks like a switch and is none. Called while the library is loaded, when
/// nobody else can change the environment.
fn has_unknown() -> bool {
    // SAFETY: the C library's own variable.
    let mut entries = unsafe { environ };
    if entries.is_null() {
        return false;
    }
    loop {
        // SAFETY: a list that ends with null, which was not reached yet.
        let entry = unsafe { *entries };
        if entry.is_null() {
            return false;
        }
        // SAFETY: entries are NUL-terminated.
        let entry = unsafe { CStr::from_ptr(entry) }.to_bytes();
        let name = entry.split(|&byte| byte == b'=').next().unwrap_or(entry);
        if name.starts_with(b"GMMTRACE_") && !KNOWN.contains(&name) {
            return true;
        }
        // SAFETY: the entry was not the last.
        entries = unsafe { entries.add(1) };
    }
}

fn copy(value: &[u8], to: &mut [u8]) -> usize {
    let mut count = 0;
    for (slot, &byte) in to.iter_mut().zip(value) {
        *slot = byte;
        count += 1;
    }
    count
}

/// Reads the switches. The loader calls it once; a hook that is called even earlier, once more.
pub fn read() {
    if LOADS.fetch_add(1, Ordering::AcqRel) != 0 {
        return;
    }
    if variable(c"GMMTRACE").is_some_and(|value| value == b"off" || value == b"0") {
        OFF.store(true, Ordering::Relaxed);
    }
    // SAFETY: only the first caller comes here.
    let options = unsafe { &mut *OPTIONS.0.get() };
    match variable(c"GMMTRACE") {
        None | Some(b"" | b"off" | b"0" | b"on" | b"1") => {}
        Some(_) => options.misread |= 64,
    }
    if has_unknown() {
        options.misread |= 128;
    }
    options.load = crate::clock::load_anchor();
    if let Some(value) = variable(c"GMMTRACE_OUT") {
        options.out_length = copy(value, &mut options.out);
        if options.out_length < value.len() {
            options.out_length = 0;
            options.misread |= 1;
        }
    }
    for name in [c"RANK", c"OMPI_COMM_WORLD_RANK", c"PMI_RANK", c"SLURM_PROCID"] {
        if let Some(value) = variable(name).filter(|value| value.len() <= options.rank.len()) {
            options.rank_length = copy(value, &mut options.rank);
            break;
        }
    }
    if let Some(value) = variable(c"GMMTRACE_MAX_BYTES") {
        match bytes(value) {
            Some(bytes) if bytes >= SMALLEST => options.max_bytes = bytes,
            Some(_) => {
                options.max_bytes = SMALLEST;
                options.misread |= 8;
            }
            None => options.misread |= 2,
        }
    }
    match variable(c"GMMTRACE_SAMPLE") {
        None => {}
        Some(b"off" | b"0") => options.sample_ns = 0,
        Some(value) => {
            match number(value).filter(|&(seconds, rest)| seconds > 0 && rest.is_empty()) {
                Some((seconds, _)) => options.sample_ns = seconds.saturating_mul(1_000_000_000),
                None => options.misread |= 4,
            }
        }
    }
    for (name, classes, bit) in
        [(c"GMMTRACE_STACKS", ALLOCATIONS, 16), (c"GMMTRACE_COPY_STACKS", COPIES, 32)]
    {
        match variable(name) {
            None => {}
            Some(b"off" | b"caller") => options.stacks.choose(classes, 0, 0),
            Some(b"python") => options.stacks.choose(classes, u8::MAX, 0),
            Some(b"native") => options.stacks.choose(classes, 0, u8::MAX),
            Some(b"full") => options.stacks.choose(classes, u8::MAX, u8::MAX),
            Some(b"auto") => options.stacks.choose(classes, AUTO.python, AUTO.native),
            Some(_) => options.misread |= bit,
        }
    }
    READ.store(true, Ordering::Release);
}

fn number(text: &[u8]) -> Option<(u64, &[u8])> {
    let mut value: u64 = 0;
    let mut rest = text;
    while let Some((&digit, tail)) = rest.split_first().filter(|(digit, _)| digit.is_ascii_digit())
    {
        value = value.checked_mul(10)?.checked_add(u64::from(digit - b'0'))?;
        rest = tail;
    }
    (rest.len() < text.len()).then_some((value, rest))
}

fn bytes(text: &[u8]) -> Option<u64> {
    let (value, unit) = number(text)?;
    let shift = match unit {
        b"" => 0,
        b"K" | b"k" => 10,
        b"M" | b"m" => 20,
        b"G" | b"g" => 30,
        _ => return None,
    };
    value.checked_mul(1 << shift)
}

/// Reads the start of a small file. Returns the bytes read, 0 when it cannot be.
pub fn read_file(path: &CStr, into: &mut [u8]) -> usize {
    // SAFETY: a NUL-terminated path.
    let descriptor = unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
    if descriptor < 0 {
        return 0;
    }
    let mut total = 0;
    while let Some(rest) = into.get_mut(total..).filter(|rest| !rest.is_empty()) {
        // SAFETY: reads into a slice of ours.
        let count = unsafe { libc::read(descriptor, rest.as_mut_ptr().cast(), rest.len()) };
        match usize::try_from(count) {
            Ok(count) if count > 0 => total += count,
            _ => break,
        }
    }
    // SAFETY: opened above.
    unsafe { libc::close(descriptor) };
    total
}
