//! Python frames of the calling thread, read from its own chain of frames.
//!
//! The GIL is not taken: whoever calls may hold locks that a thread with the GIL waits for. It is
//! not needed either: a thread that is inside a C call does not change its own chain, and what the
//! chain names (code objects, their names and tables) is kept alive by it and does not change.
//!
//! ```text
//! Unknown ──look: an interpreter of a version with a layout──▶ Found ──first chain checked──▶ Sound
//!    └──look: of another version──▶ Off ◀──what was read is not what should be there────┘
//! ```
//!
//! The first chain is read through the kernel, which refuses an address that is not there, and
//! every step of it is checked: the thread's own id, and the type of each code object and name.

use core::ffi::c_void;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use gmmtrace_format::definition::{Definition, gap};
use gmmtrace_format::layout::Counter;
use gmmtrace_ring::ErrnoGuard;

use super::layout::{BYTES, C_STACK, GENERATOR, LAYOUTS, LENGTH, Layout, TEXT_STATE, TYPE};
use super::{FrameKey, define};
use crate::session::{self, Session};

/// Frames of a thread that are read; those further out are a gap.
const DEEPEST: usize = 192;
/// Steps along a chain, shims and frames that are being set up among them; a longer one is damaged.
const STEPS: usize = 4 * DEEPEST;
/// Instructions at the beginning of a code object, besides those for variables, that set its frame up.
const SET_UP: u64 = 16;
/// Code objects that can be told apart.
const CODES: usize = 1 << 15;
const TRIES: usize = 64;

/// Code objects by their number. All zeros is empty.
pub struct Codes([CodeCell; CODES]);

struct CodeCell {
    address: AtomicU64,
    /// Set, and never 0, once the code object is defined.
    print: AtomicU64,
}

/// One frame as it was read.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Seen {
    code: u64,
    print: u64,
    /// Offset of the instruction plus 1, and from bit 32 on whether it is outermost.
    at: u64,
}

/// The last stack of a thread, the innermost frame first.
pub struct Cache {
    seen: [Seen; DEEPEST],
    nodes: [u32; DEEPEST],
    depth: usize,
    /// Room for the next.
    next: [Seen; DEEPEST],
    edges: [Edge; EDGES],
}

/// A node that was asked for before, by its frame and its parent: in one line of memory what the
/// tables of the session have in three, far apart.
#[derive(Clone, Copy)]
struct Edge {
    code: u64,
    print: u64,
    /// [`Seen::at`], and the parent from bit 33 on.
    at: u64,
    /// 0 is empty.
    node: u32,
}

/// Edges that a thread keeps.
const EDGES: usize = 1 << 11;

const UNKNOWN: u32 = 0;
const FOUND: u32 = 1;
const SOUND: u32 = 2;
const OFF: u32 = 3;

static STATE: AtomicU32 = AtomicU32::new(UNKNOWN);
static LAYOUT: AtomicPtr<Layout> = AtomicPtr::new(core::ptr::null_mut());
/// `PyGILState_GetThisThreadState`, which asks thread-local storage and needs no GIL.
static THREAD_STATE: AtomicUsize = AtomicUsize::new(0);
/// `Py_IsInitialized`, which reads a flag that falls before the states of other threads are freed.
static INITIALIZED: AtomicUsize = AtomicUsize::new(0);
static CODE_TYPE: AtomicU64 = AtomicU64::new(0);
static TEXT_TYPE: AtomicU64 = AtomicU64::new(0);
static BYTES_TYPE: AtomicU64 = AtomicU64::new(0);

type ThreadState = unsafe extern "C" fn() -> u64;
type IsInitialized = unsafe extern "C" fn() -> i32;

/// Whether there is an interpreter whose frames can be read.
#[inline(always)]
pub fn found() -> bool {
    matches!(STATE.load(Ordering::Acquire), FOUND | SOUND)
}

