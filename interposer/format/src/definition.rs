//! Definitions: what the ids in events mean. They stand in dictionary chunks, which any thread
//! may append to and which are never recycled.
//!
//! A definition is framed by one 32-bit word: its length in bytes, the word included (bits 0 to
//! 23, a multiple of 8), its kind (bits 24 to 30), and whether it is complete (bit 31). The
//! word is claimed by compare-and-swap, so a writer that dies leaves a length to step over.

use crate::error::DecodeError;
use crate::varint::{Input, Output};

/// Set in the word once the definition is complete.
pub const COMPLETE: u32 = 1 << 31;
/// The length in the word.
pub const LENGTH: u32 = (1 << 24) - 1;
/// Definitions start and end at multiples of this.
pub const ALIGN: usize = 8;
/// No definition is longer.
pub const MAX_DEFINITION: usize = 4600;

/// Which layer an entry point belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Layer {
    /// libcuda.
    Driver = 1,
    /// libcudart.
    Runtime = 2,
    /// gmmtrace's own: marks and samples.
    Own = 3,
    /// PyTorch's libc10.
    Framework = 4,
}

impl Layer {
    /// The layer with this code.
    #[must_use]
    pub const fn from_code(code: u64) -> Option<Self> {
        match code {
            1 => Some(Self::Driver),
            2 => Some(Self::Runtime),
            3 => Some(Self::Own),
            4 => Some(Self::Framework),
            _ => None,
        }
    }
}

/// How an entry point was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Resolver {
    /// `dlsym`.
    Dlsym = 1,
    /// `dlvsym`.
    Dlvsym = 2,
    /// `cuGetProcAddress` and `cuGetProcAddress_v2`.
    GetProcAddress = 3,
}

impl Resolver {
    /// The resolver with this code.
    #[must_use]
    pub const fn from_code(code: u64) -> Option<Self> {
        match code {
            1 => Some(Self::Dlsym),
            2 => Some(Self::Dlvsym),
            3 => Some(Self::GetProcAddress),
            _ => None,
        }
    }

    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dlsym => "dlsym",
            Self::Dlvsym => "dlvsym",
            Self::GetProcAddress => "cuGetProcAddress",
        }
    }
}

/// One definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Definition<'a> {
    /// Entry point `id` is called `name`.
    Api {
        /// Id in sites and in-flight words.
        id: u32,
        /// [`Layer`] code.
        layer: u64,
        /// The symbol.
        name: &'a [u8],
    },
    /// A loaded object.
    Module {
        /// Id in sites and lookups, from 1.
        id: u32,
        /// First address.
        start: u64,
        /// Address after the last.
        end: u64,
        /// GNU build id, or nothing.
        build_id: &'a [u8],
        /// Path as the loader knows it; empty for the executable.
        path: &'a [u8],
    },
    /// A call site.
    Site {
        /// Id in events, from 1.
        id: u32,
        /// The entry point that made the event.
        api: u32,
        /// The runtime entry point around it, or 0.
        outer: u32,
        /// Return address of the outermost hooked call.
        address: u64,
        /// Module of that address, or 0 when unknown.
        module: u32,
    },
    /// An entry point was asked for.
    Lookup {
        /// [`Resolver`] code.
        resolver: u64,
        /// Whether a hook was handed out.
        hooked: bool,
        /// CUDA version asked for, 0 for none.
        version: u64,
        /// Flags asked with.
        flags: u64,
        /// How often, when this was written.
        count: u64,
        /// Module of the caller, or 0.
        module: u32,
        /// The name asked for.
        name: &'a [u8],
    },
    /// A remark of the recorder.
    Remark {
        /// The text.
        text: &'a [u8],
    },
    /// A GPU of this machine.
    Gpu {
        /// CUDA's or NVML's ordinal.
        index: u32,
        /// Memory in bytes.
        total: u64,
        /// Its UUID, as text.
        uuid: &'a [u8],
        /// Its name.
        name: &'a [u8],
    },
    /// The driver's version.
    Driver {
        /// As NVML tells it, for example `580.159.04`.
        version: &'a [u8],
    },
    /// A Python code object: what a function, a module's body or a comprehension was compiled to.
    Code {
        /// Id in frames, from 1.
        id: u32,
        /// Line of the source where it begins.
        first_line: u64,
        /// File as the interpreter names it; not always one that exists.
        file: &'a [u8],
        /// Qualified name, or the plain one of interpreters without it.
        name: &'a [u8],
    },
    /// A piece of the table that tells the lines of a code object.
    CodeLines {
        /// The code object.
        code: u32,
        /// How the table is written, as 256 × major + minor version of the interpreter.
        version: u64,
        /// Length of the whole table in bytes.
        total: u64,
        /// Where in it the piece stands.
        offset: u64,
        /// The piece.
        bytes: &'a [u8],
    },
    /// A Python frame that is in a call.
    PythonFrame {
        /// Id in nodes, from 1; one row of ids for all frames.
        id: u32,
        /// Its code object.
        code: u32,
        /// Byte offset of the instruction that it stands at, plus 1; 0 when it is not known.
        at: u64,
        /// 1 when it is the outermost that its evaluation loop, a native frame, runs.
        entry: u64,
    },
    /// A native frame.
    NativeFrame {
        /// Id in nodes, from 1; one row of ids for all frames.
        id: u32,
        /// Where it will go on: the return address.
        address: u64,
        /// Module of that address, or 0 when unknown.
        module: u32,
    },
    /// Frames that could not be read stand here.
    FrameGap {
        /// Id in nodes, from 1; one row of ids for all frames.
        id: u32,
        /// A [`gap`] reason.
        reason: u64,
    },
    /// A frame beneath the frames that called it.
    Node {
        /// Id in stacks and nodes, from 1.
        id: u32,
        /// The node of its caller, or 0 for none.
        parent: u32,
        /// The frame.
        frame: u32,
    },
    /// A call site with what called it.
    Stack {
        /// Id in events; the ids of sites go on here.
        id: u32,
        /// The call site.
        site: u32,
        /// Innermost Python frame, as a node, or 0.
        python: u32,
        /// Innermost native frame, as a node, or 0.
        native: u32,
    },
    /// A kind that this crate does not know.
    Unknown {
        /// Its number.
        kind: u8,
    },
}

