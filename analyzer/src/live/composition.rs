//! What an amount of memory is made of, now and as it was at the peaks.
//!
//! What a peak was made of is kept copy-on-write: each entry has its bytes now, and its bytes as
//! they were at the last peak if they have changed since. A peak only raises a number, its epoch,
//! so a new maximum costs nothing however many entries there are:
//!
//! ```text
//! peak         epoch += 1                       saved values of older epochs are void
//! change       saved.epoch != epoch → save      at most one copy per entry and peak
//! at the end   saved.epoch == epoch ? saved : now
//! ```

use rustc_hash::FxHashMap;

use super::axis::{AGE_SHIFT, join_pairs};
use super::sites::SiteIndex;
use crate::units::Bytes;

/// Bytes and blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Their bytes.
    pub bytes: u64,
    /// How many.
    pub count: u64,
}

impl Share {
    /// Both together.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_add(other.bytes),
            count: self.count.saturating_add(other.count),
        }
    }
}

/// A moment that the composition is kept of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Now.
    Now,
    /// The peak of the ledger itself.
    OwnPeak,
    /// The peak of the sum that adds the ledger.
    SumPeak,
}

/// The numbers of the last peaks of a ledger and of its sum.
#[derive(Clone, Copy, Debug)]
pub struct Epochs {
    /// Of the ledger.
    pub own: u64,
    /// Of the sum.
    pub sum: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Saved {
    epoch: u64,
    share: Share,
}

impl Saved {
    #[inline]
    fn keep(&mut self, epoch: u64, now: Share) {
        if self.epoch != epoch {
            *self = Self { epoch, share: now };
        }
    }

    const fn at_peak(self, epoch: u64, now: Share) -> Share {
        if self.epoch == epoch { self.share } else { now }
    }
}

/// One entry.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    now: Share,
    own: Saved,
    sum: Saved,
}

impl Held {
    #[inline]
    fn save(&mut self, epochs: Epochs) {
        self.own.keep(epochs.own, self.now);
        self.sum.keep(epochs.sum, self.now);
    }

    const fn at(&self, moment: Moment, epochs: Epochs) -> Share {
        match moment {
            Moment::Now => self.now,
            Moment::OwnPeak => self.own.at_peak(epochs.own, self.now),
            Moment::SumPeak => self.sum.at_peak(epochs.sum, self.now),
        }
    }

    const fn is_used(&self) -> bool {
        self.now.count > 0 || self.own.share.count > 0 || self.sum.share.count > 0
    }

    fn join(self, other: Self, epochs: Epochs) -> Self {
        let at = |moment| self.at(moment, epochs).plus(other.at(moment, epochs));
        Self {
            now: at(Moment::Now),
            own: Saved { epoch: epochs.own, share: at(Moment::OwnPeak) },
            sum: Saved { epoch: epochs.sum, share: at(Moment::SumPeak) },
        }
    }
}

/// Entries by a small number. A sparse table holds only those that were ever used.
#[derive(Clone, Debug, Default)]
struct Table {
    rows: Vec<Held>,
    /// Of a sparse table: which row is whose, both ways.
    places: Option<Box<Places>>,
}

#[derive(Clone, Debug, Default)]
struct Places {
    of: FxHashMap<usize, usize>,
    indices: Vec<usize>,
}

impl Table {
    /// The same entries as a sparse table.
    fn sparse(&self) -> Self {
        let mut table = Self { rows: Vec::new(), places: Some(Box::default()) };
        for (index, held) in self.entries().filter(|(_, held)| held.is_used()) {
            if let Some(row) = table.row(index) {
                *row = *held;
            }
        }
        table
    }

    #[inline]
    fn row(&mut self, index: usize) -> Option<&mut Held> {
        if self.places.is_some() || index >= self.rows.len() {
            return self.new_row(index);
        }
        self.rows.get_mut(index)
    }

    #[inline(never)]
    fn new_row(&mut self, index: usize) -> Option<&mut Held> {
        let place = match &mut self.places {
            None => index,
            Some(places) => *places.of.entry(index).or_insert_with(|| {
                places.indices.push(index);
                places.indices.len() - 1
            }),
        };
        if place >= self.rows.len() {
            self.rows.resize(place + 1, Held::default());
        }
        self.rows.get_mut(place)
    }

    fn entries(&self) -> impl Iterator<Item = (usize, &Held)> {
        let indices = self.places.as_ref().map(|places| &places.indices);
        self.rows.iter().enumerate().map(move |(place, held)| {
            let index = indices.and_then(|indices| indices.get(place)).copied();
            (index.unwrap_or(place), held)
        })
    }

    #[inline]
    fn entry(&mut self, index: usize, epochs: Epochs) -> Option<&mut Share> {
        let held = self.row(index)?;
        held.save(epochs);
        Some(&mut held.now)
    }

    #[inline]
    fn add(&mut self, index: usize, bytes: Bytes, epochs: Epochs) {
        if let Some(now) = self.entry(index, epochs) {
            now.bytes = now.bytes.saturating_add(bytes.0);
            now.count += 1;
        }
    }

