//! What the library costs the host: nanoseconds of a hook beside their floor, bytes of an event
//! in the log, and what a process without CUDA pays.
//!
//! ```text
//! cargo bench -p gmmtrace-tests --bench cost [-- CALLS [THREADS]]
//! ```
//!
//! Every figure stands beside its baseline from the same run. The floor is two counter reads, one
//! of them fenced, and a 16-byte store behind a function pointer. `record` and `wait` are watched
//! calls, which make no event; `beside` is a copy while another stream is being captured.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark")]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use gmmtrace_format::ChunkHeader;
use gmmtrace_format::layout::{CHUNK_HEADER, CHUNK_SIZE, CONTENT_EVENTS};
use gmmtrace_tests::{Folder, Run, fake_cuda, number, products};

/// Rounds of each measurement; the median round counts.
const ROUNDS: usize = 5;

fn main() {
    // `cargo bench` adds `--bench`.
    let numbers: Vec<String> = std::env::args().skip(1).filter(|text| text != "--bench").collect();
    let calls = numbers.first().map_or("1000000", String::as_str);
    let threads = numbers.get(1).map_or("1", String::as_str);
    println!(
        "hook cost, {calls} calls, threads {threads}, nanoseconds; budget: added <= 1.5 floor"
    );
    let shared_memory = Path::new("/dev/shm");
    hook_cost("log on tmpfs", shared_memory, calls, threads);
    let disk = Folder::new();
    hook_cost("log on disk", &disk, calls, threads);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| sync_for_ever(&disk.join("load"), &stop));
        hook_cost("log on disk under fsync load", &disk, calls, threads);
        stop.store(true, Ordering::Relaxed);
    });
    bytes_of_an_event();
    report_cost(calls);
    without_cuda();
}

type Figures = BTreeMap<String, f64>;

fn figures(stdout: &str) -> Figures {
    let pair = |line: &str| {
        let (key, value) = line.split_once(' ')?;
        Some((key.to_owned(), value.trim().parse().ok()?))
    };
    stdout.lines().filter_map(pair).collect()
}

fn measure(place: Option<&Path>, calls: &str, threads: &str) -> Figures {
    let run = if place.is_some() { Run::traced("hook_cost") } else { Run::plain("hook_cost") };
    let run = run.arguments(&[calls, threads, "1"]).limit(Duration::from_mins(5));
    let Some(place) = place else { return figures(&run.finish().stdout) };
    // What a stack costs is measured by `stacks.py`.
    let run = run.environment("GMMTRACE_STACKS", "off");
    let log = place.join(format!("gmmtrace-bench-{}.gmmt", std::process::id()));
    let measured = figures(&run.environment("GMMTRACE_OUT", &log).finish().stdout);
    fs::remove_file(&log).unwrap();
    measured
}

/// The median over rounds of a figure.
fn median(rounds: &[Figures], key: &str) -> f64 {
    let mut values: Vec<f64> = rounds.iter().filter_map(|round| round.get(key)).copied().collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn hook_cost(title: &str, place: &Path, calls: &str, threads: &str) {
    let (mut plain, mut traced) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        plain.push(measure(None, calls, threads));
        traced.push(measure(Some(place), calls, threads));
    }
    let floor = median(&traced, "floor.median_ns");
    println!("\n{title}: floor {floor:.1}");
    for call in ["alloc", "free", "copy", "record", "wait", "beside"] {
        let of = |rounds: &[Figures], figure: &str| median(rounds, &format!("{call}.{figure}"));
        let added = of(&traced, "median_ns") - of(&plain, "median_ns");
        println!(
            "  {call:6} {:6.1} -> {:6.1}  added {added:5.1} = {:.2} floor   p99.9 {:7.1}   max {:9.0} (without {:.0})",
            of(&plain, "median_ns"),
            of(&traced, "median_ns"),
            added / floor,
            of(&traced, "p999_ns"),
            of(&traced, "max_ns"),
            of(&plain, "max_ns"),
        );
    }
}

fn sync_for_ever(path: &Path, stop: &AtomicBool) {
    let mut file = File::create(path).unwrap();
    while !stop.load(Ordering::Relaxed) {
        file.write_all(&[7; 1 << 20]).unwrap();
        file.sync_all().unwrap();
        if file.metadata().unwrap().len() > 256 << 20 {
            file.set_len(0).unwrap();
        }
    }
}

/// Committed bytes of the event chunks, headers included.
fn event_bytes(log: &Path) -> u64 {
    let bytes = fs::read(log).unwrap();
    let headers = bytes.chunks(CHUNK_SIZE).skip(1).filter_map(|slot| ChunkHeader::parse(slot).ok());
    let events = headers.filter(|header| header.committed > 0 && header.content == CONTENT_EVENTS);
    events.map(|header| u64::from(header.committed) + CHUNK_HEADER as u64).sum()
}

fn bytes_of_an_event() {
    let outcome = Run::traced("many_events")
        .arguments(&["1000000", "2"])
        .limit(Duration::from_mins(2))
        .finish();
    let logs = outcome.folder.logs();
    let report = gmmtrace_tests::report(logs.first().unwrap());
    let events = number(&report, "/trace/events");
    let bytes = event_bytes(logs.first().unwrap());
    println!(
        "\nbytes per event: {:.2} ({events} allocations, frees and copies of two threads); budget: <= 16",
        bytes as f64 / events as f64
    );
}

/// A report of PyTorch's allocator: what is added to it, and its bytes in the log.
fn report_cost(calls: &str) {
    let (mut plain, mut traced, mut bytes) = (Vec::new(), Vec::new(), f64::NAN);
    for _ in 0..ROUNDS {
        let run = |run: Run| run.argument(calls).limit(Duration::from_mins(5)).finish();
        plain.push(figures(&run(Run::plain("torch_cost")).stdout));
        let outcome = run(Run::traced("torch_cost"));
        traced.push(figures(&outcome.stdout));
        let log = outcome.log();
        let events = number(&gmmtrace_tests::report(&log), "/trace/events");
        bytes = event_bytes(&log) as f64 / events as f64;
    }
    let floor = median(&traced, "floor.median_ns");
    let [before, after] = [&plain, &traced].map(|rounds| median(rounds, "report.median_ns"));
    println!(
        "\nreport of PyTorch's allocator: {before:.1} -> {after:.1}  added {:.1} = {:.2} floor \
         ({floor:.1})   p99.9 {:.1}   max {:.0} (without {:.0})   {bytes:.1} bytes",
        after - before,
        (after - before) / floor,
        median(&traced, "report.p999_ns"),
        median(&traced, "report.max_ns"),
        median(&plain, "report.max_ns"),
    );
}

/// Start to end of `/bin/true`, with and without the library, in turns.
fn without_cuda() {
    let once = |library: Option<&Path>| {
        let mut command = Command::new("/bin/true");
        command.env("LD_LIBRARY_PATH", fake_cuda());
        if let Some(library) = library {
            command.env("LD_PRELOAD", library);
        }
        let begun = Instant::now();
        assert!(command.status().unwrap().success());
        begun.elapsed()
    };
    let (mut plain, mut traced) = (Vec::new(), Vec::new());
    for _ in 0..400 {
        plain.push(once(None));
        traced.push(once(Some(&products().library)));
    }
    plain.sort();
    traced.sort();
    let middle = |times: &[Duration]| times.get(times.len() / 2).unwrap().as_secs_f64() * 1e6;
    println!(
        "\n/bin/true: {:.0} us -> {:.0} us, added {:.0} us; budget: <= 1000 us",
        middle(&plain),
        middle(&traced),
        middle(&traced) - middle(&plain)
    );
}
