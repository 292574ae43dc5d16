//! A comparison as text, JSON and Markdown.

pub mod json;
pub mod list;
pub mod markdown;
pub mod text;
mod words;

pub use words::Manner;

use crate::diff::figures::Group;
use crate::diff::{Comparison, Pair};

/// A group's title.
const fn title(group: Group) -> &'static str {
    match group {
        Group::Memory => "Memory",
        Group::Holders => "Who holds it",
        Group::Traffic => "Traffic",
        Group::Counts => "Counts",
        Group::Sizes => "By size of blocks and copies",
        Group::Times => "Times",
    }
}

/// Title of times where each side is one run.
const ONE_RUN: &str = "Times, which differ from run to run: one run a side cannot tell a change \
                       from noise";

/// Title of the table of changes that may come from runs that differ anyhow.
const NOISE: &str = "Within noise: the ranges of the two sides overlap";

/// The changes that are shown, by table: those of each group, then noise. What another figure
/// says already, and classes of sizes that hardly changed, are left to JSON.
fn tables(comparison: &Comparison) -> Vec<(&'static str, Vec<&Pair>)> {
    let changes = comparison.changes();
    let shown = |noise: bool, group: Option<Group>| -> Vec<&Pair> {
        let wanted = |pair: &&&Pair| {
            let told = !pair.repeats && !comparison.is_minor(pair);
            told && pair.noise == noise && group.is_none_or(|group| group == pair.group)
        };
        changes.iter().filter(wanted).copied().collect()
    };
    let title = |group: Group| {
        let one_run = group == Group::Times && !comparison.has_several_runs();
        if one_run { ONE_RUN } else { title(group) }
    };
    let groups = Group::ALL.iter().map(|&group| (title(group), shown(false, Some(group))));
    let all = groups.chain([(NOISE, shown(true, None))]);
    all.filter(|(_, rows)| !rows.is_empty()).collect()
}

/// The sentence that stands where tables would, when there are none.
fn nothing_differs(comparison: &Comparison) -> String {
    let count = super::grouped(comparison.pairs.len() as u64);
    match comparison.changes().len() {
        0 => format!("Nothing differs: all {count} figures are the same on both sides."),
        few => format!(
            "Nothing of note differs: {few} of {count} figures, by size of blocks or copies, \
             differ by little; --format json lists them."
        ),
    }
}
