//! Scales and their round ticks: bytes at powers of two, times at what people count in.

use super::scene::Area;
use crate::units::Nanos;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Nanoseconds.
    Time,
}

/// Amounts from zero up, over the height of an area.
#[derive(Clone, Copy, Debug)]
pub struct AmountScale {
    area: Area,
    top: u64,
}

impl AmountScale {
    /// Up to a little more than `most`: a line of words fits above it.
    #[must_use]
    pub fn new(area: Area, most: u64) -> Self {
        let height = u128::from(area.height.max(4).unsigned_abs());
        let above = (height / 13).max(24).min(height / 4);
        let more = u128::from(most) * above / (height - above);
        let more = u64::try_from(more).unwrap_or(u64::MAX);
        Self { area, top: most.max(1).saturating_add(more) }
    }

    /// The row of pixels whose upper edge stands for an amount.
    #[must_use]
    pub fn y(&self, amount: u64) -> i32 {
        let height = self.area.height.max(0) as u128;
        let amount = u128::from(amount.min(self.top));
        let above = (amount * height + u128::from(self.top) / 2) / u128::from(self.top);
        self.area.bottom() - above as i32
    }

    /// Round values with their words, from zero up, at most `most` of them above it.
    #[must_use]
    pub fn ticks(&self, unit: Unit, most: u64) -> Vec<(u64, String)> {
        match unit {
            Unit::Bytes => byte_ticks(self.top, most),
            Unit::Time => {
                let top = i64::try_from(self.top).unwrap_or(i64::MAX);
                let ticks = time_ticks(0, top, i64::try_from(most).unwrap_or(1)).into_iter();
                ticks.map(|(at, words)| (u64::try_from(at.0).unwrap_or(0), words)).collect()
            }
        }
    }
}

const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

/// Multiples of a power of two up to `top`, at most `most` of them above zero.
fn byte_ticks(top: u64, most: u64) -> Vec<(u64, String)> {
    let most = most.max(1);
    let step = (0..64).map(|power| 1u64 << power).find(|step| top / step <= most);
    let step = step.unwrap_or(1 << 63);
    // The unit of which a step is at least a half, so that no tick has many decimals.
    let exponent = step.saturating_mul(2).ilog2() / 10;
    let unit = 1u64 << (10 * exponent);
    let name = UNITS.get(exponent as usize).copied().unwrap_or_default();
    let words = |value: u64| match value {
        0 => "0".to_owned(),
        _ if step >= unit => format!("{} {name}", value / unit),
        _ => format!("{:.1} {name}", value as f64 / unit as f64),
    };
    let all = (0..=top / step).map(|index| step.saturating_mul(index));
    all.map(|value| (value, words(value))).collect()
}

/// Time over the width of an area.
#[derive(Clone, Copy, Debug)]
pub struct TimeScale {
    area: Area,
    /// What the left edge is.
    pub from: i64,
    /// What the right edge is; later than `from`.
    pub to: i64,
}

impl TimeScale {
    /// From one moment to another; no time at all is taken for a nanosecond.
    #[must_use]
    pub fn new(area: Area, from: Nanos, to: Nanos) -> Self {
        let from = from.0.min(i64::MAX - 1);
        Self { area, from, to: to.0.max(from + 1) }
    }

    fn span(&self) -> i128 {
        i128::from(self.to) - i128::from(self.from)
    }

    /// The column of a moment, counted from the area's left edge, within it.
    #[must_use]
    pub fn column(&self, at: Nanos) -> i32 {
        let width = i128::from(self.area.width.max(1));
        let passed = (i128::from(at.0) - i128::from(self.from)).clamp(0, self.span());
        (passed * width / self.span()).min(width - 1) as i32
    }

    /// The first column that is wholly after a moment, counted likewise.
    #[must_use]
    pub fn after(&self, at: Nanos) -> i32 {
        let width = i128::from(self.area.width.max(1));
        let passed = (i128::from(at.0) - i128::from(self.from)).clamp(0, self.span());
        ((passed * width + self.span() - 1) / self.span()).min(width) as i32
    }

    /// The pixel of a moment.
    #[must_use]
    pub fn x(&self, at: Nanos) -> i32 {
        self.area.x + self.column(at)
    }

    /// Round moments with their words, at most `most` of them.
    #[must_use]
    pub fn ticks(&self, most: i64) -> Vec<(Nanos, String)> {
        time_ticks(self.from, self.to, most)
    }
}

const SECOND: i64 = 1_000_000_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// Distances that people count in.
fn time_steps() -> impl Iterator<Item = i64> {
    let decimal = (0..11).flat_map(|power| [1, 2, 5].map(|digit| digit * 10i64.pow(power)));
    let short = decimal.filter(|&step| step <= 20 * SECOND);
    let minutes = [30 * SECOND].into_iter().chain([1, 2, 5, 10, 30].map(|count| count * MINUTE));
    let hours = [1, 2, 6, 12].map(|count| count * HOUR);
    let days = (0..6).flat_map(|power| [1, 2, 5].map(|digit| digit * 10i64.pow(power)));
    short.chain(minutes).chain(hours).chain(days.filter_map(|days: i64| days.checked_mul(DAY)))
}

