//! Tables of calls: copies, time in calls, entry points, phases.

use super::memory::sizes;
use super::table::{Cell, Table, note, section, sub};
use crate::live::MARKS;
use crate::render::picture::{copy_words, site_words};
use crate::render::{counted, grouped};
use crate::report::{MovedReport, Report, StallReport, layer_name};
use crate::units::Bytes;

/// The sections, in HTML.
pub fn sections(report: &Report) -> String {
    let mut out = String::new();
    copies(report, &mut out);
    stalls(report, &mut out);
    entry_points(report, &mut out);
    sampled(report, &mut out);
    in_flight(report, &mut out);
    phases(report, &mut out);
    out
}

fn copies(report: &Report, out: &mut String) {
    let total = &report.total;
    let named = total.copies.iter().map(|(key, moved)| (copy_words(key), moved));
    let sets = Some(("set".to_owned(), &total.sets)).filter(|_| total.sets.moved.count > 0);
    let all: Vec<(String, &MovedReport)> = named.chain(sets).collect();
    let bound = format!("All figures are bounds: {}.", report.doubt.words());
    let about = if report.copies_bound { bound.as_str() } else { "" };
    section(out, "copies-figures", "Copies and sets", about);
    if all.is_empty() {
        return note(out, "Nothing was copied or set.");
    }
    let head = ["kind", "#calls", "#empty", "#bytes", "#exactly", "#time in calls", "#longest"];
    let table = Table::of(&head, &all, |(name, report)| {
        vec![
            Cell::words(name),
            Cell::count(report.moved.count),
            Cell::count(report.moved.empty),
            Cell::bytes(Bytes(report.moved.bytes)),
            Cell::exact(Bytes(report.moved.bytes)),
            Cell::time(report.total),
            Cell::time(report.max),
        ]
    });
    table.write(out);
    for (name, moved) in all.iter().filter(|(_, moved)| !moved.by_size.is_empty()) {
        sub(out, &format!("{name}: by size"));
        sizes("#calls", &moved.by_size).write(out);
    }
}

fn stalls(report: &Report, out: &mut String) {
    let used = report.stalls.iter().filter(|stall| stall.count > 0);
    let used: Vec<&StallReport> = used.collect();
    if used.is_empty() {
        return;
    }
    let mut about =
        "Time that threads spent in calls, all threads together; failed calls included.".to_owned();
    if report.copies_bound {
        about.push_str(&format!(" All figures are bounds: {}.", report.doubt.words()));
    }
    section(out, "stalls", "Time in calls, by what they are for", &about);
    let table = Table::of(&["for", "#calls", "#time", "#longest"], &used, |stall| {
        let name = Cell::words(stall.purpose.name());
        vec![name, Cell::count(stall.count), Cell::time(stall.total), Cell::time(stall.max)]
    });
    table.write(out);
    for stall in used {
        sub(out, &format!("{}: by length", stall.purpose.name()));
        let table = Table::of(&["#from", "#to", "#calls", "#time"], &stall.by_length, |class| {
            vec![
                Cell::time(class.from),
                Cell::known(class.to, Cell::time),
                Cell::count(class.count),
                Cell::time(class.total),
            ]
        });
        table.write(out);
        sub(out, &format!("{}: the longest", stall.purpose.name()));
        let head = ["#length", "#at", "#bytes", "#thread", "call and library"];
        let table = Table::of(&head, &stall.longest, |call| {
            vec![
                Cell::time(call.length),
                Cell::time(call.at),
                Cell::known(call.bytes, Cell::bytes),
                Cell::known(call.thread, |thread| Cell::count(thread.into())),
                Cell::words(&site_words(&call.site)),
            ]
        });
        table.write(out);
    }
}

fn entry_points(report: &Report, out: &mut String) {
    if report.calls.is_empty() {
        return;
    }
    let about = "The time of a runtime call is that of the driver calls beneath it.";
    section(out, "calls", "Calls by entry point", about);
    let head = ["entry point", "layer", "#calls", "#failed", "#time", "#longest"];
    let table = Table::of(&head, &report.calls, |call| {
        vec![
            Cell::words(&call.words()),
            Cell::words(call.layer.map(layer_name).unwrap_or_default()),
            Cell::count(call.calls),
            Cell::count(call.failed),
            Cell::time(call.total),
            Cell::time(call.max),
        ]
    });
    table.write(out);
}

fn sampled(report: &Report, out: &mut String) {
    if report.sampled.is_empty() {
        return;
    }
    section(out, "sampled", "Device memory as NVML read it", "");
    let head =
        ["#device", "#readings", "#used at last", "#used at most", "#of", "#this process at most"];
    let table = Table::of(&head, &report.sampled, |entry| {
        let sampled = &entry.sampled;
        vec![
            Cell::known(entry.gpu, |gpu| Cell::count(gpu.0.into())),
            Cell::count(sampled.count),
            Cell::bytes(sampled.last_used),
            Cell::bytes(sampled.max_used),
            Cell::bytes(sampled.total),
            Cell::known(sampled.max_process, Cell::bytes),
        ]
    });
    table.write(out);
}

fn in_flight(report: &Report, out: &mut String) {
    if report.in_flight.is_empty() {
        return;
    }
    section(out, "in-flight", "Calls that had not returned", "");
    let head = ["entry point", "layer", "#thread", "#since", "#argument"];
    let table = Table::of(&head, &report.in_flight, |call| {
        vec![
            Cell::words(call.api.as_deref().unwrap_or("unknown")),
            Cell::words(call.layer.map(layer_name).unwrap_or_default()),
            Cell::known(call.thread, |thread| Cell::count(thread.into())),
            Cell::time(call.since),
            Cell::address(call.argument),
        ]
    });
    table.write(out);
}

fn phases(report: &Report, out: &mut String) {
    if report.mark_count > 0 {
        section(out, "marks", &format!("Marks: {}", grouped(report.mark_count)), "");
        let table = Table::of(&["#at", "mark", "#thread"], &report.marks, |mark| {
            vec![
                Cell::time(mark.at),
                Cell::words(&mark.text),
                Cell::known(mark.thread, |thread| Cell::count(thread.into())),
            ]
        });
        table.write(out);
        if report.mark_count > report.marks.len() as u64 {
            note(out, format!("Only the first {} marks are kept.", grouped(MARKS as u64)));
        }
    }
    if !report.ranges.is_empty() {
        section(out, "ranges", "Ranges", "");
        let table = Table::of(&["range", "#count", "#time", "#open"], &report.ranges, |range| {
            vec![
                Cell::words(&range.name),
                Cell::count(range.count),
                Cell::time(range.total),
                Cell::count(range.open),
            ]
        });
        table.write(out);
    }
    if report.uncounted_ranges > 0 {
        note(out, format!("{} past the cap.", counted(report.uncounted_ranges, "range", "ranges")));
    }
}
