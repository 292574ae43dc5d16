//! Runs a command under the library and finds the logs it left.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rustix::fs::{Access, access};
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;

use super::library;
use crate::Error;
use crate::input::EXTENSION;

/// Signals that would end this process and leave the command alone.
const CAUGHT: [i32; 6] = [SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2];

/// Marks the logs of one run; the library writes it to their headers.
const RUN: &str = "GMMTRACE_RUN";

/// A command that ran.
pub struct Recorded {
    /// How it ended.
    pub status: ExitStatus,
    /// Its own log.
    pub own: Option<PathBuf>,
    /// The logs of processes that it started.
    pub others: Vec<PathBuf>,
}

/// Runs a command under the library. Its logs are written where `output` says.
///
/// # Errors
/// When the library is not fit for this machine, or the command cannot be started.
pub fn record(mut command: Command, output: Option<&Path>) -> Result<Recorded, Error> {
    let library = library::find()?;
    check(&library)?;
    let pattern = pattern(output)?;
    let directory = pattern.parent().unwrap_or(Path::new("/")).to_path_buf();
    let run = format!("{}.{}", std::process::id(), now());
    command.env("LD_PRELOAD", preload(&library)?).env("GMMTRACE_OUT", &pattern).env(RUN, &run);
    if env::var_os("NVTX_INJECTION64_PATH").is_none() {
        command.env("NVTX_INJECTION64_PATH", &library);
    }
    // Before the command runs: a signal in between would end this process alone.
    let mut signals = Signals::new(CAUGHT).map_err(Error::Output)?;
    let name = command.get_program().to_os_string();
    let mut child = command.spawn().map_err(|error| Error::path("run", Path::new(&name), error))?;
    let target = Pid::from_child(&child);
    let ended = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&ended);
    thread::spawn(move || pass_on(&mut signals, target, &told));
    let status = wait(&mut child)?;
    ended.store(true, Ordering::Release);
    let (own, others) = logs_of(&directory, &run, child.id());
    Ok(Recorded { status, own, others })
}

/// The terminal sends its signals to the command too; those for this process alone are passed on.
/// Once the command has ended they do to this process what they do to any.
fn pass_on(signals: &mut Signals, target: Pid, ended: &AtomicBool) {
    for signal in signals.forever() {
        if ended.load(Ordering::Acquire) {
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
        let signal = match signal {
            SIGTERM => Signal::TERM,
            SIGHUP => Signal::HUP,
            SIGUSR1 => Signal::USR1,
            SIGUSR2 => Signal::USR2,
            _ => continue,
        };
        let _ = kill_process(target, signal);
    }
}

fn wait(child: &mut Child) -> Result<ExitStatus, Error> {
    loop {
        match child.wait() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            outcome => return outcome.map_err(Error::Output),
        }
    }
}

fn now() -> u128 {
    let since = std::time::UNIX_EPOCH.elapsed();
    since.map_or(0, |since| since.as_nanos())
}

/// A library that the loader refuses would end every process it is preloaded into.
///
/// # Errors
/// When the loader does not accept it.
pub fn check(library: &Path) -> Result<(), Error> {
    let probe = Command::new("/proc/self/exe")
        .arg("--version")
        .env("LD_PRELOAD", library)
        .env("GMMTRACE", "off")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| Error::path("run", Path::new("/proc/self/exe"), error))?;
    if probe.status.success() && probe.stderr.is_empty() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&probe.stderr);
    let said = said.lines().next().unwrap_or("no reason given");
    Err(Error::Said(format!("{}: the loader does not accept it: {said}", library.display())))
}

/// `LD_PRELOAD` with the library first, what was there behind it.
fn preload(library: &Path) -> Result<OsString, Error> {
    if library.as_os_str().as_bytes().iter().any(|byte| b" :".contains(byte)) {
        let path = library.display();
        return Err(Error::Said(format!(
            "{path}: LD_PRELOAD cannot name a path with a space or a colon; move it"
        )));
    }
    let mut value = library.as_os_str().to_os_string();
    if let Some(before) = env::var_os("LD_PRELOAD").filter(|before| !before.is_empty()) {
        value.push(":");
        value.push(before);
    }
    Ok(value)
}

/// The pattern of the logs' names, absolute, because the command may change its directory.
///
/// # Errors
/// When the directory is none.
pub fn pattern(output: Option<&Path>) -> Result<PathBuf, Error> {
    const NAME: &str = "gmmtrace.%e.%p.%t.gmmt";
    let path = match output {
        Some(path) => {
            let mut path = path.to_path_buf();
            if names_a_directory(&path) {
                fs::create_dir_all(&path).map_err(|error| Error::path("make", &path, error))?;
                path.push(NAME);
            }
            path
        }
        None => env::var_os("GMMTRACE_OUT").map_or_else(|| PathBuf::from(NAME), PathBuf::from),
    };
    let path = std::path::absolute(&path).map_err(|error| Error::path("find", &path, error))?;
    let directory = path.parent().unwrap_or(Path::new("/"));
    match fs::metadata(directory) {
        Ok(found) if found.is_dir() => match access(directory, Access::WRITE_OK) {
            Ok(()) => Ok(path),
            Err(error) => Err(Error::path("write to", directory, error.into())),
        },
        Ok(_) => Err(Error::Said(format!("{}: not a directory", directory.display()))),
        Err(error) => Err(Error::path("write to", directory, error)),
    }
}

/// A log's name ends in `.gmmt` or has a `%` in it; anything else is a directory, made if need be.
fn names_a_directory(path: &Path) -> bool {
    let log = path.extension().is_some_and(|end| end == EXTENSION);
    let pattern = path.file_name().is_some_and(|name| name.as_bytes().contains(&b'%'));
    path.is_dir() || !log && !pattern
}

/// The logs of a run: the command's own and those of its children.
fn logs_of(directory: &Path, run: &str, pid: u32) -> (Option<PathBuf>, Vec<PathBuf>) {
    let wanted = format!("{RUN}={run}");
    let (mut own, mut others) = (Vec::new(), Vec::new());
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        let Some(process) = crate::input::process_of(&path) else { continue };
        if process.environment.contains(&wanted) {
            if process.pid == pid { &mut own } else { &mut others }.push((process, path));
        }
    }
    own.sort_by_key(|(process, _)| process.start_realtime_ns);
    // A command that was replaced by exec has a log for each image; the last one is its own.
    let last = own.pop().map(|(_, path)| path);
    (last, own.into_iter().chain(others).map(|(_, path)| path).collect())
}
