//! The commands that answer one question, as a person runs them.
#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use gmmtrace_format::Kind;
use gmmtrace_format::definition::Definition;
use gmmtrace_format::kind::copy;
use gmmtrace_format::layout::Counter;
use serde_json::{Value, json};
use support::{RUNTIME_SITE, Writer, event, schema_path};

const MIB: u64 = 1 << 20;
const QUESTIONS: [&str; 7] =
    ["summary", "timeline", "peak", "leaks", "fragmentation", "copies", "gap"];

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn log(&self, name: &str, log: &Writer) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, log.bytes()).unwrap();
        path
    }
}

/// Two devices: 3 MiB at 1 µs and 1 MiB at 4 µs on the first, 8 MiB at 2 µs on the second.
fn two_devices() -> Writer {
    let device = |at, gpu| event(Kind::DeviceCurrent, at, &[gpu]).site(0);
    let runtime = |kind, at, operands: &[u64]| event(kind, at, operands).site(RUNTIME_SITE);
    let mut log = Writer::of(vec![
        device(900, 0),
        runtime(Kind::DeviceAlloc, 1_000, &[0x4000_0000, 3 * MIB]),
        device(1_900, 1),
        runtime(Kind::DeviceAlloc, 2_000, &[0x8000_0000, 8 * MIB]),
        event(Kind::Mark, 2_500, &[0]).site(0).text("warm"),
        runtime(Kind::Free, 3_000, &[0x8000_0000]),
        device(3_900, 0),
        runtime(Kind::DeviceAlloc, 4_000, &[0x4400_0000, MIB]),
        event(Kind::PinnedAlloc, 4_500, &[0x9000, 4096, 0]),
        event(Kind::Copy, 5_000, &[copy::HOST_TO_DEVICE, 0x4400_0000, 0x9000, 4096, 0]),
        event(Kind::DeviceAlloc, 6_000, &[0, 1 << 40]).failed(),
    ]);
    log.gpus = 2;
    log
}

fn run(arguments: &[&str], path: &PathBuf) -> Output {
    let binary = env!("CARGO_BIN_EXE_gmmtrace");
    Command::new(binary).args(arguments).arg(path).env_remove("NO_COLOR").output().unwrap()
}

fn answer(arguments: &[&str], path: &PathBuf) -> String {
    let output = run(arguments, path);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stderr.is_empty());
    String::from_utf8(output.stdout).unwrap()
}

fn refusal(arguments: &[&str], path: &PathBuf) -> String {
    let output = run(arguments, path);
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    String::from_utf8(output.stderr).unwrap()
}

fn value_of_report(path: &PathBuf) -> Value {
    serde_json::from_str(&answer(&["report", "--format", "json"], path)).unwrap()
}

fn value(arguments: &[&str], path: &PathBuf) -> Value {
    serde_json::from_str(&answer(&[arguments, &["--json"]].concat(), path)).unwrap()
}

#[test]
fn a_summary_fits_a_screen_and_says_what_matters() {
    let place = Place::new();
    let path = place.log("a.gmmt", &two_devices());
    let said = answer(&["summary"], &path);
    assert!(said.lines().count() <= 24, "{said}");
    assert!(!said.contains('\u{1b}'), "no colours but on a terminal");
    for line in [
        "GPU        peak 11.00 MiB at 2.005 us, live at end 4.00 MiB",
        "Marks      warm at 2.505 us",
        "Host       peak 4.00 KiB at 4.505 us, live at end 4.00 KiB",
        "At peak    11.00 MiB by cudaMalloc > cuMemAlloc_v2 in x.so",
        "Left       4.00 MiB by cudaMalloc > cuMemAlloc_v2 in x.so",
        "Copies     host to device 4.00 KiB in 1",
        "Failed     1 of device",
        "Losses     none",
    ] {
        assert!(said.lines().any(|said| said == line), "{line}\n{said}");
    }
}

