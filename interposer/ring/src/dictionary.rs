//! Definitions: appended by any thread, without a lock.
//!
//! A definition's place is claimed by compare-and-swap of its length into a word that was 0.
//! Whoever loses reads the winner's length and tries behind it. A claimed definition becomes
//! visible when its word is stored again with the `COMPLETE` bit (release); a reader that sees
//! the bit (acquire) sees the body, and one that does not steps over the length.
//!
//! ```text
//! 0 ──claim (CAS)──▶ length ──complete (release)──▶ length | kind | COMPLETE
//! ```
//!
//! Places are claimed one behind the other, from the start of the payload. Where to try first
//! is a hint, kept in the chunk's own `committed` word: a hint kept beside the pointer to the
//! chunk could belong to another chunk, and a claim there would leave a hole, behind which no
//! reader looks, or would lie inside another definition.

use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use gmmtrace_format::definition::{ALIGN, COMPLETE, Definition, LENGTH, MAX_DEFINITION};
use gmmtrace_format::header::Anchor;
use gmmtrace_format::layout::{CHUNK_HEADER, CONTENT_DEFINITIONS, Counter, PAYLOAD, chunk};

use crate::chunk::{Chunk, Opening};
use crate::file::LogFile;

/// The dictionary of one log.
pub struct Dictionary {
    /// The chunk being filled, or null.
    current: AtomicPtr<u8>,
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
        Self { current: AtomicPtr::new(core::ptr::null_mut()) }
    }

    /// Appends a definition. When the log has no room for it, that is counted there.
    pub fn define(&self, log: &LogFile, now: Anchor, definition: &Definition<'_>) {
        // SAFETY: a log hands out populated slots that nobody else has, and never unmaps them.
        if !unsafe { self.append(&|| log.take(), now, definition) } {
            log.header().count(Counter::LostDefinitions, 1);
        }
    }

    /// As [`Dictionary::define`], with chunks from elsewhere.
    ///
    /// # Safety
    /// `take` hands out zeroed slots that nobody else has, each time another one; they stay
    /// where they are for as long as the dictionary is used.
    pub(crate) unsafe fn append(
        &self,
        take: &dyn Fn() -> Option<*mut u8>,
        now: Anchor,
        definition: &Definition<'_>,
    ) -> bool {
        let mut body = [0; MAX_DEFINITION];
        let Some(word) = definition.encode(&mut body) else { return false };
        let length = word & LENGTH;
        let Some(body) = body.get(..(length as usize).saturating_sub(4)) else { return false };
        let mut address = self.current.load(Ordering::Acquire);
        loop {
            if !address.is_null()
                && let Some(place) = claim(address, length)
            {
                fill(address, place, word, body);
                return true;
            }
            let Some(next) = self.replace(take, now, address) else { return false };
            address = next;
        }
    }

    /// The chunk to use instead of `full`: another thread's, or a new one.
    fn replace(
        &self,
        take: &dyn Fn() -> Option<*mut u8>,
        now: Anchor,
        full: *mut u8,
    ) -> Option<*mut u8> {
        let current = self.current.load(Ordering::Acquire);
        if current != full {
            return Some(current);
        }
        let fresh = take()?;
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
        // Release: a thread that finds the chunk here (acquire) finds it open.
        let swap = self.current.compare_exchange(full, fresh, Ordering::AcqRel, Ordering::Acquire);
        match swap {
            Ok(_) => Some(fresh),
            // The other thread's chunk is used; ours stays an empty dictionary.
            Err(other) => Some(other),
        }
    }
}

/// Where the next claim in the chunk is tried first: the end of some claimed definition, or 0.
fn hint<'a>(address: *mut u8) -> &'a AtomicU32 {
    // SAFETY: a whole slot, never unmapped; the offset is a layout constant, aligned.
    unsafe { &*address.add(chunk::COMMITTED).cast::<AtomicU32>() }
}

fn word_at<'a>(address: *mut u8, place: usize) -> &'a AtomicU32 {
    // SAFETY: `place` is below PAYLOAD and a multiple of 8; dictionary chunks are never
    // unmapped.
    unsafe { &*address.add(CHUNK_HEADER + place).cast::<AtomicU32>() }
}

/// Claims the first `length` bytes of the payload that nobody has claimed.
fn claim(address: *mut u8, length: u32) -> Option<usize> {
    let mut place = hint(address).load(Ordering::Relaxed) as usize;
    loop {
        let end = place.checked_add(length as usize).filter(|&end| end <= PAYLOAD)?;
        let word = word_at(address, place);
        match word.compare_exchange(0, length, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => {
                // May move back when another thread stored its own later: then it lags.
                hint(address).store(end as u32, Ordering::Relaxed);
                return Some(place);
            }
            Err(taken) => place += ((taken & LENGTH) as usize).max(ALIGN),
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
