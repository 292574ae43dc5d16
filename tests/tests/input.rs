//! What is not a log, or not a whole one: one clear sentence, or everything before the damage.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]
#![allow(clippy::print_stdout, reason = "what was not run, and figures")]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use gmmtrace_tests::{Captured, Folder, Run, gmmtrace, number, report, tally};
use serde_json::Value;

/// The two commands that read any log.
fn commands(path: &Path) -> [Captured; 3] {
    let of = |words: &[&str]| {
        let mut arguments: Vec<&OsStr> = words.iter().map(OsStr::new).collect();
        arguments.push(path.as_ref());
        gmmtrace(&arguments)
    };
    [of(&["report"]), of(&["report", "--format", "json"]), of(&["dump"])]
}

/// Both commands end with 2 and one sentence that names the path and says this.
fn refused(path: &Path, sentence: &str) {
    for said in commands(path) {
        assert_eq!(said.code(), 2, "{}: {}", path.display(), said.stderr);
        assert_eq!(said.stdout, "", "{}", path.display());
        assert_eq!(said.stderr.lines().count(), 1, "{}", said.stderr);
        assert!(said.stderr.starts_with("gmmtrace: "), "{}", said.stderr);
        assert!(said.stderr.contains(&path.display().to_string()), "{}", said.stderr);
        assert!(said.stderr.contains(sentence), "{:?} does not say {sentence:?}", said.stderr);
    }
}

/// Whether all commands read this; else all refuse it politely.
fn read_or_refused(path: &Path, what: &str) -> bool {
    let codes = commands(path).map(|said| {
        let code = said.code();
        assert!(matches!(code, 0 | 2), "{what}: exit code {code}: {}", said.stderr);
        assert!(!said.stderr.contains("panicked"), "{what}: {}", said.stderr);
        if code == 2 {
            assert_eq!((said.stdout.as_str(), said.stderr.lines().count()), ("", 1), "{what}");
            assert!(said.stderr.contains(&path.display().to_string()), "{}", said.stderr);
        }
        code
    });
    assert!(codes.iter().all(|code| *code == codes[0]), "{what}: {codes:?}");
    codes[0] == 0
}

/// A log with some of everything, of many chunks.
fn sample(folder: &Folder) -> (PathBuf, Vec<u8>) {
    let outcome = Run::traced("many_events").arguments(&["60000", "2"]).finish();
    assert_eq!(outcome.code(), 0, "{}", outcome.stderr);
    let bytes = fs::read(outcome.log()).unwrap();
    let path = folder.join("damaged.gmmt");
    fs::write(&path, &bytes).unwrap();
    (path, bytes)
}

#[test]
fn a_missing_file_is_refused() {
    refused(&Folder::new().join("missing.gmmt"), "no such file");
}

#[test]
fn an_empty_file_is_refused() {
    let folder = Folder::new();
    let path = folder.join("empty.gmmt");
    fs::write(&path, "").unwrap();
    refused(&path, "empty");
}

#[test]
fn a_text_file_is_refused() {
    let folder = Folder::new();
    let path = folder.join("text.gmmt");
    for text in ["x", "gmmtrace\n", &"some text\n".repeat(100_000)] {
        fs::write(&path, text).unwrap();
        refused(&path, "not a gmmtrace log");
    }
}

#[test]
fn a_directory_without_logs_is_refused() {
    let folder = Folder::new();
    refused(&folder, "no gmmtrace log");
    fs::write(folder.join("notes.txt"), "text").unwrap();
    refused(&folder, "no gmmtrace log");
}

#[test]
fn a_path_through_a_file_is_refused() {
    let folder = Folder::new();
    fs::write(folder.join("file"), "text").unwrap();
    refused(&folder.join("file/log.gmmt"), "not a directory");
}

#[test]
fn a_file_without_permission_is_refused() {
    let folder = Folder::new();
    let (path, _) = sample(&folder);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read(&path).is_ok() {
        println!("not run: this user may read anything");
        return;
    }
    refused(&path, "permission denied");
}