#[test]
fn every_answer_in_json_has_keys_of_the_report() {
    let place = Place::new();
    let path = place.log("a.gmmt", &two_devices());
    let mut schema: Value =
        serde_json::from_str(&fs::read_to_string(schema_path()).unwrap()).unwrap();
    schema["required"] = json!([]);
    schema["properties"]["ledgers"]["required"] = json!([]);
    schema["properties"]["sums"]["required"] = json!([]);
    for key in ["bound", "gpu", "asked"] {
        schema["properties"][key] = json!(true);
    }
    let schema_file = place.0.path().join("schema.json");
    fs::write(&schema_file, schema.to_string()).unwrap();
    let mut schemas = boon::Schemas::new();
    let mut compiler = boon::Compiler::new();
    let schema = compiler.compile(schema_file.to_str().unwrap(), &mut schemas).unwrap();
    for question in QUESTIONS {
        let gpu: &[&str] = if question == "gap" { &[] } else { &["--gpu", "1"] };
        let ledger: &[&str] = match question {
            "timeline" | "peak" | "leaks" => &["--ledger", "device", "--until", "2us"],
            _ => &["--until", "2us"],
        };
        for more in [&[][..], gpu, ledger] {
            let found = value(&[&[question], more].concat(), &path);
            let valid = schemas.validate(&found, schema).map_err(|error| format!("{error:#}"));
            assert_eq!(valid, Ok(()), "{question} {more:?}");
            assert_eq!(found["schema"], 1);
        }
    }
}

#[test]
fn a_device_has_figures_of_its_own() {
    let place = Place::new();
    let path = place.log("a.gmmt", &two_devices());
    let peak = |gpu: &str| value(&["peak", "--gpu", gpu], &path)["peak"]["bytes"].clone();
    assert_eq!((peak("0"), peak("1")), (json!(4 * MIB), json!(8 * MIB)));
    let said = answer(&["leaks", "--gpu", "1"], &path);
    assert!(said.contains("nothing is live"), "{said}");
    let copies = |gpu: &str| value(&["copies", "--gpu", gpu], &path)["copies"].clone();
    assert_eq!(copies("0")[0]["bytes"], 4096);
    assert_eq!(copies("1"), json!([]));
    let series = value(&["timeline", "--gpu", "1"], &path)["timeline"]["series"].clone();
    let names: Vec<&str> =
        series.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["gpu", "device", "device_blocks"]);
    let said = refusal(&["peak", "--gpu", "7"], &path);
    assert!(said.contains("nothing was on GPU 7; used devices: 0, 1"), "{said}");
}

#[test]
fn a_moment_shows_what_was_live_then() {
    let place = Place::new();
    let path = place.log("a.gmmt", &two_devices());
    let live = |at: &str| value(&["leaks", "--at", at], &path)["live"]["bytes"].clone();
    assert_eq!(live("1.004us"), json!(0), "the call has not returned");
    assert_eq!(live("1.005us"), json!(3 * MIB));
    assert_eq!(live("@warm"), json!(11 * MIB));
    assert_eq!(live("1h"), json!(4 * MIB));
    let said = answer(&["leaks", "--at", "@warm"], &path);
    assert!(said.starts_with("Live at 2.505 us"), "{said}");
    let said = answer(&["leaks", "--at", "1h"], &path);
    assert!(said.starts_with("Live at 3600.000000000 s, behind the log's end at 1.000000 ms"));
}

