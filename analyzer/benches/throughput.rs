//! Events per second and memory of `gmmtrace report` without its renderers, on a generated log.
//!
//! ```text
//! cargo bench -p gmmtrace --bench throughput -- [EVENTS [LIVE_BLOCKS [THREADS]]]
//! ```
//!
//! Without arguments: 20 million events, once with a small live set and once with 100,000 live
//! blocks, four threads each. The log lies in the folder for temporary files; 100 million events
//! take about 900 MB there.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark")]

#[path = "../tests/support/mod.rs"]
mod support;

use std::fs;
use std::io::{BufWriter, Write};
use std::time::Instant;

use gmmtrace::input::Log;
use gmmtrace::live::Window;
use gmmtrace::report;
use gmmtrace_format::{Event, Kind};
use support::{Chunk, FREE_SITE, RUNTIME_SITE, SITE, Writer, dictionary};

struct Thread {
    ordinal: u32,
    chunk: Option<Chunk>,
    sequence: u32,
    step: u64,
    blocks: u64,
}

impl Thread {
    /// Each block is taken, copied to and given back when its place is needed again: of ten
    /// events about four take, four give and two copy.
    fn event(&mut self, at: u64) -> (Kind, Event<'static>) {
        let (round, phase) = (self.step / 5, self.step % 5);
        self.step += 1;
        let block = (round * 2 + phase / 2) * 7919 % self.blocks;
        let address = (u64::from(self.ordinal) << 40) + block * 0x20_0000;
        let event = |kind, site, operands| (kind, Event::new(kind, site, at, at + 40, operands));
        let first = round * 2 + phase / 2 < self.blocks;
        let bytes = 512 * (1 + block % 4096);
        match phase {
            4 => event(Kind::Copy, SITE, [17, address, 0x7fff_0000, 4096, 0]),
            0 | 2 if first => event(Kind::MemoryInfo, SITE, [1, 2, 0, 0, 0]),
            0 | 2 => event(Kind::Free, FREE_SITE, [address, 0, 0, 0, 0]),
            1 => event(Kind::DeviceAlloc, SITE, [address, bytes, 0, 0, 0]),
            _ => event(Kind::DeviceAlloc, RUNTIME_SITE, [address, bytes, 0, 0, 0]),
        }
    }

    fn write(&mut self, at: u64, out: &mut impl Write) {
        let (kind, event) = self.event(at);
        if self.chunk.as_mut().is_some_and(|chunk| chunk.push(kind, &event)) {
            return;
        }
        self.seal(out);
        let mut chunk = Chunk::new(self.ordinal, self.sequence, at);
        self.sequence += 1;
        assert!(chunk.push(kind, &event));
        self.chunk = Some(chunk);
    }

    fn seal(&mut self, out: &mut impl Write) {
        if let Some(chunk) = self.chunk.take() {
            out.write_all(&chunk.slot).unwrap();
        }
    }
}

fn generate(events: u64, live: u64, threads: u32) -> tempfile::NamedTempFile {
    let file = tempfile::Builder::new().suffix(".gmmt").tempfile().unwrap();
    let mut out = BufWriter::with_capacity(1 << 20, file.as_file());
    out.write_all(&Writer::default().header()).unwrap();
    out.write_all(&dictionary(1)).unwrap();
    let blocks = (live / u64::from(threads)).max(1);
    let thread = |ordinal| Thread { ordinal, chunk: None, sequence: 0, step: 0, blocks };
    let mut writing: Vec<Thread> = (1..=threads).map(thread).collect();
    for number in 0..events {
        // Runs of a few events, as threads that take turns on real cores make them.
        let turn = (number / 6 % u64::from(threads)) as usize;
        if let Some(thread) = writing.get_mut(turn) {
            thread.write(1_000 + number * 50, &mut out);
        }
    }
    for thread in &mut writing {
        thread.seal(&mut out);
    }
    out.flush().unwrap();
    drop(out);
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
    let file = generate(events, live, threads);
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
    match numbers.get(1) {
        Some(&live) => measure(events, live, threads),
        None => [1_000, 100_000].into_iter().for_each(|live| measure(events, live, threads)),
    }
}
