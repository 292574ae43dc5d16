//! What matters, in sentences.

use crate::input::WriterState;
use crate::live::Sum;
use crate::render::picture::font::label;
use crate::render::picture::site_words;
use crate::render::{counted, grouped, share};
use crate::report::{HeldReport, Report, SumReport};
use crate::units::Bytes;

/// Names that are told in a sentence at most.
const NAMES: usize = 6;

/// The sentences of the summary, the most important first.
pub fn sentences(report: &Report) -> Vec<String> {
    let mut all = Vec::new();
    match report.total.sum(Sum::Gpu).filter(|sum| sum.peak > Bytes(0)) {
        Some(sum) => {
            all.push(peak(sum));
            all.push(left(report, sum));
        }
        None => all.push("No GPU memory was allocated.".to_owned()),
    }
    if let Some(sum) = report.total.sum(Sum::Host).filter(|sum| sum.peak > Bytes(0)) {
        let at = sum.peak_at.map(|at| format!(", at {at}")).unwrap_or_default();
        all.push(format!("At most {} of host memory was page-locked{at}.", exact(sum.peak)));
    }
    all.extend(waste(report));
    all.extend(sampled(report));
    all.push(failures(report));
    all.extend(in_flight(report));
    all.push(losses(report));
    all.extend(unhooked(report));
    all.push(ending(report));
    all
}

fn exact(bytes: Bytes) -> String {
    if bytes.0 < 1024 { bytes.to_string() } else { format!("{bytes} ({} B)", grouped(bytes.0)) }
}

fn holder(held: &[HeldReport], whole: Bytes) -> String {
    let Some(first) = held.first() else { return String::new() };
    let blocks = counted(first.count, "block", "blocks");
    let site = label(&site_words(&first.site));
    format!("{} of it in {blocks} by {site}", share(first.bytes.0, whole.0))
}

fn peak(sum: &SumReport) -> String {
    let when = sum.peak_at.map(|at| format!(", {at} after the log began,")).unwrap_or_default();
    let held = &sum.at_peak.held;
    let holder = match held.is_empty() {
        true => String::new(),
        false => format!(": {}", holder(held, sum.peak)),
    };
    format!("At its peak{when} the process held {} of GPU memory{holder}.", exact(sum.peak))
}

fn left(report: &Report, sum: &SumReport) -> String {
    let (now, end) = match report.trace.state {
        WriterState::Running => ("So far", ""),
        _ => ("At the end", " What is live at the end need not be a leak."),
    };
    if sum.live == Bytes(0) {
        return format!("{now} none of it is left.");
    }
    let holder = match sum.at_end.held.is_empty() {
        true => String::new(),
        false => format!(": {}", holder(&sum.at_end.held, sum.live)),
    };
    format!("{now} {} is live{holder}.{end}", exact(sum.live))
}

fn waste(report: &Report) -> Option<String> {
    let (at, worst) = report.total.fragmentation.device_worst?;
    let waste = worst.waste();
    (waste > Bytes(0)).then(|| {
        format!(
            "The driver gives memory in blocks of 2 MiB: at most {waste} ({}) of them was kept \
             from use, at {at}.",
            share(waste.0, worst.touched.0),
        )
    })
}

fn sampled(report: &Report) -> Option<String> {
    let most = report.sampled.iter().filter_map(|sampled| sampled.sampled.max_process).max()?;
    let peak = report.total.sum(Sum::Gpu).map_or(Bytes(0), |sum| sum.peak);
    let beyond = Bytes(most.0.checked_sub(peak.0).filter(|&beyond| beyond > 0)?);
    (report.sampled.len() == 1).then(|| {
        format!(
            "NVML saw this process use up to {most}, {beyond} more than its calls asked for: \
             contexts, modules, rounding and what no ledger counts.",
        )
    })
}

fn failures(report: &Report) -> String {
    let ledgers = report.total.ledgers.iter();
    let named = ledgers.map(|ledger| (ledger.ledger.name(), ledger.tally.failed));
    let others = [("copies", report.failed_copies), ("sets", report.failed_sets)];
    let all = named.chain(others).filter(|&(_, count)| count > 0);
    let words: Vec<String> =
        all.map(|(name, count)| format!("{} of {name}", grouped(count))).collect();
    match words.as_slice() {
        [] => "No call failed.".to_owned(),
        words => format!("Calls failed: {}.", words.join(", ")),
    }
}

fn in_flight(report: &Report) -> Option<String> {
    let calls = &report.in_flight;
    let first = calls.first()?;
    let name = label(first.api.as_deref().unwrap_or("unknown call"));
    let count = counted(calls.len() as u64, "call", "calls");
    Some(format!("{count} had not returned when the log ended, the first of them {name}."))
}

fn losses(report: &Report) -> String {
    let coverage = &report.coverage;
    let mut words: Vec<String> = coverage
        .losses
        .iter()
        .map(|loss| format!("{} {}", grouped(loss.count), loss.cause.replace('_', " ")))
        .collect();
    if !coverage.salvage.is_empty() {
        let places = counted(coverage.salvage.len() as u64, "place", "places");
        words.push(format!("the log is damaged in {places}"));
    }
    if coverage.unknown_kinds > 0 {
        words.push(format!(
            "{} of unknown kinds",
            counted(coverage.unknown_kinds, "event", "events")
        ));
    }
    match words.as_slice() {
        [] => "Nothing that was recorded is missing.".to_owned(),
        words => format!("Something is missing: {}.", words.join(", ")),
    }
}

fn unhooked(report: &Report) -> Option<String> {
    let names: Vec<String> = report
        .coverage
        .passed_names
        .iter()
        .filter(|passed| passed.memory)
        .map(|passed| label(&passed.name))
        .collect();
    let shown = names.get(..NAMES.min(names.len()))?.join(", ");
    let more = match names.len().saturating_sub(NAMES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!names.is_empty()).then(|| {
        format!(
            "The process looked up memory functions that have no hook; if it called them, what \
             they took is not counted: {shown}{more}.",
        )
    })
}

fn ending(report: &Report) -> String {
    let lasted = report.process.duration;
    let lasted = lasted.map(|time| format!(" {time} after the log began")).unwrap_or_default();
    match report.trace.state {
        WriterState::Exited => format!("The process exited{lasted}."),
        WriterState::Running => format!("The process is still running; last event{lasted}."),
        WriterState::Gone => format!(
            "The process is gone without exit (killed, crashed, or _exit); last event{lasted}."
        ),
        WriterState::Unknown => format!(
            "Whether the process still runs is not known (other machine, boot or container); \
             last event{lasted}."
        ),
    }
}