#[test]
fn the_peak_and_the_end_are_moments_and_a_time_that_was_printed_finds_what_was_then() {
    let place = Place::new();
    // As late as a service's peak, and between two events of the same microsecond.
    let at = 86_400_123_456_789;
    let path = place.log(
        "a.gmmt",
        &Writer::of(vec![
            event(Kind::DeviceCurrent, 1, &[0]).site(0),
            event(Kind::DeviceAlloc, at, &[0x4000_0000, 3 * MIB]),
            event(Kind::Free, at + 6, &[0x4000_0000]),
            event(Kind::PinnedAlloc, at + 7, &[0x9000, 4096, 0]),
            event(Kind::DeviceAlloc, at + 90, &[0x4000_0000, MIB]),
        ]),
    );
    let live = |at: &str| value(&["leaks", "--at", at], &path)["live"]["bytes"].clone();
    let said = answer(&["peak"], &path);
    let printed = "86400.123456794 s";
    assert!(said.contains(&format!("peak 3.00 MiB at {printed} (@peak)")), "{said}");
    assert_eq!(live(printed), json!(3 * MIB));
    assert_eq!(live("@peak"), json!(3 * MIB));
    assert_eq!(live("@peak.device"), json!(3 * MIB));
    assert_eq!(live("@peak.pinned"), json!(0));
    assert_eq!(live("@end"), json!(MIB));
    let window = ["leaks", "--since", "@peak.pinned", "--until", "@end"];
    assert_eq!(value(&window, &path)["live_at_end"].as_array().unwrap().len(), 2);
    let peak = ["leaks", "--gpu", "0", "--at", "@peak"];
    assert_eq!(value(&peak, &path)["live"]["bytes"], 3 * MIB);
    let said = refusal(&["leaks", "--at", "@peak.array"], &path);
    assert!(said.contains("array has no peak: nothing was ever live"), "{said}");
    for command in ["report", "summary"] {
        let said = answer(&[command], &path);
        assert!(said.contains(printed), "{command}: {said}");
    }
}

#[test]
fn a_report_is_of_a_window_too() {
    let place = Place::new();
    let path = place.log("a.gmmt", &two_devices());
    let window = ["report", "--since", "@warm", "--until", "4.5us"];
    let said = answer(&window, &path);
    assert!(said.contains("only what took effect from 2.505 us to 4.500 us"), "{said}");
    let found: Value =
        serde_json::from_str(&answer(&[&window[..], &["--format", "json"]].concat(), &path))
            .unwrap();
    assert_eq!(found["ledgers"]["device"]["allocs"], 1);
    assert_eq!(found["window"], json!({ "since_ns": 2_505, "until_ns": 4_500 }));
    let page = place.0.path().join("a.html");
    let made = [&window[..], &["--format", "html", "-o", page.to_str().unwrap()]].concat();
    assert!(run(&made, &path).status.success());
    assert!(fs::read_to_string(page).unwrap().contains("from 2.505 us to 4.500 us"));
}

#[test]
fn a_window_counts_what_is_in_it_and_leaves_what_was_made_in_it() {
    let place = Place::new();
    let path = place.log("a.gmmt", &two_devices());
    let window = ["summary", "--since", "@warm", "--until", "4.5us"];
    let found = value(&window, &path);
    let device = &found["ledgers"]["device"];
    assert_eq!((&device["allocs"], &device["frees"]), (&json!(1), &json!(1)));
    assert_eq!(found["sums"]["gpu"]["peak_bytes"], 11 * MIB, "what was live when it began");
    assert_eq!(found["live"]["bytes"], 4 * MIB);
    assert_eq!(found["ledgers"]["pinned"]["allocs"], 0, "returned behind the window");
    let left = value(&["leaks", "--since", "@warm"], &path);
    let rows = left["live_at_end"].as_array().unwrap().iter();
    let bytes: Vec<u64> = rows.map(|row| row["bytes"].as_u64().unwrap()).collect();
    assert_eq!(bytes, [MIB, 4096]);
}

#[test]
fn ledgers_rows_and_units_are_as_asked_for() {
    let place = Place::new();
    let path = place.log("a.gmmt", &two_devices());
    let said = answer(&["peak", "--ledger", "pinned", "--bytes"], &path);
    assert!(said.contains("peak 4,096 at 4.505 us (@peak.pinned); live at end 4,096"), "{said}");
    assert!(!said.contains("cudaMalloc"), "{said}");
    let asked = value(&["peak", "--ledger", "pinned"], &path)["asked"]["pinned"].clone();
    assert_eq!(asked["peak_bytes"], 4096);
    assert_eq!(asked["at_peak"]["by_size"][0]["from_bytes"], 4096);
    let said = answer(&["leaks", "--top", "1"], &path);
    assert!(said.contains("1 other site"), "{said}");
    let said = answer(&["timeline", "--ledger", "host", "--top", "2"], &path);
    assert!(said.contains("in 2 stretches of time"), "{said}");
}

