//! A comparison as JSON. `docs/diff.schema.json` is its contract, and tests hold it to that.
//! Texts of the process stand here as they are; JSON's own escapes make them safe.

use serde_json::{Number, Value, json};

use super::words::{self, Manner};
use crate::diff::compare::{Comparison, Found, Pair, Spread};
use crate::diff::gate::Verdict;
use crate::diff::sides::Side;

/// Number of the schema.
pub const SCHEMA: u32 = 1;

/// The comparison as a value.
#[must_use]
pub fn value(comparison: &Comparison, verdicts: &[Verdict], manner: Manner) -> Value {
    let unlike = comparison
        .unlike
        .iter()
        .map(|unlike| json!({ "what": unlike.what, "base": unlike.base, "new": unlike.new }));
    let changes = comparison.changes();
    json!({
        "schema": SCHEMA,
        "base": side(&comparison.base),
        "new": side(&comparison.new),
        "remarks": words::remarks(comparison),
        "unlike": unlike.collect::<Vec<_>>(),
        "compared": comparison.pairs.len(),
        "same": comparison.pairs.len().saturating_sub(changes.len()),
        "changes": changes.into_iter().map(pair).collect::<Vec<_>>(),
        "gates": verdicts.iter().map(|gate| verdict(gate, manner)).collect::<Vec<_>>(),
        "failed": verdicts.iter().any(|verdict| verdict.failed),
    })
}

fn side(side: &Side) -> Value {
    let runs = side.runs.iter();
    let runs = runs.map(|run| json!({ "path": run.name, "processes": run.processes }));
    json!({ "runs": runs.collect::<Vec<_>>() })
}

fn pair(pair: &Pair) -> Value {
    json!({
        "figure": pair.name.to_string(),
        "parts": pair.name.parts(),
        "unit": pair.unit.name(),
        "group": pair.group.name(),
        "base": found(pair.base),
        "new": found(pair.new),
        "change": pair.change().map(number),
        "percent": pair.percent(),
        "noise": pair.noise,
        "repeats": pair.repeats,
    })
}

fn found(found: Found) -> Value {
    found.known().map_or(Value::Null, spread)
}

fn spread(spread: Spread) -> Value {
    json!({
        "median": number(spread.median),
        "min": number(spread.least),
        "max": number(spread.greatest),
        "runs": spread.runs,
        "bound": spread.bound,
    })
}

fn verdict(verdict: &Verdict, manner: Manner) -> Value {
    json!({
        "gate": verdict.gate,
        "figure": verdict.pair.name.to_string(),
        "unit": verdict.pair.unit.name(),
        "operator": verdict.op.sign(),
        "limit": number(verdict.limit_value),
        "base": found(verdict.pair.base),
        "new": spread(verdict.new),
        "failed": verdict.failed,
        "overlap": verdict.pair.overlaps(),
        "sentence": words::verdict(verdict, manner),
        "by": verdict.by.iter().map(pair).collect::<Vec<_>>(),
    })
}

/// Whole where JSON's readers can take it whole; sums past 64 bits lose their last digits.
fn number(number: i128) -> Value {
    let whole = Number::from_i128(number);
    whole.or_else(|| Number::from_f64(number as f64)).map_or(Value::Null, Value::Number)
}
