//! Graphs: what their nodes will take, what was captured into them, and what their launches took.
//!
//! ```text
//! captured allocation or free ──▶ pending, by the stream that the capture began on
//! capture ends ──▶ graph ◀── node added by hand
//!                    │ instantiated
//!                    ▼
//!               executable ──launch──▶ blocks of the ledger `graph`
//! ```
//!
//! A node takes memory when its graph runs: only launches book. Every allocation of a launch is
//! booked before every free of it, so a peak within one launch is an upper bound.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::ledger::GpuSlot;
use super::sites::SiteIndex;
use super::traffic::Moved;
use crate::units::{Address, Bytes, Handle};

/// Nodes of one graph that are kept, and of all executables together: a log may say anything, and
/// a launch costs time for each of its nodes.
const NODES: usize = 1 << 14;
const EXECUTABLE_NODES: usize = 1 << 20;

/// A node that takes or gives memory.
#[derive(Clone, Copy, Debug)]
pub enum Node {
    /// Takes.
    Alloc {
        /// Where.
        address: Address,
        /// How much.
        bytes: Bytes,
        /// On which device.
        gpu: GpuSlot,
        /// Who added it.
        site: SiteIndex,
    },
    /// Gives back.
    Free {
        /// What.
        address: Address,
        /// Who added it.
        site: SiteIndex,
    },
}

type Nodes = Arc<Vec<Node>>;

/// What was counted about graphs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GraphCounts {
    /// Allocation nodes, captured ones included.
    pub alloc_nodes: u64,
    /// Their bytes.
    pub alloc_node_bytes: u64,
    /// Free nodes.
    pub free_nodes: u64,
    /// Nodes that were not kept.
    pub uncounted_nodes: u64,
    /// Launches.
    pub launches: u64,
    /// Launches of an executable whose making was not seen.
    pub unknown_launches: u64,
    /// Launches that failed.
    pub failed_launches: u64,
    /// Copies captured into a graph.
    pub copies: Moved,
    /// Sets captured into a graph.
    pub sets: Moved,
    /// Other calls captured into a graph, allocations and frees apart.
    pub others: u64,
    /// Times that kept memory was asked to be given back.
    pub trims: u64,
}

/// What the driver told about the graph memory of a device: last values, and the most of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GraphTold {
    /// Used now.
    pub used: Option<Bytes>,
    /// The most that was used, as the driver keeps it.
    pub used_high: Option<Bytes>,
    /// Reserved now.
    pub reserved: Option<Bytes>,
    /// The most that was reserved, as the driver keeps it.
    pub reserved_high: Option<Bytes>,
}

/// Every graph.
#[derive(Debug, Default)]
pub struct Graphs {
    pending: FxHashMap<Handle, Nodes>,
    graphs: FxHashMap<Handle, Nodes>,
    executables: FxHashMap<Handle, Nodes>,
    /// Nodes of the executables, shared ones as often as they are shared.
    held: usize,
    /// See [`GraphCounts`].
    pub counts: GraphCounts,
    /// By device.
    pub told: BTreeMap<GpuSlot, GraphTold>,
}

impl Graphs {
    /// A call on a stream that is being captured.
    pub fn captured(&mut self, origin: Handle, node: Node) {
        Self::push(&mut self.counts, self.pending.entry(origin).or_default(), node);
    }

    /// A node added to a graph.
    pub fn added(&mut self, graph: Handle, node: Node) {
        Self::push(&mut self.counts, self.graphs.entry(graph).or_default(), node);
    }

    fn push(counts: &mut GraphCounts, nodes: &mut Nodes, node: Node) {
        match node {
            Node::Alloc { bytes, .. } => {
                counts.alloc_nodes += 1;
                counts.alloc_node_bytes = counts.alloc_node_bytes.saturating_add(bytes.0);
            }
            Node::Free { .. } => counts.free_nodes += 1,
        }
        if nodes.len() < NODES {
            Arc::make_mut(nodes).push(node);
        } else {
            counts.uncounted_nodes += 1;
        }
    }

    /// A capture has ended, with this graph. Captured into a graph that is there already, it adds
    /// to that.
    pub fn capture_ended(&mut self, origin: Handle, graph: Handle, is_new: bool) {
        let nodes = self.pending.remove(&origin).unwrap_or_default();
        if is_new {
            self.graphs.insert(graph, nodes);
            return;
        }
        let known = self.graphs.entry(graph).or_default();
        let room = NODES.saturating_sub(known.len());
        self.counts.uncounted_nodes += nodes.len().saturating_sub(room) as u64;
        Arc::make_mut(known).extend(nodes.iter().take(room));
    }

    /// A capture has ended without a graph.
    pub fn capture_failed(&mut self, origin: Handle) {
        self.pending.remove(&origin);
    }

    /// A graph was made by hand.
    pub fn made(&mut self, graph: Handle) {
        self.graphs.insert(graph, Nodes::default());
    }

    /// A graph is gone. Its executables live on.
    pub fn destroyed(&mut self, graph: Handle) {
        self.graphs.remove(&graph);
    }

    /// An executable was made of a graph, or updated from one.
    pub fn instantiated(&mut self, executable: Handle, graph: Handle) {
        let mut nodes = self.graphs.get(&graph).cloned().unwrap_or_default();
        self.executable_destroyed(executable);
        if self.held + nodes.len() > EXECUTABLE_NODES {
            self.counts.uncounted_nodes += nodes.len() as u64;
            nodes = Nodes::default();
        }
        self.held += nodes.len();
        self.executables.insert(executable, nodes);
    }

    /// An executable is gone.
    pub fn executable_destroyed(&mut self, executable: Handle) {
        let nodes = self.executables.remove(&executable).unwrap_or_default();
        self.held -= nodes.len();
    }

    /// The nodes of an executable that is launched.
    pub fn launched(&mut self, executable: Handle) -> Nodes {
        self.counts.launches += 1;
        let nodes = self.executables.get(&executable).cloned();
        if nodes.is_none() {
            self.counts.unknown_launches += 1;
        }
        nodes.unwrap_or_default()
    }

    /// Bytes of the allocation nodes of all executables that are there: what the driver may keep
    /// for them at most, without its rounding.
    #[must_use]
    pub fn executable_bytes(&self) -> u64 {
        let nodes = self.executables.values().flat_map(|nodes| nodes.iter());
        let bytes = nodes.map(|node| match node {
            Node::Alloc { bytes, .. } => bytes.0,
            Node::Free { .. } => 0,
        });
        bytes.fold(0, u64::saturating_add)
    }

    /// The driver told a figure, by the number of its attribute.
    pub fn tell(&mut self, gpu: GpuSlot, attribute: u64, value: Bytes) {
        let told = self.told.entry(gpu).or_default();
        let figure = match attribute {
            0 => &mut told.used,
            1 => &mut told.used_high,
            2 => &mut told.reserved,
            3 => &mut told.reserved_high,
            _ => return,
        };
        *figure = Some(value);
    }

    /// What the driver reserves for graphs, where it told that.
    #[must_use]
    pub fn reserved(&self) -> Option<Bytes> {
        let told = self.told.values().filter_map(|told| told.reserved);
        told.fold(None, |sum: Option<Bytes>, one| {
            Some(Bytes(sum.unwrap_or_default().0.saturating_add(one.0)))
        })
    }

    /// Begins to count anew; what is there stays.
    pub fn begin(&mut self) {
        self.counts = GraphCounts::default();
    }
}
