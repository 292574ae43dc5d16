//! The gmmtrace log format: layout, event kinds, codec and errors.
//!
//! `docs/trace-format.md` is normative; this crate is its one implementation in code. The
//! interposer encodes with it from inside a stranger's process, the analyzer decodes with it
//! from files nobody vouches for. Both therefore get the same promises: no panic, no
//! allocation, no `unsafe`, no I/O. Decoders return typed errors with the offending value and
//! its offset. Everything is little-endian.
#![no_std]
#![forbid(unsafe_code)]

pub mod definition;
pub mod error;
pub mod event;
pub mod header;
pub mod kind;
pub mod layout;
pub mod varint;

pub use definition::Definition;
pub use error::DecodeError;
pub use event::{Codec, Event, Flags};
pub use header::{ChunkHeader, FileHeader};
pub use kind::{Kind, Operand, Shapes};