/// So many lines of a program that each take memory, the later the more, and one call that no
/// Python made.
fn many_callers(lines: u32) -> Vec<u8> {
    let names: Vec<String> = (0..lines).map(|line| format!("Service.step{line}")).collect();
    let taken = (0..lines).map(|line| {
        let operands = [u64::from(line + 1) << 21, 1_000 + u64::from(line)];
        event(Kind::DeviceAlloc, 10 * u64::from(line + 1), &operands).site(1_000 + line)
    });
    let log = Writer::of(taken.chain([event(Kind::DeviceAlloc, 9_000, &[0x900, 7_000])]).collect());
    let stacks = names.iter().zip(1_u32..).flat_map(|(name, id)| {
        let site = RUNTIME_SITE;
        [
            Definition::Code {
                id,
                first_line: 1,
                file: b"/srv/app/service.py",
                name: name.as_bytes(),
            },
            Definition::PythonFrame { id, code: id, at: 0, entry: 1 },
            Definition::Node { id, parent: 0, frame: id },
            Definition::Stack { id: 999 + id, site, python: id, native: 0 },
        ]
    });
    let mut bytes = log.bytes();
    bytes.extend(support::definitions(stacks));
    bytes
}

#[test]
fn lines_of_a_program_are_told_apart_and_those_that_a_list_does_not_name_are_added_up() {
    let place = Place::new();
    let path = place.0.path().join("a.gmmt");
    fs::write(&path, many_callers(150)).unwrap();
    let report = value_of_report(&path);
    support::assert_valid(&report);
    let held = report["live_at_end"].as_array().unwrap();
    assert_eq!(held.len(), 101);
    assert_eq!((&held[0]["site"]["caller"], &held[0]["bytes"]), (&Value::Null, &json!(7_000)));
    let caller = |n| json!({ "file": "/srv/app/service.py", "line": null, "function": n });
    assert_eq!(held[1]["site"]["caller"], caller("Service.step149"));
    let others = &held[100];
    assert_eq!((&others["site"]["others"], &others["count"]), (&json!(51), &json!(51)));
    assert_eq!(others["bytes"], (1_000..1_051).sum::<u64>());
    assert_eq!(others["site"]["caller"], Value::Null);

    let said = answer(&["leaks", "--top", "2"], &path);
    let row = "cudaMalloc > cuMemAlloc_v2  service.py Service.step149";
    assert!(said.contains("called from") && said.contains(row), "{said}");
    assert!(said.contains("149 other sites"), "{said}");
    let drawn = written(&["--format", "svg", "--picture", "peak"], &place, &path);
    assert!(drawn.contains("service.py Service.step149"));
    assert!(drawn.contains("151 blocks of 151 call sites."));
    let page = written(&["--format", "html"], &place, &path);
    assert!(page.contains("service.py Service.step149") && page.contains("51 other sites"));

    // What others hold may be held by the same call.
    let said = answer(&["diff", "--list"], &path);
    let site = said.lines().find(|line| line.contains("live.gpu.site") && line.contains("Malloc"));
    let site = site.unwrap_or_else(|| panic!("{said}"));
    assert!(site.contains("(bound)"), "{site}");
}

/// A log in which every option has something to show.
fn eventful() -> Writer {
    let mut log = two_devices();
    let events = &mut log.threads[0];
    events.push(event(Kind::Copy, 5_100, &[copy::HOST_TO_DEVICE, 0x4400_0000, 0x9000, 65_536, 0]));
    events.push(event(Kind::DeviceCurrent, 5_200, &[1]).site(0));
    events.push(event(Kind::AddressReserve, 5_250, &[0x10_0000_0000, 64 * MIB]));
    for (at, place) in [(5_300, 0_u64), (5_400, 8), (5_500, 16)] {
        events.push(event(Kind::PhysicalCreate, at, &[place + 1, 2 * MIB, 1, 1]));
        let map = [0x10_0000_0000 + place * MIB, 2 * MIB, 0, place + 1];
        events.push(event(Kind::Map, at + 50, &map));
    }
    events.push(event(Kind::AddressReserve, 5_260, &[0x20_0000_0000, 64 * MIB]));
    for (at, place) in [(5_310, 2_u64), (5_410, 6)] {
        events.push(event(Kind::PhysicalCreate, at, &[place + 1, 2 * MIB, 1, 1]));
        let map = [0x20_0000_0000 + place * MIB, 2 * MIB, 0, place + 1];
        events.push(event(Kind::Map, at + 50, &map));
    }
    let sample =
        |at, gpu, process| event(Kind::Sample, at, &[gpu, 99 * MIB, 999 * MIB, process]).site(0);
    events.extend([sample(5_600, 0, 50 * MIB + 1), sample(5_610, 1, 1)]);
    events.push(event(Kind::ObjectCreate, 5_700, &[0x7, 2, 0]));
    events.push(event(Kind::ObjectCreate, 5_800, &[0x8, 3, 0]).site(RUNTIME_SITE));
    events.extend([sample(5_900, 0, 80 * MIB + 1), sample(5_910, 1, 1)]);
    events.sort_by_key(|one| one.event.start);
    log
}

