//! How to get from a function's frame to that of its caller, by the unwind tables that compilers
//! write beside the code (`.eh_frame`, found through `.eh_frame_hdr`), for x86-64.
//!
//! Of the machine's registers only the stack pointer and the frame pointer are followed: these are
//! what callers' frames are found by. A frame that is found in another way has no rule. The code
//! runs inside a stranger's process: it never panics, allocates or locks, and reads nothing outside
//! of the object that it was told of.
//!
//! The tables are described in the Linux Standard Base ("Exception Frames") and in DWARF 5,
//! section 6.4.
#![no_std]

mod program;
mod reader;
mod rule;

pub use rule::Rule;

use program::Program;
use reader::{Pointer, Reader};

/// An object that is mapped in this process.
#[derive(Clone, Copy, Debug)]
pub struct Object {
    /// Address of its first byte.
    pub start: u64,
    /// Address behind its last byte.
    pub end: u64,
    /// Address of its `.eh_frame_hdr`.
    pub header: u64,
}

/// Encoding of the sorted table in all linkers' output: offsets of four bytes from the header.
const TABLE: u8 = 0x3b;

/// The rule at an address of the object's code, [`Rule::Unknown`] where the tables have none or one
/// that is not followed.
///
/// # Safety
/// All of `object` can be read.
#[must_use]
pub unsafe fn rule(object: &Object, address: u64) -> Rule {
    // SAFETY: the caller's promise.
    unsafe { find(object, address) }.unwrap_or(Rule::Unknown)
}

unsafe fn find(object: &Object, address: u64) -> Option<Rule> {
    // SAFETY: the caller's promise holds for every reader made here and below.
    let mut header = unsafe { Reader::new(object, object.header) }?;
    let [version, frames, count, table] =
        [header.byte()?, header.byte()?, header.byte()?, header.byte()?];
    if version != 1 || table != TABLE {
        return None;
    }
    header.pointer(Pointer(frames))?;
    let count = header.pointer(Pointer(count))?;
    let rows = header.at();
    // The last row that begins at or before the address.
    let (mut low, mut high) = (0, count.min((object.end.saturating_sub(rows)) / 8));
    while low < high {
        let middle = low + (high - low) / 2;
        // SAFETY: as above.
        let mut row = unsafe { Reader::new(object, rows + middle * 8) }?;
        if object.header.wrapping_add_signed(i64::from(row.i32()?)) <= address {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    let row = rows + low.checked_sub(1)? * 8;
    // SAFETY: as above.
    let mut row = unsafe { Reader::new(object, row + 4) }?;
    let entry = object.header.wrapping_add_signed(i64::from(row.i32()?));
    // SAFETY: as above.
    unsafe { Program::of(object, entry)?.rule(address) }
}
