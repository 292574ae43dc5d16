//! `gmmtrace completions SHELL` and `gmmtrace man`: what a shell and `man` want to know, made from
//! the definition of the command line.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Command;

use super::output::Output;
use crate::Error;

/// Arguments of `completions`.
#[derive(clap::Args)]
pub struct Completions {
    /// For which shell.
    #[arg(value_enum)]
    shell: clap_complete::Shell,
}

/// Arguments of `man`.
#[derive(clap::Args)]
pub struct Man {
    /// Write one page per command into this directory, instead of the first page to stdout.
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Overwrite pages that exist.
    #[arg(long)]
    force: bool,
}

/// Prints completions.
///
/// # Errors
/// When stdout cannot be written to.
pub fn completions(arguments: &Completions, mut command: Command) -> Result<u8, Error> {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, "gmmtrace", &mut text);
    to_stdout(&text)
}

/// Writes manual pages.
///
/// # Errors
/// When one cannot be written.
pub fn man(arguments: &Man, mut command: Command) -> Result<u8, Error> {
    command.build();
    let Some(folder) = &arguments.output else {
        return to_stdout(&page(command).map_err(Error::Output)?);
    };
    std::fs::create_dir_all(folder).map_err(|error| Error::path("make", folder, error))?;
    let pages = command.get_subcommands().filter(|command| command.get_name() != "help");
    let pages: Vec<Command> = pages.cloned().collect();
    write(folder, "gmmtrace", command, arguments.force)?;
    for command in pages {
        let name = format!("gmmtrace-{}", command.get_name());
        write(folder, &name, command, arguments.force)?;
    }
    Ok(0)
}

fn page(command: Command) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    clap_mangen::Man::new(command).render(&mut text)?;
    Ok(text)
}

fn write(folder: &Path, name: &str, command: Command, force: bool) -> Result<(), Error> {
    let path = folder.join(format!("{name}.1"));
    let mut output = Output::open(Some(&path), force, &[])?;
    let written = page(command).and_then(|text| output.writer().write_all(&text));
    written.map_err(|error| output.failed(error))?;
    output.finish()
}

fn to_stdout(text: &[u8]) -> Result<u8, Error> {
    io::stdout().lock().write_all(text).map_err(Error::Output)?;
    Ok(0)
}
