//! Whatever way a program finds its functions, it finds what it would have found without us.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]
#![allow(clippy::print_stdout, reason = "what was not run, and figures")]

use std::fs;
use std::path::Path;

use gmmtrace_tests::{Outcome, Run, products, programs, report, tally};

/// Runs a program both ways; output and status must be the same. Returns the traced run.
fn same(name: &str, arguments: &[&str]) -> Outcome {
    let plain = Run::plain(name).arguments(arguments).finish();
    let traced = Run::traced(name).arguments(arguments).finish();
    assert_eq!(plain.code(), 0, "{name} without the library: {}{}", plain.stdout, plain.stderr);
    assert_eq!(
        (traced.status, &traced.stdout, &traced.stderr),
        (plain.status, &plain.stdout, &plain.stderr),
        "{name}"
    );
    traced
}

/// The same, for a program whose tally is in its report.
fn same_and_exact(name: &str, arguments: &[&str]) {
    let outcome = same(name, arguments);
    tally::assert_exact(&outcome.report(), &outcome.keys(""));
}

#[test]
fn the_next_definition_is_found_twice() {
    let outcome = same("dlsym_next_twice", &[]);
    assert_eq!(outcome.logs().len(), 0);
}

#[test]
fn the_default_scope_is_that_of_the_asker() {
    let outcome = same("dlsym_default_local", &[]);
    for (key, found) in [("own", 1), ("program", 0), ("runtime", 1), ("program_runtime", 0)] {
        assert_eq!(outcome.key(key), found, "{key}");
    }
}

#[test]
fn eight_threads_of_lookups_get_the_right_answers() {
    let outcome = same("dlsym_storm", &["40000", "8"]);
    assert_eq!(outcome.key("wrong"), 0);
}

#[test]
fn a_weak_tool_hook_does_not_find_itself() {
    same("weak_ompt", &[]);
}

#[test]
fn a_stub_that_forwards_to_its_own_name_does_not_recurse() {
    same_and_exact("cudnn_stub", &[]);
    same_and_exact("cudnn_stub", &["local"]);
}

/// The library prefers its own dependencies to a preload: only the result is promised.
#[test]
fn a_library_opened_deeply_bound_works() {
    same("cudnn_stub", &["deepbind"]);
}

/// What the other interposer counts is its own affair; that it works is ours, too.
fn beside_another_interposer(order: &[&Path]) {
    let outcome = Run::plain("second_interposer").preload(order).finish();
    assert_eq!((outcome.code(), outcome.stderr.as_str()), (0, ""), "{order:?}");
    tally::assert_exact(&outcome.report(), &outcome.keys(""));
}

#[test]
fn another_interposer_of_dlsym_may_stand_behind_us() {
    let second = programs().join("libsecond_interposer.so");
    beside_another_interposer(&[&products().library, &second]);
}

/// It finds the next `dlsym` by `dlvsym`, as it must.
#[test]
fn another_interposer_of_dlsym_may_stand_before_us() {
    let second = programs().join("libsecond_interposer.so");
    beside_another_interposer(&[&second, &products().library]);
}

/// That the weak reference is not null cannot be hidden: a documented limit. The lookup can.
#[test]
fn a_weak_cuda_malloc_says_that_there_is_no_driver() {
    let outcome = Run::traced("weak_cuda_malloc").finish();
    assert_eq!((outcome.code(), outcome.stderr.as_str()), (0, ""));
    for (key, value) in [("default", 0), ("result", 35), ("pointer_kept", 1)] {
        assert_eq!(outcome.key(key), value, "{key}");
    }
    assert_eq!(outcome.logs().len(), 0);
}

#[test]
fn asking_for_a_private_table_starts_nothing() {
    let outcome = same("export_table", &[]);
    assert_eq!(outcome.logs().len(), 0);
}

#[test]
fn null_out_parameters_are_left_to_the_driver() {
    same_and_exact("null_out_params", &[]);
}

#[test]
fn frees_of_unknown_pointers_are_left_to_the_driver() {
    same_and_exact("free_unknown", &[]);
}

#[test]
fn a_failed_free_keeps_the_block_until_the_retry() {
    same_and_exact("failed_free_retry", &[]);
}

#[test]
fn a_free_under_another_context_is_that_of_the_blocks_device() {
    same_and_exact("other_context_free", &[]);
}

#[test]
fn memory_on_a_host_node_is_no_device_memory() {
    let outcome = same("host_numa_create", &[]);
    let report = outcome.report();
    tally::assert_exact(&report, &outcome.keys(""));
    let bytes = outcome.key("on_host_bytes");
    for (ledger, bytes) in [("vmm_host", bytes), ("vmm_physical", bytes)] {
        assert_eq!(report["ledgers"][ledger]["alloc_bytes"], bytes, "{ledger}");
        assert_eq!(report["ledgers"][ledger]["peak_bytes"], bytes, "{ledger}");
    }
    assert_eq!(report["peak"]["bytes"], bytes, "host memory is not in the sum of the GPU");
}

#[test]
fn a_runtime_without_a_driver_says_so() {
    let outcome = same("no_driver", &[]);
    for log in outcome.logs() {
        let report = report(&log);
        tally::assert_exact(&report, &[("device.allocs".to_owned(), 0)].into());
        assert_eq!(
            report["calls"].as_array().unwrap().iter().filter(|c| c["failed"] == 0).count(),
            0
        );
    }
}

/// The kill switch: same output, no file.
#[test]
fn nothing_is_recorded_when_switched_off() {
    for value in ["off", "0"] {
        let plain = Run::plain("three_ways").finish();
        let off = Run::traced("three_ways").environment("GMMTRACE", value).finish();
        assert_eq!((off.code(), &off.stdout, &off.stderr), (0, &plain.stdout, &plain.stderr));
        let left: Vec<_> = fs::read_dir(&*off.folder).unwrap().flatten().collect();
        assert_eq!(left.len(), 2, "only the output of the program: {left:?}");
    }
}
