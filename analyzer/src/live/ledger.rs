//! The ledgers: one table of their names, and the arithmetic of one of them.
//!
//! A ledger never knows an address. What is added and taken away comes from [`super::LiveSet`];
//! sums saturate, because sizes in a log may be anything.

use crate::units::{Bytes, Ticks};

macro_rules! ledgers {
    ($($variant:ident $name:literal $sum:expr, $doc:literal;)*) => {
        /// A kind of memory that is accounted apart from the others.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Ledger { $(#[doc = $doc] $variant,)* }

        impl Ledger {
            /// Every ledger, in the order of reports.
            pub const ALL: &'static [Ledger] = &[$(Ledger::$variant),*];

            /// Its name in reports.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// What it holds.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $doc,)* }
            }

            /// The sum that adds it, if one does.
            #[must_use]
            #[inline]
            pub const fn sum(self) -> Option<Sum> {
                match self { $(Self::$variant => $sum,)* }
            }
        }

        /// Number of ledgers.
        pub const LEDGERS: usize = Ledger::ALL.len();
    };
}

ledgers! {
    Device "device" Some(Sum::Gpu), "Device memory of the `cuMemAlloc` family.";
    Managed "managed" None, "Managed memory, which moves between host and devices.";
    Pinned "pinned" Some(Sum::Host), "Page-locked host memory.";
    Registered "registered" Some(Sum::Host), "Host memory of somebody else's that was page-locked.";
    AsyncPool "async_pool" Some(Sum::Gpu), "Stream-ordered memory in use, not what its pools reserve.";
    VmmAddress "vmm_address" None, "Reserved address space, without memory.";
    VmmPhysical "vmm_physical" Some(Sum::Gpu), "Physical device memory of virtual memory management.";
    VmmHost "vmm_host" Some(Sum::Host), "Physical host memory of virtual memory management.";
    Graph "graph" Some(Sum::Gpu), "Memory of graph nodes, from the launch that takes it to its free.";
    VmmMapped "vmm_mapped" None, "Mappings of physical memory into reserved address space.";
    Array "array" Some(Sum::Gpu), "Arrays and mipmapped arrays, with the size that follows from their descriptors.";
    Imported "imported" None, "Memory that another process or a graphics library made, opened here.";
    Torch "torch" None, "Blocks of PyTorch's caching allocator, within memory of `device` or `vmm_mapped`.";
}

impl Ledger {
    /// Whether its memory lies on a device, or is tied to one.
    #[must_use]
    #[inline]
    pub const fn on_device(self) -> bool {
        match self {
            Self::Device
            | Self::Managed
            | Self::AsyncPool
            | Self::VmmPhysical
            | Self::Graph
            | Self::VmmMapped
            | Self::Array
            | Self::Imported
            | Self::Torch => true,
            Self::Pinned | Self::Registered | Self::VmmAddress | Self::VmmHost => false,
        }
    }
}

impl Ledger {
    /// Whether its bytes are worked out instead of told: a driver may take more.
    #[must_use]
    pub const fn is_estimated(self) -> bool {
        matches!(self, Self::Array)
    }
}

/// Ledgers that are added up. Each ledger is in one sum at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Sum {
    /// Memory on devices that a call asked for.
    Gpu,
    /// Host memory that is page-locked.
    Host,
}

/// Number of sums.
pub const SUMS: usize = Sum::ALL.len();

impl Sum {
    /// Every sum, in the order of reports.
    pub const ALL: &'static [Self] = &[Self::Gpu, Self::Host];

    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gpu => "gpu",
            Self::Host => "host",
        }
    }

    /// What it holds.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Gpu => "Memory on devices that a call asked for.",
            Self::Host => "Host memory that is page-locked.",
        }
    }

    /// The ledgers that it adds.
    pub fn ledgers(self) -> impl Iterator<Item = Ledger> + Clone {
        Ledger::ALL.iter().copied().filter(move |ledger| ledger.sum() == Some(self))
    }
}

/// Ledgers that a later recorder will fill: no entry point of theirs is hooked, so nothing is
/// known about them.
pub const NOT_COUNTED: [&str; 0] = [];

