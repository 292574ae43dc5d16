//! The page: whole, offline, and safe against what a log says; and the commands that write files.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod support;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use std::sync::Arc;

use gmmtrace::analysis::names::{PythonLine, SiteName};
use gmmtrace::live::Ledger;
use gmmtrace::render::html;
use gmmtrace::render::picture::{Ink, Theme};
use gmmtrace::report::{HeldReport, MarkReport, Report};
use gmmtrace::units::{Bytes, Nanos};
use gmmtrace_format::Kind;
use gmmtrace_format::layout::Counter;
use serde_json::Value;
use sha2::{Digest, Sha256};
use support::{RUNTIME_SITE, Writer, event, read};

fn page(report: &Report) -> String {
    let mut page = Vec::new();
    html::write(report, &mut page).unwrap();
    String::from_utf8(page).unwrap()
}

fn a_log() -> Writer {
    Writer::of(vec![
        event(Kind::DeviceAlloc, 1_000, &[0x1000_0000, 3 << 20]).site(RUNTIME_SITE),
        event(Kind::DeviceAlloc, 2_000, &[0x2000_0000, 100]),
        event(Kind::PinnedAlloc, 2_500, &[0x3000_0000, 4096]),
        event(Kind::Free, 3_000, &[0x1000_0000]),
        event(Kind::Free, 4_000, &[0x2000_0000]).failed(),
        event(Kind::Mark, 5_000, &[0]).site(0).text("a mark"),
    ])
}

fn fixture() -> Report {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/pytorch-infer.gmmt");
    gmmtrace::cli::report::read(&path).unwrap()
}

/// What stands between two texts, first found.
fn between<'a>(text: &'a str, before: &str, after: &str) -> &'a str {
    let (_, rest) = text.split_once(before).unwrap();
    rest.split_once(after).unwrap().0
}

/// The page as XML, which it nearly is: void elements are closed, script and style are dropped.
fn parsed(page: &str) -> String {
    let mut text = page.replace("<!doctype html>", "");
    for element in ["style", "script"] {
        while let Some(start) = text.find(&format!("<{element}")) {
            let end = text[start..].find(&format!("</{element}>")).unwrap();
            text.replace_range(start..start + end + element.len() + 3, "");
        }
    }
    let mut closed = String::new();
    for piece in text.split_inclusive('>') {
        let void = piece.trim_start().starts_with("<meta");
        closed.push_str(&if void { piece.replace('>', "/>") } else { piece.to_owned() });
    }
    // A boolean attribute is one in HTML only.
    closed.replace(" hidden>", ">")
}

/// Every element's name with its attributes.
fn elements(page: &str) -> Vec<(String, Vec<(String, String)>)> {
    let text = parsed(page);
    let document = roxmltree::Document::parse(&text).unwrap_or_else(|error| panic!("{error}"));
    let all = document.descendants().filter(roxmltree::Node::is_element);
    let one = |node: roxmltree::Node<'_, '_>| {
        let attributes =
            node.attributes().map(|found| (found.name().to_owned(), found.value().to_owned()));
        (node.tag_name().name().to_owned(), attributes.collect())
    };
    all.map(one).collect()
}

#[test]
fn a_page_is_well_formed_and_asks_nobody_for_anything() {
    for report in [read(&a_log().log()), read(&Writer::default().log()), fixture()] {
        let page = page(&report);
        for (name, attributes) in elements(&page) {
            assert!(!matches!(name.as_str(), "link" | "img" | "iframe" | "object" | "a"), "{name}");
            for (attribute, value) in attributes {
                assert!(!matches!(attribute.as_str(), "href" | "src" | "style"), "{attribute}");
                assert!(!attribute.starts_with("on"), "{attribute}");
                assert!(!value.contains("http"), "{attribute}={value}");
            }
        }
        assert!(!html::SCRIPT.contains("fetch(") && !html::STYLE.contains("url("));
        assert!(page.len() < 1_500_000, "{}", page.len());
    }
}

