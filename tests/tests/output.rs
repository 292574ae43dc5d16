//! Where the log cannot go, or not all of it: the host goes on, and what is missing is counted.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]
#![allow(clippy::print_stdout, reason = "what was not run, and figures")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use gmmtrace_tests::{
    Folder, Outcome, Run, capture, fake_cuda, keys_of, number, products, programs, tally,
};
use serde_json::Value;

/// Runs `three_ways` under the library with its log at `out`: as without the library, no log.
fn without_a_log(out: &Path) {
    let plain = Run::plain("three_ways").finish();
    let traced = Run::traced("three_ways").environment("GMMTRACE_OUT", out).finish();
    assert_eq!(traced.status, plain.status, "{}", out.display());
    assert_eq!((&traced.stdout, &traced.stderr), (&plain.stdout, &plain.stderr));
    assert_eq!(traced.folder.entries().len(), 2, "only the output of the program");
}

/// What `coverage` counts under this name, 0 for nothing.
fn counted(report: &Value, name: &str) -> u64 {
    let coverage = &report["coverage"];
    coverage["losses"].get(name).or(coverage["notes"].get(name)).map_or(0, |n| n.as_u64().unwrap())
}

/// Threads of `many_events` at most. Each says once which context is current, which a log that
/// is full loses, too.
const THREADS: u64 = 5;

/// What the program did is what the report has and what it says is missing.
fn assert_accounted_for(report: &Value, printed: &std::collections::BTreeMap<String, u64>) {
    let device = |field: &str| number(report, &format!("/ledgers/device/{field}"));
    let live = device("allocs") + device("frees") + number(report, "/unknown_frees");
    let did = printed["device.allocs"] + printed["device.frees"];
    let known = live + counted(report, "lost_live_events");
    assert!((did..=did + THREADS).contains(&known), "{known} of {did}: {:#}", report["coverage"]);
    let copies: u64 =
        report["copies"].as_array().unwrap().iter().map(|c| number(c, "/count")).sum();
    let did = printed["copies.host_to_device.async.count"];
    assert_eq!(copies + counted(report, "lost_copies"), did, "{:#}", report["coverage"]);
}

/// A log in which something is missing says so beside each figure.
fn assert_bound(report: &Value) {
    assert!(counted(report, "lost_live_events") > 0, "{:#}", report["coverage"]);
    assert_eq!(report["trace"]["complete"], false);
    assert_eq!(report["ledgers"]["device"]["bound"], true);
    assert_eq!(report["peak"]["bound"], true);
    assert_eq!(report["live"]["bound"], true);
}

#[test]
fn a_path_that_cannot_be_made_leaves_the_host_alone() {
    let folder = Folder::new();
    let file = folder.join("file");
    fs::write(&file, "not a directory").unwrap();
    without_a_log(&file.join("log.gmmt"));
    without_a_log(&folder.join("missing/log.gmmt"));
    without_a_log(Path::new("/proc/gmmtrace.gmmt"));
    without_a_log(&folder);
    assert_eq!(fs::read_to_string(&file).unwrap(), "not a directory");
}

#[test]
fn a_directory_without_permission_leaves_the_host_alone() {
    let folder = Folder::new();
    let locked = folder.join("locked");
    fs::create_dir(&locked).unwrap();
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o555)).unwrap();
    if fs::write(locked.join("probe"), "").is_ok() {
        println!("not run: this user may write anywhere");
        return;
    }
    without_a_log(&locked.join("log.gmmt"));
}

#[test]
fn a_file_that_is_there_is_not_touched() {
    let folder = Folder::new();
    let taken = folder.join("log.gmmt");
    fs::write(&taken, "somebody's").unwrap();
    let outcome = Run::traced("three_ways").environment("GMMTRACE_OUT", &taken).finish();
    assert_eq!(outcome.code(), 0, "{}", outcome.stderr);
    assert_eq!(fs::read_to_string(&taken).unwrap(), "somebody's");
    let beside = folder.join("log.gmmt.1");
    tally::assert_exact(&gmmtrace_tests::report(&beside), &outcome.keys(""));
}

#[test]
fn a_symbolic_link_is_not_followed() {
    let folder = Folder::new();
    let (link, target) = (folder.join("log.gmmt"), folder.join("target"));
    std::os::unix::fs::symlink(&target, &link).unwrap();
    let outcome = Run::traced("three_ways").environment("GMMTRACE_OUT", &link).finish();
    assert_eq!(outcome.code(), 0, "{}", outcome.stderr);
    assert!(!target.exists());
}

/// Runs a program behind `ulimit -f`, in units of 512 bytes.
fn under_a_file_limit(kibibytes: u64, arguments: &[&str]) -> Outcome {
    let script = format!("ulimit -f {} && exec \"$0\" \"$@\"", kibibytes * 2);
    let program = programs().join("many_events");
    Run::of(Path::new("/bin/sh"))
        .preload(&[&products().library])
        .environment("FAKE_CUDA_FAST", "1")
        .arguments(&["-c", &script])
        .argument(program)
        .arguments(arguments)
        .finish()
}

