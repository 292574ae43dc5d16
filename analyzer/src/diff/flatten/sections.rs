//! Sections of the report whose shape carries a meaning.
//!
//! Names here are short: a unit stands in one only where it tells two figures apart
//! (`copies.bytes`, `copies.total_ns`), else the unit is that of the figure.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::holders::{OTHERS, sizes};
use super::{Reading, figure, integer, is_bound, leaf, named, objects, rows, walk};
use crate::diff::figures::{Figure, Unit};
use crate::diff::name::Name;

/// A key of the report, and its part of the name.
type Key = (&'static str, &'static str);

/// What `peak` and `live` say of their sum, where no tally said it.
pub(super) fn levels(reading: &mut Reading<'_>, scope: &Value) {
    for kind in ["peak", "live"] {
        let section = &scope[kind];
        let name = Name::of(&[kind, section["sum"].as_str().unwrap_or("gpu")]);
        if section.is_object() && !reading.has(&name) {
            leaf(reading, &name, "bytes", &section["bytes"], is_bound(section));
        }
    }
}

/// What stands under a ledger's or a sum's name: `live_bytes` becomes `live.device`, `allocs`
/// becomes `allocs.device`, and those of one device `allocs.device.0`.
pub(super) fn tallies(reading: &mut Reading<'_>, tallies: &Value) {
    for (of, tally) in objects(tallies) {
        let bound = is_bound(tally);
        tally_of(reading, of, tally, bound);
        for row in rows(&tally["by_gpu"]) {
            reading.device = Some(named(row, "gpu"));
            tally_of(reading, of, row, bound);
        }
        reading.device = None;
    }
}

