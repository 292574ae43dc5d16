//! Where the interpreters that we read keep what we read: offsets in bytes, by version.
//!
//! Taken from the headers of each version; a version that no test runs on is not here. CPython
//! keeps its structures within a minor version.

/// Offsets of one version of CPython, 64 bits, with a GIL.
pub struct Layout {
    /// 256 × major + minor.
    pub version: u32,
    /// In `PyThreadState`: the `_PyCFrame` that holds the innermost frame; 0 in versions where the
    /// state itself holds it.
    pub cframe: u64,
    /// In `PyThreadState`: what `pthread_self` says.
    pub thread_id: u64,
    /// In `_PyCFrame`, or in the state: the innermost frame.
    pub current_frame: u64,
    /// In `_PyInterpreterFrame`: the code object.
    pub code: u64,
    /// In `_PyInterpreterFrame`: the caller's frame.
    pub previous: u64,
    /// In `_PyInterpreterFrame`: the instruction that it stands at.
    pub instruction: u64,
    /// In `_PyInterpreterFrame`: who owns it, one byte.
    pub owner: u64,
    /// In `_PyInterpreterFrame`: whether it is the outermost of its evaluation loop, one byte. 0
    /// in versions that put a frame of their own above it, with the owner [`C_STACK`].
    pub is_entry: u64,
    /// In `PyCodeObject`: instructions before this one belong to no line, four bytes.
    pub first_traceable: u64,
    /// In `PyCodeObject`: the number of its variables, four bytes.
    pub variables: u64,
    /// In `PyCodeObject`: a number that no other code object of the interpreter has or had, four
    /// bytes, or 0 when they ran out. 0 in versions without.
    pub unique: u64,
    /// In `PyCodeObject`: the first line, four bytes.
    pub first_line: u64,
    /// In `PyCodeObject`: the file's name.
    pub file: u64,
    /// In `PyCodeObject`: the qualified name.
    pub name: u64,
    /// In `PyCodeObject`: the table of lines, bytes.
    pub lines: u64,
    /// In `PyCodeObject`: the instructions.
    pub instructions: u64,
    /// Length of `PyASCIIObject`: where the characters of an ASCII text begin.
    pub ascii: u64,
    /// Length of `PyCompactUnicodeObject`: where those of others begin.
    pub compact: u64,
}

/// Owners of frames.
pub const GENERATOR: u8 = 1;
/// The frame is no function's: an evaluation loop put it above the outermost that it runs.
pub const C_STACK: u8 = 3;
/// In every object: its type.
pub const TYPE: u64 = 8;
/// In `bytes`, texts and code objects: the length.
pub const LENGTH: u64 = 16;
/// In a text: how it is kept, as bits.
pub const TEXT_STATE: u64 = 32;
/// In `bytes`: the first one.
pub const BYTES: u64 = 32;

/// Every version that is read.
pub static LAYOUTS: [Layout; 3] = [
    Layout {
        version: 0x30b,
        cframe: 56,
        thread_id: 152,
        current_frame: 8,
        code: 32,
        previous: 48,
        instruction: 56,
        owner: 69,
        is_entry: 68,
        first_traceable: 168,
        variables: 76,
        unique: 0,
        first_line: 72,
        file: 112,
        name: 128,
        lines: 136,
        instructions: 184,
        ascii: 48,
        compact: 72,
    },
    Layout {
        version: 0x30c,
        cframe: 56,
        thread_id: 136,
        current_frame: 0,
        code: 0,
        previous: 8,
        instruction: 56,
        owner: 70,
        is_entry: 0,
        first_traceable: 176,
        variables: 72,
        unique: 92,
        first_line: 68,
        file: 112,
        name: 128,
        lines: 136,
        instructions: 192,
        ascii: 40,
        compact: 56,
    },
    Layout {
        version: 0x30d,
        cframe: 0,
        thread_id: 152,
        current_frame: 72,
        code: 0,
        previous: 8,
        instruction: 56,
        owner: 70,
        is_entry: 0,
        first_traceable: 184,
        variables: 72,
        unique: 92,
        first_line: 68,
        file: 112,
        name: 128,
        lines: 136,
        instructions: 200,
        ascii: 40,
        compact: 56,
    },
];