#[test]
fn a_limit_to_the_size_of_files_costs_events_but_not_the_host() {
    for arguments in [&["600000", "1"], &["600000", "4"]] {
        let outcome = under_a_file_limit(2048, arguments);
        assert_eq!((outcome.code(), outcome.stderr.as_str()), (0, ""));
        let report = outcome.report();
        assert!(number(&report, "/trace/size") <= 2048 << 10);
        assert_accounted_for(&report, &outcome.keys(""));
        assert_bound(&report);
    }
}

#[test]
fn a_limit_below_the_smallest_log_leaves_no_log() {
    for kibibytes in [16, 64, 100] {
        let outcome = under_a_file_limit(kibibytes, &["10000", "2"]);
        assert_eq!((outcome.code(), outcome.stderr.as_str()), (0, ""), "{kibibytes} KiB");
        for log in outcome.logs() {
            assert_accounted_for(&gmmtrace_tests::report(&log), &outcome.keys(""));
        }
    }
}

/// A mount of its own in a mount namespace of its own, so that nothing is left behind.
#[test]
fn a_full_tmpfs_costs_events_but_not_the_host() {
    let folder = Folder::new();
    let script = "mount -t tmpfs -o size=2m tmpfs \"$0\" || exit 77
        cd \"$0\"
        LD_PRELOAD=\"$2\" GMMTRACE_OUT=\"$0/log.gmmt\" \"$1\" 600000 2 || exit 1
        echo ---
        exec \"$3\" report --format json \"$0/log.gmmt\"";
    let unshare = |options: &str| {
        let mut command = Command::new("unshare");
        command.args([options, "sh", "-c", script]);
        command.args([&*folder, &programs().join("many_events")]);
        command.args([&products().library, &products().gmmtrace]);
        command.env("LD_LIBRARY_PATH", fake_cuda()).env("FAKE_CUDA_FAST", "1");
        command
    };
    let may = |options: &str| {
        let mut probe = Command::new("unshare");
        probe.args([options, "sh", "-c", "mount -t tmpfs -o size=1m tmpfs \"$0\""]).arg(&*folder);
        probe.output().is_ok_and(|output| output.status.success())
    };
    let Some(options) = ["-m", "-Urm"].into_iter().find(|options| may(options)) else {
        println!("not run: this user may not mount a tmpfs");
        return;
    };
    let said = capture(&mut unshare(options));
    assert_eq!((said.code(), said.stderr.as_str()), (0, ""), "{}", said.stdout);
    let (program, report) = said.stdout.split_once("---\n").unwrap();
    let report: Value = serde_json::from_str(report).unwrap();
    assert_accounted_for(&report, &keys_of(program, ""));
    assert_bound(&report);
    assert!(counted(&report, "growth_failures") > 0, "{:#}", report["coverage"]);
}

#[test]
fn a_daemon_that_closes_every_descriptor_is_recorded_to_its_end() {
    let outcome = Run::traced("closed_descriptors").argument("600000").finish();
    assert_eq!((outcome.code(), outcome.stderr.as_str()), (0, ""));
    assert_eq!(outcome.key("files_intact"), 1);
    let report = outcome.report();
    tally::assert_exact(&report, &outcome.keys(""));
    assert!(number(&report, "/trace/size") > 4 << 20, "the log grew after they were closed");
}

#[test]
fn a_cap_keeps_its_promise_and_counts_what_it_costs() {
    let run = |cap: &str| {
        let run = Run::traced("many_events").arguments(&["600000", "2"]);
        let outcome = run.environment("GMMTRACE_MAX_BYTES", cap).finish();
        assert_eq!((outcome.code(), outcome.stderr.as_str()), (0, ""), "{cap}");
        outcome
    };
    for (cap, bytes) in [("1048576", 1 << 20), ("2M", 2 << 20), ("2048K", 2 << 20)] {
        let outcome = run(cap);
        let report = outcome.report();
        assert!(number(&report, "/trace/size") <= bytes, "{cap}: {:#}", report["trace"]);
        assert_accounted_for(&report, &outcome.keys(""));
        assert_bound(&report);
    }
    let outcome = run("1G");
    tally::assert_exact(&outcome.report(), &outcome.keys(""));
}

/// Copies may go, allocations and frees may not.
#[test]
fn near_the_cap_copies_are_given_up_for_allocations() {
    let small = Run::traced("many_events").arguments(&["120000", "1"]).finish();
    let size = number(&small.report(), "/trace/size");
    assert!(size >= 2 << 20, "{size}");
    let run = Run::traced("many_events").arguments(&["120000", "1"]);
    let outcome = run.environment("GMMTRACE_MAX_BYTES", (size - (size >> 4)).to_string()).finish();
    let report = outcome.report();
    assert_accounted_for(&report, &outcome.keys(""));
    if counted(&report, "lost_live_events") > 0 {
        assert!(counted(&report, "lost_copies") > 0, "{:#}", report["coverage"]);
    }
}

