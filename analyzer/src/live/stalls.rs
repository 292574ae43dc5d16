//! Time in calls, by what they are for.

use super::axis::join_pairs;
use super::sites::SiteIndex;
use crate::input::Timeline;
use crate::order::Record;
use crate::units::{Bytes, Nanos, Ticks};

/// What a call is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Purpose {
    /// It takes memory, address space or a mapping.
    Alloc,
    /// It gives one back.
    Free,
    /// It copies.
    Copy,
    /// It sets.
    Set,
}

/// Number of purposes.
const PURPOSES: usize = Purpose::ALL.len();

impl Purpose {
    /// Every purpose.
    pub const ALL: &'static [Self] = &[Self::Alloc, Self::Free, Self::Copy, Self::Set];

    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Alloc => "alloc",
            Self::Free => "free",
            Self::Copy => "copy",
            Self::Set => "set",
        }
    }
}

/// Calls that are told one by one, of each purpose.
const LONGEST: usize = 10;
/// Where classes of length end: 1, 2 and 5 of each power of ten, in nanoseconds, to 10 s.
const EDGES: usize = 22;
/// Numbers of binary digits that a length can have.
const DIGITS: usize = u64::BITS as usize + 1;

/// A call that took long.
#[derive(Clone, Copy, Debug)]
pub struct LongCall {
    /// How long.
    pub length: Ticks,
    /// When it began.
    pub start: Ticks,
    /// The size that it was about, if it says one.
    pub bytes: Option<Bytes>,
    /// Whose.
    pub site: SiteIndex,
    /// In which lane.
    pub lane: u32,
}

/// Calls of one purpose.
#[derive(Clone, Debug, Default)]
pub struct Stall {
    /// How many, failed ones included.
    pub count: u64,
    /// Their time together.
    pub total: Ticks,
    /// By class of length: calls, and their time.
    pub classes: [(u64, Ticks); EDGES + 1],
    /// The longest, the longest first.
    pub longest: Vec<LongCall>,
    /// Their time by bucket of the time axis.
    pub over_time: Vec<u64>,
}

/// Calls of every purpose.
#[derive(Clone, Debug)]
pub struct Stalls {
    stalls: [Stall; PURPOSES],
    /// The edges between classes of length.
    edges: [Ticks; EDGES],
    /// By number of binary digits of a length: edges that no such length is below.
    below: [u8; DIGITS],
}

impl Stalls {
    /// Nothing yet, on a clock.
    #[must_use]
    pub fn new(clock: &Timeline) -> Self {
        let edges = std::array::from_fn(|index| clock.ticks(Self::edge(index)));
        let least = |digits: usize| digits.checked_sub(1).map_or(0, |digit| 1 << digit);
        let below = |digits| edges.partition_point(|edge: &Ticks| edge.0 <= least(digits));
        let below = std::array::from_fn(|digits| below(digits) as u8);
        Self { stalls: Default::default(), edges, below }
    }

    /// Where the class `index` ends.
    #[must_use]
    pub fn edge(index: usize) -> Nanos {
        let digit = [1, 2, 5].get(index % 3).copied().unwrap_or(1);
        let power = u32::try_from(index / 3).unwrap_or(0);
        Nanos(1_000 * digit * 10_i64.saturating_pow(power))
    }

    /// The calls of a purpose.
    #[must_use]
    pub fn of(&self, purpose: Purpose) -> &Stall {
        &self.stalls[purpose as usize]
    }

    /// The class of a length: edges that it is not below.
    #[inline]
    fn class(&self, length: Ticks) -> usize {
        let digits = (u64::BITS - length.0.leading_zeros()) as usize;
        let first = usize::from(self.below.get(digits).copied().unwrap_or(0));
        let rest = self.edges.iter().skip(first);
        first + rest.take_while(|&&edge| edge <= length).count()
    }

    /// Counts a call.
    #[inline]
    pub fn count(&mut self, purpose: Purpose, call: LongCall, bucket: usize) {
        let class = self.class(call.length);
        let stall = &mut self.stalls[purpose as usize];
        stall.count += 1;
        stall.total = Ticks(stall.total.0.saturating_add(call.length.0));
        let (count, total) = &mut stall.classes[class];
        *count += 1;
        *total = Ticks(total.0.saturating_add(call.length.0));
        if bucket >= stall.over_time.len() {
            stall.over_time.resize(bucket + 1, 0);
        }
        if let Some(time) = stall.over_time.last_mut() {
            *time = time.saturating_add(call.length.0);
        }
        let least = stall.longest.get(LONGEST - 1).map(|least| least.length);
        if least.is_none_or(|least| call.length > least) {
            stall.keep(call);
        }
    }

    /// The time axis has doubled its buckets.
    pub fn halve(&mut self) {
        for stall in &mut self.stalls {
            join_pairs(&mut stall.over_time, u64::saturating_add);
        }
    }

    /// Begins to count anew.
    pub fn begin(&mut self) {
        self.stalls = Default::default();
    }
}

impl Stall {
    #[cold]
    fn keep(&mut self, call: LongCall) {
        let place = self.longest.partition_point(|kept| kept.length >= call.length);
        self.longest.insert(place, call);
        self.longest.truncate(LONGEST);
    }
}

impl LongCall {
    /// The call of an event.
    #[must_use]
    #[inline]
    pub fn of(record: &Record, bytes: Option<Bytes>, site: SiteIndex, lane: u32) -> Self {
        Self { length: record.duration(), start: record.start(), bytes, site, lane }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_end_at_one_two_and_five() {
        let edges: Vec<i64> = (0..EDGES).map(|index| Stalls::edge(index).0).collect();
        assert_eq!(edges.get(..4), Some([1_000, 2_000, 5_000, 10_000].as_slice()));
        assert_eq!(edges.last(), Some(&10_000_000_000));
    }
}
