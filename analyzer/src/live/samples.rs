//! Readings of device memory, which include what no ledger can see.

use std::collections::BTreeMap;

use super::ledger::GpuSlot;
use super::series::Series;
use crate::units::Bytes;

/// All readings of one device.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sampled {
    /// How many there are.
    pub count: u64,
    /// Bytes used on the device, in the last reading.
    pub last_used: Bytes,
    /// The most of all readings.
    pub max_used: Bytes,
    /// The device's memory.
    pub total: Bytes,
    /// Bytes that this process used in the last reading that knew.
    pub last_process: Option<Bytes>,
    /// The most of all readings that knew.
    pub max_process: Option<Bytes>,
}

/// Readings of one device over time: each stands until the next.
#[derive(Debug, Default)]
pub struct SampledSeries {
    /// Bytes used on the device by anybody.
    pub used: Series,
    /// Bytes that this process used.
    pub process: Series,
}

/// A reading.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    /// Bytes used on the device.
    pub used: Bytes,
    /// The device's memory.
    pub total: Bytes,
    /// 0 for unknown, else bytes that this process used, and 1.
    pub process_used: u64,
}

/// Readings by device.
#[derive(Debug, Default)]
pub struct Samples {
    /// In numbers.
    pub totals: BTreeMap<GpuSlot, Sampled>,
    /// Over time.
    pub series: BTreeMap<GpuSlot, SampledSeries>,
}

impl Samples {
    /// A reading, in a bucket of the time axis.
    pub fn add(&mut self, device: i64, reading: Reading, bucket: usize) {
        let Reading { used, total, process_used } = reading;
        let slot = GpuSlot::of(device);
        let series = self.series.entry(slot).or_default();
        series.used.set(bucket, used.0);
        let sampled = self.totals.entry(slot).or_default();
        sampled.count += 1;
        sampled.last_used = used;
        sampled.max_used = sampled.max_used.max(used);
        sampled.total = total;
        if let Some(process) = process_used.checked_sub(1).map(Bytes) {
            series.process.set(bucket, process.0);
            sampled.last_process = Some(process);
            sampled.max_process = sampled.max_process.max(Some(process));
        }
    }

    /// The time axis has doubled its buckets.
    pub fn halve(&mut self) {
        for series in self.series.values_mut() {
            series.used.halve();
            series.process.halve();
        }
    }

    /// Begins to count anew; the last readings still stand.
    pub fn begin(&mut self) {
        self.totals.clear();
        for series in self.series.values_mut() {
            let standing = |series: &Series| series.levels().last().map_or(0, |level| level.last);
            series.used.begin(standing(&series.used));
            series.process.begin(standing(&series.process));
        }
    }
}
