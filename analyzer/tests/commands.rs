//! The commands as a person runs them: output, exit code, refusals.
#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use gmmtrace_format::Kind;
use gmmtrace_format::definition::Definition;
use serde_json::Value;
use support::{RUNTIME_SITE, Writer, assert_valid, event, schema_path};

fn gmmtrace(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gmmtrace")).args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn a_log(path: &Path) {
    let log = Writer::of(vec![
        event(Kind::DeviceAlloc, 1_000, &[0x1000, 3 << 20]).site(RUNTIME_SITE),
        event(Kind::DeviceAlloc, 2_000, &[0x2000, 100]),
        event(Kind::Free, 3_000, &[0x1000]),
        event(Kind::Free, 4_000, &[0x2000]).failed(),
        event(Kind::Mark, 5_000, &[0]).site(0).text("a\u{1b}[31m mark"),
    ]);
    fs::write(path, log.bytes()).unwrap();
}

#[test]
fn a_report_begins_with_what_matters() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.gmmt");
    a_log(&path);
    let output = gmmtrace(&["report", path.to_str().unwrap()]);
    let said = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    for line in [
        "program --fast",
        "Peak GPU memory   3.00 MiB (3,145,828 B) at 2.005 us",
        "Live at end       100 B",
        "Failed calls      1 of device",
        "Losses            none",
        "Process           exited 1.000 ms after the log began",
    ] {
        assert!(said.lines().any(|said| said == line), "{line}\n{said}");
    }
    assert!(!said.contains('\u{1b}'), "nothing in a log reaches the terminal");
}

#[test]
fn json_is_one_report_or_an_array_of_them() {
    let folder = tempfile::tempdir().unwrap();
    a_log(&folder.path().join("a.gmmt"));
    let one = gmmtrace(&["report", "--format", "json", folder.path().to_str().unwrap()]);
    assert_valid(&serde_json::from_slice(&one.stdout).unwrap());
    a_log(&folder.path().join("b.gmmt.1"));
    let two = gmmtrace(&["report", "--format", "json", folder.path().to_str().unwrap()]);
    let reports: Vec<Value> = serde_json::from_slice(&two.stdout).unwrap();
    assert_eq!(reports.len(), 2);
    reports.iter().for_each(assert_valid);
}

#[test]
fn nothing_is_overwritten_without_force_and_no_input_ever_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    a_log(Path::new(&path("a.gmmt")));
    let report = ["report", &path("a.gmmt"), "-o", &path("out")];
    assert_eq!(gmmtrace(&report).status.code(), Some(0));
    let refused = gmmtrace(&report);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("exists already; --force overwrites it"));
    let forced = [report.as_slice(), &["--force"]].concat();
    assert_eq!(gmmtrace(&forced).status.code(), Some(0));
    let onto_itself = ["report", &path("a.gmmt"), "-o", &path("a.gmmt"), "--force"];
    assert_eq!(gmmtrace(&onto_itself).status.code(), Some(2));
    assert_eq!(gmmtrace(&["dump", &path("a.gmmt")]).status.code(), Some(0));
}

#[test]
fn a_refusal_is_one_sentence_that_names_the_file_and_exits_with_2() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("empty.gmmt"), "").unwrap();
    fs::write(path("text.gmmt"), "some text").unwrap();
    fs::create_dir(path("nothing")).unwrap();
    fs::write(path("secret.gmmt"), "x").unwrap();
    fs::set_permissions(path("secret.gmmt"), fs::Permissions::from_mode(0o0)).unwrap();
    let mut cases = vec![
        ("empty.gmmt", "the file is empty"),
        ("text.gmmt", "not a gmmtrace log"),
        ("nothing", "the directory holds no gmmtrace log (*.gmmt)"),
        ("missing.gmmt", "cannot read: no such file or directory"),
    ];
    // Root reads everything.
    if fs::read(path("secret.gmmt")).is_err() {
        cases.push(("secret.gmmt", "cannot read: permission denied"));
    }
    for (name, sentence) in cases {
        for command in ["report", "dump"] {
            let output = gmmtrace(&[command, path(name).to_str().unwrap()]);
            assert_eq!(output.status.code(), Some(2), "{command} {name}");
            let expected = format!("gmmtrace: {}: {sentence}\n", path(name).display());
            assert_eq!(text(&output.stderr), expected);
            assert!(output.stdout.is_empty());
        }
    }
}