/// Looks for an interpreter in the process, where none was found yet. Asks the loader.
pub fn look(session: &Session) {
    if STATE.load(Ordering::Acquire) != UNKNOWN {
        return;
    }
    let symbol = |name: &core::ffi::CStr| {
        let dlsym = crate::libc_symbols::dlsym()?;
        // SAFETY: looks up a name in the global scope.
        let found = unsafe { dlsym(libc::RTLD_DEFAULT, name.as_ptr()) } as u64;
        (found != 0).then_some(found)
    };
    if symbol(c"_PyRuntime").is_none() {
        return;
    }
    let version = (|| {
        // From 3.11 on.
        let version = symbol(c"Py_Version")?;
        THREAD_STATE.store(symbol(c"PyGILState_GetThisThreadState")? as usize, Ordering::Relaxed);
        INITIALIZED.store(symbol(c"Py_IsInitialized")? as usize, Ordering::Relaxed);
        for (place, name) in [
            (&CODE_TYPE, c"PyCode_Type"),
            (&TEXT_TYPE, c"PyUnicode_Type"),
            (&BYTES_TYPE, c"PyBytes_Type"),
        ] {
            place.store(symbol(name)?, Ordering::Relaxed);
        }
        // SAFETY: `Py_Version` is a constant `unsigned long`.
        Some(unsafe { read::<u64>(version) } >> 16)
    })();
    let layout = LAYOUTS.iter().find(|layout| Some(u64::from(layout.version)) == version);
    let state = match layout {
        Some(layout) => {
            LAYOUT.store(core::ptr::from_ref(layout).cast_mut(), Ordering::Relaxed);
            FOUND
        }
        None => {
            let text = b"Python frames are not recorded: only those of Python 3.11 to 3.13 are";
            define(session, &Definition::Remark { text });
            OFF
        }
    };
    STATE.store(state, Ordering::Release);
}

/// What lies at an address.
///
/// # Safety
/// A value of this type does.
#[inline(always)]
unsafe fn read<T: Copy>(address: u64) -> T {
    // SAFETY: the caller's promise.
    unsafe { core::ptr::read_unaligned(address as *const T) }
}

/// The word at an address, by the kernel, or `None` when there is nothing.
fn ask(address: u64) -> Option<u64> {
    let mut word: u64 = 0;
    let mine = libc::iovec { iov_base: (&raw mut word).cast(), iov_len: 8 };
    let theirs = libc::iovec { iov_base: address as *mut c_void, iov_len: 8 };
    // SAFETY: reads this process's own memory into a word of ours; refuses bad addresses.
    let count = unsafe {
        libc::process_vm_readv(libc::getpid(), &raw const mine, 1, &raw const theirs, 1, 0)
    };
    (count == 8).then_some(word)
}

/// The thread's state, or 0. An interpreter that ends frees the states of its daemon threads, which
/// go on and still find them in thread-local storage: from then on there are none.
fn thread_state() -> u64 {
    let initialized = INITIALIZED.load(Ordering::Relaxed);
    let function = THREAD_STATE.load(Ordering::Relaxed);
    // SAFETY: the symbols' addresses and types.
    unsafe {
        if core::mem::transmute::<usize, IsInitialized>(initialized)() == 0 {
            return 0;
        }
        core::mem::transmute::<usize, ThreadState>(function)()
    }
}

/// Node of the thread's innermost Python frame, 0 when it has none. `None` when a table is full.
pub fn innermost(session: &Session, cache: &mut Cache) -> Option<u32> {
    // SAFETY: null until `look` found an interpreter, then a constant.
    let Some(layout) = (unsafe { LAYOUT.load(Ordering::Relaxed).as_ref() }) else { return Some(0) };
    let state = thread_state();
    if state == 0 || (STATE.load(Ordering::Relaxed) != SOUND && !check(session, layout, state)) {
        return Some(0);
    }
    let (depth, whole) = cache.walk(layout, state);
    let Some(depth) = depth else {
        session::count(Counter::StacksDoubtful);
        return Some(0);
    };
    cache.number(session, layout, depth, whole)
}

/// Reads a first chain carefully. False when there is none, or it is not what it should be; then
/// the state says so.
#[cold]
#[inline(never)]
fn check(session: &Session, layout: &Layout, state: u64) -> bool {
    let errno = ErrnoGuard::new();
    let sound = checked(layout, state);
    let before = match sound {
        Some(true) => STATE.swap(SOUND, Ordering::AcqRel),
        // No frame yet: nothing to check.
        Some(false) => OFF,
        None => STATE.swap(OFF, Ordering::AcqRel),
    };
    if sound.is_none() && before != OFF {
        session.log.header().count(Counter::StacksDoubtful, 1);
        let text = b"Python frames are not recorded: the interpreter does not keep them where its \
                     version does";
        define(session, &Definition::Remark { text });
    }
    drop(errno);
    sound == Some(true)
}

