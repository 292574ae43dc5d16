//! What a thread keeps: two words in static thread-local storage, without a destructor.
//!
//! The storage is declared in assembly because stable Rust has no initial-exec model: reaching
//! it is two instructions and can neither allocate nor call the loader.

use crate::record::Writer;

core::arch::global_asm!(
    ".section .tbss.gmmtrace_local,\"awT\",@nobits",
    ".p2align 4",
    ".globl gmmtrace_local",
    ".hidden gmmtrace_local",
    ".type gmmtrace_local, @object",
    ".size gmmtrace_local, 16",
    "gmmtrace_local:",
    ".zero 16",
    ".previous",
);

/// A thread's own words; all zeros at its start.
#[repr(C)]
pub struct Local {
    /// Generation of the session that `writer` belongs to.
    pub generation: u64,
    /// The thread's writer, or null.
    pub writer: *mut Writer,
}

/// This thread's words.
#[inline(always)]
pub fn local() -> *mut Local {
    let address: *mut Local;
    // SAFETY: reads the thread pointer and adds the symbol's constant offset.
    unsafe {
        core::arch::asm!(
            "mov {0}, qword ptr fs:[0]",
            "add {0}, qword ptr [rip + gmmtrace_local@GOTTPOFF]",
            out(reg) address,
            options(pure, readonly, nostack),
        );
    }
    address
}
