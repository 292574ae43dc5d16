//! Where a slot of the file is mapped.
//!
//! The file is mapped piece by piece and a piece never moves. Pieces double from 1 MiB to
//! 64 MiB, so that a short program leaves a small file and a long one grows in few steps.

/// Slots in the first window.
const FIRST: u32 = 16;
/// Windows until their size stops doubling.
const DOUBLINGS: u32 = 6;
/// Slots in every window from there on: 64 MiB.
const LAST: u32 = FIRST << DOUBLINGS;
/// Windows in all: 256 GiB of log.
pub const WINDOWS: usize = 4096;

/// The window a slot lies in, and its place there.
pub const fn locate(slot: u32) -> (usize, u32) {
    let doubling = FIRST * ((1 << (DOUBLINGS + 1)) - 1);
    if slot < doubling {
        let window = (slot / FIRST + 1).ilog2();
        (window as usize, slot - start(window as usize))
    } else {
        let past = slot - doubling;
        ((DOUBLINGS + 1 + past / LAST) as usize, past % LAST)
    }
}

/// First slot of a window.
pub const fn start(window: usize) -> u32 {
    let window = window as u32;
    if window <= DOUBLINGS {
        FIRST * ((1 << window) - 1)
    } else {
        FIRST * ((1 << (DOUBLINGS + 1)) - 1) + (window - DOUBLINGS - 1) * LAST
    }
}

/// Slots in a window.
pub const fn slots(window: usize) -> u32 {
    if window < DOUBLINGS as usize { FIRST << window } else { LAST }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_slot_lies_in_the_window_that_starts_before_it() {
        for slot in 0..100_000 {
            let (window, place) = locate(slot);
            assert_eq!(start(window) + place, slot);
            assert!(place < slots(window), "slot {slot}");
        }
    }

    #[test]
    fn windows_follow_each_other_without_gaps() {
        for window in 0..200 {
            assert_eq!(start(window) + slots(window), start(window + 1));
        }
    }
}
