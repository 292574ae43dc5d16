//! Call sites by a small number, with what is counted per site.
//!
//! Ids in events may be anything; those without a definition share index 0, so tables stay as
//! long as the dictionary however hostile the log is.

use gmmtrace_format::Kind;
use gmmtrace_format::event::Flags;
use rustc_hash::FxHashMap;

use crate::input::{Dictionary, Site};
use crate::order::Record;

/// A site's place in tables; 0 is the unknown site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SiteIndex(pub u32);

/// Calls of one site. Times are in ticks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Calls {
    /// Events.
    pub count: u64,
    /// Events whose call failed.
    pub failed: u64,
    /// Their length together.
    pub total: u64,
    /// The longest.
    pub max: u64,
    /// Events that are the first under their runtime call.
    pub first: u64,
    /// Those of them whose call failed.
    pub first_failed: u64,
}

#[derive(Debug)]
struct Row {
    site: Option<Site>,
    /// Whether a pointer of 0 in its runtime event is a null call.
    null_is_a_call: bool,
    calls: Calls,
}

/// Ids below it are looked up without hashing.
const DIRECT: u32 = 1 << 16;

/// Every site of a log.
#[derive(Debug)]
pub struct Sites {
    rows: Vec<Row>,
    direct: Vec<SiteIndex>,
    others: FxHashMap<u32, SiteIndex>,
}

impl Sites {
    /// The sites that a dictionary defines.
    #[must_use]
    pub fn new(dictionary: &Dictionary) -> Self {
        let mut ids: Vec<(&u32, &Site)> = dictionary.sites.iter().collect();
        ids.sort_unstable_by_key(|&(id, _)| *id);
        let unknown = Row { site: None, null_is_a_call: false, calls: Calls::default() };
        let mut sites =
            Self { rows: vec![unknown], direct: Vec::new(), others: FxHashMap::default() };
        for (&id, &site) in ids {
            sites.add(id, site, dictionary);
        }
        sites
    }

    fn add(&mut self, id: u32, site: Site, dictionary: &Dictionary) {
        let Ok(index) = u32::try_from(self.rows.len()).map(SiteIndex) else { return };
        let name = dictionary.api(site.api).unwrap_or_default();
        let null_is_a_call = ["Malloc", "Alloc", "Free"].iter().any(|&word| name.contains(word));
        self.rows.push(Row { site: Some(site), null_is_a_call, calls: Calls::default() });
        if id >= DIRECT {
            self.others.insert(id, index);
            return;
        }
        let place = id as usize;
        if place >= self.direct.len() {
            self.direct.resize(place + 1, SiteIndex(0));
        }
        if let Some(slot) = self.direct.get_mut(place) {
            *slot = index;
        }
    }

    /// The place of a site id.
    #[must_use]
    #[inline]
    pub fn index(&self, id: u32) -> SiteIndex {
        match self.direct.get(id as usize) {
            Some(&index) => index,
            None if id < DIRECT => SiteIndex(0),
            None => self.others.get(&id).copied().unwrap_or_default(),
        }
    }

    /// What a site is; `None` when its definition is not there.
    #[must_use]
    #[inline]
    pub fn site(&self, index: SiteIndex) -> Option<Site> {
        self.rows.get(index.0 as usize).and_then(|row| row.site)
    }

    /// Whether the site stands under a runtime call.
    #[must_use]
    #[inline]
    pub fn has_outer(&self, index: SiteIndex) -> bool {
        self.site(index).is_some_and(|site| site.outer != 0)
    }

    /// Whether a pointer of 0 in a runtime event of this site is a null call.
    #[must_use]
    pub fn null_is_a_call(&self, index: SiteIndex) -> bool {
        self.rows.get(index.0 as usize).is_some_and(|row| row.null_is_a_call)
    }

    /// Counts an event that is a call.
    #[inline]
    pub fn count(&mut self, index: SiteIndex, record: &Record) {
        // What has no site and is no call of the driver is a fact or a mark.
        if index.0 == 0 && !is_call(record.kind) {
            return;
        }
        let Some(row) = self.rows.get_mut(index.0 as usize) else { return };
        let calls = &mut row.calls;
        let failed = u64::from(record.failed());
        let first = u64::from(record.flags().has(Flags::CALL_FIRST));
        let length = record.duration().0;
        calls.count += 1;
        calls.failed += failed;
        calls.total = calls.total.saturating_add(length);
        calls.max = calls.max.max(length);
        calls.first += first;
        calls.first_failed += first & failed;
    }

    /// Begins to count anew.
    pub fn begin(&mut self) {
        for row in &mut self.rows {
            row.calls = Calls::default();
        }
    }

    /// Every site with its calls, those without a definition first.
    pub fn all(&self) -> impl Iterator<Item = (Option<Site>, &Calls)> {
        self.rows.iter().map(|row| (row.site, &row.calls))
    }
}

/// Kinds that stand for a call of an entry point.
fn is_call(kind: u8) -> bool {
    kind == Kind::RuntimeCall as u8 || (kind < Kind::ContextCurrent as u8 && kind != 0)
}
