//! A moment as a person names it: a time since the log's beginning, or a mark.

use std::str::FromStr;

use crate::Error;
use crate::input::Log;
use crate::order::{self, LaneStart, Record, Sink};
use crate::units::{Nanos, Ticks};
use gmmtrace_format::Kind;

/// A moment of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Moment {
    /// So long after time zero.
    Time(Nanos),
    /// When the first mark with this text was set.
    Mark(String),
}

impl FromStr for Moment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(mark) = text.strip_prefix('@') {
            return Ok(Self::Mark(mark.to_owned()));
        }
        const WRONG: &str = "a time like 1.5s, 300ms, 20us, 2m or 1h, or @TEXT for a mark";
        let digits = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
        let (number, unit) = text.split_at_checked(digits.unwrap_or(text.len())).ok_or(WRONG)?;
        let unit = match unit {
            "ns" => 1.0,
            "us" | "µs" => 1e3,
            "ms" => 1e6,
            "s" | "" => 1e9,
            "m" | "min" => 60e9,
            "h" => 3600e9,
            _ => return Err(WRONG.to_owned()),
        };
        let number: f64 = number.parse().map_err(|_| WRONG.to_owned())?;
        Ok(Self::Time(Nanos((number * unit).round() as i64)))
    }
}

impl Moment {
    /// Its stamp in a log.
    ///
    /// # Errors
    /// When the log has no such mark.
    pub fn stamp(&self, log: &Log) -> Result<Ticks, Error> {
        match self {
            Self::Time(time) => Ok(log.timeline.stamp(*time)),
            Self::Mark(text) => {
                let mut search = Search { text: text.as_bytes(), found: None };
                order::run(log, &mut search);
                search.found.ok_or_else(|| {
                    let path = log.path.display();
                    Error::Said(format!("{path}: no mark says {text:?}"))
                })
            }
        }
    }
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
        assert_eq!(time("2m"), Ok(Moment::Time(Nanos(120_000_000_000))));
        assert_eq!(time("@warm up"), Ok(Moment::Mark("warm up".to_owned())));
        assert!(time("1e99h").is_err());
        for wrong in ["", "s", "1.2.3s", "-1s", "1 s", "1d", "é"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
        assert_eq!(time(&"9".repeat(40)), Ok(Moment::Time(Nanos(i64::MAX))));
    }
}
