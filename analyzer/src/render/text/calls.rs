//! Calls: how often, how long, which had not returned, which did not fit.

use std::io::{self, Write};

use super::page::{Page, call, caller};
use crate::live::Share;
use crate::render::table::Align::{Left, Right};
use crate::render::table::{Table, grouped};
use crate::report::{OddReport, layer_name};
use crate::units::Bytes;

/// By entry point.
pub fn calls(page: &Page<'_>, out: &mut impl Write) -> io::Result<()> {
    if page.report.calls.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nCalls")?;
    let mut table = Table::new([
        ("", Left),
        ("layer", Left),
        ("calls", Right),
        ("failed", Right),
        ("time", Right),
        ("longest", Right),
    ]);
    for call in page.report.calls.iter().take(page.style.top) {
        table.row([
            call.words(),
            call.layer.map(layer_name).unwrap_or_default().to_owned(),
            grouped(call.calls),
            grouped(call.failed),
            call.total.to_string(),
            call.max.to_string(),
        ]);
    }
    table.write(out)?;
    page.more(page.report.calls.len(), out)
}

/// Those that had not returned.
pub fn in_flight(page: &Page<'_>, out: &mut impl Write) -> io::Result<()> {
    if page.report.in_flight.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nCalls that had not returned")?;
    let mut table = Table::new([
        ("", Left),
        ("layer", Left),
        ("thread", Right),
        ("since", Right),
        ("argument", Right),
    ]);
    for call in &page.report.in_flight {
        table.row([
            call.api.as_deref().unwrap_or("unknown").to_owned(),
            call.layer.map(layer_name).unwrap_or_default().to_owned(),
            call.thread.map_or_else(|| "unknown".to_owned(), |thread| thread.to_string()),
            call.since.to_string(),
            format!("{:#x}", call.argument),
        ]);
    }
    table.write(out)
}

/// What does not fit the live set.
pub fn odd(title: &str, odd: &OddReport, out: &mut impl Write) -> io::Result<()> {
    if odd.count == 0 {
        return Ok(());
    }
    writeln!(out, "\n{title}: {}", grouped(odd.count))?;
    let mut table = Table::new([
        ("address", Right),
        ("ledger", Left),
        ("call", Left),
        ("library", Left),
        ("at", Right),
    ]);
    for example in &odd.examples {
        table.row([
            format!("{:#x}", example.place),
            example.ledger.name().to_owned(),
            call(&example.site),
            caller(&example.site),
            example.at.exact(),
        ]);
    }
    table.write(out)?;
    let shown = odd.examples.len() as u64;
    if odd.count > shown {
        writeln!(out, "  the first {shown} are shown")?;
    }
    Ok(())
}

/// Live blocks whose free was not seen.
pub fn stale(page: &Page<'_>, out: &mut impl Write) -> io::Result<()> {
    let Share { count, bytes } = page.report.stale;
    if count == 0 {
        return Ok(());
    }
    let size = page.style.size(Bytes(bytes));
    writeln!(
        out,
        "\nLive blocks of which a later one takes a part, so their free was not seen: {}, {size}",
        grouped(count)
    )
}
