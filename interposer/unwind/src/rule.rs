//! What is needed to leave a frame, in one word.

/// How to get from a frame to its caller's. The *frame address* is the stack pointer's value before
/// the call that made the frame; the return address lies in the word below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The frame address lies a number of bytes above a register.
    Frame {
        /// Whether that is the frame pointer; else it is the stack pointer.
        by_frame_pointer: bool,
        /// The bytes.
        above: i32,
        /// Where the caller's frame pointer is kept, in bytes from the frame address; `None` where
        /// it is still in its register.
        frame_pointer: Option<i32>,
    },
    /// The function aligned its stack: the frame address is kept at this many bytes from the frame
    /// pointer, and the caller's frame pointer is kept where the frame pointer points to.
    Realigned {
        /// The bytes.
        kept: i32,
    },
    /// Nothing called this function.
    Outermost,
    /// The tables have nothing for the address, or nothing that is followed.
    Unknown,
}

/// Bits of an offset in a word.
const BITS: u32 = 30;
const KIND: u64 = 3;
const FRAME: u64 = 1;
const REALIGNED: u64 = 2;
const END: u64 = 3;
const FLAG: u64 = 4;
const KEPT: u64 = 8;

impl Rule {
    /// The rule as a word that is never 0. An offset that has no room makes it unknown.
    #[must_use]
    pub fn packed(self) -> u64 {
        let flag = |set: bool, bit: u64| if set { bit } else { 0 };
        let word = match self {
            Self::Frame { by_frame_pointer, above, frame_pointer } => (|| {
                let kept = frame_pointer.map_or(Some(0), narrow)?;
                let flags = flag(by_frame_pointer, FLAG) | flag(frame_pointer.is_some(), KEPT);
                Some(FRAME | flags | narrow(above)? << 4 | kept << (4 + BITS))
            })(),
            Self::Realigned { kept } => narrow(kept).map(|kept| REALIGNED | kept << 4),
            Self::Outermost => Some(END),
            Self::Unknown => None,
        };
        word.unwrap_or(END | FLAG)
    }

    /// The rule that was packed.
    #[inline(always)]
    #[must_use]
    pub const fn unpacked(word: u64) -> Self {
        match word & KIND {
            FRAME => Self::Frame {
                by_frame_pointer: word & FLAG != 0,
                above: wide(word >> 4),
                frame_pointer: if word & KEPT == 0 { None } else { Some(wide(word >> (4 + BITS))) },
            },
            REALIGNED => Self::Realigned { kept: wide(word >> 4) },
            _ if word == END => Self::Outermost,
            _ => Self::Unknown,
        }
    }
}

fn narrow(offset: i32) -> Option<u64> {
    let kept = offset.cast_unsigned() & ((1 << BITS) - 1);
    (wide(u64::from(kept)) == offset).then_some(u64::from(kept))
}

const fn wide(bits: u64) -> i32 {
    ((bits as u32) << (32 - BITS)).cast_signed() >> (32 - BITS)
}

#[cfg(test)]
mod tests {
    use super::Rule;

    #[test]
    fn a_rule_that_fits_is_the_same_when_unpacked_and_another_is_unknown() {
        let offsets = [0, 8, 16, 4096, -16, (1 << 29) - 1, -(1 << 29)];
        for above in offsets {
            for frame_pointer in offsets.map(Some).into_iter().chain([None]) {
                for by_frame_pointer in [false, true] {
                    let rule = Rule::Frame { by_frame_pointer, above, frame_pointer };
                    assert_eq!(Rule::unpacked(rule.packed()), rule);
                }
            }
            let rule = Rule::Realigned { kept: above };
            assert_eq!(Rule::unpacked(rule.packed()), rule);
        }
        for rule in [Rule::Outermost, Rule::Unknown] {
            assert_eq!(Rule::unpacked(rule.packed()), rule);
            assert_ne!(rule.packed(), 0);
        }
        let far = Rule::Frame { by_frame_pointer: false, above: 1 << 29, frame_pointer: None };
        assert_eq!(Rule::unpacked(far.packed()), Rule::Unknown);
    }
}