/// A device's place in tables: 0 is unknown, else the ordinal plus 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GpuSlot(pub u8);

impl GpuSlot {
    /// No device, or one that is not known.
    pub const UNKNOWN: Self = Self(0);
    /// Memory that is on no device.
    pub const NONE: Self = Self(u8::MAX);

    /// The slot of a device as CUDA numbers it; what cannot be a number of a device is unknown.
    #[must_use]
    pub fn of(device: i64) -> Self {
        let slot = u8::try_from(device).ok().and_then(|device| device.checked_add(1)).map(Self);
        slot.filter(|&slot| slot != Self::NONE).unwrap_or(Self::UNKNOWN)
    }

    /// The device's ordinal.
    #[must_use]
    pub fn ordinal(self) -> Option<u32> {
        if self == Self::NONE { None } else { self.0.checked_sub(1).map(u32::from) }
    }
}

/// The sums of one ledger, or of one ledger on one device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Successful allocations.
    pub allocs: u64,
    /// Successful frees that a call asked for.
    pub frees: u64,
    /// Failed allocations and frees.
    pub failed: u64,
    /// Blocks that went with their context, or whose free is not in the log.
    pub implicit_frees: u64,
    /// Bytes of `allocs`.
    pub alloc_bytes: u64,
    /// Bytes of `frees`.
    pub free_bytes: u64,
    /// Bytes of `implicit_frees`.
    pub implicit_bytes: u64,
    /// Blocks live now.
    pub live_count: u64,
    /// Of these, blocks of 0 bytes: they own no memory, or no call tells how much.
    pub unsized_count: u64,
    /// Bytes live now.
    pub live_bytes: u64,
    /// The greatest `live_bytes` so far.
    pub peak_bytes: u64,
    /// When it was first reached.
    pub peak_at: Ticks,
}

impl Tally {
    /// Adds a block. True when there was never as much.
    #[inline]
    pub fn add(&mut self, bytes: Bytes, at: Ticks) -> bool {
        self.allocs += 1;
        self.alloc_bytes = self.alloc_bytes.saturating_add(bytes.0);
        self.live_count += 1;
        self.unsized_count += u64::from(bytes.0 == 0);
        self.live_bytes = self.live_bytes.saturating_add(bytes.0);
        let higher = self.live_bytes > self.peak_bytes;
        if higher {
            self.peak_bytes = self.live_bytes;
            self.peak_at = at;
        }
        higher
    }

    /// Takes a block away.
    #[inline]
    pub fn take(&mut self, bytes: Bytes, why: Why) {
        match why {
            Why::Asked => {
                self.frees += 1;
                self.free_bytes = self.free_bytes.saturating_add(bytes.0);
            }
            Why::Implicit => {
                self.implicit_frees += 1;
                self.implicit_bytes = self.implicit_bytes.saturating_add(bytes.0);
            }
            Why::Resized => {
                self.allocs = self.allocs.saturating_sub(1);
                self.alloc_bytes = self.alloc_bytes.saturating_sub(bytes.0);
            }
        }
        self.live_count = self.live_count.saturating_sub(1);
        self.unsized_count = self.unsized_count.saturating_sub(u64::from(bytes.0 == 0));
        self.live_bytes = self.live_bytes.saturating_sub(bytes.0);
    }

    /// Begins to count anew: what is live stays, and is the first peak.
    pub fn begin(&mut self, at: Ticks) {
        *self = Self {
            live_count: self.live_count,
            unsized_count: self.unsized_count,
            live_bytes: self.live_bytes,
            peak_bytes: self.live_bytes,
            peak_at: at,
            ..Self::default()
        };
    }

    /// Whether anything was ever counted.
    #[must_use]
    pub const fn is_used(&self) -> bool {
        self.allocs > 0
            || self.frees > 0
            || self.failed > 0
            || self.implicit_frees > 0
            || self.live_count > 0
    }
}

/// Why a block is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// A call asked for it.
    Asked,
    /// Its context went, or its address was handed out again.
    Implicit,
    /// It is not: its size became known, and it is booked anew.
    Resized,
}
