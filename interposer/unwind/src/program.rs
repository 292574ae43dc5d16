//! The program that a table has for one function: how its frame changes from instruction to
//! instruction.

use super::reader::{Pointer, Reader};
use super::{Object, Rule};

/// Numbers of the machine's registers in the tables.
const FRAME_POINTER: u64 = 6;
const STACK_POINTER: u64 = 7;
const RETURN_ADDRESS: u64 = 16;
/// States that `DW_CFA_remember_state` may nest; compilers use one.
const NESTED: usize = 4;

/// What one function has: the range of its code and what is to be run.
pub struct Program {
    common: Common,
    start: u64,
    length: u64,
    instructions: Reader,
}

/// What functions share.
struct Common {
    code_factor: u64,
    data_factor: i64,
    pointers: Pointer,
    augmented: bool,
    instructions: Reader,
}

/// How the frame address is found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FrameAddress {
    Register(u64, i64),
    /// What lies at this many bytes from the frame pointer.
    Kept(i64),
    Other,
}

/// Where a register's value of the caller is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Register {
    Same,
    /// At this many bytes from the frame address.
    Kept(i64),
    /// At this many bytes from the frame pointer.
    KeptByFramePointer(i64),
    Undefined,
    Other,
}

#[derive(Clone, Copy)]
struct State {
    frame: FrameAddress,
    frame_pointer: Register,
    return_address: Register,
}

impl Program {
    /// The program of the entry at an address. `None` when it is not one that can be read.
    ///
    /// # Safety
    /// All of `object` can be read.
    pub unsafe fn of(object: &Object, entry: u64) -> Option<Self> {
        // SAFETY: the caller's promise.
        let mut entry = body(unsafe { Reader::new(object, entry) }?)?;
        let own = entry.at();
        let back = u64::from(entry.u32()?);
        // SAFETY: the caller's promise.
        let common = unsafe { Reader::new(object, own.checked_sub(back)?) }?;
        if back == 0 {
            return None;
        }
        let common = Common::read(body(common)?)?;
        let start = entry.pointer(common.pointers)?;
        let length = entry.pointer(common.pointers.length())?;
        if common.augmented {
            let length = entry.unsigned()?;
            entry.split(length)?;
        }
        Some(Self { common, start, length, instructions: entry })
    }

    /// The rule at an address of the function's.
    pub fn rule(&self, address: u64) -> Option<Rule> {
        let offset = address.checked_sub(self.start).filter(|&offset| offset < self.length)?;
        let fresh = State {
            frame: FrameAddress::Other,
            frame_pointer: Register::Same,
            return_address: Register::Kept(-8),
        };
        let first = self.run(self.common.instructions, fresh, fresh, u64::MAX)?;
        self.run(self.instructions, first, first, offset)?.rule()
    }

