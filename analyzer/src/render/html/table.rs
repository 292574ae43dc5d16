//! Tables that sort by a click: each number stands beside the words that show it.

use std::fmt::{Display, Write as _};

use super::escape::text;
use crate::render::grouped;
use crate::render::picture::font::label;
use crate::units::{Bytes, Nanos};

/// Rows of a table at most; `--format json` has them all.
const ROWS: usize = 200;

/// A cell.
pub struct Cell {
    words: String,
    /// What it is sorted by, when it is a number.
    number: Option<i128>,
}

impl Cell {
    /// Words, as a log may say them.
    pub fn words(words: &str) -> Self {
        Self { words: label(words), number: None }
    }

    /// A count.
    pub fn count(count: u64) -> Self {
        Self { words: grouped(count), number: Some(count.into()) }
    }

    /// Bytes in a unit.
    pub fn bytes(bytes: Bytes) -> Self {
        Self { words: bytes.to_string(), number: Some(bytes.0.into()) }
    }

    /// Bytes one by one.
    pub fn exact(bytes: Bytes) -> Self {
        Self::count(bytes.0)
    }

    /// A moment, or a length of time.
    pub fn time(time: Nanos) -> Self {
        Self { words: time.to_string(), number: Some(time.0.into()) }
    }

    /// A number, or that it is not known.
    pub fn known<T>(value: Option<T>, cell: impl FnOnce(T) -> Self) -> Self {
        value.map_or_else(|| Self { words: "–".to_owned(), number: Some(-1) }, cell)
    }

    /// An address.
    pub fn address(address: u64) -> Self {
        Self { words: format!("{address:#x}"), number: Some(address.into()) }
    }
}

/// A table with its heading.
pub struct Table {
    head: Vec<(&'static str, bool)>,
    rows: Vec<Vec<Cell>>,
    all: usize,
}

impl Table {
    /// A table without rows. Headings of numbers begin with `#`.
    pub fn new(head: &[&'static str]) -> Self {
        let side = |name: &&'static str| match name.strip_prefix('#') {
            Some(name) => (name, true),
            None => (*name, false),
        };
        Self { head: head.iter().map(side).collect(), rows: Vec::new(), all: 0 }
    }

    /// A table of rows made of entries.
    pub fn of<T>(
        head: &[&'static str],
        entries: impl IntoIterator<Item = T>,
        row: impl Fn(T) -> Vec<Cell>,
    ) -> Self {
        let mut table = Self::new(head);
        for entry in entries {
            table.all += 1;
            if table.rows.len() < ROWS {
                table.rows.push(row(entry));
            }
        }
        table
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Writes it.
    pub fn write(&self, out: &mut String) {
        out.push_str("<div class=\"scroll\"><table>\n<thead><tr>");
        for (name, number) in &self.head {
            let class = if *number { " class=\"number\"" } else { "" };
            let name = text(name);
            let _ = write!(
                out,
                "<th{class} aria-sort=\"none\"><button type=\"button\">{name}</button></th>"
            );
        }
        out.push_str("</tr></thead>\n<tbody>\n");
        for row in &self.rows {
            out.push_str("<tr>");
            for cell in row {
                let words = text(&cell.words);
                let _ = match cell.number {
                    Some(number) => {
                        write!(out, "<td class=\"number\" data-v=\"{number}\">{words}</td>")
                    }
                    None => write!(out, "<td>{words}</td>"),
                };
            }
            out.push_str("</tr>\n");
        }
        out.push_str("</tbody>\n</table></div>\n");
        let more = self.all.saturating_sub(self.rows.len());
        if more > 0 {
            note(out, format!("and {} more in --format json", grouped(more as u64)));
        }
    }
}

/// A section with its heading; what it is about is said beneath.
pub fn section(out: &mut String, id: &str, heading: &str, about: &str) {
    let _ = writeln!(out, "<h2 id=\"{id}\">{}</h2>", text(heading));
    if !about.is_empty() {
        note(out, about);
    }
}

/// A quiet sentence.
pub fn note(out: &mut String, words: impl Display) {
    let _ = writeln!(out, "<p class=\"note\">{}</p>", text(&words.to_string()));
}

/// A heading within a section.
pub fn sub(out: &mut String, heading: &str) {
    let _ = writeln!(out, "<h3>{}</h3>", text(heading));
}
