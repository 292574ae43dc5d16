//! Support of the end-to-end tests: real programs under the real library, read by the real
//! binary.
//!
//! [`products`] builds what is tested, [`programs`] what it is tested on; each once, in a folder
//! of its own below the target folder. [`Run`] starts a program, [`report`] asks the binary
//! about a log, and [`tally`] holds the one against the other.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test support")]

mod build;
mod folder;
mod process;
mod reading;
mod run;
pub mod tally;

pub use build::{
    Products, Recipe, binutils, fake_cuda, known_programs, products, programs, programs_source,
};
pub use folder::Folder;
pub use process::{Captured, capture};
pub use reading::{gmmtrace, number, report};
pub use run::{Outcome, Run, Running, keys_of};
