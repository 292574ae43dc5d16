//! The protocol over plain memory. Nothing here needs a file, so miri can run `memory`;
//! `stopped` needs a second process.

mod memory;
#[cfg(not(miri))]
mod stopped;

use core::sync::atomic::{AtomicUsize, Ordering};

use gmmtrace_format::definition::{Definition, Definitions};
use gmmtrace_format::header::Anchor;
use gmmtrace_format::layout::{CHUNK_HEADER, CHUNK_SIZE};

/// Moment at which every chunk of these tests is taken.
const TAKEN: Anchor = Anchor { ticks: 900, monotonic_ns: 300 };

/// Zeroed slots in a row, handed out one after the other.
struct Slots {
    address: *mut u8,
    count: usize,
    next: AtomicUsize,
}

// SAFETY: the memory is reached through the ring's own methods only, while threads run.
unsafe impl Sync for Slots {}

impl Slots {
    /// Slots in memory that starts at `address`.
    fn at(address: *mut u8, count: usize) -> Self {
        Self { address, count, next: AtomicUsize::new(0) }
    }

    fn take(&self) -> Option<*mut u8> {
        let index = self.next.fetch_add(1, Ordering::Relaxed);
        (index < self.count).then(|| self.address.wrapping_add(index * CHUNK_SIZE))
    }

    /// A slot's payload, while nobody writes.
    fn payload(&self, index: usize) -> &[u8] {
        let start = self.address.wrapping_add(index * CHUNK_SIZE + CHUNK_HEADER);
        // SAFETY: a whole slot; the writers are done.
        unsafe { core::slice::from_raw_parts(start, CHUNK_SIZE - CHUNK_HEADER) }
    }

    /// Every definition in the slots that were handed out.
    fn definitions(&self) -> Vec<Definition<'_>> {
        let used = self.next.load(Ordering::Relaxed).min(self.count);
        (0..used)
            .flat_map(|index| Definitions::new(self.payload(index)))
            .map(|definition| definition.expect("a whole definition"))
            .collect()
    }
}
