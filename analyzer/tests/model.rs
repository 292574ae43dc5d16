//! Reports on logs at random, against a model that works every figure out anew after each event:
//! `model/logs.rs` makes the logs, `model/naive.rs` is the model, and here is what it must say.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

#[path = "model/logs.rs"]
mod logs;
#[path = "model/naive.rs"]
mod naive;
mod support;

use std::collections::BTreeMap;

use gmmtrace::live::Window;
use gmmtrace::units::Ticks;
use gmmtrace::{render, report};
use gmmtrace_format::Kind;
use gmmtrace_format::layout::{CHUNK_SIZE, chunk};
use logs::{Case, case};
use naive::{Block, Call, Figures, Gpu, Granules, LEDGERS, Model, Moment, Moved, SCOPES, SUMS};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestCaseError;
use serde_json::{Value, json};
use support::{RUNTIME_SITE, Writer, assert_valid};

type Checked = Result<(), TestCaseError>;

fn same(what: &str, found: &Value, expected: &Value) -> Checked {
    prop_assert_eq!(found, expected, "{}", what);
    Ok(())
}

/// Those of an object's values that are expected.
fn among(object: &Value, expected: &Value) -> Value {
    let keys = expected.as_object().unwrap().keys();
    keys.map(|key| (key.clone(), object[key].clone())).collect()
}

fn numbers(array: &Value) -> Vec<u64> {
    array.as_array().unwrap().iter().map(|value| value.as_u64().unwrap()).collect()
}

fn written(case: &Case) -> Vec<u8> {
    let mut log = Writer { gpus: case.gpus, per_chunk: case.per_chunk, ..Writer::default() };
    case.steps.iter().for_each(|step| log.push(step.thread, step.written()));
    log.bytes()
}

fn report_on(case: &Case) -> Value {
    report_of(case, &written(case))
}

fn report_of(case: &Case, bytes: &[u8]) -> Value {
    let window = Window { since: case.since.map(Ticks), until: case.until.map(Ticks) };
    let report = report::read(&support::open(bytes), window, |_, _| ());
    render::text::write(&report, &mut std::io::sink()).unwrap();
    render::json::value(&report)
}

fn modelled(case: &Case) -> Model {
    let mut steps: Vec<&logs::Step> = case.steps.iter().collect();
    steps.sort_by_key(|step| step.order());
    let mut model = Model::new((case.gpus == 1).then_some(0));
    let mut since = case.since;
    for step in steps {
        if let Some(since) = since.take_if(|since| step.stamp() >= *since) {
            model.begin(since);
        }
        if case.until.is_none_or(|until| step.stamp() <= until) {
            model.apply(step);
        }
    }
    if let Some(since) = since {
        model.begin(since);
    }
    model
}

/// What a report must say of a case.
struct Expected {
    model: Model,
    zero: u64,
    end: u64,
    /// Length of a bucket.
    width: u64,
    buckets: usize,
    since: Option<u64>,
    /// Whether a range was reserved around what was mapped before it.
    late_range: bool,
}

impl Expected {
    fn of(case: &Case) -> Self {
        let model = modelled(case);
        let last = case.steps.iter().map(logs::Step::stamp).max().unwrap_or(0);
        let zero = case.since.unwrap_or(0);
        let end = case.until.map_or(last, |until| until.min(last)).max(zero);
        let mut width = 1;
        while (end - zero) / width >= 1_024 {
            width *= 2;
        }
        let buckets = ((end - zero) / width) as usize + 1;
        let stamps = |kind| case.steps.iter().filter(move |step| step.kind == kind);
        let mapped = stamps(Kind::Map).map(logs::Step::stamp).min();
        let reserved = stamps(Kind::AddressReserve).map(logs::Step::stamp).max();
        let late_range = mapped.is_some_and(|mapped| reserved > Some(mapped));
        Self { model, zero, end, width, buckets, since: case.since, late_range }
    }

    fn figures(&self, scope: usize) -> &Figures {
        &self.model.counted.scopes[scope]
    }

    fn bucket(&self, stamp: u64) -> usize {
        (stamp.saturating_sub(self.zero) / self.width) as usize
    }

