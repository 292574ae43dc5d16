//! Memory that a report needs, of logs that make it keep the most: a process of its own, whose
//! tests go one after the other, so that the peak of its resident memory is that of one report.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod support;

use std::fs;
use std::sync::{Mutex, MutexGuard, PoisonError};

use gmmtrace::diff::{Comparison, Run, Side};
use gmmtrace::render::json;
use gmmtrace::report::Report;
use gmmtrace_format::Kind;
use gmmtrace_format::definition::Definition;
use support::{Writer, Written, definitions, event};

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
    bytes.extend(definitions((0..SITES).map(|number| site(number, 1))));
    let (report, grown) = measured(&bytes);
    assert_eq!(report.by_gpu.len(), 200);
    assert!(grown < 64 * MIB, "{} MiB", grown / MIB);
}

/// The longest name here.
const LONGEST: usize = 4_000;

fn site(number: u32, module: u32) -> Definition<'static> {
    let (id, api) = (1_000 + number, support::ALLOC);
    Definition::Site { id, api, outer: 0, address: id.into(), module }
}

fn path(id: u32, length: usize) -> Vec<u8> {
    format!("/{}/{id}.so", "x".repeat(length.saturating_sub(8))).into_bytes()
}

/// As many sites as libraries, each of which holds memory of two ledgers on one of two devices.
fn many_holders(sites: u32, length: usize) -> Vec<u8> {
    let mut log = Writer { gpus: 2, per_chunk: 1_000, ..Writer::default() };
    for number in 0..sites {
        let (stamp, place) = (u64::from(number), (u64::from(number) + 1) << 21);
        if number % 1_000 == 0 {
            log.push(0, at(Kind::DeviceCurrent, stamp, &[stamp / 1_000 % 2]).site(0));
        }
        log.push(0, at(Kind::DeviceAlloc, stamp, &[place, 100 + stamp]).site(1_000 + number));
        let pinned = at(Kind::PinnedAlloc, stamp, &[place, 50, 0]).site(1_000 + number);
        log.push(0, pinned);
    }
    let mut bytes = log.bytes();
    let paths: Vec<Vec<u8>> = (2..2 + sites).map(|id| path(id, length)).collect();
    bytes.extend(definitions((2..).zip(&paths).map(|(id, path)| Definition::Module {
        id,
        start: 0,
        end: 1,
        build_id: &[],
        path,
    })));
    bytes.extend(definitions((0..sites).map(|number| site(number, 2 + number))));
    bytes
}

/// What a report, its JSON and a comparison with itself grow the memory by.
fn measured_diff(bytes: &[u8]) -> (Report, Comparison, u64) {
    let log = support::open(bytes);
    fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = status("VmRSS");
    let report = support::read(&log);
    let run = || Run::of("x".to_owned(), &[json::value(&report)]).unwrap();
    let side = || Side { runs: vec![run()] };
    let comparison = Comparison::of(side(), side());
    (report, comparison, status("VmHWM").saturating_sub(before))
}

fn holds_all_bytes(report: &Report, sites: u64) {
    let all: u64 = report.total.live_at_end.iter().map(|held| held.bytes.0).sum();
    let count: u64 = report.total.live_at_end.iter().map(|held| held.count).sum();
    assert_eq!(count, 2 * sites);
    assert_eq!(all, 150 * sites + sites * (sites - 1) / 2);
}

#[test]
fn a_comparison_of_logs_with_long_names_takes_less_than_the_logs() {
    let _alone = alone();
    let bytes = many_holders(3_000, LONGEST);
    let (report, comparison, grown) = measured_diff(&bytes);
    holds_all_bytes(&report, 3_000);
    assert!(!comparison.pairs.is_empty());
    assert!(grown < 32 * MIB, "{} MiB of a log of {}", grown / MIB, bytes.len() as u64 / MIB);
}

#[test]
fn a_comparison_of_logs_with_many_sites_takes_little_more_than_their_names() {
    let _alone = alone();
    let bytes = many_holders(100_000, 24);
    let (report, comparison, grown) = measured_diff(&bytes);
    holds_all_bytes(&report, 100_000);
    assert!(!comparison.pairs.is_empty());
    assert!(grown < 128 * MIB, "{} MiB of a log of {}", grown / MIB, bytes.len() as u64 / MIB);
}
