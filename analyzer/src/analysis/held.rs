//! Who holds memory: now, and at the peaks. Blocks of one ledger whose sites have the same
//! library, entry point and runtime call stand together; beside that the same memory by size of
//! the blocks and by the time that they were made.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::analysis::names::{Names, SiteName};
use crate::live::{
    AGE_SHIFT, Axis, Books, GpuSlot, Ledger, LiveBlock, LiveSet, Moment, Share, SiteIndex, Sum,
    size_class,
};
use crate::units::{Bytes, Ticks};

/// Call sites that a list names. The smaller ones are told of together, in one row for each
/// ledger, so that a list is as long as what is looked at, and still adds up to the whole.
pub const ROWS: usize = 100;

/// What one kind of call site holds of one ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holding {
    /// The ledger.
    pub ledger: Ledger,
    /// Whose calls.
    pub site: SiteName,
    /// Blocks.
    pub count: u64,
    /// Their bytes.
    pub bytes: Bytes,
    /// When the oldest was made, where that is known.
    pub oldest: Option<Ticks>,
}

/// An amount of memory, cut in three ways. Each adds up to the whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// By ledger and site, the largest first: [`ROWS`] of them, then one of all others for each
    /// ledger that has others.
    pub held: Vec<Holding>,
    /// By [`size_class`].
    pub sizes: BTreeMap<usize, Share>,
    /// By bucket of age, each of `1 << AGE_SHIFT` buckets of the time axis.
    pub ages: BTreeMap<usize, Share>,
}

/// A share of one kind of call site, without its words.
type Entry = ((Ledger, u32), (Share, Option<Ticks>));

struct Grouping<'a> {
    names: &'a Names,
    groups: FxHashMap<(Ledger, u32), (Share, Option<Ticks>)>,
    sizes: BTreeMap<usize, Share>,
    ages: BTreeMap<usize, Share>,
}

fn add(shares: &mut BTreeMap<usize, Share>, index: usize, share: Share) {
    let entry = shares.entry(index).or_default();
    *entry = entry.plus(share);
}

impl<'a> Grouping<'a> {
    fn new(names: &'a Names) -> Self {
        let (sizes, ages) = (BTreeMap::new(), BTreeMap::new());
        Self { names, groups: FxHashMap::default(), sizes, ages }
    }

    fn add(&mut self, ledger: Ledger, site: SiteIndex, share: Share, oldest: Option<Ticks>) {
        let group = self.groups.entry((ledger, self.names.group(site))).or_default();
        *group = plus(*group, (share, oldest));
    }

    fn add_ledger(&mut self, books: &Books, ledger: Ledger, moment: Moment) {
        let (holdings, epochs) = books.holdings(ledger);
        for (site, share) in holdings.sites(moment, epochs) {
            self.add(ledger, site, share, None);
        }
        for (class, share) in holdings.sizes(moment, epochs) {
            add(&mut self.sizes, class, share);
        }
        for (bucket, share) in holdings.ages(moment, epochs) {
            add(&mut self.ages, bucket, share);
        }
    }

    fn cut(self) -> Cut {
        let mut entries: Vec<Entry> = self.groups.into_iter().collect();
        let named = |&((ledger, group), _): &Entry| (ledger, self.names.name(group));
        let more = |a: &Entry, b: &Entry| {
            b.1.0.bytes.cmp(&a.1.0.bytes).then_with(|| named(a).cmp(&named(b)))
        };
        let others = match entries.len() > ROWS {
            true => {
                entries.select_nth_unstable_by(ROWS, more);
                entries.split_off(ROWS)
            }
            false => Vec::new(),
        };
        entries.sort_unstable_by(more);
        let one = |((ledger, group), (share, oldest)): Entry| {
            Holding::new(ledger, self.names.name(group).clone(), share, oldest)
        };
        let mut held: Vec<Holding> = entries.into_iter().map(one).collect();
        held.extend(Others::of(others.into_iter().map(|((ledger, _), sum)| (ledger, 1, sum))));
        Cut { held, sizes: self.sizes, ages: self.ages }
    }
}

impl Holding {
    fn new(ledger: Ledger, site: SiteName, share: Share, oldest: Option<Ticks>) -> Self {
        Self { ledger, site, count: share.count, bytes: Bytes(share.bytes), oldest }
    }

    fn sum(&self) -> (Share, Option<Ticks>) {
        (Share { bytes: self.bytes.0, count: self.count }, self.oldest)
    }
}

/// What a list does not name, by ledger.
struct Others;

