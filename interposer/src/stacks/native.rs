//! Native frames of the calling thread, by the unwind tables of the loaded objects.
//!
//! The walk neither allocates nor locks. It reads the thread's own stack, between the stack pointer
//! and the top, of which every page was seen to be there; what a damaged frame names outside of it
//! ends the walk and is a gap. Rules are kept by return address: most steps are one look in a table
//! and two reads of the stack.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use gmmtrace_format::definition::{Definition, gap};
use gmmtrace_unwind::{Object, Rule};

use super::bounds::Bounds;
use super::{FrameKey, define};
use crate::session::Session;
use crate::sites;

/// Frames of a thread that are read; those further out are a gap.
const DEEPEST: usize = 256;
/// Return addresses whose rules are kept.
const KEPT: usize = 1 << 16;
const TRIES: usize = 16;

/// Rules by return address. All zeros is empty.
pub struct Rules {
    addresses: [AtomicU64; KEPT],
    /// Packed, 0 before it is known.
    rules: [AtomicU64; KEPT],
}

/// The last stack of a thread, the innermost frame first. All zeros is empty.
pub struct Cache {
    bounds: Bounds,
    seen: [u64; DEEPEST],
    nodes: [u32; DEEPEST],
    depth: usize,
    /// Room for the next.
    next: [u64; DEEPEST],
}

/// How often an object was unloaded: what was known of an address before may be wrong since.
static UNLOADS: AtomicU32 = AtomicU32::new(0);

/// Where this library lies; 0 before it was asked for. Its own frames are in no stack.
static OWN_START: AtomicU64 = AtomicU64::new(0);
static OWN_END: AtomicU64 = AtomicU64::new(0);

/// Registers that frames are found by.
struct Registers {
    address: u64,
    stack: u64,
    frame: u64,
}

/// An object was unloaded.
pub fn unloaded() {
    UNLOADS.fetch_add(1, Ordering::AcqRel);
}

/// Whether frames can be found; if not, the log says so. To be asked before the first stack.
pub fn look(session: &Session) -> bool {
    let own = sites::find_object(look as *const () as u64);
    let text: &[u8] = match own {
        Some(own) if own.header != 0 => {
            OWN_END.store(own.end, Ordering::Relaxed);
            OWN_START.store(own.start, Ordering::Relaxed);
            return true;
        }
        Some(_) => b"native frames are not recorded: this library has no unwind tables",
        None => {
            b"native frames are not recorded: the C library (before glibc 2.35) does not tell \
                  without a lock which object an address lies in"
        }
    };
    define(session, &Definition::Remark { text });
    false
}

/// What tells the address of a frame from all others, those before an object was unloaded too.
#[inline(always)]
fn key(unloads: u32, address: u64) -> u64 {
    FrameKey::Native { unloads: unloads & 0xfff, address: address & ((1 << 47) - 1) }.packed()
}

/// Node of the innermost frame outside of this library; of a gap where the stack cannot be read.
/// `None` when a table is full.
#[inline(never)]
pub fn innermost(session: &Session, cache: &mut Cache) -> Option<u32> {
    let registers = here();
    let unloads = UNLOADS.load(Ordering::Acquire);
    let depth = match cache.bounds.top(registers.stack) {
        Some(top) => cache.walk(session, registers, top, unloads),
        None => cache.end(0, gap::UNREADABLE),
    };
    cache.number(session, depth)
}

/// This function's own registers, in whatever it is inlined.
#[inline(always)]
fn here() -> Registers {
    let (address, stack, frame);
    // SAFETY: reads registers.
    unsafe {
        core::arch::asm!(
            "lea {address}, [rip]", "mov {stack}, rsp", "mov {frame}, rbp",
            address = out(reg) address, stack = out(reg) stack, frame = out(reg) frame,
            options(nomem, nostack, preserves_flags),
        );
    }
    Registers { address, stack, frame }
}

impl Cache {
    /// What it keeps is another thread's from here on.
    pub fn adopt(&mut self) {
        self.bounds.forget();
        self.depth = 0;
    }

