//! The mapped log file: chunks, commit words, definitions and loss counters.
//!
//! This crate owns the memory that the log is written to. Its code runs inside a stranger's
//! process, on the stranger's threads, so it never panics, never allocates, never takes a lock
//! that a signal handler or a fork could find held, and never closes or writes through a
//! descriptor whose file it has not just recognised. Nothing here needs a flush or a close:
//! what was committed is in the page cache and outlives the process.
//!
//! `docs/trace-format.md` draws the states and names, for each release store below, the acquire
//! load that meets it.

mod chunk;
mod dictionary;
mod file;
#[cfg(test)]
mod tests;
mod window;

pub use chunk::{Chunk, Header, Opening};
pub use dictionary::Dictionary;
pub use file::{Backing, CreateError, LogFile, Name, PATH_SPACE};

/// Keeps `errno` as the host left it: put on the stack before anything that may fail.
pub struct ErrnoGuard(libc::c_int);

impl ErrnoGuard {
    /// Remembers `errno`.
    #[must_use]
    pub fn new() -> Self {
        // SAFETY: __errno_location returns this thread's errno, valid as long as the thread.
        Self(unsafe { *libc::__errno_location() })
    }
}

impl Default for ErrnoGuard {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for ErrnoGuard {
    fn drop(&mut self) {
        // SAFETY: as in `new`.
        unsafe { *libc::__errno_location() = self.0 };
    }
}

/// This thread's `errno`.
#[must_use]
pub fn errno() -> i32 {
    // SAFETY: __errno_location returns this thread's errno, valid as long as the thread.
    unsafe { *libc::__errno_location() }
}
