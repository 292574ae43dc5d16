//! Logs of real programs on real hardware are read as they were when they were kept.
#![forbid(unsafe_code)]

use std::fs;
use std::path::Path;

use gmmtrace::cli::report::read;
use gmmtrace::render::text;

#[test]
fn every_kept_log_has_the_report_that_was_kept_with_it() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures");
    let mut read_logs = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "gmmt") {
            continue;
        }
        let mut report = read(&path).unwrap();
        report.trace.path = path.file_name().unwrap().to_string_lossy().into_owned();
        let mut text = Vec::new();
        text::write(&report, &mut text).unwrap();
        let kept = fs::read_to_string(path.with_extension("txt")).unwrap();
        assert_eq!(String::from_utf8(text).unwrap().trim_end(), kept.trim_end(), "{path:?}");
        read_logs += 1;
    }
    assert!(read_logs > 0);
}
