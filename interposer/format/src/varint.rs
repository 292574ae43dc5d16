//! Numbers of variable length: LEB128, zigzag for signed values, and a form that makes
//! multiples of 512 short, because device addresses and sizes nearly always are.

use crate::error::DecodeError;

/// Granule of the short form: CUDA hands out device memory at 512-byte steps.
pub const GRANULE: u64 = 512;

/// Maps a signed value to an unsigned one whose size follows the magnitude.
#[must_use]
#[inline]
pub const fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

/// Inverse of [`zigzag`].
#[must_use]
#[inline]
pub const fn unzigzag(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ -((value & 1).cast_signed())
}

/// Writes fields into a slice. Once a field does not fit, nothing more is written and
/// [`Output::finish`] answers `None`.
pub struct Output<'a> {
    bytes: &'a mut [u8],
    at: usize,
    full: bool,
}

impl<'a> Output<'a> {
    /// An output at the start of `bytes`.
    #[inline]
    pub fn new(bytes: &'a mut [u8]) -> Self {
        Self { bytes, at: 0, full: false }
    }

    /// The number of bytes written, or `None` when a field did not fit.
    #[inline]
    pub fn finish(self) -> Option<usize> {
        if self.full { None } else { Some(self.at) }
    }

    /// One byte.
    #[inline]
    pub fn byte(&mut self, value: u8) {
        if let Some(slot) = self.bytes.get_mut(self.at) {
            *slot = value;
            self.at += 1;
        } else {
            self.full = true;
        }
    }

    /// LEB128.
    #[inline]
    pub fn number(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.byte((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.byte(value as u8);
    }

    /// Zigzag, then LEB128.
    #[inline]
    pub fn signed(&mut self, value: i64) {
        self.number(zigzag(value));
    }

    /// One mark bit (the value counts granules), then the value: six bits in the first byte,
    /// LEB128 after it.
    #[inline]
    pub fn scaled(&mut self, value: u64) {
        if value.is_multiple_of(GRANULE) {
            self.marked(value / GRANULE, 1);
        } else {
            self.marked(value, 0);
        }
    }

    /// As [`Output::scaled`], for a signed difference.
    #[inline]
    pub fn scaled_signed(&mut self, value: i64) {
        if value.cast_unsigned().is_multiple_of(GRANULE) {
            self.marked(zigzag(value >> 9), 1);
        } else {
            self.marked(zigzag(value), 0);
        }
    }

    #[inline]
    fn marked(&mut self, value: u64, mark: u8) {
        let low = ((value & 0x3f) as u8) << 1 | mark;
        let rest = value >> 6;
        if rest == 0 {
            self.byte(low);
        } else {
            self.byte(low | 0x80);
            self.number(rest);
        }
    }

    /// A length, then the bytes.
    #[inline]
    pub fn text(&mut self, value: &[u8]) {
        self.number(value.len() as u64);
        self.raw(value);
    }

    /// The bytes alone.
    #[inline]
    pub fn raw(&mut self, value: &[u8]) {
        let end = self.at.saturating_add(value.len());
        match self.bytes.get_mut(self.at..end) {
            Some(slots) if !self.full => {
                // Not copy_from_slice: its check of the lengths could panic.
                for (slot, &byte) in slots.iter_mut().zip(value) {
                    *slot = byte;
                }
                self.at = end;
            }
            _ => self.full = true,
        }
    }
}

/// Reads fields from a slice.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Input<'a> {
    /// An input at the start of `bytes`.
    #[must_use]
    #[inline]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Offset of the next field.
    #[must_use]
    #[inline]
    pub const fn offset(&self) -> usize {
        self.at
    }

    /// Whether everything was read.
    #[must_use]
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.at >= self.bytes.len()
    }

    /// The next byte without taking it.
    #[must_use]
    #[inline]
    pub fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// One byte.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`] at the end of the slice.
    #[inline]
    pub fn byte(&mut self) -> Result<u8, DecodeError> {
        let byte = *self.bytes.get(self.at).ok_or(DecodeError::Truncated { offset: self.at })?;
        self.at += 1;
        Ok(byte)
    }

    /// LEB128.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`] or [`DecodeError::Overlong`].
    #[inline]
    pub fn number(&mut self) -> Result<u64, DecodeError> {
        let first = self.byte()?;
        if first < 0x80 {
            return Ok(u64::from(first));
        }
        let offset = self.at - 1;
        let mut value = u64::from(first & 0x7f);
        let mut shift = 7;
        loop {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return Err(DecodeError::Overlong { offset });
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
            shift += 7;
            if shift > 63 {
                return Err(DecodeError::Overlong { offset });
            }
        }
    }

    /// Zigzag over LEB128.
    ///
    /// # Errors
    /// As [`Input::number`].
    #[inline]
    pub fn signed(&mut self) -> Result<i64, DecodeError> {
        self.number().map(unzigzag)
    }

    #[inline]
    fn marked(&mut self) -> Result<(u64, bool), DecodeError> {
        let offset = self.at;
        let first = self.byte()?;
        let low = u64::from(first >> 1 & 0x3f);
        let mark = first & 1 != 0;
        if first < 0x80 {
            return Ok((low, mark));
        }
        let rest = self.number()?;
        if rest >> 58 != 0 {
            return Err(DecodeError::Overlong { offset });
        }
        Ok((rest << 6 | low, mark))
    }

    /// Inverse of [`Output::scaled`].
    ///
    /// # Errors
    /// As [`Input::number`].
    #[inline]
    pub fn scaled(&mut self) -> Result<u64, DecodeError> {
        let (value, granules) = self.marked()?;
        Ok(if granules { value.wrapping_mul(GRANULE) } else { value })
    }

    /// Inverse of [`Output::scaled_signed`].
    ///
    /// # Errors
    /// As [`Input::number`].
    #[inline]
    pub fn scaled_signed(&mut self) -> Result<i64, DecodeError> {
        let (value, granules) = self.marked()?;
        let value = unzigzag(value);
        Ok(if granules { value.wrapping_mul(GRANULE.cast_signed()) } else { value })
    }

    /// A length, then that many bytes.
    ///
    /// # Errors
    /// As [`Input::number`].
    #[inline]
    pub fn text(&mut self) -> Result<&'a [u8], DecodeError> {
        let offset = self.at;
        let length = self.number()?;
        let end = usize::try_from(length).ok().and_then(|length| self.at.checked_add(length));
        let text = end.and_then(|end| self.bytes.get(self.at..end));
        let text = text.ok_or(DecodeError::Truncated { offset })?;
        self.at += text.len();
        Ok(text)
    }
}
