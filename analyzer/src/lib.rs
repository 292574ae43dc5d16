//! Rebuilds a process's GPU memory from its gmmtrace log.
//!
//! The line of data, one module each:
//!
//! ```text
//! input → order → live → analysis → report → render
//! ```
//!
//! `input` opens a log and reads what stands still in it: header, chunk headers, definitions.
//! `order` decodes the events in parallel and hands them on by time. `live` is the one state
//! machine that applies them. Each `analysis` reads the state and answers one question; `report`
//! is the model of the answers; `render` writes it. `cli` holds one file per command.
//!
//! Logs are hostile input: nothing here panics on one, and damage is data (`input::Salvage`).
#![forbid(unsafe_code)]

pub mod analysis;
pub mod cli;
pub mod diff;
pub mod error;
pub mod input;
pub mod live;
pub mod order;
pub mod render;
pub mod report;
pub mod symbols;
pub mod units;

pub use error::Error;
