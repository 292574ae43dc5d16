//! A figure over time: in each bucket of the axis its least, greatest and last value.

use super::axis::join_pairs;

/// A figure within a bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Level {
    /// Its least value.
    pub min: u64,
    /// Its greatest value.
    pub max: u64,
    /// Its value at the end.
    pub last: u64,
}

impl Level {
    const fn still(value: u64) -> Self {
        Self { min: value, max: value, last: value }
    }

    fn join(self, next: Self) -> Self {
        Self { min: self.min.min(next.min), max: self.max.max(next.max), last: next.last }
    }
}

/// One figure over time, 0 before the first word about it.
#[derive(Clone, Debug, Default)]
pub struct Series {
    levels: Vec<Level>,
}

impl Series {
    /// The figure has a new value; returns what its bucket has seen by now. A bucket before the last one is taken for the last one: what
    /// is applied later is shown later.
    #[inline]
    pub fn set(&mut self, bucket: usize, value: u64) -> Level {
        if bucket >= self.levels.len() {
            self.extend(bucket);
        }
        let Some(level) = self.levels.last_mut() else { return Level::default() };
        level.min = level.min.min(value);
        level.max = level.max.max(value);
        level.last = value;
        *level
    }

    /// Carries the value on into every bucket up to this one.
    #[inline(never)]
    pub fn extend(&mut self, bucket: usize) {
        let last = self.levels.last().map_or(0, |level| level.last);
        if bucket >= self.levels.len() {
            self.levels.resize(bucket + 1, Level::still(last));
        }
    }

    /// Joins pairs of buckets.
    pub fn halve(&mut self) {
        join_pairs(&mut self.levels, Level::join);
    }

    /// Forgets everything; the figure stands at `value`.
    pub fn begin(&mut self, value: u64) {
        self.levels = vec![Level::still(value)];
    }

    /// The buckets from the first on; behind the last the figure keeps its last value.
    #[must_use]
    pub fn levels(&self) -> &[Level] {
        &self.levels
    }

    /// Whether the figure was ever above zero.
    #[must_use]
    pub fn is_used(&self) -> bool {
        self.levels.iter().any(|level| level.max > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_stays_until_the_next_and_no_extreme_is_lost_by_halving() {
        let mut series = Series::default();
        for (bucket, value) in [(1, 5), (1, 90), (1, 3), (4, 7), (2, 8)] {
            series.set(bucket, value);
        }
        let level = |min, max, last| Level { min, max, last };
        let still = Level::still(3);
        assert_eq!(
            series.levels(),
            [Level::default(), level(0, 90, 3), still, still, level(3, 8, 8)]
        );
        series.halve();
        assert_eq!(series.levels(), [level(0, 90, 3), still, level(3, 8, 8)]);
    }
}
