//! Copies, sets, and time in calls.

use std::io::{self, Write};

use super::held::bar;
use super::page::{Page, call, caller};
use crate::live::CopyKey;
use crate::render::table::Align::{Left, Right};
use crate::render::table::{Table, grouped};
use crate::report::{MovedReport, StallReport};
use crate::units::Bytes;

fn words(key: &CopyKey) -> [String; 3] {
    [
        key.direction.name().replace('_', " "),
        if key.asynchronous { "async" } else { "sync" }.to_owned(),
        key.host.map(|host| host.name()).unwrap_or_default().to_owned(),
    ]
}

fn rows<'a>(page: &Page<'a>) -> Vec<([String; 3], &'a MovedReport)> {
    let copies = page.scope.copies.iter().map(|(key, moved)| (words(key), moved));
    let sets = (["set", "", ""].map(str::to_owned), &page.scope.sets);
    copies.chain([sets]).filter(|(_, report)| report.moved.count > 0).collect()
}

/// By direction, manner and host side.
pub fn copies(page: &Page<'_>, out: &mut impl Write) -> io::Result<()> {
    let rows = rows(page);
    if rows.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nCopies and sets{}", page.copies_bound())?;
    let mut table = Table::new([
        ("", Left),
        ("", Left),
        ("host side", Left),
        ("count", Right),
        ("", Right),
        ("bytes", Right),
        ("time in calls", Right),
        ("longest", Right),
    ]);
    for (words, report) in rows {
        let [direction, manner, host] = words;
        table.row([
            direction,
            manner,
            host,
            grouped(report.moved.count),
            page.style.size(Bytes(report.moved.bytes)),
            grouped(report.moved.bytes),
            report.total.to_string(),
            report.max.to_string(),
        ]);
    }
    table.write(out)
}

/// Copies and sets of each kind by their size.
pub fn by_size(page: &Page<'_>, out: &mut impl Write) -> io::Result<()> {
    for (words, report) in rows(page) {
        let words: Vec<String> = words.into_iter().filter(|word| !word.is_empty()).collect();
        writeln!(out, "\nBy size: {}{}", words.join(", "), page.copies_bound())?;
        let mut table = Table::new([
            ("from", Right),
            ("to below", Right),
            ("count", Right),
            ("", Right),
            ("", Left),
        ]);
        let most = report.by_size.iter().map(|class| class.bytes.0).max().unwrap_or(0);
        for class in &report.by_size {
            table.row([
                page.style.size(class.from),
                page.style.size(Bytes(class.to.0.saturating_add(1))),
                grouped(class.count),
                page.style.size(class.bytes),
                bar(class.bytes.0, most),
            ]);
        }
        table.write(out)?;
    }
    Ok(())
}

/// Time in calls by what they are for.
pub fn stalls(page: &Page<'_>, out: &mut impl Write) -> io::Result<()> {
    let used = page.report.stalls.iter().filter(|stall| stall.count > 0);
    let used: Vec<&StallReport> = used.collect();
    if used.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nTime in calls, all threads together{}", page.copies_bound())?;
    let mut table = Table::new([
        ("", Left),
        ("calls", Right),
        ("time", Right),
        ("longest", Right),
        ("at", Right),
        ("", Left),
    ]);
    for stall in used {
        let longest = stall.longest.first();
        table.row([
            stall.purpose.name().to_owned(),
            grouped(stall.count),
            stall.total.to_string(),
            stall.max.to_string(),
            longest.map(|longest| longest.at.exact()).unwrap_or_default(),
            longest
                .map(|longest| format!("{} in {}", call(&longest.site), caller(&longest.site)))
                .unwrap_or_default(),
        ]);
    }
    table.write(out)
}
