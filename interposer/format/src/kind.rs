//! The event kinds: one row each, from which the codec, `dump` and the file's own kind table
//! are derived. Ids are append-only.

use crate::error::DecodeError;
use crate::varint::Input;

/// The most operands an event has.
pub const MAX_OPERANDS: usize = 5;

/// How an operand is written, and which register its difference is taken against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Operand {
    /// Unsigned number.
    Number = 1,
    /// Signed number.
    Signed = 2,
    /// Bytes, short for multiples of 512.
    Size = 3,
    /// Device address, as the difference from the thread's last one.
    Device = 4,
    /// Host address, likewise.
    Host = 5,
    /// Driver handle (context, pool, physical allocation), likewise.
    Handle = 6,
    /// Stream handle, likewise.
    Stream = 7,
    /// Destination of a copy, likewise.
    CopyTo = 8,
    /// Source of a copy, likewise.
    CopyFrom = 9,
    /// A length and that many bytes. At most one in an event, and the last.
    Text = 10,
}

/// Number of difference registers: [`Operand::Device`] to [`Operand::CopyFrom`].
pub const REGISTERS: usize = 6;

impl Operand {
    /// The register this operand's difference is taken against.
    #[must_use]
    #[inline]
    pub const fn register(self) -> Option<usize> {
        match self {
            Self::Device => Some(0),
            Self::Host => Some(1),
            Self::Handle => Some(2),
            Self::Stream => Some(3),
            Self::CopyTo => Some(4),
            Self::CopyFrom => Some(5),
            Self::Number | Self::Signed | Self::Size | Self::Text => None,
        }
    }

    /// The operand with this code.
    #[must_use]
    pub const fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            1 => Self::Number,
            2 => Self::Signed,
            3 => Self::Size,
            4 => Self::Device,
            5 => Self::Host,
            6 => Self::Handle,
            7 => Self::Stream,
            8 => Self::CopyTo,
            9 => Self::CopyFrom,
            10 => Self::Text,
            _ => return None,
        })
    }
}

/// When an event takes effect on the live set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// When the call began: frees, and everything that only takes away.
    AtStart,
    /// When the call had returned: allocations, and everything that only adds.
    AtEnd,
}

macro_rules! kinds {
    ($($id:literal $variant:ident $name:literal $effect:ident [$($operand:ident $role:literal),*] $doc:literal;)*) => {
        /// What an event says.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Kind {
            $(#[doc = $doc] $variant = $id,)*
        }

        impl Kind {
            /// Every kind, by rising id.
            pub const ALL: &'static [Kind] = &[$(Kind::$variant),*];

            /// The kind with this id.
            #[must_use]
            #[inline]
            pub const fn from_id(id: u8) -> Option<Self> {
                match id { $($id => Some(Self::$variant),)* _ => None }
            }

            /// The name that `dump` prints.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// How its operands are written, in order.
            #[must_use]
            #[inline(always)]
            pub const fn operands(self) -> &'static [Operand] {
                match self { $(Self::$variant => &[$(Operand::$operand),*],)* }
            }

            /// Whether its last operand is a text.
            #[must_use]
            #[inline(always)]
            pub const fn has_text(self) -> bool {
                matches!(self.operands(), [.., Operand::Text])
            }

            /// What its operands are called, in the same order.
            #[must_use]
            pub const fn roles(self) -> &'static [&'static str] {
                match self { $(Self::$variant => &[$($role),*],)* }
            }

            /// When it takes effect.
            #[must_use]
            #[inline]
            pub const fn effect(self) -> Effect {
                match self { $(Self::$variant => Effect::$effect,)* }
            }
        }
    };
}