    /// Scopes of single devices that anything was on.
    fn used(&self) -> Vec<usize> {
        let is_used = |&scope: &usize| {
            let figures = self.figures(scope);
            let booked = figures.tallies.iter().any(naive::Tally::is_used);
            let moved = !figures.copies.is_empty() || !figures.sets.sizes.is_empty();
            booked || moved || !self.model.of(SCOPES[scope]).is_empty()
        };
        (1..SCOPES.len()).filter(is_used).collect()
    }

    fn live(&self, scope: usize, ledger: usize) -> Vec<&Block> {
        let blocks = self.model.of(SCOPES[scope]).into_iter();
        blocks.filter(|block| block.ledger == ledger).collect()
    }

    /// Blocks that are told as left: within a window those made in it.
    fn left(&self, scope: usize) -> Vec<Block> {
        let blocks = self.model.of(SCOPES[scope]).into_iter().copied();
        blocks.filter(|block| self.since.is_none_or(|since| block.at >= since)).collect()
    }
}

fn gpu_of(scope: usize) -> Gpu {
    SCOPES[scope].flatten()
}

fn moment(bytes: u64, at: u64) -> Value {
    if bytes == 0 { Value::Null } else { json!(at) }
}

// Ledgers and sums

impl Expected {
    fn tally(&self, scope: usize, ledger: usize) -> Value {
        let figures = self.figures(scope);
        let (tally, peak) = (&figures.tallies[ledger], &figures.peaks[ledger]);
        let live = self.live(scope, ledger);
        json!({
            "allocs": tally.allocs,
            "alloc_bytes": tally.alloc_bytes,
            "frees": tally.frees,
            "free_bytes": tally.free_bytes,
            "failed": tally.failed,
            "implicit_frees": tally.implicit,
            "implicit_bytes": tally.implicit_bytes,
            "live_count": live.len(),
            "live_bytes": live.iter().map(|block| block.bytes).sum::<u64>(),
            "peak_bytes": peak.bytes,
            "peak_at_ns": moment(peak.bytes, peak.at),
        })
    }

    fn height(&self, scope: usize, sum: usize) -> Value {
        let ledgers = SUMS[sum].1;
        let live = self.model.of(SCOPES[scope]).into_iter();
        let live = live.filter(|block| ledgers.contains(&block.ledger));
        let peak = &self.figures(scope).peaks[LEDGERS.len() + sum];
        json!({
            "live_bytes": live.map(|block| block.bytes).sum::<u64>(),
            "peak_bytes": peak.bytes,
            "peak_at_ns": moment(peak.bytes, peak.at),
        })
    }

    fn check_ledgers(&self, report: &Value) -> Checked {
        for (ledger, name) in LEDGERS.iter().enumerate() {
            let (found, expected) = (&report["ledgers"][name], self.tally(0, ledger));
            same(name, &among(found, &expected), &expected)?;
            let on = |scope: usize| {
                let used = self.figures(scope).tallies[ledger].is_used();
                let mut row = self.tally(scope, ledger);
                row["gpu"] = json!(gpu_of(scope));
                (used || !self.live(scope, ledger).is_empty()).then_some(row)
            };
            let rows: Value = (1..SCOPES.len()).filter_map(on).collect();
            same(name, &found["by_gpu"], &rows)?;
        }
        for (sum, (name, _)) in SUMS.iter().enumerate() {
            let (found, expected) = (&report["sums"][name], self.height(0, sum));
            same(name, &among(found, &expected), &expected)?;
            let on = |scope: usize| {
                let mut row = self.height(scope, sum);
                row["gpu"] = json!(gpu_of(scope));
                (row["peak_bytes"] != 0).then_some(row)
            };
            let rows: Value = (1..SCOPES.len()).filter_map(on).collect();
            same(name, &found["by_gpu"], &rows)?;
        }
        Ok(())
    }

