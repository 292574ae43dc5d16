//! Whether the process that writes a log is still there.

use std::fs;
use std::os::unix::fs::MetadataExt;

use gmmtrace_format::FileHeader;

/// What is known about a log's writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriterState {
    /// It called `exit`.
    Exited,
    /// It is alive: the log is still being written.
    Running,
    /// It is gone and never called `exit`: killed, crashed, or left by `_exit`.
    Gone,
    /// It ran on another machine, before a reboot, or in another pid namespace.
    Unknown,
}

impl WriterState {
    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exited => "exited",
            Self::Running => "running",
            Self::Gone => "gone",
            Self::Unknown => "unknown",
        }
    }
}

pub(super) fn state(header: &FileHeader<'_>) -> WriterState {
    if header.exit_ticks.is_some() {
        return WriterState::Exited;
    }
    if boot_id() != Some(header.boot_id) || namespace() != Some(header.pid_namespace) {
        return WriterState::Unknown;
    }
    if start_time(header.pid) == Some(header.process_start) {
        WriterState::Running
    } else {
        WriterState::Gone
    }
}

fn boot_id() -> Option<[u8; 16]> {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let mut id = [0; 16];
    for (byte, pair) in id.iter_mut().zip(digits.chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    (digits.len() == 32).then_some(id)
}

fn namespace() -> Option<u64> {
    fs::metadata("/proc/self/ns/pid").ok().map(|metadata| metadata.ino())
}

/// Start time of a live process: field 22 of its `stat`, counted behind the name, which may hold
/// anything. A zombie no longer writes.
fn start_time(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    if matches!(fields.next()?, "Z" | "X") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}
