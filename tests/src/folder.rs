//! Folders that go away with the test that made them.

use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

/// A new, empty folder. It stays when the test fails.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// A new folder under the system's folder for temporary files.
    #[must_use]
    pub fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("gmmtrace-test-{}-{count}", process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a temporary folder can be made");
        Self(path.canonicalize().expect("the folder was just made"))
    }

    /// The logs in it, by name.
    #[must_use]
    pub fn logs(&self) -> Vec<PathBuf> {
        let is_log = |name: &str| {
            let stem = name.trim_end_matches(|end: char| end.is_ascii_digit());
            name.ends_with(".gmmt") || stem.ends_with(".gmmt.")
        };
        let mut found: Vec<PathBuf> = self.entries();
        found.retain(|path| path.file_name().and_then(|name| name.to_str()).is_some_and(is_log));
        found
    }

    /// Everything in it, by name.
    #[must_use]
    pub fn entries(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.0).expect("the folder is there");
        let mut paths: Vec<PathBuf> =
            entries.map(|entry| entry.expect("the folder can be read").path()).collect();
        paths.sort();
        paths
    }
}

impl Default for Folder {
    fn default() -> Self {
        Self::new()
    }
}

impl Deref for Folder {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        let _ = fs::remove_dir_all(&self.0);
    }
}