#[test]
fn every_option_of_every_question_changes_the_answer_or_is_refused() {
    let place = Place::new();
    let path = place.log("a.gmmt", &eventful());
    let options: [&[&str]; 8] = [
        &["--at", "3us"],
        &["--since", "@warm"],
        &["--until", "3us"],
        &["--gpu", "0"],
        &["--ledger", "vmm_physical"],
        &["--top", "1"],
        &["--bytes"],
        &["--json"],
    ];
    let mut refused = Vec::new();
    for question in QUESTIONS {
        let plain = answer(&[question], &path);
        let json = answer(&[question, "--json"], &path);
        for option in options {
            for (format, unchanged) in [(&[][..], &plain), (&["--json"][..], &json)] {
                if option == ["--json"] && !format.is_empty() {
                    continue;
                }
                let output = run(&[&[question], option, format].concat(), &path);
                let said = String::from_utf8(output.stdout).unwrap();
                match output.status.code() {
                    Some(0) => assert_ne!(&said, unchanged, "{question} {option:?} {format:?}"),
                    code => {
                        assert_eq!(code, Some(2));
                        let words = String::from_utf8(output.stderr).unwrap();
                        assert!(said.is_empty() && words.contains(option[0]), "{words}");
                        refused.push(format!("{question} {}{}", option[0], format.concat()));
                    }
                }
            }
        }
        let help = answer(&[question], &PathBuf::from("--help"));
        for name in ["--ledger", "--top", "--gpu"] {
            let takes = !refused.contains(&format!("{question} {name}"));
            assert_eq!(help.contains(&format!("{name} ")), takes, "{question} {name}");
        }
    }
    let text: Vec<&String> = refused.iter().filter(|one| !one.ends_with("--json")).collect();
    let expected = [
        "summary --ledger",
        "summary --top",
        "fragmentation --ledger",
        "copies --ledger",
        "copies --top",
        "gap --gpu",
        "gap --ledger",
    ];
    assert_eq!(text, expected);
}

#[test]
fn what_has_no_effect_is_refused_in_reports_and_comparisons_too() {
    let place = Place::new();
    let path = place.log("a.gmmt", &eventful());
    let this = path.to_str().unwrap();
    for (arguments, word) in [
        (&["report", "--force"][..], "--force is for files"),
        (&["report", "--theme", "dark"], "--picture, --size and --theme are for"),
        (&["peak", "--force"], "--output"),
        (&["diff", "--list", "--force"], "--output"),
        (&["diff", "--list", "--top", "3"], "--top is for tables"),
        (&["diff", "--against", this, "--json", "--top", "3"], "--top is for tables"),
    ] {
        let said = refusal(&[arguments, &["--"]].concat(), &path);
        assert!(said.contains(word), "{arguments:?}: {said}");
    }
}

#[test]
fn a_dash_is_stdout() {
    let place = Place::new();
    let path = place.log("a.gmmt", &two_devices());
    let plain = answer(&["peak"], &path);
    assert_eq!(answer(&["peak", "-o", "-"], &path), plain);
    assert!(answer(&["report", "-o", "-"], &path).starts_with("gmmtrace report of"));
    let page = answer(&["report", "--format", "html", "-o", "-"], &path);
    assert!(page.starts_with("<!"), "{page:.20}");
    assert!(!PathBuf::from("-").exists());
}

