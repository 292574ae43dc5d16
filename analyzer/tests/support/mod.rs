//! Writes logs in memory, as a recorder would, for tests and benchmarks to read.
#![allow(dead_code, reason = "each test uses a part of it")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use gmmtrace::input::Log;
use gmmtrace::live::Window;
use gmmtrace::{render, report};
use gmmtrace_format::definition::{Definition, Layer, MAX_DEFINITION};
use gmmtrace_format::header::{InFlight, Item};
use gmmtrace_format::layout::{
    CHUNK_HEADER, CHUNK_LOG2, CHUNK_SIZE, CONTENT_DEFINITIONS, CONTENT_EVENTS, Counter, MAGIC,
    MAJOR, MINOR, PAYLOAD, chunk, file,
};
use gmmtrace_format::{Codec, Event, Flags, Kind};
use serde_json::Value;

/// Ids of entry points and sites that every log here defines.
pub const ALLOC: u32 = 256;
pub const FREE: u32 = 257;
pub const RUNTIME: u32 = 1;
pub const SITE: u32 = 10;
pub const FREE_SITE: u32 = 11;
pub const RUNTIME_SITE: u32 = 12;
pub const ALONE_SITE: u32 = 13;

/// An event with its text owned.
#[derive(Clone, Debug)]
pub struct Written {
    pub kind: Kind,
    pub event: Event<'static>,
    pub text: Vec<u8>,
}

/// A successful event that lasts from `at` to `at + 5`.
pub fn event(kind: Kind, at: u64, operands: &[u64]) -> Written {
    let mut all = [0; 5];
    all[..operands.len()].copy_from_slice(operands);
    Written { kind, event: Event::new(kind, SITE, at, at + 5, all), text: Vec::new() }
}

impl Written {
    pub fn failed(mut self) -> Self {
        self.event.flags = self.event.flags.with(Flags::FAILED);
        self.event.status = 2;
        self
    }

    pub fn failed_if(self, failed: bool) -> Self {
        if failed { self.failed() } else { self }
    }

    pub fn site(mut self, site: u32) -> Self {
        self.event.site = site;
        self
    }

    pub fn text(mut self, text: &str) -> Self {
        self.text = text.as_bytes().to_vec();
        self
    }

    pub fn flags(mut self, flags: Flags) -> Self {
        self.event.flags = self.event.flags.with(flags);
        self
    }

    pub fn lasting(mut self, ticks: u64) -> Self {
        self.event.end = self.event.start + ticks;
        self
    }
}

/// One chunk of events.
pub struct Chunk {
    pub slot: Vec<u8>,
    pub at: usize,
    codec: Codec,
}

impl Chunk {
    pub fn new(thread: u32, sequence: u32, base: u64) -> Self {
        let mut slot = vec![0; CHUNK_SIZE];
        let words = [
            (chunk::STATE, 1),
            (chunk::TID, 1000 + thread),
            (chunk::THREAD, thread),
            (chunk::SEQUENCE, sequence),
            (chunk::CONTENT, CONTENT_EVENTS),
        ];
        for (offset, word) in words {
            put32(&mut slot, offset, word);
        }
        put64(&mut slot, chunk::BASE, base);
        Self { slot, at: 0, codec: Codec::new(base) }
    }

    /// False when it is full.
    pub fn push(&mut self, kind: Kind, event: &Event<'_>) -> bool {
        let out = &mut self.slot[CHUNK_HEADER + self.at..];
        let Some(length) = self.codec.encode(kind, event, out) else { return false };
        self.at += length;
        put32(&mut self.slot, chunk::COMMITTED, self.at as u32);
        true
    }
}

pub fn put32(bytes: &mut [u8], offset: usize, value: u32) {
    bytes[offset..offset + 4].copy_from_slice(&value.to_le_bytes());
}

pub fn put64(bytes: &mut [u8], offset: usize, value: u64) {
    bytes[offset..offset + 8].copy_from_slice(&value.to_le_bytes());
}

/// A log to be.
pub struct Writer {
    /// Events of each thread, in the order it wrote them.
    pub threads: Vec<Vec<Written>>,
    /// Events of a chunk at most.
    pub per_chunk: usize,
    pub counters: Vec<(Counter, u64)>,
    pub gpus: u32,
    pub exited: bool,
    /// A driver call in flight in the last chunk: entry point, start, argument.
    pub in_flight: Option<(u16, u64, u64)>,
}

