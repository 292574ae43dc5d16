//! Figures, changes and verdicts in words, for text and Markdown alike.

use std::cmp::Ordering;

use crate::diff::compare::{Comparison, Found, Pair, Spread};
use crate::diff::figures::Unit;
use crate::diff::gate::{Op, Verdict};
use crate::diff::headers::Unlike;
use crate::diff::limit::Limit;
use crate::diff::sides::Side;
use crate::render::{clean, grouped};
use crate::units::{Bytes, Nanos};

/// How much is said, and how exactly.
#[derive(Clone, Copy, Debug)]
pub struct Manner {
    /// Bytes and times as whole numbers.
    pub exact: bool,
    /// Rows of a table at most.
    pub top: usize,
}

/// A number with its unit.
pub(super) fn value(unit: Unit, number: i128, manner: Manner) -> String {
    let sign = if number < 0 { "-" } else { "" };
    format!("{sign}{}", size(unit, number, manner))
}

fn size(unit: Unit, number: i128, manner: Manner) -> String {
    let size = u64::try_from(number.unsigned_abs()).unwrap_or(u64::MAX);
    match unit {
        Unit::Bytes if manner.exact => format!("{} B", grouped(size)),
        Unit::Bytes => Bytes(size).to_string(),
        Unit::Count => grouped(size),
        Unit::Nanos if manner.exact => format!("{} ns", grouped(size)),
        Unit::Nanos => Nanos(i64::try_from(size).unwrap_or(i64::MAX)).to_string(),
    }
}

/// A number with its unit and its sign.
pub(super) fn change(unit: Unit, number: i128, manner: Manner) -> String {
    let sign = match number.cmp(&0) {
        Ordering::Less => "-",
        Ordering::Equal => "",
        Ordering::Greater => "+",
    };
    format!("{sign}{}", size(unit, number, manner))
}

/// That all checks passed.
pub(super) fn passed(checks: usize) -> String {
    format!("{checks} {} passed", if checks == 1 { "check" } else { "checks" })
}

/// A percentage with its sign. Only no change is 0, and only what is gone is 100 % less.
pub(super) fn percent(percent: f64) -> String {
    let decimals = if percent.abs() < 1.0 { 2 } else { 1 };
    match format!("{percent:+.decimals$} %") {
        none if none.ends_with("0.00 %") && percent > 0.0 => "+<0.01 %".to_owned(),
        none if none.ends_with("0.00 %") && percent < 0.0 => "-<0.01 %".to_owned(),
        all if all == "-100.0 %" && percent > -100.0 => "->99.9 %".to_owned(),
        text => text,
    }
}

/// The change of a pair in percent; from 0 there is none.
pub(super) fn relative(pair: &Pair) -> String {
    match (pair.percent(), pair.change()) {
        (Some(number), _) => percent(number),
        (None, Some(_)) => "from 0".to_owned(),
        (None, None) => "-".to_owned(),
    }
}

/// The change of a pair; where a side is missing there is none.
pub(super) fn change_of(pair: &Pair, manner: Manner) -> String {
    pair.change().map_or_else(|| "-".to_owned(), |number| change(pair.unit, number, manner))
}

/// What a side says: the median, and of several runs their range and how many know it.
pub(super) fn found(found: Found, unit: Unit, side: &Side, manner: Manner) -> String {
    let Found::Known(spread) = found else { return "-".to_owned() };
    let mut text = value(unit, spread.median, manner);
    if spread.least != spread.greatest {
        let [least, greatest] =
            [spread.least, spread.greatest].map(|number| value(unit, number, manner));
        text.push_str(&format!(" [{least} to {greatest}]"));
    }
    if spread.runs < side.runs.len() {
        text.push_str(&format!(" ({} of {} runs)", spread.runs, side.runs.len()));
    }
    if spread.bound {
        text.push_str(" (bound)");
    }
    text
}

/// The names of a side's runs, and what has to be said about them.
pub(super) fn runs(side: &Side) -> String {
    let names: Vec<&str> = side.runs.iter().map(|run| run.name.as_str()).collect();
    match names.as_slice() {
        [name] => (*name).to_owned(),
        _ => format!("{} runs ({})", names.len(), names.join(", ")),
    }
}

/// What has to be known before the figures are read.
pub(super) fn remarks(comparison: &Comparison) -> Vec<String> {
    let runs = comparison.base.runs.iter().chain(&comparison.new.runs);
    let made = runs.filter(|run| run.processes > 1).map(|run| {
        format!(
            "{} is made of {} processes: their figures are added, and added peaks are upper bounds",
            run.name, run.processes,
        )
    });
    let mut remarks: Vec<String> = made.collect();
    if comparison.has_several_runs() {
        remarks.push(
            "of several runs the median is shown, with the range from the least to the greatest"
                .to_owned(),
        );
    }
    remarks
}

/// Letters of a header's value that are shown; JSON has the whole.
const HEADER: usize = 160;

/// A header that is not alike: what was, then what is.
pub(super) fn unlike(unlike: &Unlike) -> (String, String) {
    let none = if unlike.what.starts_with("environment") { "not set" } else { "none" };
    let side = |values: &[String]| {
        let all = values.join(" and ");
        match all.char_indices().nth(HEADER) {
            _ if values.is_empty() => none.to_owned(),
            Some((end, _)) => format!("{}…", clean(all.get(..end).unwrap_or_default())),
            None => clean(&all),
        }
    };
    (side(&unlike.base), side(&unlike.new))
}

