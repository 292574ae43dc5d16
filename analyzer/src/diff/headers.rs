//! What should be alike when two runs are compared: machine, driver, command, and how much of
//! the run was recorded. A difference here can explain a difference in any figure.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// The facts of one run, or of all runs of a side: under each name, the values that occur.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts(BTreeMap<String, BTreeSet<String>>);

/// A fact that is not the same on both sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unlike {
    /// What it is about.
    pub what: String,
    /// The values of the base side; none when it has none.
    pub base: Vec<String>,
    /// The values of the new side.
    pub new: Vec<String>,
}

/// Facts that are a text, with the section and the key that they stand at.
const TEXTS: [(&str, &str, &str); 7] = [
    ("driver", "process", "driver"),
    ("kernel", "process", "kernel"),
    ("host", "process", "host"),
    ("recorder version", "process", "recorder"),
    ("log format", "trace", "format"),
    ("executable", "process", "executable"),
    ("process at the end of the log", "trace", "state"),
];

const UNKNOWN: &str = "unknown";

/// Switches that `gmmtrace run` sets anew for each run.
const OF_EACH_RUN: [&str; 2] = ["GMMTRACE_OUT", "GMMTRACE_RUN"];

impl Facts {
    /// The facts of a report.
    #[must_use]
    pub fn of(report: &Value) -> Self {
        let mut facts = Self::default();
        for (what, section, key) in TEXTS {
            facts.say(what, report[section][key].as_str().unwrap_or(UNKNOWN));
        }
        for (what, key) in [("complete", "complete"), ("clock calibrated", "calibrated")] {
            let word = report["trace"][key].as_bool().map_or(UNKNOWN, yes_or_no);
            facts.say(what, word);
        }
        facts.say("window", &window(&report["window"]));
        let process = &report["process"];
        facts.say("command line", &texts(&process["command_line"]).join(" "));
        let gpus = process["gpus"].as_array().into_iter().flatten();
        let gpus: Vec<String> = gpus.map(gpu).collect();
        facts.say("GPUs", &if gpus.is_empty() { UNKNOWN.to_owned() } else { gpus.join(", ") });
        for variable in texts(&process["environment"]) {
            let (name, value) = variable.split_once('=').unwrap_or((variable, ""));
            if !OF_EACH_RUN.contains(&name) {
                facts.say(&format!("environment {name}"), value);
            }
        }
        let losses = report["coverage"]["losses"].as_object().into_iter().flatten();
        for (cause, _) in losses {
            facts.say("losses", cause);
        }
        facts
    }

    /// Adds that a fact has this value.
    pub fn say(&mut self, what: &str, value: &str) {
        self.0.entry(what.to_owned()).or_default().insert(value.to_owned());
    }

    /// Adds the facts of another report.
    pub fn join(&mut self, other: &Self) {
        for (what, values) in &other.0 {
            self.0.entry(what.clone()).or_default().extend(values.iter().cloned());
        }
    }

    /// What is not the same here and in `new`.
    #[must_use]
    pub fn unlike(&self, new: &Self) -> Vec<Unlike> {
        let names: BTreeSet<&String> = self.0.keys().chain(new.0.keys()).collect();
        // That one run of a side does not know what another one does says nothing.
        let values = |facts: &Self, what: &String| -> Vec<String> {
            let all: Vec<String> = facts.0.get(what).into_iter().flatten().cloned().collect();
            let several = all.len() > 1;
            all.into_iter().filter(|value| !several || value != UNKNOWN).collect()
        };
        let all = names.into_iter().map(|what| Unlike {
            what: what.clone(),
            base: values(self, what),
            new: values(new, what),
        });
        all.filter(|unlike| unlike.base != unlike.new).collect()
    }
}

const fn yes_or_no(yes: bool) -> &'static str {
    if yes { "yes" } else { "no" }
}

/// The moments between which events are counted, exactly: two that look alike may not be.
fn window(window: &Value) -> String {
    let moment = |key: &str| window[key].as_i64().map(|at| format!("{at} ns"));
    match (moment("since_ns"), moment("until_ns")) {
        (None, None) => "the whole log".to_owned(),
        (since, until) => format!(
            "from {} to {}",
            since.as_deref().unwrap_or("the start"),
            until.as_deref().unwrap_or("the end")
        ),
    }
}

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

fn gpu(facts: &Value) -> String {
    let name = facts["name"].as_str().unwrap_or("unknown");
    let gib = facts["total_bytes"].as_u64().map(|bytes| crate::units::Bytes(bytes).to_string());
    format!("{name} ({})", gib.as_deref().unwrap_or("unknown size"))
}