#[test]
fn another_version_is_refused_by_both_numbers() {
    let folder = Folder::new();
    let (path, mut bytes) = sample(&folder);
    for major in [0, 2, 200] {
        bytes[8] = major;
        fs::write(&path, &bytes).unwrap();
        refused(&path, &format!("format {major}."));
        refused(&path, "reads format 1.");
    }
}

/// Where the full chunks begin: state (sealed) and length stand first, the content behind 128.
fn full_chunks(bytes: &[u8]) -> impl Iterator<Item = usize> {
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let starts = (1..bytes.len() >> 16).map(|slot| slot << 16);
    starts.filter(move |start| word(*start) == 2 && word(start + 4) > 60_000)
}

/// Reads a log cut at each of `lengths`, shortest first. `said`: whether a loss must be said.
fn cut(lengths: impl Fn(&[u8]) -> Vec<usize>, said: bool) {
    let folder = Folder::new();
    let (path, bytes) = sample(&folder);
    let lengths = lengths(&bytes);
    let whole = number(&report(&path), "/trace/events");
    let mut before = 0;
    for length in lengths {
        let what = format!("cut at {length} of {}", bytes.len());
        fs::write(&path, &bytes[..length]).unwrap();
        if !read_or_refused(&path, &what) {
            assert!(length < 1 << 17, "{what}: the header and a chunk are there");
            continue;
        }
        let report = report(&path);
        let events = number(&report, "/trace/events");
        assert!((before..=whole).contains(&events), "{what}: {events} of {whole}");
        before = events;
        if said && events < whole {
            salvaged(&report, &what);
        }
    }
}

#[test]
fn a_log_cut_anywhere_gives_everything_before_the_cut() {
    let ends = [8, 16, 256, 1024, 4096, 1 << 16, (1 << 16) + 128, 1 << 17, 3 << 16, 1 << 20];
    let within = |bytes: &[u8]| {
        let around = ends.into_iter().flat_map(|end| [end - 1, end, end + 1]);
        around.filter(|end| *end <= bytes.len()).collect()
    };
    cut(within, false);
}

#[test]
fn a_log_cut_inside_a_chunk_says_so() {
    cut(|bytes| full_chunks(bytes).map(|chunk| chunk + 30_000).collect(), true);
}

#[test]
fn a_log_cut_between_two_chunks_says_so() {
    cut(|bytes| full_chunks(bytes).collect(), true);
}

#[test]
fn a_log_cut_inside_its_header_says_so() {
    cut(|_| vec![1023, 1024, 1500, 5000, 65535], true);
}

/// The report says what is missing, and that its figures are bounds.
fn salvaged(report: &Value, what: &str) {
    let coverage = &report["coverage"];
    assert_eq!(report["trace"]["complete"], false, "{what}");
    assert_ne!(coverage["salvage"], Value::Array(Vec::new()), "{what}: {coverage:#}");
    assert_eq!(report["live"]["bound"], true, "{what}");
}

#[test]
fn a_chunk_of_rubbish_costs_that_chunk_and_is_said() {
    let folder = Folder::new();
    let (path, mut bytes) = sample(&folder);
    let whole = report(&path);
    let from = full_chunks(&bytes).next().unwrap();
    bytes[from + 200..from + 60_000].fill(0xff);
    fs::write(&path, &bytes).unwrap();
    assert!(read_or_refused(&path, "rubbish"));
    let damaged = report(&path);
    salvaged(&damaged, "rubbish");
    let events = |report: &Value| number(report, "/trace/events");
    assert!(events(&damaged) < events(&whole));
    assert!(events(&damaged) > 0);
    let text = &commands(&path)[2].stdout;
    assert!(text.lines().any(|line| line.starts_with("salvage ")), "{text}");
}

/// SplitMix64.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.0;
        value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((value ^ value >> 31) % end as u64).unwrap()
    }
}

