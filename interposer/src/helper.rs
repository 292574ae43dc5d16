//! The helper thread: keeps chunks ready, finds writers of ended threads, writes noted lookups,
//! samples device memory. Nothing waits for it and it waits for nobody; it sleeps and looks.
//!
//! It blocks all signals, is never joined, and is not recorded.

use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, Ordering};

use gmmtrace_ring::ErrnoGuard;

use crate::nvml::Nvml;
use crate::record::writer_state;
use crate::session::Session;
use crate::stacks::python;
use crate::{clock, lookup, options};

/// Shortest and longest sleep between two looks.
const SHORT_NS: u64 = 2_000_000;
const LONG_NS: u64 = 100_000_000;
/// Chunks kept ready: as many as were asked for between two looks, within these.
const FEWEST: usize = 2;

/// Fewest nanoseconds between a sample that was asked for and the one before.
const EARLY_NS: u64 = 100_000_000;

/// Whether somebody asked for a sample before its time.
static SAMPLE_WANTED: AtomicBool = AtomicBool::new(false);

/// Asks for a reading of device memory soon, because something was made that takes memory which
/// no call tells.
#[inline(always)]
pub fn ask_for_sample() {
    SAMPLE_WANTED.store(true, Ordering::Relaxed);
}

/// Starts it. False when the system gives no thread.
pub fn start(session: &'static Session) -> bool {
    let mut all = core::mem::MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = core::mem::MaybeUninit::<libc::sigset_t>::uninit();
    let mut thread: libc::pthread_t = 0;
    let argument = core::ptr::from_ref(session).cast_mut().cast::<c_void>();
    // SAFETY: plain pthread calls on structures of ours. The new thread inherits the blocked
    // signals; this thread's mask is put back.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
        let status = libc::pthread_create(&raw mut thread, core::ptr::null(), run, argument);
        libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), core::ptr::null_mut());
        if status == 0 {
            libc::pthread_detach(thread);
        }
        status == 0
    }
}

extern "C" fn run(argument: *mut c_void) -> *mut c_void {
    // SAFETY: what `start` gave: a session, which is never freed.
    let session: &'static Session = unsafe { &*argument.cast::<Session>() };
    // SAFETY: names this thread.
    unsafe { libc::prctl(libc::PR_SET_NAME, c"gmmtrace".as_ptr()) };
    let mut activity = 0;
    let mut noted = u64::MAX;
    let mut sleep = SHORT_NS;
    let mut sampled_at = 0;
    let mut nvml = None;
    let period = options::get().sample_ns;
    fill(session, FEWEST);
    loop {
        let now = session.activity.load(Ordering::Relaxed);
        let busy = now != activity;
        if busy {
            find_orphans(session);
            fill(session, usize::try_from(now.wrapping_sub(activity)).unwrap_or(usize::MAX));
            activity = now;
        }
        if noted != lookup::noted() {
            noted = lookup::noted();
            lookup::flush(session);
        }
        if options::python_stacks() != 0 {
            python::look(session);
        }
        session.log.header().tick(clock::now());
        let moment = clock::monotonic();
        let wanted = SAMPLE_WANTED.load(Ordering::Relaxed);
        let due = if wanted { period.min(EARLY_NS) } else { period };
        if period != 0 && moment.wrapping_sub(sampled_at) >= due {
            // Cleared first: who asks from here on asks for the next one.
            SAMPLE_WANTED.store(false, Ordering::Relaxed);
            sampled_at = moment;
            nvml.get_or_insert_with(|| Nvml::open(session)).sample(session);
        }
        session.log.write_back();
        sleep = if busy { SHORT_NS } else { (sleep * 2).min(LONG_NS) };
        let pause = libc::timespec { tv_sec: 0, tv_nsec: sleep.cast_signed() };
        // SAFETY: sleeps.
        unsafe { libc::nanosleep(&raw const pause, core::ptr::null_mut()) };
    }
}

/// Populates chunks until `wanted` are ready.
fn fill(session: &Session, wanted: usize) {
    for cell in session.ready.iter().take(wanted.max(FEWEST)) {
        if !cell.load(Ordering::Relaxed).is_null() {
            continue;
        }
        let Some(chunk) = session.log.take() else { return };
        // Only the helper fills cells, so an empty one stays empty until here.
        cell.store(chunk, Ordering::Release);
    }
}

/// Hands writers whose thread has ended to the next new thread, half-filled chunk and all.
fn find_orphans(session: &Session) {
    let errno = ErrnoGuard::new();
    let used = session.writers_used.load(Ordering::Acquire) as usize;
    for (index, writer) in session.writers.iter().take(used).enumerate() {
        if writer.state.load(Ordering::Acquire) != writer_state::LIVE {
            continue;
        }
        let tid = writer.tid.load(Ordering::Relaxed);
        if tid == 0 || alive(session, tid) {
            continue;
        }
        // The thread is gone, so nothing it wrote is still under way.
        let empty = session.orphans.iter().find(|cell| cell.load(Ordering::Relaxed) == 0);
        let Some(cell) = empty else { break };
        writer.state.store(writer_state::ORPHAN, Ordering::Release);
        cell.store(index as u32 + 1, Ordering::Release);
    }
    drop(errno);
}

fn alive(session: &Session, tid: u32) -> bool {
    // SAFETY: signal 0 only asks whether the thread is there.
    unsafe { libc::syscall(libc::SYS_tgkill, session.pid, tid, 0) == 0 }
}
