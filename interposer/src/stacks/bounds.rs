//! What of a thread's stack can be read: from its stack pointer up to the stack's top, every page
//! of it seen by the kernel once. Pages of a stack that is in use do not go away.

use core::ffi::c_void;
use core::sync::atomic::{AtomicU64, Ordering};

const PAGE: u64 = 4096;
/// Pages that one call asks for.
const PAGES: usize = 64;
/// A stack in use is not larger than this.
const LARGEST: u64 = 256 << 20;

/// Bounds of the thread's own stack. All zeros is unknown.
pub struct Bounds {
    low: u64,
    high: u64,
}

/// The thread that loads the library, which is the process's first; its stack is the one that the
/// kernel made.
static FIRST: AtomicU64 = AtomicU64::new(0);

/// Remembers which thread is the process's first. The loader's thread calls it.
pub fn loaded() {
    // SAFETY: no preconditions.
    FIRST.store(unsafe { libc::pthread_self() }, Ordering::Relaxed);
}

impl Bounds {
    /// Forgets them, because another thread has them from here on.
    pub fn forget(&mut self) {
        *self = Self { low: 0, high: 0 };
    }

    /// The top of the stack, if all between the stack pointer and it can be read. `None` on a
    /// stack that is not the thread's own: that of a signal handler or a coroutine.
    #[inline(always)]
    pub fn top(&mut self, stack: u64) -> Option<u64> {
        if self.low <= stack && stack < self.high {
            return Some(self.high);
        }
        self.find(stack)
    }

    #[cold]
    #[inline(never)]
    fn find(&mut self, stack: u64) -> Option<u64> {
        let low = stack & !(PAGE - 1);
        if self.high != 0 && stack < self.low && self.low - low <= LARGEST {
            if !readable(low, self.low) {
                return None;
            }
            self.low = low;
            return Some(self.high);
        }
        // SAFETY: no preconditions.
        let own = unsafe { libc::pthread_self() };
        let top = if own == FIRST.load(Ordering::Relaxed) {
            // The kernel has put the program's name there.
            // SAFETY: no preconditions.
            unsafe { libc::getauxval(libc::AT_EXECFN) }
        } else {
            // The C library keeps a thread's own data there. Its guard lies below, so that a stack
            // elsewhere is not taken for a part of this one.
            own
        } & !7;
        if stack < top && top - stack <= LARGEST && readable(low, top) {
            *self = Self { low, high: top };
            return Some(top);
        }
        None
    }
}

/// Whether every page from `low` up to `high` can be read, by the kernel.
fn readable(low: u64, high: u64) -> bool {
    let mut bytes = [0_u8; PAGES];
    let mine = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: PAGES };
    let mut at = low;
    while at < high {
        let none = libc::iovec { iov_base: core::ptr::null_mut(), iov_len: 0 };
        let mut theirs = [none; PAGES];
        let mut count = 0;
        for place in &mut theirs {
            if at >= high {
                break;
            }
            *place = libc::iovec { iov_base: at as *mut c_void, iov_len: 1 };
            at += PAGE;
            count += 1;
        }
        // SAFETY: reads a byte each of this process's own pages; refuses those that are not there.
        let read = unsafe {
            let own = libc::getpid();
            libc::process_vm_readv(own, &raw const mine, 1, theirs.as_ptr(), count, 0)
        };
        if usize::try_from(read).ok() != usize::try_from(count).ok() {
            return false;
        }
    }
    true
}