kinds! {
    0x01 DeviceAlloc "device_alloc" AtEnd [Device "pointer", Size "bytes"]
        "Device memory taken: `cuMemAlloc` and its pitched form (bytes are pitch × height).";
    0x02 Free "free" AtStart [Device "pointer"]
        "`cuMemFree`: device, managed, pool or imported memory given back.";
    0x03 ManagedAlloc "managed_alloc" AtEnd [Device "pointer", Size "bytes", Number "flags"]
        "Managed memory taken.";
    0x04 PinnedAlloc "pinned_alloc" AtEnd [Host "pointer", Size "bytes", Number "flags"]
        "Page-locked host memory taken.";
    0x05 PinnedFree "pinned_free" AtStart [Host "pointer"]
        "Page-locked host memory given back.";
    0x06 HostRegister "host_register" AtEnd [Host "pointer", Size "bytes", Number "flags"]
        "A host range of somebody else's page-locked.";
    0x07 HostUnregister "host_unregister" AtStart [Host "pointer"]
        "That range released again.";
    0x08 PoolAlloc "pool_alloc" AtEnd [Device "pointer", Size "bytes", Stream "stream", Handle "pool"]
        "Stream-ordered memory taken; pool 0 is the device's current pool.";
    0x09 PoolFree "pool_free" AtStart [Device "pointer", Stream "stream"]
        "Memory given back in stream order.";
    0x0a AddressReserve "address_reserve" AtEnd [Device "pointer", Size "bytes"]
        "Address space reserved, without memory.";
    0x0b AddressFree "address_free" AtStart [Device "pointer", Size "bytes"]
        "Address space given back.";
    0x0c PhysicalCreate "physical_create" AtEnd [Handle "handle", Size "bytes", Number "location_type", Signed "location"]
        "Physical memory made; location type 1 is a device, 2 host, 3 a host NUMA node.";
    0x0d PhysicalRelease "physical_release" AtStart [Handle "handle"]
        "One reference to a physical allocation dropped.";
    0x0e Map "map" AtEnd [Device "pointer", Size "bytes", Number "offset", Handle "handle"]
        "Physical memory mapped into reserved address space.";
    0x0f Unmap "unmap" AtStart [Device "pointer", Size "bytes"]
        "A mapping removed.";
    0x10 SetAccess "set_access" AtEnd [Device "pointer", Size "bytes", Number "count"]
        "Access rights of a mapped range changed.";
    0x11 Copy "copy" AtEnd [Number "mode", CopyTo "to", CopyFrom "from", Size "bytes", Stream "stream"]
        "A copy; `mode` is a direction (`copy` module) plus 16 when asynchronous.";
    0x12 Set "set" AtEnd [Number "mode", Device "pointer", Size "bytes", Stream "stream"]
        "A memset; `mode` is 16 when asynchronous, else 0.";
    0x13 MemoryInfo "memory_info" AtEnd [Size "free", Size "total"]
        "What `cuMemGetInfo` told the process.";
    0x14 PhysicalRetain "physical_retain" AtEnd [Handle "handle", Device "pointer"]
        "One reference to a mapped physical allocation added.";
    0x15 ArrayCreate "array_create" AtEnd [Handle "array", Size "bytes", Number "flags"]
        "An array or mipmapped array made; bytes follow from its descriptor, not from the driver.";
    0x16 ArrayDestroy "array_destroy" AtStart [Handle "array"]
        "An array or mipmapped array destroyed.";
    0x17 Import "import" AtEnd [Device "pointer", Size "bytes", Number "source", Handle "from"]
        "Memory made elsewhere opened at an address (`source` module); bytes 0 where the call does not say.";
    0x18 ImportClose "import_close" AtStart [Device "pointer"]
        "Memory opened by an IPC handle closed.";
    0x19 PhysicalImport "physical_import" AtEnd [Handle "handle", Number "handle_type"]
        "A physical allocation made elsewhere opened, with one reference.";
    0x1a Prefetch "prefetch" AtEnd [Device "pointer", Size "bytes", Number "location_type", Signed "location", Stream "stream"]
        "Managed memory asked to be somewhere; location type 1 is a device, 2 host, 3 a host NUMA node.";
    0x1b Advise "advise" AtEnd [Device "pointer", Size "bytes", Number "advice", Number "location_type", Signed "location"]
        "Advice on managed memory.";
    0x1c PoolCreate "pool_create" AtEnd [Handle "pool", Number "location_type", Signed "location"]
        "A pool of stream-ordered memory made, or opened from elsewhere.";
    0x1d PoolDestroy "pool_destroy" AtStart [Handle "pool"]
        "A pool destroyed; its memory goes with the last allocation.";
    0x1e PoolTrim "pool_trim" AtEnd [Handle "pool", Size "keep"]
        "A pool asked to give back what it reserves beyond `keep`.";
    0x1f PoolAttribute "pool_attribute" AtEnd [Handle "pool", Number "attribute", Size "value", Number "set"]
        "A pool's attribute as the driver told it, or as the process set it (`set` 1).";
    0x20 ContextCreate "context_create" AtEnd [Handle "context", Signed "device"]
        "A context made.";
    0x21 ContextDestroy "context_destroy" AtStart [Handle "context"]
        "A context destroyed, with the memory that belongs to it.";
    0x22 PrimaryRetain "primary_retain" AtEnd [Handle "context", Signed "device"]
        "A reference to a device's primary context taken.";
    0x23 PrimaryRelease "primary_release" AtStart [Signed "device"]
        "A reference to a device's primary context dropped.";
    0x24 PrimaryReset "primary_reset" AtStart [Signed "device"]
        "A device's primary context reset, with the memory that belongs to it.";
    0x25 ContextCurrent "context_current" AtEnd [Handle "context"]
        "The context that this thread uses from here on.";
    0x26 ContextDevice "context_device" AtEnd [Handle "context", Signed "device"]
        "The device that a context belongs to, as the driver told the process.";
    0x27 DeviceCurrent "device_current" AtEnd [Signed "device"]
        "The device that this thread's runtime calls use from here on.";
    0x28 ObjectCreate "object_create" AtEnd [Handle "object", Number "class", Handle "of"]
        "An object made that may own memory (`object` module), and what it was made of or in.";
    0x29 ObjectDestroy "object_destroy" AtStart [Handle "object", Number "class"]
        "That object destroyed.";
    0x2a Limit "limit" AtEnd [Number "limit", Size "value"]
        "A limit of the current context set: stack, heap, printf buffer and their kind.";
    0x2b GraphAlloc "graph_alloc" AtEnd [Device "pointer", Size "bytes", Handle "graph"]
        "A node that takes memory when its graph runs; graph 0 is one that a stream is captured into.";
    0x2c GraphFree "graph_free" AtStart [Device "pointer", Handle "graph"]
        "A node that gives it back when its graph runs.";
    0x2d GraphLaunch "graph_launch" AtEnd [Handle "exec", Stream "stream"]
        "An executable graph launched.";
    0x2e GraphMemory "graph_memory" AtEnd [Signed "device", Number "attribute", Size "value"]
        "What the driver told about memory of graphs.";
    0x2f GraphTrim "graph_trim" AtEnd [Signed "device"]
        "Memory that graphs keep and do not use given back.";
    0x30 Mark "mark" AtEnd [Text "text"]
        "A moment named by the process.";
    0x31 RangePush "range_push" AtEnd [Text "text"]
        "A phase of this thread begins.";
    0x32 RangePop "range_pop" AtEnd []
        "The thread's innermost phase ends.";
    0x33 RangeStart "range_start" AtEnd [Number "range", Text "text"]
        "A phase that may end on another thread begins.";
    0x34 RangeEnd "range_end" AtEnd [Number "range"]
        "That phase ends.";
    0x38 RuntimeCall "runtime_call" AtEnd [Device "pointer", Size "bytes"]
        "A runtime call under which no driver call was seen.";
    0x39 Sample "sample" AtEnd [Signed "device", Size "used", Size "total", Number "process_used"]
        "Device memory by NVML; `process_used` is 0 for unknown, else bytes + 1.";
    0x3a Thread "thread" AtEnd [Number "tid", Text "name"]
        "The thread that writes this chunk from here on.";
    0x3b Checkpoint "checkpoint" AtEnd []
        "Reserved: the live set and its totals.";
    // PyTorch's caching allocator, by what it reports to its profiler.
    0x40 TorchAlloc "torch_alloc" AtEnd [Device "pointer", Size "bytes", Size "allocated", Size "reserved", Signed "device"]
        "A block that PyTorch's allocator handed out, and its own totals for the device afterwards.";
    0x41 TorchFree "torch_free" AtStart [Device "pointer", Size "bytes", Size "allocated", Size "reserved", Signed "device"]
        "A block that PyTorch's allocator took back, and its own totals for the device afterwards.";
    0x42 TorchOom "torch_oom" AtEnd [Size "requested", Size "allocated", Size "reserved", Signed "device"]
        "PyTorch's allocator found no memory for a request, and its own totals for the device.";
}

