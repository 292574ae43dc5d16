//! What can keep a command from doing its work. Told once, in `main`.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use gmmtrace_format::DecodeError;

/// Why a command could not do what it was asked to.
#[derive(Debug)]
pub enum Error {
    /// The system refused something to do with a path.
    Path {
        /// What was to be done, as a verb: `read`, `write`.
        doing: &'static str,
        /// Where.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file without a byte in it.
    Empty(PathBuf),
    /// A file that cannot be read as a log.
    NotReadable(PathBuf, DecodeError),
    /// A directory without a log.
    NoLogs(PathBuf),
    /// A file that exists and was not to be overwritten.
    Exists(PathBuf),
    /// Writing the product failed.
    Output(io::Error),
    /// Anything else, in one sentence.
    Said(String),
}

impl Error {
    /// An error about a path.
    #[must_use]
    pub fn path(doing: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Path { doing, path: path.to_path_buf(), source }
    }

    /// Whether the reader of our output has gone away, which is no failure of ours.
    #[must_use]
    pub fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path { doing, path, source } => {
                write!(f, "{}: cannot {doing}: {}", path.display(), said(source))
            }
            Self::Empty(path) => write!(f, "{}: the file is empty", path.display()),
            Self::NotReadable(path, error) => write!(f, "{}: {error}", path.display()),
            Self::NoLogs(path) => {
                write!(f, "{}: the directory holds no gmmtrace log (*.gmmt)", path.display())
            }
            Self::Exists(path) => {
                write!(f, "{}: exists already; --force overwrites it", path.display())
            }
            Self::Output(error) => write!(f, "cannot write: {}", said(error)),
            Self::Said(sentence) => f.write_str(sentence),
        }
    }
}

impl std::error::Error for Error {}

/// The system's words without its number, lower-case.
fn said(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or(&text);
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}
