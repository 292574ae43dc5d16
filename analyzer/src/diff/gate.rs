//! Gates: what `--fail-on` asks, and what comes of it.
//!
//! ```text
//! GATE   = FIGURE OP LIMIT          peak.device>+5%
//! FIGURE = PART ( "." PART )*       a part is bare, "quoted", or * for any one part
//! OP     = ">" | ">=" | "<" | "<=" | "!="
//! ```
//!
//! A gate fails when what it says is so. With several runs it asks the medians; that the ranges
//! overlap is said, and changes nothing. What cannot be decided is an error and never a pass.

use std::cmp::Ordering;

use super::compare::{Comparison, Found, Pair, Spread};
use super::limit::Limit;
use super::name::{Name, Pattern};
use super::near::unknown;
use crate::render::clean;

/// How a figure is held against a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// `>`
    Above,
    /// `>=`
    AtOrAbove,
    /// `<`
    Below,
    /// `<=`
    AtOrBelow,
    /// `!=`
    Other,
}

/// Operators as they are written, the longer first.
const OPERATORS: [(&str, Op); 5] = [
    (">=", Op::AtOrAbove),
    ("<=", Op::AtOrBelow),
    ("!=", Op::Other),
    (">", Op::Above),
    ("<", Op::Below),
];

impl Op {
    /// Whether `order`, that of the figure to its limit, is what the operator says.
    #[must_use]
    pub const fn holds(self, order: Ordering) -> bool {
        match self {
            Self::Above => order.is_gt(),
            Self::AtOrAbove => order.is_ge(),
            Self::Below => order.is_lt(),
            Self::AtOrBelow => order.is_le(),
            Self::Other => order.is_ne(),
        }
    }

    /// It as it is written.
    #[must_use]
    pub fn sign(self) -> &'static str {
        OPERATORS.iter().find(|(_, op)| *op == self).map_or("", |(sign, _)| sign)
    }
}

/// A gate.
#[derive(Clone, Debug)]
pub struct Gate {
    /// As it was written.
    pub text: String,
    /// The figures.
    pub pattern: Pattern,
    /// The operator.
    pub op: Op,
    /// The limit.
    pub limit: Limit,
}

/// What came of a gate for one figure.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// The gate as it was written.
    pub gate: String,
    /// The figure on both sides.
    pub pair: Pair,
    /// The new side, which is known.
    pub new: Spread,
    /// The operator.
    pub op: Op,
    /// The limit.
    pub limit: Limit,
    /// The limit as a number, rounded down.
    pub limit_value: i128,
    /// Whether the gate fails.
    pub failed: bool,
    /// By what a gate failed, the largest change first.
    pub by: Vec<Pair>,
}

impl Gate {
    /// Reads a gate.
    ///
    /// # Errors
    /// What is wrong, and an example.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = |problem: String| {
            let text = format!("--fail-on '{text}': {problem}; an example is 'peak.device>+5%'");
            clean(&text)
        };
        let (pattern, rest) = Pattern::parse(text).map_err(wrong)?;
        let rest = rest.trim_start();
        let found = OPERATORS.iter().find_map(|&(sign, op)| Some((op, rest.strip_prefix(sign)?)));
        let (op, limit) = found.ok_or_else(|| wrong(no_operator(rest)))?;
        let limit = Limit::parse(limit).map_err(wrong)?;
        Ok(Self { text: text.trim().to_owned(), pattern, op, limit })
    }

    /// Asks the gate of every figure that it names.
    ///
    /// # Errors
    /// When there is no such figure, or it cannot be held against the limit.
    pub fn judge(&self, comparison: &Comparison) -> Result<Vec<Verdict>, String> {
        let text = clean(&self.text);
        let wrong = |problem: String| format!("--fail-on '{text}': {problem}");
        let mut pairs = comparison.find(&self.pattern);
        if pairs.is_empty() {
            return Err(wrong(unknown(&self.pattern, comparison)));
        }
        if self.pattern.is_family() {
            // A member that went away is no growth; what is not known still is an error.
            pairs.retain(|pair| pair.new != Found::Absent);
            if pairs.is_empty() {
                return Err(wrong("none of these figures is on the new side".to_owned()));
            }
        }
        let judged = pairs.into_iter().map(|pair| self.hold(pair, comparison).map_err(wrong));
        judged.collect()
    }

    fn hold(&self, pair: &Pair, comparison: &Comparison) -> Result<Verdict, String> {
        let name = &pair.name;
        if let Some(unit) = self.limit.unit().filter(|&unit| unit != pair.unit) {
            let (figure, limit) = (pair.unit.words(), unit.words());
            return Err(format!("{name} is {figure}, and the limit is {limit}"));
        }
        let new = match pair.new {
            Found::Known(new) => new,
            Found::Unknown => return Err(undecided(name, "the new side does not know it")),
            Found::Absent => return Err(undecided(name, "the new side does not have it")),
        };
        let base = match pair.base {
            Found::Known(base) => Some(base),
            // A member that came up is growth from nothing.
            Found::Absent if self.pattern.is_family() => None,
            Found::Absent | Found::Unknown if !self.limit.is_relative() => None,
            Found::Unknown => return Err(undecided(name, "the base side does not know it")),
            Found::Absent => return Err(undecided(name, "the base side does not have it")),
        };
        let from = base.map_or(0, |base| base.median);
        let order = self.limit.compare(from, new.median);
        let failed = self.op.holds(order);
        let by =
            if failed { comparison.contributors(pair, new.median >= from) } else { Vec::new() };
        Ok(Verdict {
            gate: self.text.clone(),
            pair: pair.clone(),
            new,
            op: self.op,
            limit: self.limit,
            limit_value: self.limit.over(from),
            failed,
            by: by.into_iter().cloned().collect(),
        })
    }
}

