//! One JSON report as named figures.
//!
//! Sections whose shape carries a meaning (ledgers, peak, live, copies, calls, coverage) have a
//! function each. Everything else is walked: a number's name is the path to it, its unit stands
//! at the end of its key. So a section that a later version adds is compared without new code;
//! what is left out is in the tables below.

use serde_json::{Map, Value};

use super::figures::{Figure, Figures, Unit};
use super::name::Name;

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
    let mut figures = Figures::default();
    let all = &mut figures;
    for (key, from) in [("duration_ns", "duration"), ("threads", "threads")] {
        leaf(all, &Name::of(&[from]), key, &report["process"][key], false, None);
    }
    leaf(all, &Name::of(&["events"]), "events", &report["trace"]["events"], false, None);
    sums(all, report);
    tallies(all, &report["ledgers"]);
    holders(all, report);
    copies(all, &report["copies"]);
    calls(all, &report["calls"]);
    sampled(all, &report["sampled"]);
    coverage(all, &report["coverage"]);
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
    figures
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
    figures: &mut Figures,
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
    figures.add(name.clone(), Figure { value: number, unit, bound, repeats });
}

/// Adds every number below `value`.
fn walk(figures: &mut Figures, name: &Name, key: &str, value: &Value, bound: bool) {
    let bound = bound || is_bound(value);
    match value {
        Value::Object(inner) => {
            for (key, value) in inner {
                walk(figures, &name.with(key), key, value, bound);
            }
        }
        Value::Array(rows) => {
            for row in rows {
                if let Some(name) = row_name(name, row) {
                    walk(figures, &name, "", row, bound);
                }
            }
        }
        _ => leaf(figures, name, key, value, bound, None),
    }
}

