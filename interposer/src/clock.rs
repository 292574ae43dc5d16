//! Stamps: the time-stamp counter where the kernel trusts it, else CLOCK_MONOTONIC.

use core::sync::atomic::{AtomicBool, Ordering};

use gmmtrace_format::header::Anchor;
use gmmtrace_format::layout::Clock;

static MONOTONIC: AtomicBool = AtomicBool::new(false);

/// Decides on the clock; once, when a log begins.
pub fn choose() -> Clock {
    let path = c"/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let mut text = [0; 8];
    let count = crate::options::read_file(path, &mut text);
    let trusted = text.get(..count).is_some_and(|text| text.starts_with(b"tsc"));
    MONOTONIC.store(!trusted, Ordering::Relaxed);
    if trusted { Clock::TimeStampCounter } else { Clock::Monotonic }
}

#[inline(always)]
fn counter() -> u64 {
    // SAFETY: every x86-64 processor has it; a host that forbids it (PR_SET_TSC) would have
    // to do so before its first CUDA call, and CUDA itself reads the counter.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[inline(always)]
fn fence() {
    // SAFETY: SSE2 is part of x86-64.
    unsafe { core::arch::x86_64::_mm_lfence() };
}

/// A stamp before a call. With `ordered`, everything before it is done when it is taken: the
/// pointer that is about to be freed may come from another thread, and a counter read that
/// overtakes its load would put the free before the allocation. Nothing is needed behind it: what
/// the call stores is seen by others only after the counter was read, because stores leave the
/// processor in program order once all before them has retired.
#[inline(always)]
pub fn before(ordered: bool) -> u64 {
    if MONOTONIC.load(Ordering::Relaxed) {
        return monotonic();
    }
    if ordered {
        fence();
    }
    counter()
}

/// A stamp after a call. With `ordered`, everything before it is done when it is taken.
#[inline(always)]
pub fn after(ordered: bool) -> u64 {
    if MONOTONIC.load(Ordering::Relaxed) {
        return monotonic();
    }
    if ordered {
        fence();
    }
    counter()
}

/// CLOCK_MONOTONIC in nanoseconds.
#[cold]
pub fn monotonic() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// CLOCK_REALTIME in nanoseconds.
pub fn realtime() -> u64 {
    read(libc::CLOCK_REALTIME)
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: clock_gettime fills the structure.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec
        .cast_unsigned()
        .wrapping_mul(1_000_000_000)
        .wrapping_add(time.tv_nsec.cast_unsigned())
}

/// This moment on both clocks.
pub fn now() -> Anchor {
    Anchor { ticks: before(false), monotonic_ns: monotonic() }
}

/// This moment before it is known which clock counts: the counter's ticks.
pub fn load_anchor() -> Anchor {
    Anchor { ticks: counter(), monotonic_ns: monotonic() }
}
