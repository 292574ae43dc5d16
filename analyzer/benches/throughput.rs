//! Events per second and memory of `gmmtrace report` without its renderers, on a generated log.
//!
//! ```text
//! cargo bench -p gmmtrace --bench throughput -- [EVENTS [LIVE_BLOCKS [THREADS]]] [FILE.gmmt]
//! ```
//!
//! With a file as the last argument the log is left there and nothing is measured.
//!
//! Without arguments: 20 million events, once with a small live set and once with 100,000 live
//! blocks, four threads each. The log lies in the folder for temporary files; 100 million events
//! take about 900 MB there.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark")]

#[path = "../tests/support/generate.rs"]
mod generate;
#[path = "../tests/support/mod.rs"]
mod support;

use std::fs;
use std::time::Instant;

use generate::generate;
use gmmtrace::input::Log;
use gmmtrace::live::Window;
use gmmtrace::report;

fn a_log(events: u64, live: u64, threads: u32) -> tempfile::NamedTempFile {
    let file = tempfile::Builder::new().suffix(".gmmt").tempfile().unwrap();
    generate(events, live, threads, file.as_file());
    file
}

/// A line of `/proc/self/status` in MiB.
fn status(key: &str) -> f64 {
    let text = fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|line| line.starts_with(key)).unwrap_or_default();
    let kib: f64 = line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).unwrap_or(0.0);
    kib / 1024.0
}

fn measure(events: u64, live: u64, threads: u32) {
    let file = a_log(events, live, threads);
    let size = fs::metadata(file.path()).unwrap().len();
    // Makes the high-water mark begin anew.
    let _ = fs::write("/proc/self/clear_refs", "5");
    for _ in 0..3 {
        let began = Instant::now();
        let log = Log::open(file.path()).unwrap();
        let report = report::read(&log, Window::default(), |_, _| ());
        let seconds = began.elapsed().as_secs_f64();
        assert_eq!(report.trace.events, events);
        println!(
            "{:.1} M events/s ({events} events, {threads} threads, {live} places, {} live, \
             {:.2} B/event, {seconds:.2} s), high-water {:.1} MiB",
            events as f64 / seconds / 1e6,
            report.total.ledgers.iter().map(|ledger| ledger.tally.live_count).sum::<u64>(),
            size as f64 / events as f64,
            status("VmHWM"),
        );
    }
}

fn main() {
    // Cargo adds `--bench`.
    let numbers: Vec<u64> = std::env::args().filter_map(|word| word.parse().ok()).collect();
    let events = numbers.first().copied().unwrap_or(20_000_000);
    let threads = numbers.get(2).and_then(|&count| u32::try_from(count).ok()).unwrap_or(4);
    let kept = std::env::args().skip(1).find(|word| word.ends_with(".gmmt"));
    match (numbers.get(1), kept) {
        (Some(&live), Some(path)) => {
            generate(events, live, threads, fs::File::create(path).unwrap())
        }
        (_, Some(path)) => generate(events, 1_000, threads, fs::File::create(path).unwrap()),
        (Some(&live), None) => measure(events, live, threads),
        (None, None) => {
            [1_000, 100_000].into_iter().for_each(|live| measure(events, live, threads))
        }
    }
}
