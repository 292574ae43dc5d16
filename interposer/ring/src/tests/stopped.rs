//! A writer that is stopped between any two of its stores leaves a readable log.
//!
//! A child process writes a small log into shared memory and is single-stepped. After each
//! instruction that changed the memory, what stands there is read as a reader would read it.

use std::collections::HashSet;

use gmmtrace_format::definition::{Definition, Definitions, Layer};
use gmmtrace_format::header::{Anchor, ChunkHeader, FileHeader};
use gmmtrace_format::layout::{
    CHUNK_HEADER, CHUNK_LOG2, CHUNK_SIZE, CONTENT_DEFINITIONS, CONTENT_EVENTS, Clock,
    IN_FLIGHT_TICKS, MAJOR, State, file,
};
use gmmtrace_format::varint::Input;
use gmmtrace_format::{Codec, DecodeError, Event, Flags, Kind, Shapes};

use super::{Slots, TAKEN};
use crate::{Chunk, Dictionary, Header, Opening};

const SLOTS: usize = 4;
const PID: u32 = 4242;
const BASE: u64 = 1000;
const FIRST_TICK: Anchor = Anchor { ticks: 1_111, monotonic_ns: 2_222 };
const SECOND_TICK: Anchor = Anchor { ticks: 3_333, monotonic_ns: 4_444 };
const EXIT: u64 = 9_999;
/// An event's site, and the argument that its call left in the in-flight slot.
const SITE: u32 = 5;
const ARGUMENT: u64 = 0xabcd_0000;

/// What the child writes: the last event into the second chunk.
fn events() -> [Event<'static>; 4] {
    let event = |kind, start, operands| Event::new(kind, SITE, start, start + 40, operands);
    let mut failed = event(Kind::DeviceAlloc, 1200, [0, 1 << 40, 0, 0, 0]);
    failed.flags = Flags::FAILED.with(Flags::CALL_FIRST);
    failed.status = 2;
    [
        event(Kind::DeviceAlloc, 1010, [0x7f12_3400_0000, 4096, 0, 0, 0]),
        failed,
        event(Kind::Copy, 1300, [1, 0x7f12_3400_0000, 0x55aa_1122_3344, 4096, 0]),
        event(Kind::Free, 1400, [0x7f12_3400_0000, 0, 0, 0, 0]),
    ]
}

const DEFINITIONS: [Definition<'static>; 3] = [
    Definition::Api { id: 256, layer: Layer::Driver as u64, name: b"cuMemAlloc_v2" },
    Definition::Site { id: SITE, api: 256, outer: 0, address: 0x5555_0000_1234, module: 0 },
    Definition::Driver { version: b"580.159.04" },
];

/// The child. It allocates nothing: it was forked from a process with threads.
fn write(memory: *mut u8) {
    let slots = Slots::at(memory, SLOTS);
    let Some(head) = slots.take() else { return };
    // SAFETY: the first slot, this process's alone.
    let header = unsafe { Header::at(head) };
    publish(header);
    header.tick(FIRST_TICK);
    let dictionary = Dictionary::new();
    for definition in &DEFINITIONS {
        // SAFETY: zeroed slots, each handed out once, that are never unmapped.
        unsafe { dictionary.append(&|| slots.take(), TAKEN, definition) };
    }
    let Some(first) = open(&slots, 0) else { return };
    let [one, two, three, four] = events();
    let mut codec = Codec::new(BASE);
    let mut at = 0;
    first.runtime_call(9, 1005, ARGUMENT);
    for event in [one, two, three] {
        first.driver_call(256, event.start, ARGUMENT + event.start);
        at += put(&first, &mut codec, &event, at);
        first.commit(at);
    }
    first.driver_call(256, four.start, ARGUMENT + four.start);
    let Some(second) = open(&slots, 1) else { return };
    second.inherit(&first);
    first.seal();
    let length = put(&second, &mut Codec::new(BASE), &four, 0);
    second.commit(length);
    second.runtime_returned();
    header.tick(SECOND_TICK);
    header.exited(EXIT);
}

fn publish(header: Header) {
    // SAFETY: not published yet, and alone.
    let bytes = unsafe { header.bytes() };
    let mut put = |offset: usize, value: &[u8]| {
        if let Some(target) = bytes.get_mut(offset..offset + value.len()) {
            target.copy_from_slice(value);
        }
    };
    put(file::MAJOR, &MAJOR.to_le_bytes());
    put(file::CHUNK_LOG2, &[CHUNK_LOG2, Clock::Monotonic as u8]);
    put(file::PID, &PID.to_le_bytes());
    header.publish();
}

fn open(slots: &Slots, sequence: u32) -> Option<Chunk> {
    // SAFETY: a slot that is handed out once.
    let chunk = unsafe { Chunk::at(slots.take()?) };
    chunk.open(&Opening {
        tid: 77,
        writer: 1,
        sequence,
        content: CONTENT_EVENTS,
        base: BASE,
        taken: TAKEN,
    });
    Some(chunk)
}

fn put(chunk: &Chunk, codec: &mut Codec, event: &Event<'_>, at: usize) -> usize {
    // SAFETY: the chunk is this process's own, and the bytes are not committed.
    let out = unsafe { chunk.payload(at) };
    event.known().and_then(|kind| codec.encode(kind, event, out)).unwrap_or(0)
}

/// What a reader finds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Found {
    published: bool,
    events: usize,
    definitions: usize,
    /// Calls that had begun and not returned: the argument of each.
    in_flight: Vec<u64>,
    exited: bool,
}