    fn check_counts(&self, report: &Value) -> Checked {
        let counted = &self.model.counted;
        let expected = json!({
            "null_calls": counted.nulls,
            "unknown_frees": counted.unknown,
            "overlaps": counted.overlaps,
            "failed_copies": counted.failed_copies,
            "failed_sets": counted.failed_sets,
            "mark_count": counted.marks,
        });
        same("counts", &among(report, &expected), &expected)?;
        same("events", &report["trace"]["events"], &json!(counted.events))?;
        same("threads", &report["process"]["threads"], &json!(counted.threads.len()))?;
        let ((created, destroyed), before) = (self.model.contexts, self.model.contexts_before);
        let expected = json!({
            "created": created - before.0,
            "destroyed": destroyed - before.1,
            "live": self.model.live_contexts,
        });
        same("contexts", &report["handles"]["contexts"], &expected)?;
        Ok(())
    }
}

// What memory is made of

/// The class of a size, found by trying one after the other.
fn class(bytes: u64) -> (u64, u64) {
    let mut class = (1, 1);
    while bytes > class.1 {
        class = (class.0 * 2, class.1 * 2 + 1);
    }
    if bytes == 0 { (0, 0) } else { class }
}

fn by_size(sizes: impl Iterator<Item = u64>) -> Value {
    let mut classes: BTreeMap<(u64, u64), (u64, u64)> = BTreeMap::new();
    for bytes in sizes {
        let (count, sum) = classes.entry(class(bytes)).or_default();
        (*count, *sum) = (*count + 1, *sum + bytes);
    }
    let row = |((from, to), (count, bytes))| json!({"from_bytes": from, "to_bytes": to, "count": count, "bytes": bytes});
    classes.into_iter().map(row).collect()
}

/// By ledger, entry point and runtime call: blocks, bytes, and when the oldest was made.
type Held = BTreeMap<(String, String, Option<String>), (u64, u64, u64)>;

fn held_by(blocks: &[Block]) -> Held {
    let mut held = Held::new();
    for block in blocks {
        let api = if block.site == support::FREE_SITE { "cuMemFree_v2" } else { "cuMemAlloc_v2" };
        let call = (block.site == RUNTIME_SITE).then(|| "cudaMalloc".to_owned());
        let key = (LEDGERS[block.ledger].to_owned(), api.to_owned(), call);
        let (count, bytes, oldest) = held.entry(key).or_insert((0, 0, u64::MAX));
        (*count, *bytes) = (*count + 1, *bytes + block.bytes);
        *oldest = (*oldest).min(block.at);
    }
    held
}

fn held_in(rows: &Value) -> Held {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    let rows = rows.as_array().unwrap().iter().map(|row| {
        let site = &row["site"];
        let key = (text(&row["ledger"]).unwrap(), text(&site["api"]).unwrap(), text(&site["call"]));
        (key, (number(&row["count"]), number(&row["bytes"]), number(&row["oldest_at_ns"])))
    });
    rows.collect()
}

impl Expected {
    fn by_age(&self, blocks: &[Block]) -> Value {
        let stretch = 16 * self.width;
        let mut ages: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        for block in blocks {
            let age = block.at.saturating_sub(self.zero) / stretch;
            let (count, bytes) = ages.entry(age).or_default();
            (*count, *bytes) = (*count + 1, *bytes + block.bytes);
        }
        let row = |(age, (count, bytes)): (u64, (u64, u64))| {
            let from = self.zero + age * stretch;
            json!({"from_ns": from, "to_ns": from + stretch, "count": count, "bytes": bytes})
        };
        ages.into_iter().map(row).collect()
    }

    fn check_cuts(&self, what: &str, found: &Value, blocks: &[Block]) -> Checked {
        let sizes = blocks.iter().map(|block| block.bytes);
        same(what, &found["by_size"], &by_size(sizes))?;
        same(what, &found["by_age"], &self.by_age(blocks))
    }