/// What was found, what was allowed, both values, and what to think of it.
pub(super) fn verdict(verdict: &Verdict, manner: Manner) -> String {
    let unit = verdict.pair.unit;
    let manner = distinct(verdict, manner);
    let new = value(unit, verdict.new.median, manner);
    let allowed = allowed(verdict.op);
    let limit = value(unit, verdict.limit_value, manner);
    let mut sentence =
        format!("{} is {new}, where {allowed} {limit} is allowed", verdict.pair.name);
    sentence.push_str(&reason(verdict, manner));
    sentence.push_str(&origin(verdict, &new, manner));
    sentence.push_str(&doubts(verdict));
    sentence
}

/// Exact numbers where rounded ones look the same.
fn distinct(verdict: &Verdict, manner: Manner) -> Manner {
    let shown = |number| value(verdict.pair.unit, number, manner);
    let new = verdict.new.median;
    let blurred = |other: i128| other != new && shown(other) == shown(new);
    let exact = manner.exact || blurred(verdict.limit_value) || blurred(base_of(verdict));
    Manner { exact, ..manner }
}

fn base_of(verdict: &Verdict) -> i128 {
    verdict.pair.base.known().map_or(0, |base| base.median)
}

/// Where the figure comes from.
fn origin(verdict: &Verdict, new: &str, manner: Manner) -> String {
    match verdict.pair.base.known().map(|base| base.median) {
        None => "; the base side has no such figure".to_owned(),
        Some(0) if matches!(verdict.limit, Limit::Percent(_)) => {
            format!("; it went from 0 to {new}, and any growth from 0 is beyond a percentage")
        }
        Some(base) => {
            let share = verdict.pair.percent().map(|share| format!(" ({})", percent(share)));
            let (share, change) = (share.unwrap_or_default(), change_of(&verdict.pair, manner));
            let base = value(verdict.pair.unit, base, manner);
            format!("; the base is {base}, the change {change}{share}")
        }
    }
}

/// What an operator leaves allowed.
const fn allowed(op: Op) -> &'static str {
    match op {
        Op::Above => "at most",
        Op::AtOrAbove => "less than",
        Op::Below => "at least",
        Op::AtOrBelow => "more than",
        Op::Other => "exactly",
    }
}

/// Where the limit comes from.
fn reason(verdict: &Verdict, manner: Manner) -> String {
    let direction = |negative: bool| if negative { "below" } else { "above" };
    match verdict.limit {
        Limit::Percent(percent) => {
            format!(" ({percent} % {} the base)", direction(percent.is_negative()))
        }
        Limit::Change(..) => {
            let difference = verdict.limit_value.saturating_sub(base_of(verdict));
            let shown = size(verdict.pair.unit, difference, manner);
            format!(" ({shown} {} the base)", direction(difference < 0))
        }
        Limit::Value(..) => String::new(),
    }
}

/// What makes the verdict less than certain.
fn doubts(verdict: &Verdict) -> String {
    let mut doubts = String::new();
    if verdict.pair.overlaps() {
        doubts.push_str("; the ranges of the two sides overlap, so the runs differ as much anyhow");
    }
    let bound = |side: Option<Spread>| side.is_some_and(|spread| spread.bound);
    let sides = match (bound(verdict.pair.base.known()), bound(Some(verdict.new))) {
        (true, true) => "both sides",
        (true, false) => "the base side",
        (false, true) => "the new side",
        (false, false) => return doubts,
    };
    doubts.push_str(&format!(
        "; the figure is a bound on {sides}: events are missing, or several processes were added"
    ));
    doubts
}

/// One thing that a gate failed by: a holder by its own name, anything else by its figure's; and
/// its change.
pub(super) fn contributor(whole: &Verdict, pair: &Pair, manner: Manner) -> (String, String) {
    let (parts, (above, _)) = (pair.parts().0, whole.pair.parts());
    let tail = parts.strip_prefix(above).filter(|tail| tail.first().is_none_or(|of| of != "size"));
    let name =
        tail.and_then(<[String]>::last).map_or_else(|| pair.name.to_string(), |it| clean(it));
    let change = pair.change().map_or_else(
        || match (pair.base, pair.new) {
            (Found::Known(base), _) => {
                format!("{}, gone", change(pair.unit, base.median.saturating_neg(), manner))
            }
            (_, Found::Known(new)) => {
                format!("{}, not there before", change(pair.unit, new.median, manner))
            }
            _ => "-".to_owned(),
        },
        |number| {
            let share = pair.percent().map(|share| format!(" ({})", percent(share)));
            format!("{}{}", change(pair.unit, number, manner), share.unwrap_or_default())
        },
    );
    (name, change)
}

/// Contributors that a sentence names at most.
pub(super) const CONTRIBUTORS: usize = 5;

#[cfg(test)]
mod tests {
    use super::percent;

    #[test]
    fn only_no_change_is_none_and_only_what_is_gone_is_a_hundred_per_cent_less() {
        let shown = [0.0, 1e-9, -1e-9, 0.25, -99.99, -100.0, 12.34].map(percent);
        let words =
            ["+0.00 %", "+<0.01 %", "-<0.01 %", "+0.25 %", "->99.9 %", "-100.0 %", "+12.3 %"];
        assert_eq!(shown, words);
    }
}
