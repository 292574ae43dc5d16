//! What is missing from a damaged log, in words that name the place.

use std::fmt;

use gmmtrace_format::DecodeError;

/// One thing that could not be read. What stands before it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Salvage {
    /// The file ends inside its header.
    HeaderCut {
        /// Its length in bytes.
        length: u64,
    },
    /// The header's table of event kinds is damaged.
    Kinds {
        /// What was found.
        error: DecodeError,
    },
    /// The file ends before the last slot that was taken.
    SlotsMissing {
        /// Slots that are there, the header's included.
        there: u64,
        /// Slots that were taken.
        taken: u64,
    },
    /// The file ends inside a chunk that holds more.
    ChunkCut {
        /// The chunk's slot.
        slot: u64,
        /// Payload bytes that were committed and are not there.
        missing: u64,
    },
    /// A chunk's header is impossible.
    BadChunk {
        /// The chunk's slot.
        slot: u64,
        /// The impossible value.
        value: u32,
    },
    /// A chunk was given up for newer events, which this version does not read.
    Recycled {
        /// The chunk's slot.
        slot: u64,
    },
    /// A thread's last chunk is sealed, which it is only when another one follows.
    NextMissing {
        /// The thread's ordinal in the log.
        thread: u32,
        /// Number of the first missing chunk.
        first: u32,
    },
    /// A thread's chunks do not follow on each other.
    ChunkMissing {
        /// The thread's ordinal in the log.
        thread: u32,
        /// First missing sequence number.
        first: u32,
        /// How many are missing.
        count: u32,
    },
    /// Two chunks claim the same place in a thread's sequence.
    ChunkTwice {
        /// The thread's ordinal in the log.
        thread: u32,
        /// The sequence number.
        sequence: u32,
    },
    /// The events of a chunk stop making sense.
    Events {
        /// The chunk's slot.
        slot: u64,
        /// Committed bytes that were given up.
        lost: u64,
        /// What was found; `None` where nothing was written.
        error: Option<DecodeError>,
    },
    /// The definitions of a chunk stop making sense.
    Definitions {
        /// The chunk's slot.
        slot: u64,
        /// What was found.
        error: DecodeError,
    },
    /// The file could not be read at a chunk, or had become shorter.
    Unreadable {
        /// The chunk's slot.
        slot: u64,
    },
}

impl Salvage {
    /// Whether events may be missing.
    #[must_use]
    pub const fn loses_events(&self) -> bool {
        !matches!(self, Self::Definitions { .. })
    }
}

impl fmt::Display for Salvage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::HeaderCut { length } => {
                write!(f, "the file ends inside its header, after {length} bytes")
            }
            Self::SlotsMissing { there, taken } => {
                write!(f, "the file was cut: it has {there} slots, and {taken} were taken")
            }
            Self::Kinds { error } => write!(f, "the header's table of event kinds: {error}"),
            Self::ChunkCut { slot, missing } => {
                write!(f, "the file ends inside chunk {slot}: {missing} committed bytes missing")
            }
            Self::BadChunk { slot, value } => {
                write!(f, "chunk {slot} skipped or cut: impossible header value {value:#x}")
            }
            Self::Recycled { slot } => {
                write!(f, "chunk {slot} skipped: recycled, which this version does not read")
            }
            Self::NextMissing { thread, first } => {
                write!(f, "chunks missing: those of thread {thread} from number {first} on")
            }
            Self::ChunkMissing { thread, first, count } => {
                write!(f, "chunk missing: {count} of thread {thread}, from number {first}")
            }
            Self::ChunkTwice { thread, sequence } => {
                write!(f, "chunk number {sequence} of thread {thread} is there twice")
            }
            Self::Events { slot, lost, error: Some(error) } => {
                write!(f, "chunk {slot}: {error}; {lost} committed bytes given up")
            }
            Self::Events { slot, lost, error: None } => {
                write!(f, "chunk {slot}: no event where one was committed; {lost} bytes given up")
            }
            Self::Definitions { slot, error } => {
                write!(f, "chunk {slot}: {error}; its further definitions given up")
            }
            Self::Unreadable { slot } => write!(f, "chunk {slot} cannot be read any more"),
        }
    }
}
