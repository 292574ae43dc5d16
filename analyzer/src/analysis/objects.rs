//! Who made the objects that are there: those of one class whose sites have the same library, entry
//! point and runtime call stand together.

use std::collections::BTreeMap;

use crate::analysis::held::SiteName;
use crate::input::Dictionary;
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

/// What is there now, the most first. Within a window only what was made in it.
#[must_use]
pub fn now(live: &LiveSet, dictionary: &Dictionary) -> Vec<Made> {
    let mut groups: BTreeMap<(Class, SiteName), (u64, Ticks)> = BTreeMap::new();
    let wanted = live.objects.live().filter(|(_, one)| live.since.is_none_or(|at| one.at >= at));
    for (class, object) in wanted {
        let site = SiteName::of(live.sites.site(object.site), dictionary);
        let (count, oldest) = groups.entry((class, site)).or_insert((0, object.at));
        *count += 1;
        *oldest = (*oldest).min(object.at);
    }
    let one = |((class, site), (count, oldest))| Made { class, site, count, oldest };
    let mut made: Vec<Made> = groups.into_iter().map(one).collect();
    made.sort_by_key(|made| std::cmp::Reverse(made.count));
    made
}
