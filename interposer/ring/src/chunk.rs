//! Access to one mapped chunk and to the file header.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use gmmtrace_format::header::{Anchor, InFlight};
use gmmtrace_format::layout::{CHUNK_HEADER, Counter, MAGIC, PAYLOAD, State, chunk, file};

/// A slot of the log that one thread owns.
///
/// Only the owner calls the methods that write; readers are other processes.
#[derive(Clone, Copy, Debug)]
pub struct Chunk {
    address: *mut u8,
}

/// What a chunk says about itself when it is opened.
#[derive(Clone, Copy, Debug)]
pub struct Opening {
    /// Kernel id of the owner, 0 for a dictionary.
    pub tid: u32,
    /// Ordinal of the writer, from 1; 0 for a dictionary.
    pub writer: u32,
    /// Which chunk of that writer this is.
    pub sequence: u32,
    /// `layout::CONTENT_EVENTS` or `layout::CONTENT_DEFINITIONS`.
    pub content: u32,
    /// No event takes effect before it.
    pub base: u64,
    /// When the chunk was taken.
    pub taken: Anchor,
}

impl Chunk {
    /// The chunk at `address`.
    ///
    /// # Safety
    /// `address` is a populated slot of a mapping that is never unmapped while the chunk is
    /// used, aligned to 8 bytes, and nobody else writes to it.
    #[must_use]
    pub unsafe fn at(address: *mut u8) -> Self {
        Self { address }
    }

    #[inline(always)]
    fn word(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: `at` promises a whole mapped slot; the offsets are layout constants, aligned.
        unsafe { &*self.address.add(offset).cast::<AtomicU32>() }
    }

    #[inline(always)]
    fn double(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: as in `word`.
        unsafe { &*self.address.add(offset).cast::<AtomicU64>() }
    }

    /// Writes the header and publishes it: Empty → Open.
    pub fn open(&self, opening: &Opening) {
        self.word(chunk::TID).store(opening.tid, Ordering::Relaxed);
        self.word(chunk::THREAD).store(opening.writer, Ordering::Relaxed);
        self.word(chunk::SEQUENCE).store(opening.sequence, Ordering::Relaxed);
        self.word(chunk::CONTENT).store(opening.content, Ordering::Relaxed);
        self.double(chunk::BASE).store(opening.base, Ordering::Relaxed);
        self.double(chunk::TAKEN_TICKS).store(opening.taken.ticks, Ordering::Relaxed);
        self.double(chunk::TAKEN_MONOTONIC).store(opening.taken.monotonic_ns, Ordering::Relaxed);
        // Release: a reader that sees Open (acquire) sees the fields above.
        self.word(chunk::STATE).store(State::Open as u32, Ordering::Release);
    }

    /// Gives the chunk up: Open → Sealed.
    pub fn seal(&self) {
        // Release: a reader that sees Sealed (acquire) sees every event.
        self.word(chunk::STATE).store(State::Sealed as u32, Ordering::Release);
    }

    /// The payload from `at` on, to be written before [`Chunk::commit`].
    ///
    /// # Safety
    /// The caller owns the chunk, holds no other slice of it, and writes only bytes that it has
    /// not committed yet.
    #[must_use]
    #[inline(always)]
    pub unsafe fn payload<'a>(&self, at: usize) -> &'a mut [u8] {
        let at = if at > PAYLOAD { PAYLOAD } else { at };
        // SAFETY: `at` lies within the slot; the caller promises exclusive use.
        unsafe {
            core::slice::from_raw_parts_mut(self.address.add(CHUNK_HEADER + at), PAYLOAD - at)
        }
    }

    /// Publishes the first `length` bytes of the payload.
    #[inline(always)]
    pub fn commit(&self, length: usize) {
        // Release: a reader that sees the length (acquire) sees the bytes.
        self.word(chunk::COMMITTED).store(length as u32, Ordering::Release);
    }

