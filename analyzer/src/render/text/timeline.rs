//! Figures over time as lines of blocks, and as a table.

use std::io::{self, Write};

use super::page::{Of, Page, scope_name};
use crate::live::{Ledger, Level, Sum};
use crate::render::table::Align::{Left, Right};
use crate::render::table::Table;
use crate::report::{Figure, Scope, SeriesReport, TimelineReport};
use crate::units::Bytes;

/// Letters of a line over time.
const WIDTH: usize = 48;

/// The buckets that stand for part `part` of `parts` of a timeline.
fn span(buckets: usize, part: usize, parts: usize) -> std::ops::Range<usize> {
    let start = buckets * part / parts;
    start..(buckets * (part + 1) / parts).max(start + 1).min(buckets)
}

fn join(levels: &[Level]) -> Level {
    Level {
        min: levels.iter().map(|level| level.min).min().unwrap_or(0),
        max: levels.iter().map(|level| level.max).max().unwrap_or(0),
        last: levels.last().map_or(0, |level| level.last),
    }
}

/// The greatest values over time, from nothing to the highest block for `most`.
#[must_use]
pub fn sparkline(levels: &[Level], most: u64, width: usize) -> String {
    const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let width = width.min(levels.len());
    let block = |part| {
        let within = levels.get(span(levels.len(), part, width)).unwrap_or_default();
        let value = join(within).max;
        if value == 0 {
            return ' ';
        }
        let step = u128::from(value) * BLOCKS.len() as u128 / u128::from(most.max(1));
        let step = usize::try_from(step).unwrap_or(0).min(BLOCKS.len() - 1);
        BLOCKS.get(step).copied().unwrap_or(' ')
    };
    (0..width).map(block).collect()
}

/// The series of a figure in the page's scope. With one device only, its series are those of all.
#[must_use]
pub fn series<'a>(page: &Page<'a>, figure: Figure) -> Option<&'a SeriesReport> {
    let timeline = &page.report.timeline;
    let own = timeline.series(figure, page.scope.scope);
    let alone = page.report.by_gpu.len() == 1;
    own.or_else(|| timeline.series(figure, Scope::All).filter(|_| alone))
}

/// Whether a series is one that the page is about.
fn wanted(page: &Page<'_>, series: &SeriesReport) -> bool {
    let of = match series.figure {
        Figure::Sum(sum) => Of::Sum(sum),
        Figure::Ledger(ledger) => Of::Ledger(ledger),
        Figure::TorchReserved => Of::Ledger(Ledger::Torch),
        _ => return page.only.is_empty() && in_scope(page, series.scope),
    };
    let asked = page.only.is_empty() || page.only.contains(&of);
    let alone = page.report.by_gpu.len() == 1 && series.scope == Scope::All;
    asked && (series.scope == page.scope.scope || alone)
}

fn in_scope(page: &Page<'_>, scope: Scope) -> bool {
    page.scope.scope == Scope::All || page.scope.scope == scope
}

fn name(series: &SeriesReport) -> String {
    match series.scope {
        Scope::All => series.figure.name().to_owned(),
        scope => format!("{} {}", series.figure.name(), scope_name(scope)),
    }
}

/// Every series that is wanted, as a line each, then the sums and ledgers as a table.
pub fn all(page: &Page<'_>, out: &mut impl Write) -> io::Result<()> {
    let timeline = &page.report.timeline;
    let shown: Vec<&SeriesReport> =
        timeline.series.iter().filter(|series| wanted(page, series)).collect();
    let Some((from, to)) = timeline.edges.first().zip(timeline.edges.last()) else {
        return writeln!(out, "\nnothing happened");
    };
    if shown.is_empty() {
        return writeln!(out, "\nnothing was live between {from} and {to}");
    }
    writeln!(out, "\nFrom {from} to {to}, each line to its own peak{}", page.bound())?;
    let mut table =
        Table::new([("", Left), ("", Left), ("least", Right), ("peak", Right), ("last", Right)]);
    for series in &shown {
        let all = join(&series.levels);
        table.row([
            name(series),
            sparkline(&series.levels, all.max, WIDTH),
            page.style.size(Bytes(all.min)),
            page.style.size(Bytes(all.max)),
            page.style.size(Bytes(all.last)),
        ]);
    }
    table.write(out)?;
    moments(page, timeline, &shown, out)
}

