//! `gmmtrace diff` as a person runs it: what changed, and what was not alike.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod comparing;
mod support;

use comparing::{MIB, Place, a_log, change, compared, diff, out};
use gmmtrace::diff::{Comparison, Gate, Run, Side};
use gmmtrace::render::diff::{Manner, json as as_json, markdown, text};
use gmmtrace_format::layout::Counter;
use proptest::prelude::*;
use serde_json::{Value, json};

#[test]
fn a_log_against_itself_differs_in_nothing_and_passes_every_gate() {
    let place = Place::new();
    let log = place.log("a.gmmt", 100, 20);
    let gates = ["peak.device>+0%", "live.*>+0%", "copies.count!=+0", "losses>0", "duration<-1%"];
    let gates: Vec<&str> = gates.iter().flat_map(|gate| ["--fail-on", gate]).collect();
    let output = diff(&[&[log.as_str(), "--against", &log], gates.as_slice()].concat());
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let said = out(&output);
    assert!(said.contains("checks passed\n"), "{said}");
    let last = said.lines().last().unwrap();
    assert!(last.starts_with("Nothing differs: all "), "{said}");
    assert!(!said.contains("not made alike"));
    let value = compared(&[&log, "--against", &log]);
    assert_eq!(value["changes"], json!([]));
    assert_eq!(value["same"], value["compared"]);
}

#[test]
fn a_saved_report_and_its_trace_give_the_same_comparison() {
    let place = Place::new();
    let (base, new) = (place.log("a.gmmt", 100, 20), place.log("b.gmmt", 124, 20));
    let saved = place.json("trace-or-not", &a_log(100, 20).json());
    let gates = ["--fail-on", "peak.device>+5%"];
    let mut of_trace = compared(&[&[base.as_str(), "--against", &new], &gates[..]].concat());
    let mut of_saved = compared(&[&[saved.as_str(), "--against", &new], &gates[..]].concat());
    for value in [&mut of_trace, &mut of_saved] {
        value["base"]["runs"][0]["path"] = Value::Null;
    }
    assert_eq!(of_trace, of_saved);
    let itself = compared(&[&saved, "--against", &base]);
    assert_eq!((&itself["changes"], &itself["unlike"]), (&json!([]), &json!([])));
}

#[test]
fn of_several_runs_the_median_counts_and_overlapping_ranges_are_noise() {
    let place = Place::new();
    let runs = |side: &str, sizes: [u64; 3]| {
        sizes.map(|size| place.log(&format!("{side}{size}.gmmt"), size, size / 2))
    };
    let base = runs("a", [100, 110, 104]);
    let noisy = runs("b", [103, 109, 120]);
    let apart = runs("c", [140, 150, 160]);
    let all =
        |new: &[String; 3]| -> Vec<String> { [&base[..], &["--against".to_owned()], new].concat() };
    fn words(arguments: &[String]) -> Vec<&str> {
        arguments.iter().map(String::as_str).collect()
    }

    let value = compared(&words(&all(&noisy)));
    let live = change(&value, "live.device").unwrap();
    assert_eq!(live["base"]["median"], 104 * MIB);
    assert_eq!(live["base"]["min"], 100 * MIB);
    assert_eq!(live["base"]["max"], 110 * MIB);
    assert_eq!((&live["new"]["median"], &live["noise"]), (&json!(109 * MIB), &json!(true)));
    let value = compared(&words(&all(&apart)));
    assert_eq!(change(&value, "live.device").unwrap()["noise"], false);

    let gated = [all(&noisy), ["--fail-on", "live.device>+4%"].map(str::to_owned).to_vec()];
    let output = diff(&words(&gated.concat()));
    assert_eq!(output.status.code(), Some(1), "a gate asks the median");
    let said = out(&output);
    assert!(said.contains("the ranges of the two sides overlap, so"), "{said}");
    assert!(said.contains("Within noise: the ranges of the two sides overlap"), "{said}");
    assert!(said.contains("104.00 MiB [100.00 MiB to 110.00 MiB]"), "{said}");
}

