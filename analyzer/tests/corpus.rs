//! The fuzzing corpus of `tests/fuzz`, read on every run of the tests: whatever the slots hold,
//! opening and ordering end without a panic, and what can be read is read.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

use gmmtrace::Error;
use gmmtrace::input::Log;
use gmmtrace::order::{self, LaneStart, Record, Sink};
use gmmtrace::units::Ticks;
use gmmtrace_format::DecodeError;
use gmmtrace_format::layout::CHUNK_SIZE;

/// Slots from their short form, as in `tests/fuzz/fuzz_targets/pipeline.rs`.
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
struct Counting {
    last: Ticks,
    records: usize,
    out_of_order: usize,
}

impl Sink for Counting {
    fn lane(&mut self, _: u32, _: &LaneStart) {}

    fn records(&mut self, _: u32, records: &[Record], texts: &[u8]) {
        for record in records {
            self.out_of_order += usize::from(record.stamp() < self.last);
            self.last = record.stamp();
            self.records += 1;
            let _ = record.text(texts);
        }
    }
}

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fuzz/corpus/pipeline")
}

/// Records of a seed, and the number of remarks about damage.
fn read(bytes: &[u8]) -> Result<(usize, usize), Error> {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), expand(bytes)).unwrap();
    let log = Log::open(file.path())?;
    let mut sink = Counting::default();
    let outcome = order::run(&log, &mut sink);
    assert_eq!(sink.out_of_order, 0, "records come by rising stamps");
    Ok((sink.records, log.salvage.len() + outcome.salvage.len()))
}

#[test]
fn every_seed_is_read_to_its_end() {
    for entry in fs::read_dir(corpus()).unwrap() {
        let bytes = fs::read(entry.unwrap().path()).unwrap();
        let _ = read(&bytes);
        // And cut off anywhere.
        for cut in (0..bytes.len()).step_by(37) {
            let _ = read(&bytes[..cut]);
        }
    }
}

#[test]
fn damage_costs_what_stands_behind_it() {
    let seed = |name: &str| read(&fs::read(corpus().join(name)).unwrap());
    let found = |name: &str| seed(name).unwrap();
    // A header that ends inside its slot is one remark where no chunk follows.
    assert_eq!(found("header_only"), (0, 1));
    assert_eq!(found("one_thread"), (4, 0));
    assert_eq!(found("two_threads").1, 0);
    let (records, remarks) = found("torn_chunk");
    assert!((1..4).contains(&records) && remarks > 0, "{records} records, {remarks} remarks");
    assert_eq!(found("recycled_and_unknown_state"), (0, 3));
    let (records, remarks) = found("missing_and_twice");
    assert!(records == 12 && remarks >= 2, "{records} records, {remarks} remarks");
    assert!(matches!(seed("unpublished"), Err(Error::NotReadable(_, DecodeError::Unpublished))));
}
