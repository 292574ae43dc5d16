//! Figures that pictures are drawn from, made up.
#![allow(dead_code, reason = "each test uses a part of it")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use gmmtrace::analysis::names::SiteName;
use gmmtrace::live::{CopyKey, Direction, HostMemory, Ledger, Level, Moved, RangeGaps, Sum};
use gmmtrace::render::picture::{Facts, Subject};
use gmmtrace::report::{
    AgeReport, BlocksReport, Composition, Doubt, Figure, FragmentationReport, HeldReport,
    MarkReport, MovedReport, Scope, ScopeReport, SeriesReport, SizeClassReport, SumReport,
    TimelineReport, VmmReport,
};
use gmmtrace::units::{Bytes, Gpu, Nanos};

/// What [`Facts`] borrows.
pub struct Made {
    pub subject: Subject,
    pub timeline: TimelineReport,
    pub total: ScopeReport,
    pub marks: Vec<MarkReport>,
}

impl Made {
    pub fn facts(&self) -> Facts<'_> {
        Facts {
            subject: &self.subject,
            timeline: &self.timeline,
            total: &self.total,
            marks: &self.marks,
        }
    }
}

pub fn site(library: &str, api: &str, call: Option<&str>) -> SiteName {
    SiteName {
        library: Some(library.into()),
        api: Some(api.into()),
        call: call.map(Into::into),
        caller: None,
        others: 0,
    }
}

pub fn held(ledger: Ledger, site: SiteName, count: u64, bytes: u64) -> HeldReport {
    HeldReport { ledger, site, count, bytes: Bytes(bytes), oldest: Some(Nanos(1)) }
}

/// Nothing ever happened.
pub fn empty() -> Made {
    let blocks = BlocksReport::default();
    Made {
        subject: Subject {
            process: "python infer.py (pid 77 on host)".to_owned(),
            bound: false,
            copies_bound: false,
            doubt: Doubt::Missing,
            calibrated: true,
        },
        timeline: TimelineReport::default(),
        total: ScopeReport {
            scope: Scope::All,
            sums: Vec::new(),
            ledgers: Vec::new(),
            live_at_end: Vec::new(),
            copies: Vec::new(),
            sets: MovedReport::default(),
            fragmentation: FragmentationReport {
                device: blocks,
                device_worst: None,
                pins: Vec::new(),
                pins_at: None,
                vmm: None,
                vmm_worst: None,
                stuck: None,
                pool: None,
                looked: 0,
            },
        },
        marks: Vec::new(),
    }
}

pub fn series(figure: Figure, values: &[u64]) -> SeriesReport {
    let levels = values.iter().map(|&max| Level { min: max / 2, max, last: max });
    let (levels, parts) = (levels.collect(), Vec::new());
    SeriesReport { figure, scope: Scope::All, levels, parts }
}

/// A sum over time, with its peak and composition.
pub fn sum(made: &mut Made, parts: Vec<(Ledger, Vec<u64>)>, held: Vec<HeldReport>) {
    let buckets = made.timeline.len();
    let whole = |bucket: usize| {
        parts.iter().fold(0, |sum: u64, (_, values)| sum.saturating_add(values[bucket]))
    };
    let whole: Vec<u64> = (0..buckets).map(whole).collect();
    let peak = whole.iter().copied().max().unwrap();
    let bucket = whole.iter().position(|&value| value == peak).unwrap();
    let mut all = series(Figure::Sum(Sum::Gpu), &whole);
    for (ledger, values) in &parts {
        made.timeline.series.push(series(Figure::Ledger(*ledger), values));
    }
    all.parts = parts;
    made.timeline.series.push(all);
    let edges = &made.timeline.edges;
    let classes = (20..27).map(|power| SizeClassReport {
        from: Bytes(1 << power),
        to: Bytes((1 << (power + 1)) - 1),
        count: power,
        bytes: Bytes(power << power),
    });
    let ages = edges.windows(2).step_by(buckets.div_ceil(8)).map(|edges| AgeReport {
        from: edges[0],
        to: edges[1],
        count: 3,
        bytes: Bytes(peak / 8),
    });
    made.total.sums.push(SumReport {
        sum: Sum::Gpu,
        live: Bytes(*whole.last().unwrap()),
        peak: Bytes(peak),
        peak_at: Some(Nanos(edges[bucket].0.midpoint(edges[bucket + 1].0))),
        at_peak: Composition { held, by_size: classes.collect(), by_age: ages.collect() },
        at_end: Composition::default(),
    });
}

