//! One JSON report as named figures.
//!
//! Sections whose shape carries a meaning (ledgers, peak, live, copies, calls, coverage) have a
//! function each. Everything else is walked: a number's name is the path to it, its unit stands
//! at the end of its key. So a section that a later version adds is compared without new code;
//! what is left out is in the tables below.

mod holders;
mod sections;

use serde_json::Value;

use super::figures::{Figure, Figures, Unit};
use super::name::Name;
use holders::site;

/// Keys that are no figure: names, places and moments. A moment is no quantity; that a peak came
/// a second later says nothing.
const NO_FIGURES: [&str; 12] = [
    "gpu",
    "pid",
    "thread",
    "schema",
    "since_ns",
    "at_ns",
    "argument",
    "address",
    "from_bytes",
    "to_bytes",
    "from_ns",
    "to_ns",
];

/// Sections that are not walked: read by a function below, or lists of single events.
const NOT_WALKED: [&str; 18] = [
    "trace",
    "process",
    "coverage",
    "ledgers",
    "sums",
    "peak",
    "live",
    "live_at_end",
    "copies",
    "sampled",
    "calls",
    "examples",
    "marks",
    "timeline",
    "not_counted",
    "in_flight",
    "oom",
    "advice",
];

/// Keys of `peak` that are read by a function below.
const OF_PEAK: [&str; 7] = ["sum", "adds", "bytes", "at_ns", "bound", "held", "ledgers"];

/// Keys that tell the rows of an array apart, in the order in which they stand in a name.
const ROW_KEYS: [&str; 12] = [
    "gpu",
    "ledger",
    "direction",
    "api",
    "name",
    "class",
    "label",
    "state",
    "from_bytes",
    "to_bytes",
    "from_ns",
    "to_ns",
];

/// The figures of a report.
#[must_use]
pub fn of(report: &Value) -> Figures {
    let executable = report["process"]["executable"].as_str();
    let mut reading = Reading { figures: Figures::default(), executable };
    let all = &mut reading;
    for (key, from) in [("duration_ns", "duration"), ("threads", "threads")] {
        leaf(all, &Name::of(&[from]), key, &report["process"][key], false, None);
    }
    leaf(all, &Name::of(&["events"]), "events", &report["trace"]["events"], false, None);
    sections::sums(all, report);
    sections::tallies(all, &report["ledgers"]);
    holders::holders(all, report);
    sections::copies(all, &report["copies"]);
    sections::calls(all, &report["calls"]);
    sections::sampled(all, &report["sampled"]);
    sections::coverage(all, &report["coverage"]);
    if let Some(open) = report["in_flight"].as_array() {
        all.add(Name::of(&["in_flight"]), Figure::new(Some(open.len() as i128), Unit::Count));
    }
    for (key, value) in objects(report).filter(|(key, _)| !NOT_WALKED.contains(&key.as_str())) {
        walk(all, &Name::of(&[key]), key, value, false);
    }
    for (key, value) in objects(&report["peak"]).filter(|(key, _)| !OF_PEAK.contains(&key.as_str()))
    {
        walk(all, &Name::of(&["peak", key]), key, value, is_bound(&report["peak"]));
    }
    reading.figures
}

/// The figures so far, and what is needed to name them.
struct Reading<'a> {
    figures: Figures,
    /// Path of the process's executable: a release has its own, and it is the same caller.
    executable: Option<&'a str>,
}

impl Reading<'_> {
    fn add(&mut self, name: Name, figure: Figure) {
        self.figures.add(name, figure);
    }

    fn get(&self, name: &Name) -> Option<&Figure> {
        self.figures.get(name)
    }
}

fn objects(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

fn rows(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn is_bound(value: &Value) -> bool {
    value["bound"].as_bool().unwrap_or(false)
}

fn integer(value: &Value) -> Option<i128> {
    value.as_u64().map(i128::from).or_else(|| value.as_i64().map(i128::from))
}

/// Adds the number that stands at `key`, if it is one. Null is a figure that is not known where
/// the key says that it measures something.
fn leaf(
    reading: &mut Reading<'_>,
    name: &Name,
    key: &str,
    value: &Value,
    bound: bool,
    repeats: Option<Name>,
) {
    let measures = ["bytes", "ns", "count"].iter().any(|end| key.ends_with(end));
    let number = integer(value);
    let unknown = value.is_null() && measures;
    if NO_FIGURES.contains(&key) || key.ends_with("_at_ns") || (number.is_none() && !unknown) {
        return;
    }
    let unit = Unit::of_key(key);
    reading.add(name.clone(), Figure { value: number, unit, bound, repeats });
}

/// Adds every number below `value`.
fn walk(reading: &mut Reading<'_>, name: &Name, key: &str, value: &Value, bound: bool) {
    let bound = bound || is_bound(value);
    match value {
        Value::Object(inner) => {
            for (key, value) in inner {
                walk(reading, &name.with(key), key, value, bound);
            }
        }
        Value::Array(rows) => {
            for row in rows {
                if let Some(name) = row_name(name, row, reading.executable) {
                    walk(reading, &name, "", row, bound);
                }
            }
        }
        _ => leaf(reading, name, key, value, bound, None),
    }
}

/// The name of a row of an array; a row that nothing tells from the others has none.
fn row_name(name: &Name, row: &Value, executable: Option<&str>) -> Option<Name> {
    let keys = ROW_KEYS.iter().filter_map(|&key| text(row.get(key)?));
    let site = row["site"].is_object().then(|| site(&row["site"], executable));
    let parts: Vec<String> = keys.chain(site).collect();
    let named = parts.iter().fold(name.clone(), |name, part| name.with(part));
    (!parts.is_empty()).then_some(named)
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null => Some("unknown".to_owned()),
        _ => None,
    }
}

fn named(row: &Value, key: &str) -> String {
    row.get(key).and_then(text).unwrap_or_else(|| "unknown".to_owned())
}
