//! What a program says that it did, held against what a report says.
//!
//! `claims` is the one table of how the program's keys (`programs/tally.h`) stand in a report.
//! Each rule also runs backwards: a report that counts something the program never did is as
//! wrong as one that misses something.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// Sizes of what another process made are told to nobody, so only their number is compared.
const UNSIZED: &str = "imported";
/// Fields of a ledger that both sides have under the same name.
const FIELDS: [&str; 7] =
    ["allocs", "frees", "alloc_bytes", "free_bytes", "live_count", "live_bytes", "peak_bytes"];
/// Ledgers of a report that are one for the programs. A peak of two ledgers is not the sum.
const FOLDED: [(&str, &str); 1] = [("vmm_host", "vmm_physical")];
type Numbers = BTreeMap<String, u64>;

/// Everything that differs between what the program printed and the report; empty when exact.
#[must_use]
pub fn differences(report: &Value, printed: &Numbers) -> Vec<String> {
    let (claimed, found) = (claims(printed), findings(report));
    let mut keys: BTreeSet<&String> = claimed.keys().collect();
    keys.extend(found.keys().filter(|key| is_claimable(key, printed)));
    let differs = keys.into_iter().filter_map(|key| {
        let zero = |numbers: &Numbers| numbers.get(key).copied().unwrap_or(0);
        let (program, report) = (zero(&claimed), zero(&found));
        (program != report).then(|| format!("{key}: the program {program}, the report {report}"))
    });
    differs.collect()
}

/// Fails when anything differs, and when the report says that something is missing or odd.
///
/// # Panics
/// Then.
pub fn assert_exact(report: &Value, printed: &Numbers) {
    let differences = differences(report, printed);
    assert!(differences.is_empty(), "{differences:#?}\n{report:#}");
    assert!(printed.keys().any(|key| key.contains('.')), "the program printed no tally");
    assert_whole(report);
}

/// Fails when the report says that something is missing or odd.
///
/// # Panics
/// Then.
pub fn assert_whole(report: &Value) {
    let coverage = &report["coverage"];
    assert_eq!(coverage["losses"], Value::Object(Default::default()), "{coverage:#}");
    assert_eq!(coverage["salvage"], Value::Array(Vec::new()), "{coverage:#}");
    // Only a process that called `exit` is known to have made no further call.
    let exited = report["trace"]["state"] == "exited";
    assert_eq!(report["trace"]["complete"], exited, "{coverage:#}");
    assert_eq!(report["overlaps"], 0, "{:#}", report["examples"]);
    assert_eq!(report["unknown_frees"], 0, "{:#}", report["examples"]);
}

/// The program's numbers by the names that `findings` gives them.
fn claims(printed: &Numbers) -> Numbers {
    let mut claims = Numbers::new();
    let mut add = |key: String, value: u64| *claims.entry(key).or_insert(0) += value;
    for (key, &value) in printed {
        match key.split('.').collect::<Vec<&str>>().as_slice() {
            [UNSIZED, field] if field.ends_with("bytes") => {}
            [_, "failed_allocs" | "failed_frees"] => {
                add(
                    key.replace("failed_allocs", "failed").replace("failed_frees", "failed"),
                    value,
                );
            }
            [_, "null_frees"] => add("null_calls".to_owned(), value),
            ["copies", _, "sync" | "async", "count" | "bytes"] => add(key.clone(), value),
            ["sets", "sync" | "async", field @ ("count" | "bytes")] => {
                add(format!("sets.{field}"), value);
            }
            [ledger, field] if FIELDS.contains(field) && !ledger.starts_with("device_") => {
                add(key.clone(), value);
            }
            _ => {}
        }
    }
    claims
}

/// The report's numbers: `device.allocs`, `copies.host_to_device.sync.count`, `sets.bytes`, …
fn findings(report: &Value) -> Numbers {
    let mut found = Numbers::new();
    let mut add = |key: String, value: &Value| {
        *found.entry(key).or_insert(0) += value.as_u64().expect("a number");
    };
    let ledgers = report["ledgers"].as_object().expect("ledgers").iter();
    // That of PyTorch is null where nothing was seen of it.
    for (name, ledger) in ledgers.filter(|(_, ledger)| !ledger.is_null()) {
        let folded = renamed(&FOLDED, name);
        for field in FIELDS.into_iter().chain(["failed"]) {
            let compared = name != UNSIZED || !field.ends_with("bytes");
            if compared && (field != "peak_bytes" || folded == name) {
                add(format!("{folded}.{field}"), &ledger[field]);
            }
        }
    }
    for copies in report["copies"].as_array().expect("copies") {
        let direction = copies["direction"].as_str().expect("a direction");
        let manner = if copies["asynchronous"] == true { "async" } else { "sync" };
        for field in ["count", "bytes"] {
            add(format!("copies.{direction}.{manner}.{field}"), &copies[field]);
        }
    }
    for field in ["count", "bytes"] {
        add(format!("sets.{field}"), &report["sets"][field]);
    }
    add("null_calls".to_owned(), &report["null_calls"]);
    found
}

fn renamed<'a>(table: &[(&str, &'a str)], name: &'a str) -> &'a str {
    table.iter().find(|(from, _)| *from == name).map_or(name, |&(_, to)| to)
}

/// Whether a program that prints `printed` would have printed this if it had done it. Programs
/// with threads print no peak, some print no null frees or only a few fields of a ledger.
fn is_claimable(key: &str, printed: &Numbers) -> bool {
    if key == "null_calls" {
        return printed.keys().any(|key| key.ends_with(".null_frees"));
    }
    let Some((ledger, field)) = key.split_once('.') else { return true };
    let says_ledger = printed.keys().any(|key| key.split('.').next() == Some(ledger));
    !(FIELDS.contains(&field) || field == "failed") || !says_ledger
}
