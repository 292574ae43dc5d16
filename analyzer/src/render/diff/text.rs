//! A comparison as text: what was not alike, the gates, then what changed.

use std::io::{self, Write};

use super::words::{self, Manner};
use crate::diff::{Comparison, Pair, Verdict};
use crate::render::table::Align::{Left, Right};
use crate::render::{Table, clean, grouped};

/// Writes the comparison.
///
/// # Errors
/// As `out` says.
pub fn write(
    comparison: &Comparison,
    verdicts: &[Verdict],
    manner: Manner,
    out: &mut impl Write,
) -> io::Result<()> {
    writeln!(out, "gmmtrace diff")?;
    writeln!(out, "base  {}", clean(&words::runs(&comparison.base)))?;
    writeln!(out, "new   {}", clean(&words::runs(&comparison.new)))?;
    for remark in words::remarks(comparison) {
        writeln!(out, "      {}", clean(&remark))?;
    }
    unlike(comparison, out)?;
    gates(verdicts, manner, out)?;
    let tables = super::tables(comparison);
    if tables.is_empty() {
        return writeln!(out, "\n{}", super::nothing_differs(comparison));
    }
    for (title, rows) in tables {
        writeln!(out, "\n{title}")?;
        table(&rows, comparison, manner, out)?;
    }
    Ok(())
}

fn unlike(comparison: &Comparison, out: &mut impl Write) -> io::Result<()> {
    if comparison.unlike.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nThe runs were not made alike")?;
    for unlike in &comparison.unlike {
        let (base, new) = words::unlike(unlike);
        writeln!(out, "  {}: base {base}, new {new}", clean(&unlike.what))?;
    }
    Ok(())
}

fn gates(verdicts: &[Verdict], manner: Manner, out: &mut impl Write) -> io::Result<()> {
    if verdicts.is_empty() {
        return Ok(());
    }
    let failed = verdicts.iter().filter(|verdict| verdict.failed).count();
    let all = verdicts.len();
    writeln!(
        out,
        "\nGates: {}",
        match failed {
            0 => words::passed(all),
            _ => format!("{failed} of {all} checks failed"),
        }
    )?;
    write_failed(verdicts, manner, out)
}

/// Writes a sentence for every gate that failed, and what it failed by.
///
/// # Errors
/// As `out` says.
pub fn write_failed(verdicts: &[Verdict], manner: Manner, out: &mut impl Write) -> io::Result<()> {
    for verdict in verdicts.iter().filter(|verdict| verdict.failed) {
        writeln!(out, "  FAILED {}: {}", clean(&verdict.gate), words::verdict(verdict, manner))?;
        for pair in verdict.by.iter().take(manner.top.min(words::CONTRIBUTORS)) {
            let (name, change) = words::contributor(verdict, pair, manner);
            writeln!(out, "         by {change}: {name}")?;
        }
    }
    Ok(())
}

fn table(
    rows: &[&Pair],
    comparison: &Comparison,
    manner: Manner,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut table = Table::new([
        ("change", Right),
        ("", Right),
        ("base", Right),
        ("new", Right),
        ("figure", Left),
    ]);
    for pair in rows.iter().take(manner.top) {
        table.row([
            words::change_of(pair, manner),
            words::relative(pair),
            words::found(pair.base, pair.unit, &comparison.base, manner),
            words::found(pair.new, pair.unit, &comparison.new, manner),
            pair.name.to_string(),
        ]);
    }
    table.write(out)?;
    match rows.len().saturating_sub(manner.top) {
        0 => Ok(()),
        more => writeln!(
            out,
            "  and {} more; --top shows more, --format json all of them",
            grouped(more as u64)
        ),
    }
}
