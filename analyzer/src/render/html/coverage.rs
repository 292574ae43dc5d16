//! What was seen, what was not, and about whom all this is.

use super::table::{Cell, Table, note, section, sub};
use crate::render::grouped;
use crate::render::picture::font::label;
use crate::render::picture::site_words;
use crate::report::{Coverage, OddReport, Report};

/// The sections, in HTML.
pub fn sections(report: &Report) -> String {
    let mut out = String::new();
    odd("Frees of what was not live", "unknown-frees", &report.unknown_frees, &mut out);
    odd("Allocations where something was live", "overlaps", &report.overlaps, &mut out);
    coverage(report, &mut out);
    process(report, &mut out);
    out
}

fn odd(heading: &str, id: &str, odd: &OddReport, out: &mut String) {
    if odd.count == 0 {
        return;
    }
    section(out, id, &format!("{heading}: {}", grouped(odd.count)), "The first are shown.");
    let head = ["#address", "ledger", "call and library", "#at"];
    let table = Table::of(&head, &odd.examples, |example| {
        vec![
            Cell::address(example.place),
            Cell::words(example.ledger.name()),
            Cell::words(&site_words(&example.site)),
            Cell::time(example.at),
        ]
    });
    table.write(out);
}

fn coverage(report: &Report, out: &mut String) {
    let coverage = &report.coverage;
    let about = format!(
        "Lookups: {} answered with a hook, {} passed through, {} with RTLD_NEXT.",
        grouped(coverage.hooked),
        grouped(coverage.passed),
        grouped(coverage.next),
    );
    section(out, "coverage", "Coverage and losses", &about);
    if report.null_calls > 0 {
        let count = grouped(report.null_calls);
        note(out, format!("Calls with a null pointer, counted in no ledger: {count}."));
    }
    if coverage.unknown_kinds > 0 || coverage.lost_definitions > 0 {
        let [kinds, lost] = [coverage.unknown_kinds, coverage.lost_definitions].map(grouped);
        note(out, format!("{kinds} events of unknown kinds, {lost} definitions unreadable."));
    }
    losses(coverage, out);
    if !coverage.salvage.is_empty() {
        sub(out, "Damage");
        Table::of(&["what"], &coverage.salvage, |line| vec![Cell::words(line)]).write(out);
    }
    if !coverage.remarks.is_empty() {
        sub(out, "The recorder says");
        Table::of(&["remark"], &coverage.remarks, |line| vec![Cell::words(line)]).write(out);
    }
    if !coverage.passed_names.is_empty() {
        sub(out, "Looked up and not hooked");
        let head = ["name", "may move memory", "#lookups", "by"];
        let table = Table::of(&head, &coverage.passed_names, |passed| {
            vec![
                Cell::words(&passed.name),
                Cell::words(if passed.memory { "yes" } else { "no" }),
                Cell::count(passed.count),
                Cell::words(&passed.resolvers.join(", ")),
            ]
        });
        table.write(out);
    }
}

fn losses(coverage: &Coverage, out: &mut String) {
    if coverage.losses.is_empty() {
        note(out, "No loss was counted.");
    }
    let all = coverage.losses.iter().map(|loss| ("loss", loss));
    let all = all.chain(coverage.notes.iter().map(|note| ("note", note)));
    let table = Table::of(&["", "cause", "#count", "meaning"], all, |(kind, loss)| {
        vec![
            Cell::words(kind),
            Cell::words(loss.cause),
            Cell::count(loss.count),
            Cell::words(loss.meaning.trim()),
        ]
    });
    if !table.is_empty() {
        table.write(out);
    }
}

fn process(report: &Report, out: &mut String) {
    let (trace, process) = (&report.trace, &report.process);
    let header = &process.header;
    section(out, "process", "The process and its log", "");
    let some = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".to_owned());
    let mut rows = vec![
        ("log", trace.path.clone()),
        ("size of the log", format!("{} ({} events)", trace.size, grouped(trace.events))),
        ("format", trace.format.clone()),
        ("state", trace.state.name().to_owned()),
        ("complete", if trace.complete { "yes" } else { "no" }.to_owned()),
        ("pid", header.pid.to_string()),
        ("parent", header.parent_pid.to_string()),
        ("command line", header.command_line.join(" ")),
        ("executable", some(&header.executable)),
        ("directory", some(&header.directory)),
        ("host", some(&header.host)),
        ("kernel", some(&header.kernel)),
        ("driver", some(&process.driver)),
        ("recorder", some(&header.recorder)),
        ("threads with GPU calls", grouped(process.threads)),
    ];
    let devices = process.gpus.iter();
    rows.extend(devices.map(|(gpu, facts)| {
        let name = label(&facts.name);
        ("device", format!("GPU {}: {name}, {}, {}", gpu.0, facts.total, label(&facts.uuid)))
    }));
    rows.extend(header.environment.iter().map(|switch| ("environment", switch.clone())));
    let row = |(name, value): (&str, String)| vec![Cell::words(name), Cell::words(&value)];
    Table::of(&["", ""], rows, row).write(out);
}
