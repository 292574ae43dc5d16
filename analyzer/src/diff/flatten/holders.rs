//! Who holds memory at the end and at the peaks, by library and by site.

use serde_json::Value;

use super::{Reading, is_bound, leaf, named, objects, rows, text};
use crate::diff::name::Name;

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

/// Adds what every sum and every ledger is made of.
pub(super) fn holders(reading: &mut Reading<'_>, report: &Value) {
    let sums = added(report);
    let sum_of = |ledger: &str| {
        let found = sums.iter().find(|(_, adds)| adds.iter().any(|added| added == ledger));
        found.map(|(sum, _)| sum.as_str())
    };
    for row in rows(&report["live_at_end"]) {
        let ledger = named(row, "ledger");
        let sum = sum_of(&ledger);
        if let Some(sum) = sum {
            holder(reading, "live", sum, None, row);
        }
        holder(reading, "live", &ledger, sum, row);
    }
    let sum = report["peak"]["sum"].as_str().unwrap_or("gpu");
    rows(&report["peak"]["held"]).for_each(|row| holder(reading, "peak", sum, None, row));
    for (other, value) in objects(&report["sums"]).filter(|(other, _)| *other != sum) {
        rows(&value["held"]).for_each(|row| holder(reading, "peak", other, None, row));
    }
    for (ledger, peak) in objects(&report["peak"]["ledgers"]) {
        let sum = sum_of(ledger);
        rows(&peak["held"]).for_each(|row| holder(reading, "peak", ledger, sum, row));
    }
}

/// One row of a composition. What is in a ledger is said again when it is the same in its sum.
fn holder(reading: &mut Reading<'_>, kind: &str, of: &str, sum: Option<&str>, row: &Value) {
    let (ledger, bound) = (named(row, "ledger"), is_bound(row));
    let (site, library) =
        (site(&row["site"], reading.executable), library(&row["site"], reading.executable));
    let tails: [&[&str]; 2] = [&["library", &library], &["site", &ledger, &site]];
    let heads: [(&str, &[&str]); 2] = [("bytes", &[kind]), ("count", &[kind, "count"])];
    for (key, head) in heads {
        for tail in tails {
            let name = |of: &str| Name::of(&[head, &[of], tail].concat());
            leaf(reading, &name(of), key, &row[key], bound, sum.map(name));
        }
    }
}

/// A library by its file name: releases are installed in other directories. The executable has
/// no name here, because that of the next release may be another.
fn library(site: &Value, executable: Option<&str>) -> String {
    match site["library"].as_str() {
        Some(path) if path.is_empty() || executable == Some(path) => "(executable)".to_owned(),
        Some(path) => path.rsplit('/').find(|part| !part.is_empty()).unwrap_or(path).to_owned(),
        None => "unknown".to_owned(),
    }
}

/// A site in words that the next release has as well: no addresses and no lines.
pub(super) fn site(site: &Value, executable: Option<&str>) -> String {
    let api = site["api"].as_str().unwrap_or("unknown call");
    let call =
        site["call"].as_str().map_or_else(|| api.to_owned(), |call| format!("{call} > {api}"));
    let frames: Vec<&str> =
        rows(&site["frames"]).filter_map(|frame| frame["function"].as_str()).collect();
    let within =
        if frames.is_empty() { String::new() } else { format!(" in {}", frames.join(" < ")) };
    format!("{}: {call}{within}", library(site, executable))
}