/// Copy directions, numbered as CUPTI numbers its copy kinds.
pub mod copy {
    /// Both sides are unified addresses: what they are follows from the ledgers.
    pub const UNIFIED: u64 = 0;
    /// Host to device.
    pub const HOST_TO_DEVICE: u64 = 1;
    /// Device to host.
    pub const DEVICE_TO_HOST: u64 = 2;
    /// Host to array.
    pub const HOST_TO_ARRAY: u64 = 3;
    /// Array to host.
    pub const ARRAY_TO_HOST: u64 = 4;
    /// Array to array.
    pub const ARRAY_TO_ARRAY: u64 = 5;
    /// Array to device.
    pub const ARRAY_TO_DEVICE: u64 = 6;
    /// Device to array.
    pub const DEVICE_TO_ARRAY: u64 = 7;
    /// Within one device, or between two that the call does not name.
    pub const DEVICE_TO_DEVICE: u64 = 8;
    /// Host to host.
    pub const HOST_TO_HOST: u64 = 9;
    /// Between two devices that the call names.
    pub const PEER: u64 = 10;
    /// Added to a mode when the call is asynchronous.
    pub const ASYNCHRONOUS: u64 = 16;
    /// The direction in a mode.
    pub const DIRECTION: u64 = 15;
}

/// Where imported memory comes from.
pub mod source {
    /// An IPC handle of another process.
    pub const IPC: u64 = 1;
    /// A pointer into an imported pool.
    pub const POOL_POINTER: u64 = 2;
    /// External memory: a graphics library's, or a descriptor's.
    pub const EXTERNAL: u64 = 3;
    /// A graphics resource that is mapped.
    pub const GRAPHICS: u64 = 4;
    /// An array in external memory: a handle in place of an address.
    pub const EXTERNAL_ARRAY: u64 = 5;
}