/// The name of a row of an array; a row that nothing tells from the others has none.
fn row_name(name: &Name, row: &Value) -> Option<Name> {
    let keys = ROW_KEYS.iter().filter_map(|&key| text(row.get(key)?));
    let site = row["site"].is_object().then(|| site(&row["site"]));
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

/// Sums of ledgers. Reports without `sums` have one, at the top of `peak` and `live`.
fn sums(figures: &mut Figures, report: &Value) {
    tallies(figures, &report["sums"]);
    for kind in ["peak", "live"] {
        let section = &report[kind];
        let name = Name::of(&[kind, section["sum"].as_str().unwrap_or("gpu")]);
        if section.is_object() && figures.get(&name).is_none() {
            leaf(figures, &name, "bytes", &section["bytes"], is_bound(section), None);
        }
    }
}

/// What stands under a ledger's or a sum's name: `live_bytes` becomes `live.device`, `allocs`
/// becomes `allocs.device`, and those of one device `allocs.device.0`.
fn tallies(figures: &mut Figures, tallies: &Value) {
    for (of, tally) in objects(tallies) {
        let bound = is_bound(tally);
        for (key, value) in objects(tally) {
            let name = tally_name(key, of);
            leaf(figures, &name, key, value, bound && is_level(key), None);
        }
        for row in rows(&tally["by_gpu"]) {
            let gpu = named(row, "gpu");
            for (key, value) in objects(row) {
                let whole = tally_name(key, of);
                let bound = bound && is_level(key);
                leaf(figures, &whole.with(&gpu), key, value, bound, Some(whole));
            }
        }
    }
}

/// Counts of what was seen are exact even where levels are bounds.
fn is_level(key: &str) -> bool {
    key.starts_with("live") || key.starts_with("peak")
}

fn tally_name(key: &str, of: &str) -> Name {
    match key {
        "live_bytes" => Name::of(&["live", of]),
        "live_count" => Name::of(&["live", "count", of]),
        "peak_bytes" => Name::of(&["peak", of]),
        _ => Name::of(&[key, of]),
    }
}

/// A sum, and the ledgers that it adds.
fn added(report: &Value) -> Vec<(String, Vec<String>)> {
    let adds = |value: &Value| rows(value).filter_map(text).collect::<Vec<_>>();
    let mut sums: Vec<_> =
        objects(&report["sums"]).map(|(sum, value)| (sum.clone(), adds(&value["adds"]))).collect();
    if sums.is_empty() {
        let name = report["peak"]["sum"].as_str().unwrap_or("gpu").to_owned();
        sums.push((name, adds(&report["peak"]["adds"])));
    }
    sums
}

/// Who holds memory at the end and at the peaks, by library and by site.
fn holders(figures: &mut Figures, report: &Value) {
    let sums = added(report);
    let sum_of = |ledger: &str| {
        let found = sums.iter().find(|(_, adds)| adds.iter().any(|added| added == ledger));
        found.map(|(sum, _)| sum.as_str())
    };
    for row in rows(&report["live_at_end"]) {
        let ledger = named(row, "ledger");
        let sum = sum_of(&ledger);
        if let Some(sum) = sum {
            holder(figures, "live", sum, None, row);
        }
        holder(figures, "live", &ledger, sum, row);
    }
    let sum = report["peak"]["sum"].as_str().unwrap_or("gpu");
    rows(&report["peak"]["held"]).for_each(|row| holder(figures, "peak", sum, None, row));
    for (other, value) in objects(&report["sums"]).filter(|(other, _)| *other != sum) {
        rows(&value["held"]).for_each(|row| holder(figures, "peak", other, None, row));
    }
    for (ledger, peak) in objects(&report["peak"]["ledgers"]) {
        let sum = sum_of(ledger);
        rows(&peak["held"]).for_each(|row| holder(figures, "peak", ledger, sum, row));
    }
}

/// One row of a composition. What is in a ledger is said again when it is the same in its sum.
fn holder(figures: &mut Figures, kind: &str, of: &str, sum: Option<&str>, row: &Value) {
    let (ledger, bound) = (named(row, "ledger"), is_bound(row));
    let (site, library) = (site(&row["site"]), library(&row["site"]));
    let tails: [&[&str]; 2] = [&["library", &library], &["site", &ledger, &site]];
    let heads: [(&str, &[&str]); 2] = [("bytes", &[kind]), ("count", &[kind, "count"])];
    for (key, head) in heads {
        for tail in tails {
            let name = |of: &str| Name::of(&[head, &[of], tail].concat());
            leaf(figures, &name(of), key, &row[key], bound, sum.map(name));
        }
    }
}

/// A library by its file name: releases are installed in other directories.
fn library(site: &Value) -> String {
    match site["library"].as_str() {
        Some("") => "(executable)".to_owned(),
        Some(path) => path.rsplit('/').find(|part| !part.is_empty()).unwrap_or(path).to_owned(),
        None => "unknown".to_owned(),
    }
}

/// A site in words that the next release has as well: no addresses and no lines.
fn site(site: &Value) -> String {
    let api = site["api"].as_str().unwrap_or("unknown call");
    let call =
        site["call"].as_str().map_or_else(|| api.to_owned(), |call| format!("{call} > {api}"));
    let frames: Vec<&str> =
        rows(&site["frames"]).filter_map(|frame| frame["function"].as_str()).collect();
    let within =
        if frames.is_empty() { String::new() } else { format!(" in {}", frames.join(" < ")) };
    format!("{}: {call}{within}", library(site))
}

/// Copies: together, by direction, and by direction, manner and host memory.
fn copies(figures: &mut Figures, copies: &Value) {
    if copies.is_array() {
        for key in ["count", "bytes"] {
            figures.add(Name::of(&["copies", key]), Figure::new(Some(0), Unit::of_key(key)));
        }
    }
    for row in rows(copies) {
        let direction = named(row, "direction");
        let manner = match row["asynchronous"].as_bool() {
            Some(true) => "async",
            Some(false) => "sync",
            None => "unknown",
        };
        let host = row["host_memory"].as_str().unwrap_or("none");
        for (key, value) in objects(row) {
            let whole = Name::of(&["copies", &direction, key]);
            let part = Name::of(&["copies", &direction, manner, host, key]);
            leaf(figures, &Name::of(&["copies", key]), key, value, false, None);
            leaf(figures, &part, key, value, false, Some(whole.clone()));
            leaf(figures, &whole, key, value, false, None);
        }
    }
}

fn calls(figures: &mut Figures, calls: &Value) {
    for row in rows(calls) {
        let name = Name::of(&["calls", &named(row, "api")]);
        walk(figures, &name, "", row, false);
    }
}

/// Readings of devices, without the size of the device, which the headers compare.
fn sampled(figures: &mut Figures, sampled: &Value) {
    for row in rows(sampled) {
        let name = Name::of(&["sampled", &named(row, "gpu")]);
        for (key, value) in objects(row).filter(|(key, _)| *key != "total_bytes") {
            leaf(figures, &name.with(key), key, value, false, None);
        }
    }
}

/// Losses together and by cause; there are no rows for causes that took nothing.
fn coverage(figures: &mut Figures, coverage: &Value) {
    let counts = |value: &Value| value.as_object().cloned().unwrap_or_default();
    if coverage["losses"].is_object() {
        let all: i128 = counts(&coverage["losses"]).values().filter_map(integer).sum();
        figures.add(Name::of(&["losses"]), Figure::new(Some(all), Unit::Count));
    }
    for section in ["losses", "notes"] {
        let counts: Map<String, Value> = counts(&coverage[section]);
        for (cause, count) in &counts {
            leaf(figures, &Name::of(&[section, cause]), "count", count, false, None);
        }
    }
    for key in ["salvage", "remarks"] {
        if let Some(lines) = coverage[key].as_array() {
            let count = Figure::new(Some(lines.len() as i128), Unit::Count);
            figures.add(Name::of(&["coverage", key]), count);
        }
    }
    for (key, value) in objects(coverage).filter(|(_, value)| value.is_number()) {
        leaf(figures, &Name::of(&["coverage", key]), key, value, false, None);
    }
}
