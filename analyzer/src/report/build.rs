//! From a log whose events were applied to the model of its report.

use gmmtrace_format::layout::MAJOR;

use super::{
    CallReport, Coverage, HeldReport, InFlightReport, LedgerReport, MarkReport, OddExample,
    OddReport, Peak, ProcessFacts, RangeReport, Report, SampledReport, TallyReport, Trace,
};
use crate::analysis::held::{self, Holding, SiteName};
use crate::analysis::{calls, in_flight};
use crate::input::{Log, Timeline, WriterState};
use crate::live::{GpuSlot, Ledger, LiveSet, Oddity, Tally};
use crate::order::Outcome;
use crate::units::{Bytes, Gpu, Ticks};

/// The report on `log`, whose events `live` has applied.
#[must_use]
pub fn build(log: &Log, live: &LiveSet, outcome: &Outcome) -> Report {
    let builder = Builder { log, live, outcome, clock: log.timeline };
    builder.report()
}

struct Builder<'a> {
    log: &'a Log,
    live: &'a LiveSet,
    outcome: &'a Outcome,
    clock: Timeline,
}

impl Builder<'_> {
    fn report(&self) -> Report {
        let live = self.live;
        let coverage = Coverage::of(self.log, self.outcome);
        let bound = self.log.counters.lost_live()
            || coverage.salvage_loses_events
            || coverage.unknown_kinds > 0;
        Report {
            trace: self.trace(&coverage),
            process: self.process(),
            bound,
            coverage,
            ledgers: Ledger::ALL.iter().map(|&ledger| self.ledger(ledger)).collect(),
            null_calls: live.odd.null_calls,
            unknown_frees: self.oddities(&live.odd.unknown_frees),
            overlaps: self.oddities(&live.odd.overlaps),
            sampled: self.sampled(),
            contexts: live.contexts.counts,
            copies: live.traffic.copies().collect(),
            sets: live.traffic.sets,
            failed_copies: live.traffic.failed_copies,
            failed_sets: live.traffic.failed_sets,
            peak: self.peak(),
            live: Bytes(live.books.sum.live_bytes),
            live_at_end: self.held(held::at_end(live, &self.log.dictionary)),
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

    fn ledger(&self, ledger: Ledger) -> LedgerReport {
        let book = self.live.books.book(ledger);
        let by_gpu = book.by_gpu().map(|(slot, tally)| (gpu(slot), self.tally(tally)));
        LedgerReport {
            ledger,
            total: self.tally(&book.total),
            by_gpu: by_gpu.collect(),
            at_peak: self.held(held::at_peak(self.live, &self.log.dictionary, ledger)),
        }
    }

    fn tally(&self, tally: &Tally) -> TallyReport {
        let peak_at = (tally.peak_bytes > 0).then(|| self.clock.at(tally.peak_at));
        TallyReport { tally: *tally, peak_at }
    }

    fn peak(&self) -> Peak {
        let sum = self.live.books.sum;
        Peak {
            adds: Ledger::ALL.iter().copied().filter(|ledger| ledger.in_gpu_sum()).collect(),
            bytes: Bytes(sum.peak_bytes),
            at: (sum.peak_bytes > 0).then(|| self.clock.at(sum.peak_at)),
            held: self.held(held::at_sum_peak(self.live, &self.log.dictionary)),
        }
    }

    fn held(&self, holdings: Vec<Holding>) -> Vec<HeldReport> {
        let one = |holding: Holding| HeldReport {
            ledger: holding.ledger,
            site: self.in_words(holding.site),
            count: holding.count,
            bytes: holding.bytes,
            oldest: holding.oldest.map(|at| self.clock.at(at)),
        };
        holdings.into_iter().map(one).collect()
    }

    /// The loader's empty path is the executable.
    fn in_words(&self, site: SiteName) -> SiteName {
        let executable = || self.log.process.executable.clone();
        let library = site.library.and_then(|path| match path.is_empty() {
            true => executable(),
            false => Some(path),
        });
        SiteName { library, ..site }
    }

    fn oddities(&self, oddity: &Oddity) -> OddReport {
        let examples = oddity.examples.iter().map(|example| OddExample {
            ledger: example.ledger,
            place: example.place,
            site: self
                .in_words(SiteName::of(self.live.sites.site(example.site), &self.log.dictionary)),
            at: self.clock.at(example.at),
        });
        OddReport { count: oddity.count, examples: examples.collect() }
    }

    fn sampled(&self) -> Vec<SampledReport> {
        let all = self.live.samples.0.iter();
        all.map(|(&slot, &sampled)| SampledReport { gpu: gpu(slot), sampled }).collect()
    }

    fn calls(&self) -> Vec<CallReport> {
        let found = calls::by_entry_point(self.live, &self.log.dictionary).into_iter();
        let one = |entry: calls::EntryPoint| CallReport {
            api: entry.api,
            layer: entry.layer,
            calls: entry.calls,
            failed: entry.failed,
            total: self.clock.length(entry.total),
            max: self.clock.length(entry.max),
        };
        found.map(one).collect()
    }

    fn thread(&self, lane: u32) -> Option<u32> {
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
                api: api.map(|api| api.name.clone()),
                layer: api.and_then(|api| api.layer),
                thread: self.thread(call.lane),
                since: self.clock.at(call.since),
                argument: call.argument,
            }
        };
        open.map(one).collect()
    }
}

fn gpu(slot: GpuSlot) -> Option<Gpu> {
    slot.ordinal().map(Gpu)
}
