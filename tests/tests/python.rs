//! Python frames as the interpreter itself tells them.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]
#![allow(clippy::print_stdout, reason = "what was not run")]

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gmmtrace_tests::{Outcome, Run, gmmtrace, products, programs};

/// Versions whose frames are read.
const READ: [&str; 3] = ["3.11", "3.12", "3.13"];

/// The interpreter of this version, by what it says that it is: one on the path, or one that pyenv
/// keeps.
fn interpreter(wanted: &str) -> Option<PathBuf> {
    let mut folders: Vec<PathBuf> =
        std::env::split_paths(&std::env::var_os("PATH").unwrap()).collect();
    if let Some(home) = std::env::var_os("HOME") {
        let kept = fs::read_dir(Path::new(&home).join(".pyenv/versions"));
        folders.extend(kept.into_iter().flatten().flatten().map(|entry| entry.path().join("bin")));
    }
    let paths = folders.iter().map(|folder| folder.join(format!("python{wanted}")));
    let mut sound = paths.filter(|path| version(path).is_some_and(|version| version == wanted));
    sound.next()
}

/// Every interpreter of this machine whose frames are read.
fn interpreters() -> Vec<PathBuf> {
    let found = READ.iter().filter_map(|wanted| {
        let found = interpreter(wanted);
        if found.is_none() {
            println!("not run: no Python {wanted} is here");
        }
        found
    });
    found.collect()
}

/// Version of an interpreter, as `3.11`.
fn version(python: &Path) -> Option<String> {
    let code = "import sys; print('%d.%d' % sys.version_info[:2])";
    let output = Command::new(python).args(["-c", code]).output().ok()?;
    output.status.success().then(|| String::from_utf8(output.stdout).unwrap().trim().to_owned())
}

/// Another version is not guessed at: no frame, and a word of it.
#[test]
fn a_version_that_is_not_read_says_so() {
    let others = ["3.10", "3.9", "3.14"];
    let Some(python) = others.iter().find_map(|wanted| interpreter(wanted)) else {
        return println!("not run: no Python of {others:?} is here");
    };
    let outcome = traced(&python, "stacks.py").finish();
    assert!(recorded(&outcome).values().all(Vec::is_empty));
    let remarks = outcome.report()["coverage"]["remarks"].to_string();
    assert!(remarks.contains("Python frames are not recorded"), "{remarks}");
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("python").join(name)
}

fn traced(python: &Path, name: &str) -> Run {
    Run::of(python).preload(&[&products().library]).argument(script(name))
}

/// The log as text: the frames of every allocation by its size, the innermost first.
fn recorded(outcome: &Outcome) -> BTreeMap<u64, Vec<String>> {
    let dump = gmmtrace(&[OsStr::new("dump"), outcome.log().as_os_str()]);
    assert_eq!(dump.code(), 0, "{}", dump.stderr);
    let mut codes: BTreeMap<&str, (String, &str)> = BTreeMap::new();
    let mut frames: BTreeMap<&str, String> = BTreeMap::new();
    let mut nodes: BTreeMap<&str, (&str, &str)> = BTreeMap::new();
    let mut events = Vec::new();
    for line in dump.stdout.lines() {
        let word = |key: &str| {
            let start = line.find(&format!(" {key}="))? + key.len() + 2;
            line[start..].split(' ').next()
        };
        let words: Vec<&str> = line.split(' ').collect();
        match words[0] {
            // `code 3 PATH:LINE NAME lines_bytes=…`; the path may have spaces.
            "code" => {
                let (head, _) = line.rsplit_once(" lines_bytes=").unwrap();
                let rest = head.splitn(3, ' ').nth(2).unwrap();
                let colon = rest
                    .rmatch_indices(':')
                    .find(|&(at, _)| rest[at + 1..].starts_with(|c: char| c.is_ascii_digit()));
                let (file, rest) = rest.split_at(colon.unwrap().0);
                codes.insert(words[1], (file.to_owned(), rest.split_once(' ').unwrap().1));
            }
            "python_frame" => {
                let (file, name) = &codes[word("code").unwrap()];
                frames.insert(words[1], format!("{file}:{} {name}", word("line").unwrap()));
            }
            "frame_gap" => {
                frames.insert(words[1], "gap".to_owned());
            }
            "node" => {
                nodes.insert(words[1], (word("parent").unwrap(), word("frame").unwrap()));
            }
            _ if line.contains(" device_alloc ") => {
                let bytes: u64 = word("bytes").unwrap().parse().unwrap();
                events.push((bytes, word("python").unwrap_or("0").to_owned()));
            }
            _ => {}
        }
    }
    let chain = |node: &str| {
        let mut node = node;
        let mut chain = Vec::new();
        while node != "0" {
            let (parent, frame) = nodes[node];
            chain.push(frames[frame].clone());
            node = parent;
        }
        chain
    };
    events.iter().map(|(bytes, node)| (*bytes, chain(node))).collect()
}

/// What the program printed.
fn told(outcome: &Outcome) -> BTreeMap<u64, Vec<String>> {
    let lines = outcome.stdout.lines();
    let rows = lines.map(|line| {
        let mut words = line.split("  ");
        (words.next().unwrap().parse().unwrap(), words.map(str::to_owned).collect())
    });
    rows.collect()
}

#[test]
fn every_frame_is_the_one_that_the_interpreter_tells() {
    for python in interpreters() {
        let outcome = traced(&python, "stacks.py").finish();
        assert_eq!(outcome.code(), 0, "{}", outcome.stderr);
        let (recorded, told) = (recorded(&outcome), told(&outcome));
        assert!(told.len() > 100, "{} allocations", told.len());
        for (bytes, frames) in &told {
            assert_eq!(
                recorded.get(bytes),
                Some(frames),
                "{} with {bytes} bytes",
                python.display()
            );
        }
        assert_eq!(recorded.len(), told.len());
        let report = outcome.report();
        assert_eq!(report["coverage"]["notes"]["stacks_doubtful"], serde_json::Value::Null);
    }
}

/// The interpreter frees the states of its daemon threads when it ends, and they go on.
#[test]
fn a_thread_that_outlives_its_interpreter_does_no_harm() {
    for python in interpreters() {
        for _ in 0..3 {
            let library = programs().join("libafter_python.so");
            let outcome = traced(&python, "daemon.py").argument(library).finish();
            assert_eq!(outcome.code(), 0, "{}: {}", python.display(), outcome.stderr);
            assert!(outcome.stdout.contains("after 1"), "the threads went on: {}", outcome.stdout);
            let dump = gmmtrace(&[OsStr::new("dump"), outcome.log().as_os_str()]);
            let taken = dump.stdout.lines().filter(|line| line.contains(" device_alloc "));
            let time = |line: &str| -> u64 { line.split(' ').next().unwrap().parse().unwrap() };
            let with = taken
                .clone()
                .rfind(|line| line.contains(" python=") && !line.contains(" python=0 "))
                .unwrap();
            let last = taken.clone().next_back().unwrap();
            // The script makes the end last a tenth of a second.
            assert!(time(last) - time(with) >= 100_000_000, "{with}\n{last}");
        }
    }
}

#[test]
fn without_stacks_there_is_no_frame_and_the_same_memory() {
    for python in interpreters() {
        for stacks in ["off", "caller"] {
            let run = traced(&python, "stacks.py").environment("GMMTRACE_STACKS", stacks);
            let outcome = run.finish();
            let recorded = recorded(&outcome);
            assert_eq!(recorded.len(), told(&outcome).len());
            assert!(recorded.values().all(Vec::is_empty));
        }
    }
}
