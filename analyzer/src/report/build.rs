//! From a log whose events were applied to the model of its report.

use std::sync::Arc;

use gmmtrace_format::layout::MAJOR;

use super::{
    CallReport, Coverage, Doubt, InFlightReport, LengthClass, LongCallReport, MarkReport,
    OddExample, OddReport, ProcessFacts, RangeReport, Report, SampledReport, StallReport, Trace,
    WindowReport, handles, pools, scopes, timelines, torch,
};
use crate::analysis::names::{Names, SiteName};
use crate::analysis::{calls, in_flight};
use crate::input::{Log, Timeline, WriterState};
use crate::live::{GpuSlot, LiveSet, LongCall, Oddity, Purpose, SiteIndex, Stalls, Window};
use crate::order::Outcome;
use crate::units::{Bytes, Gpu, Nanos, Ticks};

/// The report on `log`, whose events within `window` the live set has counted.
#[must_use]
pub fn build(log: &Log, live: &LiveSet, window: Window, outcome: &Outcome) -> Report {
    let names = Names::of(&live.sites, &log.dictionary);
    let executable = log.process.executable.as_deref().map(Arc::from);
    let builder = Builder { log, live, outcome, window, clock: log.timeline, names, executable };
    builder.report()
}

/// What a report is made from.
pub(super) struct Builder<'a> {
    pub(super) log: &'a Log,
    pub(super) live: &'a LiveSet,
    pub(super) outcome: &'a Outcome,
    pub(super) window: Window,
    pub(super) clock: Timeline,
    pub(super) names: Names,
    executable: Option<Arc<str>>,
}