/// Whether at least one frame was seen and everything was in its place; `None` when not.
fn checked(layout: &Layout, state: u64) -> Option<bool> {
    // SAFETY: no preconditions.
    let own = unsafe { libc::pthread_self() };
    if ask(state + layout.thread_id)? != own {
        return None;
    }
    let typed = |object: u64, kind: &AtomicU64| {
        (ask(object + TYPE)? == kind.load(Ordering::Relaxed)).then_some(())
    };
    let holder = if layout.cframe == 0 { state } else { ask(state + layout.cframe)? };
    let mut frame = ask(holder + layout.current_frame)?;
    let mut seen = false;
    for _ in 0..DEEPEST {
        if frame == 0 {
            break;
        }
        let owner = ask(frame + layout.owner)? as u8;
        if owner > C_STACK || owner == C_STACK && layout.is_entry != 0 {
            return None;
        }
        if owner != C_STACK {
            let code = ask(frame + layout.code)?;
            typed(code, &CODE_TYPE)?;
            typed(ask(code + layout.file)?, &TEXT_TYPE)?;
            typed(ask(code + layout.name)?, &TEXT_TYPE)?;
            typed(ask(code + layout.lines)?, &BYTES_TYPE)?;
            let at = ask(frame + layout.instruction)?;
            // An instruction is two bytes; a new frame stands one before the first.
            let length = ask(code + LENGTH)?.checked_mul(2).filter(|&length| length < 1 << 28)?;
            let start = code + layout.instructions;
            if at + 2 < start || at >= start + length {
                return None;
            }
            seen = true;
        }
        frame = ask(frame + layout.previous)?;
    }
    Some(seen)
}

