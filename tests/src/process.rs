//! Starting a process with its output in files and a limit to its time.

use std::fs::{self, File};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::Folder;

/// What a process left behind.
#[derive(Debug)]
pub struct Captured {
    /// How it ended.
    pub status: ExitStatus,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Captured {
    /// Its exit code.
    ///
    /// # Panics
    /// When a signal ended it.
    #[must_use]
    pub fn code(&self) -> i32 {
        match (self.status.code(), self.status.signal()) {
            (Some(code), _) => code,
            (None, signal) => panic!("ended by signal {signal:?}\n{}{}", self.stdout, self.stderr),
        }
    }
}

/// Names of the files that hold a process's output, in `folder`.
pub(crate) const STDOUT: &str = "stdout";
pub(crate) const STDERR: &str = "stderr";

/// Starts `command` with its output in files of `folder`. Files, because a child that outlives
/// the process would keep a pipe open.
pub(crate) fn start(command: &mut Command, folder: &Folder) -> Child {
    let file = |name| File::create(folder.join(name)).expect("an output file can be made");
    command.stdin(Stdio::null()).stdout(file(STDOUT)).stderr(file(STDERR));
    command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// Waits for the end of `child`, at most so long.
pub(crate) fn wait(child: &mut Child, limit: Duration) -> io::Result<Option<ExitStatus>> {
    let end = Instant::now() + limit;
    let mut pause = Duration::from_micros(200);
    loop {
        match child.try_wait()? {
            Some(status) => return Ok(Some(status)),
            None if Instant::now() >= end => return Ok(None),
            None => thread::sleep(pause),
        }
        pause = (pause * 2).min(Duration::from_millis(10));
    }
}

/// What stands in the output files of `folder`.
pub(crate) fn output(folder: &Folder) -> (String, String) {
    let text = |name| {
        let bytes = fs::read(folder.join(name)).expect("the output file is there");
        String::from_utf8_lossy(&bytes).into_owned()
    };
    (text(STDOUT), text(STDERR))
}

/// Runs `command` to its end.
///
/// # Panics
/// When it takes longer than a minute.
#[must_use]
pub fn capture(command: &mut Command) -> Captured {
    let folder = Folder::new();
    let mut child = start(command, &folder);
    let status = wait(&mut child, Duration::from_mins(1)).expect("a child can be waited for");
    let Some(status) = status else {
        let _ = child.kill();
        panic!("{command:?} does not end: {:?}", output(&folder));
    };
    let (stdout, stderr) = output(&folder);
    Captured { status, stdout, stderr }
}
