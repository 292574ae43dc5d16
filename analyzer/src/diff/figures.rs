//! Named numbers with a unit, and how those of several processes are put together.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::name::Name;

/// What a figure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Things.
    Count,
    /// Nanoseconds.
    Nanos,
}

impl Unit {
    /// The unit of a key of the report, which says it at its end.
    #[must_use]
    pub fn of_key(key: &str) -> Self {
        if key == "bytes" || key.ends_with("_bytes") {
            Self::Bytes
        } else if key.ends_with("_ns") {
            Self::Nanos
        } else {
            Self::Count
        }
    }

    /// Its name in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Count => "count",
            Self::Nanos => "ns",
        }
    }

    /// It behind "is" in a sentence.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Bytes => "in bytes",
            Self::Count => "a count",
            Self::Nanos => "a time",
        }
    }
}

/// Figures that are read together, in the order in which they are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// Bytes held at a moment.
    Memory,
    /// Bytes held, by library and by site.
    Holders,
    /// Bytes that went by.
    Traffic,
    /// Counts.
    Counts,
    /// Parts by size of the blocks or copies.
    Sizes,
    /// Times.
    Times,
}

/// First parts of names whose bytes are sums over time, not bytes held at a moment.
const TRAFFIC: [&str; 5] = ["alloc_bytes", "free_bytes", "implicit_bytes", "copies", "sets"];

impl Group {
    /// Every group, in order.
    pub const ALL: [Self; 6] =
        [Self::Memory, Self::Holders, Self::Traffic, Self::Counts, Self::Sizes, Self::Times];

    /// The group of a figure whose name, without its device, is made of `parts`.
    #[must_use]
    pub fn of(parts: &[String], unit: Unit) -> Self {
        let part = |index: usize| parts.get(index).map_or("", String::as_str);
        match unit {
            _ if is_size(parts) => Self::Sizes,
            Unit::Count => Self::Counts,
            Unit::Nanos => Self::Times,
            Unit::Bytes if TRAFFIC.contains(&part(0)) => Self::Traffic,
            Unit::Bytes if matches!(part(2), "library" | "site") => Self::Holders,
            Unit::Bytes => Self::Memory,
        }
    }

    /// Its name in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Holders => "holders",
            Self::Traffic => "traffic",
            Self::Counts => "counts",
            Self::Sizes => "sizes",
            Self::Times => "times",
        }
    }
}

/// Whether these are the parts of a class of sizes, as in `peak.gpu.size.1MiB`: the second last
/// one says so, and what stands before it is a figure of its own.
fn is_size(parts: &[String]) -> bool {
    let has_sizes = |head: &String| matches!(head.as_str(), "peak" | "live" | "copies" | "sets");
    match parts {
        [head, _, .., size, _] => has_sizes(head) && size == "size",
        _ => false,
    }
}

/// One number of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figure {
    /// The number; `None` when it is not known.
    pub value: Option<i128>,
    /// What it counts.
    pub unit: Unit,
    /// Whether it is a bound, because events may be missing.
    pub bound: bool,
    /// Figures that it says again when it is equal to one of them.
    pub repeats: Vec<Name>,
    /// Whether it is that of one device. The last part of its name is the device then.
    pub of_device: bool,
    /// Whether it is 0 because what it counts was not used at all.
    pub idle: bool,
}

impl Figure {
    /// A figure of all devices that is exact and says nothing again.
    #[must_use]
    pub const fn new(value: Option<i128>, unit: Unit) -> Self {
        Self { value, unit, bound: false, repeats: Vec::new(), of_device: false, idle: false }
    }

    /// The parts of its name without the device.
    #[must_use]
    pub fn whole<'a>(&self, name: &'a Name) -> &'a [String] {
        whole(name, self.of_device)
    }
}

/// The parts of a name without the device.
pub(super) fn whole(name: &Name, of_device: bool) -> &[String] {
    match name.parts().split_last() {
        Some((_, whole)) if of_device => whole,
        _ => name.parts(),
    }
}

/// The figures of one report, or of one run of several processes, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures(BTreeMap<Name, Figure>);

impl Figures {
    /// Adds a figure; one that is there already is put together with it.
    pub fn add(&mut self, name: Name, figure: Figure) {
        match self.0.entry(name) {
            Entry::Vacant(entry) => {
                entry.insert(figure);
            }
            Entry::Occupied(mut entry) => {
                let parts = figure.whole(entry.key());
                let value = together(parts, entry.get().value, figure.value);
                let there = entry.get_mut();
                there.value = value;
                there.bound |= figure.bound;
                there.idle &= figure.idle;
            }
        }
    }

