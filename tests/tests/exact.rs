//! What every test program did is what the report says, field by field, and the program itself
//! notices nothing.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]
#![allow(clippy::print_stdout, reason = "what was not run, and figures")]

use gmmtrace_tests::{Outcome, Run, known_programs, number, products, tally};

/// How a program is held against its report.
enum Check {
    /// The tally that it prints is in the report of its only log; output as without the library.
    Exact(&'static [&'static str]),
    /// The same, but what it prints depends on the schedule.
    Scheduled(&'static [&'static str]),
    /// It ends as without the library, and takes no memory.
    Idle(&'static [&'static str]),
    /// It has tests of its own, in this file or the one named.
    Elsewhere,
}

use Check::{Elsewhere, Exact, Idle, Scheduled};

/// Every program of `build.list`.
const PROGRAMS: &[(&str, Check)] = &[
    ("three_ways", Exact(&[])),
    ("static_runtime", Exact(&[])),
    ("shared_runtime", Elsewhere),
    ("two_runtimes", Exact(&[])),
    ("kill_counter", Elsewhere),   // kill
    ("fork_both", Elsewhere),      // lifecycle
    ("fork_raw_clone", Elsewhere), // lifecycle
    ("vfork_exec", Elsewhere),     // lifecycle
    ("exec_storm", Scheduled(&["20"])),
    ("re_exec", Elsewhere), // lifecycle
    ("short_threads", Exact(&["1000"])),
    ("sixteen_threads", Exact(&[])),
    ("reuse_across_threads", Exact(&["200000"])),
    ("hung_call", Elsewhere), // lifecycle
    ("closed_descriptors", Exact(&[])),
    ("exit_in_constructor", Exact(&[])),
    ("underscore_exit", Exact(&[])),
    ("errno_kept", Elsewhere), // lifecycle
    ("dlsym_next_twice", Idle(&[])),
    ("dlsym_default_local", Idle(&[])),
    ("weak_ompt", Idle(&[])),
    ("dlsym_storm", Idle(&["2000"])),
    ("cudnn_stub", Exact(&[])),
    ("weak_cuda_malloc", Elsewhere), // lookup
    ("null_out_params", Exact(&[])),
    ("free_unknown", Exact(&[])),
    ("failed_free_retry", Exact(&[])),
    ("other_context_free", Exact(&[])),
    ("host_numa_create", Exact(&[])),
    ("second_interposer", Exact(&[])),
    ("no_cuda", Idle(&[])),
    ("no_driver", Idle(&[])),
    ("signal_storm", Scheduled(&[])),
    ("every_copy", Elsewhere),
    ("pool_life", Exact(&[])),
    ("capture_graph", Elsewhere),
    ("primary_reset", Elsewhere),
    ("ipc_pair", Elsewhere),
    ("export_table", Idle(&[])),
    ("marks", Exact(&[])),
    ("many_events", Exact(&["300000"])),
    ("hook_cost", Elsewhere), // a benchmark
    ("torch_blocks", Exact(&[])),
    ("torch_cost", Elsewhere), // a benchmark
];

/// Runs a program with and without the library; the result must be the same.
fn both_ways(name: &str, arguments: &[&str], same_output: bool) -> Outcome {
    let plain = Run::plain(name).arguments(arguments).finish();
    let traced = Run::traced(name).arguments(arguments).finish();
    assert_eq!(traced.status, plain.status, "{name}: {}", traced.stderr);
    assert_eq!(traced.stderr, plain.stderr, "{name}");
    if same_output {
        assert_eq!(traced.stdout, plain.stdout, "{name}");
    }
    traced
}

fn check(name: &str, check: &Check) {
    match *check {
        Exact(arguments) => {
            let outcome = both_ways(name, arguments, true);
            tally::assert_exact(&outcome.report(), &outcome.keys(""));
        }
        Scheduled(arguments) => {
            let outcome = both_ways(name, arguments, false);
            tally::assert_exact(&outcome.report(), &outcome.keys(""));
        }
        Idle(arguments) => {
            let outcome = both_ways(name, arguments, true);
            for log in outcome.logs() {
                tally::assert_exact(
                    &gmmtrace_tests::report(&log),
                    &[("device.allocs".into(), 0)].into(),
                );
            }
        }
        Elsewhere => {}
    }
}

#[test]
fn every_program_of_the_list_has_its_check() {
    let listed: Vec<String> = known_programs().into_iter().map(|recipe| recipe.name).collect();
    let checked: Vec<&str> = PROGRAMS.iter().map(|(name, _)| *name).collect();
    assert_eq!(listed, checked);
}

#[test]
fn what_a_program_did_is_what_the_report_says() {
    let mut wrong = Vec::new();
    for (name, how) in PROGRAMS {
        if std::panic::catch_unwind(|| check(name, how)).is_err() {
            wrong.push(*name);
        }
    }
    assert!(wrong.is_empty(), "wrong: {wrong:?}");
}