/// The remarks of the recorder.
fn remarks(report: &Value) -> Vec<String> {
    let remarks = report["coverage"]["remarks"].as_array().unwrap();
    remarks.iter().map(|remark| remark.as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_switch_that_cannot_be_understood_is_said_once_and_left_at_its_default() {
    let (long, values) = (format!("/{}.gmmt", "x".repeat(3000)), ["lots", "12Q", "", "-1", "1000"]);
    let wrong = values.map(|value| ("GMMTRACE_MAX_BYTES", value));
    let wrong = wrong.into_iter().chain([
        ("GMMTRACE_SAMPLE", "often"),
        ("GMMTRACE_SAMPLE", "1.5"),
        ("GMMTRACE_OUT", long.as_str()),
        ("GMMTRACE", "OFF"),
        ("GMMTRACE", "disabled"),
        ("GMMTRACE_STACKS", "all"),
        ("GMMTRACE_COPY_STACKS", "all"),
        ("GMMTRACE_OUTPUT", "x.gmmt"),
        ("GMMTRACE_SAMPLES", ""),
    ]);
    for (switch, value) in wrong {
        let outcome = Run::traced("three_ways").environment(switch, value).finish();
        assert_eq!((outcome.code(), outcome.stderr.as_str()), (0, ""), "{switch}={value}");
        let report = outcome.report();
        tally::assert_exact(&report, &outcome.keys(""));
        let said = remarks(&report);
        assert_eq!(said.len(), 1, "{switch}={value}: {said:?}");
        let unknown = ["GMMTRACE_OUTPUT", "GMMTRACE_SAMPLES"].contains(&switch);
        let begins = if unknown { "GMMTRACE_ begins the name of" } else { switch };
        assert!(said[0].starts_with(begins), "{switch}={value}: {said:?}");
    }
}

#[test]
fn switches_that_are_understood_need_no_remark() {
    for (switch, value) in [
        ("GMMTRACE_MAX_BYTES", "64M"),
        ("GMMTRACE_SAMPLE", "off"),
        ("GMMTRACE_SAMPLE", "2"),
        ("GMMTRACE_STACKS", "python"),
        ("GMMTRACE_COPY_STACKS", "auto"),
        ("GMMTRACE", "on"),
        ("GMMTRACE_RUN", "7"),
    ] {
        let outcome = Run::traced("three_ways").environment(switch, value).finish();
        let report = outcome.report();
        tally::assert_exact(&report, &outcome.keys(""));
        assert!(remarks(&report).is_empty(), "{switch}={value}: {:?}", remarks(&report));
        if value == "off" {
            assert_eq!(report["sampled"], Value::Array(Vec::new()));
        }
    }
}

#[test]
fn every_word_of_the_logs_name_is_filled_in() {
    let folder = Folder::new();
    let pattern = folder.join("%e.%h.%r.%p.%t.%%.gmmt");
    let run = Run::traced("three_ways").environment("RANK", "3");
    let running = run.environment("GMMTRACE_OUT", pattern).start();
    let pid = running.pid();
    assert_eq!(running.finish().code(), 0);
    let logs = folder.logs();
    let name = logs[0].file_name().unwrap().to_str().unwrap();
    assert!(name.starts_with("three_ways."), "{name}");
    assert!(name.contains(&format!(".3.{pid}.")), "{name}");
    assert!(name.ends_with(".%.gmmt"), "{name}");
    let mode = fs::metadata(&logs[0]).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "nobody else may read it");
}

#[test]
fn a_program_without_cuda_gets_no_file_and_no_thread() {
    let plain = Run::plain("no_cuda").finish();
    let traced = Run::traced("no_cuda").finish();
    assert_eq!((traced.code(), &traced.stdout, &traced.stderr), (0, &plain.stdout, &plain.stderr));
    assert_eq!(traced.key("threads"), 1);
    assert_eq!(traced.folder.entries().len(), 2, "only the output of the program");
}

#[test]
fn ordinary_commands_notice_nothing() {
    let library = products().library.as_path();
    let run = |path: &str, arguments: &[&str]| {
        let run = Run::of(Path::new(path)).arguments(arguments);
        run.preload(&[library]).finish()
    };
    for (path, arguments, stdout) in [
        ("/bin/true", [].as_slice(), ""),
        ("/bin/sh", &["-c", "echo hello | cat"], "hello\n"),
        ("/bin/ls", &["/proc/self/task/.."], "attr\n"),
    ] {
        let outcome = run(path, arguments);
        assert_eq!((outcome.code(), outcome.stderr.as_str()), (0, ""), "{path}");
        assert!(outcome.stdout.starts_with(stdout) || path == "/bin/ls", "{path}");
        assert_eq!(outcome.folder.entries().len(), 2, "{path}: only its output");
    }
    assert_eq!(run("/bin/false", &[]).code(), 1);
}
