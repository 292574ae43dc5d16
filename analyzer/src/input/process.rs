//! What a log's header says about its process, as owned text.

use gmmtrace_format::FileHeader;
use gmmtrace_format::header::Item;
use gmmtrace_format::layout::Clock;

/// The process that wrote a log.
#[derive(Clone, Debug)]
pub struct Process {
    /// Its id, as it saw itself.
    pub pid: u32,
    /// Its parent's.
    pub parent_pid: u32,
    /// Forks between it and the program that was started.
    pub generation: u32,
    /// CLOCK_REALTIME nanoseconds at time zero.
    pub start_realtime_ns: u64,
    /// Ticks when it called `exit`.
    pub exit_ticks: Option<u64>,
    /// What the ticks are.
    pub clock: Clock,
    /// Minor version of the log.
    pub minor: u16,
    /// Path of the executable.
    pub executable: Option<String>,
    /// Arguments.
    pub command_line: Vec<String>,
    /// Environment switches that matter, `NAME=value`.
    pub environment: Vec<String>,
    /// Host name.
    pub host: Option<String>,
    /// Kernel release.
    pub kernel: Option<String>,
    /// Version of the recording library.
    pub recorder: Option<String>,
    /// Working directory.
    pub directory: Option<String>,
    /// Remarks of the recorder about its set-up.
    pub remarks: Vec<String>,
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl Process {
    pub(super) fn read(header: &FileHeader<'_>) -> Self {
        let one = |item| header.item(item).map(text);
        let all = |item: Item| {
            let items = header.items().filter(move |&(tag, _)| tag == item as u16);
            items.map(|(_, value)| text(value)).collect()
        };
        Self {
            pid: header.pid,
            parent_pid: header.parent_pid,
            generation: header.generation,
            start_realtime_ns: header.start_realtime_ns,
            exit_ticks: header.exit_ticks,
            clock: header.clock,
            minor: header.minor,
            executable: one(Item::Executable),
            command_line: header.item(Item::CommandLine).map(arguments).unwrap_or_default(),
            environment: all(Item::Environment),
            host: one(Item::Host),
            kernel: one(Item::Kernel),
            recorder: one(Item::Recorder),
            directory: one(Item::Directory),
            remarks: all(Item::Remark),
        }
    }
}

fn arguments(bytes: &[u8]) -> Vec<String> {
    let bytes = bytes.strip_suffix(&[0]).unwrap_or(bytes);
    bytes.split(|&byte| byte == 0).map(text).collect()
}