#[test]
fn blocks_of_pytorch_are_what_its_own_totals_say() {
    let outcome = both_ways("torch_blocks", &["50"], true);
    // Once each, from the allocator itself, and what the reporter threw arrived there.
    let told = ["told.by_caller", "told.thrown", "told.other", "told.odd"].map(|k| outcome.key(k));
    assert_eq!(told, [1, 1, 6, 0]);
    let report = outcome.report();
    let ledger = &report["ledgers"]["torch"];
    let both = ledger["allocs"].as_u64().unwrap() + ledger["frees"].as_u64().unwrap();
    // libc10 was told all but the block that is given back at the end; the requests apart.
    assert_eq!(both, outcome.key("told.cuda") + 1 - 1);
    assert_eq!(ledger["failed"], 1);
    let oom = &report["oom"][0];
    assert_eq!(oom["requested_bytes"], 1_u64 << 60);
    let library = oom["site"]["library"].as_str().unwrap();
    assert!(library.ends_with("/libc10_cuda.so"), "{library}");
    assert_eq!(oom["site"]["api"], "c10::reportOutOfMemoryToProfiler");
    for (gpu, device) in report["torch"]["devices"].as_array().unwrap().iter().enumerate() {
        let reserved = outcome.key(&format!("reserved.{gpu}"));
        let found = ["gpu", "mismatches", "allocated_bytes", "reserved_bytes"];
        assert_eq!(found.map(|key| device[key].as_u64()), [gpu as u64, 0, 0, reserved].map(Some));
    }
    // The block in the words of PyTorch 1.13 lies nowhere.
    assert_eq!(report["torch"]["outside"]["count"], 1);
    let release = &report["torch"]["release_list"][0];
    assert_eq!((&release["bytes"], &release["segments"]), (&(4 << 20).into(), &1.into()));
}

#[test]
fn a_process_that_reports_about_other_devices_leaves_no_log() {
    let outcome = both_ways("torch_blocks", &["cpu"], true);
    assert!(outcome.logs().is_empty());
}

#[test]
fn a_call_that_the_runtime_answers_by_itself_is_a_null_call() {
    let outcome = both_ways("shared_runtime", &[], true);
    let mut printed = outcome.keys("");
    // `cudaMalloc(&p, 0)`, which the program does not count: in `static_runtime` nothing sees it.
    *printed.get_mut("device.null_frees").unwrap() += 1;
    tally::assert_exact(&outcome.report(), &printed);
}

/// Copies and sets without a hook: those of CUDA 2.0, with 32-bit sizes and pointers, and batches.
const UNHOOKED: &[&str] = &[
    "cuMemAlloc",
    "cuMemFree",
    "cuMemcpy2D",
    "cuMemcpy2DAsync",
    "cuMemcpy2DUnaligned",
    "cuMemcpy3D",
    "cuMemcpy3DAsync",
    "cuMemcpy3DBatchAsync",
    "cuMemcpy3DBatchAsync_ptsz",
    "cuMemcpy3DBatchAsync_v2",
    "cuMemcpy3DBatchAsync_v2_ptsz",
    "cuMemcpyAtoA",
    "cuMemcpyAtoD",
    "cuMemcpyAtoH",
    "cuMemcpyAtoHAsync",
    "cuMemcpyBatchAsync",
    "cuMemcpyBatchAsync_ptsz",
    "cuMemcpyBatchAsync_v2",
    "cuMemcpyBatchAsync_v2_ptsz",
    "cuMemcpyDtoA",
    "cuMemcpyDtoD",
    "cuMemcpyDtoDAsync",
    "cuMemcpyDtoH",
    "cuMemcpyDtoHAsync",
    "cuMemcpyHtoA",
    "cuMemcpyHtoAAsync",
    "cuMemcpyHtoD",
    "cuMemcpyHtoDAsync",
    "cuMemsetD16",
    "cuMemsetD2D16",
    "cuMemsetD2D32",
    "cuMemsetD2D8",
    "cuMemsetD32",
    "cuMemsetD8",
];

#[test]
fn every_copy_and_set_is_counted_or_named_as_passed_over() {
    let outcome = both_ways("every_copy", &[], true);
    let report = outcome.report();
    let lookups = report["coverage"]["lookups"].as_array().unwrap();
    let mut passed: Vec<&str> = lookups.iter().map(|row| row["name"].as_str().unwrap()).collect();
    passed.sort_unstable();
    assert_eq!(passed, UNHOOKED);

    let outcome = both_ways("every_copy", UNHOOKED, true);
    tally::assert_exact(&outcome.report(), &outcome.keys(""));
}