fn read(memory: &[u8]) -> Found {
    let mut found = Found::default();
    match FileHeader::parse(memory) {
        Err(DecodeError::Unpublished) => {}
        Err(other) => panic!("{other}"),
        Ok(header) => {
            found.published = true;
            assert_eq!((header.pid, header.clock), (PID, Clock::Monotonic));
            let told = [None, Some(FIRST_TICK), Some(SECOND_TICK)];
            assert!(told.contains(&header.last), "{:?}", header.last);
            found.exited = header.exit_ticks.inspect(|&ticks| assert_eq!(ticks, EXIT)).is_some();
        }
    }
    for slot in memory.chunks(CHUNK_SIZE).skip(1) {
        let header = ChunkHeader::parse(slot).expect("a whole slot");
        match header.state.expect("a known state") {
            State::Empty => continue,
            State::Open | State::Sealed => {}
            State::Recycled => panic!("nobody recycles"),
        }
        assert_eq!(header.taken, TAKEN);
        let payload = &slot[CHUNK_HEADER..];
        match header.content {
            CONTENT_DEFINITIONS => found.read_definitions(payload),
            CONTENT_EVENTS => found.read_events(&header, payload),
            other => panic!("content {other}"),
        }
    }
    found
}

impl Found {
    fn read_definitions(&mut self, payload: &[u8]) {
        let mut definitions = Definitions::new(payload);
        for definition in definitions.by_ref() {
            let definition = definition.expect("a whole definition");
            assert_eq!(Some(&definition), DEFINITIONS.get(self.definitions));
            self.definitions += 1;
        }
        assert!(definitions.incomplete <= 1);
    }

    fn read_events(&mut self, header: &ChunkHeader, payload: &[u8]) {
        assert_eq!((header.tid, header.thread, header.base), (77, 1, BASE));
        let committed = &payload[..header.committed as usize];
        let (mut codec, mut input) = (Codec::new(header.base), Input::new(committed));
        let expected = events();
        let mut starts = HashSet::new();
        let mut at = if header.sequence == 0 { 0 } else { 3 };
        while let Some(event) = codec.decode(&Shapes::default(), &mut input).expect("an event") {
            assert_eq!(Some(&event), expected.get(at));
            // The site's definition was completed before the event was committed.
            assert!(self.definitions >= 2, "event {at} before its definition");
            starts.insert(event.start & IN_FLIGHT_TICKS);
            (at, self.events) = (at + 1, self.events + 1);
        }
        assert!(input.is_empty(), "committed bytes that are no event");
        if header.state == Some(State::Sealed) {
            assert_eq!(at, 3, "a sealed chunk is whole");
            return;
        }
        let driver = header.driver_call.filter(|call| !starts.contains(&call.ticks_low));
        if let Some(call) = driver {
            assert_eq!((call.api, call.argument), (256, ARGUMENT + call.ticks_low));
        }
        if let Some(call) = header.runtime_call {
            assert_eq!((call.api, call.ticks_low, call.argument), (9, 1005, ARGUMENT));
        }
        let calls = [driver, header.runtime_call];
        self.in_flight.extend(calls.iter().flatten().map(|call| call.argument));
    }
}

/// Shared memory of both processes.
fn shared() -> *mut u8 {
    let length = SLOTS * CHUNK_SIZE;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping at an address of the kernel's choice.
    let address = unsafe { libc::mmap(core::ptr::null_mut(), length, protection, flags, -1, 0) };
    assert_ne!(address, libc::MAP_FAILED);
    address.cast()
}

/// Forks a child that stops before it writes, to be stepped by the caller.
fn start(memory: *mut u8) -> libc::pid_t {
    // SAFETY: the child calls nothing that needs a lock, and never returns.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0);
            libc::kill(libc::getpid(), libc::SIGSTOP);
            write(memory);
            libc::_exit(0);
        }
        assert!(child > 0, "no child");
        child
    }
}

/// Waits until the child stops again. False when it has ended.
fn stopped(child: libc::pid_t) -> bool {
    let mut status = 0;
    // SAFETY: our own child and variable.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    if libc::WIFSTOPPED(status) {
        return true;
    }
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "status {status:#x}");
    false
}

#[test]
fn a_writer_stopped_between_any_two_stores_leaves_a_readable_log() {
    let memory = shared();
    let child = start(memory);
    assert!(stopped(child));
    // SAFETY: mapped by `shared`; the child is stopped whenever this is read.
    let now = unsafe { core::slice::from_raw_parts(memory, SLOTS * CHUNK_SIZE) };
    let mut before = now.to_vec();
    let mut history = vec![read(&before)];
    let mut stores = 0;
    loop {
        // SAFETY: a child of ours that is stopped.
        let stepped = unsafe { libc::ptrace(libc::PTRACE_SINGLESTEP, child, 0, 0) };
        assert_eq!(stepped, 0, "{}", std::io::Error::last_os_error());
        if !stopped(child) {
            break;
        }
        if before == now {
            continue;
        }
        stores += 1;
        before.copy_from_slice(now);
        let found = read(&before);
        let last = history.last().expect("a first look");
        assert!(found.events >= last.events, "an event is gone");
        assert!(found.definitions >= last.definitions, "a definition is gone");
        if found != *last {
            history.push(found);
        }
    }
    // 8 header stores, 3 definitions of several bytes, 2 chunks, 4 events, the slots between.
    assert!(stores > 100, "{stores} stores were seen");
    let last = history.last().expect("a look");
    assert_eq!((last.events, last.definitions, last.exited), (4, 3, true));
    assert_eq!(last.in_flight, [0; 0], "every call has returned");
    // Each event was once in flight, and so was the runtime call around them.
    for event in events() {
        let argument = ARGUMENT + event.start;
        assert!(history.iter().any(|found| found.in_flight.contains(&argument)), "{argument:#x}");
    }
    assert!(history.iter().any(|found| found.in_flight.contains(&ARGUMENT)));
}
