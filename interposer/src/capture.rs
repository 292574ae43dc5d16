//! Which streams are being captured into graphs, without asking CUDA.
//!
//! Told by the hooks of capture, events and waits; asked by every call that names a stream.
//!
//! ```text
//!          begin                  event recorded on it, another stream waits for the event
//! stream ─────────▶ captured ────────────────────────────────────▶ the other is captured too
//!    ▲                 │
//!    └─────────────────┘ end on the stream that it began on: for all of them, and their events
//! ```
//!
//! No lock and no allocation: two tables of fixed size whose cells are claimed by one exchange.
//! While nothing is captured, asking costs one relaxed load. What does not fit the tables is
//! counted, and until the captures have ended every call is in doubt (`during_capture`).
//!
//! A cell's key appears after its origin, so that whoever finds the key finds the origin. Calls on
//! one stream are ordered by the host itself; between threads that use one stream without any
//! order it is not defined which of them were captured, for CUDA as for us.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use gmmtrace_format::kind::capture::REFUSED;

use crate::thread::local;

/// Streams that can be followed at a time.
const STREAMS: usize = 64;
/// Events that can be followed at a time.
const EVENTS: usize = 512;
/// Key of a cell that is being written.
const CLAIMED: u64 = u64::MAX;
/// Key of the legacy default stream.
const LEGACY: u64 = 1;
/// The flag of a record or wait that makes a node of its own instead of joining streams.
const EXTERNAL: u32 = 1;

struct Cell {
    key: AtomicU64,
    origin: AtomicU64,
}

struct Table<const N: usize> {
    cells: [Cell; N],
    /// Cells from here on were never used.
    used: AtomicU32,
}

impl<const N: usize> Table<N> {
    const fn new() -> Self {
        let cells = [const { Cell { key: AtomicU64::new(0), origin: AtomicU64::new(0) } }; N];
        Self { cells, used: AtomicU32::new(0) }
    }

    fn used(&self) -> impl Iterator<Item = &Cell> {
        self.cells.iter().take(self.used.load(Ordering::Acquire) as usize)
    }

    fn find(&self, key: u64) -> Option<&Cell> {
        self.used().find(|cell| cell.key.load(Ordering::Acquire) == key)
    }

    /// False when there is no room.
    fn insert(&self, key: u64, origin: u64) -> bool {
        if let Some(cell) = self.find(key) {
            cell.origin.store(origin, Ordering::Release);
            return true;
        }
        for (index, cell) in self.cells.iter().enumerate() {
            let claimed =
                cell.key.compare_exchange(0, CLAIMED, Ordering::AcqRel, Ordering::Relaxed);
            if claimed.is_ok() {
                self.used.fetch_max(index as u32 + 1, Ordering::AcqRel);
                cell.origin.store(origin, Ordering::Relaxed);
                cell.key.store(key, Ordering::Release);
                return true;
            }
        }
        false
    }

    fn remove(&self, key: u64) {
        if let Some(cell) = self.find(key) {
            cell.key.store(0, Ordering::Release);
        }
    }

    fn remove_of(&self, origin: u64) {
        for cell in self.used() {
            let key = cell.key.load(Ordering::Acquire);
            if key != CLAIMED && key != 0 && cell.origin.load(Ordering::Relaxed) == origin {
                cell.key.store(0, Ordering::Release);
            }
        }
    }

    fn clear(&self) {
        for cell in self.used() {
            cell.key.store(0, Ordering::Release);
        }
    }
}

static TRACKED: Table<STREAMS> = Table::new();
static RECORDED: Table<EVENTS> = Table::new();
/// Captures that have begun and not ended.
static ACTIVE: AtomicU32 = AtomicU32::new(0);
/// Whether one of them could not be followed in all its streams.
static DOUBTFUL: AtomicU32 = AtomicU32::new(0);

