//! A decoded event in the form that the merge passes around: no borrow, one cache line and a bit.

use gmmtrace_format::event::Flags;
use gmmtrace_format::kind::{Effect, MAX_OPERANDS};
use gmmtrace_format::{Event, Kind};

use crate::units::{Address, Bytes, Handle, Ticks};

/// Bit of [`Record::marks`] that is not a flag of the file: the event takes effect at its end.
const AT_END: u8 = 0x80;

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    start: u64,
    end: u64,
    operands: [u64; MAX_OPERANDS],
    /// Id of the call site, or 0.
    pub site: u32,
    /// What the call returned.
    pub status: u32,
    /// Where its text begins in the chunk's texts.
    text: u32,
    /// Which of the chunk's threads wrote it.
    pub lane: u16,
    /// The kind's id.
    pub kind: u8,
    marks: u8,
}

impl Record {
    /// The record of `event`, whose text begins at `text` in the chunk's texts.
    #[must_use]
    #[inline]
    pub fn new(event: &Event<'_>, lane: u16, text: u32) -> Self {
        let at_start = matches!(event.known().map(Kind::effect), Some(Effect::AtStart));
        Self {
            start: event.start,
            end: event.end,
            operands: event.operands,
            site: event.site,
            status: event.status,
            text,
            lane,
            kind: event.kind,
            marks: event.flags.0 & !AT_END | if at_start { 0 } else { AT_END },
        }
    }

    /// When it takes effect.
    #[must_use]
    #[inline]
    pub const fn stamp(&self) -> Ticks {
        Ticks(if self.marks & AT_END == 0 { self.start } else { self.end })
    }

    /// What records of one chunk are sorted by: the stamp, then what takes away first.
    #[must_use]
    #[inline]
    pub const fn key(&self) -> (u64, u8) {
        (self.stamp().0, self.marks & AT_END)
    }

    /// When the call began.
    #[must_use]
    pub const fn start(&self) -> Ticks {
        Ticks(self.start)
    }

    /// When it had returned.
    #[must_use]
    pub const fn end(&self) -> Ticks {
        Ticks(self.end)
    }

    /// How long it took.
    #[must_use]
    #[inline]
    pub const fn duration(&self) -> Ticks {
        Ticks(self.end.saturating_sub(self.start))
    }

    /// The flags of the file.
    #[must_use]
    #[inline]
    pub const fn flags(&self) -> Flags {
        Flags(self.marks & !AT_END)
    }

    /// Whether the call failed.
    #[must_use]
    #[inline]
    pub const fn failed(&self) -> bool {
        self.flags().has(Flags::FAILED)
    }

    /// The operands, in the order of [`Kind::operands`].
    #[must_use]
    #[inline]
    pub const fn operands(&self) -> &[u64; MAX_OPERANDS] {
        &self.operands
    }

    /// An operand as an address.
    #[must_use]
    #[inline]
    pub fn address<const N: usize>(&self) -> Address {
        Address(self.number::<N>())
    }

    /// An operand as a size.
    #[must_use]
    #[inline]
    pub fn bytes<const N: usize>(&self) -> Bytes {
        Bytes(self.number::<N>())
    }

    /// An operand as a handle.
    #[must_use]
    #[inline]
    pub fn handle<const N: usize>(&self) -> Handle {
        Handle(self.number::<N>())
    }

    /// An operand as a plain number.
    #[must_use]
    #[inline]
    pub fn number<const N: usize>(&self) -> u64 {
        self.operands.get(N).copied().unwrap_or(0)
    }

    /// An operand as a signed number.
    #[must_use]
    #[inline]
    pub fn signed<const N: usize>(&self) -> i64 {
        self.number::<N>().cast_signed()
    }

    /// The text operand, out of the texts of the record's chunk. It is the last operand, whose
    /// number is its length.
    #[must_use]
    pub fn text<'a>(&self, texts: &'a [u8]) -> &'a [u8] {
        let length = Kind::from_id(self.kind)
            .map_or(0, |kind| kind.operands().len())
            .checked_sub(1)
            .and_then(|last| self.operands.get(last))
            .and_then(|&length| usize::try_from(length).ok())
            .unwrap_or(0);
        let start = self.text as usize;
        start.checked_add(length).and_then(|end| texts.get(start..end)).unwrap_or(&[])
    }
}