#[test]
fn the_policy_names_the_style_and_the_script_by_hash() {
    for (kind, text) in [("style", html::STYLE), ("script", html::SCRIPT)] {
        let hash = base64(&Sha256::digest(text));
        let rule = format!("{kind}-src 'sha256-{hash}'");
        assert!(html::POLICY.contains(&rule), "render/html/mod.rs: POLICY needs {rule}");
        assert!(!text.contains("</"), "nothing in it may end its element");
    }
    assert!(html::POLICY.starts_with("default-src 'none'"));
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let word = three.iter().fold(0u32, |word, &byte| word << 8 | u32::from(byte));
        let word = word << (8 * (3 - three.len()));
        for index in 0..4 {
            let letter = LETTERS[(word >> (18 - 6 * index)) as usize & 63];
            text.push(if index <= three.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

#[test]
fn the_style_has_a_variable_for_every_ink_in_both_themes() {
    for (theme, name) in [(Theme::Light, "light"), (Theme::Dark, "dark")] {
        let rules = between(html::STYLE, &format!(":root[data-theme=\"{name}\"] {{"), "}");
        for ink in Ink::ALL {
            let rule = format!("--{}: #{:06X};", ink.name(), ink.colour(theme));
            assert!(rules.contains(&rule), "page.css, {name}: {rule}");
            assert_eq!(html::STYLE.matches(&rule).count() % 2, 0, "also by the system's theme");
        }
    }
}

#[test]
fn a_page_says_what_matters_first_and_has_every_section() {
    let mut log = a_log();
    log.counters =
        vec![(Counter::ALL.iter().copied().find(|counter| counter.is_loss()).unwrap(), 3)];
    log.in_flight = Some((256, 6_000, 1 << 20));
    let page = page(&read(&log.log()));
    for words in [
        "At its peak, 2.005 us after the log began, the process held 3.00 MiB (3,145,828 B)",
        "Calls failed: 1 of device.",
        "1 call had not returned",
        "Something is missing: 3 ",
        "At most 4.00 KiB (4,096 B) of host memory was page-locked",
        "a mark",
        "a remark",
        "cuMemPoolCreate",
    ] {
        assert!(page.contains(words), "{words}");
    }
    for id in [
        "summary",
        "timeline",
        "peak",
        "fragmentation",
        "copies",
        "ledgers",
        "live",
        "peak-gpu",
        "peak-host",
        "fragmentation-figures",
        "copies-figures",
        "stalls",
        "calls",
        "in-flight",
        "marks",
        "coverage",
        "process",
    ] {
        assert!(page.contains(&format!("id=\"{id}\"")), "{id}");
    }
}

#[test]
fn a_bound_is_said_at_the_top() {
    let mut report = read(&a_log().log());
    assert!(!page(&report).contains("class=\"alarm\""));
    report.bound = true;
    assert!(page(&report).contains("<p class=\"alarm\">Bound: events are missing"));
}

#[test]
fn numbers_sort_by_what_they_are() {
    let page = page(&read(&a_log().log()));
    let ledgers = between(&page, "id=\"ledgers\"", "</table>");
    assert!(ledgers.contains("<td class=\"number\" data-v=\"3145828\">3.00 MiB</td>"), "{ledgers}");
}

#[test]
fn values_behind_a_picture_are_those_of_the_report() {
    let report = fixture();
    let page = page(&report);
    let data = between(&page, "<script type=\"application/json\" id=\"data\">", "</script>");
    let data: Value = serde_json::from_str(data).unwrap();
    assert_eq!(data["edges"].as_array().unwrap().len(), report.timeline.len() + 1);
    let peak = report.total.sum(gmmtrace::live::Sum::Gpu).unwrap().peak.0;
    let series = data["series"].as_object().unwrap().values();
    let sums = series.filter(|series| series["name"] == "gpu");
    let most = |series: &Value| {
        series["max"].as_array().unwrap().iter().filter_map(Value::as_u64).max().unwrap()
    };
    assert_eq!(sums.map(most).max(), Some(peak));
    let places = page.matches("data-hover=").count();
    assert_eq!(data["places"].as_array().unwrap().len(), places);
}

const EVIL: [&str; 5] = [
    "</script><script>alert(1)</script>",
    "\" onmouseover=\"alert(1)",
    "' onmouseover='alert(1)",
    "<img src=x onerror=alert(1)>&amp;]]>-->",
    "\0\u{1b}[2J\u{85}\u{2028}\u{fffe}\u{202e}",
];

#[test]
fn nothing_that_a_process_chose_leaves_its_place() {
    let clean = page(&read(&a_log().log()));
    let scripts = |page: &str| page.matches("<script").count();
    let long = "x".repeat(1 << 20);
    for evil in EVIL.into_iter().chain([long.as_str(), &String::from_utf8_lossy(b"\xff\xfe")]) {
        let mut report = read(&a_log().log());
        let name = Some(evil.to_owned());
        report.trace.path = evil.to_owned();
        let header = &mut report.process.header;
        header.command_line = vec![evil.to_owned(); 3];
        (header.executable, header.host) = (name.clone(), name.clone());
        header.environment = vec![format!("CUDA_X={evil}")];
        let shared: Option<Arc<str>> = Some(evil.into());
        let (library, api, call) = (shared.clone(), shared.clone(), shared.clone());
        let caller = shared.clone().map(|name| PythonLine {
            file: Arc::clone(&name),
            line: Some(1),
            function: name,
        });
        let site = SiteName { library, api, call, caller, others: 0 };
        for scope in &mut report.total.sums {
            scope.at_peak.held = vec![HeldReport {
                ledger: Ledger::Device,
                site: site.clone(),
                count: 1,
                bytes: Bytes(3 << 20),
                oldest: None,
            }];
        }
        report.total.live_at_end = report.total.sums[0].at_peak.held.clone();
        report.marks = vec![MarkReport { at: Nanos(7), text: evil.to_owned(), thread: None }];
        for call in &mut report.calls {
            call.api = shared.clone();
        }
        for passed in &mut report.coverage.passed_names {
            passed.name = evil.to_owned();
        }
        report.coverage.remarks = vec![evil.to_owned()];
        let page = page(&report);
        let wanted = ["script", "img", "onerror", "onmouseover"];
        for (element, attributes) in elements(&page) {
            assert!(!wanted.contains(&element.as_str()));
            assert!(attributes.iter().all(|(name, _)| !wanted.contains(&name.as_str())));
        }
        assert_eq!(scripts(&page), scripts(&clean));
        assert!(!page.contains(['\0', '\u{1b}', '\u{85}', '\u{2028}', '\u{202e}', '\u{fffe}']));
        assert!(page.len() < clean.len() + 50_000, "{}", page.len());
    }
}

#[test]
fn a_long_table_is_cut_and_says_so() {
    let mut report = read(&a_log().log());
    let mark = |index: i64| MarkReport { at: Nanos(index), text: "m".to_owned(), thread: None };
    report.marks = (0..2_000).map(mark).collect();
    report.mark_count = 2_000;
    let page = page(&report);
    assert!(page.contains("and 1,800 more in --format json"));
}

fn gmmtrace(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gmmtrace")).args(arguments).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let all = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        all.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn files_lie_beside_their_log_and_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("x.gmmt");
    fs::write(&log, a_log().bytes()).unwrap();
    let log = log.to_str().unwrap();
    for format in ["html", "svg", "png"] {
        let output = gmmtrace(&["report", log, "--format", format]);
        assert!(output.status.success(), "{}", said(&output));
        assert!(output.stdout.is_empty());
        assert!(said(&output).lines().all(|line| line.starts_with("gmmtrace: wrote ")));
    }
    let all = [
        "x.copies.png",
        "x.copies.svg",
        "x.fragmentation.png",
        "x.fragmentation.svg",
        "x.gmmt",
        "x.html",
        "x.peak.png",
        "x.peak.svg",
        "x.timeline.png",
        "x.timeline.svg",
    ];
    assert_eq!(names(folder.path()), all);
}

#[test]
fn one_picture_goes_to_the_file_that_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("x.gmmt");
    fs::write(&log, a_log().bytes()).unwrap();
    let out = folder.path().join("picture.png");
    let arguments = ["report", log.to_str().unwrap(), "-o", out.to_str().unwrap()];
    let more = ["--format", "png", "--picture", "peak", "--size", "640x480", "--theme", "dark"];
    let output = gmmtrace(&[arguments.as_slice(), more.as_slice()].concat());
    assert!(output.status.success(), "{}", said(&output));
    let file = fs::read(&out).unwrap();
    assert_eq!(&file[..8], b"\x89PNG\r\n\x1a\n");
    assert_eq!(
        &file[16..24],
        &[0, 0, 640u32.to_be_bytes()[2], 640u32.to_be_bytes()[3], 0, 0, 1, 0xe0]
    );
}

#[test]
fn nothing_is_overwritten_and_nothing_written_when_one_file_exists() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("x.gmmt");
    fs::write(&log, a_log().bytes()).unwrap();
    fs::write(folder.path().join("x.copies.svg"), "mine").unwrap();
    let log = log.to_str().unwrap();
    let output = gmmtrace(&["report", log, "--format", "svg"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("x.copies.svg: exists already"), "{}", said(&output));
    assert_eq!(names(folder.path()), ["x.copies.svg", "x.gmmt"]);
    let output = gmmtrace(&["report", log, "--format", "svg", "--force"]);
    assert!(output.status.success(), "{}", said(&output));
    assert_ne!(fs::read(folder.path().join("x.copies.svg")).unwrap(), b"mine");
}

#[test]
fn a_log_is_never_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("x.gmmt");
    fs::write(&log, a_log().bytes()).unwrap();
    let path = log.to_str().unwrap();
    for format in ["html", "svg", "png"] {
        let output = gmmtrace(&["report", path, "--format", format, "-o", path, "--force"]);
        assert_eq!(output.status.code(), Some(2));
        assert!(said(&output).contains("is an input"), "{}", said(&output));
    }
    assert_eq!(fs::read(&log).unwrap(), a_log().bytes());
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("x.gmmt");
    fs::write(&log, a_log().bytes()).unwrap();
    fs::write(folder.path().join("y.gmmt"), a_log().bytes()).unwrap();
    let (log, all) = (log.to_str().unwrap(), folder.path().to_str().unwrap());
    let out = folder.path().join("out");
    let out = out.to_str().unwrap();
    for arguments in [
        ["report", log, "--format", "svg", "--size", "0x0"].as_slice(),
        &["report", log, "--format", "svg", "--size", "99999x99999"],
        &["report", log, "--size", "800x600"],
        &["report", log, "--format", "html", "--picture", "peak"],
        &["report", all, "--format", "svg", "-o", out],
        &["report", log, log, "--format", "html"],
    ] {
        let output = gmmtrace(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?} {}", said(&output));
        assert!(!said(&output).is_empty());
    }
    assert_eq!(names(folder.path()), ["x.gmmt", "y.gmmt"]);
}