/// Attributes of pools: CUDA's own by its numbers, of which these matter here, and from 256 on
/// what other calls say about a pool.
pub mod pool {
    /// Bytes that the pool keeps from the driver without using them.
    pub const RELEASE_THRESHOLD: u64 = 4;
    /// Bytes that it reserves.
    pub const RESERVED: u64 = 5;
    /// The greatest number of them.
    pub const RESERVED_HIGH: u64 = 6;
    /// Bytes of them that are in use.
    pub const USED: u64 = 7;
    /// The greatest number of those.
    pub const USED_HIGH: u64 = 8;
    /// The pool is the default one of a place: its location type in the upper 32 bits of the
    /// value, its location in the lower. Type 0 is a place that the call does not tell.
    pub const DEFAULT_OF: u64 = 256;
    /// The pool is the one that a place uses; likewise.
    pub const CURRENT_OF: u64 = 257;
}

/// Flags of arrays that say whether they own memory.
pub mod array {
    /// Layers, which mip levels do not halve.
    pub const LAYERED: u64 = 1;
    /// Faces of a cube, likewise.
    pub const CUBEMAP: u64 = 4;
    /// Memory is mapped into it tile by tile.
    pub const SPARSE: u64 = 0x40;
    /// Memory is mapped into it later.
    pub const DEFERRED_MAPPING: u64 = 0x80;
}

