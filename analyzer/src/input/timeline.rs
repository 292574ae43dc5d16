//! From ticks to nanoseconds: a straight line through two anchors, time zero where the log began.

use gmmtrace_format::FileHeader;
use gmmtrace_format::header::Anchor;
use gmmtrace_format::layout::Clock;

use super::Slots;
use crate::units::{Nanos, Ticks};

/// The log's clock.
#[derive(Clone, Copy, Debug)]
pub struct Timeline {
    zero: u64,
    /// Nanoseconds that `ticks` ticks take.
    nanos: u64,
    ticks: u64,
    /// Whether two anchors far enough apart were found.
    pub calibrated: bool,
}

impl Timeline {
    pub(super) fn new(header: &FileHeader<'_>, slots: &Slots) -> Self {
        let zero = header.start.ticks;
        if header.clock == Clock::Monotonic {
            return Self { zero, nanos: 1, ticks: 1, calibrated: true };
        }
        let known = [
            Some(header.load),
            Some(header.start),
            header.last,
            slots.first_taken,
            slots.last_taken,
        ];
        let usable = || known.iter().flatten().filter(|anchor| anchor.ticks != 0);
        let first = usable().min_by_key(|anchor| anchor.ticks);
        let last = usable().max_by_key(|anchor| anchor.ticks);
        match first.zip(last).and_then(|(first, last)| slope(first, last)) {
            Some((nanos, ticks)) => Self { zero, nanos, ticks, calibrated: true },
            None => Self { zero, nanos: 1, ticks: 1, calibrated: false },
        }
    }

    /// When a stamp was, from time zero on.
    #[must_use]
    pub fn at(&self, stamp: Ticks) -> Nanos {
        let ticks = i128::from(stamp.0) - i128::from(self.zero);
        Nanos(self.scale(ticks))
    }

    /// How long a number of ticks is.
    #[must_use]
    pub fn length(&self, ticks: Ticks) -> Nanos {
        Nanos(self.scale(i128::from(ticks.0)))
    }

    /// How many ticks a length of time is.
    #[must_use]
    pub fn ticks(&self, length: Nanos) -> Ticks {
        let ticks = i128::from(length.0) * i128::from(self.ticks) / i128::from(self.nanos.max(1));
        Ticks(u64::try_from(ticks.max(0)).unwrap_or(u64::MAX))
    }

    /// The first stamp that is [at](Self::at) this moment or later, from time zero on.
    #[must_use]
    pub fn first(&self, at: Nanos) -> Ticks {
        self.stamp(i128::from(at.0.max(0)) * i128::from(self.ticks), self.nanos.max(1) - 1)
    }

    /// The last stamp that is [at](Self::at) this moment or earlier, from time zero on: a
    /// nanosecond may have several.
    #[must_use]
    pub fn last(&self, at: Nanos) -> Ticks {
        self.stamp((i128::from(at.0.max(0)) + 1) * i128::from(self.ticks) - 1, 0)
    }

    fn stamp(&self, product: i128, more: u64) -> Ticks {
        let ticks = (product + i128::from(more)) / i128::from(self.nanos.max(1));
        Ticks(u64::try_from(i128::from(self.zero) + ticks).unwrap_or(u64::MAX))
    }

    /// Time zero.
    #[must_use]
    pub fn zero(&self) -> Ticks {
        Ticks(self.zero)
    }

    fn scale(&self, ticks: i128) -> i64 {
        let nanos = ticks * i128::from(self.nanos) / i128::from(self.ticks.max(1));
        i64::try_from(nanos).unwrap_or(if nanos < 0 { i64::MIN } else { i64::MAX })
    }
}

fn slope(first: &Anchor, last: &Anchor) -> Option<(u64, u64)> {
    let ticks = last.ticks.checked_sub(first.ticks)?;
    let nanos = last.monotonic_ns.checked_sub(first.monotonic_ns)?;
    (ticks > 0 && nanos > 0).then_some((nanos, ticks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_that_was_told_finds_every_event_of_its_nanosecond_and_none_other() {
        // Clocks of 3 GHz, of 24 MHz, and of what was measured once.
        for (nanos, ticks) in [(1, 3), (125, 3), (1_000_000_007, 2_094_123_461), (1, 1)] {
            let clock = Timeline { zero: 77, nanos, ticks, calibrated: true };
            for stamp in (77..400).chain(1 << 50..(1 << 50) + 300) {
                let at = clock.at(Ticks(stamp));
                let (first, last) = (clock.first(at), clock.last(at));
                assert!(first.0 <= stamp && stamp <= last.0, "{stamp} is {at:?}");
                assert_eq!([first, last].map(|stamp| clock.at(stamp)), [at, at]);
                assert!(clock.at(Ticks(last.0 + 1)) > at);
                assert!(first.0 == 77 || clock.at(Ticks(first.0 - 1)) < at);
            }
        }
    }
}
