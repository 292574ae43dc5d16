//! Sections of the report whose shape carries a meaning.

use serde_json::{Map, Value};

use super::{Reading, integer, is_bound, leaf, named, objects, rows, walk};
use crate::diff::figures::{Figure, Unit};
use crate::diff::name::Name;

/// Sums of ledgers. Reports without `sums` have one, at the top of `peak` and `live`.
pub(super) fn sums(reading: &mut Reading<'_>, report: &Value) {
    tallies(reading, &report["sums"]);
    for kind in ["peak", "live"] {
        let section = &report[kind];
        let name = Name::of(&[kind, section["sum"].as_str().unwrap_or("gpu")]);
        if section.is_object() && reading.get(&name).is_none() {
            leaf(reading, &name, "bytes", &section["bytes"], is_bound(section), None);
        }
    }
}

/// What stands under a ledger's or a sum's name: `live_bytes` becomes `live.device`, `allocs`
/// becomes `allocs.device`, and those of one device `allocs.device.0`.
pub(super) fn tallies(reading: &mut Reading<'_>, tallies: &Value) {
    for (of, tally) in objects(tallies) {
        let bound = is_bound(tally);
        for (key, value) in objects(tally) {
            let name = tally_name(key, of);
            leaf(reading, &name, key, value, bound && is_level(key), None);
        }
        for row in rows(&tally["by_gpu"]) {
            let gpu = named(row, "gpu");
            for (key, value) in objects(row) {
                let whole = tally_name(key, of);
                let bound = bound && is_level(key);
                leaf(reading, &whole.with(&gpu), key, value, bound, Some(whole));
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

/// Copies: together, by direction, and by direction, manner and host memory.
pub(super) fn copies(reading: &mut Reading<'_>, copies: &Value) {
    if copies.is_array() {
        for key in ["count", "bytes"] {
            reading.add(Name::of(&["copies", key]), Figure::new(Some(0), Unit::of_key(key)));
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
            leaf(reading, &Name::of(&["copies", key]), key, value, false, None);
            leaf(reading, &part, key, value, false, Some(whole.clone()));
            leaf(reading, &whole, key, value, false, None);
        }
    }
}

pub(super) fn calls(reading: &mut Reading<'_>, calls: &Value) {
    for row in rows(calls) {
        let name = Name::of(&["calls", &named(row, "api")]);
        walk(reading, &name, "", row, false);
    }
}

/// Readings of devices, without the size of the device, which the headers compare.
pub(super) fn sampled(reading: &mut Reading<'_>, sampled: &Value) {
    for row in rows(sampled) {
        let name = Name::of(&["sampled", &named(row, "gpu")]);
        for (key, value) in objects(row).filter(|(key, _)| *key != "total_bytes") {
            leaf(reading, &name.with(key), key, value, false, None);
        }
    }
}

/// Losses together and by cause; there are no rows for causes that took nothing.
pub(super) fn coverage(reading: &mut Reading<'_>, coverage: &Value) {
    let counts = |value: &Value| value.as_object().cloned().unwrap_or_default();
    if coverage["losses"].is_object() {
        let all: i128 = counts(&coverage["losses"]).values().filter_map(integer).sum();
        reading.add(Name::of(&["losses"]), Figure::new(Some(all), Unit::Count));
    }
    for section in ["losses", "notes"] {
        let counts: Map<String, Value> = counts(&coverage[section]);
        for (cause, count) in &counts {
            leaf(reading, &Name::of(&[section, cause]), "count", count, false, None);
        }
    }
    for key in ["salvage", "remarks"] {
        if let Some(lines) = coverage[key].as_array() {
            let count = Figure::new(Some(lines.len() as i128), Unit::Count);
            reading.add(Name::of(&["coverage", key]), count);
        }
    }
    for (key, value) in objects(coverage).filter(|(_, value)| value.is_number()) {
        leaf(reading, &Name::of(&["coverage", key]), key, value, false, None);
    }
}