fn time_ticks(from: i64, to: i64, most: i64) -> Vec<(Nanos, String)> {
    let most = i128::from(most.max(1));
    let span = i128::from(to) - i128::from(from);
    let Some(step) = time_steps().find(|&step| span / i128::from(step) < most) else {
        return vec![(Nanos(from), time_words(from, 1, from))];
    };
    let wide = i128::from(step);
    let first = i128::from(from).div_euclid(wide) + i128::from(i128::from(from) % wide != 0);
    let last = i128::from(to).div_euclid(wide);
    let all = (first..=last).take(most as usize + 1).map(|index| (index * wide) as i64);
    let farthest = if from.unsigned_abs() > to.unsigned_abs() { from } else { to };
    all.map(|at| (Nanos(at), time_words(at, step, farthest))).collect()
}

/// A moment, as exact as its neighbours at a distance of `step` ask for, in a unit that fits the
/// farthest of them.
fn time_words(at: i64, step: i64, farthest: i64) -> String {
    if at == 0 {
        return "0".to_owned();
    }
    if step >= MINUTE / 2 {
        return clock_words(at);
    }
    let size = farthest.unsigned_abs();
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns")];
    let step = step.unsigned_abs().max(1);
    // The largest unit that needs no more than two decimals.
    let fits = |&&(unit, _): &&(u64, &str)| size >= unit && unit / step <= 100;
    let &(unit, name) = units.iter().find(fits).unwrap_or(&(1, "ns"));
    let decimals = match unit / step {
        0 | 1 => 0,
        2..=10 => 1,
        _ => 2,
    };
    format!("{:.decimals$} {name}", at as f64 / unit as f64)
}

fn clock_words(at: i64) -> String {
    let sign = if at < 0 { "-" } else { "" };
    let seconds = at.unsigned_abs() / SECOND.unsigned_abs();
    let (days, hours) = (seconds / 86_400, seconds / 3_600 % 24);
    let (minutes, rest) = (seconds / 60 % 60, seconds % 60);
    let words = match (days, hours) {
        (0, 0) if minutes == 0 => format!("{rest} s"),
        (0, 0) if rest == 0 => format!("{minutes} min"),
        (0, 0) => format!("{minutes}:{rest:02} min"),
        (0, _) => format!("{hours}:{minutes:02} h"),
        _ if hours == 0 => format!("{days} d"),
        _ => format!("{days} d {hours} h"),
    };
    format!("{sign}{words}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(top: u64, most: u64) -> Vec<String> {
        byte_ticks(top, most).into_iter().map(|(_, words)| words).collect()
    }

    fn times(from: i64, to: i64) -> Vec<String> {
        time_ticks(from, to, 6).into_iter().map(|(_, words)| words).collect()
    }

    #[test]
    fn ticks_of_bytes_are_multiples_of_a_power_of_two() {
        assert_eq!(bytes(0, 6), ["0"]);
        assert_eq!(bytes(5, 6), ["0", "1 B", "2 B", "3 B", "4 B", "5 B"]);
        assert_eq!(bytes(500 << 20, 6), ["0", "128 MiB", "256 MiB", "384 MiB"]);
        assert_eq!(
            bytes(3 << 30, 6),
            ["0", "0.5 GiB", "1.0 GiB", "1.5 GiB", "2.0 GiB", "2.5 GiB", "3.0 GiB"]
        );
        assert_eq!(bytes(80 << 30, 6), ["0", "16 GiB", "32 GiB", "48 GiB", "64 GiB", "80 GiB"]);
        assert_eq!(bytes(u64::MAX, 6).len(), 4);
    }

    #[test]
    fn there_are_never_more_ticks_than_asked_for() {
        for power in 0..64 {
            for top in [(1u64 << power) - 1, 1 << power, (1 << power) + 1] {
                assert!(byte_ticks(top, 6).len() <= 7, "{top}");
                let ticks = time_ticks(0, i64::try_from(top).unwrap_or(i64::MAX), 6);
                assert!((1..=7).contains(&ticks.len()), "{top} {ticks:?}");
            }
        }
        assert!(time_ticks(i64::MIN, i64::MAX, 6).len() <= 7);
        assert!(time_ticks(i64::MAX - 1, i64::MAX, 6).len() <= 7);
    }

    #[test]
    fn ticks_of_time_are_what_people_count_in() {
        assert_eq!(times(0, 710_000_000), ["0", "200 ms", "400 ms", "600 ms"]);
        assert_eq!(times(0, 2_400_000_000), ["0", "0.5 s", "1.0 s", "1.5 s", "2.0 s"]);
        assert_eq!(times(0, 300 * SECOND), ["0", "1 min", "2 min", "3 min", "4 min", "5 min"]);
        assert_eq!(times(0, 9 * HOUR), ["0", "2:00 h", "4:00 h", "6:00 h", "8:00 h"]);
        assert_eq!(times(0, 21 * DAY), ["0", "5 d", "10 d", "15 d", "20 d"]);
        assert_eq!(times(-5, 5), ["-4 ns", "-2 ns", "0", "2 ns", "4 ns"]);
    }

    #[test]
    fn a_scale_ends_where_its_area_does() {
        let area = Area { x: 10, y: 20, width: 300, height: 100 };
        for most in [0, 1, 7, 1 << 40, u64::MAX] {
            let scale = AmountScale::new(area, most);
            assert_eq!(scale.y(0), 120);
            assert!((20..=120).contains(&scale.y(most)) && scale.y(u64::MAX) >= 20);
        }
        let scale = TimeScale::new(area, Nanos(i64::MAX), Nanos(i64::MIN));
        assert_eq!(scale.x(Nanos(i64::MIN)), 10);
        assert_eq!(scale.x(Nanos(i64::MAX)), 309);
        let scale = TimeScale::new(area, Nanos(0), Nanos(300));
        assert_eq!((scale.column(Nanos(299)), scale.after(Nanos(299))), (299, 299));
    }
}