fn no_operator(rest: &str) -> String {
    let shown: String = rest.chars().take(20).collect();
    let stands =
        if rest.is_empty() { "nothing stands".to_owned() } else { format!("`{shown}` stands") };
    format!("{stands} behind the figure's name, where >, >=, <, <= or != is expected")
}

fn undecided(name: &Name, why: &str) -> String {
    format!("{name} cannot be decided: {why}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::figures::Unit;
    use proptest::prelude::*;

    #[test]
    fn a_gate_is_a_figure_an_operator_and_a_limit() {
        let gate = Gate::parse(" live.gpu.library.\"a b.so\" >= +1.5MiB ").unwrap();
        assert_eq!(gate.op, Op::AtOrAbove);
        assert_eq!(gate.limit.unit(), Some(Unit::Bytes));
        assert!(gate.pattern.matches(&Name::of(&["live", "gpu", "library", "a b.so"])));
    }

    #[test]
    fn what_is_wrong_is_said_with_the_part_and_an_example() {
        for (text, said) in [
            ("", "a part of the figure's name is missing"),
            ("peak.>1", "a part of the figure's name is missing"),
            ("peak.device", "nothing stands behind the figure's name"),
            ("peak.device=5", "`=5` stands behind"),
            ("peak.device is 5", "`is 5` stands behind"),
            ("peak.device>5%", "needs a sign: `+5%`"),
            ("peak.device>+5 apples", "`apples` is no unit"),
            ("peak.device>", "`` is not a number"),
            ("peak.\"device>5", "no closing quote"),
            ("peak.\"\\q\">5", "an escape that does not exist"),
            ("pe*>5", "`*` stands for a whole part"),
            ("\u{1b}*>5", "not for a piece of `\\u{1b}*`"),
        ] {
            let error = Gate::parse(text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
            assert!(error.ends_with("an example is 'peak.device>+5%'"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in any::<String>()) {
            if let Err(error) = Gate::parse(&text) {
                prop_assert!(!error.chars().any(char::is_control));
            }
        }

        #[test]
        fn nor_does_one_that_is_nearly_a_gate(text in "[a-z.*\"\\\\u{}0]{0,12}[<>=!]{0,2}[+-]?[0-9.]{0,24}[A-Za-z%µ]{0,4}",
                base: u64, new: u64) {
            if let Ok(gate) = Gate::parse(&text) {
                let order = gate.limit.compare(base.into(), new.into());
                prop_assert!(!Op::Above.holds(order) || !Op::AtOrBelow.holds(order));
                let _ = gate.limit.over(base.into());
            }
        }

        #[test]
        fn limits_are_what_exact_fractions_say(base: u64, new: u64, percent in -100_i32..1_000) {
            let gate = Gate::parse(&format!("x>{percent:+}%")).unwrap();
            let (base, new) = (i128::from(base), i128::from(new));
            if base > 0 {
                let above = new * 100 > base * (100 + i128::from(percent));
                prop_assert_eq!(gate.limit.compare(base, new).is_gt(), above);
            }
        }
    }
}
