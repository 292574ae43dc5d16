//! The first instructions of every hooked call.
//!
//! A stub hands the call on to the row's Rust function with one argument more: the return
//! address, which Rust cannot ask for, with the stub's slot in its upper bits. Up to five
//! arguments this is a register and a jump. From six on the stack arguments are pushed again.

/// The slot number stands in the origin from this bit on; user addresses end below it.
pub const SLOT_SHIFT: u32 = 58;

/// Return address and slot of a hooked call.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Origin(u64);

impl Origin {
    /// Where the call returns to.
    #[inline(always)]
    pub const fn address(self) -> u64 {
        self.0 & ((1 << SLOT_SHIFT) - 1)
    }

    /// Which stub of the row was called; 0 is the exported one.
    #[inline(always)]
    pub const fn slot(self) -> usize {
        (self.0 >> SLOT_SHIFT) as usize
    }
}

/// Defines a naked stub, generic over a slot where `slots` says so. The arguments are those of the
/// signature; where structures are passed by value, which the ABI leaves on the stack and a jump
/// does not move, a second list names those that come in registers.
macro_rules! stub {
    ($(#[$attribute:meta])* $name:ident, $body:path, $slot:expr, [$($slots:tt)*], ($($a:ident)*) ($($register:ident)*)) => {
        $crate::stub::stub!($(#[$attribute])* $name, $body, $slot, [$($slots)*], ($($register)*));
    };
    ($(#[$attribute:meta])* $name:ident, $body:path, $slot:expr, [$($slots:tt)*], ($($a:ident)*)) => {
        $(#[$attribute])*
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name $($slots)* () {
            $crate::stub::text!($body, $slot, ($($a)*))
        }
    };
}

/// The instructions of a stub, by number of arguments.
macro_rules! text {
    ($body:path, $slot:expr, ()) => { $crate::stub::text!(@jump "rdi", $body, $slot) };
    ($body:path, $slot:expr, ($a:ident)) => { $crate::stub::text!(@jump "rsi", $body, $slot) };
    ($body:path, $slot:expr, ($a:ident $b:ident)) => { $crate::stub::text!(@jump "rdx", $body, $slot) };
    ($body:path, $slot:expr, ($a:ident $b:ident $c:ident)) => { $crate::stub::text!(@jump "rcx", $body, $slot) };
    ($body:path, $slot:expr, ($a:ident $b:ident $c:ident $d:ident)) => { $crate::stub::text!(@jump "r8", $body, $slot) };
    ($body:path, $slot:expr, ($a:ident $b:ident $c:ident $d:ident $e:ident)) => { $crate::stub::text!(@jump "r9", $body, $slot) };
    ($body:path, $slot:expr, ($a:ident $b:ident $c:ident $d:ident $e:ident $f:ident)) => {
        core::arch::naked_asm!(
            ".cfi_startproc", "endbr64",
            "movabs r11, {slot}", "or r11, qword ptr [rsp]",
            "push r11", ".cfi_adjust_cfa_offset 8",
            "call {body}",
            "add rsp, 8", ".cfi_adjust_cfa_offset -8",
            "ret", ".cfi_endproc",
            slot = const ($slot as u64) << $crate::stub::SLOT_SHIFT, body = sym $body,
        )
    };
    ($body:path, $slot:expr, ($a:ident $b:ident $c:ident $d:ident $e:ident $f:ident $g:ident)) => {
        core::arch::naked_asm!(
            ".cfi_startproc", "endbr64",
            "movabs r11, {slot}", "or r11, qword ptr [rsp]",
            "sub rsp, 8", "push r11", "push qword ptr [rsp + 24]", ".cfi_adjust_cfa_offset 24",
            "call {body}",
            "add rsp, 24", ".cfi_adjust_cfa_offset -24",
            "ret", ".cfi_endproc",
            slot = const ($slot as u64) << $crate::stub::SLOT_SHIFT, body = sym $body,
        )
    };
    ($body:path, $slot:expr, ($a:ident $b:ident $c:ident $d:ident $e:ident $f:ident $g:ident $h:ident)) => {
        core::arch::naked_asm!(
            ".cfi_startproc", "endbr64",
            "movabs r11, {slot}", "or r11, qword ptr [rsp]",
            "push r11", "push qword ptr [rsp + 24]", "push qword ptr [rsp + 24]",
            ".cfi_adjust_cfa_offset 24",
            "call {body}",
            "add rsp, 24", ".cfi_adjust_cfa_offset -24",
            "ret", ".cfi_endproc",
            slot = const ($slot as u64) << $crate::stub::SLOT_SHIFT, body = sym $body,
        )
    };
    ($body:path, $slot:expr, ($a:ident $b:ident $c:ident $d:ident $e:ident $f:ident $g:ident $h:ident $i:ident)) => {
        core::arch::naked_asm!(
            ".cfi_startproc", "endbr64",
            "movabs r11, {slot}", "or r11, qword ptr [rsp]",
            "sub rsp, 8", "push r11",
            "push qword ptr [rsp + 40]", "push qword ptr [rsp + 40]", "push qword ptr [rsp + 40]",
            ".cfi_adjust_cfa_offset 40",
            "call {body}",
            "add rsp, 40", ".cfi_adjust_cfa_offset -40",
            "ret", ".cfi_endproc",
            slot = const ($slot as u64) << $crate::stub::SLOT_SHIFT, body = sym $body,
        )
    };
    (@jump $register:literal, $body:path, $slot:expr) => {
        core::arch::naked_asm!(
            ".cfi_startproc", "endbr64",
            "movabs r11, {slot}", "or r11, qword ptr [rsp]",
            concat!("mov ", $register, ", r11"),
            "jmp {body}", ".cfi_endproc",
            slot = const ($slot as u64) << $crate::stub::SLOT_SHIFT, body = sym $body,
        )
    };
}

pub(crate) use {stub, text};
