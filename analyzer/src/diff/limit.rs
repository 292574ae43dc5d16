//! The right side of a gate: how much is allowed.
//!
//! ```text
//! LIMIT   = CHANGE | VALUE
//! CHANGE  = SIGN NUMBER ( "%" | UNIT )      above or below the base side
//! VALUE   = NUMBER UNIT                     whatever the base side is
//! ```
//!
//! Limits are decimal fractions and figures are integers up to the largest, so everything is
//! counted in `i128` and nothing is rounded before it is compared. A number has at most 20
//! digits, 6 of them behind the point, and a percentage is at most 10^9, so that no product
//! passes 2^127; should one, it saturates.

use std::cmp::Ordering;
use std::fmt;

use super::figures::Unit;

/// A limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// So many percent above the base.
    Percent(Decimal),
    /// So much above the base.
    Change(Decimal, Option<Unit>),
    /// So much.
    Value(Decimal, Option<Unit>),
}

/// A number with a point: `digits / scale`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal {
    digits: i128,
    scale: i128,
}

/// Units, as they are written, and what they are worth in bytes or nanoseconds.
const UNITS: [(&str, Unit, i128); 27] = [
    ("B", Unit::Bytes, 1),
    ("KiB", Unit::Bytes, 1 << 10),
    ("MiB", Unit::Bytes, 1 << 20),
    ("GiB", Unit::Bytes, 1 << 30),
    ("TiB", Unit::Bytes, 1 << 40),
    ("PiB", Unit::Bytes, 1 << 50),
    ("EiB", Unit::Bytes, 1 << 60),
    ("K", Unit::Bytes, 1 << 10),
    ("M", Unit::Bytes, 1 << 20),
    ("G", Unit::Bytes, 1 << 30),
    ("T", Unit::Bytes, 1 << 40),
    ("kB", Unit::Bytes, 1_000),
    ("KB", Unit::Bytes, 1_000),
    ("MB", Unit::Bytes, 1_000_000),
    ("GB", Unit::Bytes, 1_000_000_000),
    ("TB", Unit::Bytes, 1_000_000_000_000),
    ("PB", Unit::Bytes, 1_000_000_000_000_000),
    ("EB", Unit::Bytes, 1_000_000_000_000_000_000),
    ("ns", Unit::Nanos, 1),
    ("us", Unit::Nanos, 1_000),
    ("µs", Unit::Nanos, 1_000),
    ("μs", Unit::Nanos, 1_000),
    ("ms", Unit::Nanos, 1_000_000),
    ("s", Unit::Nanos, 1_000_000_000),
    ("min", Unit::Nanos, 60_000_000_000),
    ("h", Unit::Nanos, 3_600_000_000_000),
    ("d", Unit::Nanos, 86_400_000_000_000),
];

const DIGITS: usize = 20;
const FRACTION: usize = 6;
const MOST_PERCENT: i128 = 1_000_000_000;

impl Limit {
    /// Reads a limit.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let (sign, rest) = match text.strip_prefix(['+', '-']) {
            Some(rest) => (Some(if text.starts_with('-') { -1 } else { 1 }), rest),
            None => (None, text),
        };
        let end = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
        let (number, unit) = rest.split_at(end.unwrap_or(rest.len()));
        let decimal = Decimal::parse(number)?;
        let signed = decimal.times(sign.unwrap_or(1));
        match (unit.trim(), sign) {
            ("%", None) => Err(format!(
                "`{text}` is a percentage of the base side, so it needs a sign: `+{text}`"
            )),
            ("%", Some(_)) if decimal.digits > MOST_PERCENT.saturating_mul(decimal.scale) => {
                Err(format!("`{text}` is more than {MOST_PERCENT} %"))
            }
            ("%", Some(_)) => Ok(Self::Percent(signed)),
            (unit, sign) => {
                let (unit, worth) = unit_of(unit)?;
                let amount = signed.times(worth);
                Ok(if sign.is_some() {
                    Self::Change(amount, unit)
                } else {
                    Self::Value(amount, unit)
                })
            }
        }
    }

    /// The unit that it asks of the figure, if it names one.
    #[must_use]
    pub const fn unit(self) -> Option<Unit> {
        match self {
            Self::Percent(_) => None,
            Self::Change(_, unit) | Self::Value(_, unit) => unit,
        }
    }

    /// Whether it is one of the base side.
    #[must_use]
    pub const fn is_relative(self) -> bool {
        !matches!(self, Self::Value(..))
    }

    /// How `new` stands to the limit over `base`.
    #[must_use]
    pub fn compare(self, base: i128, new: i128) -> Ordering {
        match self {
            // Of a base of 0 every percentage is 0, but staying there is no growth.
            Self::Percent(percent) if base == new => 0.cmp(&percent.digits),
            Self::Percent(percent) => {
                let scale = percent.scale.saturating_mul(100);
                new.saturating_mul(scale).cmp(&percent_over(base, percent))
            }
            Self::Change(amount, _) => {
                let over = base.saturating_mul(amount.scale).saturating_add(amount.digits);
                new.saturating_mul(amount.scale).cmp(&over)
            }
            Self::Value(amount, _) => new.saturating_mul(amount.scale).cmp(&amount.digits),
        }
    }

    /// The limit over `base` as a number, rounded down.
    #[must_use]
    pub fn over(self, base: i128) -> i128 {
        match self {
            Self::Percent(percent) => {
                percent_over(base, percent).div_euclid(percent.scale.saturating_mul(100))
            }
            Self::Change(amount, _) => base.saturating_add(amount.digits.div_euclid(amount.scale)),
            Self::Value(amount, _) => amount.digits.div_euclid(amount.scale),
        }
    }
}

