//! From the live set's series to the timeline of a report.

use super::build::{Builder, gpu};
use super::{CallTime, Figure, Scope, SeriesReport, TimelineReport};
use crate::live::{Ledger, Level, Purpose, Series, Sum, View};
use crate::units::{Nanos, Ticks};

/// Every series that was ever above zero, over the same buckets.
pub(super) fn build(builder: &Builder<'_>) -> TimelineReport {
    let live = builder.live;
    if live.events == 0 && live.since.is_none() {
        return TimelineReport::default();
    }
    let end = builder.end();
    let buckets = live.axis.bucket(end).max(live.reached()) + 1;
    let last = builder.clock.at(Ticks(end.0.max(live.axis.start(buckets - 1).0)));
    let starts = (0..buckets).map(|bucket| builder.clock.at(live.axis.start(bucket)));
    let mut series = of_view(&live.views.all, Scope::All, buckets);
    let gpus = live.views.by_gpu();
    if gpus.len() > 1 {
        for (slot, view) in &gpus {
            series.extend(of_view(view, Scope::On(gpu(*slot)), buckets));
        }
    }
    let torch = &live.torch;
    series.extend(one(Figure::TorchReserved, Scope::All, &torch.reserved.series, buckets));
    if gpus.len() > 1 {
        for (&slot, device) in &torch.devices {
            let (scope, reserved) = (Scope::On(gpu(slot)), &device.reserved.series);
            series.extend(one(Figure::TorchReserved, scope, reserved, buckets));
        }
    }
    for (&slot, sampled) in &live.samples.series {
        let scope = Scope::On(gpu(slot));
        series.extend(one(Figure::SampledUsed, scope, &sampled.used, buckets));
        series.extend(one(Figure::SampledProcess, scope, &sampled.process, buckets));
    }
    TimelineReport { edges: starts.chain([last]).collect(), series, calls: calls(builder, buckets) }
}

fn of_view(view: &View, scope: Scope, buckets: usize) -> Vec<SeriesReport> {
    let sums = Sum::ALL.iter().filter_map(|&sum| {
        let book = view.books.sum(sum);
        let series = one(Figure::Sum(sum), scope, &book.series, buckets)?;
        let part = |ledger: Ledger| {
            let held = book.parts.iter().map(|parts| parts[ledger as usize]);
            let mut held: Vec<u64> = held.collect();
            held.resize(buckets, view.books.book(ledger).tally.live_bytes);
            (ledger, held)
        };
        Some(SeriesReport { parts: sum.ledgers().map(part).collect(), ..series })
    });
    let ledgers = Ledger::ALL.iter().filter_map(|&ledger| {
        one(Figure::Ledger(ledger), scope, &view.books.book(ledger).series, buckets)
    });
    let touched = one(Figure::Touched, scope, &view.kept.series, buckets);
    sums.chain(ledgers).chain(touched).collect()
}

/// A series over every bucket, if it was ever above zero.
fn one(figure: Figure, scope: Scope, series: &Series, buckets: usize) -> Option<SeriesReport> {
    if !series.is_used() {
        return None;
    }
    let mut levels: Vec<Level> = series.levels().to_vec();
    let last = levels.last().map_or(0, |level| level.last);
    levels.resize(buckets, Level { min: last, max: last, last });
    Some(SeriesReport { figure, scope, levels, parts: Vec::new() })
}

fn calls(builder: &Builder<'_>, buckets: usize) -> Vec<CallTime> {
    let time = |purpose, bucket: usize| {
        let ticks = builder.live.stalls.of(purpose).over_time.get(bucket).copied().unwrap_or(0);
        builder.clock.length(Ticks(ticks))
    };
    let one = |bucket| CallTime {
        alloc: time(Purpose::Alloc, bucket),
        free: time(Purpose::Free, bucket),
        copy: Nanos(time(Purpose::Copy, bucket).0.saturating_add(time(Purpose::Set, bucket).0)),
    };
    (0..buckets).map(one).collect()
}
