//! Names that are near to one that does not exist.

use super::compare::Comparison;
use super::name::{Name, Pattern, plain};
use crate::render::clean;

/// Says that nothing has this name, and what has a name that is near.
pub(super) fn unknown(pattern: &Pattern, comparison: &Comparison) -> String {
    let list = "`gmmtrace diff --list` shows the names of a trace's figures";
    let wanted: String = pattern.plain().chars().take(LONGEST).collect();
    let mut near: Vec<(usize, &Name)> = Vec::new();
    for name in comparison.pairs.keys() {
        let text: String = plain(name).chars().take(LONGEST).collect();
        let apart = distance(&wanted, &text);
        if apart <= 2 + wanted.chars().count() / 5 {
            near.push((apart, name));
        }
    }
    near.sort();
    let near: Vec<String> = near.iter().take(3).map(|(_, name)| name.to_string()).collect();
    let wanted = clean(&wanted);
    if near.is_empty() {
        format!("there is no figure `{wanted}`; {list}")
    } else {
        format!("there is no figure `{wanted}`; near it are {}; {list}", near.join(", "))
    }
}

/// Letters of a name that are looked at when near names are looked for.
const LONGEST: usize = 80;

/// Letters that must be put in, taken out or changed to make one text of the other.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (index, letter) in one.chars().enumerate() {
        let mut left = index + 1;
        let mut next = vec![left];
        for ((above, corner), &wanted) in row.iter().skip(1).zip(&row).zip(&other) {
            let changed = corner + usize::from(letter != wanted);
            left = changed.min(above + 1).min(left + 1);
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_few_changes_away() {
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("peak.devcie", "peak.device"), 2);
        assert_eq!(distance("live.gpu", "live.gpu"), 0);
    }
}