    fn check_peak(&self, scope: usize, found: &Value) -> Checked {
        let peaks = &self.figures(scope).peaks;
        let whole = &peaks[LEDGERS.len()];
        let named =
            LEDGERS.iter().zip(peaks).map(|(&name, peak)| (name, &found["ledgers"][name], peak));
        for (name, found, peak) in named.chain([("gpu", found, whole)]) {
            if peak.bytes == 0 && name != "gpu" {
                same(name, found, &Value::Null)?;
                continue;
            }
            let expected = json!({"bytes": peak.bytes, "at_ns": moment(peak.bytes, peak.at)});
            same(name, &among(found, &expected), &expected)?;
            self.check_cuts(name, found, &peak.blocks)?;
            let mut held = held_by(&peak.blocks);
            held.values_mut().for_each(|row| row.2 = 0);
            prop_assert_eq!(held_in(&found["held"]), held, "{}", name);
        }
        Ok(())
    }

    fn check_scope(&self, scope: usize, found: &Value) -> Checked {
        self.check_peak(scope, &found["peak"])?;
        let left = self.left(scope);
        prop_assert_eq!(held_in(&found["live_at_end"]), held_by(&left), "left");
        let gpu = |block: &&Block| SUMS[0].1.contains(&block.ledger);
        let of_sum: Vec<Block> = left.iter().filter(gpu).copied().collect();
        self.check_cuts("live", &found["live"], &of_sum)?;
        same("live", &found["live"]["bytes"], &self.height(scope, 0)["live_bytes"])?;
        self.check_copies(scope, found)?;
        self.check_blocks(scope, &found["fragmentation"]["device"])
    }

    fn check_blocks(&self, scope: usize, found: &Value) -> Checked {
        let blocks = |granules: Granules| {
            json!({
                "requested_bytes": granules.requested,
                "touched_bytes": granules.touched,
                "waste_bytes": granules.waste(),
                "sparse_blocks": granules.sparse,
                "sparse_used_bytes": granules.sparse_used,
            })
        };
        let now = blocks(self.model.granules(SCOPES[scope]));
        same("blocks", &among(found, &now), &now)?;
        let worst = self.figures(scope).worst.map(|(at, granules)| {
            let mut worst = blocks(granules);
            worst["at_ns"] = json!(at);
            worst
        });
        same("worst blocks", &found["worst"], &json!(worst))
    }
}

// Copies, sets and stalls

const DIRECTIONS: [&str; 11] = [
    "",
    "host_to_device",
    "device_to_host",
    "host_to_array",
    "array_to_host",
    "array_to_array",
    "array_to_device",
    "device_to_array",
    "device_to_device",
    "host_to_host",
    "peer",
];

fn moved(moved: &Moved) -> Value {
    let Moved { sizes, lengths } = moved;
    json!({
        "count": sizes.len(),
        "bytes": sizes.iter().sum::<u64>(),
        "empty": sizes.iter().filter(|&&bytes| bytes == 0).count(),
        "total_ns": lengths.iter().sum::<u64>(),
        "max_ns": lengths.iter().max().unwrap_or(&0),
        "by_size": by_size(sizes.iter().copied()),
        "bound": false,
    })
}

/// Where classes of length end: 1, 2 and 5 of each power of ten.
fn length_class(length: u64) -> (u64, u64) {
    let mut from = 0;
    for power in 3..11 {
        for digit in [1, 2, 5] {
            let to = digit * 10_u64.pow(power);
            if length < to {
                return (from, to);
            }
            from = to;
        }
    }
    (from, 0)
}

impl Expected {
    fn check_copies(&self, scope: usize, found: &Value) -> Checked {
        let figures = self.figures(scope);
        same("sets", &found["sets"], &moved(&figures.sets))?;
        let rows = found["copies"].as_array().unwrap();
        prop_assert_eq!(rows.len(), figures.copies.len());
        for (&(direction, asynchronous, host), copies) in &figures.copies {
            let mut expected = moved(copies);
            let host = ["pinned", "registered", "pageable"].get(usize::from(host));
            expected["direction"] = json!(DIRECTIONS[direction as usize]);
            expected["asynchronous"] = json!(asynchronous);
            expected["host_memory"] = json!(host);
            prop_assert!(rows.contains(&expected), "{} not in {:?}", expected, rows);
        }
        Ok(())
    }