    /// Figures below `section` that are 0 or not known are those of what was not used.
    pub fn idle_at_zero(&mut self, section: &Name) {
        let below = self.0.iter_mut().filter(|(name, _)| name.below(section).is_some());
        for (_, figure) in below {
            figure.idle |= figure.value.unwrap_or(0) == 0;
        }
    }

    /// The figure of this name.
    #[must_use]
    pub fn get(&self, name: &Name) -> Option<&Figure> {
        self.0.get(name)
    }

    /// Every figure, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&Name, &Figure)> {
        self.0.iter()
    }

    /// The figures of several processes of one run, put together.
    #[must_use]
    pub fn joined(processes: Vec<Self>) -> Self {
        let several = processes.len() > 1;
        let mut all = Self::default();
        for (name, mut figure) in processes.into_iter().flat_map(|process| process.0) {
            figure.bound |= several && is_moment(figure.whole(&name));
            all.add(name, figure);
        }
        all
    }

    /// Whether another figure of this run says what `figure` says.
    #[must_use]
    pub fn says_again(&self, figure: &Figure) -> bool {
        let same = |whole: &Figure| (whole.value, whole.bound) == (figure.value, figure.bound);
        figure.repeats.iter().filter_map(|whole| self.get(whole)).any(same)
    }
}

/// Sums, or the greater of two where a sum says nothing: of two longest calls the longer one, of
/// two readings of the same device the higher one.
fn together(parts: &[String], one: Option<i128>, other: Option<i128>) -> Option<i128> {
    let (one, other) = (one?, other?);
    let (head, key) = ends(parts);
    let greatest = match head {
        "duration" => true,
        "sampled" => matches!(key, "last_used" | "max_used"),
        "calls" | "stalls" => key == "max" || is_percentile(key),
        "peak" | "live" => false,
        _ => key == "max_ns" || is_percentile(key),
    };
    Some(if greatest { one.max(other) } else { one.saturating_add(other) })
}

fn ends(parts: &[String]) -> (&str, &str) {
    let [first, last] = [parts.first(), parts.last()].map(|part| part.map_or("", String::as_str));
    (first, last)
}

fn is_percentile(key: &str) -> bool {
    key.strip_prefix('p').is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
}

/// Whether the figure is that of a moment, and the moments of several processes are not the same
/// one, or a percentile: put together, such figures are upper bounds.
fn is_moment(parts: &[String]) -> bool {
    match ends(parts) {
        ("peak", _) | ("sampled", "max_process") => true,
        ("live", _) => false,
        (_, key) => is_percentile(key) || parts.iter().any(|part| part == "worst"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(name: &[&str], one: Option<i128>, other: Option<i128>) -> Figure {
        let name = Name::of(name);
        let unit = Unit::of_key(name.last());
        let [mut all, mut next] = [Figures::default(), Figures::default()];
        all.add(name.clone(), Figure::new(one, unit));
        next.add(name.clone(), Figure::new(other, unit));
        Figures::joined(vec![all, next]).get(&name).unwrap().clone()
    }

    #[test]
    fn processes_of_a_run_are_added_and_their_peaks_are_bounds() {
        let peak = joined(&["peak", "device"], Some(3), Some(4));
        assert_eq!((peak.value, peak.bound), (Some(7), true));
        let live = joined(&["live", "device"], Some(3), Some(4));
        assert_eq!((live.value, live.bound), (Some(7), false));
    }

    #[test]
    fn the_longest_of_two_calls_is_the_longer_one() {
        assert_eq!(joined(&["calls", "x", "max"], Some(3), Some(4)).value, Some(4));
        assert_eq!(joined(&["duration"], Some(3), Some(4)).value, Some(4));
        assert_eq!(joined(&["stalls", "alloc", "p99_ns"], Some(3), Some(4)).value, Some(4));
    }

    #[test]
    fn unknown_and_known_is_unknown() {
        assert_eq!(joined(&["live", "device"], None, Some(4)).value, None);
    }

    #[test]
    fn the_largest_numbers_can_be_added() {
        let most = i128::from(u64::MAX);
        assert_eq!(joined(&["live", "x"], Some(most), Some(most)).value, Some(2 * most));
    }
}
