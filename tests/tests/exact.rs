//! What every test program did is what the report says, field by field, and the program itself
//! notices nothing.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]
#![allow(clippy::print_stdout, reason = "what was not run, and figures")]

use serde_json::{Value, json};

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
    ("every_copy", Exact(&[])),
    ("every_memory", Exact(&[])),
    ("which", Elsewhere), // hooks
    ("stuck_mapping", Exact(&[])),
    ("runtime_arrays", Exact(&[])),
    ("runtime_arrays_12", Exact(&[])),
    ("pool_life", Exact(&[])),
    ("capture_graph", Exact(&[])),
    ("capture_join", Exact(&[])),
    ("capture_many", Elsewhere),
    ("graph_memory", Exact(&[])),
    ("every_object", Elsewhere),
    ("nvml_gap", Elsewhere),
    ("runtime_graph", Exact(&[])),
    ("static_graph", Exact(&[])),
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

#[test]
fn every_copy_and_set_has_a_hook() {
    let outcome = Run::traced("every_copy").finish();
    let report = outcome.report();
    assert_eq!(report["coverage"]["lookups"], json!([]), "passed over");
}

#[test]
fn a_function_found_by_name_and_version_is_counted_like_one_found_by_its_symbol() {
    let outcome = both_ways("every_memory", &["get"], true);
    tally::assert_exact(&outcome.report(), &outcome.keys(""));
}

/// The number at `name` of the row whose keys are `label`, and `name` where rows have names.
fn row(rows: &Value, name: Option<&str>, label: &str, key: &str) -> u64 {
    let fits = |row: &&Value| row["label"] == label && name.is_none_or(|name| row["name"] == name);
    let found = rows.as_array().unwrap().iter().find(fits);
    found.and_then(|row| row[key].as_u64()).unwrap_or_else(|| panic!("{label} {key}: {rows:#}"))
}

#[test]
fn pools_and_residency_are_told_as_the_driver_and_the_program_said() {
    let outcome = Run::traced("every_memory").finish();
    let report = outcome.report();
    for (key, value) in outcome.keys("prefetch.") {
        let (place, field) = key.rsplit_once('.').unwrap();
        assert_eq!(row(&report["managed"]["prefetches"], None, place, field), value, "{key}");
    }
    for (key, value) in outcome.keys("advice.") {
        let [name, place, field] = key.split('.').collect::<Vec<&str>>()[..] else { panic!() };
        assert_eq!(row(&report["managed"]["advice"], Some(name), place, field), value, "{key}");
    }
    assert_eq!(
        (&report["managed"]["failed_prefetches"], &report["managed"]["failed_advice"]),
        (&json!(2), &json!(1))
    );
    let pools = &report["pools"]["pools"];
    let own = "pool 2";
    assert_eq!(row(pools, None, own, "reserved_bytes"), outcome.key("pool.reserved_bytes"));
    assert_eq!(row(pools, None, own, "release_threshold_bytes"), 1 << 20);
    assert_eq!(row(pools, None, own, "allocs"), 2, "as the current one and by its handle");
    assert_eq!(row(pools, None, own, "live_bytes"), 5000, "a destroyed pool has a block");
    assert_eq!((row(pools, None, own, "trims"), row(pools, None, own, "gpu")), (1, 0));
    assert_eq!(row(pools, None, "default", "peak_bytes"), 3000);
    assert_eq!(report["ledgers"]["array"]["estimated"], true);
    assert_eq!(number(&report, "/ledgers/array/unsized_count"), 1, "a deferred mapping");
    assert_eq!(number(&report, "/ledgers/imported/unsized_count"), 1, "a handle never mapped");
    assert_eq!(number(&report, "/ledgers/imported/peak_bytes"), 70_000 + (6 << 20));
}

#[test]
fn what_pools_reserve_is_known_when_the_process_asks() {
    let outcome = Run::traced("pool_life").finish();
    let report = outcome.report();
    let reserved = outcome.keys("reserved.");
    let last = reserved.values().last().copied();
    assert_eq!(report["pools"]["reserved_bytes"].as_u64(), last, "{:#}", report["pools"]);
    let most = reserved.values().max().copied();
    assert_eq!(report["pools"]["reserved_peak_bytes"].as_u64(), most);
    let pool = &report["fragmentation"]["pool"];
    assert_eq!(pool["reserved_bytes"].as_u64(), last);
    assert_eq!(report["fragmentation"]["pool_reason"], Value::Null);
    let silent = Run::traced("three_ways").finish().report();
    assert_eq!(silent["fragmentation"]["pool"], Value::Null);
    assert!(silent["fragmentation"]["pool_reason"].is_string());
}