    /// The state at an offset of the function's code. `first` is what registers are restored to.
    fn run(&self, mut input: Reader, mut state: State, first: State, offset: u64) -> Option<State> {
        let mut at: u64 = 0;
        let mut kept = [first; NESTED];
        let mut depth: usize = 0;
        while !input.is_empty() {
            let code = input.byte()?;
            let (high, low) = (code & 0xc0, u64::from(code & 0x3f));
            let mut advance = None;
            match (high, code) {
                (0x40, _) => advance = Some(low),
                (0x80, _) => {
                    let by = input.unsigned()?.cast_signed();
                    state.set(low, Register::Kept(by.checked_mul(self.common.data_factor)?));
                }
                (0xc0, _) => state.set(low, first.get(low)),
                // DW_CFA_nop
                (_, 0x00) => {}
                // DW_CFA_set_loc
                (_, 0x01) => {
                    at = input.pointer(self.common.pointers)?.checked_sub(self.start)?;
                    if at > offset {
                        break;
                    }
                }
                // DW_CFA_advance_loc1, 2, 4
                (_, 0x02) => advance = Some(u64::from(input.byte()?)),
                (_, 0x03) => advance = Some(u64::from(input.u16()?)),
                (_, 0x04) => advance = Some(u64::from(input.u32()?)),
                // DW_CFA_offset_extended, and signed
                (_, 0x05) => {
                    let (register, by) = (input.unsigned()?, input.unsigned()?.cast_signed());
                    state.set(register, Register::Kept(by.checked_mul(self.common.data_factor)?));
                }
                (_, 0x11) => {
                    let (register, by) = (input.unsigned()?, input.signed()?);
                    state.set(register, Register::Kept(by.checked_mul(self.common.data_factor)?));
                }
                // DW_CFA_GNU_negative_offset_extended
                (_, 0x2f) => {
                    let (register, by) = (input.unsigned()?, input.unsigned()?.cast_signed());
                    let by = by.checked_mul(self.common.data_factor)?.checked_neg()?;
                    state.set(register, Register::Kept(by));
                }
                // DW_CFA_restore_extended
                (_, 0x06) => {
                    let register = input.unsigned()?;
                    state.set(register, first.get(register));
                }
                // DW_CFA_undefined, same_value
                (_, 0x07) => state.set(input.unsigned()?, Register::Undefined),
                (_, 0x08) => state.set(input.unsigned()?, Register::Same),
                // DW_CFA_register
                (_, 0x09) => {
                    let register = input.unsigned()?;
                    input.unsigned()?;
                    state.set(register, Register::Other);
                }
                // DW_CFA_remember_state, restore_state
                (_, 0x0a) => {
                    *kept.get_mut(depth)? = state;
                    depth += 1;
                }
                (_, 0x0b) => {
                    depth = depth.checked_sub(1)?;
                    state = *kept.get(depth)?;
                }
                // DW_CFA_def_cfa, and signed
                (_, 0x0c) => {
                    let (register, by) = (input.unsigned()?, input.unsigned()?.cast_signed());
                    state.frame = FrameAddress::Register(register, by);
                }
                (_, 0x12) => {
                    let (register, by) = (input.unsigned()?, input.signed()?);
                    let by = by.checked_mul(self.common.data_factor)?;
                    state.frame = FrameAddress::Register(register, by);
                }
                // DW_CFA_def_cfa_register
                (_, 0x0d) => {
                    let register = input.unsigned()?;
                    if let FrameAddress::Register(before, _) = &mut state.frame {
                        *before = register;
                    }
                }
                // DW_CFA_def_cfa_offset, and signed
                (_, 0x0e) => state.above(input.unsigned()?.cast_signed()),
                (_, 0x13) => {
                    state.above(input.signed()?.checked_mul(self.common.data_factor)?);
                }
                // DW_CFA_def_cfa_expression
                (_, 0x0f) => {
                    state.frame = match place(&mut input)? {
                        Some((offset, true)) => FrameAddress::Kept(offset),
                        _ => FrameAddress::Other,
                    };
                }
                // DW_CFA_expression
                (_, 0x10) => {
                    let register = input.unsigned()?;
                    let value = match place(&mut input)? {
                        Some((offset, false)) => Register::KeptByFramePointer(offset),
                        _ => Register::Other,
                    };
                    state.set(register, value);
                }
                // DW_CFA_val_offset, and signed
                (_, 0x14) => {
                    let register = input.unsigned()?;
                    input.unsigned()?;
                    state.set(register, Register::Other);
                }
                (_, 0x15) => {
                    let register = input.unsigned()?;
                    input.signed()?;
                    state.set(register, Register::Other);
                }
                // DW_CFA_val_expression
                (_, 0x16) => {
                    let register = input.unsigned()?;
                    place(&mut input)?;
                    state.set(register, Register::Other);
                }
                // DW_CFA_GNU_args_size
                (_, 0x2e) => {
                    input.unsigned()?;
                }
                _ => return None,
            }
            if let Some(steps) = advance {
                at = at.checked_add(steps.checked_mul(self.common.code_factor)?)?;
                if at > offset {
                    break;
                }
            }
        }
        Some(state)
    }
}