    /// Reads the frames outside of this library into `next`, a gap where they cannot be followed.
    /// Their number.
    #[inline(always)]
    fn walk(&mut self, session: &Session, from: Registers, top: u64, unloads: u32) -> usize {
        let own = OWN_START.load(Ordering::Relaxed)..OWN_END.load(Ordering::Relaxed);
        let low = from.stack;
        // A word of the stack.
        let read = |at: u64| {
            let inside = low <= at && at <= top - 8 && at & 7 == 0;
            // SAFETY: between the stack pointer and the top all can be read.
            inside.then(|| unsafe { (at as *const u64).read() })
        };
        let Registers { mut address, mut stack, mut frame } = from;
        let mut depth = 0;
        // Frames of this library are steps too.
        for _ in 0..2 * DEEPEST {
            let step = match session.stacks.rules.of(unloads, address) {
                Rule::Frame { by_frame_pointer, above, frame_pointer } => (|| {
                    let base = if by_frame_pointer { frame } else { stack };
                    let outer = base.wrapping_add_signed(i64::from(above));
                    let kept = match frame_pointer {
                        Some(offset) => read(outer.wrapping_add_signed(i64::from(offset)))?,
                        None => frame,
                    };
                    Some((outer, kept))
                })(),
                Rule::Realigned { kept } => (|| {
                    let outer = read(frame.wrapping_add_signed(i64::from(kept)))?;
                    Some((outer, read(frame)?))
                })(),
                Rule::Outermost => return depth,
                Rule::Unknown => return self.end(depth, gap::NO_RULE),
            };
            // Each frame lies above the one that it called.
            let Some((outer, kept)) = step.filter(|&(outer, _)| outer > stack) else {
                return self.end(depth, gap::UNREADABLE);
            };
            let Some(back) = read(outer - 8) else { return self.end(depth, gap::UNREADABLE) };
            if back == 0 {
                return depth;
            }
            (address, stack, frame) = (back, outer, kept);
            if own.contains(&address) {
                continue;
            }
            let Some(place) = self.next.get_mut(depth) else { break };
            *place = key(unloads, address);
            depth += 1;
        }
        self.end(depth, gap::DEPTH)
    }

    /// Puts a gap behind `depth` frames, in place of the outermost where there is no room.
    #[cold]
    fn end(&mut self, depth: usize, reason: u64) -> usize {
        let at = depth.min(DEEPEST - 1);
        if let Some(place) = self.next.get_mut(at) {
            *place = FrameKey::Gap(reason as u32).packed();
        }
        at + 1
    }

    /// Numbers what `walk` read, from the outermost in. Outer frames that are as they were last
    /// time keep their nodes.
    #[inline(always)]
    fn number(&mut self, session: &Session, depth: usize) -> Option<u32> {
        let Self { seen, nodes, depth: known, next, .. } = self;
        let mut kept = core::mem::take(known);
        let mut parent = 0;
        let frames = next.get(..depth).unwrap_or(&[]).iter().rev();
        let places = seen.iter_mut().zip(nodes.iter_mut()).enumerate();
        for (&next, (place, (seen, node))) in frames.zip(places) {
            if place < kept && *seen == next {
                parent = *node;
                continue;
            }
            kept = 0;
            let frame = session.stacks.frame(session, FrameKey::of(next))?;
            parent = session.stacks.node(session, parent, frame)?;
            *seen = next;
            *node = parent;
        }
        *known = depth;
        Some(parent)
    }
}

impl Rules {
    /// The rule for the frame that a call returns into.
    #[inline(always)]
    fn of(&self, unloads: u32, address: u64) -> Rule {
        let key = key(unloads, address);
        let index = Self::first(key);
        if let (Some(kept), Some(rule)) = (self.addresses.get(index), self.rules.get(index))
            && kept.load(Ordering::Relaxed) == key
        {
            let rule = rule.load(Ordering::Acquire);
            if rule != 0 {
                return Rule::unpacked(rule);
            }
        }
        self.search(key, address)
    }

    #[inline(always)]
    const fn first(key: u64) -> usize {
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48) as usize & (KEPT - 1)
    }

    #[cold]
    #[inline(never)]
    fn search(&self, key: u64, address: u64) -> Rule {
        for step in 0..TRIES {
            let index = (Self::first(key) + step) & (KEPT - 1);
            let (Some(kept), Some(rule)) = (self.addresses.get(index), self.rules.get(index))
            else {
                break;
            };
            let mut found = kept.load(Ordering::Acquire);
            if found == 0 {
                found = kept
                    .compare_exchange(0, key, Ordering::AcqRel, Ordering::Acquire)
                    .map_or_else(|other| other, |_| key);
            }
            if found != key {
                continue;
            }
            let known = rule.load(Ordering::Acquire);
            if known != 0 {
                return Rule::unpacked(known);
            }
            let new = Self::read(address);
            rule.store(new.packed(), Ordering::Release);
            return new;
        }
        Self::read(address)
    }

    /// The rule by the tables of the object that the address lies in.
    fn read(address: u64) -> Rule {
        // The call may be the last instruction of its function: what is behind it is another's.
        let within = address.wrapping_sub(1);
        let Some(found) = sites::find_object(within).filter(|found| found.header != 0) else {
            return Rule::Unknown;
        };
        let object = Object { start: found.start, end: found.end, header: found.header };
        // SAFETY: an object that a frame of this thread keeps loaded.
        unsafe { gmmtrace_unwind::rule(&object, within) }
    }
}
