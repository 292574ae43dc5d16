//! Chunks and the dictionary in one process's memory.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::HashSet;
use std::ops::Deref;
use std::thread;

use gmmtrace_format::definition::{COMPLETE, Definition, Definitions, LENGTH, MAX_DEFINITION};
use gmmtrace_format::header::{Anchor, ChunkHeader, FileHeader, InFlight};
use gmmtrace_format::layout::{
    CHUNK_HEADER, CHUNK_LOG2, CHUNK_SIZE, CONTENT_DEFINITIONS, CONTENT_EVENTS, Clock, Counter,
    MAJOR, PAYLOAD, State, chunk, file,
};

use super::{Slots, TAKEN};
use crate::{Chunk, Dictionary, Header, Opening};

const THREADS: u32 = if cfg!(miri) { 3 } else { 8 };
const EACH: u32 = if cfg!(miri) { 12 } else { 4000 };

/// Slots that give their memory back.
struct Memory(Slots);

impl Memory {
    fn new(count: usize) -> Self {
        // SAFETY: the layout is not empty.
        let address = unsafe { alloc_zeroed(Self::layout(count)) };
        assert!(!address.is_null(), "no memory");
        Self(Slots::at(address, count))
    }

    fn layout(count: usize) -> Layout {
        Layout::from_size_align(count * CHUNK_SIZE, 4096).expect("a layout")
    }

    fn bytes(&self, index: usize) -> &[u8] {
        let start = self.0.address.wrapping_add(index * CHUNK_SIZE);
        // SAFETY: a whole slot; the writers are done.
        unsafe { core::slice::from_raw_parts(start, CHUNK_SIZE) }
    }
}

impl Deref for Memory {
    type Target = Slots;

    fn deref(&self) -> &Slots {
        &self.0
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with the same layout.
        unsafe { dealloc(self.0.address, Self::layout(self.0.count)) };
    }
}

fn append(dictionary: &Dictionary, slots: &Slots, definition: &Definition<'_>) -> bool {
    // SAFETY: zeroed slots, each handed out once, that outlive the dictionary's use.
    unsafe { dictionary.append(&|| slots.take(), TAKEN, definition) }
}

/// Sizes vary, so that a thread meets a full chunk while others still fit into it.
fn remark(thread: u32, number: u32) -> String {
    let length = if number.is_multiple_of(7) { 3000 } else { (number % 40) as usize };
    format!("{thread}/{number} {}", "x".repeat(length))
}

#[test]
fn definitions_of_many_threads_are_all_there_and_whole() {
    // Threads that replace a full chunk at the same time take one each, and only one is used.
    let memory = Memory::new((THREADS * (1 + EACH / 40)) as usize);
    let dictionary = Dictionary::new();
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (memory, dictionary) = (&memory.0, &dictionary);
            scope.spawn(move || {
                for number in 0..EACH {
                    let text = remark(thread, number);
                    let definition = Definition::Remark { text: text.as_bytes() };
                    assert!(append(dictionary, memory, &definition));
                }
            });
        }
    });
    let found = memory.definitions();
    assert_eq!(found.len(), (THREADS * EACH) as usize, "one definition each");
    let texts: HashSet<&[u8]> = found
        .iter()
        .map(|definition| match definition {
            Definition::Remark { text } => *text,
            other => panic!("{other:?}"),
        })
        .collect();
    for (thread, number) in (0..THREADS).flat_map(|t| (0..EACH).map(move |n| (t, n))) {
        assert!(texts.contains(remark(thread, number).as_bytes()), "{thread}/{number}");
    }
}

/// Two threads that both find the chunk full make two chunks; one of them stays empty.
#[test]
fn a_chunk_that_lost_the_race_is_an_empty_dictionary() {
    let memory = Memory::new(8);
    let dictionary = Dictionary::new();
    let definition = Definition::Driver { version: b"580.1" };
    // SAFETY: as in `append`; the second append runs while the first waits for its slot.
    let done = unsafe {
        let take = || {
            let slot = memory.take();
            append(&dictionary, &memory, &Definition::Remark { text: b"first" });
            slot
        };
        dictionary.append(&take, TAKEN, &definition)
    };
    assert!(done);
    assert_eq!(memory.definitions(), [Definition::Remark { text: b"first" }, definition]);
    for index in 0..2 {
        let header = ChunkHeader::parse(memory.bytes(index)).expect("a header");
        assert_eq!(header.state, Some(State::Open));
        assert_eq!(header.content, CONTENT_DEFINITIONS);
    }
}

#[test]
fn the_longest_definition_fits_and_a_longer_one_is_refused() {
    let memory = Memory::new(4);
    let dictionary = Dictionary::new();
    for length in MAX_DEFINITION - 16..=MAX_DEFINITION {
        let text = vec![b'r'; length];
        let definition = Definition::Remark { text: &text };
        let before = memory.definitions().len();
        let fits = append(&dictionary, &memory, &definition);
        let found = memory.definitions();
        assert_eq!(found.len(), before + usize::from(fits));
        if fits {
            assert_eq!(found.last(), Some(&definition), "length {length}");
        }
    }
    assert!(!memory.definitions().is_empty());
}

