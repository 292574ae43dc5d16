//! How far the reading of a long log has come, for a person at a terminal.

use std::io::{self, IsTerminal, Write};

/// Chunks of a log that takes long enough for a person to wonder.
const LONG: usize = 4_096;

/// A line on stderr that is written over, if stderr is a terminal.
pub struct Progress {
    shown: bool,
    percent: usize,
}

impl Progress {
    /// For a log of so many chunks.
    #[must_use]
    pub fn new(chunks: usize) -> Self {
        Self { shown: chunks >= LONG && io::stderr().is_terminal(), percent: usize::MAX }
    }

    /// So many of so many chunks are done.
    pub fn tell(&mut self, done: usize, all: usize) {
        if !self.shown {
            return;
        }
        let percent = done.saturating_mul(100) / all.max(1);
        if percent != self.percent {
            self.percent = percent;
            say(&format!("reading: {percent} %"));
        }
    }

    /// Takes the line away.
    pub fn clear(&self) {
        if self.shown {
            say("");
        }
    }
}

fn say(text: &str) {
    let mut stderr = io::stderr().lock();
    let _ = write!(stderr, "\r\x1b[K{text}").and_then(|()| stderr.flush());
}
