//! The sides beside each other, figure by figure.
//!
//! Of several runs a side shows the median and the range from the least to the greatest. A
//! change whose ranges overlap is noise: runs of one side differ as much.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::figures::{Figure, Group, Unit, whole};
use super::headers::Unlike;
use super::name::{Name, Pattern, plain};
use super::sides::Side;

/// What a side says about a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// No run has it.
    Absent,
    /// Every run that has it says that it is not known.
    Unknown,
    /// Its values.
    Known(Spread),
}

impl Found {
    /// The values, if there are any.
    #[must_use]
    pub const fn known(self) -> Option<Spread> {
        match self {
            Self::Known(spread) => Some(spread),
            Self::Absent | Self::Unknown => None,
        }
    }
}

/// The values of a figure in the runs of a side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    /// The middle one; of an even number the middle of the middle two, rounded down.
    pub median: i128,
    /// The least.
    pub least: i128,
    /// The greatest.
    pub greatest: i128,
    /// Runs that know it.
    pub runs: usize,
    /// Whether any of them is a bound.
    pub bound: bool,
}

/// A figure on both sides.
#[derive(Clone, Debug)]
pub struct Pair {
    /// Its name.
    pub name: Name,
    /// What it counts.
    pub unit: Unit,
    /// Where it is shown.
    pub group: Group,
    /// The base side.
    pub base: Found,
    /// The new side.
    pub new: Found,
    /// Whether the change may come from runs that differ anyhow.
    pub noise: bool,
    /// Whether another figure says the same.
    pub repeats: bool,
    /// Whether it is that of one device.
    pub of_device: bool,
}

impl Pair {
    /// The parts of its name without the device, and the device.
    #[must_use]
    pub fn parts(&self) -> (&[String], Option<&str>) {
        let device = self.of_device.then(|| self.name.last());
        (whole(&self.name, self.of_device), device)
    }

    /// New minus base, where both are known.
    #[must_use]
    pub fn change(&self) -> Option<i128> {
        Some(self.new.known()?.median.saturating_sub(self.base.known()?.median))
    }

    /// The change in percent of the base, unless that is 0.
    #[must_use]
    pub fn percent(&self) -> Option<f64> {
        let base = self.base.known()?.median;
        let change = self.change()?;
        (base != 0).then(|| change as f64 / base.unsigned_abs() as f64 * 100.0)
    }

    /// Whether both sides say the same.
    #[must_use]
    pub fn is_same(&self) -> bool {
        match (self.base, self.new) {
            (Found::Known(base), Found::Known(new)) => {
                (base.median, base.least, base.greatest) == (new.median, new.least, new.greatest)
            }
            (Found::Known(_), _) | (_, Found::Known(_)) => false,
            _ => true,
        }
    }

    /// How far the sides are apart; what stands on one side only counts with its value.
    #[must_use]
    pub fn distance(&self) -> u128 {
        let [base, new] = self.values();
        new.abs_diff(base)
    }

    /// Both medians; what is not known is 0.
    fn values(&self) -> [i128; 2] {
        [self.base, self.new].map(|side| side.known().map_or(0, |side| side.median))
    }

    /// Whether the ranges of the sides overlap, where there is more than one run.
    #[must_use]
    pub fn overlaps(&self) -> bool {
        let (Some(base), Some(new)) = (self.base.known(), self.new.known()) else { return false };
        let several = base.runs > 1 || new.runs > 1;
        several && base.least <= new.greatest && new.least <= base.greatest
    }
}

/// Two sides, compared.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The base side.
    pub base: Side,
    /// The new side.
    pub new: Side,
    /// What was not alike.
    pub unlike: Vec<Unlike>,
    /// Every figure of either side, by name.
    pub pairs: BTreeMap<Name, Pair>,
}

