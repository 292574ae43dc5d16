//! Runtime rows: labels. They say which call of which library stands around a driver call, and
//! are accounted themselves only when no driver call was seen beneath.
#![allow(non_camel_case_types, reason = "rows are named after their symbols")]
#![allow(clippy::too_many_arguments, reason = "the signatures are CUDA's")]

use core::ffi::{c_int, c_uint, c_void};

use super::described::IpcHandle;
use super::out_word;
use crate::lookup::{self, INSUFFICIENT_DRIVER};
use crate::record;
use crate::stub::{Origin, stub};
use crate::table::{Row, SLOTS};

type P = *mut c_void;
type Const = *const c_void;
type Stream = *mut c_void;

/// `cudaExtent`. Larger than two words, so the ABI passes it on the stack.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Extent {
    width: usize,
    height: usize,
    depth: usize,
}

impl Extent {
    fn of_rows(self, row: u64) -> u64 {
        row.wrapping_mul(self.height as u64).wrapping_mul(self.depth as u64)
    }

    fn bytes(self) -> u64 {
        self.of_rows(self.width as u64)
    }
}

/// `cudaPitchedPtr`, likewise on the stack.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Pitched {
    pointer: P,
    pitch: usize,
    width: usize,
    height: usize,
}

/// Pointer and bytes of a three-dimensional allocation.
///
/// # Safety
/// When `ok`, `made` is null or what a successful cudaMalloc3D wrote to.
unsafe fn made_3d(ok: bool, made: *const Pitched, extent: Extent) -> [u64; 2] {
    // SAFETY: by the caller's promise.
    unsafe { super::out(ok, made) }
        .map_or([0, 0], |made| [made.pointer as u64, extent.of_rows(made.pitch as u64)])
}

/// Declares the rows. Each: symbol, arguments, the argument that the in-flight slot shows, and
/// pointer and size for the event of a call without driver call (`ok`: the call succeeded), or
/// nothing where such a call is worth none.
macro_rules! rows {
    ($($name:ident ($($a:ident: $t:ty),*) $(in ($($r:ident)*))? $argument:expr, |$ok:ident| $operands:expr $(, then $then:expr)?;)*) => {
        #[repr(u16)]
        enum Index { $($name),* }

        /// Every runtime row.
        pub static ROWS: &[Row] = &[$(Row {
            name: match core::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => c"",
            },
            stub: $name,
            slots: &[
                $name::slot::<1>, $name::slot::<2>, $name::slot::<3>, $name::slot::<4>,
                $name::slot::<5>, $name::slot::<6>, $name::slot::<7>,
            ],
        }),*];

        $(
            stub!(#[unsafe(no_mangle)] $name, $name::body, 0, [], ($($a)*) $(($($r)*))?);

            mod $name {
                use super::*;

                stub!(slot, body, SLOT, [<const SLOT: u64>], ($($a)*) $(($($r)*))?);

                #[allow(unused_unsafe, reason = "operands without out-parameters need none")]
                pub unsafe extern "C" fn body($($a: $t,)* origin: Origin) -> u32 {
                    const INDEX: usize = Index::$name as usize;
                    let real = lookup::runtime_real(INDEX, origin);
                    if real == 0 {
                        return INSUFFICIENT_DRIVER;
                    }
                    // SAFETY: the real function's address; the signature is this row's.
                    let real = unsafe {
                        core::mem::transmute::<usize, unsafe extern "C" fn($($t),*) -> u32>(real)
                    };
                    let open = record::begin_runtime(INDEX as u16 + 1, $argument, origin);
                    // SAFETY: the caller's own arguments, once.
                    let status = unsafe { real($($a),*) };
                    let $ok = status == 0;
                    // SAFETY: out-parameters are read only after success.
                    let operands = unsafe { $operands };
                    record::end_runtime(open, status, operands.into());
                    $(if $ok {
                        // SAFETY: as above.
                        unsafe { $then };
                    })?
                    status
                }
            }
        )*
    };
}

const _: () = assert!(SLOTS == 7);