/// Everything that a picture can show.
pub fn full(buckets: usize, gpus: u32) -> Made {
    let mut made = empty();
    made.timeline.edges = (0..=buckets as i64).map(|index| Nanos(index * 12_345_678)).collect();
    let wave = |scale: u64, speed: f64| -> Vec<u64> {
        let value = |index: usize| {
            let x = index as f64 / buckets as f64;
            ((x * speed).sin().abs() * 0.4 + x.sqrt() * 0.6) * scale as f64
        };
        (0..buckets).map(|index| value(index) as u64).collect()
    };
    let parts = vec![
        (Ledger::Device, wave(3 << 30, 9.0)),
        (Ledger::AsyncPool, wave(1 << 30, 31.0)),
        (Ledger::VmmPhysical, wave(2 << 30, 17.0)),
    ];
    let device = parts[0].1.clone();
    let sites = (1..30u64).map(|index| {
        let name = format!("/opt/lib/python3/site-packages/torch/lib/libsomething_{index}.so");
        let ledger = [Ledger::Device, Ledger::AsyncPool, Ledger::VmmPhysical][index as usize % 3];
        held(ledger, site(&name, "cuMemAlloc_v2", Some("cudaMalloc")), index, (3 << 30) / index)
    });
    sum(&mut made, parts.clone(), sites.collect());
    for gpu in 0..gpus {
        let mut one = made.timeline.series(Figure::Sum(Sum::Gpu), Scope::All).unwrap().clone();
        one.scope = Scope::On(Some(Gpu(gpu)));
        let share = u64::from(gpu) + 2;
        for level in &mut one.levels {
            level.max /= share;
        }
        for (_, values) in &mut one.parts {
            values.iter_mut().for_each(|value| *value /= share);
        }
        made.timeline.series.push(one);
    }
    let all = &mut made.timeline.series;
    all.push(series(Figure::Ledger(Ledger::Pinned), &wave(300 << 20, 5.0)));
    all.push(series(Figure::Ledger(Ledger::Registered), &wave(200 << 20, 8.0)));
    all.push(series(Figure::Ledger(Ledger::Managed), &wave(100 << 20, 3.0)));
    let touched: Vec<u64> = device.iter().map(|value| value * 5 / 4 + (2 << 20)).collect();
    all.push(series(Figure::Touched, &touched));
    let mut process = series(Figure::SampledProcess, &wave(7 << 30, 6.0));
    let mut used = series(Figure::SampledUsed, &wave(9 << 30, 6.0));
    (process.scope, used.scope) = (Scope::On(Some(Gpu(0))), Scope::On(Some(Gpu(0))));
    all.extend([process, used]);
    let end = *made.timeline.edges.last().unwrap();
    made.marks = (0..6)
        .map(|index| MarkReport {
            at: Nanos(end.0 / 7 * index),
            text: format!("epoch {index}: loading"),
            thread: Some(1),
        })
        .collect();
    let blocks = BlocksReport {
        requested: Bytes(2 << 30),
        touched: Bytes(3 << 30),
        sparse: 12,
        sparse_used: Bytes(1 << 20),
    };
    let found = &mut made.total.fragmentation;
    found.device = blocks;
    found.device_worst = Some((Nanos(end.0 / 3), blocks));
    found.vmm = Some(VmmReport {
        ranges: 3,
        reserved: Bytes(160 << 30),
        mapped: Bytes(5 << 30),
        free: Bytes(2 << 30),
        unmapped_physical: Bytes(20 << 20),
        worst: (1..4u64)
            .map(|index| RangeGaps {
                address: 0x7f00_0000_0000 + index,
                bytes: Bytes(40 << 30),
                mapped: Bytes((3 << 30) / index),
                free: Bytes((1 << 30) / index),
                largest: Bytes((1 << 29) / index),
                pin: None,
            })
            .collect(),
    });
    made.total.copies = copies();
    made
}

fn copies() -> Vec<(CopyKey, MovedReport)> {
    let kinds = [
        (Direction::HostToDevice, false, Some(HostMemory::Pageable), 2u64 << 30, 321u64),
        (Direction::HostToDevice, true, Some(HostMemory::Pinned), 3 << 30, 12_345),
        (Direction::DeviceToHost, true, Some(HostMemory::Registered), 5 << 20, 7),
        (Direction::DeviceToDevice, true, None, 1 << 30, 99),
    ];
    let report = |(direction, asynchronous, host, bytes, count)| {
        let key = CopyKey { direction, asynchronous, host };
        let by_size = (3..9).map(|power| SizeClassReport {
            from: Bytes(1 << (3 * power)),
            to: Bytes((1 << (3 * power + 3)) - 1),
            count,
            bytes: Bytes(bytes / (power + 1)),
        });
        let moved = Moved { count, bytes, empty: 0 };
        let (total, max) = (Nanos(12_345_678), Nanos(1_234_567));
        (key, MovedReport { moved, total, max, by_size: by_size.collect() })
    };
    kinds.into_iter().map(report).collect()
}
