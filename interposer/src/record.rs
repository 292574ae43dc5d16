//! From a call to bytes in the thread's chunk: the hot path.

use core::sync::atomic::{AtomicU32, Ordering, compiler_fence};

use gmmtrace_format::event::MAX_PLAIN;
use gmmtrace_format::kind::{Effect, Kind, Operand};
use gmmtrace_format::layout::{CONTENT_EVENTS, Counter, PAYLOAD};
use gmmtrace_format::{Codec, Event, Flags};
use gmmtrace_ring::{Chunk, ErrnoGuard, Opening};

use crate::session::{self, Session};
use crate::stub::Origin;
use crate::thread::local;
use crate::{capture, clock, sites, stacks, table};

/// Where one thread writes. Plain fields belong to the thread whose `tid` it holds. Aligned so
/// that no two threads write to one pair of cache lines.
#[repr(align(128))]
pub struct Writer {
    chunk: Option<Chunk>,
    at: usize,
    codec: Codec,
    /// What is kept between two stacks, or null before the first.
    stack: *mut stacks::Cache,
    /// When the outermost hooked call that is running began, or 0.
    open_since: u64,
    runtime: Runtime,
    context: u64,
    /// The context whose device was last told.
    told: u64,
    device: i64,
    retry_at: u64,
    sequence: u32,
    index: u32,
    busy: bool,
    known: bool,
    /// Kernel id of the owning thread, 0 before there was one. Read by the helper.
    pub tid: AtomicU32,
    /// A [`WriterState`]. The thread stores Live, the helper Orphan.
    pub state: AtomicU32,
}

/// The runtime call that is running on a thread.
struct Runtime {
    api: u16,
    address: u64,
    start: u64,
    events: u32,
}

/// 0 is free: never used. `Free → Live` by a new thread, `Live → Orphan` by the helper when the
/// thread has ended, `Orphan → Live` by a new thread.
pub mod writer_state {
    /// A thread writes with it.
    pub const LIVE: u32 = 1;
    /// Its thread has ended.
    pub const ORPHAN: u32 = 2;
}

/// Ticks to wait after the log could not grow: about a tenth of a second.
const RETRY: u64 = 200_000_000;

/// An entry point of the driver.
#[derive(Clone, Copy)]
pub struct Api {
    /// Its number among all entry points.
    pub id: u16,
    /// Whether stream 0 means the thread's own default stream.
    pub per_thread: bool,
}

impl Api {
    /// The entry point with this symbol.
    pub const fn new(id: u16, symbol: &str) -> Self {
        let per_thread = matches!(symbol.as_bytes(), [.., b'_', b'p', b't', _, b'z' | b's']);
        Self { id, per_thread }
    }
}

/// A hooked call that is being made: what the thread knew before it.
pub struct Open {
    writer: *mut Writer,
    start: u64,
    outermost: bool,
}

/// The thread's writer, or null when nothing is recorded.
#[inline(always)]
fn writer() -> *mut Writer {
    let local = local();
    // SAFETY: this thread's own words.
    let (generation, writer) = unsafe { ((*local).generation, (*local).writer) };
    if generation == session::generation() && !writer.is_null() { writer } else { register() }
}

/// First call of a thread, or first after a fork.
#[cold]
#[inline(never)]
fn register() -> *mut Writer {
    let errno = ErrnoGuard::new();
    let writer = session::enter().and_then(adopt).unwrap_or(core::ptr::null_mut());
    drop(errno);
    writer
}

fn adopt(session: &'static Session) -> Option<*mut Writer> {
    let Some(writer) = session.take_writer() else {
        session.log.header().count(Counter::UnregisteredThreads, 1);
        return None;
    };
    // SAFETY: the writer was taken by this thread; nobody else uses its plain fields.
    let this = unsafe { &mut *writer };
    if !this.known {
        this.known = true;
        this.at = PAYLOAD;
        this.codec = Codec::new(0);
        let start = core::ptr::from_ref(&session.writers).cast::<Writer>();
        // SAFETY: both lie in the same array.
        this.index = unsafe { writer.cast_const().offset_from(start) } as u32 + 1;
    }
    if let Some(chunk) = this.chunk {
        // The thread before may have died inside a runtime call.
        chunk.runtime_returned();
    }
    this.open_since = 0;
    this.runtime = Runtime { api: 0, address: 0, start: 0, events: 0 };
    this.context = 0;
    this.device = -1;
    this.busy = false;
    stacks::adopt(this.stack);
    // SAFETY: no preconditions.
    let tid = unsafe { libc::syscall(libc::SYS_gettid) } as u32;
    this.tid.store(tid, Ordering::Relaxed);
    this.state.store(writer_state::LIVE, Ordering::Release);
    let local = local();
    // SAFETY: this thread's own words. The writer first: a signal handler that comes between
    // still sees the old generation.
    unsafe {
        (*local).writer = writer;
        compiler_fence(Ordering::Release);
        (*local).generation = session.generation;
    }
    this.introduce(tid);
    Some(writer)
}

