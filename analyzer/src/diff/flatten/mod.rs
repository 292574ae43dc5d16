//! One JSON report as named figures.
//!
//! Sections whose shape carries a meaning (ledgers, peak, live, copies, fragmentation, stalls,
//! calls, coverage) have a function each, which gives their figures short names. Everything else
//! is walked: a number's name is the path to it, its unit stands at the end of its key. So a
//! section that a later version adds is compared without new code; what is left out is in the
//! tables below.
//!
//! A figure of one device is named like that of all, with the device as one more part.

mod holders;
mod sections;

use serde_json::Value;

use super::figures::{Figure, Figures, Unit};
use super::name::Name;
use holders::{site, stands_for_others};

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

/// Sections that are not walked: read by a function below, headers, or lists of single events.
const NOT_WALKED: [&str; 23] = [
    "trace",
    "process",
    "window",
    "coverage",
    "ledgers",
    "sums",
    "peak",
    "live",
    "live_at_end",
    "copies",
    "sets",
    "fragmentation",
    "by_gpu",
    "stalls",
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

/// Keys that are not walked wherever they stand: classes that move with the clock, and single
/// events and places.
const NOWHERE_WALKED: [&str; 2] = ["by_age", "longest"];

/// Keys of `peak` that are read by a function below, or say nothing more.
const OF_PEAK: [&str; 9] =
    ["sum", "adds", "bytes", "at_ns", "bound", "held", "ledgers", "by_size", "by_age"];

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

/// Parts of a report that say nothing about most processes.
const SELDOM: [&[&str]; 3] = [&["pools"], &["managed"], &["fragmentation", "vmm", "stuck"]];

/// The figures of a report.
#[must_use]
pub fn of(report: &Value) -> Figures {
    let executable = report["process"]["executable"].as_str();
    let mut reading = Reading { figures: Figures::default(), executable, device: None };
    let all = &mut reading;
    for (key, from) in [("duration_ns", "duration"), ("threads", "threads")] {
        leaf(all, &Name::of(&[from]), key, &report["process"][key], false);
    }
    leaf(all, &Name::of(&["events"]), "events", &report["trace"]["events"], false);
    let sums = holders::Sums::of(report);
    sections::tallies(all, &report["sums"]);
    sections::tallies(all, &report["ledgers"]);
    scope(all, report, &sums);
    holders::other_peaks(all, report);
    for row in rows(&report["by_gpu"]) {
        all.device = Some(named(row, "gpu"));
        scope(all, row, &sums);
    }
    all.device = None;
    sections::stalls(all, &report["stalls"]);
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
    for section in SELDOM {
        reading.figures.idle_at_zero(&Name::of(section));
    }
    reading.figures
}

/// What there is once for all devices and once for each.
fn scope(reading: &mut Reading<'_>, scope: &Value, sums: &holders::Sums) {
    sections::levels(reading, scope);
    holders::holders(reading, scope, sums);
    sections::copies(reading, &scope["copies"]);
    sections::sets(reading, &scope["sets"]);
    sections::fragmentation(reading, &scope["fragmentation"]);
}

/// The figures so far, and what is needed to name them.
struct Reading<'a> {
    figures: Figures,
    /// Path of the process's executable: a release has its own, and it is the same caller.
    executable: Option<&'a str>,
    /// The device whose figures are read; none when they are those of all together.
    device: Option<String>,
}

impl Reading<'_> {
    /// Adds a figure. That of a device says again what all devices together say, if it is all.
    fn add(&mut self, name: Name, mut figure: Figure) {
        let Some(device) = &self.device else { return self.figures.add(name, figure) };
        let same = figure.repeats.iter().map(|whole| whole.with(device));
        figure.repeats = same.chain([name.clone()]).collect();
        figure.of_device = true;
        self.figures.add(name.with(device), figure);
    }

    /// Whether a figure of this name, and of the device that is read, was added.
    fn has(&self, name: &Name) -> bool {
        let name = self.device.as_ref().map_or_else(|| name.clone(), |device| name.with(device));
        self.figures.get(&name).is_some()
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

/// The figure that stands at `key`, if a number does. Null is a figure that is not known where
/// the key says that it measures something.
fn figure(key: &str, value: &Value, bound: bool) -> Option<Figure> {
    let measures = ["bytes", "ns", "count"].iter().any(|end| key.ends_with(end));
    let number = integer(value);
    let unknown = value.is_null() && measures;
    if NO_FIGURES.contains(&key) || key.ends_with("_at_ns") || (number.is_none() && !unknown) {
        return None;
    }
    Some(Figure { bound, ..Figure::new(number, Unit::of_key(key)) })
}

/// Adds the figure that stands at `key`, if one does.
fn leaf(reading: &mut Reading<'_>, name: &Name, key: &str, value: &Value, bound: bool) {
    if let Some(figure) = figure(key, value, bound) {
        reading.add(name.clone(), figure);
    }
}

/// Adds every number below `value`.
fn walk(reading: &mut Reading<'_>, name: &Name, key: &str, value: &Value, bound: bool) {
    let bound = bound || is_bound(value);
    match value {
        Value::Object(inner) => {
            let walked = |key: &str| !NOWHERE_WALKED.contains(&key);
            for (key, value) in inner.iter().filter(|(key, _)| walked(key)) {
                walk(reading, &name.with(key), key, value, bound);
            }
        }
        Value::Array(rows) => {
            let others = |row: &Value| stands_for_others(&row["site"]);
            let cut = rows.iter().any(others);
            for row in rows {
                if let Some(name) = row_name(name, row, reading.executable) {
                    walk(reading, &name, "", row, bound || (cut && !others(row)));
                }
            }
        }
        _ => leaf(reading, name, key, value, bound),
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