    fn check_stalls(&self, report: &Value) -> Checked {
        let purposes = ["alloc", "free", "copy", "set"];
        for (name, calls) in purposes.iter().zip(&self.model.counted.calls) {
            let mut classes: BTreeMap<(u64, u64), (u64, u64)> = BTreeMap::new();
            for call in calls {
                let (count, total) = classes.entry(length_class(call.length)).or_default();
                (*count, *total) = (*count + 1, *total + call.length);
            }
            let classes = classes.into_iter().map(|((from, to), (count, total))| {
                json!({"from_ns": from, "to_ns": to, "count": count, "total_ns": total})
            });
            let mut longest: Vec<&Call> = calls.iter().collect();
            longest.sort_by_key(|call| std::cmp::Reverse(call.length));
            let expected = json!({
                "count": calls.len(),
                "total_ns": calls.iter().map(|call| call.length).sum::<u64>(),
                "max_ns": calls.iter().map(|call| call.length).max().unwrap_or(0),
                "bound": false,
                "by_length": classes.collect::<Vec<_>>(),
            });
            let found = &report["stalls"][name];
            same(name, &among(found, &expected), &expected)?;
            let told = found["longest"].as_array().unwrap();
            prop_assert_eq!(told.len(), longest.len().min(10));
            for (found, call) in told.iter().zip(longest) {
                let expected = json!({
                    "at_ns": call.start,
                    "length_ns": call.length,
                    "bytes": call.bytes,
                    "thread": 1_001 + call.thread,
                });
                same(name, &among(found, &expected), &expected)?;
            }
        }
        Ok(())
    }
}

// Figures over time

/// The value of a figure from each of these moments on.
type Values = Vec<(u64, u64)>;

impl Expected {
    /// Least, greatest and last value in each bucket, the one that it begins with included.
    fn levels(&self, values: &Values) -> [Vec<u64>; 3] {
        let mut levels = [const { Vec::new() }; 3];
        let mut changes = values.iter().peekable();
        let mut value = values[0].1;
        for bucket in 0..self.buckets {
            let (mut min, mut max) = (value, value);
            while let Some(&(_, next)) = changes.next_if(|&&(at, _)| self.bucket(at) == bucket) {
                value = next;
                (min, max) = (min.min(value), max.max(value));
            }
            for (level, value) in levels.iter_mut().zip([min, max, value]) {
                level.push(value);
            }
        }
        levels
    }

    fn series(&self) -> BTreeMap<(String, String), Values> {
        let mut all = BTreeMap::new();
        let used = self.used();
        let scopes = [0].into_iter().chain(used.iter().copied().filter(|_| used.len() > 1));
        for scope in scopes {
            let gpu = if scope == 0 { json!("all") } else { json!(gpu_of(scope)) };
            let moments = &self.figures(scope).moments;
            let mut add = |name: &str, of: &dyn Fn(&Moment) -> u64| {
                let values = moments.iter().map(|moment| (moment.stamp, of(moment)));
                all.insert((name.to_owned(), gpu.to_string()), values.collect());
            };
            for (ledger, name) in LEDGERS.iter().enumerate() {
                add(name, &|moment| moment.live[ledger]);
            }
            for (name, ledgers) in SUMS {
                add(name, &|moment| ledgers.iter().map(|&ledger| moment.live[ledger]).sum());
            }
            add("device_blocks", &|moment| moment.touched);
        }
        for (gpu, readings) in &self.model.counted.readings {
            all.insert(("sampled_used".to_owned(), gpu.to_string()), readings.used.clone());
            all.insert(("sampled_process".to_owned(), gpu.to_string()), readings.process.clone());
        }
        all.retain(|_, values| values.iter().any(|&(_, value)| value > 0));
        all
    }

