//! `gmmtrace doctor [TRACE]`: is this machine fit, and did a log see everything?
//!
//! Exit code 1 when a check failed; a warning does not fail.

use std::env;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::{library, preload, report};
use crate::render::{clean, counted, grouped};
use crate::report::{PassedName, Report};
use crate::{Error, input};

/// Arguments of `doctor`.
#[derive(clap::Args)]
pub struct Arguments {
    /// A log, or a directory of logs, to check for losses and blind spots; without one the machine
    /// is checked.
    #[arg(value_name = "TRACE")]
    pub trace: Option<PathBuf>,
    /// Names of one kind that are told.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = super::question::top)]
    #[arg(requires = "trace")]
    pub top: usize,
    /// Tell every name.
    #[arg(long, requires = "trace", conflicts_with = "top")]
    pub all: bool,
}

/// What a check found.
enum Finding {
    Fine(String),
    Warning(String),
    Failure(String),
}
use Finding::{Failure, Fine, Warning};

/// Runs the command.
///
/// # Errors
/// When a log cannot be read. The other logs are checked first.
pub fn run(arguments: &Arguments) -> Result<u8, Error> {
    let Some(trace) = &arguments.trace else { return Ok(u8::from(tell(of_machine())?)) };
    let top = if arguments.all { usize::MAX } else { arguments.top };
    let logs = input::logs(trace)?;
    let (mut failed, mut refused) = (false, Vec::new());
    for log in &logs {
        let report = match report::read(log) {
            Ok(report) => report,
            Err(error) => {
                refused.push(error);
                continue;
            }
        };
        if logs.len() > 1 {
            let name = clean(&log.display().to_string());
            writeln!(io::stdout().lock(), "{name}").map_err(Error::Output)?;
        }
        failed |= tell(of_trace(&report, top))?;
    }
    if refused.is_empty() { Ok(u8::from(failed)) } else { Err(report::together(&refused)) }
}

/// Writes the findings, and returns whether one is a failure.
fn tell(findings: Vec<Finding>) -> Result<bool, Error> {
    let mut out = io::stdout().lock();
    let mut failed = false;
    for finding in findings {
        let (word, text) = match finding {
            Fine(text) => ("ok  ", text),
            Warning(text) => ("warn", text),
            Failure(text) => ("FAIL", text),
        };
        failed |= word == "FAIL";
        writeln!(out, "{word}  {}", clean(&text)).map_err(Error::Output)?;
    }
    Ok(failed)
}

fn of_machine() -> Vec<Finding> {
    let mut findings = vec![library_fits(), kernel(), clock(), driver(), output()];
    findings.extend(switches());
    findings
}

fn library_fits() -> Finding {
    let checked = library::find().and_then(|path| preload::check(&path).map(|()| path));
    match checked {
        Ok(path) => Fine(format!("library: {} loads on this machine's C library", path.display())),
        Err(error) => Failure(format!("library: {error}")),
    }
}

/// 5.14 has MADV_POPULATE_WRITE, without which a full disk cannot be met with an error code.
fn kernel() -> Finding {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let release = release.trim();
    let mut numbers = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    match (numbers.next(), numbers.next()) {
        (Some(major), Some(minor)) if (major, minor) >= (5, 14) => {
            Fine(format!("kernel: {release}"))
        }
        (Some(_), Some(_)) => Warning(format!(
            "kernel: {release} is older than 5.14, so logs are written by the helper thread and a \
             killed process loses its last moments"
        )),
        _ => Warning("kernel: release unknown".to_owned()),
    }
}

fn clock() -> Finding {
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let source = fs::read_to_string(path).unwrap_or_default();
    match source.trim() {
        "tsc" => Fine("clock: the time-stamp counter".to_owned()),
        other => Warning(format!(
            "clock: the kernel uses {}, so events are stamped by CLOCK_MONOTONIC, which is slower",
            if other.is_empty() { "an unknown source" } else { other }
        )),
    }
}

fn driver() -> Finding {
    let version = fs::read_to_string("/sys/module/nvidia/version").ok().or_else(|| {
        let text = fs::read_to_string("/proc/driver/nvidia/version").ok()?;
        text.lines().next().map(str::to_owned)
    });
    match version {
        Some(version) => Fine(format!("driver: {}", version.trim())),
        None => Warning(
            "driver: no NVIDIA kernel driver is loaded; only `gmmtrace demo` can run".to_owned(),
        ),
    }
}

