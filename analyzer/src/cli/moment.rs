//! A moment as a person names it: a time since the log's beginning, a mark, a peak, or the end.

use std::str::FromStr;

use gmmtrace_format::Kind;

use crate::Error;
use crate::input::Log;
use crate::live::{View, Window};
use crate::order::{self, LaneStart, Record, Sink};
use crate::render::text::page::Of;
use crate::report::apply;
use crate::units::{Gpu, Nanos, Ticks};

/// A moment of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Moment {
    /// So long after time zero.
    Time(Nanos),
    /// When the first mark with this text was set; else what the text means: `peak`, `peak.NAME`
    /// of a ledger or sum, or `end`.
    Named(String),
}

/// Which of the events of a moment are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The first: a window begins with it.
    First,
    /// The last: a window ends with it.
    Last,
}

const WRONG: &str =
    "a time like 1.5s, 300ms, 20us, 2m or 1h, @TEXT for a mark, @peak, @peak.LEDGER or @end";

impl FromStr for Moment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(name) = text.strip_prefix('@') {
            return Ok(Self::Named(name.to_owned()));
        }
        // As it is printed, with a space before its unit.
        let digits = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
        let (number, unit) = text.split_at_checked(digits.unwrap_or(text.len())).ok_or(WRONG)?;
        let unit: u64 = match unit.strip_prefix(' ').unwrap_or(unit) {
            "ns" => 1,
            "us" | "µs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "" if unit.is_empty() => 1_000_000_000,
            "m" | "min" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return Err(WRONG.to_owned()),
        };
        let nanos = nanos(number, unit).ok_or(WRONG)?;
        Ok(Self::Time(Nanos(i64::try_from(nanos).unwrap_or(i64::MAX))))
    }
}

/// A decimal number of units, to the nanosecond and rounded to it.
fn nanos(number: &str, unit: u64) -> Option<u128> {
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    if part.contains('.') || (whole.is_empty() && part.is_empty()) {
        return None;
    }
    let digits = |text: &str| match text {
        "" => 0,
        _ => text.parse::<u64>().unwrap_or(u64::MAX),
    };
    // More digits say nothing that a nanosecond could show.
    let part: String = part.chars().chain("0".repeat(18).chars()).take(18).collect();
    let unit = u128::from(unit);
    let below = (u128::from(digits(&part)) * unit + TENTHS / 2) / TENTHS;
    Some(u128::from(digits(whole)).saturating_mul(unit).saturating_add(below))
}

const TENTHS: u128 = 1_000_000_000_000_000_000;

impl Moment {
    /// Its stamp in a log. A peak is that of one device, where one is asked for.
    ///
    /// # Errors
    /// When the log has no such mark and no such peak.
    pub fn stamp(&self, log: &Log, end: End, gpu: Option<Gpu>) -> Result<Ticks, Error> {
        match self {
            Self::Time(time) if end == End::First => Ok(log.timeline.first(*time)),
            Self::Time(time) => Ok(log.timeline.last(*time)),
            Self::Named(text) => {
                let mut search = Search { text: text.as_bytes(), found: None };
                order::run(log, &mut search);
                let meant = || meaning(text).and_then(|meaning| meaning.stamp(log, gpu));
                search.found.or_else(meant).ok_or_else(|| {
                    let path = log.path.display();
                    Error::Said(format!("{path}: {}", nothing(text)))
                })
            }
        }
    }
}

/// What a name means where no mark has it.
enum Meaning {
    Peak(Of),
    End,
}

fn meaning(text: &str) -> Option<Meaning> {
    let of = match text {
        "end" => return Some(Meaning::End),
        "peak" => "gpu",
        _ => text.strip_prefix("peak.")?,
    };
    Of::all().find(|known| known.name() == of).map(Meaning::Peak)
}

fn nothing(text: &str) -> String {
    match meaning(text) {
        Some(Meaning::Peak(of)) => format!("{} has no peak: nothing was ever live", of.name()),
        Some(Meaning::End) => "the log holds no event".to_owned(),
        None => format!("no mark says {text:?}; @peak, @peak.LEDGER and @end are known as well"),
    }
}

impl Meaning {
    fn stamp(&self, log: &Log, gpu: Option<Gpu>) -> Option<Ticks> {
        let (live, outcome) = apply(log, Window::default(), |_, _| ());
        let Self::Peak(of) = *self else { return (live.events > 0).then_some(outcome.last) };
        let Some(gpu) = gpu else { return peak(&live.views.all, of) };
        let views = live.views.by_gpu();
        let (_, view) = views.iter().find(|(slot, _)| slot.ordinal() == Some(gpu.0))?;
        peak(view, of)
    }
}

fn peak(view: &View, of: Of) -> Option<Ticks> {
    let (bytes, at) = match of {
        Of::Sum(sum) => {
            let book = view.books.sum(sum);
            (book.peak_bytes, book.peak_at)
        }
        Of::Ledger(ledger) => {
            let tally = view.books.book(ledger).tally;
            (tally.peak_bytes, tally.peak_at)
        }
    };
    (bytes > 0).then_some(at)
}

struct Search<'a> {
    text: &'a [u8],
    found: Option<Ticks>,
}

impl Sink for Search<'_> {
    fn lane(&mut self, _: u32, _: &LaneStart) {}

    fn records(&mut self, _: u32, records: &[Record], texts: &[u8]) {
        let is_mark =
            |record: &&Record| record.kind == Kind::Mark as u8 && record.text(texts) == self.text;
        if self.found.is_none() {
            self.found = records.iter().find(is_mark).map(Record::stamp);
        }
    }

    fn is_done(&self) -> bool {
        self.found.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units_and_marks_an_at() {
        let time = |text: &str| text.parse::<Moment>();
        assert_eq!(time("1.5s"), Ok(Moment::Time(Nanos(1_500_000_000))));
        assert_eq!(time("2"), Ok(Moment::Time(Nanos(2_000_000_000))));
        assert_eq!(time("300ms"), Ok(Moment::Time(Nanos(300_000_000))));
        assert_eq!(time("20us"), Ok(Moment::Time(Nanos(20_000))));
        assert_eq!(time("12.345678901 s"), Ok(Moment::Time(Nanos(12_345_678_901))));
        assert_eq!(time("9007199.254740993s"), Ok(Moment::Time(Nanos(9_007_199_254_740_993))));
        assert_eq!(time("2m"), Ok(Moment::Time(Nanos(120_000_000_000))));
        assert_eq!(time("@warm up"), Ok(Moment::Named("warm up".to_owned())));
        assert!(time("1e99h").is_err());
        for wrong in ["", "s", "1.2.3s", "-1s", "1 ", "1  s", "1d", "é", "."] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
        assert_eq!(time(&"9".repeat(40)), Ok(Moment::Time(Nanos(i64::MAX))));
    }
}
