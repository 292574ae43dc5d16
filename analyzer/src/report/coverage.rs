//! What the recorder saw, what went past it, and what was lost.

use std::collections::BTreeMap;

use gmmtrace_format::layout::Counter;

use crate::input::Log;
use crate::order::Outcome;

/// What was seen and what was not.
#[derive(Clone, Debug)]
pub struct Coverage {
    /// Entry points handed out with a hook.
    pub hooked: u64,
    /// CUDA entry points handed out without one.
    pub passed: u64,
    /// Lookups of a hooked name with RTLD_NEXT, which go through untouched.
    pub next: u64,
    /// The names handed out without a hook, those that may move memory first.
    pub passed_names: Vec<PassedName>,
    /// Every counter that means a loss and is above zero.
    pub losses: Vec<Loss>,
    /// Every other counter above zero that is not told elsewhere.
    pub notes: Vec<Loss>,
    /// What was damaged.
    pub salvage: Vec<String>,
    /// Whether the damage may have cost events.
    pub salvage_loses_events: bool,
    /// Events of kinds that this version does not know.
    pub unknown_kinds: u64,
    /// Definitions that were never completed, or of kinds that this version does not know.
    pub lost_definitions: u64,
    /// Remarks of the recorder.
    pub remarks: Vec<String>,
}

/// A counter above zero.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    /// Its name.
    pub cause: &'static str,
    /// Its value.
    pub count: u64,
    /// What it counts.
    pub meaning: &'static str,
}

/// A name that was handed out without a hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassedName {
    /// The name.
    pub name: String,
    /// How often it was asked for, as far as that was noted.
    pub count: u64,
    /// By which functions.
    pub resolvers: Vec<&'static str>,
    /// Whether the name says that it takes or gives memory.
    pub memory: bool,
}

/// Words in the names of functions that take, give or move memory.
const MEMORY: [&str; 3] = ["Mem", "Alloc", "Free"];

impl Coverage {
    /// Coverage of a log whose events were read.
    #[must_use]
    pub fn of(log: &Log, outcome: &Outcome) -> Self {
        let told = [Counter::LookupsHooked, Counter::LookupsPassed, Counter::LookupsNext];
        let [hooked, passed, next] = told.map(|counter| log.counters.get(counter));
        let above_zero = |wanted: fn(Counter) -> bool| {
            let counters = Counter::ALL.iter().copied().filter(move |&counter| wanted(counter));
            let all = counters.map(|counter| Loss {
                cause: counter.name(),
                count: log.counters.get(counter),
                meaning: counter.meaning(),
            });
            all.filter(|loss| loss.count > 0).collect::<Vec<Loss>>()
        };
        let salvage = || log.salvage.iter().chain(&outcome.salvage);
        let remarks = log.process.remarks.iter().chain(&log.dictionary.remarks);
        Self {
            hooked,
            passed,
            next,
            passed_names: passed_names(log),
            losses: above_zero(Counter::is_loss),
            notes: above_zero(is_note),
            salvage: salvage().map(ToString::to_string).collect(),
            salvage_loses_events: salvage().any(|damage| damage.loses_events()),
            unknown_kinds: outcome.unknown_kinds,
            lost_definitions: log.dictionary.incomplete.saturating_add(log.dictionary.unknown),
            remarks: remarks.cloned().collect(),
        }
    }

    /// Whether nothing that was written is missing.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.losses.is_empty() && self.salvage.is_empty() && self.unknown_kinds == 0
    }
}

fn is_note(counter: Counter) -> bool {
    let told =
        matches!(counter, Counter::LookupsHooked | Counter::LookupsPassed | Counter::LookupsNext);
    !counter.is_loss() && !told
}

fn passed_names(log: &Log) -> Vec<PassedName> {
    let mut names: BTreeMap<&str, PassedName> = BTreeMap::new();
    for lookup in log.dictionary.lookups.iter().filter(|lookup| !lookup.hooked) {
        let passed = names.entry(&lookup.name).or_insert_with(|| PassedName {
            name: lookup.name.clone(),
            count: 0,
            resolvers: Vec::new(),
            memory: MEMORY.iter().any(|&word| lookup.name.contains(word)),
        });
        passed.count = passed.count.saturating_add(lookup.count);
        let resolver = lookup.resolver.map(|resolver| resolver.name());
        if let Some(resolver) = resolver.filter(|name| !passed.resolvers.contains(name)) {
            passed.resolvers.push(resolver);
        }
    }
    let mut found: Vec<PassedName> = names.into_values().collect();
    found.sort_by_key(|passed| !passed.memory);
    found
}
