//! Where managed memory was asked to be. The live set does not change by it.

use std::collections::BTreeMap;

use crate::units::Bytes;

/// Rows of each kind at most: a log may name any place.
const ROWS: usize = 256;

/// A place as calls name it: a location type and a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// 1 is a device, 2 the host, 3 a host NUMA node, 4 that of the calling thread.
    pub location_type: u64,
    /// Number of the device or node.
    pub location: i64,
}

/// Calls of one kind to one place, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// How many.
    pub count: u64,
    /// How much.
    pub bytes: u64,
}

/// What was asked.
#[derive(Debug, Default)]
pub struct Residency {
    /// Prefetches by target.
    pub prefetches: BTreeMap<Place, Asked>,
    /// Advice by its number and the place that it is about.
    pub advice: BTreeMap<(u64, Place), Asked>,
    /// Prefetches that failed.
    pub failed_prefetches: u64,
    /// Advice that failed.
    pub failed_advice: u64,
    /// Calls past the number of rows.
    pub uncounted: u64,
}

impl Residency {
    /// Counts a prefetch.
    pub fn prefetch(&mut self, place: Place, bytes: Bytes, failed: bool) {
        if failed {
            self.failed_prefetches += 1;
        } else if !count(&mut self.prefetches, place, bytes) {
            self.uncounted += 1;
        }
    }

    /// Counts a piece of advice.
    pub fn advise(&mut self, advice: u64, place: Place, bytes: Bytes, failed: bool) {
        if failed {
            self.failed_advice += 1;
        } else if !count(&mut self.advice, (advice, place), bytes) {
            self.uncounted += 1;
        }
    }
}

fn count<K: Ord>(rows: &mut BTreeMap<K, Asked>, key: K, bytes: Bytes) -> bool {
    if rows.len() >= ROWS && !rows.contains_key(&key) {
        return false;
    }
    let row = rows.entry(key).or_default();
    row.count += 1;
    row.bytes = row.bytes.saturating_add(bytes.0);
    true
}