/// What a stream argument stands for. The default streams have several names; the per-thread one
/// is another stream in each thread.
#[inline(always)]
pub fn key(stream: u64, per_thread: bool) -> u64 {
    match stream {
        0 if !per_thread => LEGACY,
        1 => LEGACY,
        // A thread's own words are aligned, and so never the address of a stream.
        0 | 2 => local() as u64 | 1,
        handle => handle,
    }
}

/// Whether anything is being captured.
#[inline(always)]
pub fn active() -> bool {
    ACTIVE.load(Ordering::Relaxed) != 0
}

/// The stream on which the capture began that this stream belongs to.
#[cold]
pub fn origin(key: u64) -> Option<u64> {
    TRACKED.find(key).map(|cell| cell.origin.load(Ordering::Relaxed))
}

/// Whether captured calls may go unrecognised.
#[cold]
pub fn doubtful() -> bool {
    DOUBTFUL.load(Ordering::Relaxed) != 0
}

/// A capture has begun on a stream.
#[cold]
pub fn begun(key: u64) {
    // A stream in a capture cannot begin one: the end of that was not seen.
    match origin(key) {
        Some(capture) if capture == key => over(key),
        Some(_) => TRACKED.remove(key),
        None => {}
    }
    follow(key, key);
    ACTIVE.fetch_add(1, Ordering::AcqRel);
}

fn follow(key: u64, origin: u64) {
    if !TRACKED.insert(key, origin) {
        DOUBTFUL.store(1, Ordering::Relaxed);
    }
}

/// The end of a capture was asked for, with this result.
#[cold]
pub fn ended(key: u64, status: u32) {
    if active() && !REFUSED.contains(&status) {
        over(key);
    }
}

fn over(origin: u64) {
    TRACKED.remove_of(origin);
    RECORDED.remove_of(origin);
    let less = |count: u32| count.checked_sub(1);
    let before = ACTIVE.fetch_update(Ordering::AcqRel, Ordering::Acquire, less);
    if before == Ok(1) {
        DOUBTFUL.store(0, Ordering::Relaxed);
    }
}

/// An event was recorded: in a captured stream it stands for the work captured so far.
#[inline(always)]
pub fn recorded(event: u64, stream: u64, per_thread: bool, flags: u32) {
    if active() && flags & EXTERNAL == 0 {
        note_event(event, key(stream, per_thread));
    }
}

#[cold]
#[inline(never)]
fn note_event(event: u64, stream: u64) {
    match origin(stream) {
        Some(origin) if !RECORDED.insert(event, origin) => DOUBTFUL.store(1, Ordering::Relaxed),
        Some(_) => {}
        None => RECORDED.remove(event),
    }
}

/// A stream waits for an event: for a captured one it joins the capture.
#[inline(always)]
pub fn waits(stream: u64, per_thread: bool, event: u64, flags: u32) {
    if active() && flags & EXTERNAL == 0 {
        join(key(stream, per_thread), event);
    }
}

#[cold]
#[inline(never)]
fn join(stream: u64, event: u64) {
    let found = RECORDED.find(event).map(|cell| cell.origin.load(Ordering::Relaxed));
    if let Some(capture) = found
        && origin(stream) != Some(capture)
    {
        follow(stream, capture);
    }
}

/// An event is gone; its handle may be given out again.
#[inline(always)]
pub fn event_gone(event: u64) {
    if active() {
        RECORDED.remove(event);
    }
}

/// A stream is gone, and with it a capture that began on it.
#[inline(always)]
pub fn stream_gone(stream: u64) {
    if active() {
        match origin(stream) {
            Some(capture) if capture == stream => over(stream),
            Some(_) => TRACKED.remove(stream),
            None => {}
        }
    }
}

/// Captures do not outlive a fork.
#[cold]
pub fn forget() {
    TRACKED.clear();
    RECORDED.clear();
    ACTIVE.store(0, Ordering::Release);
    DOUBTFUL.store(0, Ordering::Relaxed);
}