#[test]
fn a_claim_that_was_never_completed_is_stepped_over() {
    let memory = Memory::new(1);
    let dictionary = Dictionary::new();
    assert!(append(&dictionary, &memory, &Definition::Remark { text: b"before" }));
    // What a writer leaves that dies between claim and completion: its length.
    let mut body = [0; 64];
    let word = Definition::Remark { text: b"dead" }.encode(&mut body).expect("room") & LENGTH;
    let place = memory.payload(0).chunks(8).position(|bytes| bytes[..4] == [0; 4]).expect("room");
    let address = memory.address.wrapping_add(CHUNK_HEADER + place * 8).cast::<u32>();
    // SAFETY: within the slot, aligned; one thread.
    unsafe { address.write(word) };
    assert!(append(&dictionary, &memory, &Definition::Remark { text: b"after" }));
    let mut definitions = Definitions::new(memory.payload(0));
    let texts: Vec<_> = definitions.by_ref().map(|found| found.expect("whole")).collect();
    let expected = [Definition::Remark { text: b"before" }, Definition::Remark { text: b"after" }];
    assert_eq!(texts, expected);
    assert_eq!(definitions.incomplete, 1);
    assert_eq!(word & COMPLETE, 0);
}

#[test]
fn no_room_is_an_answer() {
    let memory = Memory::new(1);
    let dictionary = Dictionary::new();
    let text = [b'x'; 4000];
    let definition = Definition::Remark { text: &text };
    let stored = (0..100).take_while(|_| append(&dictionary, &memory, &definition)).count();
    assert_eq!(stored, PAYLOAD / 4008);
    assert_eq!(memory.definitions().len(), stored);
}

fn open(memory: &Memory, sequence: u32) -> Chunk {
    let address = memory.take().expect("a slot");
    // SAFETY: a slot that only this test has.
    let chunk = unsafe { Chunk::at(address) };
    chunk.open(&Opening {
        tid: 4711,
        writer: 3,
        sequence,
        content: CONTENT_EVENTS,
        base: 1000,
        taken: TAKEN,
    });
    chunk
}

#[test]
fn a_chunk_says_what_it_was_opened_with() {
    let memory = Memory::new(1);
    open(&memory, 5);
    let header = ChunkHeader::parse(memory.bytes(0)).expect("a header");
    let expected = ChunkHeader {
        state: Some(State::Open),
        committed: 0,
        tid: 4711,
        thread: 3,
        sequence: 5,
        content: CONTENT_EVENTS,
        base: 1000,
        taken: TAKEN,
        runtime_call: None,
        driver_call: None,
    };
    assert_eq!(header, expected);
}

#[test]
fn a_runtime_call_moves_to_the_next_chunk() {
    let memory = Memory::new(2);
    let former = open(&memory, 0);
    former.runtime_call(7, 1 << 50 | 1234, 0xfeed);
    former.driver_call(300, 1240, 64);
    let next = open(&memory, 1);
    next.inherit(&former);
    former.seal();
    let header = |index| ChunkHeader::parse(memory.bytes(index)).expect("a header");
    let call = InFlight { api: 7, ticks_low: 1234, argument: 0xfeed };
    assert_eq!(header(0).state, Some(State::Sealed));
    assert_eq!(header(0).runtime_call, None);
    assert_eq!(header(1).state, Some(State::Open));
    assert_eq!(header(1).runtime_call, Some(call));
    assert_eq!(header(1).driver_call, None);
    next.runtime_returned();
    assert_eq!(header(1).runtime_call, None);
}

#[test]
fn the_payload_ends_with_its_slot() {
    let memory = Memory::new(2);
    let chunk = open(&memory, 0);
    for (at, left) in [(0, PAYLOAD), (PAYLOAD - 1, 1), (PAYLOAD, 0), (usize::MAX, 0)] {
        // SAFETY: the test owns the chunk and holds one slice at a time.
        assert_eq!(unsafe { chunk.payload(at) }.len(), left);
    }
    // SAFETY: as above.
    unsafe { chunk.payload(0) }.fill(0xff);
    chunk.commit(PAYLOAD);
    assert!(memory.bytes(1).iter().all(|&byte| byte == 0), "the next slot is untouched");
    assert_eq!(memory.bytes(0)[chunk::COMMITTED..][..4], (PAYLOAD as u32).to_le_bytes());
}

#[test]
fn a_header_is_readable_once_it_is_published_and_its_counters_add_up() {
    let memory = Memory::new(1);
    // SAFETY: a slot that only this test has.
    let header = unsafe { Header::at(memory.address) };
    {
        // SAFETY: not published yet, and alone.
        let bytes = unsafe { header.bytes() };
        bytes[file::MAJOR..][..2].copy_from_slice(&MAJOR.to_le_bytes());
        bytes[file::CHUNK_LOG2] = CHUNK_LOG2;
        bytes[file::CLOCK] = Clock::Monotonic as u8;
    }
    assert!(FileHeader::parse(memory.bytes(0)).is_err());
    header.publish();
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| (0..EACH).for_each(|_| header.count(Counter::LostCopies, 2)));
        }
    });
    header.set(Counter::HelperMissing, 1);
    header.tick(Anchor { ticks: 50, monotonic_ns: 60 });
    header.tick(Anchor { ticks: 70, monotonic_ns: 80 });
    header.exited(90);
    let read = FileHeader::parse(memory.bytes(0)).expect("a header");
    assert_eq!(read.counter(Counter::LostCopies), u64::from(2 * THREADS * EACH));
    assert_eq!(read.counter(Counter::HelperMissing), 1);
    assert_eq!(read.last, Some(Anchor { ticks: 70, monotonic_ns: 80 }));
    assert_eq!(read.exit_ticks, Some(90));
}
