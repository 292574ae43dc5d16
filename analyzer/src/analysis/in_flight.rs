//! Calls that had begun and not returned when the log ends: what a process hung in, or died in.

use gmmtrace_format::header::InFlight;
use gmmtrace_format::layout::IN_FLIGHT_TICKS;

use crate::input::OpenCalls;
use crate::units::Ticks;

/// A call in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenCall {
    /// The lane of the thread.
    pub lane: u32,
    /// The entry point's id.
    pub api: u32,
    /// When it began.
    pub since: Ticks,
    /// The argument that matters: an address or a size.
    pub argument: u64,
}

/// Every call in flight, the runtime call of a thread before the driver call beneath it. `last`
/// is a stamp of the log's end, from which the high bits of the starts are taken.
#[must_use]
pub fn open_calls(open: &[(u32, OpenCalls)], last: Ticks) -> Vec<OpenCall> {
    let calls = open.iter().flat_map(|&(lane, calls)| {
        let both = [calls.runtime, calls.driver].into_iter().flatten();
        both.map(move |call: InFlight| OpenCall {
            lane,
            api: u32::from(call.api),
            since: near(last, call.ticks_low),
            argument: call.argument,
        })
    });
    calls.collect()
}

/// The stamp with these low bits that is nearest to `last`.
fn near(last: Ticks, low: u64) -> Ticks {
    const SPAN: u64 = IN_FLIGHT_TICKS + 1;
    let same = last.0 & !IN_FLIGHT_TICKS | low;
    let candidates = [Some(same), same.checked_sub(SPAN), same.checked_add(SPAN)];
    let nearest = candidates.into_iter().flatten().min_by_key(|&stamp| stamp.abs_diff(last.0));
    Ticks(nearest.unwrap_or(same))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_is_found_on_either_side_of_a_wrap_of_its_low_bits() {
        let span = IN_FLIGHT_TICKS + 1;
        assert_eq!(near(Ticks(5 * span + 10), 7), Ticks(5 * span + 7));
        assert_eq!(near(Ticks(5 * span + 10), span - 3), Ticks(5 * span - 3));
        assert_eq!(near(Ticks(5 * span - 3), 4), Ticks(5 * span + 4));
        assert_eq!(near(Ticks(10), 7), Ticks(7));
    }
}
