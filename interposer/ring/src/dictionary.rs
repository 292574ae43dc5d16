//! Definitions: appended by any thread, without a lock.
//!
//! A definition's place is claimed by compare-and-swap of its length into a word that was 0.
//! Whoever loses reads the winner's length and tries behind it. A claimed definition becomes
//! visible when its word is stored again with the `COMPLETE` bit (release); a reader that sees
//! the bit (acquire) sees the body, and one that does not steps over the length.
//!
//!     0 ──claim (CAS)──▶ length ──complete (release)──▶ length | kind | COMPLETE

use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};

use gmmtrace_format::definition::{COMPLETE, Definition, LENGTH, MAX_DEFINITION};
use gmmtrace_format::header::Anchor;
use gmmtrace_format::layout::{CHUNK_HEADER, CONTENT_DEFINITIONS, PAYLOAD};

use crate::chunk::{Chunk, Opening};
use crate::file::LogFile;

/// The dictionary of one log.
pub struct Dictionary {
    /// The chunk being filled, or null.
    current: AtomicPtr<u8>,
    /// Where the next claim is tried first, in `current`'s payload. A hint: it may lag.
    tail: AtomicUsize,
}

impl Default for Dictionary {
    fn default() -> Self {
        Self::new()
    }
}

impl Dictionary {
    /// An empty dictionary.
    #[must_use]
    pub const fn new() -> Self {
        Self { current: AtomicPtr::new(core::ptr::null_mut()), tail: AtomicUsize::new(0) }
    }

    /// Appends a definition. False when the log has no room for it.
    pub fn define(&self, log: &LogFile, now: Anchor, definition: &Definition<'_>) -> bool {
        let mut body = [0; MAX_DEFINITION];
        let Some(word) = definition.encode(&mut body) else { return false };
        let length = (word & LENGTH) as usize;
        let mut address = self.current.load(Ordering::Acquire);
        let mut from = self.tail.load(Ordering::Relaxed);
        loop {
            if !address.is_null()
                && let Some(place) = claim(address, from, length as u32)
            {
                self.tail.store(place + length, Ordering::Relaxed);
                fill(address, place, word, body.get(..length - 4).unwrap_or(&[]));
                return true;
            }
            let Some(next) = self.replace(log, now, address) else { return false };
            address = next;
            from = 0;
        }
    }

    /// The chunk to use instead of `full`: another thread's, or a new one.
    fn replace(&self, log: &LogFile, now: Anchor, full: *mut u8) -> Option<*mut u8> {
        let current = self.current.load(Ordering::Acquire);
        if current != full {
            return Some(current);
        }
        let fresh = log.take()?;
        // SAFETY: `take` hands out a populated slot that nobody else has.
        let chunk = unsafe { Chunk::at(fresh) };
        chunk.open(&Opening {
            tid: 0,
            writer: 0,
            sequence: 0,
            content: CONTENT_DEFINITIONS,
            base: 0,
            taken: now,
        });
        chunk.commit(PAYLOAD);
        let swap = self.current.compare_exchange(full, fresh, Ordering::AcqRel, Ordering::Acquire);
        match swap {
            Ok(_) => {
                self.tail.store(0, Ordering::Relaxed);
                Some(fresh)
            }
            // The other thread's chunk is used; ours stays an empty dictionary.
            Err(other) => Some(other),
        }
    }
}

fn word_at<'a>(address: *mut u8, place: usize) -> &'a AtomicU32 {
    // SAFETY: `place` is below PAYLOAD and a multiple of 8; dictionary chunks are never
    // unmapped.
    unsafe { &*address.add(CHUNK_HEADER + place).cast::<AtomicU32>() }
}

/// Claims `length` bytes at or behind `from`.
fn claim(address: *mut u8, from: usize, length: u32) -> Option<usize> {
    let mut place = from;
    loop {
        if place.checked_add(length as usize)? > PAYLOAD {
            return None;
        }
        let word = word_at(address, place);
        match word.compare_exchange(0, length, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return Some(place),
            Err(taken) => place += ((taken & LENGTH) as usize).max(8),
        }
    }
}

fn fill(address: *mut u8, place: usize, word: u32, body: &[u8]) {
    // SAFETY: the claim made these bytes ours, and they end before PAYLOAD.
    let target = unsafe {
        core::slice::from_raw_parts_mut(address.add(CHUNK_HEADER + place + 4), body.len())
    };
    target.copy_from_slice(body);
    debug_assert!(word & COMPLETE != 0);
    // Release: meets the reader's acquire load of the word.
    word_at(address, place).store(word, Ordering::Release);
}