impl Comparison {
    /// Compares two sides.
    #[must_use]
    pub fn of(base: Side, new: Side) -> Self {
        let runs = || base.runs.iter().chain(&new.runs);
        let names: BTreeSet<&Name> =
            runs().flat_map(|run| run.figures.iter()).map(|(name, _)| name).collect();
        let mut pairs: BTreeMap<Name, Pair> = BTreeMap::new();
        for name in names {
            let Some(figure) = runs().find_map(|run| run.figures.get(name)) else { continue };
            pairs.insert(name.clone(), pair(name, figure, &base, &new));
        }
        for name in repeating(&base, &new, &pairs) {
            if let Some(pair) = pairs.get_mut(&name) {
                pair.repeats = true;
            }
        }
        let unlike = base.facts().unlike(&new.facts());
        Self { base, new, unlike, pairs }
    }

    /// Figures that are not the same, the largest change of each group first, noise last. What
    /// only one side has is a change in who holds memory; elsewhere it comes after the changes.
    #[must_use]
    pub fn changes(&self) -> Vec<&Pair> {
        let mut changes: Vec<&Pair> = self.pairs.values().filter(|pair| !pair.is_same()).collect();
        changes.sort_by_cached_key(|pair| {
            let lone = pair.group != Group::Holders && pair.change().is_none();
            let order = HEADS.iter().position(|&head| pair.name.part(0) == head);
            let order = order.unwrap_or(HEADS.len());
            // What a reading shows depends on when it was taken.
            let reading = pair.name.part(0) == "sampled";
            (pair.noise, pair.group, lone, reading, Reverse(pair.distance()), order, &pair.name)
        });
        changes
    }

    /// Whether a side has more than one run.
    #[must_use]
    pub fn has_several_runs(&self) -> bool {
        self.base.runs.len() > 1 || self.new.runs.len() > 1
    }

    /// The figures that a pattern means.
    #[must_use]
    pub fn find(&self, pattern: &Pattern) -> Vec<&Pair> {
        let exact: Vec<&Pair> =
            self.pairs.values().filter(|pair| pattern.matches(&pair.name)).collect();
        if !exact.is_empty() || pattern.is_family() {
            return exact;
        }
        let wanted = pattern.plain();
        self.pairs.values().filter(|pair| plain(&pair.name) == wanted).collect()
    }

    /// Whether a class of sizes changed by so little of the whole that nobody wants to read it.
    #[must_use]
    pub fn is_minor(&self, pair: &Pair) -> bool {
        let (parts, device) = pair.parts();
        let above = parts.len().saturating_sub(2);
        let whole: Vec<&str> = parts.iter().take(above).map(String::as_str).chain(device).collect();
        let whole = self.pairs.get(&Name::of(&whole));
        let most = whole.map_or(0, |whole| whole.values().into_iter().max().unwrap_or_default());
        pair.group == Group::Sizes && pair.distance().saturating_mul(NOTABLE) < most.unsigned_abs()
    }

    /// What the figure is made of, the largest changes in its own direction first: by site where
    /// sites are known, else by library, else by device, else by the figures below it.
    #[must_use]
    pub fn contributors(&self, of: &Pair, upwards: bool) -> Vec<&Pair> {
        let (whole, device) = of.parts();
        let on_devices = |pair: &Pair| {
            let (parts, on) = pair.parts();
            device.is_none() && on.is_some() && parts == whole && !pair.repeats
        };
        let grown = |shape: &Shape| -> Vec<&Pair> {
            let fits = |pair: &&Pair| {
                let (parts, on) = pair.parts();
                match *shape {
                    Shape::Devices => on_devices(pair),
                    Shape::Below(head, length) => {
                        on == device && is_part(parts, whole, head, length)
                    }
                    Shape::Kinds(more) => on == device && is_kind(parts, whole, more),
                }
            };
            self.pairs.values().filter(fits).filter(|pair| moved(pair, upwards)).collect()
        };
        let mut found = SHAPES.iter().map(grown);
        let mut parts = found.find(|parts| !parts.is_empty()).unwrap_or_default();
        parts.sort_by_key(|pair| Reverse(pair.distance()));
        parts
    }
}