/// `base` and so many percent of it, in hundredths of the percentage's scale.
fn percent_over(base: i128, percent: Decimal) -> i128 {
    let whole = base.saturating_mul(percent.scale.saturating_mul(100));
    whole.saturating_add(base.saturating_abs().saturating_mul(percent.digits))
}

impl Decimal {
    fn parse(text: &str) -> Result<Self, String> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let digits = format!("{whole}{fraction}");
        if whole.is_empty() || fraction.contains('.') || text.ends_with('.') {
            return Err(format!("`{text}` is not a number"));
        }
        if digits.len() > DIGITS || fraction.len() > FRACTION {
            return Err(format!(
                "`{text}` has more than {DIGITS} digits, or more than {FRACTION} behind the point"
            ));
        }
        let power = u32::try_from(fraction.len()).unwrap_or_default();
        let digits = digits.parse().map_err(|_| format!("`{text}` is not a number"))?;
        Ok(Self { digits, scale: 10_i128.pow(power) })
    }

    const fn times(self, factor: i128) -> Self {
        Self { digits: self.digits.saturating_mul(factor), scale: self.scale }
    }
}

fn unit_of(text: &str) -> Result<(Option<Unit>, i128), String> {
    if text.is_empty() {
        return Ok((None, 1));
    }
    let found = UNITS.iter().find(|(name, ..)| *name == text);
    found.map(|&(_, unit, worth)| (Some(unit), worth)).ok_or_else(|| {
        format!("`{text}` is no unit; use %, B, KiB, MiB, GiB, kB, MB, GB, ns, us, ms or s")
    })
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.digits / self.scale, self.digits % self.scale);
        if rest == 0 {
            return write!(f, "{}", whole.unsigned_abs());
        }
        let width = self.scale.ilog10() as usize;
        write!(f, "{}.{:0>width$}", whole.unsigned_abs(), rest.unsigned_abs())
    }
}

impl Decimal {
    /// Whether it is below zero.
    #[must_use]
    pub const fn is_negative(self) -> bool {
        self.digits < 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: i128 = u64::MAX as i128;

    fn compare(limit: &str, base: i128, new: i128) -> Ordering {
        Limit::parse(limit).unwrap().compare(base, new)
    }

    #[test]
    fn percentages_are_exact_at_the_border() {
        assert_eq!(compare("+5%", 100, 105), Ordering::Equal);
        assert_eq!(compare("+5%", 101, 106), Ordering::Less);
        assert_eq!(compare("-2.5%", 1_000, 975), Ordering::Equal);
        assert_eq!(compare("+0.000001%", MOST, MOST), Ordering::Less);
    }

    #[test]
    fn the_largest_figures_and_limits_do_not_overflow() {
        assert_eq!(compare("+1000000000%", MOST, MOST), Ordering::Less);
        assert_eq!(compare("+1000000000.0%", 1, MOST), Ordering::Greater);
        assert_eq!(compare("+100%", MOST, 2 * MOST), Ordering::Equal);
        assert_eq!(compare("18446744073709551615", 0, MOST), Ordering::Equal);
        assert_eq!(compare("+18446744073709551615", MOST, 2 * MOST), Ordering::Equal);
        assert_eq!(compare("99999999999999.999999EiB", 0, MOST), Ordering::Less);
        assert_eq!(compare("-100%", MOST, 0), Ordering::Equal);
        assert_eq!(compare("+5%", i128::MAX, i128::MAX - 1), Ordering::Equal, "saturated");
    }

    #[test]
    fn any_growth_from_nothing_is_more_than_a_percentage_and_staying_there_is_not() {
        assert_eq!(compare("+5%", 0, 1), Ordering::Greater);
        assert_eq!(compare("+5%", 0, 0), Ordering::Less);
        assert_eq!(compare("-5%", 0, 0), Ordering::Greater);
        assert_eq!(compare("+0%", 0, 0), Ordering::Equal);
    }

    #[test]
    fn units_are_worth_what_they_say() {
        assert_eq!(compare("1.5KiB", 0, 1_536), Ordering::Equal);
        assert_eq!(compare("+200MiB", 1 << 20, 201 << 20), Ordering::Equal);
        assert_eq!(compare("-5ms", 5_000_000, 0), Ordering::Equal);
        assert_eq!(Limit::parse("2GB").unwrap().over(0), 2_000_000_000);
        assert_eq!(Limit::parse("+5%").unwrap().over(99), 103);
        assert_eq!(Limit::parse("-5%").unwrap().over(99), 94);
    }

    #[test]
    fn what_is_no_limit_is_said() {
        for (text, said) in [
            ("5%", "needs a sign"),
            ("", "is not a number"),
            ("+", "is not a number"),
            ("1.2.3", "is not a number"),
            ("1.", "is not a number"),
            (".5", "is not a number"),
            ("5 parsecs", "`parsecs` is no unit"),
            ("0.1234567", "behind the point"),
            ("184467440737095516150", "more than 20 digits"),
            ("+9999999999%", "is more than"),
        ] {
            let error = Limit::parse(text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
