//! Readings of device memory, which include what no ledger can see.

use std::collections::BTreeMap;

use super::ledger::GpuSlot;
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

/// Readings by device.
#[derive(Debug, Default)]
pub struct Samples(pub BTreeMap<GpuSlot, Sampled>);

impl Samples {
    /// A reading. `process_used` is 0 for unknown, else bytes and 1.
    pub fn add(&mut self, device: i64, used: Bytes, total: Bytes, process_used: u64) {
        let sampled = self.0.entry(GpuSlot::of(device)).or_default();
        sampled.count += 1;
        sampled.last_used = used;
        sampled.max_used = sampled.max_used.max(used);
        sampled.total = total;
        if let Some(process) = process_used.checked_sub(1).map(Bytes) {
            sampled.last_process = Some(process);
            sampled.max_process = sampled.max_process.max(Some(process));
        }
    }
}