#[test]
fn flipped_bytes_never_bring_the_reader_down() {
    let folder = Folder::new();
    let outcome = Run::traced("three_ways").finish();
    let original = fs::read(outcome.log()).unwrap();
    let path = folder.join("flipped.gmmt");
    // Slots that are in use; the rest of the file is zeros.
    let used = original.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    let mut chance = Chance(20);
    for seed in 0..150 {
        let mut bytes = original.clone();
        // Half of the time near the headers, where a byte means most.
        let range = if seed % 2 == 0 { used } else { 2048 };
        for _ in 0..=chance.below(8) {
            let slot = (chance.below(used) >> 16 << 16) * usize::from(seed % 4 == 3);
            let at = (slot + chance.below(range)).min(used - 1);
            bytes[at] ^= 1 << chance.below(8);
        }
        fs::write(&path, &bytes).unwrap();
        read_or_refused(&path, &format!("seed {seed}"));
    }
}

#[test]
fn a_file_of_noise_behind_a_right_header_never_brings_the_reader_down() {
    let folder = Folder::new();
    let outcome = Run::traced("three_ways").finish();
    let original = fs::read(outcome.log()).unwrap();
    let path = folder.join("noise.gmmt");
    let mut chance = Chance(7);
    for round in 0..20 {
        let mut bytes = original.clone();
        for slot in 1..bytes.len() >> 16 {
            let start = slot << 16;
            for byte in &mut bytes[start + 128 * (round % 2)..start + 4096] {
                *byte = chance.below(256) as u8;
            }
        }
        fs::write(&path, &bytes).unwrap();
        read_or_refused(&path, &format!("round {round}"));
    }
}

#[test]
fn a_log_that_is_still_being_written_is_read_as_far_as_it_is() {
    let mut before = 0;
    let running = Run::traced("kill_counter").argument("counters").argument("2");
    // It writes as fast as it can: no more than this on a machine that is slow to read.
    let running = running.environment("GMMTRACE_MAX_BYTES", "500M").start();
    let log = running.folder().join(format!("{}.gmmt", running.pid()));
    for _ in 0..6 {
        std::thread::sleep(std::time::Duration::from_millis(20));
        if !log.exists() {
            continue;
        }
        let report = report(&log);
        assert_eq!(report["trace"]["state"], "running");
        assert_eq!(report["trace"]["complete"], false);
        assert_eq!(report["coverage"]["salvage"], Value::Array(Vec::new()), "it is not damaged");
        let events = number(&report, "/trace/events");
        assert!(events >= before, "{events} after {before}");
        before = events;
    }
    assert!(before > 0);
    let text = gmmtrace(&["report".as_ref(), log.as_ref()]).stdout;
    assert!(text.contains("still running"), "{text}");
    assert_eq!(running.kill().report()["trace"]["state"], "gone");
}

#[test]
fn a_directory_stands_for_the_logs_in_it() {
    let outcome = Run::traced("fork_both").finish();
    let said = gmmtrace(&["report".as_ref(), "--format=json".as_ref(), outcome.folder.as_ref()]);
    assert_eq!(said.code(), 0, "{}", said.stderr);
    let reports: Value = serde_json::from_str(&said.stdout).unwrap();
    let reports = reports.as_array().unwrap();
    assert_eq!(reports.len(), 2);
    for prefix in ["parent.", "child."] {
        let mine =
            |report: &&Value| report["process"]["pid"] == outcome.key(&format!("{prefix}pid"));
        tally::assert_exact(reports.iter().find(mine).unwrap(), &outcome.keys(prefix));
    }
}

#[test]
fn one_bad_log_among_good_ones_is_named_and_the_others_reported() {
    let outcome = Run::traced("fork_both").finish();
    let bad = outcome.folder.join("bad.gmmt");
    fs::write(&bad, "text").unwrap();
    let said = gmmtrace(&["report".as_ref(), outcome.folder.as_ref()]);
    assert_eq!(said.code(), 2);
    assert!(said.stderr.contains("bad.gmmt"), "{}", said.stderr);
    assert!(said.stdout.matches("fork_both").count() >= 2, "{}", said.stdout);
}
