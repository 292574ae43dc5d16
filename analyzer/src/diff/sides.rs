//! From arguments to the two sides of a comparison.
//!
//! An argument is a run. A file that holds one report is a run of one process. A directory of
//! logs, or a file that holds an array of reports, is a run of several processes, whose figures
//! are put together (`figures`). Several runs are several arguments.

use serde_json::Value;

use super::figures::Figures;
use super::flatten;
use super::headers::Facts;
use crate::render::json::SCHEMA;

/// One run.
#[derive(Clone, Debug)]
pub struct Run {
    /// The argument that it came from.
    pub name: String,
    /// Processes in it.
    pub processes: usize,
    /// Its figures.
    pub figures: Figures,
    /// Its headers.
    pub facts: Facts,
}

/// One side: one or more runs.
#[derive(Clone, Debug, Default)]
pub struct Side {
    /// Its runs, in the order of the arguments.
    pub runs: Vec<Run>,
}

impl Run {
    /// A run of these reports.
    ///
    /// # Errors
    /// When there is none, or one is not a report that this version reads.
    pub fn of(name: String, reports: &[Value]) -> Result<Self, String> {
        let several = reports.len() > 1;
        let (mut figures, mut facts) = (Vec::new(), Facts::default());
        for (index, report) in reports.iter().enumerate() {
            check(report).map_err(|problem| {
                let place = if several { format!("report {}: ", index + 1) } else { String::new() };
                format!("{name}: {place}{problem}")
            })?;
            figures.push(flatten::of(report));
            facts.join(&Facts::of(report));
        }
        facts.say("processes of a run", &reports.len().to_string());
        match reports.len() {
            0 => Err(format!("{name}: the array holds no report")),
            processes => Ok(Self { name, processes, figures: Figures::joined(figures), facts }),
        }
    }
}

impl Side {
    /// What is known about its runs.
    #[must_use]
    pub fn facts(&self) -> Facts {
        let mut facts = Facts::default();
        self.runs.iter().for_each(|run| facts.join(&run.facts));
        facts
    }
}

fn check(report: &Value) -> Result<(), String> {
    match &report["schema"] {
        Value::Null => Err(format!(
            "no report of gmmtrace: it has no schema number, and this version reads number {SCHEMA}"
        )),
        // Answers say at their top whether figures are bounds; reports beside each figure.
        schema if *schema == SCHEMA && !report["bound"].is_null() => Err(
            "the answer to one question and not a whole report; `gmmtrace report --format json` \
             saves one"
                .to_owned(),
        ),
        schema
            if *schema == SCHEMA && report["trace"].is_null() && report["changes"].is_array() =>
        {
            Err("a comparison and not a report".to_owned())
        }
        schema if *schema == SCHEMA => Ok(()),
        Value::Number(schema) => Err(format!(
            "a report with schema number {schema}, and this version reads number {SCHEMA}"
        )),
        _ => Err(format!(
            "no report of gmmtrace: its schema is no number, and this version reads number {SCHEMA}"
        )),
    }
}