    /// Notes the driver call that is about to be made.
    #[inline(always)]
    pub fn driver_call(&self, api: u16, ticks: u64, argument: u64) {
        self.double(chunk::DRIVER_CALL + 8).store(argument, Ordering::Relaxed);
        self.double(chunk::DRIVER_CALL).store(InFlight::word(api, ticks), Ordering::Release);
    }

    /// Notes the runtime call that is about to be made.
    #[inline(always)]
    pub fn runtime_call(&self, api: u16, ticks: u64, argument: u64) {
        self.double(chunk::RUNTIME_CALL + 8).store(argument, Ordering::Relaxed);
        self.double(chunk::RUNTIME_CALL).store(InFlight::word(api, ticks), Ordering::Release);
    }

    /// Notes that the runtime call has returned.
    #[inline(always)]
    pub fn runtime_returned(&self) {
        self.double(chunk::RUNTIME_CALL).store(0, Ordering::Release);
    }

    /// Takes the open runtime call over from the chunk that this one follows.
    pub fn inherit(&self, former: &Self) {
        let argument = former.double(chunk::RUNTIME_CALL + 8).load(Ordering::Relaxed);
        let word = former.double(chunk::RUNTIME_CALL).load(Ordering::Relaxed);
        self.double(chunk::RUNTIME_CALL + 8).store(argument, Ordering::Relaxed);
        self.double(chunk::RUNTIME_CALL).store(word, Ordering::Release);
        former.runtime_returned();
    }
}

/// The file header, shared by all threads of the process.
#[derive(Clone, Copy, Debug)]
pub struct Header {
    address: *mut u8,
}

// SAFETY: all access goes through atomics or happens before the header is published.
unsafe impl Send for Header {}
// SAFETY: as above.
unsafe impl Sync for Header {}

impl Header {
    /// The header at `address`.
    ///
    /// # Safety
    /// As for [`Chunk::at`], except that any thread may use it.
    #[must_use]
    pub unsafe fn at(address: *mut u8) -> Self {
        Self { address }
    }

    fn double(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: `at` promises a whole mapped slot; the offsets are layout constants, aligned.
        unsafe { &*self.address.add(offset).cast::<AtomicU64>() }
    }

    /// The whole header, to be filled before [`Header::publish`].
    ///
    /// # Safety
    /// The header is not published yet and the caller is alone.
    #[must_use]
    pub unsafe fn bytes<'a>(&self) -> &'a mut [u8] {
        // SAFETY: a whole mapped slot, exclusive by the caller's promise.
        unsafe {
            core::slice::from_raw_parts_mut(self.address, gmmtrace_format::layout::CHUNK_SIZE)
        }
    }

    /// Makes the header readable: everything before this store is seen with the magic number.
    pub fn publish(&self) {
        self.double(file::MAGIC).store(u64::from_le_bytes(MAGIC), Ordering::Release);
    }

    /// Notes that so many slots were taken.
    pub fn taken(&self, slots: u32) {
        self.double(file::SLOTS).fetch_max(u64::from(slots), Ordering::Relaxed);
    }

    /// Adds to a counter.
    pub fn count(&self, counter: Counter, amount: u64) {
        self.double(file::COUNTERS + 8 * counter as usize).fetch_add(amount, Ordering::Relaxed);
    }

    /// Sets a counter.
    pub fn set(&self, counter: Counter, value: u64) {
        self.double(file::COUNTERS + 8 * counter as usize).store(value, Ordering::Relaxed);
    }

    /// Notes that the process lives at this moment. One caller at a time.
    pub fn tick(&self, now: Anchor) {
        let sequence = self.double(file::LAST_SEQUENCE);
        let odd = sequence.load(Ordering::Relaxed) | 1;
        sequence.store(odd, Ordering::Release);
        self.double(file::LAST_TICKS).store(now.ticks, Ordering::Release);
        self.double(file::LAST_MONOTONIC).store(now.monotonic_ns, Ordering::Release);
        sequence.store(odd.wrapping_add(1), Ordering::Release);
    }

    /// Notes that the process called `exit`.
    pub fn exited(&self, ticks: u64) {
        self.double(file::EXIT_TICKS).store(ticks, Ordering::Release);
    }
}
