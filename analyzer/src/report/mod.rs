//! The model of a report: what every renderer draws from, with times in nanoseconds since the
//! trace's time zero. What is not known is `None`, never 0.

mod build;
mod coverage;
mod handles;
mod pools;
mod read;
mod scope;
mod scopes;
mod stalls;
mod timeline;
mod timelines;
mod torch;

pub use build::build;
pub use coverage::{Coverage, Loss, PassedName};
pub use handles::{GapReport, GapsReport, GraphsReport, HandlesReport, MadeReport, StepReport};
pub use pools::{PoolReport, PoolWaste, PoolsReport, ResidencyReport};
pub(crate) use read::apply;
pub use read::read;
pub use scope::{
    AgeReport, BlocksReport, Composition, FragmentationReport, LedgerReport, MovedReport,
    PinReport, Scope, ScopeReport, SizeClassReport, StuckReport, SumReport, VmmReport,
};
pub use stalls::{LengthClass, LongCallReport, StallReport};
pub use timeline::{CallTime, Figure, SeriesReport, TimelineReport};
pub use torch::{ABSENT, FailureReport, TorchDeviceReport, TorchReport};

use std::sync::Arc;

use gmmtrace_format::definition::Layer;

use crate::analysis::names::SiteName;
use crate::input::{GpuFacts, Process, WriterState};
use crate::live::{Ledger, Share};
use crate::units::{Bytes, Gpu, Nanos};

/// Why figures are bounds only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// Events are missing.
    Missing,
    /// Captured streams were too many to follow: what is counted once may have run never, or often.
    Captures,
}

impl Doubt {
    /// As reports say it.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Missing => "events are missing",
            Self::Captures => "captures could not be followed",
        }
    }
}

/// Everything that is said about one log.
#[derive(Clone, Debug)]
pub struct Report {
    /// The log.
    pub trace: Trace,
    /// The process.
    pub process: ProcessFacts,
    /// What was seen and what was not.
    pub coverage: Coverage,
    /// The window of time that was counted in.
    pub window: WindowReport,
    /// Whether live figures are bounds only, because events that change them may be missing.
    pub bound: bool,
    /// Whether figures of copies and sets are bounds only. They are wherever live figures are: what
    /// they lie between follows from the live set, and whatever loses the one may lose the other.
    pub copies_bound: bool,
    /// Why figures are bounds, where they are.
    pub doubt: Doubt,
    /// Memory, copies and sets of all devices together.
    pub total: ScopeReport,
    /// The same of each device that was used.
    pub by_gpu: Vec<ScopeReport>,
    /// Figures over time.
    pub timeline: TimelineReport,
    /// Time in calls, by what they are for.
    pub stalls: Vec<StallReport>,
    /// Successful calls with, or answered by, a null pointer.
    pub null_calls: u64,
    /// Frees of what was not live.
    pub unknown_frees: OddReport,
    /// Allocations where something was live.
    pub overlaps: OddReport,
    /// Graphs.
    pub graphs: GraphsReport,
    /// Live blocks of which a later one takes a part: their free was not seen.
    pub stale: Share,
    /// Pools of stream-ordered memory.
    pub pools: PoolsReport,
    /// Where managed memory was asked to be.
    pub residency: ResidencyReport,
    /// Readings of device memory.
    pub sampled: Vec<SampledReport>,
    /// Objects without bytes of their own.
    pub handles: HandlesReport,
    /// What NVML shows for the process, explained.
    pub gap: GapsReport,
    /// PyTorch's caching allocator.
    pub torch: TorchReport,
    /// Copies that failed.
    pub failed_copies: u64,
    /// Sets that failed.
    pub failed_sets: u64,
    /// Calls by entry point.
    pub calls: Vec<CallReport>,
    /// Marks, as far as they are kept.
    pub marks: Vec<MarkReport>,
    /// How many marks there were.
    pub mark_count: u64,
    /// Ranges by name.
    pub ranges: Vec<RangeReport>,
    /// Ranges that were not counted.
    pub uncounted_ranges: u64,
    /// Calls that had not returned.
    pub in_flight: Vec<InFlightReport>,
}

