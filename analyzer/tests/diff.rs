//! `gmmtrace diff` as a person runs it: what changed, which gate fails, and what is refused.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use gmmtrace_format::Kind;
use gmmtrace_format::layout::Counter;
use serde_json::{Value, json};
use support::{RUNTIME_SITE, Writer, event};

const MIB: u64 = 1 << 20;

/// A folder with logs and reports in it.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A log of a process that holds so many MiB by two calls, and frees one of them.
    fn log(&self, name: &str, weights: u64, scratch: u64) -> String {
        self.write(name, &a_log(weights, scratch).bytes())
    }

    fn json(&self, name: &str, value: &Value) -> String {
        self.write(name, &serde_json::to_vec(value).unwrap())
    }

    fn write(&self, name: &str, bytes: &[u8]) -> String {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), bytes).unwrap();
        self.path(name).to_str().unwrap().to_owned()
    }
}

fn a_log(weights: u64, scratch: u64) -> Writer {
    Writer::of(vec![
        event(Kind::DeviceAlloc, 1_000, &[0x1000_0000, weights * MIB]).site(RUNTIME_SITE),
        event(Kind::DeviceAlloc, 2_000, &[0x9000_0000, scratch * MIB]),
        event(Kind::Free, 3_000, &[0x9000_0000]),
    ])
}

fn diff(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gmmtrace"));
    command.arg("diff").args(arguments).output().unwrap()
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn refused(arguments: &[&str]) -> String {
    let output = diff(arguments);
    assert_eq!(output.status.code(), Some(2), "{}", out(&output));
    assert_eq!(out(&output), "");
    String::from_utf8(output.stderr).unwrap()
}

/// The comparison as JSON, held against its schema.
fn compared(arguments: &[&str]) -> Value {
    let output = diff(&[arguments, &["--json"]].concat());
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/diff.schema.json");
    let mut schemas = boon::Schemas::new();
    let mut compiler = boon::Compiler::new();
    let schema = compiler.compile(path.to_str().unwrap(), &mut schemas).unwrap();
    let found = schemas.validate(&value, schema).map_err(|error| format!("{error:#}"));
    assert_eq!(found, Ok(()));
    assert_eq!(output.status.code(), Some(i32::from(value["failed"].as_bool().unwrap())));
    value
}

fn change<'a>(compared: &'a Value, figure: &str) -> Option<&'a Value> {
    compared["changes"].as_array().unwrap().iter().find(|change| change["figure"] == figure)
}

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
fn a_fifth_more_fails_the_gate_and_is_named_with_who_holds_it() {
    let place = Place::new();
    let (base, new) = (place.log("a.gmmt", 100, 20), place.log("b.gmmt", 124, 20));
    let arguments = [&base, "--against", &new, "--fail-on", "peak.device>+5%"];
    let output = diff(&arguments);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(output.stderr, b"");
    let said = out(&output);
    for line in [
        "Gates: 1 of 1 checks failed",
        "  FAILED peak.device>+5%: peak.device is 144.00 MiB, where at most 126.00 MiB is allowed \
         (5 % above the base); the base is 120.00 MiB, the change +24.00 MiB (+20.0 %)",
        "         by +24.00 MiB (+24.0 %): x.so: cudaMalloc > cuMemAlloc_v2",
        "  +24.00 MiB  +20.0 %  120.00 MiB  144.00 MiB  peak.device",
        "  +24.00 MiB  +24.0 %  100.00 MiB  124.00 MiB  live.device",
    ] {
        assert!(said.lines().any(|said| said == line), "{line}\n{said}");
    }
    let value = compared(&arguments);
    let gate = &value["gates"][0];
    assert_eq!(gate["new"]["median"], 144 * MIB);
    assert_eq!(gate["limit"], 126 * MIB);
    assert_eq!(gate["by"][0]["change"], 24 * MIB);
    assert_eq!(gate["by"].as_array().unwrap().len(), 1, "what did not grow is not named");
    let held = "live.gpu.site.device.\"x.so: cudaMalloc > cuMemAlloc_v2\"";
    assert_eq!(change(&value, held).unwrap()["change"], 24 * MIB);
}

