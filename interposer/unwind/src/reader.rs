//! Reading an object's bytes, never outside of it.

use super::Object;

/// A place in an object that is read from.
#[derive(Clone, Copy)]
pub struct Reader {
    at: u64,
    end: u64,
    /// The object's first byte, below which nothing is read either.
    start: u64,
}

/// How an address is written: the format in the lower four bits, what it is relative to above.
#[derive(Clone, Copy)]
pub struct Pointer(pub u8);

impl Pointer {
    /// Absolute, of eight bytes.
    pub const ABSOLUTE: Self = Self(0);
    const OMITTED: u8 = 0xff;
    const RELATIVE_TO_ITSELF: u8 = 0x10;
    const INDIRECT: u8 = 0x80;

    /// The same format for a length, which is relative to nothing.
    pub const fn length(self) -> Self {
        Self(self.0 & 0x0f)
    }
}

impl Reader {
    /// Reads from `at` to the end of the object. `None` when `at` lies outside.
    ///
    /// # Safety
    /// All of `object` can be read.
    pub unsafe fn new(object: &Object, at: u64) -> Option<Self> {
        (object.start <= at && at <= object.end).then_some(Self {
            at,
            end: object.end,
            start: object.start,
        })
    }

    /// Where it stands.
    pub const fn at(&self) -> u64 {
        self.at
    }

    /// Whether nothing is left.
    pub const fn is_empty(&self) -> bool {
        self.at >= self.end
    }

    /// A reader of the next `length` bytes; this one goes on behind them.
    pub fn split(&mut self, length: u64) -> Option<Self> {
        let end = self.at.checked_add(length).filter(|&end| end <= self.end)?;
        let part = Self { at: self.at, end, start: self.start };
        self.at = end;
        Some(part)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let end = self.at.checked_add(N as u64).filter(|&end| end <= self.end)?;
        if self.at < self.start {
            return None;
        }
        // SAFETY: within the object, which can be read by the promise to `new`.
        let bytes = unsafe { core::ptr::read_unaligned(self.at as *const [u8; N]) };
        self.at = end;
        Some(bytes)
    }

    pub fn byte(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub fn i32(&mut self) -> Option<i32> {
        self.array().map(i32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// An unsigned number of seven bits a byte.
    pub fn unsigned(&mut self) -> Option<u64> {
        let (mut value, mut shift) = (0_u64, 0);
        loop {
            let byte = self.byte()?;
            if shift < 64 {
                value |= u64::from(byte & 0x7f) << shift;
            }
            shift += 7;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
    }

    /// A signed one.
    pub fn signed(&mut self) -> Option<i64> {
        let (mut value, mut shift) = (0_u64, 0);
        loop {
            let byte = self.byte()?;
            if shift < 64 {
                value |= u64::from(byte & 0x7f) << shift;
            }
            shift += 7;
            if byte & 0x80 == 0 {
                if byte & 0x40 != 0 && shift < 64 {
                    value |= u64::MAX << shift;
                }
                return Some(value.cast_signed());
            }
        }
    }

    /// An address in an encoding.
    pub fn pointer(&mut self, encoding: Pointer) -> Option<u64> {
        let Pointer(encoding) = encoding;
        if encoding == Pointer::OMITTED || encoding & Pointer::INDIRECT != 0 {
            return None;
        }
        let own = self.at;
        let value = match encoding & 0x0f {
            0x00 | 0x04 | 0x0c => self.u64()?,
            0x01 => self.unsigned()?,
            0x02 => u64::from(self.u16()?),
            0x03 => u64::from(self.u32()?),
            0x09 => self.signed()?.cast_unsigned(),
            0x0a => i64::from(self.u16()?.cast_signed()).cast_unsigned(),
            0x0b => i64::from(self.i32()?).cast_unsigned(),
            _ => return None,
        };
        match encoding & 0x70 {
            0 => Some(value),
            Pointer::RELATIVE_TO_ITSELF => Some(own.wrapping_add(value)),
            _ => None,
        }
    }
}
