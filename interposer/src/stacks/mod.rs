//! Who called: the stack of an event, as one number.
//!
//! A stack is a path in a tree of nodes, each a frame beneath its caller's node, so what two
//! stacks share is there once. Frames, nodes and stacks are numbered by tables of fixed size and
//! defined in the log when they are new; an event carries the number of its stack in place of its
//! site's. When a table is full the event keeps its site, and that is counted.

mod layout;
pub mod python;
mod table;

use core::sync::atomic::{AtomicU32, Ordering, compiler_fence};

use gmmtrace_format::definition::Definition;
use gmmtrace_format::kind::Kind;
use gmmtrace_format::layout::Counter;
use gmmtrace_ring::ErrnoGuard;

use crate::session::{self, Session};
use crate::{clock, options, sites};
use table::{Place, Table};

/// Frames, nodes and stacks that can be told apart.
const FRAMES: usize = 1 << 18;
const NODES: usize = 1 << 20;
const STACKS: usize = 1 << 18;

/// What the stacks of one session are made of. All zeros is empty.
pub struct Stacks {
    frames: Table<FRAMES>,
    nodes: Table<NODES>,
    stacks: Table<STACKS>,
    codes: python::Codes,
}

/// What one thread keeps between two stacks. All zeros at its start.
pub struct Cache {
    /// Set while the thread reads a stack: a signal handler finds it so and goes without.
    busy: AtomicU32,
    python: python::Cache,
}

/// What kinds of events have in common when it comes to stacks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// What takes memory from the driver, or may.
    Allocation = 1,
    /// Blocks of a framework's allocator.
    Tensor = 2,
    /// Copies and sets.
    Copy = 4,
}

/// The class of a kind; `None` for those that never have a stack.
const fn class(kind: Kind) -> Option<Class> {
    match kind {
        Kind::DeviceAlloc
        | Kind::ManagedAlloc
        | Kind::PinnedAlloc
        | Kind::HostRegister
        | Kind::PoolAlloc
        | Kind::AddressReserve
        | Kind::PhysicalCreate
        | Kind::Map
        | Kind::ArrayCreate
        | Kind::Import
        | Kind::PhysicalImport
        | Kind::PoolCreate
        | Kind::ContextCreate
        | Kind::PrimaryRetain
        | Kind::ObjectCreate
        | Kind::GraphAlloc => Some(Class::Allocation),
        Kind::TorchAlloc | Kind::TorchOom => Some(Class::Tensor),
        Kind::Copy | Kind::Set => Some(Class::Copy),
        _ => None,
    }
}

/// The number that stands for an event's site and the stack above it: that of a stack, or the
/// site's own when no stack is asked for, there is none, or it has no room.
#[inline(always)]
pub fn number(session: &Session, cache: &mut *mut Cache, kind: Kind, site: u32) -> u32 {
    match class(kind) {
        Some(class) if options::python_stacks() & class as u8 != 0 && python::found() => {
            above(session, cache, site)
        }
        _ => site,
    }
}

/// The cache of a thread that ended is another's: what it was doing will not be finished.
pub fn adopt(cache: *mut Cache) {
    // SAFETY: null, or a cache that the calling thread was given.
    if let Some(cache) = unsafe { cache.as_ref() } {
        cache.busy.store(0, Ordering::Relaxed);
    }
}

#[inline(never)]
fn above(session: &Session, cache: &mut *mut Cache, site: u32) -> u32 {
    if cache.is_null() {
        let errno = ErrnoGuard::new();
        *cache = session::zeroed(size_of::<Cache>()).map_or(core::ptr::null_mut(), <*mut u8>::cast);
        drop(errno);
    }
    // SAFETY: null, or zeroed memory that only this thread uses and nobody gives back.
    let Some(cache) = (unsafe { cache.as_mut() }) else { return site };
    if site == 0 || cache.busy.load(Ordering::Relaxed) != 0 {
        return site;
    }
    cache.busy.store(1, Ordering::Relaxed);
    compiler_fence(Ordering::AcqRel);
    let python = python::innermost(session, &mut cache.python);
    compiler_fence(Ordering::AcqRel);
    cache.busy.store(0, Ordering::Relaxed);
    match python {
        Some(0) => site,
        Some(node) => session.stacks.of(session, site, node).unwrap_or_else(full_for(site)),
        None => full_for(site)(),
    }
}

/// Counts a stack without room.
fn full_for(site: u32) -> impl Fn() -> u32 {
    move || {
        session::count(Counter::StacksFull);
        site
    }
}

impl Stacks {
    /// Number of the frame with this key. `None` when the table is full.
    #[inline]
    fn frame(&self, session: &Session, key: FrameKey) -> Option<u32> {
        match self.frames.find(key.packed()) {
            Place::Known(id) => Some(id),
            Place::New(id) => {
                define(session, &key.definition(id));
                Some(id)
            }
            Place::Full => None,
        }
    }

    /// Number of a frame beneath `parent`. `None` when the table is full.
    #[inline]
    fn node(&self, session: &Session, parent: u32, frame: u32) -> Option<u32> {
        match self.nodes.find(u64::from(parent) << 32 | u64::from(frame)) {
            Place::Known(id) => Some(id),
            Place::New(id) => {
                define(session, &Definition::Node { id, parent, frame });
                Some(id)
            }
            Place::Full => None,
        }
    }

    /// Number of a site beneath a node, in the row of the sites. `None` when the table is full.
    #[inline]
    fn of(&self, session: &Session, site: u32, python: u32) -> Option<u32> {
        let after_sites = sites::SITES as u32;
        match self.stacks.find(u64::from(site) << 32 | u64::from(python)) {
            Place::Known(id) => Some(after_sites + id),
            Place::New(id) => {
                let id = after_sites + id;
                define(session, &Definition::Stack { id, site, python, native: 0 });
                Some(id)
            }
            Place::Full => None,
        }
    }
}

/// What tells a frame from others.
#[derive(Clone, Copy)]
enum FrameKey {
    /// A code object's number, the offset of the instruction plus 1 or 0, whether it is outermost.
    Python { code: u32, at: u32, entry: bool },
    /// Frames that could not be read, and why.
    Gap(u32),
}

impl FrameKey {
    const fn packed(self) -> u64 {
        match self {
            Self::Python { code, at, entry } => {
                1 << 63 | (entry as u64) << 62 | (code as u64) << 32 | at as u64
            }
            Self::Gap(reason) => 1 << 61 | reason as u64,
        }
    }

    const fn definition(self, id: u32) -> Definition<'static> {
        match self {
            Self::Python { code, at, entry } => {
                Definition::PythonFrame { id, code, at: at as u64, entry: entry as u64 }
            }
            Self::Gap(reason) => Definition::FrameGap { id, reason: reason as u64 },
        }
    }
}

#[cold]
#[inline(never)]
fn define(session: &Session, definition: &Definition<'_>) {
    let errno = ErrnoGuard::new();
    session.dictionary.define(session.log, clock::now(), definition);
    drop(errno);
}