impl Common {
    fn read(mut input: Reader) -> Option<Self> {
        if input.u32()? != 0 {
            return None;
        }
        let version = input.byte()?;
        if version != 1 && version != 3 {
            return None;
        }
        // The longest known is `zPLRSB`.
        let mut letters = [0; 8];
        let mut count = 0;
        loop {
            match input.byte()? {
                0 => break,
                letter => *letters.get_mut(count)? = letter,
            }
            count += 1;
        }
        let code_factor = input.unsigned()?;
        let data_factor = input.signed()?;
        let register = if version == 1 { u64::from(input.byte()?) } else { input.unsigned()? };
        if register != RETURN_ADDRESS {
            return None;
        }
        let mut pointers = Pointer::ABSOLUTE;
        let (first, rest) = letters.split_first()?;
        let augmented = *first == b'z';
        if augmented {
            let length = input.unsigned()?;
            let mut values = input.split(length)?;
            for letter in rest {
                match letter {
                    0 => break,
                    b'L' => {
                        values.byte()?;
                    }
                    b'P' => {
                        let encoding = values.byte()?;
                        // Its value is not wanted, and it may be indirect.
                        values.pointer(Pointer(encoding).length())?;
                    }
                    b'R' => pointers = Pointer(values.byte()?),
                    // A frame of a signal: its address is that of an instruction, not behind one.
                    b'S' => return None,
                    b'B' => {}
                    _ => return None,
                }
            }
        } else if *first != 0 {
            return None;
        }
        Some(Self { code_factor, data_factor, pointers, augmented, instructions: input })
    }
}

impl State {
    fn set(&mut self, register: u64, value: Register) {
        match register {
            FRAME_POINTER => self.frame_pointer = value,
            RETURN_ADDRESS => self.return_address = value,
            _ => {}
        }
    }

    fn get(&self, register: u64) -> Register {
        match register {
            FRAME_POINTER => self.frame_pointer,
            RETURN_ADDRESS => self.return_address,
            _ => Register::Same,
        }
    }

    fn above(&mut self, offset: i64) {
        if let FrameAddress::Register(_, by) = &mut self.frame {
            *by = offset;
        }
    }

    fn rule(&self) -> Option<Rule> {
        let narrow = |offset: i64| i32::try_from(offset).ok();
        match (self.return_address, self.frame, self.frame_pointer) {
            (Register::Undefined, ..) => Some(Rule::Outermost),
            (
                Register::Kept(-8),
                FrameAddress::Register(base @ (STACK_POINTER | FRAME_POINTER), above),
                frame_pointer @ (Register::Same | Register::Kept(_)),
            ) => {
                let frame_pointer = match frame_pointer {
                    Register::Kept(offset) => Some(narrow(offset)?),
                    _ => None,
                };
                let by_frame_pointer = base == FRAME_POINTER;
                Some(Rule::Frame { by_frame_pointer, above: narrow(above)?, frame_pointer })
            }
            (Register::Kept(-8), FrameAddress::Kept(kept), Register::KeptByFramePointer(0)) => {
                Some(Rule::Realigned { kept: narrow(kept)? })
            }
            _ => None,
        }
    }
}

/// What stands in an entry behind its length. `None` for the end of the table.
fn body(mut entry: Reader) -> Option<Reader> {
    match entry.u32()? {
        0 => None,
        u32::MAX => {
            let length = entry.u64()?;
            entry.split(length)
        }
        length => entry.split(u64::from(length)),
    }
}

/// An expression that names a place by the frame pointer: how far from it, and whether what lies
/// there is meant (else the place itself). The inner `None` when it is another one.
fn place(input: &mut Reader) -> Option<Option<(i64, bool)>> {
    const AT_FRAME_POINTER: u8 = 0x76;
    const WHAT_LIES_THERE: u8 = 0x06;
    let length = input.unsigned()?;
    let mut expression = input.split(length)?;
    if expression.byte() != Some(AT_FRAME_POINTER) {
        return Some(None);
    }
    let Some(offset) = expression.signed() else { return Some(None) };
    Some(match (expression.byte(), expression.is_empty()) {
        (None, _) => Some((offset, false)),
        (Some(WHAT_LIES_THERE), true) => Some((offset, true)),
        _ => None,
    })
}