impl Writer {
    /// Writes who the thread is.
    fn introduce(&mut self, tid: u32) {
        let mut name = [0_u8; 16];
        // SAFETY: PR_GET_NAME writes 16 bytes.
        unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
        let text = name.split(|&byte| byte == 0).next().unwrap_or(&[]);
        let now = clock::before(false);
        let mut event = Event::new(Kind::Thread, 0, now, now, [u64::from(tid), 0, 0, 0, 0]);
        event.text = text;
        self.write(Kind::Thread, &event);
    }

    /// Encodes an event and publishes it.
    #[inline(always)]
    fn write(&mut self, kind: Kind, event: &Event<'_>) {
        if self.busy {
            return reentered();
        }
        self.busy = true;
        compiler_fence(Ordering::AcqRel);
        if self.at > PAYLOAD - MAX_PLAIN && !self.next_chunk(event.start) {
            lose(kind);
        } else if let Some(chunk) = self.chunk {
            // SAFETY: the thread owns the chunk; bytes behind `at` are not committed.
            let out = unsafe { chunk.payload(self.at) };
            match self.codec.encode(kind, event, out) {
                Some(length) => {
                    self.at += length;
                    chunk.commit(self.at);
                }
                None => self.write_long(kind, event),
            }
        }
        compiler_fence(Ordering::AcqRel);
        self.busy = false;
    }

    /// An event with text that did not fit the rest of the chunk.
    #[cold]
    #[inline(never)]
    fn write_long(&mut self, kind: Kind, event: &Event<'_>) {
        let fits = self.next_chunk(event.start);
        let Some(chunk) = self.chunk.filter(|_| fits) else { return lose(kind) };
        // SAFETY: as in `write`.
        let out = unsafe { chunk.payload(self.at) };
        match self.codec.encode(kind, event, out) {
            Some(length) => {
                self.at += length;
                chunk.commit(self.at);
            }
            None => lose(kind),
        }
    }

    /// Seals the chunk and takes the next. False when the log cannot grow.
    #[cold]
    #[inline(never)]
    fn next_chunk(&mut self, start: u64) -> bool {
        let errno = ErrnoGuard::new();
        let taken = self.replace_chunk(start);
        drop(errno);
        taken
    }

    fn replace_chunk(&mut self, start: u64) -> bool {
        let Some(session) = session::current() else { return false };
        let now = clock::now();
        if now.ticks < self.retry_at {
            return false;
        }
        let Some(address) = session.take_chunk() else {
            self.retry_at = now.ticks + RETRY;
            session.log.header().count(Counter::GrowthFailures, 1);
            return false;
        };
        // SAFETY: a populated slot that only this thread was given.
        let chunk = unsafe { Chunk::at(address) };
        let base = match self.open_since {
            0 => start,
            open => open.min(start),
        };
        chunk.open(&Opening {
            tid: self.tid.load(Ordering::Relaxed),
            writer: self.index,
            sequence: self.sequence,
            content: CONTENT_EVENTS,
            base,
            taken: now,
        });
        if let Some(former) = self.chunk {
            chunk.inherit(&former);
            former.seal();
        }
        self.sequence += 1;
        self.chunk = Some(chunk);
        self.at = 0;
        self.codec = Codec::new(base);
        true
    }
}

#[cold]
fn reentered() {
    session::count(Counter::Reentered);
}

#[cold]
#[inline(never)]
fn lose(kind: Kind) {
    session::count(match kind {
        Kind::Copy | Kind::Set => Counter::LostCopies,
        Kind::MemoryInfo
        | Kind::Mark
        | Kind::RangePush
        | Kind::RangePop
        | Kind::RangeStart
        | Kind::RangeEnd
        | Kind::RuntimeCall
        | Kind::Sample
        | Kind::Thread
        | Kind::SetAccess
        | Kind::Limit
        | Kind::GraphMemory
        | Kind::GraphTrim
        | Kind::Prefetch
        | Kind::Advise
        | Kind::PoolTrim
        | Kind::PoolAttribute
        | Kind::Checkpoint => Counter::LostOther,
        _ => Counter::LostLive,
    });
}

/// Before a driver call: the stamp, and the in-flight slot.
#[inline(always)]
pub fn begin(api: Api, argument: u64, kind: Kind) -> Open {
    let writer = writer();
    if writer.is_null() {
        return Open { writer, start: 0, outermost: false };
    }
    // SAFETY: the thread's own writer.
    let this = unsafe { &mut *writer };
    let start = clock::before(matches!(kind.effect(), Effect::AtStart));
    let outermost = this.open_since == 0;
    if outermost {
        this.open_since = start;
    }
    if let Some(chunk) = this.chunk {
        chunk.driver_call(api.id, start, argument);
    }
    Open { writer, start, outermost }
}