/// Classes of objects that may own memory.
pub mod object {
    /// A module.
    pub const MODULE: u64 = 1;
    /// A library.
    pub const LIBRARY: u64 = 2;
    /// A stream.
    pub const STREAM: u64 = 3;
    /// An event.
    pub const EVENT: u64 = 4;
    /// A graph.
    pub const GRAPH: u64 = 5;
    /// An executable graph.
    pub const GRAPH_EXEC: u64 = 6;
    /// A texture object.
    pub const TEXTURE: u64 = 7;
    /// A surface object.
    pub const SURFACE: u64 = 8;
    /// External memory, whose buffers are imports.
    pub const EXTERNAL_MEMORY: u64 = 9;
    /// A green context.
    pub const GREEN_CONTEXT: u64 = 10;
    /// A multicast object, among the handles of physical memory.
    pub const MULTICAST: u64 = 11;
    /// A user object, which a graph keeps alive.
    pub const USER_OBJECT: u64 = 12;
    /// A kernel that was looked up in a module or a library.
    pub const KERNEL: u64 = 13;
}

/// What the end of a capture answers.
pub mod capture {
    /// The statuses after which the capture goes on, because the call was refused as such: invalid
    /// value, not initialised, deinitialised, invalid context, invalid handle, illegal state,
    /// unmatched, wrong thread. Every other one ends it, with a graph or without.
    pub const REFUSED: [u32; 8] = [1, 3, 4, 201, 400, 401, 903, 908];
}

/// Operand codes of every kind that a file may hold: this crate's own and, for kinds newer
/// than it, those that the file's header declares. An event of an unknown kind can so be
/// stepped over.
#[derive(Clone)]
pub struct Shapes {
    rows: [([u8; MAX_OPERANDS], u8); 256],
}

/// A kind without a shape.
const NO_SHAPE: u8 = 0xff;

impl Default for Shapes {
    fn default() -> Self {
        let mut shapes = Self { rows: [([0; MAX_OPERANDS], NO_SHAPE); 256] };
        for &kind in Kind::ALL {
            shapes.insert(kind as u8, kind.operands().iter().map(|&operand| operand as u8));
        }
        shapes
    }
}

impl Shapes {
    fn insert(&mut self, id: u8, codes: impl Iterator<Item = u8>) {
        let row = &mut self.rows[usize::from(id)];
        row.1 = 0;
        for (slot, code) in row.0.iter_mut().zip(codes) {
            *slot = code;
            row.1 += 1;
        }
    }

    /// Adds the kinds that a file's header declares and this crate does not know.
    ///
    /// # Errors
    /// When the declaration is cut off or names an operand code that this crate cannot step
    /// over.
    pub fn declare(&mut self, declaration: &[u8]) -> Result<(), DecodeError> {
        let mut input = Input::new(declaration);
        while !input.is_empty() {
            let offset = input.offset();
            let id = input.byte()?;
            let codes = input.text()?;
            let known = codes.iter().all(|&code| Operand::from_code(code).is_some());
            if codes.len() > MAX_OPERANDS || !known {
                return Err(DecodeError::UnknownKind { kind: id, offset });
            }
            if Kind::from_id(id).is_none() {
                self.insert(id, codes.iter().copied());
            }
        }
        Ok(())
    }

    /// The operand codes of a kind.
    #[must_use]
    #[inline]
    pub fn get(&self, id: u8) -> Option<&[u8]> {
        let (codes, count) = &self.rows[usize::from(id)];
        codes.get(..usize::from(*count))
    }
}

/// The declaration of this crate's kinds, as it stands in a file's header: for each kind its
/// id, the number of its operands and their codes. Returns the bytes written, or `None` when
/// `out` is too small.
pub fn write_declaration(out: &mut [u8]) -> Option<usize> {
    let mut output = crate::varint::Output::new(out);
    for &kind in Kind::ALL {
        output.byte(kind as u8);
        output.number(kind.operands().len() as u64);
        for &operand in kind.operands() {
            output.byte(operand as u8);
        }
    }
    output.finish()
}