#[test]
fn what_cannot_be_answered_is_said_in_a_sentence() {
    let place = Place::new();
    let path = place.log("a.gmmt", &two_devices());
    for (arguments, word) in [
        (&["peak", "--ledger", "vram"][..], "async_pool"),
        (&["peak", "--top", "0"], "a number of rows, 1 or more"),
        (&["peak", "--at", "soon"], "a time like 1.5s"),
        (&["leaks", "--at", "@cold"], "no mark says \"cold\""),
        (&["leaks", "--since", "2s", "--until", "1s"], "--since is later than --until"),
        (&["leaks", "--at", "1s", "--until", "1s"], "cannot be used with"),
    ] {
        let said = refusal(arguments, &path);
        assert!(said.contains(word), "{arguments:?}: {said}");
    }
}

#[test]
fn nothing_is_said_sensibly() {
    let place = Place::new();
    let path = place.log("a.gmmt", &Writer::of(Vec::new()));
    for question in QUESTIONS {
        for more in [&[][..], &["--since", "1s"], &["--at", "0"]] {
            let said = answer(&[&[question], more].concat(), &path);
            assert!(said.to_lowercase().contains("no") && said.lines().count() > 1, "{said}");
            value(&[&[question], more].concat(), &path);
        }
    }
}

#[test]
fn one_bad_log_does_not_hide_the_others() {
    let place = Place::new();
    place.log("a.gmmt", &two_devices());
    fs::write(place.0.path().join("b.gmmt"), "text").unwrap();
    let output = run(&["summary"], &place.0.path().to_path_buf());
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stdout).contains("peak 11.00 MiB"));
    assert!(String::from_utf8_lossy(&output.stderr).contains("b.gmmt"));
}

/// Every cause of bounds: whether live figures are bounds with it, and the words that say why.
fn causes() -> Vec<(&'static str, Writer, bool, &'static str)> {
    const MISSING: &str = "events are missing";
    let lossy = |counter| {
        let mut log = two_devices();
        log.counters.push((counter, 3));
        log
    };
    let mut causes = vec![
        ("captured", lossy(Counter::Captured), true, "captures could not be followed"),
        ("copies", lossy(Counter::LostCopies), false, MISSING),
    ];
    for (name, counter) in [
        ("live", Counter::LostLive),
        ("other", Counter::LostOther),
        ("reentered", Counter::Reentered),
        ("threads", Counter::UnregisteredThreads),
        ("driver", Counter::OtherDriver),
    ] {
        causes.push((name, lossy(counter), true, MISSING));
    }
    let mut both = lossy(Counter::Captured);
    both.counters.push((Counter::LostCopies, 1));
    causes.push(("both", both, true, MISSING));
    causes
}

#[test]
fn losses_stand_in_every_answer() {
    let place = Place::new();
    let whole = place.log("whole.gmmt", &two_devices());
    let of_copies = ["summary", "copies"];
    for question in QUESTIONS {
        assert!(!answer(&[question], &whole).contains("(bound"), "{question}");
        assert_eq!(value(&[question], &whole)["bound"], false);
    }
    for (name, log, live, why) in causes() {
        let path = place.log(&format!("{name}.gmmt"), &log);
        for question in QUESTIONS {
            let said = answer(&[question], &path);
            let marked = live || of_copies.contains(&question);
            assert_eq!(
                said.contains(&format!("(bound: {why})")),
                marked,
                "{name}, {question}: {said}"
            );
            assert_eq!(value(&[question], &path)["bound"], marked, "{name}, {question}");
        }
        let copies = value(&["copies"], &path);
        for figure in ["/copies/0", "/sets", "/stalls/copy", "/stalls/alloc"] {
            assert_eq!(copies.pointer(figure).unwrap()["bound"], true, "{name}, {figure}");
        }
        let said = answer(&["report"], &path);
        assert!(said.contains(&format!("Copies and sets  (bound: {why})")), "{name}: {said}");
        let whole = value_of_report(&path);
        assert_eq!(
            (&whole["copies"][0]["bound"], &whole["sets"]["bound"]),
            (&json!(true), &json!(true))
        );
        assert_eq!(whole["peak"]["bound"], live, "{name}");
    }
}

