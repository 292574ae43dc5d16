//! From a trace argument to logs: a file stands for itself, a directory for the logs in it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Error;

/// Extension of a log's name.
pub const EXTENSION: &str = "gmmt";

/// The logs that `path` stands for, by name.
///
/// # Errors
/// When the path cannot be read, or is a directory without a log.
pub fn logs(path: &Path) -> Result<Vec<PathBuf>, Error> {
    let told = |source| Error::path("read", path, source);
    if !fs::metadata(path).map_err(told)?.is_dir() {
        return Ok(vec![path.to_path_buf()]);
    }
    let mut found = Vec::new();
    for entry in fs::read_dir(path).map_err(told)? {
        let candidate = entry.map_err(told)?.path();
        if is_log_name(&candidate) {
            found.push(candidate);
        }
    }
    if found.is_empty() {
        return Err(Error::NoLogs(path.to_path_buf()));
    }
    found.sort();
    Ok(found)
}

/// Names end in `.gmmt`, or `.gmmt.1` and so on after a collision.
#[must_use]
pub fn is_log_name(path: &Path) -> bool {
    let extension = |path: &Path| path.extension().and_then(|end| end.to_str()).map(str::to_owned);
    match extension(path) {
        Some(end) if end == EXTENSION => true,
        Some(end) if !end.is_empty() && end.bytes().all(|byte| byte.is_ascii_digit()) => {
            let stem = path.with_extension("");
            extension(&stem).is_some_and(|end| end == EXTENSION)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_known_by_its_name_also_after_a_collision() {
        let known = |name: &str| is_log_name(Path::new(name));
        assert!(known("a/gmmtrace.python.7.gmmt") && known("x.gmmt.12"));
        assert!(!known("x.gmmt.old") && !known("gmmt") && !known("x.12"));
    }
}