/// Before a driver call that may turn out to be none of ours: the stamp alone.
#[inline(always)]
pub fn begin_quietly() -> Open {
    let writer = writer();
    let start = if writer.is_null() { 0 } else { clock::before(false) };
    Open { writer, start, outermost: false }
}

/// After a driver call: the event.
#[inline(always)]
pub fn end(open: Open, api: Api, origin: Origin, kind: Kind, status: u32, operands: [u64; 5]) {
    if open.writer.is_null() {
        return;
    }
    let end = clock::after(matches!(kind.effect(), Effect::AtEnd));
    finish(open, api, origin, kind, status, operands, end);
}

/// Writes the event of a call that had returned at `end`.
#[inline(always)]
fn finish(
    open: Open,
    api: Api,
    origin: Origin,
    kind: Kind,
    status: u32,
    mut operands: [u64; 5],
    end: u64,
) {
    // SAFETY: the thread's own writer; a fork inside the call would have changed the generation,
    // and then the old writer's memory is the child's own copy.
    let this = unsafe { &mut *open.writer };
    let Some(session) = session::current() else { return };
    let mut flags = Flags(0);
    let mut address = origin.address();
    if this.runtime.api != 0 {
        flags = if this.runtime.events == 0 { Flags::CALL_FIRST } else { Flags::CALL_NEXT };
        this.runtime.events = this.runtime.events.saturating_add(1);
        address = this.runtime.address;
    }
    if capture::active()
        && let Some(stream) = stream_place(kind).and_then(|place| operands.get_mut(place))
        && captured(kind, api.per_thread, stream)
    {
        flags = flags.with(Flags::CAPTURED);
    }
    let key = sites::key(address, api.id, this.runtime.api);
    let site = session.sites.id(session, key, false);
    let site = stacks::number(session, &mut this.stack, kind, site);
    let mut event = Event::new(kind, site, open.start, end.max(open.start), operands);
    event.flags = flags;
    if status != 0 {
        event.flags = flags.with(Flags::FAILED);
        event.status = status;
    }
    this.write(kind, &event);
    if open.outermost {
        this.open_since = 0;
    }
}

/// After a driver call that did `count` things at once: an event for each, as profilers count
/// them. The first has the length of the call, the others none. A failed call is one event, and
/// `operands` is then not asked.
#[inline(never)]
pub fn end_each(
    open: Open,
    api: Api,
    origin: Origin,
    kind: Kind,
    status: u32,
    count: usize,
    operands: &mut dyn FnMut(usize) -> [u64; 5],
) {
    if open.writer.is_null() {
        return;
    }
    let end = clock::after(matches!(kind.effect(), Effect::AtEnd));
    let Open { writer, start, outermost } = open;
    if status != 0 {
        return finish(open, api, origin, kind, status, [0; 5], end);
    }
    let mut start = start;
    for index in 0..count {
        let part = Open { writer, start, outermost: false };
        finish(part, api, origin, kind, 0, operands(index), end);
        start = end.max(start);
    }
    // SAFETY: the thread's own writer.
    if let Some(this) = unsafe { writer.as_mut() }.filter(|_| outermost) {
        this.open_since = 0;
    }
}

/// Where an event of this kind names its stream.
const fn stream_place(kind: Kind) -> Option<usize> {
    let mut operands = kind.operands();
    let mut place = 0;
    while let [first, rest @ ..] = operands {
        if matches!(first, Operand::Stream) {
            return Some(place);
        }
        place += 1;
        operands = rest;
    }
    None
}

/// Whether the call went into a graph instead of being done. Of an allocation or a free the
/// stream becomes the one that its capture began on, by which the graph is found.
#[cold]
#[inline(never)]
fn captured(kind: Kind, per_thread: bool, stream: &mut u64) -> bool {
    let origin = capture::origin(capture::key(*stream, per_thread));
    if let Some(origin) = origin.filter(|_| matches!(kind, Kind::PoolAlloc | Kind::PoolFree)) {
        *stream = origin;
    }
    if origin.is_none() && capture::doubtful() {
        session::count(Counter::Captured);
    }
    origin.is_some()
}