fn output() -> Finding {
    let pattern = match preload::pattern(None) {
        Ok(pattern) => pattern,
        Err(error) => return Failure(format!("output: {error}")),
    };
    let directory = pattern.parent().unwrap_or(Path::new("/"));
    let probe = directory.join(format!(".gmmtrace-doctor.{}", std::process::id()));
    let tried = fs::OpenOptions::new().write(true).create_new(true).open(&probe);
    let _ = fs::remove_file(&probe);
    match tried {
        Ok(_) => Fine(format!("output: {} can be written to", directory.display())),
        Err(error) => Failure(format!("output: {}", Error::path("write to", directory, error))),
    }
}

/// The library's switches.
const SWITCHES: [&str; 7] = [
    "GMMTRACE",
    "GMMTRACE_OUT",
    "GMMTRACE_MAX_BYTES",
    "GMMTRACE_SAMPLE",
    "GMMTRACE_STACKS",
    "GMMTRACE_COPY_STACKS",
    "GMMTRACE_RUN",
];

fn switches() -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, value) in env::vars_os() {
        let (name, value) = (name.to_string_lossy(), value.to_string_lossy());
        if name == "GMMTRACE" && (value == "off" || value == "0") {
            findings.push(Warning("switch: GMMTRACE=off, so nothing is recorded".to_owned()));
        } else if name.starts_with("GMMTRACE") && !SWITCHES.contains(&&*name) {
            findings.push(Warning(format!("switch: {name} is not one of gmmtrace's")));
        } else if name == "LD_PRELOAD" && !value.is_empty() {
            findings.push(Warning(format!(
                "preload: LD_PRELOAD is set already ({value}); gmmtrace comes before it"
            )));
        }
    }
    findings
}

fn of_trace(report: &Report, top: usize) -> Vec<Finding> {
    let coverage = &report.coverage;
    let mut findings = Vec::new();
    let losses = coverage.losses.iter();
    findings.extend(
        losses.map(|loss| Failure(format!("{}: {} ({})", loss.cause, loss.count, loss.meaning))),
    );
    let damage = coverage.salvage.iter().take(top);
    findings.extend(damage.map(|text| Failure(format!("damage: {text}"))));
    findings.extend(more(coverage.salvage.len(), top, "damaged places").map(Failure));
    if coverage.unknown_kinds > 0 {
        let count = coverage.unknown_kinds;
        findings.push(Failure(format!("{count} events of kinds this version does not know")));
    }
    if findings.is_empty() {
        findings.push(Fine("nothing was lost and nothing is damaged".to_owned()));
    }
    let remarks = coverage.remarks.iter().take(top);
    findings.extend(remarks.map(|text| Warning(format!("remark: {text}"))));
    findings.extend(more(coverage.remarks.len(), top, "remarks").map(Warning));
    findings.extend(unknown_switches(&report.process.header.environment, top));
    findings.extend(
        coverage
            .notes
            .iter()
            .map(|note| Warning(format!("{}: {} ({})", note.cause, note.count, note.meaning))),
    );
    findings.extend(unseen(&coverage.passed_names, top));
    let hooked = counted(coverage.hooked, "lookup was", "lookups were");
    findings.push(Fine(format!("{hooked} answered with a hook")));
    findings
}

/// What went past a list that is cut.
fn more(count: usize, top: usize, what: &str) -> Option<String> {
    let rest = count.saturating_sub(top);
    (rest > 0).then(|| format!("and {} more {what}; --all tells them", grouped(rest as u64)))
}

/// Memory functions without a hook in one sentence, with those asked for most.
fn unseen(passed: &[PassedName], top: usize) -> Option<Finding> {
    let mut unseen: Vec<&PassedName> = passed.iter().filter(|passed| passed.memory).collect();
    if unseen.is_empty() {
        return None;
    }
    unseen.sort_by_key(|passed| std::cmp::Reverse(passed.count));
    let named = |passed: &&PassedName| {
        format!("{} ({})", passed.name, counted(passed.count, "time", "times"))
    };
    let names: Vec<String> = unseen.iter().take(top).map(named).collect();
    let rest = more(unseen.len(), top, "of them").map(|rest| format!(", {rest}"));
    let were = counted(unseen.len() as u64, "memory function was", "memory functions were");
    let (names, rest) = (names.join(", "), rest.unwrap_or_default());
    Some(Warning(format!("{were} handed out without a hook: {names}{rest}")))
}

/// Variables in the environment of a recorded process that look like switches and are none.
fn unknown_switches(environment: &[String], top: usize) -> Vec<Finding> {
    let name = |variable: &String| variable.split('=').next().unwrap_or_default().to_owned();
    let unknown = |name: &String| name.starts_with("GMMTRACE") && !SWITCHES.contains(&&**name);
    let names = environment.iter().map(name).filter(unknown).take(top);
    names.map(|name| Warning(format!("switch: {name} is not one of gmmtrace's"))).collect()
}
