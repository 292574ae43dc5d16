//! The answer to one question: the keys of the report that it is about, of the devices and
//! ledgers that were asked for.

use serde_json::{Map, Value, json};

use super::memory::{composition, copies, fragmentation, gpu, held, live, peak, sets, with};
use super::{SCHEMA, nanos, value};
use crate::live::{Ledger, Sum};
use crate::render::text::Question;
use crate::render::text::page::Of;
use crate::report::{Composition, Report, Scope, ScopeReport};
use crate::units::{Bytes, Nanos};

/// Keys of the whole report that stand in every answer.
const ALWAYS: [&str; 3] = ["trace", "process", "window"];

/// The answer as a value.
#[must_use]
pub fn answer(question: Question, report: &Report, scope: &ScopeReport, only: &[Of]) -> Value {
    let mut whole = value(report);
    let mut take = |key: &str| whole.get_mut(key).map(Value::take).unwrap_or_default();
    let mut found = Map::new();
    found.insert("schema".to_owned(), json!(SCHEMA));
    let bound = match question {
        Question::Copies | Question::Summary => report.copies_bound,
        _ => report.bound,
    };
    found.insert("bound".to_owned(), json!(bound));
    for key in ALWAYS {
        found.insert(key.to_owned(), take(key));
    }
    if scope.scope != Scope::All {
        found.insert("gpu".to_owned(), gpu(scope.scope));
    }
    for &key in keys(question) {
        let own = of_scope(key, report, scope);
        found.insert(key.to_owned(), own.unwrap_or_else(|| take(key)));
    }
    if let Scope::On(_) = scope.scope {
        on_device(&mut found, report, &gpu(scope.scope));
    }
    if !only.is_empty() {
        narrow(&mut found, only);
        if matches!(question, Question::Peak | Question::Leaks) {
            found.insert("asked".to_owned(), asked(report, scope, only));
        }
    }
    Value::Object(found)
}

/// Keys of the report that a question is about.
const fn keys(question: Question) -> &'static [&'static str] {
    match question {
        Question::Summary => &[
            "coverage",
            "ledgers",
            "sums",
            "peak",
            "live",
            "fragmentation",
            "copies",
            "sets",
            "failed_copies",
            "failed_sets",
            "stalls",
            "unknown_frees",
            "overlaps",
            "sampled",
            "torch",
            "oom",
        ],
        Question::Timeline => &["timeline"],
        Question::Peak => &["peak", "sums"],
        Question::Leaks => &["live", "live_at_end", "sums"],
        Question::Fragmentation => &["fragmentation", "torch"],
        Question::Gap => &["gap", "sampled", "handles", "graphs"],
        Question::Copies => &["copies", "sets", "failed_copies", "failed_sets", "stalls"],
    }
}

/// The value of a key of which each device has its own.
fn of_scope(key: &str, report: &Report, scope: &ScopeReport) -> Option<Value> {
    if scope.scope == Scope::All {
        return None;
    }
    match key {
        "peak" => Some(peak(scope, report.bound)),
        "live" => Some(live(scope, report.bound)),
        "live_at_end" => Some(held(&scope.live_at_end, report.bound)),
        "copies" => Some(copies(scope, report.copies_bound)),
        "sets" => Some(sets(scope, report.copies_bound)),
        "fragmentation" => Some(fragmentation(&scope.fragmentation, report.bound)),
        _ => None,
    }
}

fn wanted(only: &[Of], name: &str) -> bool {
    let ledger = Ledger::ALL.iter().find(|ledger| ledger.name() == name);
    only.iter().any(|of| of.name() == name || ledger.is_some_and(|&ledger| of.has(ledger)))
}

fn series(found: &mut Map<String, Value>) -> Option<&mut Vec<Value>> {
    found.get_mut("timeline")?.get_mut("series")?.as_array_mut()
}

/// Leaves out the series of other devices. With one device those of all are its own.
fn on_device(found: &mut Map<String, Value>, report: &Report, gpu: &Value) {
    let alone = report.by_gpu.len() == 1;
    if let Some(series) = series(found) {
        series.retain(|one| one["gpu"] == *gpu || (alone && one["gpu"] == "all"));
    }
}

/// Leaves out the ledgers and sums that were not asked for.
fn narrow(found: &mut Map<String, Value>, only: &[Of]) {
    for key in ["ledgers", "sums"] {
        if let Some(Value::Object(entries)) = found.get_mut(key) {
            entries.retain(|name, _| wanted(only, name));
        }
    }
    if let Some(Value::Array(rows)) = found.get_mut("live_at_end") {
        rows.retain(|row| row["ledger"].as_str().is_some_and(|name| wanted(only, name)));
    }
    if let Some(series) = series(found) {
        series.retain(|one| one["name"].as_str().is_some_and(|name| wanted(only, name)));
    }
}

/// The peak and the end of each that was asked for.
fn asked(report: &Report, scope: &ScopeReport, only: &[Of]) -> Value {
    let one = |live: Bytes, peak: Bytes, at: Option<Nanos>, cuts: [&Composition; 2]| {
        let [at_peak, at_end] = cuts.map(|cut| with(json!({}), composition(cut, report.bound)));
        json!({
            "live_bytes": live.0,
            "peak_bytes": peak.0,
            "peak_at_ns": nanos(at),
            "at_peak": at_peak,
            "at_end": at_end,
            "bound": report.bound,
        })
    };
    let of_sum = |sum: Sum| {
        let sum = scope.sum(sum)?;
        Some(one(sum.live, sum.peak, sum.peak_at, [&sum.at_peak, &sum.at_end]))
    };
    let of_ledger = |ledger: Ledger| {
        let ledger = scope.ledger(ledger)?;
        let (live, peak) = (Bytes(ledger.tally.live_bytes), Bytes(ledger.tally.peak_bytes));
        Some(one(live, peak, ledger.peak_at, [&ledger.at_peak, &ledger.at_end]))
    };
    let found = only.iter().map(|&of| {
        let value = match of {
            Of::Sum(sum) => of_sum(sum),
            Of::Ledger(ledger) => of_ledger(ledger),
        };
        (of.name().to_owned(), value.unwrap_or_default())
    });
    Value::Object(found.collect())
}
