//! SIGKILL at any moment: what had returned is in the log, and the log reads.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]
#![allow(clippy::print_stdout, reason = "what was not run, and figures")]

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use gmmtrace_tests::{Run, number, report};
use serde_json::Value;

/// Kills in all; `GMMTRACE_TEST_KILLS` changes it.
const KILLS: u64 = 1000;
/// How long a process may live, at most.
const LONGEST: Duration = Duration::from_millis(25);
/// Length of a call, in nanoseconds, in those runs where the kill is to meet one.
const LONG_CALL: u64 = 300_000;

/// What the program's counters said when it was killed.
struct Returned {
    calls: u64,
    allocs: u64,
    frees: u64,
}

/// What was met, over all kills.
#[derive(Default)]
struct Met {
    before_the_log: AtomicU64,
    long_calls: AtomicU64,
    named_long_calls: AtomicU64,
    calls_without_a_name: AtomicU64,
}

fn kills() -> u64 {
    let asked = std::env::var("GMMTRACE_TEST_KILLS").ok();
    asked.map_or(KILLS, |text| text.parse().expect("GMMTRACE_TEST_KILLS is a number"))
}

/// Numbers without a pattern, the same in each run (SplitMix64).
fn scatter(seed: u64) -> u64 {
    let mut value = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

fn counters(path: &Path) -> Returned {
    let bytes = fs::read(path).unwrap_or_default();
    let word = |index: usize| {
        let bytes = bytes.get(index * 8..index * 8 + 8);
        bytes.map_or(0, |bytes| u64::from_ne_bytes(bytes.try_into().unwrap()))
    };
    Returned { calls: word(0), allocs: word(1), frees: word(2) }
}

/// Whether the log's first words were written: before that there is nothing to read.
fn has_begun(log: &Path) -> bool {
    let mut magic = [0; 8];
    File::open(log).and_then(|mut file| file.read_exact(&mut magic)).is_ok() && magic != [0; 8]
}

/// Kills one process and checks its log.
fn kill_one(number_of_kill: u64, met: &Met) {
    let chance = scatter(number_of_kill);
    let threads = if number_of_kill.is_multiple_of(2) { 1 } else { 3 };
    let long = number_of_kill.is_multiple_of(4);
    let mut run = Run::traced("kill_counter").argument("counters").argument(threads.to_string());
    if long {
        let delay = format!("cuMemAlloc_v2={LONG_CALL},cuMemFree_v2={LONG_CALL}");
        run = run.environment("FAKE_CUDA_DELAY", delay);
    }
    let running = run.start();
    thread::sleep(LONGEST.mul_f64((chance >> 11) as f64 / (1_u64 << 53) as f64));
    let outcome = running.kill();
    let returned = counters(&outcome.folder.join("counters"));
    let logs: Vec<PathBuf> = outcome.logs().into_iter().filter(|log| has_begun(log)).collect();
    let Some(log) = logs.first() else {
        assert_eq!(returned.calls, 0, "calls returned, but there is no log");
        met.before_the_log.fetch_add(1, Ordering::Relaxed);
        return;
    };
    let report = report(log);
    check(&report, &returned, threads);
    let unnamed =
        report["in_flight"].as_array().unwrap().iter().filter(|call| call["api"].is_null());
    met.calls_without_a_name.fetch_add(unnamed.count() as u64, Ordering::Relaxed);
    if long && returned.calls > 0 {
        met.long_calls.fetch_add(1, Ordering::Relaxed);
        let named = !report["in_flight"].as_array().unwrap().is_empty();
        met.named_long_calls.fetch_add(u64::from(named), Ordering::Relaxed);
    }
}

fn check(report: &Value, returned: &Returned, threads: u64) {
    assert_eq!(report["trace"]["state"], "gone");
    let of = |field: &str| number(report, &format!("/ledgers/device/{field}"));
    let (allocs, frees) = (of("allocs"), of("frees"));
    let said = format!("{:#}", report["coverage"]);
    assert!(allocs >= returned.allocs, "{allocs} of {} allocations: {said}", returned.allocs);
    assert!(frees >= returned.frees, "{frees} of {} frees: {said}", returned.frees);
    let all = allocs + frees;
    assert!(all <= returned.calls + threads, "{all} of {} calls: {said}", returned.calls);
    assert_eq!(of("failed"), 0);
    assert_eq!(report["unknown_frees"], 0, "{:#}", report["examples"]);
    assert_explained(report);
    assert_eq!(report["coverage"]["losses"].as_object().unwrap().len(), 0, "{said}");
    let calls = report["in_flight"].as_array().unwrap();
    assert!(calls.len() as u64 <= threads, "{calls:#?}");
    for api in calls.iter().filter_map(|call| call["api"].as_str()) {
        assert!(["cuMemAlloc_v2", "cuMemFree_v2", "cuCtxCreate_v2"].contains(&api), "{calls:#?}");
    }
}

/// The driver may have freed a block and given it to another thread, while the thread that freed
/// it was killed before it could say so. Then that free is in flight.
fn assert_explained(report: &Value) {
    let calls = report["in_flight"].as_array().unwrap();
    let overlaps = report["examples"]["overlaps"].as_array().unwrap();
    assert_eq!(report["overlaps"], overlaps.len(), "so few that each is an example");
    for overlap in overlaps {
        let freed =
            |call: &&Value| call["api"] == "cuMemFree_v2" && call["argument"] == overlap["address"];
        assert!(calls.iter().any(|call| freed(&call)), "{overlap:#} without a free: {calls:#?}");
    }
}

#[test]
fn what_had_returned_before_a_kill_is_in_the_log() {
    let (next, met, kills) = (AtomicU64::new(0), Met::default(), kills());
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                loop {
                    let kill = next.fetch_add(1, Ordering::Relaxed);
                    if kill >= kills {
                        break;
                    }
                    kill_one(kill, &met);
                }
            });
        }
    });
    let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let (long, named) = (read(&met.long_calls), read(&met.named_long_calls));
    println!(
        "{kills} kills, {} before a log, {named} of {long} in a long call named",
        read(&met.before_the_log)
    );
    assert_eq!(read(&met.calls_without_a_name), 0, "calls in flight without a name");
    // Between two long calls is a moment, too.
    assert!(named * 10 >= long * 9, "{named} of {long} calls in flight were named");
    assert!(read(&met.before_the_log) * 2 < kills, "most processes never came to a call");
}