#[test]
fn limits_are_relative_or_absolute_and_every_operator_decides() {
    let place = Place::new();
    let (base, new) = (place.log("a.gmmt", 100, 20), place.log("b.gmmt", 110, 20));
    for (gate, fails) in [
        ("live.device>+10%", false),
        ("live.device>=+10%", true),
        ("live.device>+9.999999%", true),
        ("live.device>+10MiB", false),
        ("live.device>+10000KiB", true),
        ("live.device>109MiB", true),
        ("live.device>8GiB", false),
        ("live.device<=110MiB", true),
        ("live.device<+0", false),
        ("live.device!=110MiB", false),
        ("allocs.device!=2", false),
        ("allocs.device>+0", false),
        ("duration<1ms", false),
        ("duration>900us", true),
        ("live.*>+5%", true),
        ("live.gpu.library.\"x.so\">+5%", true),
        ("live.gpu.library.x.so>+5%", true),
        ("unknown_frees>0", false),
    ] {
        let output = diff(&[&base, "--against", &new, "--fail-on", gate]);
        assert_eq!(output.status.code(), Some(i32::from(fails)), "{gate}\n{}", out(&output));
    }
}

#[test]
fn growth_from_nothing_fails_a_percentage_and_is_said_in_words() {
    let place = Place::new();
    let (base, new) = (place.log("a.gmmt", 0, 20), place.log("b.gmmt", 1, 20));
    let output = diff(&[&base, "--against", &new, "--fail-on", "live.device>+500%"]);
    assert_eq!(output.status.code(), Some(1));
    let said = out(&output);
    let words = "it went from 0 to 1.00 MiB, and any growth from 0 is beyond a percentage";
    assert!(said.contains(words), "{said}");
    assert!(said.contains("from 0  "), "{said}");
}

#[test]
fn what_one_side_does_not_have_is_null_and_cannot_be_gated() {
    let place = Place::new();
    let base = a_log(1, 1).json();
    let mut new = base.clone();
    new["sampled"] = json!([{ "gpu": 0, "samples": 2, "max_process_bytes": null }]);
    new["ledgers"]["device"].as_object_mut().unwrap().remove("failed");
    let [base, new] = [place.json("a.json", &base), place.json("b.json", &new)];
    let value = compared(&[&base, "--against", &new]);
    let gone = change(&value, "failed.device").unwrap();
    assert_eq!((&gone["base"]["median"], &gone["new"]), (&json!(0), &Value::Null));
    assert_eq!((&gone["change"], &gone["percent"]), (&Value::Null, &Value::Null));
    let come = change(&value, "sampled.0.samples").unwrap();
    assert_eq!((&come["base"], &come["new"]["median"]), (&Value::Null, &json!(2)));
    assert!(change(&value, "sampled.0.max_process_bytes").is_none(), "null on either side");
    let said = out(&diff(&[&base, "--against", &new]));
    assert!(said.lines().any(|line| line == "       -  -     0    -  failed.device"), "{said}");

    for (gate, sentence) in [
        ("failed.device>0", "failed.device cannot be decided: the new side does not have it"),
        ("sampled.0.max_process_bytes>0", "cannot be decided: the new side does not know it"),
        ("sampled.0.samples>+1", "cannot be decided: the base side does not have it"),
    ] {
        let said = refused(&[&base, "--against", &new, "--fail-on", gate]);
        assert!(said.contains(sentence), "{said}");
    }
    let known = diff(&[&base, "--against", &new, "--fail-on", "sampled.0.samples>1"]);
    assert_eq!(known.status.code(), Some(1), "an absolute limit needs no base");
    let family = diff(&[&base, "--against", &new, "--fail-on", "sampled.*.samples>+50%"]);
    assert_eq!(family.status.code(), Some(1), "a new member of a family is growth");
    assert!(out(&family).contains("the base side has no such figure"));
}