#[test]
fn a_directory_is_one_run_of_several_processes_and_its_added_peaks_are_bounds() {
    let place = Place::new();
    for name in ["base/one.gmmt", "base/two.gmmt", "new/one.gmmt"] {
        place.log(name, 10, 4);
    }
    place.log("new/two.gmmt", 30, 4);
    let [base, new] = ["base", "new"].map(|name| place.path(name).to_str().unwrap().to_owned());
    let arguments = [&base, "--against", &new, "--fail-on", "peak.device>+10%"];
    let value = compared(&arguments);
    let peak = change(&value, "peak.device").unwrap();
    assert_eq!((&peak["base"]["median"], &peak["base"]["bound"]), (&json!(28 * MIB), &json!(true)));
    let live = change(&value, "live.device").unwrap();
    assert_eq!((&live["new"]["median"], &live["new"]["bound"]), (&json!(40 * MIB), &json!(false)));
    assert_eq!(value["base"]["runs"], json!([{ "path": base, "processes": 2 }]));
    let said = out(&diff(&arguments));
    assert!(said.contains("is made of 2 processes: their figures are added, and added peaks are"));
    assert!(said.contains("the figure is a bound on both sides"), "{said}");
    assert!(said.contains("28.00 MiB (bound)"), "{said}");

    let saved = json!([a_log(10, 4).json(), a_log(10, 4).json()]);
    let saved = compared(&[&place.json("saved.json", &saved), "--against", &base]);
    assert_eq!(saved["changes"], json!([]), "an array is such a run as well");
}

#[test]
fn runs_that_were_not_made_alike_are_told_at_the_top() {
    let place = Place::new();
    let base = place.log("a.gmmt", 1, 1);
    let mut lossy = a_log(1, 1);
    lossy.counters.push((Counter::LostLive, 7));
    let mut new = lossy.json();
    new["process"]["driver"] = json!("590.9");
    new["process"]["command_line"] = json!(["program", "--slow\u{1b}[31m"]);
    new["process"]["environment"] = json!(["CUDA_LAUNCH_BLOCKING=1"]);
    let new = place.json("b.json", &new);
    let value = compared(&[&base, "--against", &new]);
    let names: Vec<&str> = value["unlike"]
        .as_array()
        .unwrap()
        .iter()
        .map(|unlike| unlike["what"].as_str().unwrap())
        .collect();
    let expected = [
        "command line",
        "complete",
        "driver",
        "environment CUDA_LAUNCH_BLOCKING",
        "environment CUDA_VISIBLE_DEVICES",
        "losses",
    ];
    assert_eq!(names, expected);
    assert_eq!(change(&value, "losses").unwrap()["new"]["median"], 7);
    let said = out(&diff(&[&base, "--against", &new, "--fail-on", "losses>0"]));
    let top = said.find("The runs were not made alike").unwrap();
    assert!(top < said.find("Gates").unwrap() && top < said.find("Counts").unwrap());
    assert!(said.contains("environment CUDA_LAUNCH_BLOCKING: base not set, new 1\n"), "{said}");
    assert!(!said.contains('\u{1b}'), "nothing in a report reaches the terminal");
    assert!(said.contains("by +7, not there before: lost_live_events"), "{said}");
}