#[test]
fn one_bad_log_in_a_directory_does_not_hide_the_others() {
    let folder = tempfile::tempdir().unwrap();
    a_log(&folder.path().join("a.gmmt"));
    fs::write(folder.path().join("b.gmmt"), "").unwrap();
    let output = gmmtrace(&["report", folder.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stdout).contains("Peak GPU memory"));
    assert!(text(&output.stderr).contains("b.gmmt: the file is empty"));
}

#[test]
fn usage_errors_exit_with_2_and_help_with_0() {
    assert_eq!(gmmtrace(&["report"]).status.code(), Some(2));
    assert_eq!(gmmtrace(&["nonsense"]).status.code(), Some(2));
    assert_eq!(gmmtrace(&["--help"]).status.code(), Some(0));
    assert_eq!(gmmtrace(&["--version"]).status.code(), Some(0));
}

#[test]
fn dump_prints_every_record_in_the_order_of_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.gmmt");
    a_log(&path);
    let said = text(&gmmtrace(&["dump", path.to_str().unwrap()]).stdout);
    let records: Vec<&str> = said.lines().rev().take(5).collect();
    let expected = [
        "1005 1001 device_alloc pointer=0x1000 bytes=3145728 took=5 site=12 api=cuMemAlloc_v2 \
         outer=cudaMalloc library=/l/x.so",
        "2005 1001 device_alloc pointer=0x2000 bytes=100 took=5 site=10 api=cuMemAlloc_v2 \
         library=/l/x.so",
        "3000 1001 free pointer=0x1000 took=5 site=10 api=cuMemAlloc_v2 library=/l/x.so",
        "4000 1001 free pointer=0x2000 took=5 status=2 site=10 api=cuMemAlloc_v2 library=/l/x.so",
        "5005 1001 mark text=\"a\\u{1b}[31m mark\" took=5",
    ];
    assert_eq!(records.into_iter().rev().collect::<Vec<_>>(), expected);
    assert!(said.contains("\nsite 12 api=256 outer=1 module=1 at=0x1234\n"));
    assert!(said.contains("\nlookup cuMemPoolCreate by=dlsym passed "));
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.gmmt");
    let many = (1..3_000).map(|at| event(Kind::DeviceAlloc, at * 10, &[at * 512, 512]));
    fs::write(&path, Writer::of(many.collect()).bytes()).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_gmmtrace"))
        .args(["dump", path.to_str().unwrap()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut start = [0; 10];
    child.stdout.take().unwrap().read_exact(&mut start).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
}

/// Everything in the schemas is described, and nothing is allowed that is not in them.
#[test]
fn the_schemas_describe_every_property() {
    fn walk(path: &str, schema: &Value) {
        if let Some(properties) = schema["properties"].as_object() {
            assert_eq!(schema["additionalProperties"], false, "{path}");
            for (name, property) in properties {
                assert!(property["description"].is_string(), "{path}.{name}");
                walk(&format!("{path}.{name}"), property);
            }
        }
        for inner in ["items", "additionalProperties"].iter().filter_map(|key| schema.get(key)) {
            walk(path, inner);
        }
        if let Some(definitions) = schema["$defs"].as_object() {
            definitions.iter().for_each(|(name, schema)| walk(name, schema));
        }
    }
    let comparison = schema_path().with_file_name("diff.schema.json");
    for path in [schema_path(), comparison] {
        let schema: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        walk(schema["title"].as_str().unwrap(), &schema);
    }
}

#[test]
fn doctor_and_refusals_cannot_speak_to_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.gmmt");
    let mut bytes = Writer::of(vec![event(Kind::DeviceAlloc, 1, &[0x1000, 1])]).bytes();
    // The remark that every log here holds.
    let at = bytes.windows(8).position(|window| window == b"a remark").unwrap();
    bytes[at..at + 8].copy_from_slice(b"a\x1b]2;\x07\r\n");
    fs::write(&path, bytes).unwrap();
    let said = text(&gmmtrace(&["doctor", path.to_str().unwrap()]).stdout);
    assert!(said.contains("remark: a\\u{1b}]2;\\u{7}\\r\\n"), "{said}");
    let refused = text(&gmmtrace(&["summary", "no\u{1b}[31mb.gmmt"]).stderr);
    assert!(refused.contains("no\\u{1b}[31mb.gmmt"), "{refused}");
}

