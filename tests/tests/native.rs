//! Native frames as the compiler's own runtime unwinds them.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;

use gmmtrace_tests::{Outcome, Run, gmmtrace, programs};

/// The logs as text: the return addresses of every allocation by its size, the innermost first; a
/// gap is its reason.
fn recorded(outcome: &Outcome) -> BTreeMap<u64, Vec<String>> {
    outcome.logs().iter().flat_map(|log| recorded_in(log)).collect()
}

fn recorded_in(log: &Path) -> BTreeMap<u64, Vec<String>> {
    let dump = gmmtrace(&[OsStr::new("dump"), log.as_os_str()]);
    assert_eq!(dump.code(), 0, "{}", dump.stderr);
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
            "native_frame" => {
                let address = u64::from_str_radix(word("at").unwrap().trim_start_matches("0x"), 16);
                frames.insert(words[1], address.unwrap().to_string());
            }
            "frame_gap" => {
                frames.insert(words[1], word("reason").unwrap().to_owned());
            }
            "node" => {
                nodes.insert(words[1], (word("parent").unwrap(), word("frame").unwrap()));
            }
            _ if line.contains(" device_alloc ") => {
                let bytes: u64 = word("bytes").unwrap().parse().unwrap();
                events.push((bytes, word("native").unwrap_or("0").to_owned()));
            }
            _ => {}
        }
    }
    let chain = |node: &str| {
        let mut chain = Vec::new();
        let mut node = node.to_owned();
        while node != "0" {
            let (parent, frame) = nodes[node.as_str()];
            chain.push(frames[frame].clone());
            node = parent.to_owned();
        }
        chain
    };
    events.iter().map(|(bytes, node)| (*bytes, chain(node))).collect()
}

/// What the program printed: by size, the return addresses, the innermost first.
fn told(outcome: &Outcome) -> BTreeMap<u64, Vec<String>> {
    let lines = outcome.stdout.lines().filter_map(|line| line.strip_prefix("stack "));
    let told = lines.map(|line| {
        let mut words = line.split(' ').map(str::to_owned);
        (words.next().unwrap().parse().unwrap(), words.collect())
    });
    told.collect()
}

#[test]
fn frames_are_those_that_the_compilers_runtime_unwinds() {
    for stacks in ["auto", "native", "full"] {
        let outcome = Run::traced("native_stacks").environment("GMMTRACE_STACKS", stacks).finish();
        assert_eq!(outcome.code(), 0, "{}", outcome.stderr);
        let (recorded, told) = (recorded(&outcome), told(&outcome));
        assert!(told.len() > 50, "{}", told.len());
        assert_eq!(recorded.keys().collect::<Vec<_>>(), told.keys().collect::<Vec<_>>());
        for (bytes, told) in &told {
            let recorded = &recorded[bytes];
            assert!(recorded.len() >= 3, "{recorded:?}");
            // The innermost is behind another call of the same function. The outermost is what the
            // first function returns to, which has none above it.
            assert_eq!(recorded[1..], told[1..], "{stacks} {bytes}");
        }
    }
}

#[test]
fn what_cannot_be_followed_is_a_gap_and_no_harm() {
    let libraries = programs();
    for stacks in ["native", "full"] {
        let run = Run::traced("native_harm").environment("GMMTRACE_STACKS", stacks);
        let outcome = run.argument(libraries).finish();
        assert_eq!(outcome.code(), 0, "{}{}", outcome.stdout, outcome.stderr);
        assert!(outcome.stdout.ends_with("survived\n"));
        let (recorded, told) = (recorded(&outcome), told(&outcome));
        let outermost = |mib: u64| recorded[&(mib << 20)].last().unwrap().as_str();
        assert_eq!(outermost(1), "2", "no rule for code made at run time");
        assert_eq!(outermost(2), "3", "another stack");
        assert_eq!(outermost(3), "3", "another stack");
        assert_eq!(outermost(4), "3", "a frame that does not lie in the stack");
        for mib in [1, 4] {
            assert!(recorded[&(mib << 20)].len() >= 2, "the frames before the gap are there");
        }
        for mib in [5, 6, 9] {
            let frames = &recorded[&(mib << 20)];
            assert!(frames.len() >= 3 && frames.iter().all(|at| at.len() > 3), "{frames:?}");
        }
        // What lies where another library lay is unwound by its own tables.
        assert!(outcome.stdout.contains("same_place 8"), "{}", outcome.stdout);
        assert_eq!(told.len(), 16);
        for (bytes, told) in &told {
            assert_eq!(recorded[bytes][1..], told[1..], "{bytes}");
        }
    }
}
