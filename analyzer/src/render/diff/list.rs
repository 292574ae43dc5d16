//! The figures of a run, for who writes a gate.

use std::io::{self, Write};

use super::words::{self, Manner};
use crate::diff::Run;
use crate::render::table::Align::{Left, Right};
use crate::render::{Table, clean};

/// Writes every figure with its value.
///
/// # Errors
/// As `out` says.
pub fn write(run: &Run, manner: Manner, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "Figures of {}", clean(&run.name))?;
    let mut table = Table::new([("", Right), ("unit", Left), ("figure", Left)]);
    for (name, figure) in run.figures.iter() {
        let value = figure.value.map(|number| words::value(figure.unit, number, manner));
        let mut value = value.unwrap_or_else(|| "-".to_owned());
        if figure.bound {
            value.push_str(" (bound)");
        }
        table.row([value, figure.unit.name().to_owned(), name.to_string()]);
    }
    table.write(out)
}
