//! Who holds memory at the end and at the peaks: by library, by site, and by size of the blocks.

use serde_json::Value;

use super::{Reading, figure, is_bound, named, objects, rows, text};
use crate::analysis::held::ROWS;
use crate::diff::figures::Figure;
use crate::diff::name::Name;
use crate::render::text::page::elided;

/// Sums, and the ledgers that each adds.
pub(super) struct Sums(Vec<(String, Vec<String>)>);

impl Sums {
    /// Those of a report. Where it has none there is one, at the top of `peak`.
    pub(super) fn of(report: &Value) -> Self {
        let adds = |value: &Value| rows(value).filter_map(text).collect::<Vec<_>>();
        let sums = objects(&report["sums"]);
        let mut sums: Vec<_> =
            sums.map(|(sum, value)| (sum.clone(), adds(&value["adds"]))).collect();
        if sums.is_empty() {
            sums.push((main(report).to_owned(), adds(&report["peak"]["adds"])));
        }
        Self(sums)
    }

    /// The sum that a ledger is in.
    fn with(&self, ledger: &str) -> Option<&str> {
        let found = self.0.iter().find(|(_, adds)| adds.iter().any(|added| added == ledger));
        found.map(|(sum, _)| sum.as_str())
    }
}

/// The sum that `peak` and `live` are about.
fn main(scope: &Value) -> &str {
    scope["peak"]["sum"].as_str().unwrap_or("gpu")
}

/// Adds what the main sum and every ledger are made of, of all devices or of one.
pub(super) fn holders(reading: &mut Reading<'_>, scope: &Value, sums: &Sums) {
    let held = Held::of(&scope["live_at_end"]);
    for (number, row) in rows(&scope["live_at_end"]).enumerate() {
        let ledger = named(row, "ledger");
        let sum = sums.with(&ledger);
        if let Some(sum) = sum {
            holder(reading, ["live", sum], None, row, held.whose(number, row));
        }
        holder(reading, ["live", &ledger], sum, row, held.whose(number, row));
    }
    composition(reading, main(scope), None, &scope["peak"]);
    for (ledger, peak) in objects(&scope["peak"]["ledgers"]) {
        composition(reading, ledger, sums.with(ledger), peak);
    }
    let live = &scope["live"];
    let sum = live["sum"].as_str().unwrap_or("gpu");
    sizes(reading, &Name::of(&["live", sum]), "bytes", live, None);
}

/// Adds what the peaks of the other sums are made of.
pub(super) fn other_peaks(reading: &mut Reading<'_>, report: &Value) {
    let others = objects(&report["sums"]).filter(|(sum, _)| *sum != main(report));
    others.for_each(|(sum, value)| composition(reading, sum, None, value));
}

/// What the peak of a sum, or of a ledger in one, is made of.
fn composition(reading: &mut Reading<'_>, of: &str, sum: Option<&str>, value: &Value) {
    let held = Held::of(&value["held"]);
    for (number, row) in rows(&value["held"]).enumerate() {
        holder(reading, ["peak", of], sum, row, held.whose(number, row));
    }
    let within = sum.map(|sum| Name::of(&["peak", sum]));
    sizes(reading, &Name::of(&["peak", of]), "bytes", value, within.as_ref());
}

/// How a list of holders is read: its rows in front each by its name, the rest together, so that
/// there are not more figures than anybody looks at, however long the list is.
struct Held {
    /// Whether some of its rows have no name: what a library holds may then be more than what its
    /// rows say, and what a site holds too, because other callers of it have rows of their own.
    cut: bool,
}

/// Whose a row is.
#[derive(Clone, Copy)]
struct Whose {
    /// Whether it is that of sites which are not named.
    others: bool,
    /// As [`Held::cut`].
    cut: bool,
}

impl Held {
    fn of(list: &Value) -> Self {
        let cut = rows(list).enumerate().any(|(number, row)| are_others(number, row));
        Self { cut }
    }

    fn whose(&self, number: usize, row: &Value) -> Whose {
        Whose { others: are_others(number, row), cut: self.cut }
    }
}

/// Reports of earlier versions name every site.
fn are_others(number: usize, row: &Value) -> bool {
    number >= ROWS || stands_for_others(&row["site"])
}