impl Default for Writer {
    fn default() -> Self {
        Self {
            threads: Vec::new(),
            per_chunk: usize::MAX,
            counters: Vec::new(),
            gpus: 1,
            exited: true,
            in_flight: None,
        }
    }
}

impl Writer {
    /// A log of one thread.
    pub fn of(events: Vec<Written>) -> Self {
        Self { threads: vec![events], ..Self::default() }
    }

    /// Adds an event to a thread.
    pub fn push(&mut self, thread: usize, written: Written) {
        while self.threads.len() <= thread {
            self.threads.push(Vec::new());
        }
        self.threads[thread].push(written);
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.header();
        for (thread, events) in self.threads.iter().enumerate() {
            bytes.extend(self.chunks(thread as u32 + 1, events));
        }
        bytes.extend(dictionary(self.gpus));
        bytes
    }

    pub fn header(&self) -> Vec<u8> {
        let mut head = vec![0; CHUNK_SIZE];
        head[..8].copy_from_slice(&MAGIC);
        head[file::MAJOR..][..2].copy_from_slice(&MAJOR.to_le_bytes());
        head[file::MINOR..][..2].copy_from_slice(&MINOR.to_le_bytes());
        head[file::CHUNK_LOG2] = CHUNK_LOG2;
        head[file::CLOCK] = 2;
        put32(&mut head, file::PID, 77);
        put64(&mut head, file::START_REALTIME, 1_700_000_000_000_000_000);
        if self.exited {
            put64(&mut head, file::EXIT_TICKS, 1_000_000);
        }
        for &(counter, value) in &self.counters {
            put64(&mut head, file::COUNTERS + 8 * counter as usize, value);
        }
        let items: [(Item, &[u8]); 4] = [
            (Item::Executable, b"/usr/bin/program"),
            (Item::CommandLine, b"program\0--fast\0"),
            (Item::Environment, b"CUDA_VISIBLE_DEVICES=0"),
            (Item::Host, b"host"),
        ];
        let mut at = file::ITEMS;
        for (item, value) in items {
            head[at..at + 2].copy_from_slice(&(item as u16).to_le_bytes());
            head[at + 2..at + 4].copy_from_slice(&(value.len() as u16).to_le_bytes());
            head[at + 4..at + 4 + value.len()].copy_from_slice(value);
            at += 4 + value.len();
        }
        put32(&mut head, file::ITEMS_LENGTH, (at - file::ITEMS) as u32);
        head
    }

    fn chunks(&self, thread: u32, events: &[Written]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut tid = 1000 + thread;
        for (sequence, events) in events.chunks(self.per_chunk.min(1 << 20)).enumerate() {
            let base = events.iter().map(|written| written.event.start).min().unwrap_or(0);
            let mut chunk = Chunk::new(thread, sequence as u32, base);
            put32(&mut chunk.slot, gmmtrace_format::layout::chunk::TID, tid);
            for written in events {
                let event = Event { text: &written.text, ..written.event };
                assert!(chunk.push(written.kind, &event), "the chunk is full");
                if written.kind == Kind::Thread {
                    tid = written.event.operands[0] as u32;
                }
            }
            if let Some((api, start, argument)) = self.in_flight {
                let word = InFlight::word(api, start);
                put64(&mut chunk.slot, gmmtrace_format::layout::chunk::DRIVER_CALL, word);
                put64(&mut chunk.slot, gmmtrace_format::layout::chunk::DRIVER_CALL + 8, argument);
            }
            bytes.append(&mut chunk.slot);
        }
        bytes
    }

    pub fn log(&self) -> Log {
        open(&self.bytes())
    }

    pub fn json(&self) -> Value {
        json(&self.log())
    }
}

