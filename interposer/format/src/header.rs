//! The file header and the chunk header, read from bytes.

use crate::error::DecodeError;
use crate::layout::{
    self, CHUNK_HEADER, CHUNK_SIZE, COUNTERS, Clock, Counter, MAGIC, MAJOR, State, chunk, file,
};

/// Tag of a header item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Item {
    /// Path of the executable.
    Executable = 1,
    /// Arguments, separated by NUL.
    CommandLine = 2,
    /// One environment switch that matters, `NAME=value`; may repeat.
    Environment = 3,
    /// Host name.
    Host = 4,
    /// Kernel release.
    Kernel = 5,
    /// Version of the recording library.
    Recorder = 6,
    /// The file's own kind table (`kind::write_declaration`).
    Kinds = 7,
    /// Working directory.
    Directory = 8,
    /// A remark of the recorder about its own set-up; may repeat.
    Remark = 9,
}

impl Item {
    /// The item with this tag.
    #[must_use]
    pub const fn from_tag(tag: u16) -> Option<Self> {
        Some(match tag {
            1 => Self::Executable,
            2 => Self::CommandLine,
            3 => Self::Environment,
            4 => Self::Host,
            5 => Self::Kernel,
            6 => Self::Recorder,
            7 => Self::Kinds,
            8 => Self::Directory,
            9 => Self::Remark,
            _ => return None,
        })
    }
}

fn array<const N: usize>(bytes: &[u8], offset: usize) -> Result<[u8; N], DecodeError> {
    bytes
        .get(offset..)
        .and_then(|rest| rest.first_chunk::<N>())
        .copied()
        .ok_or(DecodeError::Truncated { offset })
}

fn u16_at(bytes: &[u8], offset: usize) -> Result<u16, DecodeError> {
    array(bytes, offset).map(u16::from_le_bytes)
}

fn u32_at(bytes: &[u8], offset: usize) -> Result<u32, DecodeError> {
    array(bytes, offset).map(u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], offset: usize) -> Result<u64, DecodeError> {
    array(bytes, offset).map(u64::from_le_bytes)
}

/// A moment on both clocks: ticks of the log and CLOCK_MONOTONIC nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Anchor {
    /// Ticks.
    pub ticks: u64,
    /// Nanoseconds.
    pub monotonic_ns: u64,
}

/// The file header's fixed fields.
#[derive(Clone, Debug)]
pub struct FileHeader<'a> {
    /// Minor version of the file.
    pub minor: u16,
    /// What its ticks are.
    pub clock: Clock,
    /// Process id, as the process sees itself.
    pub pid: u32,
    /// Its parent's.
    pub parent_pid: u32,
    /// How many forks lie between this process and the program that was started.
    pub generation: u32,
    /// When the library was loaded.
    pub load: Anchor,
    /// When the log began: time zero.
    pub start: Anchor,
    /// CLOCK_REALTIME nanoseconds at time zero.
    pub start_realtime_ns: u64,
    /// When the helper last looked, if it did.
    pub last: Option<Anchor>,
    /// When the process called `exit`, if it did.
    pub exit_ticks: Option<u64>,
    /// Start time of the process in clock ticks since boot.
    pub process_start: u64,
    /// The kernel's boot id.
    pub boot_id: [u8; 16],
    /// Inode of the pid namespace.
    pub pid_namespace: u64,
    /// Slots taken so far, the header's included; 0 is unknown.
    pub slots: u64,
    /// Counters, by [`Counter`].
    pub counters: [u64; COUNTERS],
    items: &'a [u8],
}