#[test]
fn hostile_names_reach_neither_the_terminal_nor_the_page() {
    const NAME: &str = "/l/<script>|`a`\n@all \u{202e}\u{1b}[31m\".so";
    let place = Place::new();
    let base = a_log(1, 1).json();
    let mut new = a_log(9, 1).json();
    for held in ["live_at_end", "calls"] {
        new[held][0]["site"]["library"] = json!(NAME);
        new[held][0]["api"] = json!(NAME);
    }
    let [base, new] = [place.json("a.json", &base), place.json("b|`.json", &new)];
    let plain = ["--fail-on", "live.gpu>+1%"];
    let arguments = [&[base.as_str(), "--against", &new], &plain[..]].concat();
    let text = out(&diff(&arguments));
    let markdown = out(&diff(&[&arguments[..], &["--format", "markdown"]].concat()));
    for said in [&text, &markdown] {
        assert!(!said.contains(['\u{1b}', '\u{202e}']), "{said}");
        assert!(said.contains("\\u{1b}") || said.contains("u&#123;1b&#125;"), "{said}");
    }
    assert!(!markdown.contains("<script>") && !markdown.contains("@all"), "{markdown}");
    for line in markdown.lines().filter(|line| line.starts_with("| ")) {
        assert_eq!(line.matches('|').count(), 6, "{line}");
    }

    // What is shown is what a gate can name.
    let value = compared(&arguments);
    let figure = value["changes"]
        .as_array()
        .unwrap()
        .iter()
        .find(|change| change["parts"][2] == "library")
        .unwrap();
    assert_eq!(figure["parts"][3], NAME.rsplit('/').next().unwrap());
    let gate = format!("{}>1", figure["figure"].as_str().unwrap());
    let output = diff(&[&base, "--against", &new, "--fail-on", &gate]);
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn sections_that_a_later_version_adds_are_compared_without_new_code() {
    let place = Place::new();
    let with = |kept: u64, longest: u64| {
        let mut report = a_log(1, 1).json();
        report["fragmentation"]["pool"] = json!({ "kept_bytes": kept, "bound": true });
        report["pools"] = json!([
            { "name": "default", "reserved_bytes": kept, "trims": 3, "at_ns": kept,
                "by_age": [{ "from_ns": kept, "to_ns": kept, "bytes": kept }] },
        ]);
        report["stalls"]["alloc"]["p99_ns"] = json!(longest);
        report
    };
    let base = place.json("a.json", &with(1, 10));
    let new = place.json("b.json", &with(2, 20));
    let value = compared(&[&base, "--against", &new, "--fail-on", "stalls.*.p99_ns>+50%"]);
    let expected =
        ["fragmentation.pool.kept_bytes", "pools.default.reserved_bytes", "stalls.alloc.p99_ns"];
    assert_eq!(names(&value), expected);
    assert_eq!(value["changes"][0]["new"]["bound"], true);
    assert_eq!(value["failed"], true);
}

fn names(value: &Value) -> Vec<&str> {
    let changes = value["changes"].as_array().unwrap();
    changes.iter().map(|change| change["figure"].as_str().unwrap()).collect()
}

#[test]
fn what_moves_with_the_clock_is_no_figure() {
    let place = Place::new();
    let base = a_log(3, 2).json();
    let mut new = base.clone();
    new["peak"]["at_ns"] = json!(9);
    new["peak"]["by_age"] = json!([{ "from_ns": 7, "to_ns": 9, "count": 1, "bytes": 3 }]);
    new["sums"]["gpu"]["peak_at_ns"] = json!(9);
    new["fragmentation"]["device"]["worst"]["at_ns"] = json!(9);
    new["fragmentation"]["vmm"]["looked"] = json!(77);
    new["stalls"]["alloc"]["longest"][0]["at_ns"] = json!(9);
    new["timeline"] = json!({ "edges_ns": [1, 2] });
    let [base, new] = [place.json("a.json", &base), place.json("b.json", &new)];
    let value = compared(&[&base, "--against", &new]);
    assert_eq!((&value["changes"], &value["unlike"]), (&json!([]), &json!([])));
}

#[test]
fn figures_of_a_device_are_named_like_those_of_all_and_shown_when_there_are_several() {
    let place = Place::new();
    let on = |gpus: &[(u64, u64)]| {
        let mut report = a_log(1, 1).json();
        let one = report["by_gpu"][0].clone();
        let all: u64 = gpus.iter().map(|(_, mib)| mib * MIB).sum();
        report["sums"]["gpu"]["peak_bytes"] = json!(all);
        report["peak"]["held"][0]["bytes"] = json!(all);
        let rows = gpus.iter().map(|(gpu, mib)| {
            let mut row = one.clone();
            row["gpu"] = json!(gpu);
            row["peak"]["held"][0]["bytes"] = json!(mib * MIB);
            row["fragmentation"]["device"]["waste_bytes"] = json!(mib);
            row
        });
        report["by_gpu"] = rows.collect();
        let sums = gpus.iter().map(|(gpu, mib)| json!({ "gpu": gpu, "peak_bytes": mib * MIB }));
        report["sums"]["gpu"]["by_gpu"] = sums.collect();
        place.json(&format!("{gpus:?}.json"), &report)
    };
    let (small, large) = (on(&[(0, 4)]), on(&[(0, 6)]));
    let arguments = [&small, "--against", &large, "--fail-on", "peak.gpu.*>+10%"];
    let value = compared(&arguments);
    assert_eq!(change(&value, "peak.gpu.0").unwrap()["repeats"], true, "the only device");
    let said = out(&diff(&arguments));
    assert!(!said.lines().any(|line| line.ends_with("  peak.gpu.0")), "{said}");
    assert!(said.contains("FAILED peak.gpu.*>+10%: peak.gpu.0 is 6.00 MiB"), "{said}");
    assert!(said.contains("by +2.00 MiB (+50.0 %): x.so: cuMemAlloc_v2\n"), "{said}");
    assert!(!out(&diff(&[&small, "--list"])).contains("peak.gpu.0"));

    let (two, skewed) = (on(&[(0, 4), (1, 4)]), on(&[(0, 3), (1, 7)]));
    let said = out(&diff(&[&two, "--against", &skewed]));
    for figure in ["peak.gpu.1", "peak.gpu.library.\"x.so\".1", "fragmentation.device.waste.1"] {
        assert!(said.lines().any(|line| line.ends_with(&format!("  {figure}"))), "{said}");
    }
    assert!(out(&diff(&[&two, "--list"])).contains("  peak.gpu.1\n"));
}

#[test]
fn classes_of_sizes_are_shown_when_they_changed_by_a_twentieth_of_the_whole() {
    let place = Place::new();
    let (base, new) = (place.log("a.gmmt", 100, 20), place.log("b.gmmt", 130, 20));
    let value = compared(&[&base, "--against", &new]);
    let class = change(&value, "peak.gpu.size.128MiB").unwrap();
    assert_eq!((&class["group"], &class["base"]), (&json!("sizes"), &Value::Null));
    assert_eq!(class["new"]["median"], 130 * MIB);
    let said = out(&diff(&[&base, "--against", &new]));
    let table = said.find("By size of blocks and copies").unwrap();
    assert!(said[table..].contains("130.00 MiB  peak.gpu.size.128MiB"), "{said}");

    let nearly = place.log("c.gmmt", 101, 20);
    let value = compared(&[&base, "--against", &nearly]);
    assert_eq!(change(&value, "peak.gpu.size.64MiB").unwrap()["change"], MIB);
    let said = out(&diff(&[&base, "--against", &nearly]));
    assert!(!said.contains("By size"), "{said}");
}

#[test]
fn times_of_one_run_a_side_stand_last_and_are_said_to_be_noise() {
    let place = Place::new();
    let mut new = a_log(1, 1).json();
    new["stalls"]["alloc"] = json!({ "count": 2, "total_ns": 5_000_000, "max_ns": 4_000_000,
        "by_length": [{ "from_ns": 500_000, "to_ns": 1_000_000, "count": 3, "total_ns": 1 },
            { "from_ns": 2_000_000, "to_ns": 5_000_000, "count": 1, "total_ns": 4_000_000 }] });
    let [base, new] = [place.log("a.gmmt", 1, 1), place.json("b.json", &new)];
    let value = compared(&[&base, "--against", &new, "--fail-on", "stalls.alloc.over_1ms>0"]);
    assert_eq!(change(&value, "stalls.alloc.total").unwrap()["new"]["median"], 5_000_000);
    assert_eq!(change(&value, "stalls.alloc.over_1ms").unwrap()["new"]["median"], 1);
    let title = "\nTimes, which differ from run to run: one run a side cannot tell a change";
    let said = out(&diff(&[&base, "--against", &new]));
    let times = said.find(title).unwrap();
    assert!(!said[times..].contains("\n\n"), "the last table: {said}");
    let several = out(&diff(&[&base, &base, "--against", &new, &new]));
    assert!(several.contains("\nTimes\n"), "{several}");
}

#[test]
fn reports_of_other_windows_were_not_made_alike() {
    let place = Place::new();
    let mut new = a_log(1, 1).json();
    new["window"]["since_ns"] = json!(1_500);
    let [base, new] = [place.log("a.gmmt", 1, 1), place.json("b.json", &new)];
    let said = out(&diff(&[&base, "--against", &new]));
    assert!(said.contains("  window: base the whole log, new from 1500 ns to the end\n"), "{said}");
}

#[test]
fn the_largest_numbers_are_compared_exactly() {
    let place = Place::new();
    let with = |count: u64| {
        let mut report = a_log(1, 1).json();
        report["null_calls"] = json!(count);
        report
    };
    let base = place.json("a.json", &with(u64::MAX - 1));
    let new = place.json("b.json", &with(u64::MAX));
    let value = compared(&[&base, "--against", &new, "--fail-on", "null_calls>+0"]);
    assert_eq!(change(&value, "null_calls").unwrap()["change"], 1);
    assert_eq!(value["failed"], true);
    let both = place.json("c.json", &json!([with(u64::MAX), with(u64::MAX)]));
    let value = compared(&[&both, "--against", &new, "--fail-on", "null_calls<+0"]);
    assert_eq!(change(&value, "null_calls").unwrap()["percent"], -50.0);
}

#[test]
fn list_shows_what_a_gate_can_name_and_top_and_bytes_shape_the_tables() {
    let place = Place::new();
    let (base, new) = (place.log("a.gmmt", 100, 20), place.log("b.gmmt", 124, 20));
    let listed = out(&diff(&[&base, "--list", "--bytes"]));
    assert!(listed.lines().any(|line| line == "  125,829,120 B  bytes  peak.device"), "{listed}");
    assert!(listed.find("size.16MiB").unwrap() < listed.find("size.64MiB").unwrap(), "{listed}");
    for hidden in ["managed", "vmm", "device.0", "by_age", "timeline", "at_ns", "peak.device.lib"] {
        assert!(!listed.contains(hidden), "{hidden}\n{listed}");
    }
    for gate in ["peak.managed>0", "fragmentation.vmm.worst.free>0", "live.device.0>1GiB"] {
        let output = diff(&[&base, "--against", &new, "--fail-on", gate]);
        assert_eq!(output.status.code(), Some(0), "what is not listed can be gated: {gate}");
    }
    let said = out(&diff(&[&base, "--against", &new, "--top", "1", "--bytes"]));
    let row = "  +25,165,824 B  +20.0 %  125,829,120 B  150,994,944 B  peak.device";
    assert!(said.lines().any(|line| line == row), "{said}");
    assert!(said.contains("  and 3 more; --top shows more"), "{said}");
}

#[test]
fn the_executable_of_the_next_release_is_the_same_caller() {
    let place = Place::new();
    let of = |release: &str, mib: u64| {
        let mut report = a_log(mib, 1).json();
        report["process"]["executable"] = json!(release);
        for held in report["live_at_end"].as_array_mut().unwrap() {
            held["site"]["library"] = json!(release);
        }
        report["process"]["environment"] = json!([format!("GMMTRACE_OUT={release}")]);
        report
    };
    let base = place.json("a.json", &of("/opt/1.0/serve-1.0", 4));
    let new = place.json("b.json", &of("/opt/1.1/serve-1.1", 6));
    let value = compared(&[&base, "--against", &new]);
    let held = change(&value, "live.gpu.library.\"(executable)\"").unwrap();
    assert_eq!(held["change"], 2 * MIB);
    assert_eq!(value["unlike"].as_array().unwrap().len(), 1, "where a log goes says nothing");
}

/// Any JSON, with the keys and the numbers that mean something.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    let key = prop_oneof![
        prop::sample::select(vec![
            "gpu",
            "site",
            "library",
            "held",
            "ledger",
            "bytes",
            "count",
            "sum",
            "adds",
            "by_gpu",
            "live_bytes",
            "peak_bytes",
            "bound",
            "total_ns",
            "losses",
            "name",
            "frames",
            "worst",
            "by_size",
            "from_bytes",
            "by_length",
            "from_ns",
        ])
        .prop_map(str::to_owned),
        any::<String>(),
    ];
    leaf.prop_recursive(4, 32, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map(key.clone(), inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_stands_in_a_report_is_compared_and_with_itself_differs_in_nothing(
        sections in prop::collection::vec((any::<prop::sample::Index>(), any_json()), 1..8)
    ) {
        let plain = a_log(3, 2).json();
        let keys: Vec<&String> =
            plain.as_object().unwrap().keys().filter(|key| *key != "schema").collect();
        let mut report = plain.clone();
        for (index, value) in sections {
            report[index.get(&keys).as_str()] = value;
        }
        let side = |reports: &[&[Value]]| Side {
            runs: reports.iter().map(|run| Run::of("x".to_owned(), run).unwrap()).collect(),
        };
        let both = [report.clone(), plain.clone()];
        let itself = Comparison::of(side(&[&both]), side(&[&both]));
        prop_assert!(itself.changes().is_empty() && itself.unlike.is_empty());
        let other = Comparison::of(side(&[&[plain]]), side(&[&[report], &both]));
        let gates = ["*.*>+5%", "*.*.*<3", "peak.gpu!=+0"].map(|gate| Gate::parse(gate).unwrap());
        let verdicts: Vec<_> =
            gates.iter().filter_map(|gate| gate.judge(&other).ok()).flatten().collect();
        let manner = Manner { exact: false, top: 100 };
        let mut written = Vec::new();
        text::write(&other, &verdicts, manner, &mut written).unwrap();
        markdown::write(&other, &verdicts, manner, &mut written).unwrap();
        let written = String::from_utf8(written).unwrap();
        prop_assert!(!written.chars().any(|letter| letter.is_control() && letter != '\n'));
        let _ = as_json::value(&other, &verdicts, manner);
    }
}
