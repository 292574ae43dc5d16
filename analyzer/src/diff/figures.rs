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
    /// Times.
    Times,
}

/// First parts of names whose bytes are sums over time, not bytes held at a moment.
const TRAFFIC: [&str; 5] = ["alloc_bytes", "free_bytes", "implicit_bytes", "copies", "sets"];

impl Group {
    /// Every group, in order.
    pub const ALL: [Self; 5] =
        [Self::Memory, Self::Holders, Self::Traffic, Self::Counts, Self::Times];

    /// The group of a figure.
    #[must_use]
    pub fn of(name: &Name, unit: Unit) -> Self {
        match unit {
            Unit::Count => Self::Counts,
            Unit::Nanos => Self::Times,
            Unit::Bytes if TRAFFIC.contains(&name.part(0)) => Self::Traffic,
            Unit::Bytes if matches!(name.part(2), "library" | "site") => Self::Holders,
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
            Self::Times => "times",
        }
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
    /// A figure that it says again when both are equal.
    pub repeats: Option<Name>,
}

impl Figure {
    /// A figure that is exact and says nothing again.
    #[must_use]
    pub const fn new(value: Option<i128>, unit: Unit) -> Self {
        Self { value, unit, bound: false, repeats: None }
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
                let value = together(entry.key(), entry.get().value, figure.value);
                let there = entry.get_mut();
                there.value = value;
                there.bound |= figure.bound;
            }
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
            figure.bound |= several && is_moment(&name);
            all.add(name, figure);
        }
        all
    }
}

/// Sums, or the greater of two where a sum says nothing: of two longest calls the longer one, of
/// two readings of the same device the higher one.
fn together(name: &Name, one: Option<i128>, other: Option<i128>) -> Option<i128> {
    const READINGS: [&str; 3] = ["duration", "last_used_bytes", "max_used_bytes"];
    let (one, other) = (one?, other?);
    let key = name.last();
    let greatest = READINGS.contains(&key) || is_percentile(key) || key == "max_ns";
    Some(if greatest { one.max(other) } else { one.saturating_add(other) })
}

fn is_percentile(key: &str) -> bool {
    key.strip_prefix('p').is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
}

/// Whether the figure is that of a moment, and the moments of several processes are not the same
/// one, or a percentile: put together, such figures are upper bounds.
fn is_moment(name: &Name) -> bool {
    let parts = name.parts();
    name.part(0) == "peak"
        || parts.iter().any(|part| part == "worst")
        || name.last() == "max_process_bytes"
        || is_percentile(name.last())
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
        assert_eq!(joined(&["calls", "x", "max_ns"], Some(3), Some(4)).value, Some(4));
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
