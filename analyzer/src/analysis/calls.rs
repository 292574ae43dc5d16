//! How often each entry point was called, and how long it took.
//!
//! A driver call is one event. A runtime call is the first event beneath it, or an event of its
//! own when there was none beneath; its time is that of the driver calls beneath.

use std::collections::BTreeMap;
use std::sync::Arc;

use gmmtrace_format::definition::Layer;

use crate::input::Dictionary;
use crate::live::{Calls, LiveSet};
use crate::units::Ticks;

/// Calls of one entry point.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntryPoint {
    /// Its name; `None` when its definition is not there.
    pub api: Option<Arc<str>>,
    /// Its library.
    pub layer: Option<Layer>,
    /// How many entry points this stands for that the list does not name; 0 for one that it does.
    pub others: u64,
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

/// Entry points that the list names. CUDA has some hundreds; a log may claim any number.
const ROWS: usize = 1_000;

/// Every entry point that was called, the one with most calls first, and all that the list does
/// not name in a last row.
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
            api: api.map(|api| Arc::clone(&api.name)),
            layer: api.and_then(|api| api.layer),
            others: 0,
            calls: sum.calls,
            failed: sum.failed,
            total: Ticks(sum.total),
            max: Ticks(sum.max),
        }
    };
    let mut found: Vec<EntryPoint> = sums.into_iter().map(named).collect();
    found.sort_by(|a, b| b.calls.cmp(&a.calls).then_with(|| a.api.cmp(&b.api)));
    let others = found.split_off(ROWS.min(found.len()));
    found.extend(others.into_iter().reduce(together));
    found
}

/// Two rows of what the list does not name as one.
fn together(one: EntryPoint, other: EntryPoint) -> EntryPoint {
    let ticks = |one: Ticks, other: Ticks| Ticks(one.0.saturating_add(other.0));
    EntryPoint {
        api: None,
        layer: None,
        others: one.others.max(1) + other.others.max(1),
        calls: one.calls.saturating_add(other.calls),
        failed: one.failed.saturating_add(other.failed),
        total: ticks(one.total, other.total),
        max: one.max.max(other.max),
    }
}
