//! From a log to its report: the whole line of data in one call.

use super::{Report, build};
use crate::input::Log;
use crate::live::{LiveSet, Window, Windowed};
use crate::order::{self, LaneStart, Outcome, Record, Sink};

/// Reads every event of `log` and reports on those within `window`. `progress` is told how many
/// of how many chunks are done.
pub fn read(log: &Log, window: Window, progress: impl FnMut(usize, usize)) -> Report {
    let (live, outcome) = apply(log, window, progress);
    build(log, &live, window, &outcome)
}

/// Reads every event of `log` and applies those within `window`.
pub(crate) fn apply(
    log: &Log,
    window: Window,
    progress: impl FnMut(usize, usize),
) -> (LiveSet, Outcome) {
    let mut reading = Reading { live: Windowed::new(LiveSet::new(log), window), progress };
    let outcome = order::run(log, &mut reading);
    (reading.live.finish(outcome.last), outcome)
}

struct Reading<P> {
    live: Windowed,
    progress: P,
}

impl<P: FnMut(usize, usize)> Sink for Reading<P> {
    fn lane(&mut self, ordinal: u32, start: &LaneStart) {
        self.live.lane(ordinal, start);
    }

    #[inline]
    fn records(&mut self, lane: u32, records: &[Record], texts: &[u8]) {
        self.live.records(lane, records, texts);
    }

    fn progress(&mut self, done: usize, all: usize) {
        (self.progress)(done, all);
    }
}
