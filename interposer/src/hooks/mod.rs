//! The rows of the hook table: one for each entry point, with its signature, what it does to
//! the live set, and how its event is made from arguments and out-parameters.
//!
//! Out-parameters are read only after success, and never through null.

pub mod described;
pub mod driver;
pub mod marks;
pub mod runtime;
pub mod torch;

/// An out-parameter of a call that succeeded, or 0.
///
/// # Safety
/// When `ok`, `pointer` is null or what the successful call wrote to.
#[inline(always)]
pub unsafe fn out<T: Copy>(ok: bool, pointer: *const T) -> Option<T> {
    // SAFETY: by the caller's promise; CUDA demands no alignment of the host beyond the type's.
    (ok && !pointer.is_null()).then(|| unsafe { pointer.read_unaligned() })
}

/// As [`out`], for addresses and sizes.
///
/// # Safety
/// As for [`out`].
#[inline(always)]
pub unsafe fn out_word<T>(ok: bool, pointer: *const T) -> u64 {
    const { assert!(size_of::<T>() == 8) };
    // SAFETY: by the caller's promise; T has the size of a word.
    unsafe { out(ok, pointer.cast::<u64>()) }.unwrap_or(0)
}

/// The value of an `int` out-parameter, or -1.
///
/// # Safety
/// As for [`out`].
#[inline(always)]
pub unsafe fn out_int(ok: bool, pointer: *const i32) -> u64 {
    // SAFETY: by the caller's promise.
    i64::from(unsafe { out(ok, pointer) }.unwrap_or(-1)).cast_unsigned()
}

/// A 32-bit address or size, or 0.
///
/// # Safety
/// As for [`out`].
#[inline(always)]
pub unsafe fn out_half(ok: bool, pointer: *const u32) -> u64 {
    // SAFETY: by the caller's promise.
    u64::from(unsafe { out(ok, pointer) }.unwrap_or(0))
}
