//! Tables of text, and text made safe for a terminal.

use std::io::{self, Write};

/// A column's side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// A table: headings with their sides, and rows of as many cells.
pub struct Table<const N: usize> {
    head: [(&'static str, Align); N],
    rows: Vec<[String; N]>,
}

impl<const N: usize> Table<N> {
    /// A table without rows.
    #[must_use]
    pub const fn new(head: [(&'static str, Align); N]) -> Self {
        Self { head, rows: Vec::new() }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: [String; N]) {
        self.rows.push(cells.map(|cell| clean(&cell)));
    }

    /// Writes it, indented by two.
    ///
    /// # Errors
    /// As `out` says.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let mut widths = self.head.map(|(name, _)| name.chars().count());
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let names = self.head.map(|(name, _)| name.to_owned());
        for row in std::iter::once(&names).chain(&self.rows) {
            let cells = row.iter().zip(&widths).zip(&self.head);
            let mut line = String::new();
            for ((cell, &width), &(_, align)) in cells {
                line.push_str("  ");
                // A width in a format may not be above 65,535, and a name in a log may be longer.
                let gap = " ".repeat(width.saturating_sub(cell.chars().count()));
                match align {
                    Align::Left => line.extend([cell.as_str(), &gap]),
                    Align::Right => line.extend([&gap, cell.as_str()]),
                }
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// The text with everything escaped that cannot be seen: control characters, and marks that
/// turn the direction of text or have no width. A log may say anything, also to a terminal.
#[must_use]
pub fn clean(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            ' '..='~' => shown.push(letter),
            // Behind a letter, an accent that stands alone is a part of that letter.
            _ => shown.extend(format!("a{letter}").escape_debug().skip(1)),
        }
    }
    shown
}

/// A number with its thousands apart.
#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// So many of something: `1 call`, `2,000 calls`.
#[must_use]
pub fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(count), if count == 1 { one } else { many })
}

/// A part of a whole in per cent, rounded to a tenth; a dash where there is no whole. Only all of
/// it is 100.0 %, and only nothing is 0.0 %.
#[must_use]
pub fn share(part: u64, whole: u64) -> String {
    let (part, whole) = (u128::from(part), u128::from(whole));
    if whole == 0 {
        return "-".to_owned();
    }
    match (part * 1_000 + whole / 2) / whole {
        0 if part > 0 => "<0.1 %".to_owned(),
        1_000 if part < whole => ">99.9 %".to_owned(),
        tenths => format!("{}.{} %", tenths / 10, tenths % 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_stand_apart() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_000), "1,000");
        assert_eq!(grouped(u64::MAX), "18,446,744,073,709,551,615");
    }

    #[test]
    fn only_all_is_a_hundred_per_cent_and_only_nothing_is_none() {
        let shown = |part| share(part, 1 << 40);
        assert_eq!([0, 1, 1 << 31].map(shown), ["0.0 %", "<0.1 %", "0.2 %"]);
        assert_eq!([1 << 39, (1 << 40) - 1, 1 << 40].map(shown), ["50.0 %", ">99.9 %", "100.0 %"]);
        assert_eq!(share(2, 3), "66.7 %");
        assert_eq!(share(u64::MAX - 1, u64::MAX), ">99.9 %");
        assert_eq!(share(0, 0), "-");
    }

    #[test]
    fn a_log_cannot_speak_to_the_terminal() {
        assert_eq!(clean("a\x1b[2Jb\n"), "a\\u{1b}[2Jb\\n");
        assert_eq!(clean("a\u{202e}b\u{200b}\u{9b}"), "a\\u{202e}b\\u{200b}\\u{9b}");
    }

    #[test]
    fn letters_of_every_script_quotes_and_backslashes_stay_as_they_are() {
        for text in ["cudnn \"8\" 'x' C:\\a", "\u{7d2b}.so", "e\u{301}t\u{e9}", "हिन्दी"]
        {
            assert_eq!(clean(text), text);
        }
    }
}