impl Others {
    /// Rows of what so many sites of a ledger hold.
    fn of(
        all: impl Iterator<Item = (Ledger, u64, (Share, Option<Ticks>))>,
    ) -> impl Iterator<Item = Holding> {
        let mut sums: BTreeMap<Ledger, (u64, (Share, Option<Ticks>))> = BTreeMap::new();
        for (ledger, sites, sum) in all {
            let entry = sums.entry(ledger).or_default();
            *entry = (entry.0.saturating_add(sites), plus(entry.1, sum));
        }
        sums.into_iter().map(|(ledger, (sites, (share, oldest)))| {
            Holding::new(ledger, SiteName::others(sites), share, oldest)
        })
    }
}

/// Two shares as one, with the oldest of both.
fn plus(one: (Share, Option<Ticks>), other: (Share, Option<Ticks>)) -> (Share, Option<Ticks>) {
    let oldest = match (one.1, other.1) {
        (Some(known), Some(other)) => Some(known.min(other)),
        (known, other) => known.or(other),
    };
    (one.0.plus(other.0), oldest)
}

fn age_bucket(axis: &Axis, at: Ticks) -> usize {
    axis.bucket(at) >> AGE_SHIFT
}

/// What is live now of each ledger, on one device or on all. Within a window only what was made
/// in it.
#[must_use]
pub fn now(live: &LiveSet, names: &Names, gpu: Option<GpuSlot>) -> Vec<(Ledger, Cut)> {
    let mut groupings: Vec<Grouping<'_>> =
        Ledger::ALL.iter().map(|_| Grouping::new(names)).collect();
    let mut by_site: FxHashMap<(Ledger, SiteIndex), (Share, Ticks)> = FxHashMap::default();
    let wanted = |block: &LiveBlock| {
        gpu.is_none_or(|gpu| block.account.ledger.on_device() && block.account.gpu == gpu)
            && live.since.is_none_or(|since| block.at >= since)
    };
    for block in live.live().filter(wanted) {
        let one = Share { bytes: block.bytes.0, count: 1 };
        let ledger = block.account.ledger;
        let (share, oldest) =
            by_site.entry((ledger, block.account.site)).or_insert((Share::default(), block.at));
        *share = share.plus(one);
        *oldest = (*oldest).min(block.at);
        if let Some(grouping) = groupings.get_mut(ledger as usize) {
            add(&mut grouping.sizes, size_class(block.bytes), one);
            add(&mut grouping.ages, age_bucket(&live.axis, block.at), one);
        }
    }
    for ((ledger, site), (share, oldest)) in by_site {
        if let Some(grouping) = groupings.get_mut(ledger as usize) {
            grouping.add(ledger, site, share, Some(oldest));
        }
    }
    Ledger::ALL.iter().copied().zip(groupings.into_iter().map(Grouping::cut)).collect()
}

/// Several amounts as one.
#[must_use]
pub fn together<'a>(cuts: impl Iterator<Item = &'a Cut>) -> Cut {
    let mut all = Cut::default();
    let mut others = Vec::new();
    for cut in cuts {
        let (told, named): (Vec<&Holding>, Vec<&Holding>) =
            cut.held.iter().partition(|held| held.site.others > 0);
        others.extend(told.iter().map(|held| (held.ledger, held.site.others, held.sum())));
        all.held.extend(named.into_iter().cloned());
        cut.sizes.iter().for_each(|(&class, &share)| add(&mut all.sizes, class, share));
        cut.ages.iter().for_each(|(&bucket, &share)| add(&mut all.ages, bucket, share));
    }
    sort(&mut all.held);
    let behind = all.held.split_off(ROWS.min(all.held.len()));
    others.extend(behind.iter().map(|held| (held.ledger, 1, held.sum())));
    all.held.extend(Others::of(others.into_iter()));
    all
}

/// The largest first; equal ones by name, so that two runs give the same text.
fn sort(held: &mut [Holding]) {
    held.sort_by(|a, b| {
        let names = || (a.ledger, &a.site).cmp(&(b.ledger, &b.site));
        b.bytes.cmp(&a.bytes).then_with(names)
    });
}

/// What the ledger was made of at its peak.
#[must_use]
pub fn at_peak(names: &Names, books: &Books, ledger: Ledger) -> Cut {
    let mut grouping = Grouping::new(names);
    if books.book(ledger).tally.peak_bytes > 0 {
        grouping.add_ledger(books, ledger, Moment::OwnPeak);
    }
    grouping.cut()
}

/// What a sum was made of at its peak.
#[must_use]
pub fn at_sum_peak(names: &Names, books: &Books, sum: Sum) -> Cut {
    let mut grouping = Grouping::new(names);
    if books.sum(sum).peak_bytes > 0 {
        for ledger in sum.ledgers() {
            grouping.add_ledger(books, ledger, Moment::SumPeak);
        }
    }
    grouping.cut()
}