/// What tells a code object from another that has its address later, never 0: its number where it
/// has one, which lies beside what each call of it reads; else its names, its lines and its length.
///
/// # Safety
/// `code` is a code object that a frame keeps alive.
#[inline(always)]
unsafe fn print_of(layout: &Layout, code: u64) -> u64 {
    // SAFETY: fields of the code object, and of the table of its lines, which has a NUL behind its
    // bytes and so eight bytes at least in what the allocator gave.
    unsafe {
        if layout.unique != 0 {
            let unique = read::<u32>(code + layout.unique);
            if unique != 0 {
                return u64::from(unique);
            }
        }
        let lines = read::<u64>(code + layout.lines);
        let words = [
            read::<u64>(code + layout.name),
            read::<u64>(code + layout.file),
            u64::from(read::<u32>(code + layout.first_line)) << 32 ^ read::<u64>(code + LENGTH),
            lines ^ read::<u64>(lines + LENGTH) << 48,
            read::<u64>(lines + BYTES),
        ];
        let mut mixed: u64 = 0;
        for word in words {
            mixed = (mixed.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
        // Numbers are smaller.
        mixed | 1 << 63
    }
}

impl Cache {
    /// Reads the thread's frames into `next`. Their number, `None` when one is not what it should
    /// be; and whether the outermost is among them.
    #[inline]
    fn walk(&mut self, layout: &Layout, state: u64) -> (Option<usize>, bool) {
        let code_type = CODE_TYPE.load(Ordering::Relaxed);
        let mut depth: usize = 0;
        // SAFETY: a layout that was checked; the thread is in a call, so its frames stay.
        unsafe {
            let holder = if layout.cframe == 0 { state } else { read(state + layout.cframe) };
            let mut frame: u64 = read(holder + layout.current_frame);
            for _ in 0..STEPS {
                if frame == 0 {
                    return (Some(depth), true);
                }
                let owner = read::<u8>(frame + layout.owner);
                if owner == C_STACK {
                    // The frame before was the outermost of a loop.
                    if let Some(inner) = depth.checked_sub(1).and_then(|at| self.next.get_mut(at)) {
                        inner.at |= 1 << 32;
                    }
                    frame = read(frame + layout.previous);
                    continue;
                }
                let code: u64 = read(frame + layout.code);
                if read::<u64>(code + TYPE) != code_type {
                    return (None, false);
                }
                let start = code + layout.instructions;
                let at: u64 = read(frame + layout.instruction);
                // A frame that is being set up has no line, and tracebacks leave it out too. What
                // sets one up is an instruction for each variable at most and a few more, so where
                // it ends is seldom to be read, from a line of memory that is seldom near.
                let most = (u64::from(read::<u32>(code + layout.variables)) + SET_UP) * 2;
                let is_set_up = at >= start + most
                    || owner == GENERATOR
                    || at >= start + u64::from(read::<u32>(code + layout.first_traceable)) * 2;
                if is_set_up {
                    let Some(seen) = self.next.get_mut(depth) else { return (Some(depth), false) };
                    let entry = layout.is_entry != 0 && read::<u8>(frame + layout.is_entry) != 0;
                    let offset = at.wrapping_add(1).saturating_sub(start) & 0xffff_ffff;
                    let at = offset | u64::from(entry) << 32;
                    *seen = Seen { code, print: print_of(layout, code), at };
                    depth += 1;
                }
                frame = read(frame + layout.previous);
            }
        }
        (None, false)
    }

    /// Numbers what `walk` read, from the outermost in. Outer frames that are as they were last
    /// time keep their nodes.
    fn number(
        &mut self,
        session: &Session,
        layout: &Layout,
        depth: usize,
        whole: bool,
    ) -> Option<u32> {
        let stacks = &session.stacks;
        let Self { seen, nodes, depth: known, next, edges } = self;
        let mut kept = core::mem::take(known);
        let mut parent = 0;
        if !whole {
            kept = 0;
            let frame = stacks.frame(session, FrameKey::Gap(gap::DEPTH as u32))?;
            parent = stacks.node(session, 0, frame)?;
        }
        let frames = next.get(..depth).unwrap_or(&[]).iter().rev();
        let places = seen.iter_mut().zip(nodes.iter_mut()).enumerate();
        for (next, (place, (seen, node))) in frames.zip(places) {
            if place < kept && *seen == *next {
                parent = *node;
                continue;
            }
            kept = 0;
            let edge = Edge {
                code: next.code,
                print: next.print,
                at: next.at | u64::from(parent) << 33,
                node: 0,
            };
            parent = match edges.get_mut(edge.place()) {
                Some(known) if known.is(&edge) => known.node,
                place => {
                    let node = beneath(session, layout, parent, next)?;
                    if let Some(place) = place {
                        *place = Edge { node, ..edge };
                    }
                    node
                }
            };
            *seen = *next;
            *node = parent;
        }
        // What stands beneath a gap has other nodes than it would have without.
        *known = if whole { depth } else { 0 };
        Some(parent)
    }
}

impl Edge {
    #[inline(always)]
    const fn place(&self) -> usize {
        let mixed = (self.code ^ self.at.rotate_left(29)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 40) as usize & (EDGES - 1)
    }

    #[inline(always)]
    const fn is(&self, other: &Self) -> bool {
        self.node != 0
            && self.code == other.code
            && self.print == other.print
            && self.at == other.at
    }
}

/// Node of a frame beneath its parent's. `None` when a table is full.
#[cold]
#[inline(never)]
fn beneath(session: &Session, layout: &Layout, parent: u32, seen: &Seen) -> Option<u32> {
    let stacks = &session.stacks;
    let code = stacks.codes.number(session, layout, seen)?;
    let key = FrameKey::Python { code, at: seen.at as u32, entry: seen.at >> 32 != 0 };
    let frame = stacks.frame(session, key)?;
    stacks.node(session, parent, frame)
}

impl Codes {
    /// Number of a code object, defined now if it is new. `None` when the table is full.
    #[inline]
    fn number(&self, session: &Session, layout: &Layout, seen: &Seen) -> Option<u32> {
        let mixed = (seen.code ^ seen.print).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for step in 0..TRIES {
            let index = ((mixed >> 40) as usize + step) & (CODES - 1);
            let cell = self.0.get(index)?;
            let id = index as u32 + 1;
            let mut found = cell.address.load(Ordering::Acquire);
            if found == 0 {
                let claim = cell.address.compare_exchange(
                    0,
                    seen.code,
                    Ordering::AcqRel,
                    Ordering::Acquire,
                );
                match claim {
                    Ok(_) => {
                        // SAFETY: a code object that a frame of this thread keeps alive.
                        unsafe { describe(session, layout, seen.code, id) };
                        cell.print.store(seen.print, Ordering::Release);
                        return Some(id);
                    }
                    Err(other) => found = other,
                }
            }
            // One that another thread is defining just now has no print yet: it gets a second
            // number.
            if found == seen.code && cell.print.load(Ordering::Acquire) == seen.print {
                return Some(id);
            }
        }
        None
    }
}

/// Longest file name and name that are kept, and pieces of tables of lines.
const FILE: usize = 2048;
const NAME: usize = 1024;
const PIECE: usize = 4096;
/// A table of lines that is longer is not kept: the frame has its first line then.
const LONGEST_TABLE: u64 = 1 << 20;

/// Defines a code object.
///
/// # Safety
/// `code` is a code object that a frame keeps alive.
#[cold]
#[inline(never)]
unsafe fn describe(session: &Session, layout: &Layout, code: u64, id: u32) {
    let mut file = [0; FILE];
    let mut name = [0; NAME];
    // SAFETY: fields of a code object, of the types that they have.
    unsafe {
        let definition = Definition::Code {
            id,
            first_line: u64::from(read::<u32>(code + layout.first_line)),
            file: text(layout, read(code + layout.file), &mut file),
            name: text(layout, read(code + layout.name), &mut name),
        };
        define(session, &definition);
        let lines: u64 = read(code + layout.lines);
        let total: u64 = read(lines + LENGTH);
        if total > LONGEST_TABLE {
            return;
        }
        let table = core::slice::from_raw_parts((lines + BYTES) as *const u8, total as usize);
        let mut offset = 0;
        for bytes in table.chunks(PIECE) {
            let version = u64::from(layout.version);
            define(session, &Definition::CodeLines { code: id, version, total, offset, bytes });
            offset += bytes.len() as u64;
        }
    }
}

/// A text as UTF-8, cut where the room ends.
///
/// # Safety
/// `object` is a `str`.
unsafe fn text<'a>(layout: &Layout, object: u64, room: &'a mut [u8]) -> &'a [u8] {
    // SAFETY: the text's own fields say how long and how wide it is.
    let (state, length) =
        unsafe { (read::<u32>(object + TEXT_STATE), read::<u64>(object + LENGTH)) };
    let width = u64::from(state >> 2 & 7);
    let (is_compact, is_ascii) = (state >> 5 & 1 != 0, state >> 6 & 1 != 0);
    if !is_compact || !matches!(width, 1 | 2 | 4) {
        return &[];
    }
    let start = object + if is_ascii { layout.ascii } else { layout.compact };
    let mut used = 0;
    for index in 0..length {
        let at = start + index * width;
        // SAFETY: inside the text.
        let point = unsafe {
            match width {
                1 => u32::from(read::<u8>(at)),
                2 => u32::from(read::<u16>(at)),
                _ => read::<u32>(at),
            }
        };
        // A lone surrogate stands for a byte of a file name that is no text.
        let point = char::from_u32(point).unwrap_or(char::REPLACEMENT_CHARACTER);
        let mut bytes = [0; 4];
        let bytes = encode(point, &mut bytes);
        let Some(target) = room.get_mut(used..used + bytes.len()) else { break };
        for (target, &byte) in target.iter_mut().zip(bytes) {
            *target = byte;
        }
        used += bytes.len();
    }
    room.get(..used).unwrap_or(&[])
}

/// A character as UTF-8. The standard library's own way may panic.
fn encode(point: char, room: &mut [u8; 4]) -> &[u8] {
    let point = point as u32;
    let tail = |shift: u32| (point >> shift & 0x3f) as u8 | 0x80;
    let length = match point {
        0..0x80 => {
            *room = [point as u8, 0, 0, 0];
            1
        }
        0x80..0x800 => {
            *room = [(point >> 6) as u8 | 0xc0, tail(0), 0, 0];
            2
        }
        0x800..0x1_0000 => {
            *room = [(point >> 12) as u8 | 0xe0, tail(6), tail(0), 0];
            3
        }
        _ => {
            *room = [(point >> 18) as u8 | 0xf0, tail(12), tail(6), tail(0)];
            4
        }
    };
    room.get(..length).unwrap_or(&[])
}