/// Before a runtime call. Null `writer` in the answer: not the outermost, or not recorded.
#[inline(always)]
pub fn begin_runtime(api: u16, argument: u64, origin: Origin) -> Open {
    let writer = writer();
    let nobody = Open { writer: core::ptr::null_mut(), start: 0, outermost: false };
    if writer.is_null() {
        return nobody;
    }
    // SAFETY: the thread's own writer.
    let this = unsafe { &mut *writer };
    if this.runtime.api != 0 {
        return nobody;
    }
    let start = clock::before(false);
    let outermost = this.open_since == 0;
    if outermost {
        this.open_since = start;
    }
    this.runtime = Runtime { api, address: origin.address(), start, events: 0 };
    if let Some(chunk) = this.chunk {
        chunk.runtime_call(api, start, argument);
    }
    Open { writer, start, outermost }
}

/// After a runtime call: an event of its own when no driver call was seen beneath and it has
/// operands for one.
#[inline(always)]
pub fn end_runtime(open: Open, status: u32, operands: Option<[u64; 2]>) {
    if open.writer.is_null() {
        return;
    }
    // SAFETY: the thread's own writer.
    let this = unsafe { &mut *open.writer };
    if this.runtime.events == 0
        && let Some(operands) = operands
    {
        alone(this, status, operands);
    }
    this.runtime.api = 0;
    if let Some(chunk) = this.chunk {
        chunk.runtime_returned();
    }
    if open.outermost {
        this.open_since = 0;
    }
}

#[cold]
#[inline(never)]
fn alone(this: &mut Writer, status: u32, operands: [u64; 2]) {
    let Some(session) = session::current() else { return };
    let end = clock::after(true);
    let key = sites::key(this.runtime.address, table::DRIVER_BASE, this.runtime.api);
    let site = session.sites.id(session, key, true);
    let [pointer, bytes] = operands;
    let start = this.runtime.start;
    let mut event =
        Event::new(Kind::RuntimeCall, site, start, end.max(start), [pointer, bytes, 0, 0, 0]);
    if status != 0 {
        event.flags = Flags::FAILED;
        event.status = status;
    }
    this.write(Kind::RuntimeCall, &event);
}

// ---- reports of frameworks ------------------------------------------------------------------

/// What an allocator above the driver reports: an event of one moment.
#[inline(always)]
pub fn report(kind: Kind, api: u16, origin: Origin, operands: [u64; 5]) {
    let writer = writer();
    // SAFETY: the thread's own writer, when there is one.
    let (Some(this), Some(session)) = (unsafe { writer.as_mut() }, session::current()) else {
        return;
    };
    let now = clock::before(true);
    let site = session.sites.id(session, sites::key(origin.address(), api, 0), false);
    let site = stacks::number(session, &mut this.stack, kind, site);
    this.write(kind, &Event::new(kind, site, now, now, operands));
}

// ---- facts ----------------------------------------------------------------------------------

/// The context that the thread uses from here on; an event only when it changed.
#[inline(always)]
pub fn context_current(context: u64) {
    let writer = writer();
    // SAFETY: the thread's own writer, when there is one.
    if let Some(this) = unsafe { writer.as_mut() }
        && this.context != context
    {
        this.context = context;
        note(this, Kind::ContextCurrent, [context, 0, 0, 0, 0]);
    }
}

/// The device that the thread's runtime calls use from here on.
#[inline(always)]
pub fn device_current(device: i64) {
    let writer = writer();
    // SAFETY: the thread's own writer, when there is one.
    if let Some(this) = unsafe { writer.as_mut() }
        && this.device != device
    {
        this.device = device;
        note(this, Kind::DeviceCurrent, [device.cast_unsigned(), 0, 0, 0, 0]);
    }
}

/// The device of the thread's context, as the driver told it; an event only when it is news.
#[inline(always)]
pub fn context_device(device: u64) {
    let writer = writer();
    // SAFETY: the thread's own writer, when there is one.
    if let Some(this) = unsafe { writer.as_mut() }
        && this.context != 0
        && this.told != this.context
    {
        this.told = this.context;
        note(this, Kind::ContextDevice, [this.context, device, 0, 0, 0]);
    }
}

/// A fact without a call site.
#[cold]
#[inline(never)]
fn note(this: &mut Writer, kind: Kind, operands: [u64; 5]) {
    let now = clock::after(false);
    this.write(kind, &Event::new(kind, 0, now, now, operands));
}

/// A fact without a call site, on this thread.
#[cold]
pub fn fact(kind: Kind, operands: [u64; 5], text: &[u8]) {
    // SAFETY: the thread's own writer, when there is one.
    if let Some(this) = unsafe { writer().as_mut() } {
        let now = clock::after(false);
        let mut event = Event::new(kind, 0, now, now, operands);
        let limit = gmmtrace_format::event::MAX_TEXT;
        if text.len() > limit {
            event.flags = Flags::CUT;
        }
        event.text = text.get(..text.len().min(limit)).unwrap_or(&[]);
        this.write(kind, &event);
    }
}
