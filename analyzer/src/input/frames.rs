//! Stacks of a log: who called a call site, as frames from the innermost out.

use std::sync::Arc;

use gmmtrace_format::definition::Definition;
use rustc_hash::FxHashMap;

use super::lines::line_at;
use crate::units::Address;

/// Frames of one chain that are followed; a chain in a damaged log may be a circle.
const DEEPEST: usize = 4096;

/// What called a call site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Stack {
    /// Innermost Python frame, as a node, or 0.
    pub python: u32,
    /// Innermost native frame, as a node, or 0.
    pub native: u32,
}

/// A frame of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Frame {
    /// A Python function in a call.
    Python {
        /// Its code object.
        code: u32,
        /// Byte offset of its instruction, where known.
        at: Option<u64>,
        /// Whether it is the outermost that its evaluation loop runs.
        entry: bool,
    },
    /// A native function in a call.
    Native {
        /// Where it will go on.
        address: Address,
        /// Module of that address, or 0.
        module: u32,
    },
    /// Frames that could not be read, and why ([`gmmtrace_format::definition::gap`]).
    Gap(u64),
    /// A frame or node without a definition.
    Unknown,
}

/// A Python code object.
#[derive(Clone, Debug, Default)]
pub struct Code {
    /// Line where it begins.
    pub first_line: u64,
    /// File as the interpreter names it.
    pub file: Arc<str>,
    /// Its qualified name.
    pub name: Arc<str>,
    lines: Lines,
}

/// The table of lines, as far as its pieces are there.
#[derive(Clone, Debug, Default)]
struct Lines {
    version: u64,
    bytes: Vec<u8>,
    /// Length of the whole.
    total: u64,
}

impl Code {
    /// The whole table that tells its lines, with the interpreter's version as 256 × major +
    /// minor; `None` when a piece is missing.
    #[must_use]
    pub fn lines(&self) -> Option<(u64, &[u8])> {
        let whole = self.lines.total != 0 && self.lines.bytes.len() as u64 == self.lines.total;
        whole.then_some((self.lines.version, self.lines.bytes.as_slice()))
    }
}

/// All frames that a dictionary defines.
#[derive(Debug, Default)]
pub struct Frames {
    codes: FxHashMap<u32, Code>,
    frames: FxHashMap<u32, Frame>,
    /// Node to (caller's node, frame).
    nodes: FxHashMap<u32, (u32, u32)>,
}

impl Frames {
    /// Takes a definition in, if it is of the kinds that stacks are made of.
    pub(super) fn add(&mut self, definition: Definition<'_>) {
        match definition {
            Definition::Code { id, first_line, file, name } => {
                let code = self.codes.entry(id).or_default();
                code.first_line = first_line;
                code.file = String::from_utf8_lossy(file).into();
                code.name = String::from_utf8_lossy(name).into();
            }
            Definition::CodeLines { code, version, total, offset, bytes } => {
                let lines = &mut self.codes.entry(code).or_default().lines;
                // One thread writes the pieces, in order.
                if offset == 0 {
                    *lines = Lines { version, bytes: Vec::new(), total };
                }
                if lines.bytes.len() as u64 == offset && lines.total == total {
                    lines.bytes.extend_from_slice(bytes);
                }
            }
            Definition::PythonFrame { id, code, at, entry } => {
                let frame = Frame::Python { code, at: at.checked_sub(1), entry: entry != 0 };
                self.frames.insert(id, frame);
            }
            Definition::NativeFrame { id, address, module } => {
                self.frames.insert(id, Frame::Native { address: Address(address), module });
            }
            Definition::FrameGap { id, reason } => {
                self.frames.insert(id, Frame::Gap(reason));
            }
            Definition::Node { id, parent, frame } => {
                self.nodes.insert(id, (parent, frame));
            }
            _ => {}
        }
    }

    /// A code object; `None` when its definition is not there.
    #[must_use]
    pub fn code(&self, id: u32) -> Option<&Code> {
        self.codes.get(&id)
    }

    /// The line that a Python frame stands at: `None` when its code object is not defined, and when
    /// the instruction is unknown or belongs to no line.
    #[must_use]
    pub fn line(&self, code: u32, at: Option<u64>) -> Option<u64> {
        let code = self.code(code)?;
        let (version, table) = code.lines()?;
        line_at(version, table, code.first_line, at?)
    }

