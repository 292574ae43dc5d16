//! Running a test program, under the library or without it.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::process::{self, Captured};
use crate::{Folder, fake_cuda, known_programs, products, programs, report};

/// A program to be run, in a folder of its own, where its logs will be.
#[derive(Debug)]
pub struct Run {
    command: Command,
    folder: Folder,
    limit: Duration,
}

/// A program that runs. It is killed when this goes away, as in a test that fails: some programs
/// never end by themselves, and their logs grow.
#[derive(Debug)]
pub struct Running {
    child: Guard,
    folder: Folder,
    limit: Duration,
}

/// Kills and reaps.
#[derive(Debug)]
struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        // A child that was waited for is not signalled again.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A program that has ended.
#[derive(Debug)]
pub struct Outcome {
    captured: Captured,
    /// Where it ran and its logs are.
    pub folder: Folder,
}

/// Name of the logs.
const LOG: &str = "%p.gmmt";

impl Run {
    /// The test program with this name, with the environment that its source asks for, without
    /// the library.
    ///
    /// # Panics
    /// When `build.list` has no such program.
    #[must_use]
    pub fn plain(name: &str) -> Self {
        let known = known_programs();
        let recipe = known.iter().find(|recipe| recipe.name == name);
        let recipe = recipe.unwrap_or_else(|| panic!("build.list has no program {name}"));
        let mut run = Self::of(&programs().join(name));
        for (key, value) in asked_for(&recipe.source) {
            run.command.env(key, value);
        }
        run
    }

    /// The same under the library.
    #[must_use]
    pub fn traced(name: &str) -> Self {
        Self::plain(name).preload(&[&products().library])
    }

    /// Any executable, with the simulated CUDA, without the library.
    #[must_use]
    pub fn of(path: &Path) -> Self {
        let folder = Folder::new();
        let mut command = Command::new(path);
        command.env_clear().current_dir(&*folder);
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", path);
        }
        command.env("LD_LIBRARY_PATH", fake_cuda());
        Self { command, folder, limit: Duration::from_mins(1) }
    }

    /// Preloads these libraries, and names the logs.
    #[must_use]
    pub fn preload(mut self, libraries: &[&Path]) -> Self {
        let names: Vec<&OsStr> = libraries.iter().map(|path| path.as_os_str()).collect();
        self.command.env("LD_PRELOAD", names.join(OsStr::new(":")));
        self.command.env("GMMTRACE_OUT", self.folder.join(LOG));
        self
    }

    /// One more argument.
    #[must_use]
    pub fn argument(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.command.arg(argument);
        self
    }

    /// More arguments.
    #[must_use]
    pub fn arguments(mut self, arguments: &[&str]) -> Self {
        self.command.args(arguments);
        self
    }

    /// A variable of its environment.
    #[must_use]
    pub fn environment(mut self, key: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(key, value);
        self
    }

    /// Ends it as a failure after so long, instead of a minute.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// The folder it will run in.
    #[must_use]
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    /// Starts it.
    #[must_use]
    pub fn start(mut self) -> Running {
        let child = process::start(&mut self.command, &self.folder);
        Running { child: Guard(child), folder: self.folder, limit: self.limit }
    }

    /// Runs it to its end.
    #[must_use]
    pub fn finish(self) -> Outcome {
        self.start().finish()
    }
}

impl Running {
    /// Waits for its end.
    ///
    /// # Panics
    /// When it does not end in time.
    #[must_use]
    pub fn finish(mut self) -> Outcome {
        let waited = process::wait(&mut self.child.0, self.limit);
        let Some(status) = waited.expect("a child can be waited for") else {
            panic!("the program does not end: {:?}", process::output(&self.folder));
        };
        let (stdout, stderr) = process::output(&self.folder);
        Outcome { captured: Captured { status, stdout, stderr }, folder: self.folder }
    }

    /// Kills it, by SIGKILL.
    #[must_use]
    pub fn kill(mut self) -> Outcome {
        self.child.0.kill().expect("a child can be killed");
        self.finish()
    }

    /// Waits until its standard output holds `text`.
    ///
    /// # Panics
    /// When that does not happen in time.
    pub fn wait_for(&mut self, text: &str) {
        let end = Instant::now() + self.limit;
        while !process::output(&self.folder).0.contains(text) {
            let ended = self.child.0.try_wait().expect("a child can be asked");
            assert!(ended.is_none() && Instant::now() < end, "it never printed {text:?}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// The folder it runs in.
    #[must_use]
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.0.id()
    }
}

impl Deref for Outcome {
    type Target = Captured;

    fn deref(&self) -> &Captured {
        &self.captured
    }
}

impl Outcome {
    /// What it printed as `key value` lines under `prefix`, without the prefix.
    #[must_use]
    pub fn keys(&self, prefix: &str) -> BTreeMap<String, u64> {
        keys_of(&self.stdout, prefix)
    }

    /// The number that it printed under this key.
    ///
    /// # Panics
    /// When it printed none.
    #[must_use]
    pub fn key(&self, key: &str) -> u64 {
        let found = self.keys("").get(key).copied();
        found.unwrap_or_else(|| panic!("no {key} in {:?}, {:?}", self.stdout, self.stderr))
    }

    /// The logs that it left.
    #[must_use]
    pub fn logs(&self) -> Vec<PathBuf> {
        self.folder.logs()
    }

    /// The only log that it left.
    ///
    /// # Panics
    /// When there is none, or another.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        match self.logs().as_slice() {
            [log] => log.clone(),
            logs => panic!("one log, but {logs:?}; {:?}", self.captured),
        }
    }

    /// The report about its only log.
    #[must_use]
    pub fn report(&self) -> Value {
        report(&self.log())
    }

    /// The report about the log of the process whose `pid` was printed under `prefix`.
    ///
    /// # Panics
    /// When there is no such log.
    #[must_use]
    pub fn report_of(&self, prefix: &str) -> Value {
        let pid = self.key(&format!("{prefix}pid"));
        report(&self.folder.join(LOG.replace("%p", &pid.to_string())))
    }
}

/// The `key value` lines of `text` under `prefix`, without the prefix.
#[must_use]
pub fn keys_of(text: &str, prefix: &str) -> BTreeMap<String, u64> {
    let pair = |line: &str| {
        let (key, value) = line.strip_prefix(prefix)?.split_once(' ')?;
        Some((key.to_owned(), value.parse().ok()?))
    };
    text.lines().filter_map(pair).collect()
}

/// The `Run with:` line of a source.
fn asked_for(source: &Path) -> Vec<(String, String)> {
    let text = fs::read_to_string(source).expect("a source can be read");
    let line = text.lines().find_map(|line| line.strip_prefix(" * Run with: "));
    let words = line.unwrap_or("").split_whitespace();
    words.filter_map(|word| word.split_once('=')).map(|(k, v)| (k.into(), v.into())).collect()
}