fn tally_of(reading: &mut Reading<'_>, of: &str, tally: &Value, bound: bool) {
    let idle = objects(tally).filter_map(|(_, value)| integer(value)).all(|number| number == 0);
    for (key, value) in objects(tally).filter(|(key, _)| *key != "gpu") {
        if let Some(figure) = figure(key, value, bound && is_level(key)) {
            reading.add(tally_name(key, of), Figure { idle, ..figure });
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
        let idle = rows(copies).next().is_none();
        for key in ["count", "bytes"] {
            let none = Figure::new(Some(0), Unit::of_key(key));
            reading.add(Name::of(&["copies", key]), Figure { idle, ..none });
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
        let of_direction = ["copies", &direction];
        moved(reading, &["copies"], row, None);
        moved(reading, &of_direction, row, None);
        moved(reading, &["copies", &direction, manner, host], row, Some(&of_direction));
        sizes(reading, &Name::of(&["copies", &direction, "count"]), "count", row, None);
    }
}

/// All sets.
pub(super) fn sets(reading: &mut Reading<'_>, sets: &Value) {
    moved(reading, &["sets"], sets, None);
    sizes(reading, &Name::of(&["sets", "count"]), "count", sets, None);
}

/// Count, bytes and times of copies or sets; those of one kind may be all of a direction. The
/// time of all copies and of all sets is in `stalls`, and not said again.
fn moved(reading: &mut Reading<'_>, head: &[&str], moved: &Value, direction: Option<&[&str]>) {
    let idle = moved["count"].as_u64() == Some(0);
    let all = head.len() == 1;
    for (key, value) in objects(moved).filter(|(key, _)| !all || !key.ends_with("_ns")) {
        let repeats = direction.map(|head| Name::of(head).with(key)).into_iter().collect();
        if let Some(figure) = figure(key, value, is_bound(moved)) {
            reading.add(Name::of(head).with(key), Figure { repeats, idle, ..figure });
        }
    }
}

/// Memory of no use, by level, now and at the worst moment. What is touched is what is live and
/// the waste, and what is mapped or reserved stands in the ledgers: no figure says that again. A
/// level that this version does not know is walked.
pub(super) fn fragmentation(reading: &mut Reading<'_>, levels: &Value) {
    const DEVICE: [Key; 3] = [
        ("waste_bytes", "waste"),
        ("sparse_blocks", "sparse_blocks"),
        ("sparse_used_bytes", "sparse_used"),
    ];
    const DEVICE_WORST: [Key; 2] = [("waste_bytes", "waste"), ("sparse_blocks", "sparse_blocks")];
    const VMM: [Key; 3] = [
        ("free_bytes", "free"),
        ("unmapped_physical_bytes", "unmapped_physical"),
        ("ranges", "ranges"),
    ];
    const VMM_WORST: [Key; 2] =
        [("free_bytes", "free"), ("unmapped_physical_bytes", "unmapped_physical")];
    for (level, value) in objects(levels) {
        let name = Name::of(&["fragmentation", level]);
        match level.as_str() {
            "device" => fragments(reading, &name, value, &DEVICE, &DEVICE_WORST),
            "vmm" => {
                fragments(reading, &name, value, &VMM, &VMM_WORST);
                walk(reading, &name.with("stuck"), "stuck", &value["stuck"], is_bound(value));
            }
            _ => walk(reading, &name, level, value, false),
        }
    }
}

fn fragments(reading: &mut Reading<'_>, name: &Name, level: &Value, keys: &[Key], worst: &[Key]) {
    let bound = is_bound(level);
    let zero = |(key, _): &Key| level[key].as_u64() == Some(0);
    let idle = level["worst"].is_null() && keys.iter().all(zero);
    let at_worst = name.with("worst");
    let now = keys.iter().map(|&(key, part)| (name.with(part), key, level.get(key)));
    let none = Value::from(0);
    // No moment is the worst one when there was nothing at any.
    let then = worst.iter().map(|&(key, part)| {
        let value = if level.is_object() && level["worst"].is_null() {
            Some(&none)
        } else {
            level["worst"].get(key)
        };
        (at_worst.with(part), key, value)
    });
    for (name, key, value) in now.chain(then) {
        if let Some(figure) = value.and_then(|value| figure(key, value, bound)) {
            reading.add(name, Figure { idle, ..figure });
        }
    }
}

/// Keys of the time in calls.
const STALLS: [Key; 3] = [("count", "count"), ("total_ns", "total"), ("max_ns", "max")];

/// From this length on, in nanoseconds, a call is counted as a long one.
const LONG: u64 = 1_000_000;

/// Time in calls by purpose, and how many took long.
pub(super) fn stalls(reading: &mut Reading<'_>, stalls: &Value) {
    for (purpose, stall) in objects(stalls) {
        let idle = stall["count"].as_u64() == Some(0);
        let name = Name::of(&["stalls", purpose]);
        let known = |key: &str| STALLS.iter().find(|(of, _)| *of == key).map(|(_, part)| *part);
        let bound = is_bound(stall);
        let others = |key: &str| !matches!(key, "by_length" | "bound");
        for (key, value) in objects(stall).filter(|(key, _)| others(key)) {
            let name = name.with(known(key).unwrap_or(key));
            match figure(key, value, bound) {
                Some(figure) => reading.add(name, Figure { idle, ..figure }),
                None if key != "longest" => walk(reading, &name, key, value, bound),
                None => {}
            }
        }
        if stall["by_length"].is_array() {
            let long = |row: &&Value| row["from_ns"].as_u64().is_some_and(|from| from >= LONG);
            let counts = rows(&stall["by_length"]).filter(long);
            let count = counts.filter_map(|row| integer(&row["count"]));
            let count = count.fold(0_i128, i128::saturating_add);
            let figure = Figure::new(Some(count), Unit::Count);
            reading.add(name.with("over_1ms"), Figure { idle, bound, ..figure });
        }
    }
}

/// Calls of each entry point. A driver call that is only made beneath one runtime call says what
/// that one says.
pub(super) fn calls(reading: &mut Reading<'_>, calls: &Value) {
    const KEYS: [Key; 4] =
        [("calls", "count"), ("failed", "failed"), ("total_ns", "total"), ("max_ns", "max")];
    let numbers = |row: &Value| KEYS.map(|(key, _)| integer(&row[key]));
    let name = |row: &Value| match row["others"].as_u64() {
        Some(others) if others > 0 => Name::of(&["calls", OTHERS]),
        _ => Name::of(&["calls", &named(row, "api")]),
    };
    let mut runtime: BTreeMap<_, Vec<Name>> = BTreeMap::new();
    for row in rows(calls).filter(|row| row["layer"] == "runtime") {
        runtime.entry(numbers(row)).or_default().push(name(row));
    }
    for row in rows(calls) {
        let beneath = runtime.get(&numbers(row)).filter(|_| row["layer"] == "driver");
        let above = beneath.map(Vec::as_slice).unwrap_or_default();
        let name = name(row);
        for (key, value) in objects(row).filter(|(key, _)| *key != "others") {
            let part = KEYS.iter().find(|(of, _)| of == key).map_or(key.as_str(), |(_, part)| part);
            if let Some(figure) = figure(key, value, false) {
                let repeats = above.iter().map(|above| above.with(part)).collect();
                reading.add(name.with(part), Figure { repeats, ..figure });
            }
        }
    }
}

/// Readings of devices, without the size of the device, which the headers compare.
pub(super) fn sampled(reading: &mut Reading<'_>, sampled: &Value) {
    for row in rows(sampled) {
        let device = named(row, "gpu");
        let keys = objects(row).filter(|(key, _)| !matches!(key.as_str(), "gpu" | "total_bytes"));
        for (key, value) in keys {
            let part = key.strip_suffix("_bytes").unwrap_or(key);
            if let Some(figure) = figure(key, value, false) {
                let name = Name::of(&["sampled", part]).with(&device);
                reading.figures.add(name, Figure { of_device: true, ..figure });
            }
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
            leaf(reading, &Name::of(&[section, cause]), "count", count, false);
        }
    }
    for key in ["salvage", "remarks"] {
        if let Some(lines) = coverage[key].as_array() {
            let count = Figure::new(Some(lines.len() as i128), Unit::Count);
            reading.add(Name::of(&["coverage", key]), count);
        }
    }
    for (key, value) in objects(coverage).filter(|(_, value)| value.is_number()) {
        leaf(reading, &Name::of(&["coverage", key]), key, value, false);
    }
}
