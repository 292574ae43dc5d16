//! Who made the objects that are there: those of one class whose sites have the same library, entry
//! point and runtime call stand together.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::analysis::held::ROWS;
use crate::analysis::names::{Names, SiteName};
use crate::live::{Class, LiveSet};
use crate::units::Ticks;

/// Objects of one class and one kind of call site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// The class.
    pub class: Class,
    /// Whose calls.
    pub site: SiteName,
    /// How many.
    pub count: u64,
    /// When the oldest was made.
    pub oldest: Ticks,
}

/// What is there now, the most first: as many rows as a list of sites has, then one of all other
/// sites for each class that has others. Within a window only what was made in it.
#[must_use]
pub fn now(live: &LiveSet, names: &Names) -> Vec<Made> {
    let mut groups: FxHashMap<(Class, u32), (u64, Ticks)> = FxHashMap::default();
    let wanted = live.objects.live().filter(|(_, one)| live.since.is_none_or(|at| one.at >= at));
    for (class, object) in wanted {
        let group = (class, names.group(object.site));
        let (count, oldest) = groups.entry(group).or_insert((0, object.at));
        *count += 1;
        *oldest = (*oldest).min(object.at);
    }
    let mut all: Vec<_> = groups.into_iter().collect();
    all.sort_unstable_by(|(a, of_a), (b, of_b)| {
        let named = |&(class, group)| (class, names.name(group));
        of_b.0.cmp(&of_a.0).then_with(|| named(a).cmp(&named(b)))
    });
    let mut others: BTreeMap<Class, (u64, u64, Ticks)> = BTreeMap::new();
    for ((class, _), (count, oldest)) in all.split_off(ROWS.min(all.len())) {
        let (sites, sum, first) = others.entry(class).or_insert((0, 0, oldest));
        (*sites, *sum, *first) = (*sites + 1, *sum + count, (*first).min(oldest));
    }
    let named = all.into_iter().map(|((class, group), (count, oldest))| {
        let site = names.name(group).clone();
        Made { class, site, count, oldest }
    });
    let others = others.into_iter().map(|(class, (sites, count, oldest))| {
        let site = SiteName::others(sites);
        Made { class, site, count, oldest }
    });
    named.chain(others).collect()
}
