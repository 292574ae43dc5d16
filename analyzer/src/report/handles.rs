//! Objects without bytes of their own, and what NVML shows beside the ledgers.

use super::build::{Builder, gpu};
use crate::analysis::names::SiteName;
use crate::analysis::objects;
use crate::live::{
    Class, Counts, Explained, Gap, GraphCounts, GraphTold, Made, ObjectCounts, Step,
};
use crate::units::{Bytes, Gpu, Nanos};

/// Objects.
#[derive(Clone, Debug)]
pub struct HandlesReport {
    /// Contexts.
    pub contexts: Counts,
    /// By class.
    pub classes: Vec<(Class, ObjectCounts)>,
    /// What is there at the end, by class and call site, the most first.
    pub live: Vec<MadeReport>,
    /// Limits that were set, by CUDA's number, with their last value.
    pub limits: Vec<(u64, Bytes)>,
}

/// Objects of one class and one kind of call site.
#[derive(Clone, Debug)]
pub struct MadeReport {
    /// The class.
    pub class: Class,
    /// Whose calls.
    pub site: SiteName,
    /// How many.
    pub count: u64,
    /// When the oldest was made.
    pub oldest: Nanos,
}

/// Graphs with memory nodes, and what was captured.
#[derive(Clone, Debug, Default)]
pub struct GraphsReport {
    /// What was counted.
    pub counts: GraphCounts,
    /// Bytes of the allocation nodes of executables that are there at the end.
    pub executable_bytes: Bytes,
    /// What the driver told, by device.
    pub told: Vec<(Option<Gpu>, GraphTold)>,
}

/// What NVML shows for the process, explained.
#[derive(Clone, Debug, Default)]
pub struct GapsReport {
    /// The reading in which the process used most.
    pub max: Option<GapReport>,
    /// The last reading.
    pub last: Option<GapReport>,
    /// Rises and falls that only objects explain, by time; the largest of them.
    pub steps: Vec<StepReport>,
    /// How many there were.
    pub step_count: u64,
}

/// One reading.
#[derive(Clone, Debug)]
pub struct GapReport {
    /// When.
    pub at: Nanos,
    /// What NVML shows for the process, on all devices.
    pub process: Bytes,
    /// What ledgers and the driver's words explain.
    pub explained: Explained,
    /// Estimates, by what was made when it rose.
    pub objects: Vec<(Vec<Made>, Bytes)>,
    /// What is left; below 0 when more is explained than shown.
    pub unexplained: i64,
}

/// A change between two readings.
#[derive(Clone, Debug)]
pub struct StepReport {
    /// The reading before, if there was one.
    pub since: Option<Nanos>,
    /// The reading.
    pub at: Nanos,
    /// The change of what NVML shows.
    pub change: i64,
    /// The part of it that no ledger explains.
    pub unexplained: i64,
    /// What was made between.
    pub made: Vec<(Made, u64)>,
    /// What was destroyed between.
    pub destroyed: Vec<(Made, u64)>,
}

pub(super) fn handles(builder: &Builder<'_>) -> HandlesReport {
    let objects = &builder.live.objects;
    let live = objects::now(builder.live, &builder.names).into_iter();
    let live = live.map(|made| MadeReport {
        class: made.class,
        site: builder.in_words(made.site),
        count: made.count,
        oldest: builder.clock.at(made.oldest),
    });
    HandlesReport {
        contexts: builder.live.contexts.counts,
        classes: Class::ALL.iter().map(|&class| (class, objects.counts(class))).collect(),
        live: live.collect(),
        limits: objects.limits.iter().map(|(&limit, &value)| (limit, value)).collect(),
    }
}

pub(super) fn graphs(builder: &Builder<'_>) -> GraphsReport {
    let graphs = &builder.live.graphs;
    GraphsReport {
        counts: graphs.counts,
        executable_bytes: Bytes(graphs.executable_bytes()),
        told: graphs.told.iter().map(|(&slot, &told)| (gpu(slot), told)).collect(),
    }
}

pub(super) fn gaps(builder: &Builder<'_>) -> GapsReport {
    let steps = &builder.live.steps;
    let one = |gap: &Gap| GapReport {
        at: builder.clock.at(gap.at),
        process: gap.process,
        explained: gap.explained,
        objects: gap.objects.clone(),
        unexplained: gap.unexplained(),
    };
    let step = |step: &Step| StepReport {
        since: step.since.map(|since| builder.clock.at(since)),
        at: builder.clock.at(step.at),
        change: step.change,
        unexplained: step.unexplained,
        made: step.made.iter().map(|(&made, &count)| (made, count)).collect(),
        destroyed: step.destroyed.iter().map(|(&made, &count)| (made, count)).collect(),
    };
    GapsReport {
        max: steps.max.as_ref().map(one),
        last: steps.last_gap.as_ref().map(one),
        steps: steps.steps.iter().map(step).collect(),
        step_count: steps.count,
    }
}