    /// At the moment of a bucket's greatest value, ledgers held what adds up to it.
    fn check_parts(&self, scope: usize, sum: usize, found: &Value) -> Checked {
        let ledgers = SUMS[sum].1;
        let moments = &self.figures(scope).moments;
        let mut held_at = vec![Vec::new(); self.buckets];
        let mut last = moments[0].live;
        let mut changes = moments.iter().peekable();
        for (bucket, held) in held_at.iter_mut().enumerate() {
            held.push(last);
            while let Some(next) = changes.next_if(|next| self.bucket(next.stamp) == bucket) {
                last = next.live;
                held.push(last);
            }
        }
        for (bucket, held) in held_at.iter().enumerate() {
            let told = ledgers.map(|ledger| {
                let part = &found["at_max"][LEDGERS[ledger]];
                part.as_array().map_or(0, |part| part[bucket].as_u64().unwrap())
            });
            prop_assert_eq!(&json!(told.iter().sum::<u64>()), &found["max_bytes"][bucket]);
            let was = |live: &[u64; 9]| ledgers.map(|ledger| live[ledger]) == told;
            prop_assert!(held.iter().any(was), "bucket {}: never {:?}", bucket, told);
        }
        Ok(())
    }

    fn check_timeline(&self, report: &Value) -> Checked {
        let timeline = &report["timeline"];
        let starts = (0..self.buckets as u64).map(|bucket| self.zero + bucket * self.width);
        let edges: Vec<u64> = starts.chain([self.end]).collect();
        prop_assert_eq!(numbers(&timeline["edges_ns"]), edges);
        let mut expected = self.series();
        for found in timeline["series"].as_array().unwrap() {
            let key = (found["name"].as_str().unwrap().to_owned(), found["gpu"].to_string());
            let values = expected.remove(&key);
            prop_assert!(values.is_some(), "{:?} is not expected", key);
            let [min, max, last] = self.levels(&values.unwrap());
            for (name, expected) in [("min_bytes", min), ("max_bytes", max), ("last_bytes", last)] {
                prop_assert_eq!(numbers(&found[name]), expected, "{} of {:?}", name, key);
            }
            if let Some(sum) = SUMS.iter().position(|(name, _)| *name == key.0) {
                let scope = (1..SCOPES.len()).find(|&scope| found["gpu"] == json!(gpu_of(scope)));
                self.check_parts(scope.unwrap_or(0), sum, found)?;
            }
        }
        prop_assert!(expected.is_empty(), "missing: {:?}", expected.keys());
        for (name, purposes) in [("alloc_ns", 0..1), ("free_ns", 1..2), ("copy_ns", 2..4)] {
            let mut time = vec![0; self.buckets];
            for call in self.model.counted.calls[purposes].iter().flatten() {
                time[self.bucket(call.stamp)] += call.length;
            }
            prop_assert_eq!(numbers(&timeline["calls"][name]), time, "{}", name);
        }
        Ok(())
    }

    fn check_samples(&self, report: &Value) -> Checked {
        let readings = self.model.counted.readings.iter();
        let rows = readings.filter(|(_, readings)| !readings.counted.is_empty());
        let rows: Value = rows
            .map(|(gpu, readings)| {
                let used = readings.counted.iter().map(|&(used, _)| used);
                let process: Vec<u64> = readings.counted.iter().filter_map(|&(_, of)| of).collect();
                json!({
                    "gpu": gpu,
                    "samples": readings.counted.len(),
                    "last_used_bytes": used.clone().next_back(),
                    "max_used_bytes": used.max(),
                    "total_bytes": 1 << 20,
                    "last_process_bytes": process.last(),
                    "max_process_bytes": process.iter().max(),
                })
            })
            .collect();
        same("samples", &report["sampled"], &rows)
    }
}

// Address ranges

/// Holes of one range: the row that is told, when anything is mapped in it.
fn range(start: u64, end: u64, mapped: &[(u64, u64)]) -> Option<Value> {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for &(from, to) in mapped {
        match runs.last_mut() {
            Some(last) if last.1 == from => last.1 = to,
            _ => runs.push((from, to)),
        }
    }
    let ends = [start].into_iter().chain(runs.iter().map(|run| run.1));
    let holes: Vec<u64> = runs.iter().zip(ends).map(|(run, end)| run.0 - end).collect();
    let mut pin = (0, Value::Null);
    for (place, &(from, to)) in runs.iter().enumerate() {
        let Some(&behind) = holes.get(place + 1).filter(|_| holes[place] > 0) else { continue };
        let merged = holes[place] + (to - from) + behind;
        if merged > pin.0 {
            pin = (merged, json!({"address": format!("{from:#x}"), "bytes": to - from}));
        }
    }
    (!mapped.is_empty()).then(|| {
        json!({
            "address": format!("{start:#x}"),
            "bytes": end - start,
            "mapped_bytes": mapped.iter().map(|(from, to)| to - from).sum::<u64>(),
            "free_bytes": holes.iter().sum::<u64>(),
            "largest_free_bytes": holes.iter().max(),
            "pin": pin.1,
        })
    })
}