/// The greatest values in stretches of time.
fn moments(
    page: &Page<'_>,
    timeline: &TimelineReport,
    shown: &[&SeriesReport],
    out: &mut impl Write,
) -> io::Result<()> {
    const COLUMNS: usize = 5;
    let levels: Vec<&&SeriesReport> = shown
        .iter()
        .filter(|series| matches!(series.figure, Figure::Sum(_) | Figure::Ledger(_)))
        .take(COLUMNS)
        .collect();
    if levels.is_empty() {
        return Ok(());
    }
    let rows = page.style.top.min(timeline.len());
    writeln!(out, "\nAt most, in {rows} stretches of time")?;
    let names = levels.iter().map(|series| name(series));
    let heads: Vec<String> =
        std::iter::once("from".to_owned()).chain(names).chain([String::new()]).collect();
    let mut lines = vec![heads];
    let mut told = vec![false; levels.len()];
    for row in 0..rows {
        let range = span(timeline.len(), row, rows);
        let from = timeline.edges.get(range.start).map(ToString::to_string).unwrap_or_default();
        let mut line = vec![from];
        let mut peaks = Vec::new();
        for (series, told) in levels.iter().zip(&mut told) {
            let within = join(series.levels.get(range.clone()).unwrap_or_default());
            if !*told && within.max == join(&series.levels).max {
                *told = true;
                peaks.push(name(series));
            }
            line.push(page.style.size(Bytes(within.max)));
        }
        line.push(match peaks.is_empty() {
            true => String::new(),
            false => format!("◀ peak of {}", peaks.join(", ")),
        });
        lines.push(line);
    }
    grid(&lines, out)
}

/// Cells in columns, the last one to the left and the others to the right.
fn grid(lines: &[Vec<String>], out: &mut impl Write) -> io::Result<()> {
    let columns = lines.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = lines.iter().filter_map(|line| line.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for line in lines {
        let mut text = String::new();
        for (index, (cell, &width)) in line.iter().zip(&widths).enumerate() {
            match index + 1 == columns {
                true => text.push_str(&format!("  {cell}")),
                false => text.push_str(&format!("  {cell:>width$}")),
            }
        }
        writeln!(out, "{}", text.trim_end())?;
    }
    Ok(())
}

/// The sum `gpu` as one line, when there is one.
#[must_use]
pub fn of_sum(page: &Page<'_>, sum: Sum, width: usize) -> Option<String> {
    let series = series(page, Figure::Sum(sum))?;
    Some(sparkline(&series.levels, join(&series.levels).max, width))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_peak_is_lost_in_a_line() {
        let mut levels = vec![Level { min: 0, max: 1, last: 1 }; 1_000];
        if let Some(level) = levels.get_mut(517) {
            level.max = 100;
        }
        let line = sparkline(&levels, 100, 48);
        assert_eq!(line.chars().count(), 48);
        assert_eq!(line.matches('█').count(), 1);
        assert_eq!(sparkline(&[], 0, 48), "");
        let one = [Level { min: 0, max: u64::MAX, last: 0 }];
        assert_eq!(sparkline(&one, u64::MAX, 48), "█");
    }

    #[test]
    fn every_bucket_is_in_one_stretch() {
        for (buckets, parts) in [(1, 1), (7, 3), (1_000, 48), (48, 48)] {
            let all: Vec<usize> = (0..parts).flat_map(|part| span(buckets, part, parts)).collect();
            assert_eq!(all, (0..buckets).collect::<Vec<_>>());
        }
    }
}
