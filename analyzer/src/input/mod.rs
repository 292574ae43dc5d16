//! A log as it lies on the disk: header, chunk headers, definitions, and what is wrong with it.
//!
//! Nothing is mapped: a log may be written to, cut off or replaced while it is read, and `pread`
//! turns all of that into data. Events are not touched here; `order` decodes them.

mod alive;
mod dictionary;
mod find;
mod frames;
mod lines;
mod process;
mod salvage;
mod scan;
mod timeline;

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use gmmtrace_format::header::Item;
use gmmtrace_format::layout::{CHUNK_SIZE, COUNTERS, Counter, file};
use gmmtrace_format::{FileHeader, Shapes};

use crate::Error;

pub use alive::WriterState;
pub use dictionary::{Api, Dictionary, GpuFacts, Lookup, Module, Site};
pub use find::{EXTENSION, logs};
pub use frames::{Code, Frame, Frames, Stack};
pub use process::Process;
pub use salvage::Salvage;
pub use scan::{ChunkRef, OpenCalls, Slots};
pub use timeline::Timeline;

/// An opened log.
pub struct Log {
    /// Where it was found.
    pub path: PathBuf,
    /// Its bytes.
    pub file: File,
    /// Length in bytes when it was opened.
    pub size: u64,
    /// What the header says about the process.
    pub process: Process,
    /// Whether it is still being written.
    pub state: WriterState,
    /// The header's counters.
    pub counters: Counters,
    /// Ticks to nanoseconds.
    pub timeline: Timeline,
    /// Shapes of its event kinds.
    pub shapes: Shapes,
    /// Its chunks of events.
    pub slots: Slots,
    /// What the ids in events mean.
    pub dictionary: Dictionary,
    /// What was found to be damaged so far; `order` adds what it meets.
    pub salvage: Vec<Salvage>,
}

/// The header's counters.
#[derive(Clone, Copy, Debug)]
pub struct Counters(pub [u64; COUNTERS]);

impl Counters {
    /// One counter's value.
    #[must_use]
    pub fn get(&self, counter: Counter) -> u64 {
        self.0.get(counter as usize).copied().unwrap_or(0)
    }

    /// Whether something that changes a live figure may be missing, or is counted that was not
    /// done: a captured call runs when its graph is launched.
    #[must_use]
    pub fn lost_live(&self) -> bool {
        const CAUSES: [Counter; 6] = [
            Counter::Captured,
            Counter::LostLive,
            Counter::LostOther,
            Counter::Reentered,
            Counter::UnregisteredThreads,
            Counter::OtherDriver,
        ];
        CAUSES.iter().any(|&cause| self.get(cause) > 0)
    }
}

impl Counters {
    /// Whether copies and sets are missing for want of room, as they are first of all.
    #[must_use]
    pub fn lost_copies(&self) -> bool {
        self.get(Counter::LostCopies) > 0
    }

    /// Whether the only doubt is about captured streams: nothing is missing.
    #[must_use]
    pub fn captures_alone(&self) -> bool {
        let mut others = *self;
        if let Some(captured) = others.0.get_mut(Counter::Captured as usize) {
            *captured = 0;
        }
        self.get(Counter::Captured) > 0 && !others.lost_live() && !others.lost_copies()
    }
}

impl Log {
    /// Opens a log and reads everything but its events.
    ///
    /// # Errors
    /// When the file cannot be read, or not as a log of a version this crate knows.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let told = |source| Error::path("read", path, source);
        let opened = open_regular(path).map_err(told)?;
        let size = opened.metadata().map_err(told)?.len();
        if size == 0 {
            return Err(Error::Empty(path.to_path_buf()));
        }
        let mut salvage = Vec::new();
        let before = last_sequence(&opened).map_err(told)?;
        let head = read_head(&opened, size, &mut salvage).map_err(told)?;
        let mut header = FileHeader::parse(&head)
            .map_err(|error| Error::NotReadable(path.to_path_buf(), error))?;
        if before != last_sequence(&opened).map_err(told)? {
            // The helper was writing the pair while it was read.
            header.last = None;
        }
        let state = alive::state(&header);
        let running = state == WriterState::Running;
        let slots = scan::scan(&opened, size, running, &mut salvage).map_err(told)?;
        let there = size.div_ceil(CHUNK_SIZE as u64);
        if there < header.slots && !running {
            salvage.push(Salvage::SlotsMissing { there, taken: header.slots });
        }
        // Definitions after the events' lengths: an event's definition is written before it.
        let dictionary = dictionary::read(&opened, &slots, state, &mut salvage).map_err(told)?;
        let mut shapes = Shapes::default();
        if let Some(Err(error)) = header.item(Item::Kinds).map(|kinds| shapes.declare(kinds)) {
            salvage.push(Salvage::Kinds { error });
        }
        Ok(Self {
            process: Process::read(&header),
            counters: Counters(header.counters),
            timeline: Timeline::new(&header, &slots),
            path: path.to_path_buf(),
            file: opened,
            size,
            state,
            shapes,
            slots,
            dictionary,
            salvage,
        })
    }
}

/// Opens a file that has an end: a pipe or a device could keep a reader for ever.
fn open_regular(path: &Path) -> io::Result<File> {
    if std::fs::metadata(path)?.is_file() {
        return File::open(path);
    }
    let directory = path.is_dir();
    let text = if directory { "is a directory" } else { "not a regular file" };
    Err(io::Error::other(text))
}

/// The number that changes when the helper writes its last look.
fn last_sequence(opened: &File) -> io::Result<[u8; 8]> {
    let mut sequence = [0; 8];
    read_up_to(opened, &mut sequence, file::LAST_SEQUENCE as u64)?;
    Ok(sequence)
}

/// What a log's header says about its process; `None` when the file is no log.
#[must_use]
pub fn process_of(path: &Path) -> Option<Process> {
    let opened = open_regular(path).ok()?;
    let head = read_head(&opened, 0, &mut Vec::new()).ok()?;
    FileHeader::parse(&head).ok().map(|header| Process::read(&header))
}

/// The header's slot. A file that ends inside it is read as if zeros followed, as long as the
/// fixed fields are there.
fn read_head(opened: &File, size: u64, salvage: &mut Vec<Salvage>) -> io::Result<Vec<u8>> {
    let mut head = vec![0; CHUNK_SIZE];
    let length = read_up_to(opened, &mut head, 0)?;
    if length < file::COUNTERS {
        head.truncate(length);
    } else if length < CHUNK_SIZE {
        salvage.push(Salvage::HeaderCut { length: size });
    }
    Ok(head)
}

/// Reads until `bytes` is full or the file ends.
pub(crate) fn read_up_to(opened: &File, bytes: &mut [u8], at: u64) -> io::Result<usize> {
    let mut length = 0;
    while let Some(rest) = bytes.get_mut(length..).filter(|rest| !rest.is_empty()) {
        match opened.read_at(rest, at + length as u64) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}
