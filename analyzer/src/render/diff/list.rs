//! The figures of a run, for who writes a gate.

use std::io::{self, Write};

use super::title;
use super::words::{self, Manner};
use crate::diff::figures::{Figure, Group};
use crate::diff::limit::Limit;
use crate::diff::{Name, Run};
use crate::render::table::Align::{Left, Right};
use crate::render::{Table, clean, grouped};

/// Writes the figures with their values, by group: without those of what was not used, and
/// without those that say again what another one says.
///
/// # Errors
/// As `out` says.
pub fn write(run: &Run, manner: Manner, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "Figures of {}", clean(&run.name))?;
    let of = |group: Group| {
        let all = run.figures.iter();
        all.filter(move |(name, figure)| Group::of(figure.whole(name), figure.unit) == group)
    };
    for group in Group::ALL {
        let mut listed: Vec<(&Name, &Figure)> = of(group)
            .filter(|(_, figure)| !figure.idle && !run.figures.says_again(figure))
            .collect();
        if group == Group::Sizes {
            listed.sort_by_cached_key(|(name, figure)| by_size(figure.whole(name)));
        }
        if listed.is_empty() {
            continue;
        }
        writeln!(out, "\n{}", title(group))?;
        let mut table = Table::new([("", Right), ("unit", Left), ("figure", Left)]);
        for (name, figure) in listed {
            let value = figure.value.map(|number| words::value(figure.unit, number, manner));
            let mut value = value.unwrap_or_else(|| "-".to_owned());
            if figure.bound {
                value.push_str(" (bound)");
            }
            table.row([value, figure.unit.name().to_owned(), name.to_string()]);
        }
        table.write(out)?;
    }
    not_listed(run, out)
}

/// Orders classes of sizes as sizes, not as texts.
fn by_size(parts: &[String]) -> (&[String], i128) {
    let Some((class, whole)) = parts.split_last() else { return (parts, 0) };
    let least = Limit::parse(class).map_or(0, |limit| limit.over(0));
    (whole, least)
}

fn not_listed(run: &Run, out: &mut impl Write) -> io::Result<()> {
    let figures = || run.figures.iter().map(|(_, figure)| figure);
    let idle = figures().filter(|figure| figure.idle).count();
    let again = figures().filter(|figure| !figure.idle && run.figures.says_again(figure)).count();
    if idle + again > 0 {
        let [idle, again] = [idle, again].map(|count| grouped(count as u64));
        writeln!(
            out,
            "\nNot listed, though gates can name them: {idle} figures of what was not used, all \
             0, and {again} that\nsay what one in the list says (of the only GPU, the only ledger \
             in a sum, a library's only site)."
        )?;
    }
    Ok(())
}