    /// The frames from this node out to the outermost. What has no definition is
    /// [`Frame::Unknown`] and, where it is a node, the last.
    pub fn chain(&self, node: u32) -> impl Iterator<Item = Frame> {
        let mut next = node;
        core::iter::from_fn(move || {
            let node = Some(next).filter(|&node| node != 0)?;
            let Some(&(parent, frame)) = self.nodes.get(&node) else {
                next = 0;
                return Some(Frame::Unknown);
            };
            next = parent;
            Some(self.frames.get(&frame).copied().unwrap_or(Frame::Unknown))
        })
        .take(DEEPEST)
    }

    /// Every code object, frame and node, by kind and then by id, as `dump` prints them.
    #[must_use]
    pub fn listed(&self) -> Listed<'_> {
        Listed {
            codes: sorted(&self.codes),
            frames: sorted(&self.frames),
            nodes: sorted(&self.nodes),
        }
    }
}

/// Definitions of stacks by rising id.
pub struct Listed<'a> {
    /// Code objects.
    pub codes: Vec<(u32, &'a Code)>,
    /// Frames.
    pub frames: Vec<(u32, &'a Frame)>,
    /// Nodes: the caller's node and the frame.
    pub nodes: Vec<(u32, &'a (u32, u32))>,
}

fn sorted<T>(table: &FxHashMap<u32, T>) -> Vec<(u32, &T)> {
    let mut rows: Vec<(u32, &T)> = table.iter().map(|(&id, row)| (id, row)).collect();
    rows.sort_unstable_by_key(|&(id, _)| id);
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(definitions: &[Definition<'_>]) -> Frames {
        let mut frames = Frames::default();
        for &definition in definitions {
            frames.add(definition);
        }
        frames
    }

    #[test]
    fn a_chain_is_read_from_the_innermost_out() {
        let frames = frames(&[
            Definition::PythonFrame { id: 1, code: 7, at: 0, entry: 1 },
            Definition::PythonFrame { id: 2, code: 7, at: 31, entry: 0 },
            Definition::FrameGap { id: 3, reason: 2 },
            Definition::Node { id: 1, parent: 0, frame: 3 },
            Definition::Node { id: 2, parent: 1, frame: 1 },
            Definition::Node { id: 3, parent: 2, frame: 2 },
        ]);
        let chain: Vec<_> = frames.chain(3).collect();
        let python = |at, entry| Frame::Python { code: 7, at, entry };
        assert_eq!(chain, [python(Some(30), false), python(None, true), Frame::Gap(2)]);
        assert_eq!(frames.chain(0).count(), 0);
    }

    #[test]
    fn what_is_not_defined_is_unknown_and_a_circle_ends() {
        let frames = frames(&[
            Definition::Node { id: 1, parent: 9, frame: 5 },
            Definition::Node { id: 2, parent: 2, frame: 5 },
        ]);
        assert_eq!(frames.chain(1).collect::<Vec<_>>(), [Frame::Unknown, Frame::Unknown]);
        assert_eq!(frames.chain(2).count(), DEEPEST);
    }

    #[test]
    fn a_table_of_lines_is_there_when_every_piece_is() {
        let code = Definition::Code { id: 4, first_line: 10, file: b"a.py", name: b"f" };
        let piece = |offset, bytes| Definition::CodeLines {
            code: 4,
            version: 0x30b,
            total: 5,
            offset,
            bytes,
        };
        let whole = frames(&[code, piece(0, b"abc"), piece(3, b"de")]);
        let code_of = |frames: &Frames| frames.code(4).expect("defined").clone();
        assert_eq!(code_of(&whole).lines(), Some((0x30b, &b"abcde"[..])));
        assert_eq!(&*code_of(&whole).file, "a.py");
        let cut = frames(&[code, piece(0, b"abc")]);
        assert_eq!(code_of(&cut).lines(), None);
        let holed = frames(&[code, piece(0, b"ab"), piece(3, b"de")]);
        assert_eq!(code_of(&holed).lines(), None);
    }
}
