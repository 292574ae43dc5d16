//! Ledgers, sums, peaks, what is left, copies and fragmentation.

use serde_json::{Map, Value, json};

use super::{hexadecimal, nanos, site};
use crate::live::{GRANULE, Ledger, Moved, RangeGaps, Sum, Tally};
use crate::report::{
    AgeReport, BlocksReport, Composition, FragmentationReport, HeldReport, LedgerReport,
    MovedReport, PoolWaste, PoolsReport, Report, ResidencyReport, Scope, ScopeReport,
    SizeClassReport, StuckReport, SumReport, VmmReport,
};
use crate::units::Nanos;

/// Keys and values of an object.
type Object = Map<String, Value>;

/// An object with more keys.
pub fn with(mut value: Value, more: impl IntoIterator<Item = (&'static str, Value)>) -> Value {
    if let Value::Object(object) = &mut value {
        object.extend(more.into_iter().map(|(key, value)| (key.to_owned(), value)));
    }
    value
}

/// A device, or null.
pub fn gpu(scope: Scope) -> Value {
    match scope {
        Scope::All | Scope::On(None) => Value::Null,
        Scope::On(Some(gpu)) => json!(gpu.0),
    }
}

/// By name, in total and by device.
pub fn ledgers(report: &Report) -> Value {
    let one = |ledger: &LedgerReport| {
        let on = |scope: &ScopeReport| {
            let found = scope.ledger(ledger.ledger).filter(|found| found.tally.is_used())?;
            Some(with(tally(found), [("gpu", gpu(scope.scope))]))
        };
        if ledger.ledger == Ledger::Torch && !report.torch.seen {
            return (ledger.ledger.name().to_owned(), Value::Null);
        }
        let by_gpu: Vec<Value> = report.by_gpu.iter().filter_map(on).collect();
        let more = [
            ("unsized_count", json!(ledger.tally.unsized_count)),
            ("estimated", json!(ledger.ledger.is_estimated())),
            ("by_gpu", Value::Array(by_gpu)),
            ("bound", json!(report.bound)),
        ];
        (ledger.ledger.name().to_owned(), with(tally(ledger), more))
    };
    Value::Object(report.total.ledgers.iter().map(one).collect())
}

fn tally(report: &LedgerReport) -> Value {
    let Tally { allocs, frees, failed, implicit_frees, .. } = report.tally;
    json!({
        "allocs": allocs,
        "frees": frees,
        "failed": failed,
        "implicit_frees": implicit_frees,
        "alloc_bytes": report.tally.alloc_bytes,
        "free_bytes": report.tally.free_bytes,
        "implicit_bytes": report.tally.implicit_bytes,
        "live_count": report.tally.live_count,
        "live_bytes": report.tally.live_bytes,
        "peak_bytes": report.tally.peak_bytes,
        "peak_at_ns": nanos(report.peak_at),
    })
}

/// By name, in total and by device.
pub fn sums(report: &Report) -> Value {
    let one = |sum: &SumReport| {
        let on = |scope: &ScopeReport| {
            let found = scope.sum(sum.sum).filter(|found| found.peak.0 > 0)?;
            Some(with(height(found), [("gpu", gpu(scope.scope))]))
        };
        let by_gpu: Vec<Value> = report.by_gpu.iter().filter_map(on).collect();
        let adds: Vec<&str> = sum.sum.ledgers().map(|ledger| ledger.name()).collect();
        let more = [
            ("adds", json!(adds)),
            ("by_gpu", Value::Array(by_gpu)),
            ("bound", json!(report.bound)),
        ];
        let held = composition(&sum.at_peak, report.bound);
        (sum.sum.name().to_owned(), with(height(sum), more.into_iter().chain(held)))
    };
    Value::Object(report.total.sums.iter().map(one).collect())
}

fn height(sum: &SumReport) -> Value {
    json!({
        "live_bytes": sum.live.0,
        "peak_bytes": sum.peak.0,
        "peak_at_ns": nanos(sum.peak_at),
    })
}

/// The peak of the sum `gpu`, and each ledger's own.
pub fn peak(scope: &ScopeReport, bound: bool) -> Value {
    let used = scope.ledgers.iter().filter(|ledger| !ledger.at_peak.held.is_empty());
    let by_ledger = used.map(|ledger| {
        let head = json!({
            "bytes": ledger.tally.peak_bytes,
            "at_ns": nanos(ledger.peak_at),
            "bound": bound,
        });
        (ledger.ledger.name().to_owned(), with(head, composition(&ledger.at_peak, bound)))
    });
    let ledgers: Object = by_ledger.collect();
    let Some(sum) = scope.sum(Sum::Gpu) else { return Value::Null };
    let head = json!({
        "sum": sum.sum.name(),
        "adds": sum.sum.ledgers().map(|ledger| ledger.name()).collect::<Vec<_>>(),
        "bytes": sum.peak.0,
        "at_ns": nanos(sum.peak_at),
        "bound": bound,
        "ledgers": ledgers,
    });
    with(head, composition(&sum.at_peak, bound))
}

/// The sum `gpu` at the end.
pub fn live(scope: &ScopeReport, bound: bool) -> Value {
    let Some(sum) = scope.sum(Sum::Gpu) else { return Value::Null };
    json!({
        "sum": sum.sum.name(),
        "bytes": sum.live.0,
        "bound": bound,
        "by_size": sum.at_end.by_size.iter().map(size).collect::<Vec<_>>(),
        "by_age": sum.at_end.by_age.iter().map(age).collect::<Vec<_>>(),
    })
}

/// What an amount is made of.
pub fn composition(
    composition: &Composition,
    bound: bool,
) -> impl Iterator<Item = (&'static str, Value)> {
    let by_size = composition.by_size.iter().map(size).collect();
    let by_age = composition.by_age.iter().map(age).collect();
    let held = held(&composition.held, bound);
    [("held", held), ("by_size", by_size), ("by_age", by_age)].into_iter()
}

fn size(class: &SizeClassReport) -> Value {
    json!({
        "from_bytes": class.from.0,
        "to_bytes": class.to.0,
        "count": class.count,
        "bytes": class.bytes.0,
    })
}

fn age(age: &AgeReport) -> Value {
    json!({
        "from_ns": age.from.0,
        "to_ns": age.to.0,
        "count": age.count,
        "bytes": age.bytes.0,
    })
}

/// Who holds what.
pub fn held(held: &[HeldReport], bound: bool) -> Value {
    let all = held.iter().map(|held| {
        json!({
            "ledger": held.ledger.name(),
            "site": site(&held.site),
            "count": held.count,
            "bytes": held.bytes.0,
            "oldest_at_ns": nanos(held.oldest),
            "bound": bound,
        })
    });
    all.collect()
}

/// Copies by kind.
pub fn copies(scope: &ScopeReport, bound: bool) -> Value {
    let all = scope.copies.iter().map(|(key, report)| {
        let head = json!({
            "direction": key.direction.name(),
            "asynchronous": key.asynchronous,
            "host_memory": key.host.map(|host| host.name()),
        });
        with(with(head, moved(report)), [("bound", json!(bound))])
    });
    all.collect()
}

/// All sets.
pub fn sets(scope: &ScopeReport, bound: bool) -> Value {
    with(with(json!({}), moved(&scope.sets)), [("bound", json!(bound))])
}

fn moved(report: &MovedReport) -> impl Iterator<Item = (&'static str, Value)> {
    let Moved { count, bytes, empty } = report.moved;
    let Nanos(total) = report.total;
    [
        ("count", json!(count)),
        ("bytes", json!(bytes)),
        ("empty", json!(empty)),
        ("total_ns", json!(total)),
        ("max_ns", json!(report.max.0)),
        ("by_size", report.by_size.iter().map(size).collect()),
    ]
    .into_iter()
}

/// Memory that is kept from use, by level; null where nothing is known.
pub fn fragmentation(report: &FragmentationReport, bound: bool) -> Value {
    let at = |(at, value): &(Nanos, Value)| with(value.clone(), [("at_ns", json!(at.0))]);
    let worst = report.device_worst.map(|(moment, found)| (moment, blocks(&found)));
    let pins = report.pins.iter().map(
        |pin| json!({ "site": site(&pin.site), "blocks": pin.blocks, "used_bytes": pin.used.0 }),
    );
    let device = with(
        blocks(&report.device),
        [
            ("block_bytes", json!(GRANULE)),
            ("worst", worst.as_ref().map_or(Value::Null, at)),
            ("pins", pins.collect()),
            ("pins_at_ns", nanos(report.pins_at)),
            ("bound", json!(bound)),
        ],
    );
    let vmm_worst = report.vmm_worst.as_ref().map(|(moment, found)| (*moment, vmm(found)));
    let ranges = report.vmm.as_ref().map(|found| {
        with(
            vmm(found),
            [
                ("worst", vmm_worst.as_ref().map_or(Value::Null, at)),
                ("stuck", report.stuck.as_ref().map_or(Value::Null, stuck)),
                ("looked", json!(report.looked)),
                ("bound", json!(bound)),
            ],
        )
    });
    let pool = report.pool.as_ref().map(|waste| with(pool(waste), [("bound", json!(bound))]));
    let reason = pool.is_none().then_some(NO_POOL);
    json!({
        "device": device,
        "vmm": ranges,
        "pool": pool,
        "pool_reason": reason,
        "segment": null,
    })
}

/// Why nothing is known about what pools keep.
const NO_POOL: &str =
    "the process asked no pool that is left what it reserves; gmmtrace makes no call of its own";

fn pool(waste: &PoolWaste) -> Value {
    json!({
        "reserved_bytes": waste.reserved.0,
        "used_bytes": waste.used.0,
        "waste_bytes": waste.bytes().0,
        "told": waste.told,
        "pools": waste.pools,
        "at_ns": waste.at.0,
    })
}

fn stuck(report: &StuckReport) -> Value {
    let largest = report.largest.iter().map(|(address, bytes, of)| {
        json!({ "address": hexadecimal(*address), "bytes": bytes.0, "site": site(of) })
    });
    json!({
        "mappings": report.mappings,
        "mapped_bytes": report.bytes.0,
        "largest": largest.collect::<Vec<_>>(),
        "unreferenced_bytes": report.unreferenced.0,
    })
}

/// Pools of stream-ordered memory.
pub fn pools(report: &PoolsReport, bound: bool) -> Value {
    let all = report.pools.iter().map(|pool| {
        json!({
            "label": pool.label,
            "gpu": pool.gpu.map(|gpu| gpu.0),
            "handle": pool.handle.map(|handle| hexadecimal(handle.0)),
            "allocs": pool.allocs,
            "live_count": pool.live_count,
            "live_bytes": pool.live.0,
            "peak_bytes": pool.peak.0,
            "reserved_bytes": pool.reserved.map(|bytes| bytes.0),
            "unused_bytes": pool.unused.map(|bytes| bytes.0),
            "told_at_ns": nanos(pool.told_at),
            "reserved_high_bytes": pool.reserved_high.map(|bytes| bytes.0),
            "release_threshold_bytes": pool.threshold.map(|bytes| bytes.0),
            "trims": pool.trims,
            "destroyed_at_ns": nanos(pool.destroyed_at),
            "bound": bound,
        })
    });
    json!({
        "reserved_bytes": report.reserved.map(|bytes| bytes.0),
        "reserved_peak_bytes": report.reserved_peak.map(|bytes| bytes.0),
        "pools": all.collect::<Vec<_>>(),
    })
}

/// Where managed memory was asked to be.
pub fn managed(report: &ResidencyReport) -> Value {
    let prefetches = report.prefetches.iter().map(
        |(place, asked)| json!({ "label": place, "count": asked.count, "bytes": asked.bytes }),
    );
    let advice = report.advice.iter().map(|(advice, place, asked)| {
        json!({ "name": advice, "label": place, "count": asked.count, "bytes": asked.bytes })
    });
    json!({
        "prefetches": prefetches.collect::<Vec<_>>(),
        "failed_prefetches": report.failed_prefetches,
        "advice": advice.collect::<Vec<_>>(),
        "failed_advice": report.failed_advice,
        "uncounted": report.uncounted,
    })
}

fn blocks(report: &BlocksReport) -> Value {
    json!({
        "requested_bytes": report.requested.0,
        "touched_bytes": report.touched.0,
        "waste_bytes": report.waste().0,
        "sparse_blocks": report.sparse,
        "sparse_used_bytes": report.sparse_used.0,
    })
}

fn vmm(report: &VmmReport) -> Value {
    json!({
        "ranges": report.ranges,
        "reserved_bytes": report.reserved.0,
        "mapped_bytes": report.mapped.0,
        "free_bytes": report.free.0,
        "unmapped_physical_bytes": report.unmapped_physical.0,
        "worst_ranges": report.worst.iter().map(range).collect::<Vec<_>>(),
    })
}

fn range(range: &RangeGaps) -> Value {
    let pin = range
        .pin
        .map(|(address, bytes)| json!({ "address": hexadecimal(address), "bytes": bytes.0 }));
    json!({
        "address": hexadecimal(range.address),
        "bytes": range.bytes.0,
        "mapped_bytes": range.mapped.0,
        "free_bytes": range.free.0,
        "largest_free_bytes": range.largest.0,
        "pin": pin,
    })
}

/// The same figures of each device.
pub fn by_gpu(report: &Report) -> Value {
    let bound = report.bound;
    let all = report.by_gpu.iter().map(|scope| {
        json!({
            "gpu": gpu(scope.scope),
            "peak": peak(scope, bound),
            "live": live(scope, bound),
            "live_at_end": held(&scope.live_at_end, bound),
            "copies": copies(scope, report.copies_bound),
            "sets": sets(scope, report.copies_bound),
            "fragmentation": fragmentation(&scope.fragmentation, bound),
        })
    });
    all.collect()
}