/// Definition kinds. Append-only.
mod kind {
    pub const API: u8 = 1;
    pub const MODULE: u8 = 2;
    pub const SITE: u8 = 3;
    pub const LOOKUP: u8 = 4;
    pub const REMARK: u8 = 5;
    pub const GPU: u8 = 6;
    pub const DRIVER: u8 = 7;
    pub const CODE: u8 = 8;
    pub const CODE_LINES: u8 = 9;
    pub const PYTHON_FRAME: u8 = 10;
    pub const NATIVE_FRAME: u8 = 11;
    pub const FRAME_GAP: u8 = 12;
    pub const NODE: u8 = 13;
    pub const STACK: u8 = 14;
}

/// Why frames are missing from a stack.
pub mod gap {
    /// The stack is deeper than the recorder reads.
    pub const DEPTH: u64 = 1;
    /// No rule says how to go on from an address: code made at run time, or without tables.
    pub const NO_RULE: u64 = 2;
    /// What should be there does not lie in the thread's stack.
    pub const UNREADABLE: u64 = 3;
    /// What was read is not what the interpreter should have.
    pub const DOUBT: u64 = 4;
    /// Every reason with its name in reports.
    pub const NAMES: [(u64, &str); 4] =
        [(DEPTH, "depth"), (NO_RULE, "no_rule"), (UNREADABLE, "unreadable"), (DOUBT, "doubt")];
}

impl<'a> Definition<'a> {
    /// Writes the body (what stands behind the word) to `out` and returns the complete word,
    /// with a length that is a multiple of [`ALIGN`]. `None` when the body and the bytes that
    /// fill it up to that length do not fit; `out` is to be zeroed, for they are not written.
    pub fn encode(&self, out: &mut [u8]) -> Option<u32> {
        let room = out.len();
        let mut output = Output::new(out);
        let kind = match *self {
            Self::Api { id, layer, name } => {
                output.number(u64::from(id));
                output.number(layer);
                output.text(name);
                kind::API
            }
            Self::Module { id, start, end, build_id, path } => {
                output.number(u64::from(id));
                output.number(start);
                output.number(end);
                output.text(build_id);
                output.text(path);
                kind::MODULE
            }
            Self::Site { id, api, outer, address, module } => {
                for value in [id, api, outer] {
                    output.number(u64::from(value));
                }
                output.number(address);
                output.number(u64::from(module));
                kind::SITE
            }
            Self::Lookup { resolver, hooked, version, flags, count, module, name } => {
                let fields = [resolver, u64::from(hooked), version, flags, count];
                for value in fields {
                    output.number(value);
                }
                output.number(u64::from(module));
                output.text(name);
                kind::LOOKUP
            }
            Self::Remark { text } => {
                output.text(text);
                kind::REMARK
            }
            Self::Gpu { index, total, uuid, name } => {
                output.number(u64::from(index));
                output.number(total);
                output.text(uuid);
                output.text(name);
                kind::GPU
            }
            Self::Driver { version } => {
                output.text(version);
                kind::DRIVER
            }
            Self::Code { id, first_line, file, name } => {
                output.number(u64::from(id));
                output.number(first_line);
                output.text(file);
                output.text(name);
                kind::CODE
            }
            Self::CodeLines { code, version, total, offset, bytes } => {
                for value in [u64::from(code), version, total, offset] {
                    output.number(value);
                }
                output.text(bytes);
                kind::CODE_LINES
            }
            Self::PythonFrame { id, code, at, entry } => {
                for value in [u64::from(id), u64::from(code), at, entry] {
                    output.number(value);
                }
                kind::PYTHON_FRAME
            }
            Self::NativeFrame { id, address, module } => {
                for value in [u64::from(id), address, u64::from(module)] {
                    output.number(value);
                }
                kind::NATIVE_FRAME
            }
            Self::FrameGap { id, reason } => {
                output.number(u64::from(id));
                output.number(reason);
                kind::FRAME_GAP
            }
            Self::Node { id, parent, frame } => {
                for value in [id, parent, frame] {
                    output.number(u64::from(value));
                }
                kind::NODE
            }
            Self::Stack { id, site, python, native } => {
                for value in [id, site, python, native] {
                    output.number(u64::from(value));
                }
                kind::STACK
            }
            Self::Unknown { .. } => return None,
        };
        let length = output.finish()?.checked_add(4)?.next_multiple_of(ALIGN);
        if length - 4 > room {
            return None;
        }
        let length = u32::try_from(length).ok().filter(|&length| length <= LENGTH)?;
        Some(COMPLETE | u32::from(kind) << 24 | length)
    }

