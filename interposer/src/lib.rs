//! `libgmmtrace.so`: records the GPU memory calls of the process it is preloaded into.
//!
//! # What code here must never do
//!
//! It runs on the host's threads, inside the host's calls. So it never
//!
//! - makes the host's call twice or not at all, or changes its result or `errno`;
//! - calls CUDA by itself;
//! - panics (there is no unwinding out of `extern "C"`), or reaches code that could;
//! - takes a lock, allocates or makes a system call on the hot path: those happen when a thread
//!   first appears, when a chunk is full, and when a call site is new;
//! - touches a descriptor, signal handler or thread of the host's;
//! - does anything at all before the first CUDA call: shells and compilers inherit LD_PRELOAD.
//!
//! If anything is wrong, the real function is called, the loss is counted, and nothing is said.
//!
//! # The way of an event
//!
//! `stub` (return address) → `hooks` (one row per entry point) → `record` (stamps, in-flight
//! slot, encoding) → the thread's chunk in the mapped log (`gmmtrace-ring`). How a caller comes
//! to call a stub instead of the real function is told in `lookup`.
#![allow(non_snake_case, reason = "CUDA symbols keep CUDA's spelling")]

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
compile_error!("libgmmtrace.so exists for x86-64 Linux so far");

mod capture;
mod clock;
mod helper;
mod hooks;
mod libc_symbols;
mod lookup;
mod nvml;
mod options;
mod record;
mod session;
mod sites;
mod stacks;
mod stub;
mod table;
mod thread;

/// Runs when the library is loaded: reads the options and nothing else.
extern "C" fn loaded() {
    options::read();
}

/// Runs when the host calls `exit`.
extern "C" fn exiting() {
    session::exiting();
}

#[used]
#[unsafe(link_section = ".init_array")]
static LOADED: extern "C" fn() = loaded;
#[used]
#[unsafe(link_section = ".fini_array")]
static EXITING: extern "C" fn() = exiting;
