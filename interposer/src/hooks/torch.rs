//! Reporters of PyTorch: what its CUDA caching allocator tells its profiler about every block.
//!
//! `libc10_cuda.so` calls them through its PLT whether or not a profiler runs, with the lock of
//! the device's allocator held, after it has done what it reports. So one stamp serves: no other
//! thread can have the block again, or can have given it, before the lock is free.
//!
//! The arguments come in integer registers, `c10::Device` among them: two bytes, the type and then
//! the index. Bits above these are whatever the caller left there.
//!
//! # Passing on
//!
//! The event is written first, and then the stub jumps to the real function with the caller's
//! registers, stack and return address: no frame of ours is there while it runs. What it throws
//! goes to the caller as if we were not there, and it cannot be called twice or returned from
//! twice. A wrapper that calls it instead would need unwind tables that run through Rust, and a
//! frame that every stack shows.
#![allow(non_camel_case_types, reason = "rows are named after their symbols")]

use gmmtrace_format::kind::Kind;

use crate::lookup;
use crate::record;
use crate::stub::Origin;
use crate::table::{Row, TORCH_BASE};

/// `c10::DeviceType::CUDA`; PyTorch for ROCm uses it too. CPU is 0, XPU 12.
const CUDA: u64 = 1;

/// Type and index of a `c10::Device` as it is passed.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Device(u64);

impl Device {
    #[inline(always)]
    const fn is_cuda(self) -> bool {
        self.0 & 0xff == CUDA
    }

    #[inline(always)]
    const fn index(self) -> u64 {
        ((self.0 >> 8) as i8 as i64).cast_unsigned()
    }
}

/// Declares the rows. Each: symbol, the name that reports show, number of register arguments, and
/// the function that writes the event and finds the real function.
macro_rules! rows {
    ($($symbol:ident $shown:literal $origin:literal $write:ident;)*) => {
        #[repr(u16)]
        enum Index { $($symbol,)* }

        /// Every reporter.
        pub static ROWS: &[Row] = &[$(Row {
            name: match core::ffi::CStr::from_bytes_with_nul(concat!(stringify!($symbol), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => c"",
            },
            stub: $symbol,
            slots: &[],
        }),*];

        /// Their names in reports, in the same order.
        pub static SHOWN: &[&str] = &[$($shown),*];

        $(
            /// Writes the event and jumps on, or returns when there is nowhere to go.
            #[unsafe(naked)]
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $symbol() {
                // Five pushes and the return address leave the stack aligned for the call.
                core::arch::naked_asm!(
                    ".cfi_startproc", "endbr64",
                    "push rdi", ".cfi_adjust_cfa_offset 8",
                    "push rsi", ".cfi_adjust_cfa_offset 8",
                    "push rdx", ".cfi_adjust_cfa_offset 8",
                    "push rcx", ".cfi_adjust_cfa_offset 8",
                    "push r8", ".cfi_adjust_cfa_offset 8",
                    concat!("mov ", $origin, ", qword ptr [rsp + 40]"),
                    "call {write}",
                    "pop r8", ".cfi_adjust_cfa_offset -8",
                    "pop rcx", ".cfi_adjust_cfa_offset -8",
                    "pop rdx", ".cfi_adjust_cfa_offset -8",
                    "pop rsi", ".cfi_adjust_cfa_offset -8",
                    "pop rdi", ".cfi_adjust_cfa_offset -8",
                    "test rax, rax", "je 2f", "jmp rax",
                    "2:", "ret", ".cfi_endproc",
                    write = sym $write::<{ Index::$symbol as u16 }>,
                )
            }
        )*
    };
}

// The totals were signed up to PyTorch 1.13, which is another symbol and the same registers.
rows! {
    _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE "c10::reportMemoryUsageToProfiler" "r9" usage;
    _ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE "c10::reportMemoryUsageToProfiler (to 1.13)" "r9" usage;
    _ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE "c10::reportOutOfMemoryToProfiler" "r8" out_of_memory;
    _ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE "c10::reportOutOfMemoryToProfiler (to 1.13)" "r8" out_of_memory;
}

/// A block handed out (`size` above 0) or taken back (below). Returns the real function, or 0.
unsafe extern "C" fn usage<const INDEX: u16>(
    pointer: u64,
    size: i64,
    allocated: u64,
    reserved: u64,
    device: Device,
    origin: Origin,
) -> usize {
    let real = lookup::torch_real(usize::from(INDEX), origin);
    if real != 0 && device.is_cuda() && size != 0 {
        let kind = if size > 0 { Kind::TorchAlloc } else { Kind::TorchFree };
        let operands = [pointer, size.unsigned_abs(), allocated, reserved, device.index()];
        record::report(kind, TORCH_BASE + INDEX, origin, operands);
    }
    real
}

/// A request that found no memory. Returns the real function, or 0.
unsafe extern "C" fn out_of_memory<const INDEX: u16>(
    requested: i64,
    allocated: u64,
    reserved: u64,
    device: Device,
    origin: Origin,
) -> usize {
    let real = lookup::torch_real(usize::from(INDEX), origin);
    if real != 0 && device.is_cuda() {
        let requested = u64::try_from(requested).unwrap_or(0);
        let operands = [requested, allocated, reserved, device.index(), 0];
        record::report(Kind::TorchOom, TORCH_BASE + INDEX, origin, operands);
    }
    real
}