impl<'a> FileHeader<'a> {
    /// Reads a header from the start of a file.
    ///
    /// # Errors
    /// When the bytes are no log, an unfinished one, or one of another major version.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let magic: [u8; 8] = array(bytes, file::MAGIC).map_err(|_| DecodeError::NotALog)?;
        if magic == [0; 8] {
            return Err(DecodeError::Unpublished);
        }
        if magic != MAGIC {
            return Err(DecodeError::NotALog);
        }
        let (major, minor) = (u16_at(bytes, file::MAJOR)?, u16_at(bytes, file::MINOR)?);
        if major != MAJOR {
            return Err(DecodeError::OtherVersion { major, minor });
        }
        let [log2, clock] = array(bytes, file::CHUNK_LOG2)?;
        if log2 != layout::CHUNK_LOG2 {
            let value = u64::from(log2);
            return Err(DecodeError::BadHeader { offset: file::CHUNK_LOG2, value });
        }
        let clock = match clock {
            1 => Clock::TimeStampCounter,
            2 => Clock::Monotonic,
            _ => {
                let value = u64::from(clock);
                return Err(DecodeError::BadHeader { offset: file::CLOCK, value });
            }
        };
        let mut counters = [0; COUNTERS];
        for (index, counter) in counters.iter_mut().enumerate() {
            *counter = u64_at(bytes, file::COUNTERS + 8 * index)?;
        }
        let last = Anchor {
            ticks: u64_at(bytes, file::LAST_TICKS)?,
            monotonic_ns: u64_at(bytes, file::LAST_MONOTONIC)?,
        };
        let settled = u64_at(bytes, file::LAST_SEQUENCE)? % 2 == 0;
        let exit_ticks = u64_at(bytes, file::EXIT_TICKS)?;
        Ok(Self {
            minor,
            clock,
            pid: u32_at(bytes, file::PID)?,
            parent_pid: u32_at(bytes, file::PARENT_PID)?,
            generation: u32_at(bytes, file::GENERATION)?,
            load: Anchor {
                ticks: u64_at(bytes, file::LOAD_TICKS)?,
                monotonic_ns: u64_at(bytes, file::LOAD_MONOTONIC)?,
            },
            start: Anchor {
                ticks: u64_at(bytes, file::START_TICKS)?,
                monotonic_ns: u64_at(bytes, file::START_MONOTONIC)?,
            },
            start_realtime_ns: u64_at(bytes, file::START_REALTIME)?,
            last: (settled && last.ticks != 0).then_some(last),
            exit_ticks: (exit_ticks != 0).then_some(exit_ticks),
            process_start: u64_at(bytes, file::PROCESS_START)?,
            boot_id: array(bytes, file::BOOT_ID)?,
            pid_namespace: u64_at(bytes, file::PID_NAMESPACE)?,
            slots: u64_at(bytes, file::SLOTS)?,
            counters,
            items: items(bytes)?,
        })
    }

    /// A counter's value.
    #[must_use]
    pub fn counter(&self, counter: Counter) -> u64 {
        self.counters.get(counter as usize).copied().unwrap_or(0)
    }

    /// The items: tag and bytes. Stops where the bytes are cut off.
    pub fn items(&self) -> impl Iterator<Item = (u16, &'a [u8])> + use<'a> {
        let mut rest = self.items;
        core::iter::from_fn(move || {
            let tag = u16_at(rest, 0).ok()?;
            let length = usize::from(u16_at(rest, 2).ok()?);
            let value = rest.get(4..4 + length)?;
            rest = rest.get(4 + length..)?;
            Some((tag, value))
        })
    }

    /// The first item with this tag.
    #[must_use]
    pub fn item(&self, item: Item) -> Option<&'a [u8]> {
        self.items().find(|&(tag, _)| tag == item as u16).map(|(_, value)| value)
    }
}

fn items(bytes: &[u8]) -> Result<&[u8], DecodeError> {
    let length = u32_at(bytes, file::ITEMS_LENGTH)?;
    let limit = CHUNK_SIZE - file::ITEMS;
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    if length > limit {
        let value = length as u64;
        return Err(DecodeError::BadHeader { offset: file::ITEMS_LENGTH, value });
    }
    bytes
        .get(file::ITEMS..file::ITEMS + length)
        .ok_or(DecodeError::Truncated { offset: file::ITEMS })
}

/// A call that had begun and not returned when the chunk was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InFlight {
    /// Id of the entry point.
    pub api: u16,
    /// The low 48 bits of its start in ticks.
    pub ticks_low: u64,
    /// The argument that matters: an address or a size.
    pub argument: u64,
}

impl InFlight {
    fn parse(bytes: &[u8], offset: usize) -> Result<Option<Self>, DecodeError> {
        let word = u64_at(bytes, offset)?;
        let argument = u64_at(bytes, offset + 8)?;
        let ticks_low = word & layout::IN_FLIGHT_TICKS;
        Ok((word != 0).then_some(Self { api: (word >> 48) as u16, ticks_low, argument }))
    }

    /// The word for a call of `api` that began at `ticks`.
    #[must_use]
    #[inline]
    pub const fn word(api: u16, ticks: u64) -> u64 {
        (api as u64) << 48 | ticks & layout::IN_FLIGHT_TICKS
    }
}

/// A chunk's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkHeader {
    /// Who owns it; `None` is a state this crate does not know.
    pub state: Option<State>,
    /// Payload bytes that are complete.
    pub committed: u32,
    /// Kernel id of the owning thread.
    pub tid: u32,
    /// Ordinal of that thread in this log, from 1.
    pub thread: u32,
    /// Which chunk of that thread this is, from 0.
    pub sequence: u32,
    /// [`layout::CONTENT_EVENTS`] or [`layout::CONTENT_DEFINITIONS`].
    pub content: u32,
    /// No event in the chunk takes effect before it.
    pub base: u64,
    /// When it was taken.
    pub taken: Anchor,
    /// The runtime call in flight.
    pub runtime_call: Option<InFlight>,
    /// The driver call in flight.
    pub driver_call: Option<InFlight>,
}

impl ChunkHeader {
    /// Reads a chunk's header.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`] when `bytes` is shorter than a header.
    pub fn parse(bytes: &[u8]) -> Result<Self, DecodeError> {
        if bytes.len() < CHUNK_HEADER {
            return Err(DecodeError::Truncated { offset: bytes.len() });
        }
        Ok(Self {
            state: State::from_word(u32_at(bytes, chunk::STATE)?),
            committed: u32_at(bytes, chunk::COMMITTED)?,
            tid: u32_at(bytes, chunk::TID)?,
            thread: u32_at(bytes, chunk::THREAD)?,
            sequence: u32_at(bytes, chunk::SEQUENCE)?,
            content: u32_at(bytes, chunk::CONTENT)?,
            base: u64_at(bytes, chunk::BASE)?,
            taken: Anchor {
                ticks: u64_at(bytes, chunk::TAKEN_TICKS)?,
                monotonic_ns: u64_at(bytes, chunk::TAKEN_MONOTONIC)?,
            },
            runtime_call: InFlight::parse(bytes, chunk::RUNTIME_CALL)?,
            driver_call: InFlight::parse(bytes, chunk::DRIVER_CALL)?,
        })
    }
}
