//! What events of graphs and of objects without bytes do.

use gmmtrace_format::Kind;
use gmmtrace_format::kind::{capture, object};

use super::Call;
use crate::live::context::OwnerIndex;
use crate::live::graphs::Node;
use crate::live::ledger::{Ledger, Why};
use crate::live::objects::Class;
use crate::live::pools::PoolIndex;
use crate::live::space::Block;
use crate::live::steps::Explained;
use crate::live::{Account, LiveSet};
use crate::order::Record;
use crate::units::{Address, Bytes, Handle};

/// Graphs. What is captured is not done; what a launch does is booked at the launch.
impl LiveSet {
    #[cold]
    pub(super) fn captured(&mut self, kind: Kind, call: Call, record: &Record) {
        match kind {
            Kind::PoolAlloc => {
                let (address, bytes) = (record.address::<0>(), record.bytes::<1>());
                self.alloc_node(call, address, bytes, record.handle::<2>(), true);
            }
            Kind::PoolFree => {
                self.free_node(call, record.address::<0>(), record.handle::<1>(), true);
            }
            Kind::Copy if call.failed => self.odd.failed_copies += 1,
            Kind::Set if call.failed => self.odd.failed_sets += 1,
            Kind::Copy => self.graphs.counts.copies.add(record.bytes::<3>()),
            Kind::Set => self.graphs.counts.sets.add(record.bytes::<2>()),
            _ if call.failed => {}
            _ => self.graphs.counts.others += 1,
        }
    }

    pub(super) fn graph_alloc(&mut self, call: Call, record: &Record) {
        let (address, bytes) = (record.address::<0>(), record.bytes::<1>());
        self.alloc_node(call, address, bytes, record.handle::<2>(), false);
    }

    pub(super) fn graph_free(&mut self, call: Call, record: &Record) {
        self.free_node(call, record.address::<0>(), record.handle::<1>(), false);
    }

    fn alloc_node(
        &mut self,
        call: Call,
        address: Address,
        bytes: Bytes,
        graph: Handle,
        capture: bool,
    ) {
        let (gpu, _) = self.place(call);
        if call.failed {
            return self.views.fail(Ledger::Graph, gpu);
        }
        if address.0 == 0 {
            self.odd.null_calls += 1;
            return;
        }
        let node = Node::Alloc { address, bytes, gpu, site: call.site };
        self.add_node(graph, node, capture);
    }

    fn free_node(&mut self, call: Call, address: Address, graph: Handle, capture: bool) {
        if call.failed {
            let (gpu, _) = self.place(call);
            return self.views.fail(Ledger::Graph, gpu);
        }
        self.add_node(graph, Node::Free { address, site: call.site }, capture);
    }

    fn add_node(&mut self, graph: Handle, node: Node, capture: bool) {
        match capture {
            true => self.graphs.captured(graph, node),
            false => self.graphs.added(graph, node),
        }
    }

    pub(super) fn graph_launch(&mut self, call: Call, record: &Record) {
        if call.failed {
            self.graphs.counts.failed_launches += 1;
            return;
        }
        let nodes = self.graphs.launched(record.handle::<0>());
        for node in nodes.iter() {
            if let Node::Alloc { address, bytes, gpu, site } = *node {
                let account = Account { ledger: Ledger::Graph, gpu, site };
                self.node_taken(
                    address,
                    Block {
                        bytes,
                        at: call.at,
                        owner: OwnerIndex(0),
                        account,
                        pool: PoolIndex::default(),
                    },
                    call,
                );
            }
        }
        // What is freed within the launch was there together with the rest.
        self.views.settle(call.at, call.now);
        for node in nodes.iter() {
            if let Node::Free { address, site } = *node {
                match self.spaces.device.remove(address) {
                    Some(block) => self.gone(address, &block, Why::Asked, call),
                    None => {
                        let call = Call { site, ..call };
                        self.odd.unknown_frees.note(call.example(Ledger::Graph, address.0));
                    }
                }
            }
        }
    }

    /// A graph that is launched again may free what its launch before left.
    fn node_taken(&mut self, address: Address, block: Block, call: Call) {
        if let Some(old) = self.spaces.device.insert(address, block) {
            if old.account.ledger != Ledger::Graph {
                self.odd.overlaps.note(call.example(Ledger::Graph, address.0));
            }
            self.gone(address, &old, Why::Implicit, call);
        }
        self.contexts.add_block(block.owner);
        self.book(block.account, block.bytes, call);
    }
}

/// Objects that own memory without an allocation call.
impl LiveSet {
    pub(super) fn object_made(&mut self, call: Call, record: &Record) {
        let (handle, of) = (record.handle::<0>(), record.handle::<2>());
        if record.number::<1>() == object::KERNEL {
            // It is a part of what it is of, and ends with that.
            if !call.failed {
                self.steps.looked_up();
            }
            return;
        }
        let Some(class) = Class::of_number(record.number::<1>()) else { return };
        if call.failed {
            if class == Class::Graph && of.0 != 0 && !capture::REFUSED.contains(&record.status) {
                self.graphs.capture_failed(of);
            }
            return self.objects.fail(class);
        }
        if handle.0 == 0 {
            if class == Class::Graph {
                self.graphs.capture_failed(of);
            }
            return;
        }
        // Captured into a graph that is there, and an update, make nothing new.
        let is_there = of.0 != 0 && self.objects.is_live(class, handle);
        match class {
            Class::Graph if of.0 != 0 => self.graphs.capture_ended(of, handle, !is_there),
            Class::Graph => self.graphs.made(handle),
            Class::GraphExec => self.graphs.instantiated(handle, of),
            _ => {}
        }
        if is_there && matches!(class, Class::Graph | Class::GraphExec) {
            return;
        }
        let (_, owner) = self.place(call);
        self.contexts.add_block(owner);
        self.steps.made(class);
        if let Some(former) = self.objects.made(class, handle, call.site, call.at, owner) {
            self.contexts.take_block(former);
        }
    }

    pub(super) fn object_destroyed(&mut self, call: Call, record: &Record) {
        let handle = record.handle::<0>();
        let Some(class) = Class::of_number(record.number::<1>()) else { return };
        if call.failed {
            return self.objects.fail(class);
        }
        match class {
            Class::Graph => self.graphs.destroyed(handle),
            Class::GraphExec => self.graphs.executable_destroyed(handle),
            _ => {}
        }
        self.steps.destroyed(class);
        if let Some(owner) = self.objects.destroyed(class, handle) {
            self.contexts.take_block(owner);
        }
    }

    /// What of the process's device memory is explained now.
    pub(super) fn explained(&self) -> Explained {
        let all = &self.views.all;
        let live = |ledger| Bytes(all.books.book(ledger).tally.live_bytes);
        let told = self.graphs.reserved();
        Explained {
            device_blocks: Bytes(all.kept.now.bytes()),
            async_pool: live(Ledger::AsyncPool),
            async_reserved: self.pools.reserved(),
            async_kept: self.pools.kept(),
            vmm_physical: live(Ledger::VmmPhysical),
            array: live(Ledger::Array),
            graph: told.unwrap_or_else(|| live(Ledger::Graph)),
            graph_told: told.is_some(),
        }
    }
}