impl Builder<'_> {
    fn report(&self) -> Report {
        let live = self.live;
        let coverage = Coverage::of(self.log, self.outcome);
        let bound = self.log.counters.lost_live()
            || coverage.salvage_loses_events
            || coverage.unknown_kinds > 0;
        let alone = !coverage.salvage_loses_events && coverage.unknown_kinds == 0;
        let captures = alone && self.log.counters.captures_alone();
        Report {
            trace: self.trace(&coverage),
            process: self.process(),
            window: WindowReport {
                since: self.window.since.map(|since| self.clock.at(since)),
                until: self.window.until.map(|until| self.clock.at(until)),
            },
            bound,
            copies_bound: bound || self.log.counters.lost_copies(),
            doubt: if captures { Doubt::Captures } else { Doubt::Missing },
            coverage,
            total: scopes::total(self),
            by_gpu: scopes::by_gpu(self),
            timeline: timelines::build(self),
            stalls: Purpose::ALL.iter().map(|&purpose| self.stall(purpose)).collect(),
            null_calls: live.odd.null_calls,
            unknown_frees: self.oddities(&live.odd.unknown_frees),
            overlaps: self.oddities(&live.odd.overlaps),
            graphs: handles::graphs(self),
            stale: live.stale(),
            pools: pools::pools(self),
            residency: pools::residency(self),
            sampled: self.sampled(),
            handles: handles::handles(self),
            gap: handles::gaps(self),
            torch: torch::build(self),
            failed_copies: live.odd.failed_copies,
            failed_sets: live.odd.failed_sets,
            calls: self.calls(),
            marks: self.marks(),
            mark_count: live.marks.mark_count,
            ranges: self.ranges(),
            uncounted_ranges: live.marks.uncounted,
            in_flight: self.in_flight(),
        }
    }

    fn trace(&self, coverage: &Coverage) -> Trace {
        Trace {
            path: self.log.path.display().to_string(),
            size: Bytes(self.log.size),
            state: self.log.state,
            complete: self.log.state == WriterState::Exited && coverage.is_whole(),
            format: format!("{MAJOR}.{}", self.log.process.minor),
            events: self.live.events,
            calibrated: self.clock.calibrated,
        }
    }

    fn process(&self) -> ProcessFacts {
        let dictionary = &self.log.dictionary;
        let last = (self.live.events > 0).then_some(self.outcome.last);
        let end = self.log.process.exit_ticks.map(Ticks).max(last);
        let gpus = dictionary.gpus.iter().map(|(&gpu, facts)| (gpu, facts.clone()));
        let calling = self.live.lanes.iter().filter(|lane| lane.calls);
        let mut threads: Vec<u32> = calling.map(|lane| lane.tid).collect();
        threads.sort_unstable();
        threads.dedup();
        ProcessFacts {
            header: self.log.process.clone(),
            duration: end.map(|end| self.clock.at(end)),
            driver: dictionary.driver.clone(),
            gpus: gpus.collect(),
            threads: threads.len() as u64,
        }
    }

    /// The loader's empty path is the executable.
    pub(super) fn in_words(&self, site: SiteName) -> SiteName {
        let executable = || self.executable.clone();
        let library = site.library.and_then(|path| match path.is_empty() {
            true => executable(),
            false => Some(path),
        });
        SiteName { library, ..site }
    }

    /// The words for a site.
    pub(super) fn site(&self, site: SiteIndex) -> SiteName {
        self.in_words(self.names.name(self.names.group(site)).clone())
    }

    /// The last moment that is counted.
    pub(super) fn end(&self) -> Ticks {
        let last =
            self.window.until.map_or(self.outcome.last, |until| until.min(self.outcome.last));
        self.live.since.map_or(last, |since| last.max(since))
    }

    fn stall(&self, purpose: Purpose) -> StallReport {
        let stall = self.live.stalls.of(purpose);
        let classes = stall.classes.iter().enumerate().filter(|(_, (count, _))| *count > 0);
        let by_length = classes.map(|(class, &(count, total))| LengthClass {
            from: class.checked_sub(1).map_or(Nanos(0), Stalls::edge),
            to: (class + 1 < stall.classes.len()).then(|| Stalls::edge(class)),
            count,
            total: self.clock.length(total),
        });
        let longest = stall.longest.iter().map(|call| self.long_call(call));
        StallReport {
            purpose,
            count: stall.count,
            total: self.clock.length(stall.total),
            max: stall.longest.first().map_or(Nanos(0), |call| self.clock.length(call.length)),
            by_length: by_length.collect(),
            longest: longest.collect(),
        }
    }

    fn long_call(&self, call: &LongCall) -> LongCallReport {
        LongCallReport {
            at: self.clock.at(call.start),
            length: self.clock.length(call.length),
            bytes: call.bytes,
            site: self.site(call.site),
            thread: self.thread(call.lane),
        }
    }

    fn oddities(&self, oddity: &Oddity) -> OddReport {
        let examples = oddity.examples.iter().map(|example| OddExample {
            ledger: example.ledger,
            place: example.place,
            site: self.site(example.site),
            at: self.clock.at(example.at),
        });
        OddReport { count: oddity.count, examples: examples.collect() }
    }

    fn sampled(&self) -> Vec<SampledReport> {
        let all = self.live.samples.totals.iter();
        all.map(|(&slot, &sampled)| SampledReport { gpu: gpu(slot), sampled }).collect()
    }

    fn calls(&self) -> Vec<CallReport> {
        let found = calls::by_entry_point(self.live, &self.log.dictionary).into_iter();
        let one = |entry: calls::EntryPoint| CallReport {
            api: entry.api,
            layer: entry.layer,
            others: entry.others,
            calls: entry.calls,
            failed: entry.failed,
            total: self.clock.length(entry.total),
            max: self.clock.length(entry.max),
        };
        found.map(one).collect()
    }

    pub(super) fn thread(&self, lane: u32) -> Option<u32> {
        self.live.lanes.get(lane as usize).map(|lane| lane.tid)
    }

    fn marks(&self) -> Vec<MarkReport> {
        let marks = self.live.marks.marks.iter().map(|mark| MarkReport {
            at: self.clock.at(mark.at),
            text: mark.text.clone(),
            thread: self.thread(mark.lane),
        });
        marks.collect()
    }

    fn ranges(&self) -> Vec<RangeReport> {
        let ranges = self.live.marks.ranges.iter().map(|range| RangeReport {
            name: range.name.clone(),
            count: range.count,
            total: self.clock.length(Ticks(range.total)),
            open: range.open,
        });
        ranges.collect()
    }

    fn in_flight(&self) -> Vec<InFlightReport> {
        let open = in_flight::open_calls(&self.outcome.in_flight, self.outcome.last).into_iter();
        let one = |call: in_flight::OpenCall| {
            let api = self.log.dictionary.apis.get(&call.api);
            InFlightReport {
                api: api.map(|api| Arc::clone(&api.name)),
                layer: api.and_then(|api| api.layer),
                thread: self.thread(call.lane),
                since: self.clock.at(call.since),
                argument: call.argument,
            }
        };
        open.map(one).collect()
    }
}

/// A slot as reports name it.
pub(super) fn gpu(slot: GpuSlot) -> Option<Gpu> {
    slot.ordinal().map(Gpu)
}
