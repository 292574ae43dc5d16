//! Who holds memory: at the end, and at the peaks. Blocks of one ledger whose sites have the
//! same library, entry point and runtime call stand together.

use rustc_hash::FxHashMap;

use crate::input::{Dictionary, Site};
use crate::live::{Ledger, LiveSet, Share, SiteIndex};
use crate::units::{Bytes, Ticks};

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

/// A call site in words.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SiteName {
    /// Path of the calling module, empty for the executable; `None` when unknown.
    pub library: Option<String>,
    /// The entry point that made the event.
    pub api: Option<String>,
    /// The runtime call around it.
    pub call: Option<String>,
}

impl SiteName {
    /// The words for a site.
    #[must_use]
    pub fn of(site: Option<Site>, dictionary: &Dictionary) -> Self {
        let Some(site) = site else { return Self::default() };
        let name = |id| dictionary.api(id).map(str::to_owned);
        Self {
            library: dictionary.modules.get(&site.module).map(|module| module.path.clone()),
            api: name(site.api),
            call: if site.outer == 0 { None } else { name(site.outer) },
        }
    }
}

struct Grouping<'a> {
    live: &'a LiveSet,
    dictionary: &'a Dictionary,
    names: FxHashMap<SiteIndex, SiteName>,
    groups: FxHashMap<(Ledger, SiteName), Holding>,
}

impl<'a> Grouping<'a> {
    fn new(live: &'a LiveSet, dictionary: &'a Dictionary) -> Self {
        let (names, groups) = (FxHashMap::default(), FxHashMap::default());
        Self { live, dictionary, names, groups }
    }

    fn add(&mut self, ledger: Ledger, site: SiteIndex, share: Share, oldest: Option<Ticks>) {
        let named = || SiteName::of(self.live.sites.site(site), self.dictionary);
        let name = self.names.entry(site).or_insert_with(named);
        let group = self.groups.entry((ledger, name.clone())).or_insert_with(|| Holding {
            ledger,
            site: name.clone(),
            count: 0,
            bytes: Bytes(0),
            oldest: None,
        });
        group.count = group.count.saturating_add(share.count);
        group.bytes = Bytes(group.bytes.0.saturating_add(share.bytes));
        group.oldest = match (group.oldest, oldest) {
            (Some(known), Some(other)) => Some(known.min(other)),
            (known, other) => known.or(other),
        };
    }

    /// The largest first; equal ones by name, so that two runs give the same text.
    fn sorted(self) -> Vec<Holding> {
        let mut holdings: Vec<Holding> = self.groups.into_values().collect();
        holdings.sort_by(|a, b| {
            let names = || (a.ledger, &a.site).cmp(&(b.ledger, &b.site));
            b.bytes.cmp(&a.bytes).then_with(names)
        });
        holdings
    }
}

/// What is live when the log ends.
#[must_use]
pub fn at_end(live: &LiveSet, dictionary: &Dictionary) -> Vec<Holding> {
    let mut by_site: FxHashMap<(Ledger, SiteIndex), (Share, Ticks)> = FxHashMap::default();
    for block in live.live() {
        let key = (block.account.ledger, block.account.site);
        let (share, oldest) = by_site.entry(key).or_insert((Share::default(), block.at));
        share.count += 1;
        share.bytes = share.bytes.saturating_add(block.bytes.0);
        *oldest = (*oldest).min(block.at);
    }
    let mut grouping = Grouping::new(live, dictionary);
    for ((ledger, site), (share, oldest)) in by_site {
        grouping.add(ledger, site, share, Some(oldest));
    }
    grouping.sorted()
}

/// What the ledger was made of at its peak.
#[must_use]
pub fn at_peak(live: &LiveSet, dictionary: &Dictionary, ledger: Ledger) -> Vec<Holding> {
    let mut grouping = Grouping::new(live, dictionary);
    if live.books.book(ledger).total.peak_bytes > 0 {
        for (site, share) in live.books.at_peak(ledger) {
            grouping.add(ledger, site, share, None);
        }
    }
    grouping.sorted()
}

/// What the sum `gpu` was made of at its peak.
#[must_use]
pub fn at_sum_peak(live: &LiveSet, dictionary: &Dictionary) -> Vec<Holding> {
    let mut grouping = Grouping::new(live, dictionary);
    if live.books.sum.peak_bytes > 0 {
        let added = Ledger::ALL.iter().filter(|ledger| ledger.in_gpu_sum());
        for &ledger in added {
            for (site, share) in live.books.at_sum_peak(ledger) {
                grouping.add(ledger, site, share, None);
            }
        }
    }
    grouping.sorted()
}
