//! Where the product goes: stdout, or a file that did not exist before.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::Error;

/// An output that is open.
pub struct Output {
    path: Option<PathBuf>,
    writer: Box<dyn Write>,
}

impl Output {
    /// stdout, or a new file; an existing file is overwritten only by `force`, and none of
    /// `inputs` ever is. Nobody may read the file who may not read all of them.
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
        let writer = Box::new(BufWriter::new(create(path, force, mode(inputs))?));
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

/// The file that `-o` names; `None` when that is stdout, also by its usual name.
#[must_use]
pub fn target(path: Option<&Path>) -> Option<&Path> {
    path.filter(|path| path.as_os_str() != "-")
}

/// Refuses a file that exists before anything is read.
///
/// # Errors
/// When it exists, and is not to be overwritten.
pub fn refuse_existing(path: Option<&Path>, force: bool) -> Result<(), Error> {
    match path.filter(|path| path.exists() && !force) {
        Some(path) => Err(Error::Exists(path.to_path_buf())),
        None => Ok(()),
    }
}

/// What everybody may do with every one of the inputs, of reading and writing.
fn mode(inputs: &[PathBuf]) -> u32 {
    let modes = inputs.iter().filter_map(|input| fs::metadata(input).ok());
    let files = modes.filter(std::fs::Metadata::is_file);
    files.fold(0o666, |all, input| all & input.permissions().mode())
}

/// Makes the file. One that is overwritten loses what is more than `mode`.
fn create(path: &Path, force: bool, mode: u32) -> Result<File, Error> {
    let mut options = OpenOptions::new();
    // Who writes it may always read it again.
    options.write(true).mode(mode | 0o600);
    if force {
        options.create(true).truncate(true);
    } else {
        options.create_new(true);
    }
    let file = options.open(path).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => Error::Exists(path.to_path_buf()),
        _ => Error::path("write", path, error),
    })?;
    let told = |error| Error::path("write", path, error);
    let found = file.metadata().map_err(told)?;
    let narrower = found.permissions().mode() & (mode | 0o600);
    if found.is_file() && narrower != found.permissions().mode() & 0o777 {
        file.set_permissions(fs::Permissions::from_mode(narrower)).map_err(told)?;
    }
    Ok(file)
}
