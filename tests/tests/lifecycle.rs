//! Processes begin, split, turn into others, have threads and end in every way; each has its own
//! right log, and nothing is lost.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]
#![allow(clippy::print_stdout, reason = "what was not run, and figures")]

use std::time::Duration;

use gmmtrace_tests::{Outcome, Run, number, report, tally};

/// Runs a program whose processes each print a tally under a prefix.
fn processes(name: &str, prefixes: &[&str]) -> Outcome {
    let outcome = Run::traced(name).finish();
    assert_eq!((outcome.code(), outcome.stderr.as_str()), (0, ""), "{name}");
    for prefix in prefixes {
        tally::assert_exact(&outcome.report_of(prefix), &outcome.keys(prefix));
    }
    assert_eq!(outcome.logs().len(), prefixes.len(), "{:?}", outcome.logs());
    outcome
}

/// Runs a program of one process, whose tally must be in its report.
fn exact(name: &str, arguments: &[&str], code: i32) -> Outcome {
    let outcome = Run::traced(name).arguments(arguments).finish();
    assert_eq!((outcome.code(), outcome.stderr.as_str()), (code, ""), "{name}");
    tally::assert_exact(&outcome.report(), &outcome.keys(""));
    outcome
}

#[test]
fn parent_and_forked_child_each_have_their_own_log() {
    let outcome = processes("fork_both", &["parent.", "child."]);
    let (parent, child) = (outcome.report_of("parent."), outcome.report_of("child."));
    assert_eq!(child["process"]["parent_pid"], parent["process"]["pid"]);
    assert_eq!(child["process"]["generation"], 1);
    assert_eq!(parent["process"]["generation"], 0);
}

#[test]
fn a_child_of_a_raw_clone_has_its_own_log() {
    let outcome = processes("fork_raw_clone", &["parent.", "child."]);
    assert_eq!(outcome.report_of("child.")["trace"]["state"], "gone");
    assert_eq!(outcome.report_of("parent.")["trace"]["state"], "exited");
}

#[test]
fn a_child_of_vfork_and_exec_has_its_own_log() {
    let outcome = processes("vfork_exec", &["parent.", "child."]);
    // It is no fork of the traced process, but a process of its own.
    assert_eq!(outcome.report_of("child.")["process"]["generation"], 0);
}

/// The stack of the thread that calls first may be small.
#[test]
fn a_session_begins_on_a_small_stack() {
    for stacks in ["off", "full"] {
        let outcome = Run::traced("small_stack").environment("GMMTRACE_STACKS", stacks).finish();
        assert_eq!(outcome.code(), 0, "{}", outcome.stderr);
        assert_eq!(outcome.report()["ledgers"]["device"]["peak_bytes"], outcome.key("allocated"));
    }
}

#[test]
fn programs_started_in_a_storm_leave_no_log() {
    let outcome = exact("exec_storm", &["200"], 0);
    assert_eq!(outcome.key("children"), 200);
}

#[test]
fn a_process_that_replaces_itself_gets_a_second_log() {
    let outcome = Run::traced("re_exec").finish();
    assert_eq!(outcome.code(), 0, "{}", outcome.stderr);
    let pid = outcome.key("first.pid");
    assert_eq!(outcome.key("second.pid"), pid);
    let log = |end: &str| outcome.folder.join(format!("{pid}.gmmt{end}"));
    assert_eq!(outcome.logs(), [log(""), log(".1")]);
    tally::assert_exact(&report(&log("")), &outcome.keys("first."));
    tally::assert_exact(&report(&log(".1")), &outcome.keys("second."));
}

#[test]
fn exit_in_a_constructor_ends_the_process_and_the_log_is_whole() {
    let outcome = exact("exit_in_constructor", &[], 7);
    assert_eq!(outcome.report()["trace"]["state"], "exited");
}

#[test]
fn underscore_exit_loses_nothing() {
    let outcome = exact("underscore_exit", &[], 5);
    assert_eq!(outcome.report()["trace"]["state"], "gone");
}

#[test]
fn ten_thousand_short_threads_lose_nothing() {
    let outcome = exact("short_threads", &["10000"], 0);
    assert_eq!(outcome.key("device.allocs"), 10_000);
}

#[test]
fn sixteen_threads_lose_nothing() {
    let outcome = exact("sixteen_threads", &["20000", "16"], 0);
    assert_eq!(outcome.report()["process"]["threads"], 16 + 1, "and the one that starts them");
}

/// A stamp that the processor takes too early shows here, in about every fifth short run.
#[test]
fn addresses_that_threads_hand_to_each_other_are_never_odd() {
    for _ in 0..20 {
        exact("reuse_across_threads", &["200000"], 0);
    }
    exact("reuse_across_threads", &["4000000", "2"], 0);
    exact("reuse_across_threads", &["4000000", "16"], 0);
}

#[test]
fn errno_and_sticky_errors_are_those_of_the_program() {
    let plain = Run::plain("errno_kept").finish();
    let traced = Run::traced("errno_kept").finish();
    assert_eq!(plain.code(), 0, "{}", plain.stderr);
    assert_eq!((traced.code(), &traced.stdout), (0, &plain.stdout));
    tally::assert_whole(&traced.report());
}

#[test]
fn a_storm_of_signals_changes_nothing() {
    let outcome = exact("signal_storm", &["30000"], 0);
    assert!(outcome.key("signals") > 0);
    assert_eq!(outcome.key("errno_changed"), 0);
}

#[test]
fn a_call_that_never_returns_is_named() {
    let mut running = Run::traced("hung_call").start();
    running.wait_for("calling 3000");
    // It has said so just before the call.
    std::thread::sleep(Duration::from_millis(100));
    let alive = report(&running.folder().join(format!("{}.gmmt", running.pid())));
    assert_eq!(alive["trace"]["state"], "running");
    let outcome = running.kill();
    let dead = outcome.report();
    assert_eq!(dead["trace"]["state"], "gone");
    for report in [alive, dead] {
        tally::assert_exact(&report, &outcome.keys(""));
        let calls = report["in_flight"].as_array().unwrap();
        assert_eq!(calls.len(), 1, "{calls:#?}");
        assert_eq!(calls[0]["api"], "cuMemAlloc_v2");
        assert_eq!(calls[0]["argument"], format!("{:#x}", 3000));
        assert!(number(&calls[0], "/since_ns") > 0);
    }
}

/// Nothing has been said about an entry point before its first call.
#[test]
fn a_first_call_that_never_returns_is_named() {
    let hang = Run::traced("hung_call").environment("FAKE_CUDA_HANG", "cuMemAlloc_v2:1");
    let running = hang.start();
    std::thread::sleep(Duration::from_secs(1));
    let report = running.kill().report();
    let calls = report["in_flight"].as_array().unwrap();
    assert_eq!(calls.len(), 1, "{calls:#?}");
    assert_eq!(calls[0]["argument"], format!("{:#x}", 1000));
    assert_eq!(calls[0]["api"], "cuMemAlloc_v2");
}
