//! Numbers with a unit, so that no bare `u64` crosses a module border.

use std::fmt;

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

/// Nanoseconds since the trace's time zero, or a length of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Nanos(pub i64);

/// A stamp, or a length of time, in the log's own clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticks(pub u64);

/// A device's ordinal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gpu(pub u32);

/// An address, in the unified address space of host and devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(pub u64);

/// A context, pool or physical allocation as the driver names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Handle(pub u64);

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// Binary units with three figures: `1.50 GiB`.
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        if self.0 < 1024 {
            return f.pad(&format!("{} B", self.0));
        }
        let mut value = self.0 as f64 / 1024.0;
        let mut units = UNITS.iter();
        let mut unit = units.next().copied().unwrap_or_default();
        while value >= 1023.995 {
            let Some(&next) = units.next() else { break };
            value /= 1024.0;
            unit = next;
        }
        f.pad(&format!("{value:.2} {unit}"))
    }
}

impl Nanos {
    /// A moment to the last nanosecond, as a command line takes it: `1.500000001 s`.
    #[must_use]
    pub fn exact(self) -> String {
        let value = self.0.unsigned_abs();
        let sign = if self.0 < 0 { "-" } else { "" };
        match value {
            0..1_000 => format!("{sign}{value} ns"),
            1_000..1_000_000 => format!("{sign}{}.{:03} us", value / 1_000, value % 1_000),
            1_000_000..1_000_000_000 => {
                format!("{sign}{}.{:06} ms", value / 1_000_000, value % 1_000_000)
            }
            _ => format!("{sign}{}.{:09} s", value / 1_000_000_000, value % 1_000_000_000),
        }
    }
}

/// Seconds with a fitting unit: `1.500 s`.
impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.0 as f64;
        let text = match self.0.unsigned_abs() {
            0..1_000 => format!("{} ns", self.0),
            1_000..1_000_000 => format!("{:.3} us", value / 1e3),
            1_000_000..1_000_000_000 => format!("{:.3} ms", value / 1e6),
            _ => format!("{:.3} s", value / 1e9),
        };
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_shown_in_the_largest_unit_that_leaves_a_figure_before_the_point() {
        let shown = |bytes| Bytes(bytes).to_string();
        assert_eq!(shown(0), "0 B");
        assert_eq!(shown(1023), "1023 B");
        assert_eq!(shown(1024), "1.00 KiB");
        assert_eq!(shown(1 << 30), "1.00 GiB");
        assert_eq!(shown((1 << 30) - 1), "1.00 GiB");
        assert_eq!(shown(u64::MAX), "16.00 EiB");
    }

    #[test]
    fn times_are_shown_with_a_fitting_unit() {
        assert_eq!(Nanos(999).to_string(), "999 ns");
        assert_eq!(Nanos(1_500).to_string(), "1.500 us");
        assert_eq!(Nanos(-2_000_000_000).to_string(), "-2.000 s");
        assert_eq!(Nanos(1_500_000_001).exact(), "1.500000001 s");
        assert_eq!(Nanos(1_000_001).exact(), "1.000001 ms");
        assert_eq!(Nanos(1_005).exact(), "1.005 us");
        assert_eq!(Nanos(i64::MIN).exact(), "-9223372036.854775808 s");
    }
}