#[test]
fn mappings_whose_unmap_failed_are_named() {
    let report = Run::traced("stuck_mapping").finish().report();
    let stuck = &report["fragmentation"]["vmm"]["stuck"];
    assert_eq!((&stuck["mappings"], &stuck["mapped_bytes"]), (&json!(3), &json!(6 << 20)));
    assert_eq!(stuck["unreferenced_bytes"], 6 << 20);
    assert_eq!(stuck["largest"][0]["site"]["api"], "cuMemMap");
}

#[test]
fn arrays_and_imports_stand_under_the_runtime_call_that_made_them() {
    for name in ["runtime_arrays", "runtime_arrays_12"] {
        let report = Run::traced(name).finish().report();
        for (call, calls) in [
            ("cudaMallocArray", 2),
            ("cudaMalloc3DArray", 1),
            ("cudaMallocMipmappedArray", 1),
            ("cudaFreeArray", 1),
            ("cudaFreeMipmappedArray", 1),
            ("cudaImportExternalMemory", 1),
            ("cudaExternalMemoryGetMappedBuffer", 1),
            ("cudaDestroyExternalMemory", 1),
            ("cudaMemPrefetchAsync", 1),
            ("cudaMemAdvise", 1),
            ("cudaIpcOpenMemHandle", 2),
            ("cudaIpcCloseMemHandle", 1),
            ("cudaMemcpyBatchAsync", 2),
        ] {
            let rows = report["calls"].as_array().unwrap();
            let found = rows.iter().find(|row| row["api"] == call);
            assert_eq!(found.map(|row| &row["calls"]), Some(&json!(calls)), "{name} {call}");
        }
        assert_eq!(report["failed_copies"], 1, "{name}: a failed batch is one call");
        let rows = &report["managed"]["prefetches"];
        assert_eq!(row(rows, None, "gpu 0", "bytes"), 700, "{name}");
        let rows = &report["managed"]["advice"];
        assert_eq!(row(rows, Some("set_accessed_by"), "gpu 0", "bytes"), 800, "{name}");
        let held = report["live_at_end"].as_array().unwrap();
        let deep = held.iter().find(|held| held["ledger"] == "array").unwrap();
        assert_eq!(deep["site"]["call"], "cudaMalloc3DArray");
    }
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

/// The report's number at `path` is what the program printed as `key`.
fn assert_printed(outcome: &Outcome, report: &serde_json::Value, pairs: &[(&str, &str)]) {
    for (path, key) in pairs {
        assert_eq!(number(report, path), outcome.key(key), "{path}: {:#}", report["graphs"]);
    }
}

#[test]
fn what_is_captured_is_counted_apart_and_taken_at_the_launch() {
    let outcome = both_ways("capture_graph", &[], true);
    let report = outcome.report();
    assert_printed(
        &outcome,
        &report,
        &[
            ("/graphs/alloc_nodes", "alloc_nodes"),
            ("/graphs/free_nodes", "free_nodes"),
            ("/graphs/launches", "launches"),
            ("/graphs/captured/sets/count", "captured_sets"),
            ("/graphs/captured/copies/count", "captured_copies"),
        ],
    );
    assert_eq!(number(&report, "/graphs/captured/copies/bytes"), 300);
    assert_eq!(number(&report, "/ledgers/async_pool/live_bytes"), 777);
    assert_eq!(report["live"]["bound"], false);
}

#[test]
fn a_capture_is_followed_from_stream_to_stream() {
    let outcome = both_ways("capture_join", &[], true);
    let report = outcome.report();
    assert_printed(
        &outcome,
        &report,
        &[
            ("/graphs/captured/sets/count", "captured_sets"),
            ("/graphs/captured/sets/bytes", "captured_set_bytes"),
        ],
    );
    assert_eq!(report["coverage"]["notes"]["during_capture"], serde_json::Value::Null);
}

#[test]
fn captures_that_cannot_be_followed_are_said_and_make_bounds() {
    let outcome = both_ways("capture_many", &[], true);
    let report = outcome.report();
    assert_printed(
        &outcome,
        &report,
        &[
            ("/graphs/captured/sets/count", "followed"),
            ("/coverage/notes/during_capture", "beyond"),
        ],
    );
    assert_eq!(number(&report, "/sets/count"), outcome.key("beyond") + 1);
    assert_eq!(report["live"]["bound"], true);
}

#[test]
fn graphs_made_by_hand_take_memory_at_their_launches() {
    let outcome = both_ways("graph_memory", &[], true);
    let report = outcome.report();
    assert_printed(
        &outcome,
        &report,
        &[
            ("/graphs/alloc_nodes", "alloc_nodes"),
            ("/graphs/free_nodes", "free_nodes"),
            ("/graphs/launches", "launches"),
            ("/graphs/failed_launches", "failed_launches"),
            ("/graphs/trims", "trims"),
            ("/graphs/told/0/reserved_bytes", "told_reserved"),
        ],
    );
    assert_eq!(number(&report, "/graphs/executable_bytes"), 0);
}

/// Every row of these, by `dlsym` and by `cuGetProcAddress` at its version, with its own arguments.
#[test]
fn every_entry_point_for_graphs_and_objects_is_counted_once() {
    for way in ["dlsym", "versions"] {
        let outcome = both_ways("every_object", &[way], true);
        let report = outcome.report();
        for (key, value) in outcome.keys("").iter().filter(|(key, _)| key.contains('/')) {
            assert_eq!(number(&report, &format!("/{key}")), *value, "{way}: {key}");
        }
        for field in ["allocs", "frees", "peak_bytes"] {
            let path = format!("/ledgers/graph/{field}");
            assert_eq!(number(&report, &path), outcome.key(&format!("graph.{field}")), "{way}");
        }
        let limits = &report["handles"]["limits"];
        assert_eq!(limits[0]["name"], "malloc_heap_size", "{limits}");
        assert_eq!(limits[0]["value"], 9 << 20);
        let passed = report["coverage"]["lookups"].as_array().unwrap();
        assert!(passed.is_empty(), "{passed:#?}");
        tally::assert_whole(&report);
    }
}

#[test]
fn what_is_left_is_named_by_the_calls_of_the_runtime() {
    let report = Run::traced("runtime_graph").finish().report();
    let left = report["handles"]["live_at_end"].as_array().unwrap().iter();
    let names: Vec<(&str, &str, u64)> = left
        .map(|made| {
            let call = made["site"]["call"].as_str().unwrap_or("-");
            (made["class"].as_str().unwrap(), call, made["count"].as_u64().unwrap())
        })
        .collect();
    for expected in [
        ("streams", "cudaStreamCreate", 1),
        ("events", "cudaEventCreate", 1),
        ("graph_execs", "cudaGraphInstantiate", 1),
    ] {
        assert!(names.contains(&expected), "{expected:?} in {names:?}");
    }
    assert_eq!(names.len(), 3, "{names:?}");
    assert_eq!(number(&report, "/graphs/captured/sets/bytes"), 3000);
    let calls = report["calls"].as_array().unwrap();
    let launches = calls.iter().find(|call| call["api"] == "cudaGraphLaunch").unwrap();
    assert_eq!(launches["calls"], 4);
}

/// Early readings come soon after something heavy was made, so one of them lies in each pause.
#[test]
fn what_nvml_shows_for_the_process_is_explained() {
    let run = Run::traced("nvml_gap").arguments(&["1500"]).environment("GMMTRACE_SAMPLE", "9");
    let outcome = run.finish();
    let report = outcome.report();
    tally::assert_exact(&report, &outcome.keys(""));
    let gap = &report["gap"]["max"];
    let of = |classes: &[&str]| {
        let rows = gap["objects"].as_array().unwrap().iter();
        rows.filter(|row| row["of"] == serde_json::json!(classes))
            .map(|row| row["bytes"].as_u64().unwrap())
            .sum::<u64>()
    };
    assert_eq!(of(&["contexts"]), outcome.key("context_bytes"), "{gap:#}");
    assert_eq!(of(&["libraries"]), outcome.key("libraries_bytes"), "{gap:#}");
    assert_eq!(of(&["kernels"]), outcome.key("kernels_bytes"), "{gap:#}");
    assert_eq!(of(&["modules"]), outcome.key("modules_bytes"), "{gap:#}");
    assert_eq!(gap["device_blocks_bytes"], outcome.key("blocks_bytes"));
    assert_eq!(gap["unexplained_bytes"], 0);
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