/// Figures that a figure is made of.
enum Shape {
    /// Those with so many more parts, the first of which is this; any where it is empty.
    Below(&'static str, usize),
    /// Those of single devices.
    Devices,
    /// Those with so many more parts before the last.
    Kinds(usize),
}

/// What is looked for, in this order.
const SHAPES: [Shape; 7] = [
    Shape::Below("site", 3),
    Shape::Below("library", 2),
    Shape::Devices,
    Shape::Below("", 1),
    Shape::Kinds(1),
    Shape::Kinds(2),
    Shape::Below("size", 2),
];

/// First parts of names that stand before others of the same change.
const HEADS: [&str; 2] = ["peak", "live"];

/// A class of sizes is notable when it changed by one part in so many of the whole.
const NOTABLE: u128 = 20;

/// Whether `parts` are so many below `whole`, the first of which is `head`, or any.
fn is_part(parts: &[String], whole: &[String], head: &str, length: usize) -> bool {
    let tail = parts.strip_prefix(whole).filter(|tail| tail.len() == length);
    tail.and_then(<[String]>::first).is_some_and(|first| head.is_empty() || first == head)
}

/// Whether `parts` are `whole` with so many parts before its last, as `copies.peer.bytes` is of
/// `copies.bytes`.
fn is_kind(parts: &[String], whole: &[String], more: usize) -> bool {
    let Some((last, head)) = whole.split_last().filter(|(_, head)| !head.is_empty()) else {
        return false;
    };
    parts.len() == whole.len() + more && parts.starts_with(head) && parts.last() == Some(last)
}

fn moved(pair: &Pair, upwards: bool) -> bool {
    let [base, new] = pair.values();
    if upwards { new > base } else { new < base }
}

fn pair(name: &Name, figure: &Figure, base: &Side, new: &Side) -> Pair {
    let unit = figure.unit;
    let mut pair = Pair {
        name: name.clone(),
        unit,
        group: Group::of(figure.whole(name), unit),
        base: found(name, base),
        new: found(name, new),
        noise: false,
        repeats: false,
        of_device: figure.of_device,
    };
    pair.noise = !pair.is_same() && pair.overlaps();
    pair
}

fn found(name: &Name, side: &Side) -> Found {
    let figures: Vec<&Figure> = side.runs.iter().filter_map(|run| run.figures.get(name)).collect();
    let mut values: Vec<i128> = figures.iter().filter_map(|figure| figure.value).collect();
    values.sort_unstable();
    let (Some(&least), Some(&greatest)) = (values.first(), values.last()) else {
        return if figures.is_empty() { Found::Absent } else { Found::Unknown };
    };
    let bound = figures.iter().any(|figure| figure.bound);
    Found::Known(Spread { median: median(&values), least, greatest, runs: values.len(), bound })
}

/// The median of values in order, of which there is at least one.
fn median(values: &[i128]) -> i128 {
    let at = |index: usize| values.get(index).copied().unwrap_or_default();
    let middle = values.len() / 2;
    if values.len() % 2 == 1 {
        return at(middle);
    }
    let (low, high) = (at(middle.saturating_sub(1)), at(middle));
    low.saturating_add(high.saturating_sub(low) / 2)
}

/// Figures that say what another one says already.
fn repeating(base: &Side, new: &Side, pairs: &BTreeMap<Name, Pair>) -> BTreeSet<Name> {
    let mut repeating = BTreeSet::new();
    for run in base.runs.iter().chain(&new.runs) {
        for (name, figure) in run.figures.iter() {
            let Some(pair) = pairs.get(name) else { continue };
            let same = |whole: &Pair| pair.base == whole.base && pair.new == whole.new;
            if figure.repeats.iter().filter_map(|whole| pairs.get(whole)).any(same) {
                repeating.insert(name.clone());
            }
        }
    }
    repeating
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_one_or_the_middle_of_two() {
        assert_eq!(median(&[7]), 7);
        assert_eq!(median(&[1, 2, 9]), 2);
        assert_eq!(median(&[1, 2, 5, 9]), 3);
        let most = i128::from(u64::MAX);
        assert_eq!(median(&[most, most]), most);
        assert_eq!(median(&[i128::MAX, i128::MAX]), i128::MAX);
    }
}
