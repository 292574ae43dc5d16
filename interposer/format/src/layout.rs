//! Where things stand in the file: constants that writer and reader share.
//!
//! The file is a row of slots of one size. Slot 0 is the file header; every other slot is a
//! chunk, owned by one writer at a time, or has never been touched and is all zeros.

/// First bytes of every log. Not text, damaged by newline translation, never valid UTF-8.
pub const MAGIC: [u8; 8] = *b"\x89GMMT\r\n\x1a";
/// Format version: another major number cannot be read.
pub const MAJOR: u16 = 1;
/// Format version: a higher minor number adds kinds, definitions, items and counters.
pub const MINOR: u16 = 0;

/// Slots are 2 to this power of bytes.
pub const CHUNK_LOG2: u8 = 16;
/// Bytes in a slot.
pub const CHUNK_SIZE: usize = 1 << CHUNK_LOG2;
/// Bytes of a chunk before its payload.
pub const CHUNK_HEADER: usize = 128;
/// Bytes of payload in a chunk.
pub const PAYLOAD: usize = CHUNK_SIZE - CHUNK_HEADER;

/// Offsets in the file header.
pub mod file {
    /// [`super::MAGIC`], stored last: it publishes the header.
    pub const MAGIC: usize = 0;
    /// u16.
    pub const MAJOR: usize = 8;
    /// u16.
    pub const MINOR: usize = 10;
    /// u8, [`super::CHUNK_LOG2`].
    pub const CHUNK_LOG2: usize = 12;
    /// u8, a [`super::Clock`].
    pub const CLOCK: usize = 13;
    /// u32, bytes of items behind [`ITEMS`].
    pub const ITEMS_LENGTH: usize = 16;
    /// u32, as the process sees itself.
    pub const PID: usize = 20;
    /// u32.
    pub const PARENT_PID: usize = 24;
    /// u32, 0 for the first log of a process image's ancestry, plus 1 for each fork.
    pub const GENERATION: usize = 28;
    /// u64, ticks when the library was loaded.
    pub const LOAD_TICKS: usize = 32;
    /// u64, CLOCK_MONOTONIC nanoseconds at the same moment.
    pub const LOAD_MONOTONIC: usize = 40;
    /// u64, ticks when the log began: time zero of every report.
    pub const START_TICKS: usize = 48;
    /// u64, CLOCK_MONOTONIC nanoseconds at the same moment.
    pub const START_MONOTONIC: usize = 56;
    /// u64, CLOCK_REALTIME nanoseconds at the same moment.
    pub const START_REALTIME: usize = 64;
    /// u64, ticks when the helper last looked, 0 before it did.
    pub const LAST_TICKS: usize = 72;
    /// u64, CLOCK_MONOTONIC nanoseconds at the same moment.
    pub const LAST_MONOTONIC: usize = 80;
    /// u64, odd while the two fields above are being changed.
    pub const LAST_SEQUENCE: usize = 88;
    /// u64, ticks when the process called `exit`, 0 when it did not.
    pub const EXIT_TICKS: usize = 96;
    /// u64, start time of the process in clock ticks since boot (`/proc/self/stat`, field 22).
    pub const PROCESS_START: usize = 104;
    /// 16 bytes, the kernel's boot id.
    pub const BOOT_ID: usize = 112;
    /// u64, inode of the pid namespace.
    pub const PID_NAMESPACE: usize = 128;
    /// u64, slots taken so far, this one included; a shorter file was cut. 0 is unknown.
    pub const SLOTS: usize = 136;
    /// [`super::COUNTERS`] counters, u64 each.
    pub const COUNTERS: usize = 256;
    /// Items: u16 tag, u16 length, bytes.
    pub const ITEMS: usize = 1024;
}

/// Offsets in a chunk's header.
pub mod chunk {
    /// u32, a [`super::State`]; a release store of it publishes the header.
    pub const STATE: usize = 0;
    /// u32, payload bytes that are complete; a release store after each event.
    pub const COMMITTED: usize = 4;
    /// u32, kernel id of the owning thread.
    pub const TID: usize = 8;
    /// u32, ordinal of the owning thread in this log, from 1; 0 in a dictionary chunk.
    pub const THREAD: usize = 12;
    /// u32, which chunk of that thread this is, from 0.
    pub const SEQUENCE: usize = 16;
    /// u32, 0 for events, 1 for definitions.
    pub const CONTENT: usize = 20;
    /// u64, ticks: no event in the chunk takes effect before it; start of the codec.
    pub const BASE: usize = 24;
    /// u64, ticks when the chunk was taken.
    pub const TAKEN_TICKS: usize = 32;
    /// u64, CLOCK_MONOTONIC nanoseconds at the same moment.
    pub const TAKEN_MONOTONIC: usize = 40;
    /// In-flight slot of the runtime call: u64 word, u64 argument.
    pub const RUNTIME_CALL: usize = 48;
    /// In-flight slot of the driver call: u64 word, u64 argument.
    pub const DRIVER_CALL: usize = 64;
}