/// For calls that take and give no memory themselves: only the driver's events count.
const LABEL: Option<[u64; 2]> = None;

rows! {
    cudaMalloc(p: *mut P, n: usize) n as u64, |ok| [out_word(ok, p), n as u64];
    cudaMallocManaged(p: *mut P, n: usize, f: c_uint) n as u64, |ok| [out_word(ok, p), n as u64];
    cudaMallocAsync(p: *mut P, n: usize, s: Stream) n as u64, |ok| [out_word(ok, p), n as u64];
    cudaMallocAsync_ptsz(p: *mut P, n: usize, s: Stream) n as u64, |ok| [out_word(ok, p), n as u64];
    cudaMallocFromPoolAsync(p: *mut P, n: usize, pool: P, s: Stream) n as u64, |ok| [out_word(ok, p), n as u64];
    cudaMallocFromPoolAsync_ptsz(p: *mut P, n: usize, pool: P, s: Stream) n as u64, |ok| [out_word(ok, p), n as u64];
    cudaMallocHost(p: *mut P, n: usize) n as u64, |ok| [out_word(ok, p), n as u64];
    cudaHostAlloc(p: *mut P, n: usize, f: c_uint) n as u64, |ok| [out_word(ok, p), n as u64];
    cudaMallocPitch(p: *mut P, pitch: *mut usize, w: usize, h: usize) (w as u64).wrapping_mul(h as u64), |ok| [out_word(ok, p), out_word(ok, pitch).wrapping_mul(h as u64)];
    cudaMalloc3D(p: *mut Pitched, e: Extent) in (p) e.bytes(), |ok| made_3d(ok, p, e);
    cudaHostRegister(p: P, n: usize, f: c_uint) p as u64, |_ok| [p as u64, n as u64];
    cudaHostUnregister(p: P) p as u64, |_ok| [p as u64, 0];
    cudaFree(p: P) p as u64, |_ok| [p as u64, 0];
    cudaFreeAsync(p: P, s: Stream) p as u64, |_ok| [p as u64, 0];
    cudaFreeAsync_ptsz(p: P, s: Stream) p as u64, |_ok| [p as u64, 0];
    cudaFreeHost(p: P) p as u64, |_ok| [p as u64, 0];
    cudaMemGetInfo(free: *mut usize, total: *mut usize) 0, |ok| [0, out_word(ok, free)];

    cudaMemcpy(to: P, from: Const, n: usize, k: c_int) n as u64, |_ok| [to as u64, n as u64];
    cudaMemcpy_ptds(to: P, from: Const, n: usize, k: c_int) n as u64, |_ok| [to as u64, n as u64];
    cudaMemcpyAsync(to: P, from: Const, n: usize, k: c_int, s: Stream) n as u64, |_ok| [to as u64, n as u64];
    cudaMemcpyAsync_ptsz(to: P, from: Const, n: usize, k: c_int, s: Stream) n as u64, |_ok| [to as u64, n as u64];
    cudaMemcpyPeer(to: P, td: c_int, from: Const, fd: c_int, n: usize) n as u64, |_ok| [to as u64, n as u64];
    cudaMemcpyPeerAsync(to: P, td: c_int, from: Const, fd: c_int, n: usize, s: Stream) n as u64, |_ok| [to as u64, n as u64];
    cudaMemcpy2D(to: P, tp: usize, from: Const, fp: usize, w: usize, h: usize, k: c_int) (w as u64).wrapping_mul(h as u64), |_ok| [to as u64, (w as u64).wrapping_mul(h as u64)];
    cudaMemcpy2D_ptds(to: P, tp: usize, from: Const, fp: usize, w: usize, h: usize, k: c_int) (w as u64).wrapping_mul(h as u64), |_ok| [to as u64, (w as u64).wrapping_mul(h as u64)];
    cudaMemcpy2DAsync(to: P, tp: usize, from: Const, fp: usize, w: usize, h: usize, k: c_int, s: Stream) (w as u64).wrapping_mul(h as u64), |_ok| [to as u64, (w as u64).wrapping_mul(h as u64)];
    cudaMemcpy2DAsync_ptsz(to: P, tp: usize, from: Const, fp: usize, w: usize, h: usize, k: c_int, s: Stream) (w as u64).wrapping_mul(h as u64), |_ok| [to as u64, (w as u64).wrapping_mul(h as u64)];
    cudaMemcpy3D(d: Const) d as u64, |_ok| [0, 0];
    cudaMemcpy3D_ptds(d: Const) d as u64, |_ok| [0, 0];
    cudaMemcpy3DAsync(d: Const, s: Stream) d as u64, |_ok| [0, 0];
    cudaMemcpy3DAsync_ptsz(d: Const, s: Stream) d as u64, |_ok| [0, 0];
    cudaMemcpy3DPeer(d: Const) d as u64, |_ok| [0, 0];
    cudaMemcpy3DPeer_ptds(d: Const) d as u64, |_ok| [0, 0];
    cudaMemcpy3DPeerAsync(d: Const, s: Stream) d as u64, |_ok| [0, 0];
    cudaMemcpy3DPeerAsync_ptsz(d: Const, s: Stream) d as u64, |_ok| [0, 0];
    cudaMemcpyToSymbol(to: Const, from: Const, n: usize, o: usize, k: c_int) n as u64, |_ok| [to as u64, n as u64];
    cudaMemcpyToSymbol_ptds(to: Const, from: Const, n: usize, o: usize, k: c_int) n as u64, |_ok| [to as u64, n as u64];
    cudaMemcpyFromSymbol(to: P, from: Const, n: usize, o: usize, k: c_int) n as u64, |_ok| [to as u64, n as u64];
    cudaMemcpyFromSymbol_ptds(to: P, from: Const, n: usize, o: usize, k: c_int) n as u64, |_ok| [to as u64, n as u64];
    cudaMemcpyToSymbolAsync(to: Const, from: Const, n: usize, o: usize, k: c_int, s: Stream) n as u64, |_ok| [to as u64, n as u64];
    cudaMemcpyToSymbolAsync_ptsz(to: Const, from: Const, n: usize, o: usize, k: c_int, s: Stream) n as u64, |_ok| [to as u64, n as u64];
    cudaMemcpyFromSymbolAsync(to: P, from: Const, n: usize, o: usize, k: c_int, s: Stream) n as u64, |_ok| [to as u64, n as u64];
    cudaMemcpyFromSymbolAsync_ptsz(to: P, from: Const, n: usize, o: usize, k: c_int, s: Stream) n as u64, |_ok| [to as u64, n as u64];

    cudaMemset(p: P, v: c_int, n: usize) n as u64, |_ok| [p as u64, n as u64];
    cudaMemset_ptds(p: P, v: c_int, n: usize) n as u64, |_ok| [p as u64, n as u64];
    cudaMemsetAsync(p: P, v: c_int, n: usize, s: Stream) n as u64, |_ok| [p as u64, n as u64];
    cudaMemsetAsync_ptsz(p: P, v: c_int, n: usize, s: Stream) n as u64, |_ok| [p as u64, n as u64];
    cudaMemset2D(p: P, pitch: usize, v: c_int, w: usize, h: usize) (w as u64).wrapping_mul(h as u64), |_ok| [p as u64, (w as u64).wrapping_mul(h as u64)];
    cudaMemset2D_ptds(p: P, pitch: usize, v: c_int, w: usize, h: usize) (w as u64).wrapping_mul(h as u64), |_ok| [p as u64, (w as u64).wrapping_mul(h as u64)];
    cudaMemset2DAsync(p: P, pitch: usize, v: c_int, w: usize, h: usize, s: Stream) (w as u64).wrapping_mul(h as u64), |_ok| [p as u64, (w as u64).wrapping_mul(h as u64)];
    cudaMemset2DAsync_ptsz(p: P, pitch: usize, v: c_int, w: usize, h: usize, s: Stream) (w as u64).wrapping_mul(h as u64), |_ok| [p as u64, (w as u64).wrapping_mul(h as u64)];
    cudaMemset3D(p: Pitched, v: c_int, e: Extent) in (v) e.bytes(), |_ok| [p.pointer as u64, e.bytes()];
    cudaMemset3D_ptds(p: Pitched, v: c_int, e: Extent) in (v) e.bytes(), |_ok| [p.pointer as u64, e.bytes()];
    cudaMemset3DAsync(p: Pitched, v: c_int, e: Extent, s: Stream) in (v s) e.bytes(), |_ok| [p.pointer as u64, e.bytes()];
    cudaMemset3DAsync_ptsz(p: Pitched, v: c_int, e: Extent, s: Stream) in (v s) e.bytes(), |_ok| [p.pointer as u64, e.bytes()];

    // Arrays.
    cudaMallocArray(a: *mut P, f: Const, w: usize, h: usize, flags: c_uint) (w as u64).wrapping_mul(h as u64), |ok| [out_word(ok, a), 0];
    cudaMalloc3DArray(a: *mut P, f: Const, e: Extent, flags: c_uint) in (a f flags) e.bytes(), |ok| [out_word(ok, a), 0];
    cudaMallocMipmappedArray(a: *mut P, f: Const, e: Extent, levels: c_uint, flags: c_uint) in (a f levels flags) e.bytes(), |ok| [out_word(ok, a), 0];
    cudaFreeArray(a: P) a as u64, |_ok| [a as u64, 0];
    cudaFreeMipmappedArray(a: P) a as u64, |_ok| [a as u64, 0];
    cudaMemcpyToArray(to: P, x: usize, y: usize, from: Const, n: usize, k: c_int) n as u64, |_ok| [to as u64, n as u64];
    cudaMemcpyToArray_ptds(to: P, x: usize, y: usize, from: Const, n: usize, k: c_int) n as u64, |_ok| [to as u64, n as u64];
    cudaMemcpyToArrayAsync(to: P, x: usize, y: usize, from: Const, n: usize, k: c_int, s: Stream) n as u64, |_ok| [to as u64, n as u64];
    cudaMemcpyToArrayAsync_ptsz(to: P, x: usize, y: usize, from: Const, n: usize, k: c_int, s: Stream) n as u64, |_ok| [to as u64, n as u64];
    cudaMemcpyFromArray(to: P, from: Const, x: usize, y: usize, n: usize, k: c_int) n as u64, |_ok| [to as u64, n as u64];
    cudaMemcpyFromArray_ptds(to: P, from: Const, x: usize, y: usize, n: usize, k: c_int) n as u64, |_ok| [to as u64, n as u64];
    cudaMemcpyFromArrayAsync(to: P, from: Const, x: usize, y: usize, n: usize, k: c_int, s: Stream) n as u64, |_ok| [to as u64, n as u64];
    cudaMemcpyFromArrayAsync_ptsz(to: P, from: Const, x: usize, y: usize, n: usize, k: c_int, s: Stream) n as u64, |_ok| [to as u64, n as u64];
    cudaMemcpyArrayToArray(to: P, tx: usize, ty: usize, from: Const, x: usize, y: usize, n: usize, k: c_int) n as u64, |_ok| [to as u64, n as u64];
    cudaMemcpyArrayToArray_ptds(to: P, tx: usize, ty: usize, from: Const, x: usize, y: usize, n: usize, k: c_int) n as u64, |_ok| [to as u64, n as u64];
    cudaMemcpy2DToArray(to: P, x: usize, y: usize, from: Const, pitch: usize, w: usize, h: usize, k: c_int) (w as u64).wrapping_mul(h as u64), |_ok| [to as u64, (w as u64).wrapping_mul(h as u64)];
    cudaMemcpy2DToArray_ptds(to: P, x: usize, y: usize, from: Const, pitch: usize, w: usize, h: usize, k: c_int) (w as u64).wrapping_mul(h as u64), |_ok| [to as u64, (w as u64).wrapping_mul(h as u64)];
    cudaMemcpy2DToArrayAsync(to: P, x: usize, y: usize, from: Const, pitch: usize, w: usize, h: usize, k: c_int, s: Stream) (w as u64).wrapping_mul(h as u64), |_ok| [to as u64, (w as u64).wrapping_mul(h as u64)];
    cudaMemcpy2DToArrayAsync_ptsz(to: P, x: usize, y: usize, from: Const, pitch: usize, w: usize, h: usize, k: c_int, s: Stream) (w as u64).wrapping_mul(h as u64), |_ok| [to as u64, (w as u64).wrapping_mul(h as u64)];
    cudaMemcpy2DFromArray(to: P, pitch: usize, from: Const, x: usize, y: usize, w: usize, h: usize, k: c_int) (w as u64).wrapping_mul(h as u64), |_ok| [to as u64, (w as u64).wrapping_mul(h as u64)];
    cudaMemcpy2DFromArray_ptds(to: P, pitch: usize, from: Const, x: usize, y: usize, w: usize, h: usize, k: c_int) (w as u64).wrapping_mul(h as u64), |_ok| [to as u64, (w as u64).wrapping_mul(h as u64)];
    cudaMemcpy2DFromArrayAsync(to: P, pitch: usize, from: Const, x: usize, y: usize, w: usize, h: usize, k: c_int, s: Stream) (w as u64).wrapping_mul(h as u64), |_ok| [to as u64, (w as u64).wrapping_mul(h as u64)];
    cudaMemcpy2DFromArrayAsync_ptsz(to: P, pitch: usize, from: Const, x: usize, y: usize, w: usize, h: usize, k: c_int, s: Stream) (w as u64).wrapping_mul(h as u64), |_ok| [to as u64, (w as u64).wrapping_mul(h as u64)];
    cudaMemcpy2DArrayToArray(to: P, tx: usize, ty: usize, from: Const, x: usize, y: usize, w: usize, h: usize, k: c_int) (w as u64).wrapping_mul(h as u64), |_ok| [to as u64, (w as u64).wrapping_mul(h as u64)];
    cudaMemcpy2DArrayToArray_ptds(to: P, tx: usize, ty: usize, from: Const, x: usize, y: usize, w: usize, h: usize, k: c_int) (w as u64).wrapping_mul(h as u64), |_ok| [to as u64, (w as u64).wrapping_mul(h as u64)];

    // Memory made elsewhere.
    cudaIpcOpenMemHandle(p: *mut P, h: IpcHandle, f: c_uint) in (p f) u64::from(f), |ok| [out_word(ok, p), 0];
    cudaIpcCloseMemHandle(p: P) p as u64, |_ok| [p as u64, 0];
    cudaImportExternalMemory(m: *mut P, d: Const) d as u64, |ok| [out_word(ok, m), 0];
    cudaExternalMemoryGetMappedBuffer(p: *mut P, m: P, d: Const) m as u64, |ok| [out_word(ok, p), 0];
    cudaExternalMemoryGetMappedMipmappedArray(a: *mut P, m: P, d: Const) m as u64, |ok| [out_word(ok, a), 0];
    cudaDestroyExternalMemory(m: P) m as u64, |_ok| [m as u64, 0];
    cudaMemPoolImportPointer(p: *mut P, pool: P, d: Const) pool as u64, |ok| [out_word(ok, p), 0];

    // Pools.
    cudaMemPoolCreate(p: *mut P, d: Const) d as u64, |ok| [out_word(ok, p), 0];
    cudaMemPoolImportFromShareableHandle(p: *mut P, from: P, kind: c_uint, f: c_uint) u64::from(kind), |ok| [out_word(ok, p), 0];
    cudaMemPoolDestroy(p: P) p as u64, |_ok| [p as u64, 0];
    cudaMemPoolTrimTo(p: P, n: usize) p as u64, |_ok| [p as u64, n as u64];
    cudaMemPoolSetAttribute(p: P, a: c_uint, v: P) p as u64, |_ok| [p as u64, 0];
    cudaMemPoolGetAttribute(p: P, a: c_uint, v: P) p as u64, |_ok| [p as u64, 0];
    cudaDeviceGetDefaultMemPool(p: *mut P, d: c_int) d as u64, |ok| [out_word(ok, p), 0];
    cudaDeviceGetMemPool(p: *mut P, d: c_int) d as u64, |ok| [out_word(ok, p), 0];
    cudaDeviceSetMemPool(d: c_int, p: P) p as u64, |_ok| [p as u64, 0];
    cudaMemGetDefaultMemPool(p: *mut P, l: Const, kind: c_uint) u64::from(kind), |ok| [out_word(ok, p), 0];
    cudaMemGetMemPool(p: *mut P, l: Const, kind: c_uint) u64::from(kind), |ok| [out_word(ok, p), 0];
    cudaMemSetMemPool(l: Const, kind: c_uint, p: P) p as u64, |_ok| [p as u64, 0];

    // Where managed memory is to be, and batches. These names have other arguments in CUDA 12
    // than in 13: each row hands on the longer list, whose additions the other does not look at.
    cudaMemPrefetchAsync(p: Const, n: usize, l: u64, f: u64, s: Stream) n as u64, |_ok| [p as u64, n as u64];
    cudaMemPrefetchAsync_ptsz(p: Const, n: usize, l: u64, f: u64, s: Stream) n as u64, |_ok| [p as u64, n as u64];
    cudaMemPrefetchAsync_v2(p: Const, n: usize, l: u64, f: c_uint, s: Stream) n as u64, |_ok| [p as u64, n as u64];
    cudaMemPrefetchAsync_v2_ptsz(p: Const, n: usize, l: u64, f: c_uint, s: Stream) n as u64, |_ok| [p as u64, n as u64];
    cudaMemAdvise(p: Const, n: usize, advice: c_uint, l: u64) n as u64, |_ok| [p as u64, n as u64];
    cudaMemAdvise_v2(p: Const, n: usize, advice: c_uint, l: u64) n as u64, |_ok| [p as u64, n as u64];
    cudaMemPrefetchBatchAsync(p: P, sizes: P, count: usize, l: P, firsts: P, kinds: usize, f: u64, s: Stream) count as u64, |_ok| [0, 0];
    cudaMemPrefetchBatchAsync_ptsz(p: P, sizes: P, count: usize, l: P, firsts: P, kinds: usize, f: u64, s: Stream) count as u64, |_ok| [0, 0];
    cudaMemDiscardAndPrefetchBatchAsync(p: P, sizes: P, count: usize, l: P, firsts: P, kinds: usize, f: u64, s: Stream) count as u64, |_ok| [0, 0];
    cudaMemDiscardAndPrefetchBatchAsync_ptsz(p: P, sizes: P, count: usize, l: P, firsts: P, kinds: usize, f: u64, s: Stream) count as u64, |_ok| [0, 0];
    cudaMemcpyBatchAsync(to: P, from: P, sizes: P, count: usize, a: P, firsts: P, kinds: usize, failed: P, s: Stream) count as u64, |_ok| [0, 0];
    cudaMemcpyBatchAsync_ptsz(to: P, from: P, sizes: P, count: usize, a: P, firsts: P, kinds: usize, failed: P, s: Stream) count as u64, |_ok| [0, 0];
    cudaMemcpy3DBatchAsync(count: usize, list: P, failed: P, f: u64, s: Stream) count as u64, |_ok| [0, 0];
    cudaMemcpy3DBatchAsync_ptsz(count: usize, list: P, failed: P, f: u64, s: Stream) count as u64, |_ok| [0, 0];

    cudaDeviceReset() 0, |_ok| [0, 0];
    cudaSetDevice(d: c_int) 0, |_ok| [0, 0], then record::device_current(i64::from(d));

    // Capture and graphs. Versions of the runtime differ in the number of arguments; the most are
    // handed on, which are all in registers.
    cudaStreamBeginCapture(s: Stream, mode: c_int) s as u64, |_ok| LABEL;
    cudaStreamBeginCapture_ptsz(s: Stream, mode: c_int) s as u64, |_ok| LABEL;
    cudaStreamBeginCaptureToGraph(s: Stream, g: P, d: Const, e: Const, n: usize, mode: c_int) s as u64, |_ok| LABEL;
    cudaStreamBeginCaptureToGraph_ptsz(s: Stream, g: P, d: Const, e: Const, n: usize, mode: c_int) s as u64, |_ok| LABEL;
    cudaStreamEndCapture(s: Stream, g: *mut P) s as u64, |_ok| LABEL;
    cudaStreamEndCapture_ptsz(s: Stream, g: *mut P) s as u64, |_ok| LABEL;
    cudaGraphCreate(g: *mut P, f: c_uint) 0, |_ok| LABEL;
    cudaGraphClone(g: *mut P, from: P) from as u64, |_ok| LABEL;
    cudaGraphDestroy(g: P) g as u64, |_ok| LABEL;
    cudaGraphAddMemAllocNode(node: *mut P, g: P, d: Const, n: usize, p: P) g as u64, |_ok| LABEL;
    cudaGraphAddMemFreeNode(node: *mut P, g: P, d: Const, n: usize, p: P) p as u64, |_ok| LABEL;
    cudaGraphAddNode(node: *mut P, g: P, d: Const, e: Const, n: usize, p: P) g as u64, |_ok| LABEL;
    cudaGraphAddNode_v2(node: *mut P, g: P, d: Const, e: Const, n: usize, p: P) g as u64, |_ok| LABEL;
    cudaGraphInstantiate(x: *mut P, g: P, node: Const, log: Const, n: usize) g as u64, |_ok| LABEL;
    cudaGraphInstantiateWithFlags(x: *mut P, g: P, f: u64) g as u64, |_ok| LABEL;
    cudaGraphInstantiateWithParams(x: *mut P, g: P, p: P) g as u64, |_ok| LABEL;
    cudaGraphInstantiateWithParams_ptsz(x: *mut P, g: P, p: P) g as u64, |_ok| LABEL;
    cudaGraphExecUpdate(x: P, g: P, node: Const, result: Const) x as u64, |_ok| LABEL;
    cudaGraphExecDestroy(x: P) x as u64, |_ok| LABEL;
    cudaGraphLaunch(x: P, s: Stream) x as u64, |_ok| LABEL;
    cudaGraphLaunch_ptsz(x: P, s: Stream) x as u64, |_ok| LABEL;
    cudaDeviceGraphMemTrim(d: c_int) 0, |_ok| LABEL;
    cudaDeviceGetGraphMemAttribute(d: c_int, attribute: c_int, v: P) 0, |_ok| LABEL;

    // Objects that own memory without an allocation call.
    cudaStreamCreate(s: *mut Stream) 0, |_ok| LABEL;
    cudaStreamCreateWithFlags(s: *mut Stream, f: c_uint) 0, |_ok| LABEL;
    cudaStreamCreateWithPriority(s: *mut Stream, f: c_uint, priority: c_int) 0, |_ok| LABEL;
    cudaStreamDestroy(s: Stream) s as u64, |_ok| LABEL;
    cudaEventCreate(e: *mut P) 0, |_ok| LABEL;
    cudaEventCreateWithFlags(e: *mut P, f: c_uint) 0, |_ok| LABEL;
    cudaEventDestroy(e: P) e as u64, |_ok| LABEL;
    cudaLibraryLoadData(l: *mut P, code: Const, jo: P, jv: P, jn: c_uint, lo: P, lv: P, ln: c_uint) code as u64, |_ok| LABEL;
    cudaLibraryLoadFromFile(l: *mut P, file: Const, jo: P, jv: P, jn: c_uint, lo: P, lv: P, ln: c_uint) 0, |_ok| LABEL;
    cudaLibraryUnload(l: P) l as u64, |_ok| LABEL;
    cudaCreateTextureObject(t: *mut u64, resource: Const, d: Const, view: Const) 0, |_ok| LABEL;
    cudaDestroyTextureObject(t: u64) t, |_ok| LABEL;
    cudaCreateSurfaceObject(s: *mut u64, resource: Const) 0, |_ok| LABEL;
    cudaDestroySurfaceObject(s: u64) s, |_ok| LABEL;
    cudaDeviceSetLimit(limit: c_int, v: usize) v as u64, |_ok| LABEL;
}
