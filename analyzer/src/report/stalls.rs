//! Time in calls, by what they are for.

use crate::analysis::names::SiteName;
use crate::live::Purpose;
use crate::units::{Bytes, Nanos};

/// Calls of one purpose.
#[derive(Clone, Debug)]
pub struct StallReport {
    /// Which.
    pub purpose: Purpose,
    /// Calls, failed ones included.
    pub count: u64,
    /// Their time together.
    pub total: Nanos,
    /// The longest.
    pub max: Nanos,
    /// By length, the shortest first.
    pub by_length: Vec<LengthClass>,
    /// The longest calls, the longest first.
    pub longest: Vec<LongCallReport>,
}

/// Calls that took between two lengths of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LengthClass {
    /// No less than this.
    pub from: Nanos,
    /// Less than this; the last class has no end.
    pub to: Option<Nanos>,
    /// Calls.
    pub count: u64,
    /// Their time together.
    pub total: Nanos,
}

/// A call that took long.
#[derive(Clone, Debug)]
pub struct LongCallReport {
    /// When it began.
    pub at: Nanos,
    /// How long it took.
    pub length: Nanos,
    /// Bytes that it was about, where it says so.
    pub bytes: Option<Bytes>,
    /// Whose call.
    pub site: SiteName,
    /// Kernel id of the thread.
    pub thread: Option<u32>,
}