#[test]
fn doctor_tells_what_was_not_hooked_in_one_line_and_looks_at_every_log() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let mut bytes = Writer::of(vec![event(Kind::DeviceAlloc, 1, &[0x1000, 1])]).bytes();
    let lookups: Vec<Vec<u8>> = (0..40).map(|n| format!("cuMemNew{n}").into_bytes()).collect();
    let lookups = lookups.iter().enumerate().map(|(number, name)| Definition::Lookup {
        resolver: 1,
        hooked: false,
        version: 0,
        flags: 0,
        count: number as u64 + 1,
        module: 1,
        name,
    });
    bytes.extend(support::definitions(lookups));
    fs::write(path("a.gmmt"), bytes).unwrap();
    let said = text(&gmmtrace(&["doctor", &path("a.gmmt")]).stdout);
    let told: Vec<&str> = said.lines().filter(|line| line.contains("without a hook")).collect();
    let expected = "warn  41 memory functions were handed out without a hook: cuMemNew39 (40 \
                    times), cuMemNew38 (39 times), cuMemNew37 (38 times), cuMemNew36 (37 times), \
                    cuMemNew35 (36 times), and 36 more of them; --all tells them";
    assert_eq!(told, [expected]);
    let all = text(&gmmtrace(&["doctor", &path("a.gmmt"), "--all"]).stdout);
    assert!(all.contains("cuMemNew0 (1 time)") && !all.contains("more of them"), "{all}");
    let one = text(&gmmtrace(&["doctor", &path("a.gmmt"), "--top", "1"]).stdout);
    assert!(one.contains("cuMemNew39 (40 times), and 40 more of them"), "{one}");

    fs::write(path("b.gmmt"), "").unwrap();
    let output = gmmtrace(&["doctor", folder.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stdout).contains(&format!("{}\nok    nothing was lost", path("a.gmmt"))));
    assert!(text(&output.stderr).contains("b.gmmt: the file is empty"));
    assert_eq!(gmmtrace(&["doctor", "--all"]).status.code(), Some(2), "of a log only");
}

#[test]
fn what_is_made_from_a_private_log_is_private() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let mode = |name: &str| fs::metadata(path(name)).unwrap().permissions().mode() & 0o777;
    for (log, allowed) in [("private.gmmt", 0o600), ("shared.gmmt", 0o644)] {
        a_log(Path::new(&path(log)));
        fs::set_permissions(path(log), fs::Permissions::from_mode(allowed)).unwrap();
    }
    let (private, shared) = (path("private.gmmt"), path("shared.gmmt"));
    let made = |arguments: &[&str], to: &str| {
        let output = gmmtrace(&[arguments, &["-o", &path(to)]].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        mode(to)
    };
    assert_eq!(made(&["report", &private], "a"), 0o600);
    assert_eq!(made(&["report", &private, "--format", "html"], "b"), 0o600);
    assert_eq!(made(&["peak", &shared, &private], "c"), 0o600);
    assert_eq!(made(&["diff", &shared, "--against", &private], "d"), 0o600);
    assert_eq!(made(&["diff", &shared, "--against", folder.path().to_str().unwrap()], "e"), 0o600);
    assert_ne!(made(&["report", &shared], "f") & 0o044, 0, "unless the umask says so");
    fs::set_permissions(path("f"), fs::Permissions::from_mode(0o666)).unwrap();
    assert_eq!(made(&["report", &private, "--force"], "f"), 0o600, "also what is overwritten");
}

#[test]
fn a_name_of_a_file_cannot_speak_to_the_terminal_when_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a\u{1b}[31m.gmmt");
    a_log(&path);
    let output = gmmtrace(&["report", "--format", "html", path.to_str().unwrap()]);
    let said = text(&output.stderr);
    assert!(said.contains("wrote ") && said.contains("a\\u{1b}[31m.html"), "{said}");
    assert!(!said.contains('\u{1b}'));
}

#[test]
fn dump_says_what_a_reading_means() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.gmmt");
    let sample = |at, process| event(Kind::Sample, at, &[0, 7, 9, process]).site(0);
    fs::write(&path, Writer::of(vec![sample(1, 4_097), sample(2, 0)]).bytes()).unwrap();
    let said = text(&gmmtrace(&["dump", path.to_str().unwrap()]).stdout);
    assert!(said.contains("sample device=0 used=7 total=9 process_used=4096 "), "{said}");
    assert!(said.contains("process_used=unknown"), "{said}");
}
