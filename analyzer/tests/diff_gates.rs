//! The gates of `gmmtrace diff`: which fail, what is said, and what is refused.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod comparing;
mod support;

use std::fs;
use std::process::{Command, Output};

use comparing::{MIB, Place, a_log, change, compared, diff, out, refused};
use serde_json::{Value, json};

fn gmmtrace(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gmmtrace")).args(arguments).output().unwrap()
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
    let come = change(&value, "sampled.samples.0").unwrap();
    assert_eq!((&come["base"], &come["new"]["median"]), (&Value::Null, &json!(2)));
    assert!(change(&value, "sampled.max_process.0").is_none(), "null on either side");
    let said = out(&diff(&[&base, "--against", &new]));
    assert!(said.lines().any(|line| line == "       -  -     0    -  failed.device"), "{said}");

    for (gate, sentence) in [
        ("failed.device>0", "failed.device cannot be decided: the new side does not have it"),
        ("sampled.max_process.0>0", "cannot be decided: the new side does not know it"),
        ("sampled.samples.0>+1", "cannot be decided: the base side does not have it"),
    ] {
        let said = refused(&[&base, "--against", &new, "--fail-on", gate]);
        assert!(said.contains(sentence), "{said}");
    }
    let known = diff(&[&base, "--against", &new, "--fail-on", "sampled.samples.0>1"]);
    assert_eq!(known.status.code(), Some(1), "an absolute limit needs no base");
    let family = diff(&[&base, "--against", &new, "--fail-on", "sampled.samples.*>+50%"]);
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
        ("text.json", r#"{"schema": "1"}"#, "its schema is no number"),
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

    let summary = gmmtrace(&["summary", "--json", &log]);
    let answer = place.write("answer.json", &summary.stdout);
    let said = refused(&[&log, "--against", &answer]);
    assert!(said.contains("answer.json: the answer to one question and not a whole"), "{said}");
    let compared = diff(&[&log, "--against", &log, "--json"]);
    let compared = place.write("compared.json", &compared.stdout);
    let said = refused(&[&log, "--against", &compared]);
    assert!(said.contains("compared.json: a comparison and not a report"), "{said}");
}

#[test]
fn a_report_may_come_through_a_pipe_and_a_log_or_nothing_is_refused() {
    let place = Place::new();
    let log = place.log("a.gmmt", 1, 1);
    let pipe = place.path("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
    let pipe = pipe.to_str().unwrap();
    let said = refused(&[&log, "--against", pipe]);
    assert!(said.contains("pipe: a pipe that nobody writes to"), "{said}");
    let report =
        place.write("report.json", &gmmtrace(&["report", "--format", "json", &log]).stdout);
    for (file, code, sentence) in
        [(&report, 0, ""), (&log, 2, "a log in a pipe cannot be read from its middle")]
    {
        let line = r#""$0" diff "$1" --against <(cat "$2")"#;
        let output = Command::new("bash")
            .args(["-c", line, env!("CARGO_BIN_EXE_gmmtrace"), &log, file])
            .output()
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains(sentence), "{said}");
    }
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
