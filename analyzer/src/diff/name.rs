//! Names of figures: parts with points between them, `peak.device`.
//!
//! A part can be a text of the traced process (a library, a range), so it can hold anything. A
//! part of letters, digits, `_` and `-` stands bare; any other is quoted, with Rust's escapes:
//! `live.gpu.library."libc10_cuda.so"`. What is shown is what can be written in a gate.

use std::fmt;

/// The name of a figure.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Vec<String>);

impl Name {
    /// The name of these parts.
    #[must_use]
    pub fn of(parts: &[&str]) -> Self {
        Self(parts.iter().map(|&part| part.to_owned()).collect())
    }

    /// This name with one more part.
    #[must_use]
    pub fn with(&self, part: &str) -> Self {
        let parts = self.0.iter().map(String::as_str).chain([part]);
        Self(parts.map(str::to_owned).collect())
    }

    /// Its parts.
    #[must_use]
    pub fn parts(&self) -> &[String] {
        &self.0
    }

    /// The part at `index`, or nothing.
    #[must_use]
    pub fn part(&self, index: usize) -> &str {
        self.0.get(index).map_or("", String::as_str)
    }

    /// The last part.
    #[must_use]
    pub fn last(&self) -> &str {
        self.0.last().map_or("", String::as_str)
    }

    /// The parts behind those of `whole`, when this name begins with them.
    #[must_use]
    pub fn below(&self, whole: &Name) -> Option<&[String]> {
        self.0.strip_prefix(whole.0.as_slice())
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = self.0.iter().map(|part| quoted(part)).collect();
        f.write_str(&parts.join("."))
    }
}

fn quoted(part: &str) -> String {
    let bare = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    if !part.is_empty() && part.chars().all(bare) {
        return part.to_owned();
    }
    let escaped: String = part.chars().map(escape).collect();
    format!("\"{escaped}\"")
}

/// Escapes what cannot be seen or would end the quotes.
fn escape(letter: char) -> String {
    if letter == '\'' { letter.to_string() } else { letter.escape_debug().to_string() }
}

/// A name as it stands in a gate, in which `*` may stand for any one part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Any,
    Text(String),
}

impl Pattern {
    /// Reads a pattern from the start of `text`, and returns it with what follows.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn parse(text: &str) -> Result<(Self, &str), String> {
        let mut parts = Vec::new();
        let mut rest = text.trim_start();
        loop {
            let (part, after) = part(rest)?;
            parts.push(part);
            match after.strip_prefix('.') {
                Some(after) => rest = after,
                None => return Ok((Self(parts), after)),
            }
        }
    }

    /// Whether it stands for a family of figures.
    #[must_use]
    pub fn is_family(&self) -> bool {
        self.0.contains(&Part::Any)
    }

    /// Whether `name` is meant.
    #[must_use]
    pub fn matches(&self, name: &Name) -> bool {
        let same = |(part, text): (&Part, &String)| match part {
            Part::Any => true,
            Part::Text(wanted) => wanted == text,
        };
        self.0.len() == name.0.len() && self.0.iter().zip(&name.0).all(same)
    }

    /// The pattern without its quotes, to be compared with [`plain`] names: who leaves them out
    /// around `libc10_cuda.so` is understood as well.
    #[must_use]
    pub fn plain(&self) -> String {
        let texts = self.0.iter().map(|part| match part {
            Part::Any => "*",
            Part::Text(text) => text,
        });
        texts.collect::<Vec<_>>().join(".")
    }
}

/// A name without quotes.
#[must_use]
pub fn plain(name: &Name) -> String {
    name.0.join(".")
}

fn part(text: &str) -> Result<(Part, &str), String> {
    if let Some(inside) = text.strip_prefix('"') {
        let (text, rest) = unquoted(inside)?;
        return Ok((Part::Text(text), rest));
    }
    let ends = |letter: char| letter.is_whitespace() || ".\"<>=!".contains(letter);
    let end = text.find(ends).unwrap_or(text.len());
    let (bare, rest) = text.split_at(end);
    match bare {
        "" => Err("a part of the figure's name is missing".to_owned()),
        "*" => Ok((Part::Any, rest)),
        _ if bare.contains('*') => {
            Err(format!("`*` stands for a whole part of a name, not for a piece of `{bare}`"))
        }
        _ => Ok((Part::Text(bare.to_owned()), rest)),
    }
}

/// Undoes [`quoted`], behind the opening quote.
fn unquoted(text: &str) -> Result<(String, &str), String> {
    let mut read = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Ok((read, text.get(at + 1..).unwrap_or_default())),
            '\\' => {
                let letter = escaped(&mut letters);
                read.push(letter.ok_or("a quoted part holds an escape that does not exist")?);
            }
            _ => read.push(letter),
        }
    }
    Err("a quoted part has no closing quote".to_owned())
}

fn escaped(letters: &mut std::str::CharIndices<'_>) -> Option<char> {
    Some(match letters.next()?.1 {
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        '0' => '\0',
        'u' => {
            let hexadecimal = letters.as_str().strip_prefix('{')?;
            let (digits, _) = hexadecimal.split_once('}')?;
            let code = u32::from_str_radix(digits, 16).ok()?;
            // Past the digits and both braces.
            letters.nth(digits.chars().count() + 1)?;
            char::from_u32(code)?
        }
        letter @ ('\\' | '"' | '\'') => letter,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_star_is_one_whole_part() {
        let (pattern, rest) = Pattern::parse("copies.*.bytes>+1%").unwrap();
        assert_eq!(rest, ">+1%");
        assert!(pattern.matches(&Name::of(&["copies", "peer", "bytes"])));
        assert!(!pattern.matches(&Name::of(&["copies", "peer", "async", "bytes"])));
        assert!(Pattern::parse("copies.p*.bytes").is_err());
    }

    proptest! {
        #[test]
        fn a_name_that_is_shown_can_be_written(parts in prop::collection::vec(any::<String>(), 1..4)) {
            let name = Name(parts);
            let shown = format!("{name}>0");
            prop_assert!(!shown.chars().any(char::is_control));
            let (pattern, rest) = Pattern::parse(&shown).unwrap();
            prop_assert!(pattern.matches(&name));
            prop_assert_eq!(rest, ">0");
        }
    }
}