/// The log itself.
#[derive(Clone, Debug)]
pub struct Trace {
    /// Where it was found.
    pub path: String,
    /// Its length.
    pub size: Bytes,
    /// Whether it is still being written.
    pub state: WriterState,
    /// Whether it holds everything up to the process's end.
    pub complete: bool,
    /// Version of its format.
    pub format: String,
    /// Events in it.
    pub events: u64,
    /// Whether times could be calibrated; if not, they are in ticks.
    pub calibrated: bool,
}

/// The process that wrote it.
#[derive(Clone, Debug)]
pub struct ProcessFacts {
    /// What the header says.
    pub header: Process,
    /// From time zero to its exit, else to the last event.
    pub duration: Option<Nanos>,
    /// The driver's version.
    pub driver: Option<String>,
    /// The machine's GPUs.
    pub gpus: Vec<(Gpu, GpuFacts)>,
    /// Threads that made calls.
    pub threads: u64,
}

/// What was counted: events that took effect in a window. A log without a window has no ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WindowReport {
    /// Its first moment.
    pub since: Option<Nanos>,
    /// Its last moment.
    pub until: Option<Nanos>,
}

/// Oddities of one kind.
#[derive(Clone, Debug)]
pub struct OddReport {
    /// How many.
    pub count: u64,
    /// The first few.
    pub examples: Vec<OddExample>,
}

/// One oddity.
#[derive(Clone, Debug)]
pub struct OddExample {
    /// The ledger of the call.
    pub ledger: Ledger,
    /// Address or handle.
    pub place: u64,
    /// The call.
    pub site: SiteName,
    /// When.
    pub at: Nanos,
}

/// Readings of one device.
#[derive(Clone, Copy, Debug)]
pub struct SampledReport {
    /// The device.
    pub gpu: Option<Gpu>,
    /// The numbers.
    pub sampled: crate::live::Sampled,
}

/// What one kind of call site holds.
#[derive(Clone, Debug)]
pub struct HeldReport {
    /// Of which ledger.
    pub ledger: Ledger,
    /// Whose calls.
    pub site: SiteName,
    /// Blocks.
    pub count: u64,
    /// Their bytes.
    pub bytes: Bytes,
    /// When the oldest was made, where that is asked.
    pub oldest: Option<Nanos>,
}

/// Calls of one entry point.
#[derive(Clone, Debug)]
pub struct CallReport {
    /// The entry point.
    pub api: Option<Arc<str>>,
    /// Its library.
    pub layer: Option<Layer>,
    /// How many entry points this stands for that are not listed; 0 for one that is.
    pub others: u64,
    /// Calls.
    pub calls: u64,
    /// Those that failed.
    pub failed: u64,
    /// Their time together.
    pub total: Nanos,
    /// The longest.
    pub max: Nanos,
}

impl CallReport {
    /// What it is about, in words.
    #[must_use]
    pub fn words(&self) -> String {
        match (self.others, &self.api) {
            (0, Some(api)) => api.to_string(),
            (0, None) => "unknown".to_owned(),
            (others, _) => format!("{others} other entry points"),
        }
    }
}

/// A mark.
#[derive(Clone, Debug)]
pub struct MarkReport {
    /// When.
    pub at: Nanos,
    /// What it said.
    pub text: String,
    /// Kernel id of the thread.
    pub thread: Option<u32>,
}

/// Ranges of one name.
#[derive(Clone, Debug)]
pub struct RangeReport {
    /// The name.
    pub name: String,
    /// Ranges that ended.
    pub count: u64,
    /// Their length together.
    pub total: Nanos,
    /// Ranges that did not end.
    pub open: u64,
}

/// A call that had not returned.
#[derive(Clone, Debug)]
pub struct InFlightReport {
    /// The entry point.
    pub api: Option<Arc<str>>,
    /// Its library.
    pub layer: Option<Layer>,
    /// Kernel id of the thread.
    pub thread: Option<u32>,
    /// When it began.
    pub since: Nanos,
    /// The argument that matters.
    pub argument: u64,
}

/// A layer's name in reports.
#[must_use]
pub const fn layer_name(layer: Layer) -> &'static str {
    match layer {
        Layer::Driver => "driver",
        Layer::Runtime => "runtime",
        Layer::Own => "gmmtrace",
        Layer::Framework => "framework",
    }
}
