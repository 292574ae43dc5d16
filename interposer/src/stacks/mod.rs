//! Who called: the stack of an event, as one number.
//!
//! A stack is a path in a tree of nodes, each a frame beneath its caller's node, so what two
//! stacks share is there once. Frames, nodes and stacks are numbered by tables of fixed size and
//! defined in the log when they are new; an event carries the number of its stack in place of its
//! site's. When a table is full the event keeps its site, and that is counted.

mod bounds;
mod layout;
pub mod native;
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
    rules: native::Rules,
}

/// What one thread keeps between two stacks. All zeros at its start.
pub struct Cache {
    /// Set while the thread reads a stack: a signal handler finds it so and goes without.
    busy: AtomicU32,
    python: python::Cache,
    native: native::Cache,
}

/// What kinds of events have in common when it comes to stacks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// What takes memory from the driver, or may, and takes microseconds for it.
    Allocation = 1,
    /// Blocks of a pool of the driver's, in the order of a stream.
    Pooled = 8,
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
        | Kind::AddressReserve
        | Kind::PhysicalCreate
        | Kind::Map
        | Kind::ArrayCreate
        | Kind::Import
        | Kind::PhysicalImport
        | Kind::PoolCreate
        | Kind::ContextCreate
        | Kind::PrimaryRetain
        | Kind::ObjectCreate => Some(Class::Allocation),
        Kind::PoolAlloc | Kind::GraphAlloc => Some(Class::Pooled),
        Kind::TorchAlloc | Kind::TorchOom => Some(Class::Tensor),
        Kind::Copy | Kind::Set => Some(Class::Copy),
        _ => None,
    }
}

/// The number that stands for an event's site and the stack above it: that of a stack, or the
/// site's own when no stack is asked for, there is none, or it has no room.
#[inline(always)]
pub fn number(session: &Session, cache: &mut *mut Cache, kind: Kind, site: u32) -> u32 {
    let Some(class) = class(kind) else { return site };
    let wanted = options::stacks();
    let python = wanted.python & class as u8 != 0 && python::found();
    let native = wanted.native & class as u8 != 0;
    if python || native { above(session, cache, site, python, native) } else { site }
}

pub use bounds::loaded;

/// Looks at the start for what stacks are made of.
pub fn start(session: &Session) {
    let wanted = options::stacks();
    if wanted.python != 0 {
        python::look(session);
    }
    if wanted.native != 0 && !native::look(session) {
        options::without_native_stacks();
    }
}

/// The cache of a thread that ended is another's: what it was doing will not be finished.
pub fn adopt(cache: *mut Cache) {
    // SAFETY: null, or a cache that the calling thread was given.
    if let Some(cache) = unsafe { cache.as_mut() } {
        cache.native.adopt();
        cache.busy.store(0, Ordering::Relaxed);
    }
}

#[inline(never)]
fn above(session: &Session, cache: &mut *mut Cache, site: u32, python: bool, native: bool) -> u32 {
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
    let python = if python { python::innermost(session, &mut cache.python) } else { Some(0) };
    let native = if native { native::innermost(session, &mut cache.native) } else { Some(0) };
    compiler_fence(Ordering::AcqRel);
    cache.busy.store(0, Ordering::Relaxed);
    let id = match (python, native) {
        (Some(0), Some(0)) => return site,
        // What found room is kept.
        (python, native) => {
            if python.is_none() || native.is_none() {
                session::count(Counter::StacksFull);
            }
            match (python.unwrap_or(0), native.unwrap_or(0)) {
                (0, 0) => return site,
                (python, native) => session.stacks.of(session, site, python, native),
            }
        }
    };
    id.unwrap_or_else(|| {
        session::count(Counter::StacksFull);
        site
    })
}

impl Stacks {
    /// Number of the frame with this key. `None` when the table is full.
    #[inline]
    fn frame(&self, session: &Session, key: FrameKey) -> Option<u32> {
        match self.frames.find(key.packed()) {
            Place::Known(id) => Some(id),
            Place::New(id) => {
                define(session, &key.definition(session, id));
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

    /// Number of a site with the nodes of its callers, in the row of the sites. `None` when the table is full.
    #[inline]
    fn of(&self, session: &Session, site: u32, python: u32, native: u32) -> Option<u32> {
        let after_sites = sites::SITES as u32;
        // Nodes need 21 bits.
        let key = u64::from(site) << 42 | u64::from(python) << 21 | u64::from(native);
        match self.stacks.find(key) {
            Place::Known(id) => Some(after_sites + id),
            Place::New(id) => {
                let id = after_sites + id;
                define(session, &Definition::Stack { id, site, python, native });
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
    /// How often objects were unloaded before, in 12 bits, and the return address in 47.
    Native { unloads: u32, address: u64 },
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
            Self::Native { unloads, address } => 1 << 60 | (unloads as u64) << 47 | address,
        }
    }

    /// A native frame or a gap that was packed.
    const fn of(packed: u64) -> Self {
        if packed >> 61 & 1 != 0 {
            return Self::Gap(packed as u32);
        }
        let (unloads, address) = ((packed >> 47) as u32 & 0xfff, packed & ((1 << 47) - 1));
        Self::Native { unloads, address }
    }

    fn definition(self, session: &Session, id: u32) -> Definition<'static> {
        match self {
            Self::Python { code, at, entry } => {
                Definition::PythonFrame { id, code, at: at as u64, entry: entry as u64 }
            }
            Self::Native { address, .. } => {
                let module = session.sites.module_of(session, address.wrapping_sub(1));
                Definition::NativeFrame { id, address, module }
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
