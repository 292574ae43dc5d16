//! The time axis of everything that is kept over time: a bounded number of buckets of equal
//! length, which double when time outgrows them. The whole log is always covered, from the first
//! event on, and nothing needs to know beforehand how long it is.

use crate::units::Ticks;

/// Buckets at most; at least half of them are used once time has outgrown them.
pub const BUCKETS: usize = 1_024;
/// Buckets of the time that blocks were made in, each of `1 << AGE_SHIFT` buckets.
pub const AGE_SHIFT: u32 = 4;

/// From stamps to buckets.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    zero: u64,
    shift: u32,
}

impl Axis {
    /// An axis that begins at `zero`, with buckets of one tick.
    #[must_use]
    pub const fn new(zero: Ticks) -> Self {
        Self { zero: zero.0, shift: 0 }
    }

    /// Whether a stamp lies behind the last bucket.
    #[must_use]
    #[inline]
    pub const fn is_outgrown(&self, at: Ticks) -> bool {
        at.0.saturating_sub(self.zero) >> self.shift >= BUCKETS as u64
    }

    /// Doubles the buckets. Whoever keeps something by bucket joins pairs of them.
    pub const fn double(&mut self) {
        self.shift += 1;
    }

    /// The bucket of a stamp; what is before the axis belongs to the first.
    #[must_use]
    #[inline]
    pub const fn bucket(&self, at: Ticks) -> usize {
        (at.0.saturating_sub(self.zero) >> self.shift) as usize
    }

    /// When a bucket begins.
    #[must_use]
    pub const fn start(&self, bucket: usize) -> Ticks {
        Ticks(self.zero.saturating_add((bucket as u64).saturating_mul(1 << self.shift)))
    }
}

/// Joins pairs of neighbours in place.
pub fn join_pairs<T: Copy>(values: &mut Vec<T>, join: impl Fn(T, T) -> T) {
    let halves = values.len().div_ceil(2);
    for place in 0..halves {
        let first = values.get(place * 2).copied();
        let second = values.get(place * 2 + 1).copied();
        let joined = match (first, second) {
            (Some(first), Some(second)) => join(first, second),
            (Some(only), None) => only,
            (None, _) => break,
        };
        if let Some(slot) = values.get_mut(place) {
            *slot = joined;
        }
    }
    values.truncate(halves);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_double_until_they_reach_any_stamp() {
        let mut axis = Axis::new(Ticks(100));
        assert_eq!(axis.bucket(Ticks(7)), 0);
        assert_eq!(axis.bucket(Ticks(1123)), 1023);
        assert!(axis.is_outgrown(Ticks(1124)));
        while axis.is_outgrown(Ticks(u64::MAX)) {
            axis.double();
        }
        assert!((512..BUCKETS).contains(&axis.bucket(Ticks(u64::MAX))));
        assert_eq!(axis.start(0), Ticks(100));
        assert_eq!(axis.start(usize::MAX), Ticks(u64::MAX));
    }

    #[test]
    fn pairs_are_joined_and_a_last_one_alone_stays() {
        let mut values = vec![1, 2, 3, 4, 5];
        join_pairs(&mut values, |first, second| first * 10 + second);
        assert_eq!(values, [12, 34, 5]);
    }
}
