//! `gmmtrace demo`: a real program, recorded through the real preload path, on a simulated GPU.

use std::env;
use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::Command;

use super::{preload, report};
use crate::Error;

/// Arguments of `demo`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Where the simulated CUDA and the log go; kept. Default: a new folder for temporary files.
    #[arg(short, long, value_name = "DIRECTORY")]
    pub output: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
/// When the folder cannot be written to or the program not be run.
pub fn run(arguments: &Arguments) -> Result<u8, Error> {
    let folder = arguments
        .output
        .clone()
        .unwrap_or_else(|| env::temp_dir().join(format!("gmmtrace-demo.{}", std::process::id())));
    let told = |error| Error::path("write to", &folder, error);
    fs::create_dir_all(&folder).map_err(told)?;
    let simulated = gmmtrace_fake_cuda::unpack(&folder.join("simulated-cuda")).map_err(told)?;
    let out = |text: &str| writeln!(io::stdout().lock(), "{text}").map_err(Error::Output);
    out(
        "A small inference service runs on a SIMULATED GPU: driver and runtime are stand-ins, the",
    )?;
    out("program, the preloaded library, the log and the report are real. The service leaks.\n")?;
    let mut command = Command::new(&simulated.demo_service);
    command.env("LD_LIBRARY_PATH", &simulated.libraries);
    let recorded = preload::record(command, Some(&folder))?;
    let Some(log) = recorded.own else {
        return Err(Error::Said(format!("{}: the demo left no log", folder.display())));
    };
    out("")?;
    report::print_text(&log, &mut io::stdout().lock())?;
    let program = env::args().next().unwrap_or_else(|| "gmmtrace".to_owned());
    out(&format!("\nThe log is {}; read on with", log.display()))?;
    out(&format!("    {program} dump {}", log.display()))?;
    out(&format!("    {program} report --format json {}", log.display()))?;
    out(&format!("    {program} report --format html {}", log.display()))?;
    Ok(u8::from(!recorded.status.success()))
}