/// An in-flight word is the call's start in ticks (low 48 bits) under the entry point's id
/// (high 16 bits); 0 is none. The id is that of a `site` definition's `api`.
pub const IN_FLIGHT_TICKS: u64 = (1 << 48) - 1;

/// Who owns a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum State {
    /// Nothing was ever written here.
    Empty = 0,
    /// A thread writes here.
    Open = 1,
    /// Its thread has moved on.
    Sealed = 2,
    /// Reserved: its content was given up for newer events.
    Recycled = 3,
}

impl State {
    /// The state with this number.
    #[must_use]
    pub const fn from_word(word: u32) -> Option<Self> {
        match word {
            0 => Some(Self::Empty),
            1 => Some(Self::Open),
            2 => Some(Self::Sealed),
            3 => Some(Self::Recycled),
            _ => None,
        }
    }
}

/// What a chunk holds: events of one thread.
pub const CONTENT_EVENTS: u32 = 0;
/// What a chunk holds: definitions by any thread.
pub const CONTENT_DEFINITIONS: u32 = 1;

/// What the ticks are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Clock {
    /// The processor's invariant time-stamp counter.
    TimeStampCounter = 1,
    /// CLOCK_MONOTONIC nanoseconds.
    Monotonic = 2,
}

/// Number of counters in the file header.
pub const COUNTERS: usize = 64;

macro_rules! counters {
    ($($id:literal $variant:ident $name:literal $loss:literal $doc:literal;)*) => {
        /// A counter in the file header.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(usize)]
        pub enum Counter { $(#[doc = $doc] $variant = $id,)* }

        impl Counter {
            /// Every counter, by rising id.
            pub const ALL: &'static [Counter] = &[$(Counter::$variant),*];

            /// Its name in reports.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Whether a count above zero means that something is missing from the log.
            #[must_use]
            pub const fn is_loss(self) -> bool {
                match self { $(Self::$variant => $loss,)* }
            }

            /// What it counts.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $doc,)* }
            }
        }
    };
}

counters! {
    0 LostLive "lost_live_events" true
        "Events that change the live set and found no room in the log.";
    1 LostCopies "lost_copies" true
        "Copies and sets that found no room in the log or passed its size cap.";
    2 LostOther "lost_other_events" true
        "Other events that found no room in the log.";
    3 Reentered "reentered" true
        "Calls made from a signal handler that interrupted the recorder itself.";
    4 LostDefinitions "lost_definitions" true
        "Call sites, modules or names that could not be defined.";
    5 GrowthFailures "growth_failures" false
        "Times the log could not grow.";
    6 UnregisteredThreads "unregistered_threads" true
        "Events of threads for which the thread table had no room.";
    7 LostLookups "lost_lookups" true
        "Lookups that found no room in the table of noted names.";
    16 LookupsHooked "lookups_hooked" false
        "Entry points handed out with a hook.";
    17 LookupsPassed "lookups_passed" false
        "CUDA entry points handed out without a hook.";
    18 LookupsNext "lookups_next" false
        "Lookups of a hooked name with RTLD_NEXT, which go through untouched.";
    19 OtherDriver "other_driver" true
        "Hooked names found in a second driver, which stays untouched.";
    20 OtherRuntime "other_runtime" false
        "Runtime entry points found in more copies than there are hooks for.";
    21 NoRealFunction "no_real_function" false
        "Calls of an exported name behind which no real function was found.";
    22 HelperMissing "helper_missing" false
        "1 when the helper thread could not be started.";
    23 DescriptorLost "descriptor_lost" false
        "Times the host had closed or re-used our descriptor and the log was reopened.";
    24 AmbiguousReal "ambiguous_real_function" false
        "Real functions chosen among several loaded copies because the caller could not be told.";
    25 Captured "during_capture" false
        "Calls made while captures could not be followed, counted as if each had run once.";
    26 StacksFull "stacks_full" false
        "Events whose stack found no room in a table of stacks; their call site is known.";
    27 StacksDoubtful "stacks_doubtful" false
        "Stacks that could not be read as they should be, cut or left out.";
}
