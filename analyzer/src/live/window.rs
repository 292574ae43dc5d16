//! The live set within a window of time: what comes before it is applied and not counted, what
//! comes behind it is read, for what is damaged there and how long the process ran, and not
//! applied.

use super::LiveSet;
use crate::order::{LaneStart, Record, Sink};
use crate::units::Ticks;

/// A window, both ends included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// Its first stamp, if it has one.
    pub since: Option<Ticks>,
    /// Its last stamp, if it has one.
    pub until: Option<Ticks>,
}

/// A live set that counts within a window.
#[derive(Debug)]
pub struct Windowed {
    live: LiveSet,
    window: Window,
    begun: bool,
}

impl Windowed {
    /// The window on a live set that nothing was applied to.
    #[must_use]
    pub const fn new(live: LiveSet, window: Window) -> Self {
        let begun = window.since.is_none();
        Self { live, window, begun }
    }

    /// The live set at the end of the window, or of the log, whose last stamp is `last`.
    #[must_use]
    pub fn finish(mut self, last: Ticks) -> LiveSet {
        if let Some(since) = self.window.since.filter(|_| !self.begun) {
            self.live.begin(since);
        }
        let end = self.window.until.map_or(last, |until| until.min(last));
        self.live.end(self.window.since.map_or(end, |since| end.max(since)));
        self.live
    }

    /// Applies what is before the window, begins it, and applies what is within.
    fn begin_by(&mut self, lane: u32, records: &[Record], texts: &[u8], since: Ticks) {
        let before = records.partition_point(|record| record.stamp() < since);
        let (earlier, within) = records.split_at_checked(before).unwrap_or((records, &[]));
        self.live.records(lane, earlier, texts);
        if !within.is_empty() {
            self.begun = true;
            self.live.begin(since);
            self.live.records(lane, within, texts);
        }
    }
}

impl Sink for Windowed {
    fn lane(&mut self, ordinal: u32, start: &LaneStart) {
        self.live.lane(ordinal, start);
    }

    #[inline]
    fn records(&mut self, lane: u32, records: &[Record], texts: &[u8]) {
        let mut records = records;
        if let Some(until) = self.window.until {
            let within = records.partition_point(|record| record.stamp() <= until);
            records = records.get(..within).unwrap_or(records);
        }
        match self.window.since {
            Some(since) if !self.begun => self.begin_by(lane, records, texts, since),
            _ => self.live.records(lane, records, texts),
        }
    }
}
