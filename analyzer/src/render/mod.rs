//! One output per file. A renderer computes nothing: it writes what the model says.

pub mod diff;
pub mod html;
pub mod json;
pub mod picture;
mod table;
pub mod text;
mod words;

pub use table::{Align, Table, clean, counted, grouped, share};