impl Expected {
    fn check_ranges(&self, found: &Value) -> Checked {
        let ranges = self.model.ranges();
        let rows = ranges.iter().filter_map(|(&(start, end), mapped)| range(start, end, mapped));
        let mut rows: Vec<Value> = rows.collect();
        let number = |row: &Value, key: &str| row[key].as_u64().unwrap();
        let sum = |key: &str| rows.iter().map(|row| number(row, key)).sum::<u64>();
        let expected = json!({
            "ranges": rows.len(),
            "reserved_bytes": sum("bytes"),
            "mapped_bytes": sum("mapped_bytes"),
            "free_bytes": sum("free_bytes"),
            "unmapped_physical_bytes": self.model.unmapped_physical(),
        });
        same("ranges", &among(found, &expected), &expected)?;
        rows.retain(|row| row["free_bytes"] != 0);
        rows.sort_by_key(|row| std::cmp::Reverse(number(row, "free_bytes")));
        same("worst ranges", &found["worst_ranges"], &json!(rows))?;
        // The end was looked at too, unless nothing seems to have changed: see the ignored test.
        let kept = |of: &Value| {
            let bytes = |key: &str| of[key].as_u64().unwrap_or(0);
            bytes("free_bytes") + bytes("unmapped_physical_bytes")
        };
        prop_assert!(self.late_range || kept(&found["worst"]) >= kept(found));
        Ok(())
    }

    fn check(&self, report: &Value) -> Checked {
        self.check_counts(report)?;
        self.check_ledgers(report)?;
        self.check_scope(0, report)?;
        let rows = report["by_gpu"].as_array().unwrap();
        let used = self.used();
        let gpus: Vec<&Value> = rows.iter().map(|row| &row["gpu"]).collect();
        let expected: Vec<Value> = used.iter().map(|&scope| json!(gpu_of(scope))).collect();
        prop_assert_eq!(gpus, expected.iter().collect::<Vec<_>>());
        for (row, scope) in rows.iter().zip(used) {
            self.check_scope(scope, row)?;
        }
        self.check_stalls(report)?;
        self.check_timeline(report)?;
        self.check_samples(report)?;
        self.check_ranges(&report["fragmentation"]["vmm"])
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 250, failure_persistence: None,
        ..ProptestConfig::default() })]

    #[test]
    fn every_figure_is_that_of_a_full_replay(case in case()) {
        let report = report_on(&case);
        Expected::of(&case).check(&report)?;
    }

    /// Whatever an event says, the report is valid and no longer than that of any other log.
    #[test]
    fn what_is_made_of_changed_bytes_is_valid(
        case in case(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
    ) {
        let mut bytes = written(&case);
        let chunks = bytes.chunks_mut(CHUNK_SIZE).skip(1);
        let mut payload: Vec<&mut u8> =
            chunks.flat_map(|chunk| chunk[chunk::BASE..][..300].iter_mut()).collect();
        for (place, value) in changes {
            let place = place.index(payload.len());
            *payload[place] = value;
        }
        let report = report_of(&case, &bytes);
        assert_valid(&report);
        let edges = report["timeline"]["edges_ns"].as_array().unwrap();
        prop_assert!(edges.len() <= 1_025 && edges.is_sorted_by_key(|edge| edge.as_i64()));
    }
}

#[test]
fn reports_on_logs_at_random_are_valid() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    for _ in 0..10 {
        let tree = case().new_tree(&mut runner).unwrap();
        assert_valid(&report_on(&tree.current()));
    }
}
