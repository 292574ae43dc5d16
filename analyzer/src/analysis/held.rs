//! Who holds memory: now, and at the peaks. Blocks of one ledger whose sites have the same
//! library, entry point and runtime call stand together; beside that the same memory by size of
//! the blocks and by the time that they were made.

use std::collections::BTreeMap;
use std::fmt;

use rustc_hash::FxHashMap;

use crate::input::{Dictionary, Frame, Frames, Site};
use crate::live::{
    AGE_SHIFT, Axis, Books, GpuSlot, Ledger, LiveBlock, LiveSet, Moment, Share, SiteIndex, Sum,
    size_class,
};
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

/// A place in a Python program.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PythonLine {
    /// The file as the interpreter names it.
    pub file: String,
    /// The line; `None` when the instruction belongs to none.
    pub line: Option<u64>,
    /// The function's qualified name.
    pub function: String,
}

/// As people write it: `service.py:42 handle_request`, without the folders.
impl fmt::Display for PythonLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.file.rsplit('/').next().unwrap_or(&self.file);
        match self.line {
            Some(line) => write!(f, "{name}:{line} {}", self.function),
            None => write!(f, "{name} {}", self.function),
        }
    }
}

impl PythonLine {
    /// The line of the program's own that called, for the chain that begins at a node: the
    /// innermost that is no part of an installed package or of Python itself, or the innermost if
    /// all are. `None` without a Python frame.
    #[must_use]
    pub fn of(node: u32, frames: &Frames) -> Option<Self> {
        let mut innermost = None;
        for frame in frames.chain(node) {
            let Frame::Python { code, at, .. } = frame else { continue };
            let Some(object) = frames.code(code) else { continue };
            let own = !is_installed(&object.file);
            if own || innermost.is_none() {
                let (file, function) = (object.file.clone(), object.name.clone());
                innermost = Some(Self { file, line: frames.line(code, at), function });
            }
            if own {
                break;
            }
        }
        innermost
    }
}

/// Whether a file belongs to an installed package, to the standard library, or is frozen into the
/// interpreter.
fn is_installed(file: &str) -> bool {
    file.contains("/site-packages/")
        || file.contains("/dist-packages/")
        || file.contains("/lib/python3")
        || file.starts_with("<frozen ")
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
    /// The Python line that called.
    pub caller: Option<PythonLine>,
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
            caller: PythonLine::of(site.stack.python, &dictionary.frames),
        }
    }
}

/// An amount of memory, cut in three ways. Each adds up to the whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// By ledger and site, the largest first.
    pub held: Vec<Holding>,
    /// By [`size_class`].
    pub sizes: BTreeMap<usize, Share>,
    /// By bucket of age, each of `1 << AGE_SHIFT` buckets of the time axis.
    pub ages: BTreeMap<usize, Share>,
}

struct Grouping<'a> {
    live: &'a LiveSet,
    dictionary: &'a Dictionary,
    names: FxHashMap<SiteIndex, SiteName>,
    groups: FxHashMap<(Ledger, SiteName), Holding>,
    sizes: BTreeMap<usize, Share>,
    ages: BTreeMap<usize, Share>,
}

fn add(shares: &mut BTreeMap<usize, Share>, index: usize, share: Share) {
    let entry = shares.entry(index).or_default();
    *entry = entry.plus(share);
}

impl<'a> Grouping<'a> {
    fn new(live: &'a LiveSet, dictionary: &'a Dictionary) -> Self {
        Self {
            live,
            dictionary,
            names: FxHashMap::default(),
            groups: FxHashMap::default(),
            sizes: BTreeMap::new(),
            ages: BTreeMap::new(),
        }
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
        let mut held: Vec<Holding> = self.groups.into_values().collect();
        sort(&mut held);
        Cut { held, sizes: self.sizes, ages: self.ages }
    }
}

fn age_bucket(axis: &Axis, at: Ticks) -> usize {
    axis.bucket(at) >> AGE_SHIFT
}

/// What is live now of each ledger, on one device or on all. Within a window only what was made
/// in it.
#[must_use]
pub fn now(live: &LiveSet, dictionary: &Dictionary, gpu: Option<GpuSlot>) -> Vec<(Ledger, Cut)> {
    let ledgers = Ledger::ALL.iter();
    let mut groupings: Vec<Grouping<'_>> =
        ledgers.map(|_| Grouping::new(live, dictionary)).collect();
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
    for cut in cuts {
        all.held.extend(cut.held.iter().cloned());
        cut.sizes.iter().for_each(|(&class, &share)| add(&mut all.sizes, class, share));
        cut.ages.iter().for_each(|(&bucket, &share)| add(&mut all.ages, bucket, share));
    }
    sort(&mut all.held);
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
pub fn at_peak(live: &LiveSet, dictionary: &Dictionary, books: &Books, ledger: Ledger) -> Cut {
    let mut grouping = Grouping::new(live, dictionary);
    if books.book(ledger).tally.peak_bytes > 0 {
        grouping.add_ledger(books, ledger, Moment::OwnPeak);
    }
    grouping.cut()
}

/// What a sum was made of at its peak.
#[must_use]
pub fn at_sum_peak(live: &LiveSet, dictionary: &Dictionary, books: &Books, sum: Sum) -> Cut {
    let mut grouping = Grouping::new(live, dictionary);
    if books.sum(sum).peak_bytes > 0 {
        for ledger in sum.ledgers() {
            grouping.add_ledger(books, ledger, Moment::SumPeak);
        }
    }
    grouping.cut()
}