    /// Reads the body of a definition of this kind.
    ///
    /// # Errors
    /// When the body is cut off.
    pub fn decode(kind: u8, body: &'a [u8]) -> Result<Self, DecodeError> {
        let mut input = Input::new(body);
        let input = &mut input;
        Ok(match kind {
            kind::API => Self::Api { id: id(input)?, layer: input.number()?, name: input.text()? },
            kind::MODULE => Self::Module {
                id: id(input)?,
                start: input.number()?,
                end: input.number()?,
                build_id: input.text()?,
                path: input.text()?,
            },
            kind::SITE => Self::Site {
                id: id(input)?,
                api: id(input)?,
                outer: id(input)?,
                address: input.number()?,
                module: id(input)?,
            },
            kind::LOOKUP => Self::Lookup {
                resolver: input.number()?,
                hooked: input.number()? != 0,
                version: input.number()?,
                flags: input.number()?,
                count: input.number()?,
                module: id(input)?,
                name: input.text()?,
            },
            kind::REMARK => Self::Remark { text: input.text()? },
            kind::GPU => Self::Gpu {
                index: id(input)?,
                total: input.number()?,
                uuid: input.text()?,
                name: input.text()?,
            },
            kind::DRIVER => Self::Driver { version: input.text()? },
            kind::CODE => Self::Code {
                id: id(input)?,
                first_line: input.number()?,
                file: input.text()?,
                name: input.text()?,
            },
            kind::CODE_LINES => Self::CodeLines {
                code: id(input)?,
                version: input.number()?,
                total: input.number()?,
                offset: input.number()?,
                bytes: input.text()?,
            },
            kind::PYTHON_FRAME => Self::PythonFrame {
                id: id(input)?,
                code: id(input)?,
                at: input.number()?,
                entry: input.number()?,
            },
            kind::NATIVE_FRAME => {
                Self::NativeFrame { id: id(input)?, address: input.number()?, module: id(input)? }
            }
            kind::FRAME_GAP => Self::FrameGap { id: id(input)?, reason: input.number()? },
            kind::NODE => Self::Node { id: id(input)?, parent: id(input)?, frame: id(input)? },
            kind::STACK => Self::Stack {
                id: id(input)?,
                site: id(input)?,
                python: id(input)?,
                native: id(input)?,
            },
            _ => Self::Unknown { kind },
        })
    }
}

fn id(input: &mut Input<'_>) -> Result<u32, DecodeError> {
    let offset = input.offset();
    u32::try_from(input.number()?).map_err(|_| DecodeError::Overlong { offset })
}

/// The definitions of a dictionary chunk's payload, in the order they were claimed. A
/// definition that was claimed and not completed is stepped over and counted by `incomplete`.
pub struct Definitions<'a> {
    payload: &'a [u8],
    at: usize,
    /// Definitions stepped over because their writer never completed them.
    pub incomplete: u32,
}

impl<'a> Definitions<'a> {
    /// Reads from the start of a payload.
    #[must_use]
    pub const fn new(payload: &'a [u8]) -> Self {
        Self { payload, at: 0, incomplete: 0 }
    }

    fn step(&mut self) -> Option<Result<Definition<'a>, DecodeError>> {
        loop {
            let offset = self.at;
            let word = *self.payload.get(offset..)?.first_chunk::<4>()?;
            let word = u32::from_le_bytes(word);
            if word == 0 {
                return None;
            }
            let length = (word & LENGTH) as usize;
            let whole = self.payload.get(offset..offset + length);
            let (Some(whole), true) = (whole, length >= ALIGN && length.is_multiple_of(ALIGN))
            else {
                self.at = self.payload.len();
                return Some(Err(DecodeError::BadDefinition { offset, word }));
            };
            self.at += length;
            if word & COMPLETE == 0 {
                self.incomplete += 1;
                continue;
            }
            let kind = (word >> 24 & 0x7f) as u8;
            return Some(Definition::decode(kind, whole.get(4..).unwrap_or(&[])));
        }
    }
}

impl<'a> Iterator for Definitions<'a> {
    type Item = Result<Definition<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step()
    }
}
