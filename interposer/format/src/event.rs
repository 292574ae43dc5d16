//! One event, and its codec. Numbers are differences from the previous event of the chunk, so
//! encoder and decoder step through the same [`Codec`] state.

use crate::error::DecodeError;
use crate::kind::{Kind, MAX_OPERANDS, Operand, REGISTERS, Shapes};
use crate::varint::{Input, Output};

/// No event without text is longer than this.
pub const MAX_PLAIN: usize = 96;
/// Longest text an event carries; the writer cuts longer ones.
pub const MAX_TEXT: usize = 1024;

/// What a call event is besides its kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u8);

impl Flags {
    /// The call failed; its status follows.
    pub const FAILED: Self = Self(1);
    /// The first event under a runtime call.
    pub const CALL_FIRST: Self = Self(2);
    /// A further event under the same runtime call as the thread's event before.
    pub const CALL_NEXT: Self = Self(4);
    /// The text was cut.
    pub const CUT: Self = Self(8);
    /// The call was captured: what it does is done when its graph is launched.
    pub const CAPTURED: Self = Self(16);

    /// Whether every flag of `other` is set.
    #[must_use]
    #[inline]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both sets together.
    #[must_use]
    #[inline]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// One event as written or read. Stamps are in the file's clock ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// The kind's id; [`Kind::from_id`] names those this crate knows.
    pub kind: u8,
    /// What else is true of it.
    pub flags: Flags,
    /// Id of the call site, or 0.
    pub site: u32,
    /// When the call began.
    pub start: u64,
    /// When it had returned.
    pub end: u64,
    /// What it returned; 0 is success.
    pub status: u32,
    /// Operands in the order of [`Kind::operands`]; signed ones as two's complement.
    pub operands: [u64; MAX_OPERANDS],
    /// The text operand, or nothing.
    pub text: &'a [u8],
}

impl<'a> Event<'a> {
    /// A successful event of `kind` without text.
    #[must_use]
    #[inline(always)]
    pub const fn new(kind: Kind, site: u32, start: u64, end: u64, operands: [u64; 5]) -> Self {
        Self { kind: kind as u8, flags: Flags(0), site, start, end, status: 0, operands, text: &[] }
    }

    /// The event's kind, when this crate knows it.
    #[must_use]
    #[inline]
    pub const fn known(&self) -> Option<Kind> {
        Kind::from_id(self.kind)
    }

    /// The stamp by which events are ordered.
    #[must_use]
    #[inline]
    pub fn effective(&self) -> u64 {
        match self.known().map(Kind::effect) {
            Some(crate::kind::Effect::AtStart) => self.start,
            _ => self.end,
        }
    }
}

/// What encoder and decoder remember from event to event of one chunk.
#[derive(Clone, Copy, Debug)]
pub struct Codec {
    last: u64,
    registers: [u64; REGISTERS],
}

impl Codec {
    /// The state at the start of a chunk whose base stamp is `base`.
    #[must_use]
    #[inline]
    pub const fn new(base: u64) -> Self {
        Self { last: base, registers: [0; REGISTERS] }
    }

    /// Encodes `event`, whose kind is `kind`, at the start of `out`. Returns its length, or
    /// `None` when it does not fit; the state is then as before.
    #[inline(always)]
    pub fn encode(&mut self, kind: Kind, event: &Event<'_>, out: &mut [u8]) -> Option<usize> {
        // An event without text always fits here, so there is nothing to go back to.
        if out.len() >= MAX_PLAIN && !kind.has_text() {
            return self.put(kind, event, out);
        }
        let before = *self;
        let length = self.put(kind, event, out);
        if length.is_none() {
            *self = before;
        }
        length
    }

    #[inline(always)]
    fn put(&mut self, kind: Kind, event: &Event<'_>, out: &mut [u8]) -> Option<usize> {
        let mut output = Output::new(out);
        output.byte(kind as u8);
        output.byte(event.flags.0);
        output.number(u64::from(event.site));
        output.signed(event.start.wrapping_sub(self.last).cast_signed());
        output.number(event.end.saturating_sub(event.start));
        if event.flags.has(Flags::FAILED) {
            output.number(u64::from(event.status));
        }
        for (&operand, &value) in kind.operands().iter().zip(&event.operands) {
            put(&mut output, operand, value, event.text, &mut self.registers);
        }
        self.last = event.end.max(event.start);
        output.finish()
    }

    /// Decodes the next event. `None` where nothing more was written.
    ///
    /// # Errors
    /// When the bytes are not an event; `input` then stands behind what could be read.
    #[inline]
    pub fn decode<'a>(
        &mut self,
        shapes: &Shapes,
        input: &mut Input<'a>,
    ) -> Result<Option<Event<'a>>, DecodeError> {
        let offset = input.offset();
        let kind = match input.peek() {
            None | Some(0) => return Ok(None),
            Some(kind) => kind,
        };
        input.byte()?;
        let codes = shapes.get(kind).ok_or(DecodeError::UnknownKind { kind, offset })?;
        let flags = Flags(input.byte()?);
        let site = narrow(input)?;
        let start = self.last.wrapping_add(input.signed()?.cast_unsigned());
        let end = start.wrapping_add(input.number()?);
        let status = if flags.has(Flags::FAILED) { narrow(input)? } else { 0 };
        let mut operands = [0; MAX_OPERANDS];
        let mut text: &[u8] = &[];
        for (slot, &code) in operands.iter_mut().zip(codes) {
            let Some(operand) = Operand::from_code(code) else {
                return Err(DecodeError::UnknownKind { kind, offset });
            };
            *slot = take(input, operand, &mut text, &mut self.registers)?;
        }
        self.last = end.max(start);
        Ok(Some(Event { kind, flags, site, start, end, status, operands, text }))
    }
}

/// A number of at most 32 bits.
#[inline]
fn narrow(input: &mut Input<'_>) -> Result<u32, DecodeError> {
    let offset = input.offset();
    u32::try_from(input.number()?).map_err(|_| DecodeError::Overlong { offset })
}

#[inline(always)]
fn put(
    output: &mut Output<'_>,
    operand: Operand,
    value: u64,
    text: &[u8],
    registers: &mut [u64; REGISTERS],
) {
    match operand {
        Operand::Number => output.number(value),
        Operand::Signed => output.signed(value.cast_signed()),
        Operand::Size => output.scaled(value),
        Operand::Text => output.text(text),
        _ => {
            if let Some(register) = operand.register().and_then(|index| registers.get_mut(index)) {
                output.scaled_signed(value.wrapping_sub(*register).cast_signed());
                *register = value;
            }
        }
    }
}

#[inline]
fn take<'a>(
    input: &mut Input<'a>,
    operand: Operand,
    text: &mut &'a [u8],
    registers: &mut [u64; REGISTERS],
) -> Result<u64, DecodeError> {
    match operand {
        Operand::Number => input.number(),
        Operand::Signed => input.signed().map(i64::cast_unsigned),
        Operand::Size => input.scaled(),
        Operand::Text => {
            *text = input.text()?;
            Ok(text.len() as u64)
        }
        _ => {
            let difference = input.scaled_signed()?;
            match operand.register().and_then(|index| registers.get_mut(index)) {
                Some(register) => {
                    *register = register.wrapping_add(difference.cast_unsigned());
                    Ok(*register)
                }
                None => Ok(0),
            }
        }
    }
}
