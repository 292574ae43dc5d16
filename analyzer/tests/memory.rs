//! Memory that a report needs, of logs that make it keep the most: a process of its own, whose
//! tests go one after the other, so that the peak of its resident memory is that of one report.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod support;

use std::fs;
use std::sync::{Mutex, MutexGuard, PoisonError};

use gmmtrace::report::Report;
use gmmtrace_format::Kind;
use gmmtrace_format::definition::{Definition, LENGTH};
use gmmtrace_format::layout::{CHUNK_HEADER, CHUNK_SIZE, CONTENT_DEFINITIONS, PAYLOAD, chunk};
use support::{Writer, Written, event, put32};

const MIB: u64 = 1 << 20;

static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn status(key: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(key)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1_024
}

/// A report, and by how much the resident memory grew for it.
fn measured(bytes: &[u8]) -> (Report, u64) {
    let log = support::open(bytes);
    // 5 sets the peak to what is resident now.
    fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = status("VmRSS");
    let report = support::read(&log);
    (report, status("VmHWM").saturating_sub(before))
}

fn at(kind: Kind, stamp: u64, operands: &[u64]) -> Written {
    event(kind, stamp, operands).lasting(0)
}

/// Everything that a device has series of, on each of as many devices, in time that doubles.
fn busy_devices(devices: u64, rounds: u64) -> Vec<u8> {
    let mut log = Writer { gpus: 2, per_chunk: 1_000, ..Writer::default() };
    let mut stamp = 1;
    for round in 0..rounds {
        for gpu in 0..devices {
            let place = 1 + gpu + round * devices;
            let address = place << 21;
            let events = [
                at(Kind::DeviceCurrent, stamp, &[gpu]).site(0),
                at(Kind::DeviceAlloc, stamp, &[address, 100]),
                at(Kind::ManagedAlloc, stamp, &[address + 100, 100, 0]),
                at(Kind::PoolAlloc, stamp, &[address + 200, 100, 0, 0]),
                at(Kind::PhysicalCreate, stamp, &[place, 100, 1, gpu]),
                at(Kind::Map, stamp, &[address, 100, 0, place]),
                at(Kind::Sample, stamp, &[gpu, 1, 2, 3]).site(0),
            ];
            events.into_iter().for_each(|one| log.push(0, one));
        }
        stamp += 1 + stamp / 4;
    }
    log.bytes()
}

#[test]
fn a_few_devices_in_doubling_time_take_little() {
    let _alone = alone();
    let (report, grown) = measured(&busy_devices(8, 120));
    assert_eq!(report.by_gpu.len(), 8);
    assert!(report.timeline.len() <= 1_024);
    assert!(grown < 16 * MIB, "{} MiB", grown / MIB);
}

/// 4 ledgers, a sum with its parts, blocks and two readings of 1,024 buckets are 0.4 MiB, once in
/// the live set and once in the report.
#[test]
fn as_many_devices_as_can_be_numbered_take_less_than_a_megabyte_each() {
    let _alone = alone();
    let (report, grown) = measured(&busy_devices(255, 60));
    assert_eq!(report.by_gpu.len(), 255);
    assert!(report.timeline.len() <= 1_024);
    assert!(grown < 256 * MIB, "{} MiB", grown / MIB);
}

#[test]
fn many_devices_and_many_sites_take_what_is_live_and_not_their_product() {
    let _alone = alone();
    const SITES: u32 = 20_000;
    let mut log = Writer { gpus: 200, ..Writer::default() };
    for gpu in 0..200 {
        log.push(0, at(Kind::DeviceCurrent, gpu, &[gpu]).site(0));
        let site = 1_000 + SITES - 1 - gpu as u32;
        log.push(0, at(Kind::DeviceAlloc, gpu, &[(gpu + 1) << 21, 100]).site(site));
    }
    let mut bytes = log.bytes();
    for first in (0..SITES).step_by(2_000) {
        let mut slot = vec![0; CHUNK_SIZE];
        let words = [
            (chunk::STATE, 1),
            (chunk::CONTENT, CONTENT_DEFINITIONS),
            (chunk::COMMITTED, PAYLOAD as u32),
        ];
        words.into_iter().for_each(|(offset, word)| put32(&mut slot, offset, word));
        let mut place = CHUNK_HEADER;
        for number in first..first + 2_000 {
            let (id, api) = (1_000 + number, support::ALLOC);
            let site = Definition::Site { id, api, outer: 0, address: id.into(), module: 1 };
            let word = site.encode(&mut slot[place + 4..]).unwrap();
            put32(&mut slot, place, word);
            place += (word & LENGTH) as usize;
        }
        bytes.append(&mut slot);
    }
    let (report, grown) = measured(&bytes);
    assert_eq!(report.by_gpu.len(), 200);
    assert!(grown < 64 * MIB, "{} MiB", grown / MIB);
}