    #[inline]
    fn take(&mut self, index: usize, bytes: Bytes, epochs: Epochs) {
        if let Some(now) = self.entry(index, epochs) {
            now.bytes = now.bytes.saturating_sub(bytes.0);
            now.count = now.count.saturating_sub(1);
        }
    }

    fn at(&self, moment: Moment, epochs: Epochs) -> impl Iterator<Item = (usize, Share)> {
        let all = self.entries().map(move |(index, held)| (index, held.at(moment, epochs)));
        all.filter(|(_, share)| share.count > 0)
    }
}

/// The class of a size: 0 for nothing, else the number of its binary digits.
#[must_use]
#[inline]
pub const fn size_class(bytes: Bytes) -> usize {
    (u64::BITS - bytes.0.leading_zeros()) as usize
}

/// The least and the greatest size of a class.
#[must_use]
pub const fn sizes_of_class(class: usize) -> (Bytes, Bytes) {
    match class {
        0 => (Bytes(0), Bytes(0)),
        1..64 => (Bytes(1 << (class - 1)), Bytes((1 << class) - 1)),
        _ => (Bytes(1 << 63), Bytes(u64::MAX)),
    }
}

/// What is asked about a block.
#[derive(Clone, Copy, Debug)]
pub struct Traits {
    /// Who made it.
    pub site: SiteIndex,
    /// How large it is.
    pub bytes: Bytes,
    /// In which bucket of the time axis it was made.
    pub bucket: usize,
}

/// One ledger, by site, by size and by age. Each alone: what they have in common is not kept.
#[derive(Clone, Debug, Default)]
pub struct Holdings {
    sites: Table,
    sizes: Table,
    ages: Table,
}

impl Holdings {
    /// The same with only the sites that were ever used.
    #[must_use]
    pub fn sparse(&self) -> Self {
        Self { sites: self.sites.sparse(), sizes: self.sizes.clone(), ages: self.ages.clone() }
    }

    /// Adds a block.
    #[inline]
    pub fn add(&mut self, block: Traits, epochs: Epochs) {
        self.sites.add(block.site.0 as usize, block.bytes, epochs);
        self.sizes.add(size_class(block.bytes), block.bytes, epochs);
        self.ages.add(block.bucket >> AGE_SHIFT, block.bytes, epochs);
    }

    /// Takes a block away.
    #[inline]
    pub fn take(&mut self, block: Traits, epochs: Epochs) {
        self.sites.take(block.site.0 as usize, block.bytes, epochs);
        self.sizes.take(size_class(block.bytes), block.bytes, epochs);
        self.ages.take(block.bucket >> AGE_SHIFT, block.bytes, epochs);
    }

    /// The axis has doubled its buckets.
    pub fn halve(&mut self, epochs: Epochs) {
        join_pairs(&mut self.ages.rows, |first, second| first.join(second, epochs));
    }

    /// The axis begins anew: whatever is live is of its first bucket.
    pub fn begin(&mut self, epochs: Epochs) {
        let all = self.ages.rows.drain(..).reduce(|first, second| first.join(second, epochs));
        self.ages.rows.extend(all);
    }

    /// By site.
    pub fn sites(
        &self,
        moment: Moment,
        epochs: Epochs,
    ) -> impl Iterator<Item = (SiteIndex, Share)> {
        let index = |index| SiteIndex(u32::try_from(index).unwrap_or(0));
        self.sites.at(moment, epochs).map(move |(site, share)| (index(site), share))
    }

    /// By [`size_class`].
    pub fn sizes(&self, moment: Moment, epochs: Epochs) -> impl Iterator<Item = (usize, Share)> {
        self.sizes.at(moment, epochs)
    }

    /// By the time that they were made, in buckets of `1 << AGE_SHIFT` of the axis.
    pub fn ages(&self, moment: Moment, epochs: Epochs) -> impl Iterator<Item = (usize, Share)> {
        self.ages.at(moment, epochs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_is_within_its_class() {
        for bytes in [0, 1, 2, 3, 4, 1023, 1024, 1 << 62, 1 << 63, u64::MAX].map(Bytes) {
            let (from, to) = sizes_of_class(size_class(bytes));
            assert!(from <= bytes && bytes <= to, "{bytes:?}");
        }
    }

    #[test]
    fn a_peak_keeps_its_composition_when_ages_are_joined() {
        let mut holdings = Holdings::default();
        let mut epochs = Epochs { own: 1, sum: 1 };
        let block = |bucket| Traits { site: SiteIndex(0), bytes: Bytes(8), bucket };
        holdings.add(block(0), epochs);
        holdings.add(block(16), epochs);
        epochs.own = 2;
        holdings.take(block(0), epochs);
        holdings.halve(epochs);
        let ages = |moment| holdings.ages(moment, epochs).collect::<Vec<_>>();
        assert_eq!(ages(Moment::OwnPeak), [(0, Share { bytes: 16, count: 2 })]);
        assert_eq!(ages(Moment::Now), [(0, Share { bytes: 8, count: 1 })]);
    }
}