/// A dictionary chunk with the ids above and some GPUs.
pub fn dictionary(gpus: u32) -> Vec<u8> {
    let mut slot = vec![0; CHUNK_SIZE];
    put32(&mut slot, chunk::STATE, 1);
    put32(&mut slot, chunk::CONTENT, CONTENT_DEFINITIONS);
    let api = |id, layer, name| Definition::Api { id, layer: layer as u64, name };
    let site = |id, api, outer| Definition::Site { id, api, outer, address: 0x1234, module: 1 };
    let mut all = vec![
        api(ALLOC, Layer::Driver, b"cuMemAlloc_v2".as_slice()),
        api(FREE, Layer::Driver, b"cuMemFree_v2"),
        api(RUNTIME, Layer::Runtime, b"cudaMalloc"),
        Definition::Module { id: 1, start: 0x1000, end: 0x2000, build_id: &[1], path: b"/l/x.so" },
        site(SITE, ALLOC, 0),
        site(FREE_SITE, FREE, 0),
        site(RUNTIME_SITE, ALLOC, RUNTIME),
        site(ALONE_SITE, RUNTIME, 0),
        Definition::Lookup {
            resolver: 1,
            hooked: false,
            version: 12_000,
            flags: 0,
            count: 3,
            module: 1,
            name: b"cuMemPoolCreate",
        },
        Definition::Remark { text: b"a remark" },
        Definition::Driver { version: b"580.1" },
    ];
    all.extend((0..gpus).map(|index| Definition::Gpu {
        index,
        total: 1 << 34,
        uuid: b"GPU-1",
        name: b"Test GPU",
    }));
    let mut at = CHUNK_HEADER;
    for definition in all {
        let word = definition.encode(&mut slot[at + 4..]).unwrap();
        put32(&mut slot, at, word);
        at += (word & gmmtrace_format::definition::LENGTH) as usize;
    }
    assert!(at <= CHUNK_HEADER + PAYLOAD);
    slot
}

/// Chunks of definitions.
pub fn definitions<'a>(all: impl Iterator<Item = Definition<'a>>) -> Vec<u8> {
    let begun = || {
        let mut slot = vec![0; CHUNK_SIZE];
        let words = [
            (chunk::STATE, 1),
            (chunk::CONTENT, CONTENT_DEFINITIONS),
            (chunk::COMMITTED, PAYLOAD as u32),
        ];
        words.into_iter().for_each(|(offset, word)| put32(&mut slot, offset, word));
        slot
    };
    let (mut bytes, mut slot, mut place) = (Vec::new(), begun(), CHUNK_HEADER);
    for one in all {
        if CHUNK_SIZE - place < MAX_DEFINITION + 8 {
            bytes.append(&mut slot);
            (slot, place) = (begun(), CHUNK_HEADER);
        }
        let word = one.encode(&mut slot[place + 4..]).unwrap();
        put32(&mut slot, place, word);
        place += (word & gmmtrace_format::definition::LENGTH) as usize;
    }
    bytes.append(&mut slot);
    bytes
}

/// Opens a log that is only in memory. The file is gone when the log is closed.
pub fn open(bytes: &[u8]) -> Log {
    try_open(bytes).unwrap()
}

pub fn try_open(bytes: &[u8]) -> Result<Log, gmmtrace::Error> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    Log::open(file.path())
}

pub fn read(log: &Log) -> report::Report {
    report::read(log, Window::default(), |_, _| ())
}

pub fn json(log: &Log) -> Value {
    render::json::value(&read(log))
}

/// Everything that can be made of a log, to see that nothing panics. Returns its events.
pub fn exercise(bytes: &[u8]) -> Option<u64> {
    let log = try_open(bytes).ok()?;
    let report = read(&log);
    render::text::write(&report, &mut std::io::sink()).unwrap();
    // Pages take long to draw in a debug build.
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    if COUNT.fetch_add(1, Ordering::Relaxed).is_multiple_of(16) {
        render::html::write(&report, &mut std::io::sink()).unwrap();
    }
    gmmtrace::cli::dump::write(&log, &mut std::io::sink()).unwrap();
    Some(render::json::value(&report)["trace"]["events"].as_u64().unwrap())
}

pub fn schema_path() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/report.schema.json")
}

/// Holds a report against the schema.
pub fn assert_valid(report: &Value) {
    thread_local! {
        static SCHEMA: (boon::Schemas, boon::SchemaIndex) = {
            let mut schemas = boon::Schemas::new();
            let mut compiler = boon::Compiler::new();
            let path = schema_path();
            let schema = compiler.compile(path.to_str().unwrap(), &mut schemas).unwrap();
            (schemas, schema)
        };
    }
    let found = SCHEMA.with(|(schemas, schema)| {
        schemas.validate(report, *schema).map_err(|error| format!("{error:#}"))
    });
    assert_eq!(found, Ok(()));
}
