//! What can be wrong with bytes that claim to be a log.

use core::fmt;

/// A decoding failure: what was found, and where, counted from the start of the slice given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// The slice ends inside a field.
    Truncated {
        /// Where the field starts.
        offset: usize,
    },
    /// A varint that runs past 64 bits, or past the 32 bits of its field.
    Overlong {
        /// Where the varint starts.
        offset: usize,
    },
    /// An event kind that neither this crate nor the file's own table describes.
    UnknownKind {
        /// The kind byte.
        kind: u8,
        /// Where the event starts.
        offset: usize,
    },
    /// The file does not start with the magic number.
    NotALog,
    /// The header was never published: its writer died, or is still writing it.
    Unpublished,
    /// The file was written by a format this crate cannot read.
    OtherVersion {
        /// Major version in the file.
        major: u16,
        /// Minor version in the file.
        minor: u16,
    },
    /// A header field with an impossible value.
    BadHeader {
        /// Offset of the field.
        offset: usize,
        /// Its value.
        value: u64,
    },
    /// A definition whose length word is impossible.
    BadDefinition {
        /// Where the definition starts.
        offset: usize,
        /// Its length word.
        word: u32,
    },
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Truncated { offset } => write!(f, "cut off inside a field at byte {offset}"),
            Self::Overlong { offset } => {
                write!(f, "number too large for its field at byte {offset}")
            }
            Self::UnknownKind { kind, offset } => {
                write!(f, "unknown event kind {kind:#04x} at byte {offset}")
            }
            Self::NotALog => write!(f, "not a gmmtrace log"),
            Self::Unpublished => write!(f, "an unfinished log: its header was never published"),
            Self::OtherVersion { major, minor } => write!(
                f,
                "written in format {major}.{minor}, and this program reads format {}.x",
                crate::layout::MAJOR
            ),
            Self::BadHeader { offset, value } => {
                write!(f, "impossible header value {value:#x} at byte {offset}")
            }
            Self::BadDefinition { offset, word } => {
                write!(f, "impossible definition word {word:#010x} at byte {offset}")
            }
        }
    }
}

impl core::error::Error for DecodeError {}