/// A file that `report` writes beside the log.
fn written(arguments: &[&str], place: &Place, path: &PathBuf) -> String {
    let file = place.0.path().join("written");
    let file = file.to_str().unwrap();
    let output = run(&[&["report"], arguments, &["--force", "-o", file]].concat(), path);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    fs::read_to_string(file).unwrap()
}

#[test]
fn losses_stand_in_every_picture_on_the_page_and_in_comparisons() {
    let place = Place::new();
    let whole = place.log("whole.gmmt", &two_devices());
    for (name, log, live, why) in causes() {
        let path = place.log(&format!("{name}.gmmt"), &log);
        for picture in ["timeline", "peak", "fragmentation", "copies"] {
            let drawn = written(&["--format", "svg", "--picture", picture], &place, &path);
            let marked = live || picture == "copies";
            assert_eq!(drawn.contains(&format!("bound: {why}")), marked, "{name}, {picture}");
        }
        let page = written(&["--format", "html"], &place, &path);
        let all = if live { "figures" } else { "figures of copies and sets" };
        assert!(page.contains(&format!("Bound: {why}, so {all} are bounds, not sums.")), "{name}");
        assert!(page.contains(&format!("All figures are bounds: {why}.")), "{name}");
        let mut more = log;
        more.threads[0].push(event(
            Kind::Copy,
            7_000,
            &[copy::HOST_TO_DEVICE, 0x4400_0000, 0x9000, 1 << 20, 0],
        ));
        let more = place.log("more.gmmt", &more);
        let base = whole.to_str().unwrap();
        for form in ["text", "markdown"] {
            let said = answer(&["diff", base, "--format", form, "--against"], &more);
            let copies = said.lines().find(|line| line.contains("copies.bytes"));
            let copies = copies.unwrap_or_else(|| panic!("{name}: {said}"));
            assert!(copies.contains("(bound)"), "{name}, {form}: {copies}");
        }
    }
}

#[test]
fn completions_and_pages_are_made_from_the_command_line() {
    let place = Place::new();
    let folder = place.0.path().join("man");
    let said = answer(&["completions"], &PathBuf::from("bash"));
    assert!(said.contains("fragmentation") && said.contains("vmm_physical"));
    answer(&["man", "-o"], &folder);
    let page = fs::read_to_string(folder.join("gmmtrace-leaks.1")).unwrap();
    assert!(page.contains("gmmtrace") && page.contains("since"));
    let refused = refusal(&["man", "-o"], &folder);
    assert!(refused.contains("exists already"), "{refused}");
}

#[test]
fn a_gap_says_what_explains_the_figure_and_what_does_not() {
    let place = Place::new();
    let sample = |at, process| event(Kind::Sample, at, &[0, 99 * MIB, 999 * MIB, process]).site(0);
    let known = Writer::of(vec![
        sample(1_000, 50 * MIB + 1),
        event(Kind::DeviceAlloc, 2_000, &[0x4000_0000, 3 * MIB]),
        event(Kind::ObjectCreate, 3_000, &[0x7, 2, 0]),
        sample(4_000, 60 * MIB + 1),
        // What a library takes late would be there by now.
        sample(5_000, 60 * MIB + 1),
        sample(6_000, 61 * MIB + 1),
    ]);
    let said = answer(&["gap"], &place.log("a.gmmt", &known));
    for line in [
        "At most: 61.00 MiB at 6.005 us",
        "4.00 MiB  2 MiB blocks of the ledger device",
        "50.00 MiB  contexts (estimated: it rose when they were made)",
        "6.00 MiB  libraries (estimated: it rose when they were made)",
        "1.00 MiB  unexplained",
        "6.00 MiB  1.005 us  4.005 us  1 library",
        "1  libraries",
    ] {
        assert!(said.contains(line), "{line}\n{said}");
    }
    let unknown = Writer::of(vec![sample(1_000, 0)]);
    let path = place.log("b.gmmt", &unknown);
    assert!(answer(&["gap"], &path).contains("NVML showed nothing for this process"));
    assert_eq!(value(&["gap"], &path)["gap"]["max"], Value::Null);
}
