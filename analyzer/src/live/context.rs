//! Contexts, and which of them each thread uses: from this follow the device of an allocation
//! and the end of what was never freed.
//!
//! A thread's device is what the last word about it says: the device of the context made
//! current, or the device that its runtime calls use. A primary context is known by its device.

use rustc_hash::FxHashMap;

use super::ledger::GpuSlot;
use crate::units::Handle;

/// An owner's place in the table; 0 is nobody.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnerIndex(pub u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Owner {
    Nobody,
    Context(Handle),
    Primary(GpuSlot),
}

#[derive(Clone, Copy, Debug, Default)]
struct Context {
    device: GpuSlot,
    primary: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Primary {
    references: u64,
    active: bool,
}

/// Contexts made and destroyed, primary ones included from their first use to their end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Made.
    pub created: u64,
    /// Destroyed.
    pub destroyed: u64,
    /// Not destroyed yet.
    pub live: u64,
}

impl Counts {
    fn create(&mut self) {
        self.created += 1;
        self.live += 1;
    }

    fn destroy(&mut self) {
        self.destroyed += 1;
        self.live = self.live.saturating_sub(1);
    }

    /// Begins to count anew; what is live stays.
    pub fn begin(&mut self) {
        *self = Self { live: self.live, ..Self::default() };
    }
}

/// What a thread uses.
#[derive(Clone, Copy, Debug, Default)]
pub struct Current {
    context: Option<Handle>,
    /// The device of the runtime's calls, when it was told.
    runtime_device: Option<GpuSlot>,
    /// The last known device.
    device: GpuSlot,
    owner: OwnerIndex,
    /// The state of the table that `device` and `owner` were derived from.
    version: u64,
}

impl Current {
    /// A context is made current; 0 is none, or one that is not known.
    pub fn use_context(&mut self, context: Handle) {
        self.context = (context.0 != 0).then_some(context);
        self.version = 0;
    }

    /// The runtime's device is set.
    pub fn use_device(&mut self, device: GpuSlot) {
        self.context = None;
        self.runtime_device = Some(device);
        self.version = 0;
    }
}

/// Every context and owner.
#[derive(Debug)]
pub struct Contexts {
    contexts: FxHashMap<Handle, Context>,
    primaries: FxHashMap<GpuSlot, Primary>,
    indices: FxHashMap<Owner, OwnerIndex>,
    owners: Vec<(Owner, u64)>,
    /// See [`Counts`].
    pub counts: Counts,
    /// Rises with every change that a thread's device may depend on.
    version: u64,
}

impl Default for Contexts {
    fn default() -> Self {
        Self {
            contexts: FxHashMap::default(),
            primaries: FxHashMap::default(),
            indices: FxHashMap::default(),
            owners: vec![(Owner::Nobody, 0)],
            counts: Counts::default(),
            version: 1,
        }
    }
}

impl Contexts {
    /// A context was made.
    pub fn created(&mut self, handle: Handle, device: GpuSlot) {
        self.counts.create();
        self.contexts.insert(handle, Context { device, primary: false });
        self.version += 1;
    }

    /// A context was destroyed. Returns whose blocks end.
    pub fn destroyed(&mut self, handle: Handle) -> Vec<OwnerIndex> {
        self.counts.destroy();
        self.contexts.remove(&handle);
        self.version += 1;
        self.with_blocks(|owner| owner == Owner::Context(handle))
    }

    /// A reference to a primary context was taken.
    pub fn retained(&mut self, handle: Handle, device: GpuSlot) {
        let primary = self.primaries.entry(device).or_default();
        primary.references += 1;
        if !primary.active {
            primary.active = true;
            self.counts.create();
        }
        let known = self.contexts.insert(handle, Context { device, primary: true });
        if known.is_none_or(|known| !known.primary || known.device != device) {
            self.version += 1;
        }
    }

