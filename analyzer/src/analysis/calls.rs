//! How often each entry point was called, and how long it took.
//!
//! A driver call is one event. A runtime call is the first event beneath it, or an event of its
//! own when there was none beneath; its time is that of the driver calls beneath.

use std::collections::BTreeMap;

use gmmtrace_format::definition::Layer;

use crate::input::Dictionary;
use crate::live::{Calls, LiveSet};
use crate::units::Ticks;

/// Calls of one entry point.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntryPoint {
    /// Its name; `None` when its definition is not there.
    pub api: Option<String>,
    /// Its library.
    pub layer: Option<Layer>,
    /// Calls.
    pub calls: u64,
    /// Those that failed.
    pub failed: u64,
    /// Their time together.
    pub total: Ticks,
    /// The longest.
    pub max: Ticks,
}

#[derive(Default)]
struct Sum {
    calls: u64,
    failed: u64,
    total: u64,
    max: u64,
}

impl Sum {
    fn add(&mut self, calls: u64, failed: u64, times: &Calls) {
        self.calls = self.calls.saturating_add(calls);
        self.failed = self.failed.saturating_add(failed);
        self.total = self.total.saturating_add(times.total);
        self.max = self.max.max(times.max);
    }
}

/// Every entry point that was called, the one with most calls first.
#[must_use]
pub fn by_entry_point(live: &LiveSet, dictionary: &Dictionary) -> Vec<EntryPoint> {
    let mut sums: BTreeMap<u32, Sum> = BTreeMap::new();
    for (site, calls) in live.sites.all().filter(|(_, calls)| calls.count > 0) {
        let api = site.map_or(0, |site| site.api);
        sums.entry(api).or_default().add(calls.count, calls.failed, calls);
        if let Some(outer) = site.map(|site| site.outer).filter(|&outer| outer != 0) {
            sums.entry(outer).or_default().add(calls.first, calls.first_failed, calls);
        }
    }
    let named = |(id, sum): (u32, Sum)| {
        let api = dictionary.apis.get(&id);
        EntryPoint {
            api: api.map(|api| api.name.clone()),
            layer: api.and_then(|api| api.layer),
            calls: sum.calls,
            failed: sum.failed,
            total: Ticks(sum.total),
            max: Ticks(sum.max),
        }
    };
    let mut found: Vec<EntryPoint> = sums.into_iter().map(named).collect();
    found.sort_by(|a, b| b.calls.cmp(&a.calls).then_with(|| a.api.cmp(&b.api)));
    found
}