#[test]
fn each_of_two_runtimes_is_reached_and_named() {
    let outcome = Run::traced("two_runtimes").finish();
    assert_eq!(outcome.code(), 0, "{}", outcome.stderr);
    assert_eq!((outcome.key("runtime_12.served"), outcome.key("runtime_13.served")), (10, 10));
    let report = outcome.report();
    let held = report["live_at_end"].as_array().unwrap();
    let of = |plugin: &str| {
        let mine = held.iter().filter(|held| {
            let library = held["site"]["library"].as_str().unwrap_or("");
            held["ledger"] == "device" && library.ends_with(plugin)
        });
        mine.map(|held| held["bytes"].as_u64().unwrap()).sum::<u64>()
    };
    assert_eq!(of("libplugin12.so"), 1000, "{held:#?}");
    assert_eq!(of("libplugin13.so"), 2000, "{held:#?}");
}

#[test]
fn what_a_context_owned_is_gone_with_it() {
    let outcome = both_ways("primary_reset", &[], true);
    let (report, printed) = (outcome.report(), outcome.keys(""));
    tally::assert_whole(&report);
    let sum = |field: &str| {
        let ledgers = report["ledgers"].as_object().unwrap().values();
        ledgers
            .filter(|ledger| !ledger.is_null())
            .map(|ledger| ledger[field].as_u64().unwrap())
            .sum::<u64>()
    };
    assert_eq!(sum("implicit_frees"), printed["implicit_frees"]);
    assert_eq!(sum("implicit_bytes"), printed["implicit_bytes"]);
    for ledger in ["device", "async_pool"] {
        let live = number(&report, &format!("/ledgers/{ledger}/live_bytes"));
        assert_eq!(live, printed[&format!("left.{ledger}.live_bytes")], "{ledger}");
    }
    for key in ["device.allocs", "device.frees", "device.alloc_bytes", "managed.allocs"] {
        let path = format!("/ledgers/{}", key.replace('.', "/"));
        assert_eq!(number(&report, &path), printed[key], "{key}");
    }
    assert_eq!(number(&report, "/ledgers/pinned/allocs"), printed["pinned.allocs"]);
    assert_eq!(number(&report, "/ledgers/device/failed"), printed["device.failed_frees"]);
}

#[test]
fn memory_from_another_process_is_not_counted_twice() {
    let outcome = Run::traced("ipc_pair").finish();
    assert_eq!(outcome.code(), 0, "{}", outcome.stderr);
    for prefix in ["parent.", "child."] {
        tally::assert_exact(&outcome.report_of(prefix), &outcome.keys(prefix));
    }
    assert_eq!(outcome.logs().len(), 2);
}

#[test]
fn a_program_that_captures_a_graph_notices_nothing() {
    let outcome = both_ways("capture_graph", &[], true);
    let report = outcome.report();
    assert_eq!(report["coverage"]["losses"].as_object().unwrap().len(), 0);
    assert_eq!(number(&report, "/ledgers/async_pool/live_bytes"), 777);
}

/// Graphs have no ledger: what is captured into one is booked as if it had run. That is said, and
/// the figures are bounds.
#[test]
fn what_may_be_captured_into_a_graph_is_counted_as_doubtful() {
    let outcome = Run::traced("capture_graph").finish();
    let report = outcome.report();
    assert_eq!(report["live"]["bound"], true);
    assert!(number(&report, "/coverage/notes/during_capture") >= 3, "{:#}", report["coverage"]);
}

#[test]
fn blocks_are_counted_on_their_own_device() {
    let outcome = Run::traced("other_context_free").finish();
    let (report, printed) = (outcome.report(), outcome.keys(""));
    let by_gpu = report["ledgers"]["device"]["by_gpu"].as_array().unwrap();
    for (gpu, key, field) in ["allocs", "alloc_bytes", "live_bytes"]
        .iter()
        .flat_map(|f| [(0, f), (1, f)])
        .map(|(gpu, field)| (gpu, format!("device_{gpu}.{field}"), *field))
    {
        let row = by_gpu.iter().find(|row| row["gpu"] == gpu).unwrap();
        assert_eq!(row[field].as_u64(), printed.get(&key).copied(), "{key}");
    }
}

#[test]
fn phases_have_the_names_that_the_program_gives_them() {
    let run = Run::traced("marks");
    let outcome = run.environment("NVTX_INJECTION64_PATH", &products().library).finish();
    let report = outcome.report();
    tally::assert_exact(&report, &outcome.keys(""));
    let texts: Vec<&str> = report["marks"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|mark| mark["text"].as_str())
        .collect();
    assert_eq!(texts, ["plain", "registered", "by name"]);
    let mut ranges: Vec<(&str, u64, u64)> = Vec::new();
    for range in report["ranges"].as_array().unwrap() {
        let number = |key: &str| range[key].as_u64().unwrap();
        ranges.push((range["name"].as_str().unwrap(), number("count"), number("open")));
    }
    ranges.sort_unstable();
    assert_eq!(ranges, [("across", 1, 0), ("inner", 2, 0), ("outer", 1, 0)]);
}