    /// A reference to a primary context was dropped. Returns whose blocks end.
    pub fn released(&mut self, device: GpuSlot) -> Vec<OwnerIndex> {
        let Some(primary) = self.primaries.get_mut(&device) else { return Vec::new() };
        if primary.references == 0 {
            return Vec::new();
        }
        primary.references -= 1;
        if primary.references > 0 { Vec::new() } else { self.end_primary(device) }
    }

    /// A primary context was reset. Returns whose blocks end.
    pub fn reset(&mut self, device: GpuSlot) -> Vec<OwnerIndex> {
        self.end_primary(device)
    }

    fn end_primary(&mut self, device: GpuSlot) -> Vec<OwnerIndex> {
        // Whoever uses it again retains it again.
        if let Some(primary) = self.primaries.remove(&device)
            && primary.active
        {
            self.counts.destroy();
        }
        let contexts = std::mem::take(&mut self.contexts);
        let of_device = |handle: &Handle| {
            contexts.get(handle).is_some_and(|known| known.primary && known.device == device)
        };
        let ended = self.with_blocks(|owner| match owner {
            Owner::Nobody => false,
            Owner::Context(handle) => of_device(&handle),
            Owner::Primary(primary) => primary == device,
        });
        self.contexts = contexts;
        ended
    }

    /// The driver said which device a context belongs to.
    pub fn told_device(&mut self, handle: Handle, device: GpuSlot) {
        let context = self.contexts.entry(handle).or_default();
        if context.device != device {
            context.device = device;
            self.version += 1;
        }
    }

    fn with_blocks(&self, wanted: impl Fn(Owner) -> bool) -> Vec<OwnerIndex> {
        let indices = (0..).map(OwnerIndex);
        let owners = indices.zip(&self.owners);
        let found = owners.filter(|(_, (owner, blocks))| *blocks > 0 && wanted(*owner));
        found.map(|(index, _)| index).collect()
    }

    /// The device and the owner of what a thread allocates; the device is unknown when nothing
    /// was said about it.
    #[inline]
    pub fn place(&mut self, current: &mut Current) -> (GpuSlot, OwnerIndex) {
        if current.version != self.version {
            self.derive(current);
        }
        (current.device, current.owner)
    }

    #[cold]
    fn derive(&mut self, current: &mut Current) {
        let mut owner = Owner::Nobody;
        if let Some(handle) = current.context {
            let context = self.contexts.get(&handle).copied().unwrap_or_default();
            current.device = context.device;
            owner = match context.primary {
                true => Owner::Primary(context.device),
                false => Owner::Context(handle),
            };
        } else if let Some(device) = current.runtime_device {
            current.device = device;
            owner = Owner::Primary(device);
        } else {
            current.device = GpuSlot::UNKNOWN;
        }
        current.owner = self.index(owner);
        current.version = self.version;
    }

    /// The owner that a device's primary context is.
    pub fn primary(&mut self, device: GpuSlot) -> OwnerIndex {
        self.index(Owner::Primary(device))
    }

    fn index(&mut self, owner: Owner) -> OwnerIndex {
        if owner == Owner::Nobody {
            return OwnerIndex(0);
        }
        if let Some(&index) = self.indices.get(&owner) {
            return index;
        }
        let index = OwnerIndex(u32::try_from(self.owners.len()).unwrap_or(0));
        self.owners.push((owner, 0));
        self.indices.insert(owner, index);
        index
    }

    /// A block of an owner was made.
    #[inline]
    pub fn add_block(&mut self, owner: OwnerIndex) {
        if let Some((_, blocks)) = self.owners.get_mut(owner.0 as usize) {
            *blocks += 1;
        }
    }

    /// A block of an owner is gone.
    #[inline]
    pub fn take_block(&mut self, owner: OwnerIndex) {
        if let Some((_, blocks)) = self.owners.get_mut(owner.0 as usize) {
            *blocks = blocks.saturating_sub(1);
        }
    }
}
