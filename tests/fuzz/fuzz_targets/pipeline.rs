//! A log of arbitrary slots is opened and its events are ordered: records come by rising stamps,
//! and nothing panics.
#![no_main]

use std::io::Write;

use gmmtrace::input::Log;
use gmmtrace::order::{self, LaneStart, Record, Sink};
use gmmtrace::units::Ticks;
use gmmtrace_format::layout::CHUNK_SIZE;
use libfuzzer_sys::fuzz_target;

/// Slots from their short form: for each 2 bytes of length, then its first bytes.
fn expand(mut bytes: &[u8]) -> Vec<u8> {
    let mut file = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk::<2>() {
        file.resize(file.len().next_multiple_of(CHUNK_SIZE), 0);
        let length = usize::from(u16::from_le_bytes(*length)).min(rest.len());
        let (slot, rest) = rest.split_at(length);
        file.extend_from_slice(slot);
        bytes = rest;
    }
    file
}

#[derive(Default)]
struct Rising(Ticks);

impl Sink for Rising {
    fn lane(&mut self, _: u32, _: &LaneStart) {}

    fn records(&mut self, _: u32, records: &[Record], texts: &[u8]) {
        for record in records {
            assert!(record.stamp() >= self.0, "records out of order");
            self.0 = record.stamp();
            let _ = record.text(texts);
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    file.write_all(&expand(bytes)).expect("room for it");
    if let Ok(log) = Log::open(file.path()) {
        order::run(&log, &mut Rising::default());
    }
});
