//! Events by time.
//!
//! Chunks are decoded in parallel and merged by the stamp at which each event takes effect. At
//! equal stamps what takes away comes before what adds, then threads by ordinal, then the order
//! in which a thread wrote. No event of a chunk takes effect before the chunk's base, so a chunk
//! is opened only when the merge gets there: memory follows the number of threads that write at
//! the same time, not the length of the log.

mod decode;
mod merge;
mod record;

pub use decode::{Decoded, LaneStart, Window, decode};
pub use merge::{Outcome, Sink, run};
pub use record::Record;