#[test]
fn a_refusal_says_what_is_wrong_and_exits_with_2() {
    let place = Place::new();
    let log = place.log("a.gmmt", 1, 1);
    let gate = |gate: &str| refused(&[&log, "--against", &log, "--fail-on", gate]);
    assert!(gate("peak.device>5%").contains("needs a sign: `+5%`; an example is"));
    let near = gate("peak.devise>+5%");
    assert!(near.contains("there is no figure `peak.devise`; near it are peak.device"), "{near}");
    assert!(gate("nonsense>1").contains("`gmmtrace diff --list` shows the names"));
    let unit = gate("peak.device>+5ms");
    assert!(unit.contains("peak.device is in bytes, and the limit is a time"), "{unit}");
    let both = refused(&[&log, "--against", &log, "--fail-on", "x>1%", "--fail-on", "y>1%"]);
    assert_eq!(both.lines().count(), 2, "every wrong gate is told");

    let missing = refused(&[&log, "--against", place.path("none").to_str().unwrap()]);
    assert!(missing.contains("none: cannot read: no such file"), "{missing}");
    for (name, text, sentence) in [
        ("v2.json", r#"{"schema": 2}"#, "schema number 2, and this version reads number 1"),
        ("v0.json", r#"{"a": 1}"#, "no schema number, and this version reads number 1"),
        ("text.json", r#"{"schema": "1"}"#, r#"schema number "1""#),
        ("two.json", r#"[{"schema": 1}, {"schema": 3}]"#, "two.json: report 2: a report with"),
        ("none.json", "[]", "the array holds no report"),
        ("torn.json", r#"{"schema": 1,"#, "torn.json: not JSON: EOF"),
        ("words.txt", "some words", "neither a gmmtrace log nor a report saved as JSON"),
        ("empty.gmmt", "", "the file is empty"),
    ] {
        let path = place.write(name, text.as_bytes());
        let said = refused(&[&log, "--against", &path]);
        assert!(said.contains(sentence) && said.contains(name), "{said}");
    }
    assert_eq!(diff(&[&log]).status.code(), Some(2), "--against is needed");
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
    assert!(said.contains("environment CUDA_LAUNCH_BLOCKING  not set         1\n"), "{said}");
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
    let with = |waste: u64, longest: u64| {
        let mut report = a_log(1, 1).json();
        report["fragmentation"] = json!({
            "device": { "waste_bytes": waste, "worst": { "at_ns": waste, "waste_bytes": 7 },
                "bound": true },
            "pool": null,
        });
        report["stalls"] = json!({ "alloc": { "count": 3, "p99_ns": longest } });
        report["sums"] = json!({
            "gpu": { "adds": ["device"], "live_bytes": 5, "peak_bytes": waste, "peak_at_ns": waste,
                "bound": false, "by_gpu": [{ "gpu": 0, "live_bytes": 5, "peak_bytes": waste }] },
            "host": { "adds": ["pinned"], "live_bytes": 6, "peak_bytes": 9 },
        });
        report["peak"]["by_size"] =
            json!([{ "from_bytes": 0, "to_bytes": 512, "count": waste, "bytes": waste }]);
        report["timeline"] = json!({ "bytes": [waste] });
        report
    };
    let base = place.json("a.json", &with(1, 10));
    let new = place.json("b.json", &with(2, 20));
    let value = compared(&[&base, "--against", &new, "--fail-on", "stalls.*.p99_ns>+50%"]);
    let changes = value["changes"].as_array().unwrap();
    let names: Vec<&str> =
        changes.iter().map(|change| change["figure"].as_str().unwrap()).collect();
    let expected = [
        "fragmentation.device.waste_bytes",
        "peak.by_size.0.512.bytes",
        "peak.gpu",
        "peak.gpu.0",
        "peak.by_size.0.512.count",
        "stalls.alloc.p99_ns",
    ];
    assert_eq!(names, expected);
    assert_eq!(changes[0]["new"]["bound"], true);
    assert_eq!(changes[3]["repeats"], true, "one device says what all say");
    assert_eq!(value["failed"], true);
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
    let said = out(&diff(&[&base, "--against", &new, "--top", "1", "--bytes"]));
    assert!(said.contains("  +25,165,824 B  +24.0 %  104,857,600 B  130,023,424 B  live.device"));
    assert!(said.contains("  and 3 more; --top shows more"), "{said}");
}

#[test]
fn the_product_goes_to_a_new_file_and_failed_gates_to_stdout_as_well() {
    let place = Place::new();
    let (base, new) = (place.log("a.gmmt", 100, 20), place.log("b.gmmt", 124, 20));
    let file = place.path("out.md").to_str().unwrap().to_owned();
    let gate = ["--fail-on", "live.device>+1%", "--format", "markdown", "-o", &file];
    let arguments = [&[base.as_str(), "--against", &new], &gate[..]].concat();
    let output = diff(&arguments);
    assert_eq!(output.status.code(), Some(1));
    assert!(out(&output).starts_with("  FAILED live.device>+1%: "), "{}", out(&output));
    let written = fs::read_to_string(&file).unwrap();
    assert!(written.starts_with("### GPU memory compared: 1 of 1 checks failed\n"), "{written}");
    assert!(refused(&arguments).contains("exists already; --force overwrites it"));
    assert_eq!(diff(&[&arguments[..], &["--force"]].concat()).status.code(), Some(1));
    let onto_itself = refused(&[&base, "--against", &new, "-o", &new, "--force"]);
    assert!(onto_itself.contains("is an input"), "{onto_itself}");
}
