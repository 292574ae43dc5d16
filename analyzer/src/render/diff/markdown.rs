//! A comparison as Markdown, for a comment on a pull request.
//!
//! Every text of the process stands in `<code>` with all that Markdown or HTML could read in it
//! written as character references: it can end no cell, open no tag and mention nobody.

use std::io::{self, Write};

use super::words::{self, Manner};
use crate::diff::{Comparison, Pair, Verdict};
use crate::render::{clean, grouped};

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
    let failed = verdicts.iter().filter(|verdict| verdict.failed).count();
    let outcome = match (verdicts.len(), failed) {
        (0, _) => String::new(),
        (all, 0) => format!(": {}", words::passed(all)),
        (all, _) => format!(": {failed} of {all} checks failed"),
    };
    writeln!(out, "### GPU memory compared{outcome}\n")?;
    let [base, new] = [&comparison.base, &comparison.new].map(|side| code(&words::runs(side)));
    writeln!(out, "Base {base}, new {new}.\n")?;
    for remark in words::remarks(comparison) {
        writeln!(out, "- {}", escaped(&remark))?;
    }
    for unlike in &comparison.unlike {
        let (base, new) = words::unlike(unlike);
        let [what, base, new] = [&unlike.what, &base, &new].map(|text| code(text));
        writeln!(out, "- The runs were not made alike: {what} was {base} and is {new}")?;
    }
    for verdict in verdicts.iter().filter(|verdict| verdict.failed) {
        let sentence = escaped(&words::verdict(verdict, manner));
        writeln!(out, "- **Failed** {}: {sentence}", code(&verdict.gate))?;
        for pair in verdict.by.iter().take(manner.top.min(words::CONTRIBUTORS)) {
            let (name, change) = words::contributor(verdict, pair, manner);
            writeln!(out, "  - {} by {}", escaped(&change), code(&name))?;
        }
    }
    let tables = super::tables(comparison);
    if tables.is_empty() {
        return writeln!(out, "\n{}", super::nothing_differs(comparison));
    }
    for (title, rows) in tables {
        writeln!(out, "\n**{title}**\n\n| figure | base | new | change | |")?;
        writeln!(out, "| --- | ---: | ---: | ---: | ---: |")?;
        for pair in rows.iter().take(manner.top) {
            row(pair, comparison, manner, out)?;
        }
        let more = rows.len().saturating_sub(manner.top);
        if more > 0 {
            writeln!(out, "\nand {} more", grouped(more as u64))?;
        }
    }
    Ok(())
}

fn row(
    pair: &Pair,
    comparison: &Comparison,
    manner: Manner,
    out: &mut impl Write,
) -> io::Result<()> {
    writeln!(
        out,
        "| {} | {} | {} | {} | {} |",
        code(&pair.name.to_string()),
        words::found(pair.base, pair.unit, &comparison.base, manner),
        words::found(pair.new, pair.unit, &comparison.new, manner),
        words::change_of(pair, manner),
        words::relative(pair),
    )
}

/// Letters that mean something to Markdown, to HTML, or to the places that show it.
const MEANING: &str = "&<>\"'|`*[]#~@\\!$:{}_";

fn escaped(text: &str) -> String {
    let text = clean(text);
    let next = text.chars().skip(1).chain([' ']);
    let mut last = ' ';
    let letter = |(letter, next): (char, char)| {
        // Within a word an underscore is only that.
        let within = letter == '_' && last.is_ascii_alphanumeric() && next.is_ascii_alphanumeric();
        last = letter;
        if MEANING.contains(letter) && !within {
            format!("&#{};", u32::from(letter))
        } else {
            letter.to_string()
        }
    };
    text.chars().zip(next).map(letter).collect()
}

fn code(text: &str) -> String {
    format!("<code>{}</code>", escaped(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_the_process_cannot_leave_its_cell() {
        let hostile = "a|b\n`c`<script>@all [x](y) \u{1b}";
        let shown = code(hostile);
        let inside = shown.strip_prefix("<code>").unwrap().strip_suffix("</code>").unwrap();
        assert!(!inside.contains(['|', '\n', '`', '<', '>', '@', '[', '\u{1b}']), "{inside}");
    }
}
