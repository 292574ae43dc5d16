//! Logs of any length, for benchmarks.

use std::io::{BufWriter, Write};

use gmmtrace_format::{Event, Kind};

use crate::support::{Chunk, FREE_SITE, RUNTIME_SITE, SITE, Writer, dictionary};

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

/// Writes a log of `events` events by `threads` threads, with about `live` blocks live.
pub fn generate(events: u64, live: u64, threads: u32, out: impl Write) {
    let mut out = BufWriter::with_capacity(1 << 20, out);
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
}
