//! Where the product goes: stdout, or a file that did not exist before.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::Error;

/// An output that is open.
pub struct Output {
    path: Option<PathBuf>,
    writer: Box<dyn Write>,
}

impl Output {
    /// stdout, or a new file; an existing file is overwritten only by `force`, and none of
    /// `inputs` ever is.
    ///
    /// # Errors
    /// When the file exists, is an input, or cannot be made.
    pub fn open(path: Option<&Path>, force: bool, inputs: &[PathBuf]) -> Result<Self, Error> {
        let Some(path) = path else {
            let writer = Box::new(BufWriter::with_capacity(1 << 16, io::stdout().lock()));
            return Ok(Self { path: None, writer });
        };
        let same = |input: &PathBuf| match (fs::canonicalize(input), fs::canonicalize(path)) {
            (Ok(input), Ok(output)) => input == output,
            _ => false,
        };
        if inputs.iter().any(same) {
            let text = format!("{}: is an input, and would be overwritten", path.display());
            return Err(Error::Said(text));
        }
        let writer = Box::new(BufWriter::new(create(path, force)?));
        Ok(Self { path: Some(path.to_path_buf()), writer })
    }

    /// Where to write.
    pub fn writer(&mut self) -> &mut dyn Write {
        &mut self.writer
    }

    /// An error of [`Self::writer`], naming the file.
    #[must_use]
    pub fn failed(&self, error: io::Error) -> Error {
        match &self.path {
            Some(path) => Error::path("write", path, error),
            None => Error::Output(error),
        }
    }

    /// Writes what is still buffered.
    ///
    /// # Errors
    /// When it could not be written.
    pub fn finish(mut self) -> Result<(), Error> {
        let done = self.writer.flush();
        done.map_err(|error| self.failed(error))
    }
}

fn create(path: &Path, force: bool) -> Result<File, Error> {
    let mut options = OpenOptions::new();
    options.write(true);
    if force {
        options.create(true).truncate(true);
    } else {
        options.create_new(true);
    }
    options.open(path).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => Error::Exists(path.to_path_buf()),
        _ => Error::path("write", path, error),
    })
}
