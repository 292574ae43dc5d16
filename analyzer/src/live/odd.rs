//! What failed or does not fit the live set, counted, with a few examples.

use super::ledger::Ledger;
use super::sites::SiteIndex;
use crate::units::Ticks;

/// Examples kept of each oddity.
const EXAMPLES: usize = 8;

/// One case.
#[derive(Clone, Copy, Debug)]
pub struct Example {
    /// The ledger that the call belongs to.
    pub ledger: Ledger,
    /// The address or handle.
    pub place: u64,
    /// The call.
    pub site: SiteIndex,
    /// When.
    pub at: Ticks,
}

/// One kind of oddity.
#[derive(Clone, Debug, Default)]
pub struct Oddity {
    /// How often.
    pub count: u64,
    /// The first few.
    pub examples: Vec<Example>,
}

impl Oddity {
    /// Counts a case.
    pub fn note(&mut self, example: Example) {
        self.count += 1;
        if self.examples.len() < EXAMPLES {
            self.examples.push(example);
        }
    }
}

/// Everything odd.
#[derive(Clone, Debug, Default)]
pub struct Odd {
    /// Successful calls with, or answered by, a null pointer.
    pub null_calls: u64,
    /// Successful frees of what is not live.
    pub unknown_frees: Oddity,
    /// Allocations at a place where something is live.
    pub overlaps: Oddity,
    /// Copies that failed.
    pub failed_copies: u64,
    /// Sets that failed.
    pub failed_sets: u64,
}