/// Whether a site stands for those that a list does not name.
pub(super) fn stands_for_others(site: &Value) -> bool {
    site["others"].as_u64().is_some_and(|others| others > 0)
}

/// One row of a composition. What is in a ledger is said again when it is the same in its sum,
/// and what a site holds when it is all that its library holds.
fn holder(
    reading: &mut Reading<'_>,
    [kind, of]: [&str; 2],
    sum: Option<&str>,
    row: &Value,
    whose: Whose,
) {
    let ledger = named(row, "ledger");
    let bound = is_bound(row) || (whose.cut && !whose.others);
    let (site, library) = match whose.others {
        true => (OTHERS.to_owned(), OTHERS.to_owned()),
        false => {
            (site(&row["site"], reading.executable), library(&row["site"], reading.executable))
        }
    };
    let of_library: &[&str] = &["library", &library];
    let tails = [of_library, &["site", &ledger, &site]];
    let heads: [(&str, &[&str]); 2] = [("bytes", &[kind]), ("count", &[kind, "count"])];
    for (key, head) in heads {
        for tail in tails {
            let name = |of: &str| Name::of(&[head, &[of], tail].concat());
            if let Some(figure) = figure(key, &row[key], bound) {
                let all = Name::of(&[head, &[of], of_library].concat());
                let all = (tail != of_library).then_some(all);
                let repeats = sum.map(name).into_iter().chain(all).collect();
                reading.add(name(of), Figure { repeats, ..figure });
            }
        }
    }
}

/// Adds the parts of the figure `whole` by size, each under the least size of its class. `key`
/// says whether they are bytes or a count: within a class one tells the other within a factor of
/// two. Where one class is all, the whole says the same; where all of it is `within` a sum, its
/// classes do.
pub(super) fn sizes(
    reading: &mut Reading<'_>,
    whole: &Name,
    key: &str,
    value: &Value,
    within: Option<&Name>,
) {
    for row in rows(&value["by_size"]) {
        let Some(from) = row["from_bytes"].as_u64() else { continue };
        let class = |name: &Name| name.with("size").with(&size(from));
        if let Some(figure) = figure(key, &row[key], is_bound(value)) {
            let repeats = within.map(class).into_iter().chain([whole.clone()]).collect();
            reading.add(class(whole), Figure { repeats, ..figure });
        }
    }
}

/// A size in the largest unit that it is a whole number of.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let power = if bytes == 0 { 0 } else { bytes.trailing_zeros() / 10 };
    let unit = UNITS.get(power as usize).copied().unwrap_or_default();
    format!("{}{unit}", bytes >> (power * 10))
}

/// The name of what sites hold that are not named, and of their libraries.
pub(super) const OTHERS: &str = "(others)";

/// Letters of a name at most: as long as a file's name can be.
const LETTERS: usize = 255;

/// A library by its file name: releases are installed in other directories. The executable has
/// no name here, because that of the next release may be another.
fn library(site: &Value, executable: Option<&str>) -> String {
    match site["library"].as_str() {
        Some(path) if path.is_empty() || executable == Some(path) => "(executable)".to_owned(),
        Some(path) => {
            elided(path.rsplit('/').find(|part| !part.is_empty()).unwrap_or(path), LETTERS)
        }
        None => "unknown".to_owned(),
    }
}

/// A site in words that the next release has as well: no addresses and no lines.
pub(super) fn site(site: &Value, executable: Option<&str>) -> String {
    if stands_for_others(site) {
        return OTHERS.to_owned();
    }
    let api = elided(site["api"].as_str().unwrap_or("unknown call"), LETTERS);
    let call = site["call"].as_str().map(|call| elided(call, LETTERS));
    let call = call.map_or_else(|| api.clone(), |call| format!("{call} > {api}"));
    let frames: Vec<&str> =
        rows(&site["frames"]).filter_map(|frame| frame["function"].as_str()).collect();
    let within =
        if frames.is_empty() { String::new() } else { format!(" in {}", frames.join(" < ")) };
    format!("{}: {call}{within}", library(site, executable))
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn classes_of_sizes_are_named_in_the_largest_unit_that_fits() {
        let named = [0, 512, 1 << 10, 2 << 20, 1 << 29, 1 << 63, 1_536].map(size);
        assert_eq!(named, ["0B", "512B", "1KiB", "2MiB", "512MiB", "8EiB", "1536B"]);
    }
}
