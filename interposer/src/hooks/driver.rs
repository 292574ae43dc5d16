//! Driver rows: where memory is accounted.
#![allow(non_camel_case_types, reason = "rows are named after their symbols")]
#![allow(clippy::too_many_arguments, reason = "the signatures are CUDA's")]

use core::ffi::{c_int, c_uint, c_void};
use core::ptr::addr_of;

use cudarc::driver::sys;
use gmmtrace_format::kind::{Kind, copy, object, pool, source};

use super::described::{
    self, IpcHandle, Location, Targets, attribute, element, external_array, external_buffer,
};
use super::{out_half, out_int, out_word};
use crate::lookup::{self, NOT_INITIALIZED};
use crate::record::{self, Api};
use crate::stub::{Origin, stub};
use crate::table::{DRIVER_BASE, Row};
use crate::{capture, helper};

type Pointer = u64;
/// CUDA 2.0's.
type OldPointer = u32;
type Handle = *mut c_void;
type Stream = *mut c_void;

/// Declares the rows. Each: symbol, arguments, kind of its event, the argument that the
/// in-flight slot shows, the operands (`ok`: the call succeeded; where asked for, its status), and
/// what else to note. `PER_THREAD` is true in the rows of per-thread stream variants. Where a
/// structure is passed by value on the stack, `@` names the arguments that come in registers.
/// Batches make one event for each of their members: their number, and the operands of one. Chosen
/// rows make an event only for some arguments.
macro_rules! rows {
    (
        $($name:ident ($($a:ident: $t:ty),*) $(@ ($($r:ident)*))? $kind:ident, $argument:expr, |$ok:ident $(, $code:ident)?| $operands:expr $(, then $then:expr)?;)*
        @batches
        $($batch:ident ($($ba:ident: $bt:ty),*) $batch_kind:ident, $count:expr, |$member:ident| $of:expr $(, with $state:ident = $init:expr)?;)*
        @chosen
        $($chosen:ident ($($ca:ident: $ct:ty),*) |$cok:ident| $choice:expr;)*
        @watched
        $($watched:ident ($($wa:ident: $wt:ty),*) $note:expr;)*
    ) => {
        #[repr(u16)]
        enum Index { $($name,)* $($batch,)* $($chosen,)* $($watched),* }

        /// Every driver row.
        pub static ROWS: &[Row] = &[$(Row {
            name: match core::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => c"",
            },
            stub: $name,
            slots: &[],
        },)* $(Row {
            name: match core::ffi::CStr::from_bytes_with_nul(concat!(stringify!($batch), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => c"",
            },
            stub: $batch,
            slots: &[],
        },)* $(Row {
            name: match core::ffi::CStr::from_bytes_with_nul(concat!(stringify!($chosen), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => c"",
            },
            stub: $chosen,
            slots: &[],
        },)* $(Row {
            name: match core::ffi::CStr::from_bytes_with_nul(concat!(stringify!($watched), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => c"",
            },
            stub: $watched,
            slots: &[],
        }),*];

        // Chosen rows make an event only for some arguments.
        $(
            stub!(#[unsafe(no_mangle)] $chosen, $chosen::body, 0, [], ($($ca)*));

            mod $chosen {
                use super::*;

                pub unsafe extern "C" fn body($($ca: $ct,)* origin: Origin) -> u32 {
                    const INDEX: usize = Index::$chosen as usize;
                    const API: Api = Api::new(DRIVER_BASE + INDEX as u16, stringify!($chosen));
                    let real = lookup::driver_real(INDEX, origin);
                    if real == 0 {
                        return NOT_INITIALIZED;
                    }
                    // SAFETY: the real function's address; the signature is this row's.
                    let real = unsafe {
                        core::mem::transmute::<usize, unsafe extern "C" fn($($ct),*) -> u32>(real)
                    };
                    let open = record::begin_quietly();
                    // SAFETY: the caller's own arguments, once.
                    let status = unsafe { real($($ca),*) };
                    let $cok = status == 0;
                    // SAFETY: what the driver has read and, after success, written.
                    if let Some((kind, operands)) = unsafe { $choice } {
                        record::end(open, API, origin, kind, status, operands);
                    }
                    status
                }
            }
        )*

        // Watched rows tell the thread's context, which makes an event only when it changes, and
        // which streams are being captured.
        $(
            stub!(#[unsafe(no_mangle)] $watched, $watched::body, 0, [], ($($wa)*));

            mod $watched {
                use super::*;

                /// Whether stream 0 means the thread's own default stream.
                #[allow(dead_code, reason = "for rows with a stream")]
                const PER_THREAD: bool = Api::new(0, stringify!($watched)).per_thread;

                #[allow(unused_unsafe, reason = "notes without out-parameters need none")]
                pub unsafe extern "C" fn body($($wa: $wt,)* origin: Origin) -> u32 {
                    let real = lookup::driver_real(Index::$watched as usize, origin);
                    if real == 0 {
                        return NOT_INITIALIZED;
                    }
                    // SAFETY: the real function's address; the signature is this row's.
                    let real = unsafe {
                        core::mem::transmute::<usize, unsafe extern "C" fn($($wt),*) -> u32>(real)
                    };
                    // SAFETY: the caller's own arguments, once.
                    let status = unsafe { real($($wa),*) };
                    if status == 0 {
                        // SAFETY: out-parameters are read only after success.
                        unsafe { $note };
                    }
                    status
                }
            }
        )*

        $(
            stub!(#[unsafe(no_mangle)] $name, $name::body, 0, [], ($($a)*) $(($($r)*))?);

            mod $name {
                use super::*;

                const INDEX: usize = Index::$name as usize;
                const API: Api = Api::new(DRIVER_BASE + INDEX as u16, stringify!($name));
                /// Whether stream 0 means the thread's own default stream.
                #[allow(dead_code, reason = "for rows with a stream")]
                const PER_THREAD: bool = API.per_thread;

                #[allow(unused_unsafe, reason = "operands without out-parameters need none")]
                pub unsafe extern "C" fn body($($a: $t,)* origin: Origin) -> u32 {
                    let real = lookup::driver_real(INDEX, origin);
                    if real == 0 {
                        return NOT_INITIALIZED;
                    }
                    // SAFETY: the real function's address; the signature is this row's.
                    let real = unsafe {
                        core::mem::transmute::<usize, unsafe extern "C" fn($($t),*) -> u32>(real)
                    };
                    let open = record::begin(API, $argument, Kind::$kind);
                    // SAFETY: the caller's own arguments, once.
                    let status = unsafe { real($($a),*) };
                    let $ok = status == 0;
                    $(let $code = status;)?
                    // SAFETY: out-parameters are read only after success.
                    let operands = unsafe { $operands };
                    record::end(open, API, origin, Kind::$kind, status, operands);
                    $(if $ok {
                        // SAFETY: out-parameters are read only after success.
                        unsafe { $then };
                    })?
                    status
                }
            }
        )*

        $(
            stub!(#[unsafe(no_mangle)] $batch, $batch::body, 0, [], ($($ba)*));

            mod $batch {
                use super::*;

                pub unsafe extern "C" fn body($($ba: $bt,)* origin: Origin) -> u32 {
                    const INDEX: usize = Index::$batch as usize;
                    const API: Api = Api::new(DRIVER_BASE + INDEX as u16, stringify!($batch));
                    let real = lookup::driver_real(INDEX, origin);
                    if real == 0 {
                        return NOT_INITIALIZED;
                    }
                    // SAFETY: the real function's address; the signature is this row's.
                    let real = unsafe {
                        core::mem::transmute::<usize, unsafe extern "C" fn($($bt),*) -> u32>(real)
                    };
                    let open = record::begin(API, $count as u64, Kind::$batch_kind);
                    // SAFETY: the caller's own arguments, once.
                    let status = unsafe { real($($ba),*) };
                    $(let mut $state = $init;)?
                    record::end_each(open, API, origin, Kind::$batch_kind, status, $count, &mut |$member| {
                        // SAFETY: asked only after success, for members that the call had.
                        unsafe { $of }
                    });
                    status
                }
            }
        )*
    };
}

const A: u64 = copy::ASYNCHRONOUS;
const HTOD: u64 = copy::HOST_TO_DEVICE;
const DTOH: u64 = copy::DEVICE_TO_HOST;
const DTOD: u64 = copy::DEVICE_TO_DEVICE;

/// Direction of a copy from the memory types of its sides: 1 host, 2 device, 3 array, 4 unified.
pub(super) fn direction(from: u32, to: u32) -> u64 {
    match (from, to) {
        (1, 2) => copy::HOST_TO_DEVICE,
        (2, 1) => copy::DEVICE_TO_HOST,
        (1, 3) => copy::HOST_TO_ARRAY,
        (3, 1) => copy::ARRAY_TO_HOST,
        (3, 3) => copy::ARRAY_TO_ARRAY,
        (3, 2) => copy::ARRAY_TO_DEVICE,
        (2, 3) => copy::DEVICE_TO_ARRAY,
        (2, 2) => copy::DEVICE_TO_DEVICE,
        (1, 1) => copy::HOST_TO_HOST,
        _ => copy::UNIFIED,
    }
}

pub(super) fn side(kind: u32, host: u64, device: u64, array: u64) -> u64 {
    match kind {
        1 => host,
        3 => array,
        _ => device,
    }
}

/// Operands of a copy from its descriptor. Enums are read as numbers, because a newer driver's
/// header may have values that this one's lacks.
macro_rules! described {
    ($d:expr, $t:ty, $asynchronous:expr, $stream:expr, $bytes:expr) => {{
        let d: *const $t = $d.cast();
        if d.is_null() {
            [$asynchronous, 0, 0, 0, $stream]
        } else {
            // SAFETY: the driver has just read the same descriptor.
            unsafe {
                let from = addr_of!((*d).srcMemoryType).cast::<u32>().read_unaligned();
                let to = addr_of!((*d).dstMemoryType).cast::<u32>().read_unaligned();
                let mode = direction(from, to) | $asynchronous;
                let target = side(to, (*d).dstHost as u64, (*d).dstDevice, (*d).dstArray as u64);
                let source = side(from, (*d).srcHost as u64, (*d).srcDevice, (*d).srcArray as u64);
                [mode, target, source, $bytes(&*d), $stream]
            }
        }
    }};
}

fn copy_2d(d: *const c_void, asynchronous: u64, stream: u64) -> [u64; 5] {
    let bytes = |d: &sys::CUDA_MEMCPY2D| (d.WidthInBytes as u64).wrapping_mul(d.Height as u64);
    described!(d, sys::CUDA_MEMCPY2D, asynchronous, stream, bytes)
}

fn copy_3d(d: *const c_void, asynchronous: u64, stream: u64) -> [u64; 5] {
    let bytes = |d: &sys::CUDA_MEMCPY3D| {
        (d.WidthInBytes as u64).wrapping_mul(d.Height as u64).wrapping_mul(d.Depth as u64)
    };
    described!(d, sys::CUDA_MEMCPY3D, asynchronous, stream, bytes)
}

fn copy_3d_peer(d: *const c_void, asynchronous: u64, stream: u64) -> [u64; 5] {
    let bytes = |d: &sys::CUDA_MEMCPY3D_PEER| {
        (d.WidthInBytes as u64).wrapping_mul(d.Height as u64).wrapping_mul(d.Depth as u64)
    };
    let mut operands = described!(d, sys::CUDA_MEMCPY3D_PEER, asynchronous, stream, bytes);
    if let Some(mode) = operands.first_mut()
        && *mode & copy::DIRECTION == DTOD
    {
        *mode = copy::PEER | asynchronous;
    }
    operands
}

fn times(a: usize, b: usize) -> u64 {
    (a as u64).wrapping_mul(b as u64)
}

fn old_times(a: c_uint, b: c_uint) -> u64 {
    u64::from(a).wrapping_mul(u64::from(b))
}

/// Size, location type and location of a physical allocation.
fn location(properties: *const c_void) -> [u64; 2] {
    let p: *const sys::CUmemAllocationProp = properties.cast();
    if p.is_null() {
        return [0, u64::MAX];
    }
    // SAFETY: the driver has just read the same structure; the location is two ints.
    unsafe {
        let location = addr_of!((*p).location).cast::<i32>();
        let (kind, id) = (location.read_unaligned(), location.add(1).read_unaligned());
        [u64::from(kind.cast_unsigned()), i64::from(id).cast_unsigned()]
    }
}

/// Operands of an object that was made, and of what or in what.
#[inline(always)]
fn made(handle: u64, class: u64, of: u64) -> [u64; 5] {
    [handle, class, of, 0, 0]
}

/// Operands of an object that is destroyed.
#[inline(always)]
fn gone(handle: u64, class: u64) -> [u64; 5] {
    [handle, class, 0, 0, 0]
}

/// The end of a capture: whatever its result, and the graph that it made.
///
/// # Safety
/// When `ok`, `graph` is null or what the successful call wrote to.
unsafe fn end_capture(
    ok: bool,
    status: u32,
    stream: Stream,
    per_thread: bool,
    graph: *const Handle,
) -> [u64; 5] {
    let stream = capture::key(stream as u64, per_thread);
    capture::ended(stream, status);
    // SAFETY: by the caller's promise.
    made(unsafe { out_word(ok, graph) }, object::GRAPH, stream)
}

/// Operands of a node that takes memory.
///
/// # Safety
/// `parameters` is null or what the call was given, and wrote to when `ok`.
unsafe fn alloc_node(ok: bool, parameters: *const c_void, graph: Handle) -> [u64; 5] {
    let p: *const sys::CUDA_MEM_ALLOC_NODE_PARAMS = parameters.cast();
    if p.is_null() {
        return [0, 0, graph as u64, 0, 0];
    }
    // SAFETY: the driver has just read the same structure, and written its pointer when `ok`.
    let (pointer, bytes) = unsafe {
        let pointer = if ok { addr_of!((*p).dptr).read_unaligned() } else { 0 };
        (pointer, addr_of!((*p).bytesize).read_unaligned())
    };
    [pointer, bytes as u64, graph as u64, 0, 0]
}

/// The event of a node of any type, for those that take or give memory.
///
/// # Safety
/// As for [`alloc_node`], with the parameters of a generic node.
unsafe fn graph_node(
    ok: bool,
    parameters: *const c_void,
    graph: Handle,
) -> Option<(Kind, [u64; 5])> {
    const MEM_ALLOC: u32 = sys::CUgraphNodeType_enum::CU_GRAPH_NODE_TYPE_MEM_ALLOC as u32;
    const MEM_FREE: u32 = sys::CUgraphNodeType_enum::CU_GRAPH_NODE_TYPE_MEM_FREE as u32;
    let p: *const sys::CUgraphNodeParams = parameters.cast();
    if p.is_null() {
        return None;
    }
    // SAFETY: the driver has just read the same structure. The type is read as a number, because
    // a newer driver's header may have values that this one's lacks.
    let (kind, alloc, free) = unsafe {
        let own = addr_of!((*p).__bindgen_anon_1);
        let kind = addr_of!((*p).type_).cast::<u32>().read_unaligned();
        (kind, addr_of!((*own).alloc), addr_of!((*own).free))
    };
    match kind {
        // SAFETY: by the caller's promise; the type says which parameters they are.
        MEM_ALLOC => Some((Kind::GraphAlloc, unsafe { alloc_node(ok, alloc.cast(), graph) })),
        MEM_FREE => {
            // SAFETY: as above.
            let pointer = unsafe { addr_of!((*free).dptr).read_unaligned() };
            Some((Kind::GraphFree, [pointer, graph as u64, 0, 0, 0]))
        }
        _ => None,
    }
}

rows! {
    // Linear device, managed and pinned memory.
    cuMemAlloc_v2(p: *mut Pointer, n: usize) DeviceAlloc, n as u64, |ok| [out_word(ok, p), n as u64, 0, 0, 0];
    cuMemAllocPitch_v2(p: *mut Pointer, pitch: *mut usize, w: usize, h: usize, element: c_uint) DeviceAlloc, times(w, h),
        |ok| [out_word(ok, p), if ok { out_word(ok, pitch).wrapping_mul(h as u64) } else { times(w, h) }, 0, 0, 0];
    cuMemFree_v2(p: Pointer) Free, p, |_ok| [p, 0, 0, 0, 0];
    cuMemAllocManaged(p: *mut Pointer, n: usize, f: c_uint) ManagedAlloc, n as u64, |ok| [out_word(ok, p), n as u64, u64::from(f), 0, 0];
    cuMemAllocHost_v2(p: *mut *mut c_void, n: usize) PinnedAlloc, n as u64, |ok| [out_word(ok, p), n as u64, 0, 0, 0];
    cuMemHostAlloc(p: *mut *mut c_void, n: usize, f: c_uint) PinnedAlloc, n as u64, |ok| [out_word(ok, p), n as u64, u64::from(f), 0, 0];
    cuMemFreeHost(p: *mut c_void) PinnedFree, p as u64, |_ok| [p as u64, 0, 0, 0, 0];
    cuMemHostRegister_v2(p: *mut c_void, n: usize, f: c_uint) HostRegister, p as u64, |_ok| [p as u64, n as u64, u64::from(f), 0, 0];
    cuMemHostUnregister(p: *mut c_void) HostUnregister, p as u64, |_ok| [p as u64, 0, 0, 0, 0];
    cuMemGetInfo_v2(free: *mut usize, total: *mut usize) MemoryInfo, 0, |ok| [out_word(ok, free), out_word(ok, total), 0, 0, 0];

    // Stream-ordered memory.
    cuMemAllocAsync(p: *mut Pointer, n: usize, s: Stream) PoolAlloc, n as u64, |ok| [out_word(ok, p), n as u64, s as u64, 0, 0];
    cuMemAllocAsync_ptsz(p: *mut Pointer, n: usize, s: Stream) PoolAlloc, n as u64, |ok| [out_word(ok, p), n as u64, s as u64, 0, 0];
    cuMemAllocFromPoolAsync(p: *mut Pointer, n: usize, pool: Handle, s: Stream) PoolAlloc, n as u64, |ok| [out_word(ok, p), n as u64, s as u64, pool as u64, 0];
    cuMemAllocFromPoolAsync_ptsz(p: *mut Pointer, n: usize, pool: Handle, s: Stream) PoolAlloc, n as u64, |ok| [out_word(ok, p), n as u64, s as u64, pool as u64, 0];
    cuMemFreeAsync(p: Pointer, s: Stream) PoolFree, p, |_ok| [p, s as u64, 0, 0, 0];
    cuMemFreeAsync_ptsz(p: Pointer, s: Stream) PoolFree, p, |_ok| [p, s as u64, 0, 0, 0];

    // Virtual memory management.
    cuMemAddressReserve(p: *mut Pointer, n: usize, alignment: usize, hint: Pointer, f: u64) AddressReserve, n as u64, |ok| [out_word(ok, p), n as u64, 0, 0, 0];
    cuMemAddressFree(p: Pointer, n: usize) AddressFree, p, |_ok| [p, n as u64, 0, 0, 0];
    cuMemCreate(h: *mut u64, n: usize, properties: *const c_void, f: u64) PhysicalCreate, n as u64, |ok| { let [kind, id] = location(properties); [out_word(ok, h), n as u64, kind, id, 0] };
    cuMemRelease(h: u64) PhysicalRelease, h, |_ok| [h, 0, 0, 0, 0];
    cuMemRetainAllocationHandle(h: *mut u64, address: *mut c_void) PhysicalRetain, address as u64, |ok| [out_word(ok, h), address as u64, 0, 0, 0];
    cuMemMap(p: Pointer, n: usize, offset: usize, h: u64, f: u64) Map, p, |_ok| [p, n as u64, offset as u64, h, 0];
    cuMemUnmap(p: Pointer, n: usize) Unmap, p, |_ok| [p, n as u64, 0, 0, 0];
    cuMemSetAccess(p: Pointer, n: usize, d: *const c_void, count: usize) SetAccess, p, |_ok| [p, n as u64, count as u64, 0, 0];

    // Arrays. What they take follows from their descriptors.
    cuArrayCreate_v2(a: *mut Handle, d: *const c_void) ArrayCreate, d as u64, |ok| { let [n, f] = described::flat(ok, d); [out_word(ok, a), n, f, 0, 0] };
    cuArray3DCreate_v2(a: *mut Handle, d: *const c_void) ArrayCreate, d as u64, |ok| { let [n, f] = described::shape(ok, d, 1); [out_word(ok, a), n, f, 0, 0] };
    cuMipmappedArrayCreate(a: *mut Handle, d: *const c_void, levels: c_uint) ArrayCreate, d as u64, |ok| { let [n, f] = described::shape(ok, d, levels); [out_word(ok, a), n, f, 0, 0] };
    cuArrayDestroy(a: Handle) ArrayDestroy, a as u64, |_ok| [a as u64, 0, 0, 0, 0];
    cuMipmappedArrayDestroy(a: Handle) ArrayDestroy, a as u64, |_ok| [a as u64, 0, 0, 0, 0];

    // Memory made elsewhere.
    cuIpcOpenMemHandle_v2(p: *mut Pointer, h: IpcHandle, f: c_uint) @ (p f) Import, u64::from(f), |ok| [out_word(ok, p), 0, source::IPC, 0, 0];
    cuIpcOpenMemHandle(p: *mut Pointer, h: IpcHandle, f: c_uint) @ (p f) Import, u64::from(f), |ok| [out_word(ok, p), 0, source::IPC, 0, 0];
    cuIpcCloseMemHandle(p: Pointer) ImportClose, p, |_ok| [p, 0, 0, 0, 0];
    cuMemPoolImportPointer(p: *mut Pointer, pool: Handle, d: *const c_void) Import, pool as u64, |ok| [out_word(ok, p), 0, source::POOL_POINTER, pool as u64, 0];
    cuImportExternalMemory(m: *mut Handle, d: *const c_void) ObjectCreate, d as u64, |ok| [out_word(ok, m), object::EXTERNAL_MEMORY, 0, 0, 0];
    cuExternalMemoryGetMappedBuffer(p: *mut Pointer, m: Handle, d: *const c_void) Import, m as u64, |ok| [out_word(ok, p), external_buffer(ok, d), source::EXTERNAL, m as u64, 0];
    cuExternalMemoryGetMappedMipmappedArray(a: *mut Handle, m: Handle, d: *const c_void) Import, m as u64, |ok| [out_word(ok, a), external_array(ok, d), source::EXTERNAL_ARRAY, m as u64, 0];
    cuDestroyExternalMemory(m: Handle) ObjectDestroy, m as u64, |_ok| [m as u64, object::EXTERNAL_MEMORY, 0, 0, 0];
    cuMemImportFromShareableHandle(h: *mut u64, from: *mut c_void, kind: c_uint) PhysicalImport, u64::from(kind), |ok| [out_word(ok, h), u64::from(kind), 0, 0, 0];
    cuMulticastCreate(h: *mut u64, d: *const c_void) ObjectCreate, d as u64, |ok| [out_word(ok, h), object::MULTICAST, 0, 0, 0];

    // Pools.
    cuMemPoolCreate(p: *mut Handle, d: *const c_void) PoolCreate, d as u64, |ok| { let [kind, id] = described::pool_location(ok, d).operands(); [out_word(ok, p), kind, id, 0, 0] };
    cuMemPoolImportFromShareableHandle(p: *mut Handle, from: *mut c_void, kind: c_uint, f: u64) PoolCreate, u64::from(kind), |ok| [out_word(ok, p), 0, 0, 0, 0];
    cuMemPoolDestroy(p: Handle) PoolDestroy, p as u64, |_ok| [p as u64, 0, 0, 0, 0];
    cuMemPoolTrimTo(p: Handle, n: usize) PoolTrim, p as u64, |_ok| [p as u64, n as u64, 0, 0, 0];
    cuMemPoolSetAttribute(p: Handle, a: c_uint, v: *mut c_void) PoolAttribute, p as u64, |ok| [p as u64, u64::from(a), attribute(ok, a, v), 1, 0];
    cuMemPoolGetAttribute(p: Handle, a: c_uint, v: *mut c_void) PoolAttribute, p as u64, |ok| [p as u64, u64::from(a), attribute(ok, a, v), 0, 0];
    cuDeviceGetDefaultMemPool(p: *mut Handle, d: c_int) PoolAttribute, d as u64, |ok| [out_word(ok, p), pool::DEFAULT_OF, Location::of_device(d).word(), 0, 0];
    cuDeviceGetMemPool(p: *mut Handle, d: c_int) PoolAttribute, d as u64, |ok| [out_word(ok, p), pool::CURRENT_OF, Location::of_device(d).word(), 0, 0];
    cuDeviceSetMemPool(d: c_int, p: Handle) PoolAttribute, p as u64, |_ok| [p as u64, pool::CURRENT_OF, Location::of_device(d).word(), 1, 0];
    cuMemGetDefaultMemPool(p: *mut Handle, l: *const c_void, kind: c_uint) PoolAttribute, u64::from(kind), |ok| [out_word(ok, p), pool::DEFAULT_OF, if ok { Location::at(l).of_pinned(kind).word() } else { 0 }, 0, 0];
    cuMemGetMemPool(p: *mut Handle, l: *const c_void, kind: c_uint) PoolAttribute, u64::from(kind), |ok| [out_word(ok, p), pool::CURRENT_OF, if ok { Location::at(l).of_pinned(kind).word() } else { 0 }, 0, 0];
    cuMemSetMemPool(l: *const c_void, kind: c_uint, p: Handle) PoolAttribute, p as u64, |ok| [p as u64, pool::CURRENT_OF, if ok { Location::at(l).of_pinned(kind).word() } else { 0 }, 1, 0];

    // Where managed memory is to be.
    cuMemPrefetchAsync(p: Pointer, n: usize, d: c_int, s: Stream) Prefetch, p, |_ok| { let [kind, id] = Location::of_device(d).operands(); [p, n as u64, kind, id, s as u64] };
    cuMemPrefetchAsync_ptsz(p: Pointer, n: usize, d: c_int, s: Stream) Prefetch, p, |_ok| { let [kind, id] = Location::of_device(d).operands(); [p, n as u64, kind, id, s as u64] };
    cuMemPrefetchAsync_v2(p: Pointer, n: usize, l: Location, f: c_uint, s: Stream) Prefetch, p, |_ok| { let [kind, id] = l.operands(); [p, n as u64, kind, id, s as u64] };
    cuMemPrefetchAsync_v2_ptsz(p: Pointer, n: usize, l: Location, f: c_uint, s: Stream) Prefetch, p, |_ok| { let [kind, id] = l.operands(); [p, n as u64, kind, id, s as u64] };
    cuMemAdvise(p: Pointer, n: usize, advice: c_uint, d: c_int) Advise, p, |_ok| { let [kind, id] = Location::of_device(d).operands(); [p, n as u64, u64::from(advice), kind, id] };
    cuMemAdvise_v2(p: Pointer, n: usize, advice: c_uint, l: Location) Advise, p, |_ok| { let [kind, id] = l.operands(); [p, n as u64, u64::from(advice), kind, id] };

    // Copies.
    cuMemcpy(to: Pointer, from: Pointer, n: usize) Copy, n as u64, |_ok| [0, to, from, n as u64, 0];
    cuMemcpy_ptds(to: Pointer, from: Pointer, n: usize) Copy, n as u64, |_ok| [0, to, from, n as u64, 0];
    cuMemcpyAsync(to: Pointer, from: Pointer, n: usize, s: Stream) Copy, n as u64, |_ok| [A, to, from, n as u64, s as u64];
    cuMemcpyAsync_ptsz(to: Pointer, from: Pointer, n: usize, s: Stream) Copy, n as u64, |_ok| [A, to, from, n as u64, s as u64];
    cuMemcpyPeer(to: Pointer, tc: Handle, from: Pointer, fc: Handle, n: usize) Copy, n as u64, |_ok| [copy::PEER, to, from, n as u64, 0];
    cuMemcpyPeer_ptds(to: Pointer, tc: Handle, from: Pointer, fc: Handle, n: usize) Copy, n as u64, |_ok| [copy::PEER, to, from, n as u64, 0];
    cuMemcpyPeerAsync(to: Pointer, tc: Handle, from: Pointer, fc: Handle, n: usize, s: Stream) Copy, n as u64, |_ok| [copy::PEER | A, to, from, n as u64, s as u64];
    cuMemcpyPeerAsync_ptsz(to: Pointer, tc: Handle, from: Pointer, fc: Handle, n: usize, s: Stream) Copy, n as u64, |_ok| [copy::PEER | A, to, from, n as u64, s as u64];
    cuMemcpyHtoD_v2(to: Pointer, from: *const c_void, n: usize) Copy, n as u64, |_ok| [HTOD, to, from as u64, n as u64, 0];
    cuMemcpyHtoD_v2_ptds(to: Pointer, from: *const c_void, n: usize) Copy, n as u64, |_ok| [HTOD, to, from as u64, n as u64, 0];
    cuMemcpyHtoDAsync_v2(to: Pointer, from: *const c_void, n: usize, s: Stream) Copy, n as u64, |_ok| [HTOD | A, to, from as u64, n as u64, s as u64];
    cuMemcpyHtoDAsync_v2_ptsz(to: Pointer, from: *const c_void, n: usize, s: Stream) Copy, n as u64, |_ok| [HTOD | A, to, from as u64, n as u64, s as u64];
    cuMemcpyDtoH_v2(to: *mut c_void, from: Pointer, n: usize) Copy, n as u64, |_ok| [DTOH, to as u64, from, n as u64, 0];
    cuMemcpyDtoH_v2_ptds(to: *mut c_void, from: Pointer, n: usize) Copy, n as u64, |_ok| [DTOH, to as u64, from, n as u64, 0];
    cuMemcpyDtoHAsync_v2(to: *mut c_void, from: Pointer, n: usize, s: Stream) Copy, n as u64, |_ok| [DTOH | A, to as u64, from, n as u64, s as u64];
    cuMemcpyDtoHAsync_v2_ptsz(to: *mut c_void, from: Pointer, n: usize, s: Stream) Copy, n as u64, |_ok| [DTOH | A, to as u64, from, n as u64, s as u64];
    cuMemcpyDtoD_v2(to: Pointer, from: Pointer, n: usize) Copy, n as u64, |_ok| [DTOD, to, from, n as u64, 0];
    cuMemcpyDtoD_v2_ptds(to: Pointer, from: Pointer, n: usize) Copy, n as u64, |_ok| [DTOD, to, from, n as u64, 0];
    cuMemcpyDtoDAsync_v2(to: Pointer, from: Pointer, n: usize, s: Stream) Copy, n as u64, |_ok| [DTOD | A, to, from, n as u64, s as u64];
    cuMemcpyDtoDAsync_v2_ptsz(to: Pointer, from: Pointer, n: usize, s: Stream) Copy, n as u64, |_ok| [DTOD | A, to, from, n as u64, s as u64];
    cuMemcpyDtoA_v2(to: Handle, offset: usize, from: Pointer, n: usize) Copy, n as u64, |_ok| [copy::DEVICE_TO_ARRAY, to as u64, from, n as u64, 0];
    cuMemcpyDtoA_v2_ptds(to: Handle, offset: usize, from: Pointer, n: usize) Copy, n as u64, |_ok| [copy::DEVICE_TO_ARRAY, to as u64, from, n as u64, 0];
    cuMemcpyAtoD_v2(to: Pointer, from: Handle, offset: usize, n: usize) Copy, n as u64, |_ok| [copy::ARRAY_TO_DEVICE, to, from as u64, n as u64, 0];
    cuMemcpyAtoD_v2_ptds(to: Pointer, from: Handle, offset: usize, n: usize) Copy, n as u64, |_ok| [copy::ARRAY_TO_DEVICE, to, from as u64, n as u64, 0];
    cuMemcpyHtoA_v2(to: Handle, offset: usize, from: *const c_void, n: usize) Copy, n as u64, |_ok| [copy::HOST_TO_ARRAY, to as u64, from as u64, n as u64, 0];
    cuMemcpyHtoA_v2_ptds(to: Handle, offset: usize, from: *const c_void, n: usize) Copy, n as u64, |_ok| [copy::HOST_TO_ARRAY, to as u64, from as u64, n as u64, 0];
    cuMemcpyHtoAAsync_v2(to: Handle, offset: usize, from: *const c_void, n: usize, s: Stream) Copy, n as u64, |_ok| [copy::HOST_TO_ARRAY | A, to as u64, from as u64, n as u64, s as u64];
    cuMemcpyHtoAAsync_v2_ptsz(to: Handle, offset: usize, from: *const c_void, n: usize, s: Stream) Copy, n as u64, |_ok| [copy::HOST_TO_ARRAY | A, to as u64, from as u64, n as u64, s as u64];
    cuMemcpyAtoH_v2(to: *mut c_void, from: Handle, offset: usize, n: usize) Copy, n as u64, |_ok| [copy::ARRAY_TO_HOST, to as u64, from as u64, n as u64, 0];
    cuMemcpyAtoH_v2_ptds(to: *mut c_void, from: Handle, offset: usize, n: usize) Copy, n as u64, |_ok| [copy::ARRAY_TO_HOST, to as u64, from as u64, n as u64, 0];
    cuMemcpyAtoHAsync_v2(to: *mut c_void, from: Handle, offset: usize, n: usize, s: Stream) Copy, n as u64, |_ok| [copy::ARRAY_TO_HOST | A, to as u64, from as u64, n as u64, s as u64];
    cuMemcpyAtoHAsync_v2_ptsz(to: *mut c_void, from: Handle, offset: usize, n: usize, s: Stream) Copy, n as u64, |_ok| [copy::ARRAY_TO_HOST | A, to as u64, from as u64, n as u64, s as u64];
    cuMemcpyAtoA_v2(to: Handle, to_offset: usize, from: Handle, from_offset: usize, n: usize) Copy, n as u64, |_ok| [copy::ARRAY_TO_ARRAY, to as u64, from as u64, n as u64, 0];
    cuMemcpyAtoA_v2_ptds(to: Handle, to_offset: usize, from: Handle, from_offset: usize, n: usize) Copy, n as u64, |_ok| [copy::ARRAY_TO_ARRAY, to as u64, from as u64, n as u64, 0];
    cuMemcpy2D_v2(d: *const c_void) Copy, d as u64, |_ok| copy_2d(d, 0, 0);
    cuMemcpy2D_v2_ptds(d: *const c_void) Copy, d as u64, |_ok| copy_2d(d, 0, 0);
    cuMemcpy2DUnaligned_v2(d: *const c_void) Copy, d as u64, |_ok| copy_2d(d, 0, 0);
    cuMemcpy2DUnaligned_v2_ptds(d: *const c_void) Copy, d as u64, |_ok| copy_2d(d, 0, 0);
    cuMemcpy2DAsync_v2(d: *const c_void, s: Stream) Copy, d as u64, |_ok| copy_2d(d, A, s as u64);
    cuMemcpy2DAsync_v2_ptsz(d: *const c_void, s: Stream) Copy, d as u64, |_ok| copy_2d(d, A, s as u64);
    cuMemcpy3D_v2(d: *const c_void) Copy, d as u64, |_ok| copy_3d(d, 0, 0);
    cuMemcpy3D_v2_ptds(d: *const c_void) Copy, d as u64, |_ok| copy_3d(d, 0, 0);
    cuMemcpy3DAsync_v2(d: *const c_void, s: Stream) Copy, d as u64, |_ok| copy_3d(d, A, s as u64);
    cuMemcpy3DAsync_v2_ptsz(d: *const c_void, s: Stream) Copy, d as u64, |_ok| copy_3d(d, A, s as u64);
    cuMemcpy3DPeer(d: *const c_void) Copy, d as u64, |_ok| copy_3d_peer(d, 0, 0);
    cuMemcpy3DPeer_ptds(d: *const c_void) Copy, d as u64, |_ok| copy_3d_peer(d, 0, 0);
    cuMemcpy3DPeerAsync(d: *const c_void, s: Stream) Copy, d as u64, |_ok| copy_3d_peer(d, A, s as u64);
    cuMemcpy3DPeerAsync_ptsz(d: *const c_void, s: Stream) Copy, d as u64, |_ok| copy_3d_peer(d, A, s as u64);

    // Sets.
    cuMemsetD8_v2(p: Pointer, v: c_uint, n: usize) Set, p, |_ok| [0, p, n as u64, 0, 0];
    cuMemsetD8_v2_ptds(p: Pointer, v: c_uint, n: usize) Set, p, |_ok| [0, p, n as u64, 0, 0];
    cuMemsetD16_v2(p: Pointer, v: c_uint, n: usize) Set, p, |_ok| [0, p, times(n, 2), 0, 0];
    cuMemsetD16_v2_ptds(p: Pointer, v: c_uint, n: usize) Set, p, |_ok| [0, p, times(n, 2), 0, 0];
    cuMemsetD32_v2(p: Pointer, v: c_uint, n: usize) Set, p, |_ok| [0, p, times(n, 4), 0, 0];
    cuMemsetD32_v2_ptds(p: Pointer, v: c_uint, n: usize) Set, p, |_ok| [0, p, times(n, 4), 0, 0];
    cuMemsetD2D8_v2(p: Pointer, pitch: usize, v: c_uint, w: usize, h: usize) Set, p, |_ok| [0, p, times(w, h), 0, 0];
    cuMemsetD2D8_v2_ptds(p: Pointer, pitch: usize, v: c_uint, w: usize, h: usize) Set, p, |_ok| [0, p, times(w, h), 0, 0];
    cuMemsetD2D16_v2(p: Pointer, pitch: usize, v: c_uint, w: usize, h: usize) Set, p, |_ok| [0, p, times(w, h).wrapping_mul(2), 0, 0];
    cuMemsetD2D16_v2_ptds(p: Pointer, pitch: usize, v: c_uint, w: usize, h: usize) Set, p, |_ok| [0, p, times(w, h).wrapping_mul(2), 0, 0];
    cuMemsetD2D32_v2(p: Pointer, pitch: usize, v: c_uint, w: usize, h: usize) Set, p, |_ok| [0, p, times(w, h).wrapping_mul(4), 0, 0];
    cuMemsetD2D32_v2_ptds(p: Pointer, pitch: usize, v: c_uint, w: usize, h: usize) Set, p, |_ok| [0, p, times(w, h).wrapping_mul(4), 0, 0];
    cuMemsetD8Async(p: Pointer, v: c_uint, n: usize, s: Stream) Set, p, |_ok| [A, p, n as u64, s as u64, 0];
    cuMemsetD8Async_ptsz(p: Pointer, v: c_uint, n: usize, s: Stream) Set, p, |_ok| [A, p, n as u64, s as u64, 0];
    cuMemsetD16Async(p: Pointer, v: c_uint, n: usize, s: Stream) Set, p, |_ok| [A, p, times(n, 2), s as u64, 0];
    cuMemsetD16Async_ptsz(p: Pointer, v: c_uint, n: usize, s: Stream) Set, p, |_ok| [A, p, times(n, 2), s as u64, 0];
    cuMemsetD32Async(p: Pointer, v: c_uint, n: usize, s: Stream) Set, p, |_ok| [A, p, times(n, 4), s as u64, 0];
    cuMemsetD32Async_ptsz(p: Pointer, v: c_uint, n: usize, s: Stream) Set, p, |_ok| [A, p, times(n, 4), s as u64, 0];
    cuMemsetD2D8Async(p: Pointer, pitch: usize, v: c_uint, w: usize, h: usize, s: Stream) Set, p, |_ok| [A, p, times(w, h), s as u64, 0];
    cuMemsetD2D8Async_ptsz(p: Pointer, pitch: usize, v: c_uint, w: usize, h: usize, s: Stream) Set, p, |_ok| [A, p, times(w, h), s as u64, 0];
    cuMemsetD2D16Async(p: Pointer, pitch: usize, v: c_uint, w: usize, h: usize, s: Stream) Set, p, |_ok| [A, p, times(w, h).wrapping_mul(2), s as u64, 0];
    cuMemsetD2D16Async_ptsz(p: Pointer, pitch: usize, v: c_uint, w: usize, h: usize, s: Stream) Set, p, |_ok| [A, p, times(w, h).wrapping_mul(2), s as u64, 0];
    cuMemsetD2D32Async(p: Pointer, pitch: usize, v: c_uint, w: usize, h: usize, s: Stream) Set, p, |_ok| [A, p, times(w, h).wrapping_mul(4), s as u64, 0];
    cuMemsetD2D32Async_ptsz(p: Pointer, pitch: usize, v: c_uint, w: usize, h: usize, s: Stream) Set, p, |_ok| [A, p, times(w, h).wrapping_mul(4), s as u64, 0];

    // Contexts.
    cuCtxCreate_v2(c: *mut Handle, f: c_uint, d: c_int) ContextCreate, d as u64, |ok| [out_word(ok, c), i64::from(d).cast_unsigned(), 0, 0, 0],
        then { record::context_current(out_word(true, c)); helper::ask_for_sample() };
    cuCtxCreate_v3(c: *mut Handle, p: *mut c_void, count: c_int, f: c_uint, d: c_int) ContextCreate, d as u64, |ok| [out_word(ok, c), i64::from(d).cast_unsigned(), 0, 0, 0],
        then { record::context_current(out_word(true, c)); helper::ask_for_sample() };
    cuCtxCreate_v4(c: *mut Handle, p: *mut c_void, f: c_uint, d: c_int) ContextCreate, d as u64, |ok| [out_word(ok, c), i64::from(d).cast_unsigned(), 0, 0, 0],
        then { record::context_current(out_word(true, c)); helper::ask_for_sample() };
    cuCtxDestroy_v2(c: Handle) ContextDestroy, c as u64, |_ok| [c as u64, 0, 0, 0, 0];
    cuDevicePrimaryCtxRetain(c: *mut Handle, d: c_int) PrimaryRetain, d as u64, |ok| [out_word(ok, c), i64::from(d).cast_unsigned(), 0, 0, 0], then helper::ask_for_sample();
    cuDevicePrimaryCtxRelease_v2(d: c_int) PrimaryRelease, d as u64, |_ok| [i64::from(d).cast_unsigned(), 0, 0, 0, 0];
    cuDevicePrimaryCtxReset_v2(d: c_int) PrimaryReset, d as u64, |_ok| [i64::from(d).cast_unsigned(), 0, 0, 0, 0];

    // Graphs: what they take is taken when they run.
    cuStreamEndCapture(s: Stream, g: *mut Handle) ObjectCreate, s as u64, |ok, status| end_capture(ok, status, s, PER_THREAD, g);
    cuStreamEndCapture_ptsz(s: Stream, g: *mut Handle) ObjectCreate, s as u64, |ok, status| end_capture(ok, status, s, PER_THREAD, g);
    cuGraphCreate(g: *mut Handle, f: c_uint) ObjectCreate, 0, |ok| made(out_word(ok, g), object::GRAPH, 0);
    cuGraphClone(g: *mut Handle, from: Handle) ObjectCreate, from as u64, |ok| made(out_word(ok, g), object::GRAPH, 0);
    cuGraphDestroy(g: Handle) ObjectDestroy, g as u64, |_ok| gone(g as u64, object::GRAPH);
    cuGraphAddMemAllocNode(node: *mut Handle, g: Handle, d: *const Handle, n: usize, p: *mut c_void) GraphAlloc, g as u64, |ok| alloc_node(ok, p, g);
    cuGraphAddMemFreeNode(node: *mut Handle, g: Handle, d: *const Handle, n: usize, p: Pointer) GraphFree, p, |_ok| [p, g as u64, 0, 0, 0];
    cuGraphInstantiate(x: *mut Handle, g: Handle, node: *mut Handle, log: *mut c_void, n: usize) ObjectCreate, g as u64, |ok| made(out_word(ok, x), object::GRAPH_EXEC, g as u64), then helper::ask_for_sample();
    cuGraphInstantiate_v2(x: *mut Handle, g: Handle, node: *mut Handle, log: *mut c_void, n: usize) ObjectCreate, g as u64, |ok| made(out_word(ok, x), object::GRAPH_EXEC, g as u64), then helper::ask_for_sample();
    cuGraphInstantiateWithFlags(x: *mut Handle, g: Handle, f: u64) ObjectCreate, g as u64, |ok| made(out_word(ok, x), object::GRAPH_EXEC, g as u64), then helper::ask_for_sample();
    cuGraphInstantiateWithParams(x: *mut Handle, g: Handle, p: *mut c_void) ObjectCreate, g as u64, |ok| made(out_word(ok, x), object::GRAPH_EXEC, g as u64), then helper::ask_for_sample();
    cuGraphInstantiateWithParams_ptsz(x: *mut Handle, g: Handle, p: *mut c_void) ObjectCreate, g as u64, |ok| made(out_word(ok, x), object::GRAPH_EXEC, g as u64), then helper::ask_for_sample();
    cuGraphExecUpdate(x: Handle, g: Handle, node: *mut Handle, result: *mut c_uint) ObjectCreate, x as u64, |_ok| made(x as u64, object::GRAPH_EXEC, g as u64);
    cuGraphExecUpdate_v2(x: Handle, g: Handle, result: *mut c_void) ObjectCreate, x as u64, |_ok| made(x as u64, object::GRAPH_EXEC, g as u64);
    cuGraphExecDestroy(x: Handle) ObjectDestroy, x as u64, |_ok| gone(x as u64, object::GRAPH_EXEC);
    cuGraphLaunch(x: Handle, s: Stream) GraphLaunch, x as u64, |_ok| [x as u64, s as u64, 0, 0, 0];
    cuGraphLaunch_ptsz(x: Handle, s: Stream) GraphLaunch, x as u64, |_ok| [x as u64, s as u64, 0, 0, 0];
    cuDeviceGraphMemTrim(d: c_int) GraphTrim, d as u64, |_ok| [i64::from(d).cast_unsigned(), 0, 0, 0, 0];
    cuDeviceGetGraphMemAttribute(d: c_int, attribute: c_uint, v: *mut c_void) GraphMemory, d as u64, |ok| [i64::from(d).cast_unsigned(), u64::from(attribute), out_word(ok, v.cast::<u64>()), 0, 0];

    // Objects that own memory without an allocation call.
    cuGreenCtxCreate(g: *mut Handle, resources: *mut c_void, d: c_int, f: c_uint) ObjectCreate, d as u64, |ok| made(out_word(ok, g), object::GREEN_CONTEXT, 0), then helper::ask_for_sample();
    cuGreenCtxDestroy(g: Handle) ObjectDestroy, g as u64, |_ok| gone(g as u64, object::GREEN_CONTEXT);
    cuModuleLoad(m: *mut Handle, file: *const c_void) ObjectCreate, 0, |ok| made(out_word(ok, m), object::MODULE, 0), then helper::ask_for_sample();
    cuModuleLoadData(m: *mut Handle, image: *const c_void) ObjectCreate, image as u64, |ok| made(out_word(ok, m), object::MODULE, 0), then helper::ask_for_sample();
    cuModuleLoadDataEx(m: *mut Handle, image: *const c_void, n: c_uint, options: *mut c_void, values: *mut c_void) ObjectCreate, image as u64, |ok| made(out_word(ok, m), object::MODULE, 0), then helper::ask_for_sample();
    cuModuleLoadFatBinary(m: *mut Handle, image: *const c_void) ObjectCreate, image as u64, |ok| made(out_word(ok, m), object::MODULE, 0), then helper::ask_for_sample();
    cuModuleUnload(m: Handle) ObjectDestroy, m as u64, |_ok| gone(m as u64, object::MODULE);
    cuLibraryLoadData(l: *mut Handle, code: *const c_void, jo: *mut c_void, jv: *mut c_void, jn: c_uint, lo: *mut c_void, lv: *mut c_void, ln: c_uint) ObjectCreate, code as u64, |ok| made(out_word(ok, l), object::LIBRARY, 0), then helper::ask_for_sample();
    cuLibraryLoadFromFile(l: *mut Handle, file: *const c_void, jo: *mut c_void, jv: *mut c_void, jn: c_uint, lo: *mut c_void, lv: *mut c_void, ln: c_uint) ObjectCreate, 0, |ok| made(out_word(ok, l), object::LIBRARY, 0), then helper::ask_for_sample();
    cuLibraryUnload(l: Handle) ObjectDestroy, l as u64, |_ok| gone(l as u64, object::LIBRARY);
    cuModuleGetFunction(k: *mut Handle, m: Handle, name: *const c_void) ObjectCreate, m as u64, |ok| made(out_word(ok, k), object::KERNEL, m as u64), then helper::ask_for_sample();
    cuLibraryGetKernel(k: *mut Handle, l: Handle, name: *const c_void) ObjectCreate, l as u64, |ok| made(out_word(ok, k), object::KERNEL, l as u64), then helper::ask_for_sample();
    cuStreamCreate(s: *mut Stream, f: c_uint) ObjectCreate, 0, |ok| made(out_word(ok, s), object::STREAM, 0);
    cuStreamCreateWithPriority(s: *mut Stream, f: c_uint, priority: c_int) ObjectCreate, 0, |ok| made(out_word(ok, s), object::STREAM, 0);
    cuGreenCtxStreamCreate(s: *mut Stream, g: Handle, f: c_uint, priority: c_int) ObjectCreate, g as u64, |ok| made(out_word(ok, s), object::STREAM, g as u64);
    cuStreamDestroy(s: Stream) ObjectDestroy, s as u64, |ok| { if ok { capture::stream_gone(s as u64) }; gone(s as u64, object::STREAM) };
    cuStreamDestroy_v2(s: Stream) ObjectDestroy, s as u64, |ok| { if ok { capture::stream_gone(s as u64) }; gone(s as u64, object::STREAM) };
    cuEventCreate(e: *mut Handle, f: c_uint) ObjectCreate, 0, |ok| made(out_word(ok, e), object::EVENT, 0);
    cuEventDestroy(e: Handle) ObjectDestroy, e as u64, |ok| { if ok { capture::event_gone(e as u64) }; gone(e as u64, object::EVENT) };
    cuEventDestroy_v2(e: Handle) ObjectDestroy, e as u64, |ok| { if ok { capture::event_gone(e as u64) }; gone(e as u64, object::EVENT) };
    cuTexObjectCreate(t: *mut u64, resource: *const c_void, d: *const c_void, view: *const c_void) ObjectCreate, 0, |ok| made(out_word(ok, t), object::TEXTURE, 0);
    cuTexObjectDestroy(t: u64) ObjectDestroy, t, |_ok| gone(t, object::TEXTURE);
    cuSurfObjectCreate(s: *mut u64, resource: *const c_void) ObjectCreate, 0, |ok| made(out_word(ok, s), object::SURFACE, 0);
    cuSurfObjectDestroy(s: u64) ObjectDestroy, s, |_ok| gone(s, object::SURFACE);
    cuCtxSetLimit(limit: c_uint, v: usize) Limit, v as u64, |_ok| [u64::from(limit), v as u64, 0, 0, 0];

    // CUDA 2.0's ABI: sizes and device addresses of 32 bits.
    cuMemAlloc(p: *mut OldPointer, n: c_uint) DeviceAlloc, u64::from(n), |ok| [out_half(ok, p), u64::from(n), 0, 0, 0];
    cuMemAllocPitch(p: *mut OldPointer, pitch: *mut c_uint, w: c_uint, h: c_uint, element: c_uint) DeviceAlloc, old_times(w, h),
        |ok| [out_half(ok, p), if ok { out_half(ok, pitch).wrapping_mul(u64::from(h)) } else { old_times(w, h) }, 0, 0, 0];
    cuMemFree(p: OldPointer) Free, u64::from(p), |_ok| [u64::from(p), 0, 0, 0, 0];
    cuMemAllocHost(p: *mut *mut c_void, n: c_uint) PinnedAlloc, u64::from(n), |ok| [out_word(ok, p), u64::from(n), 0, 0, 0];
    cuMemHostRegister(p: *mut c_void, n: usize, f: c_uint) HostRegister, p as u64, |_ok| [p as u64, n as u64, u64::from(f), 0, 0];
    cuMemGetInfo(free: *mut c_uint, total: *mut c_uint) MemoryInfo, 0, |ok| [out_half(ok, free), out_half(ok, total), 0, 0, 0];
    cuArrayCreate(a: *mut Handle, d: *const c_void) ArrayCreate, d as u64, |ok| { let [n, f] = described::old_flat(ok, d); [out_word(ok, a), n, f, 0, 0] };
    cuArray3DCreate(a: *mut Handle, d: *const c_void) ArrayCreate, d as u64, |ok| { let [n, f] = described::old_shape(ok, d); [out_word(ok, a), n, f, 0, 0] };
    cuMemcpyHtoD(to: OldPointer, from: *const c_void, n: c_uint) Copy, u64::from(n), |_ok| [HTOD, u64::from(to), from as u64, u64::from(n), 0];
    cuMemcpyHtoDAsync(to: OldPointer, from: *const c_void, n: c_uint, s: Stream) Copy, u64::from(n), |_ok| [HTOD | A, u64::from(to), from as u64, u64::from(n), s as u64];
    cuMemcpyDtoH(to: *mut c_void, from: OldPointer, n: c_uint) Copy, u64::from(n), |_ok| [DTOH, to as u64, u64::from(from), u64::from(n), 0];
    cuMemcpyDtoHAsync(to: *mut c_void, from: OldPointer, n: c_uint, s: Stream) Copy, u64::from(n), |_ok| [DTOH | A, to as u64, u64::from(from), u64::from(n), s as u64];
    cuMemcpyDtoD(to: OldPointer, from: OldPointer, n: c_uint) Copy, u64::from(n), |_ok| [DTOD, u64::from(to), u64::from(from), u64::from(n), 0];
    cuMemcpyDtoDAsync(to: OldPointer, from: OldPointer, n: c_uint, s: Stream) Copy, u64::from(n), |_ok| [DTOD | A, u64::from(to), u64::from(from), u64::from(n), s as u64];
    cuMemcpyDtoA(to: Handle, offset: c_uint, from: OldPointer, n: c_uint) Copy, u64::from(n), |_ok| [copy::DEVICE_TO_ARRAY, to as u64, u64::from(from), u64::from(n), 0];
    cuMemcpyAtoD(to: OldPointer, from: Handle, offset: c_uint, n: c_uint) Copy, u64::from(n), |_ok| [copy::ARRAY_TO_DEVICE, u64::from(to), from as u64, u64::from(n), 0];
    cuMemcpyHtoA(to: Handle, offset: c_uint, from: *const c_void, n: c_uint) Copy, u64::from(n), |_ok| [copy::HOST_TO_ARRAY, to as u64, from as u64, u64::from(n), 0];
    cuMemcpyHtoAAsync(to: Handle, offset: c_uint, from: *const c_void, n: c_uint, s: Stream) Copy, u64::from(n), |_ok| [copy::HOST_TO_ARRAY | A, to as u64, from as u64, u64::from(n), s as u64];
    cuMemcpyAtoH(to: *mut c_void, from: Handle, offset: c_uint, n: c_uint) Copy, u64::from(n), |_ok| [copy::ARRAY_TO_HOST, to as u64, from as u64, u64::from(n), 0];
    cuMemcpyAtoHAsync(to: *mut c_void, from: Handle, offset: c_uint, n: c_uint, s: Stream) Copy, u64::from(n), |_ok| [copy::ARRAY_TO_HOST | A, to as u64, from as u64, u64::from(n), s as u64];
    cuMemcpyAtoA(to: Handle, to_offset: c_uint, from: Handle, from_offset: c_uint, n: c_uint) Copy, u64::from(n), |_ok| [copy::ARRAY_TO_ARRAY, to as u64, from as u64, u64::from(n), 0];
    cuMemcpy2D(d: *const c_void) Copy, d as u64, |ok| described::old_copy_2d(ok, d, 0, 0);
    cuMemcpy2DUnaligned(d: *const c_void) Copy, d as u64, |ok| described::old_copy_2d(ok, d, 0, 0);
    cuMemcpy2DAsync(d: *const c_void, s: Stream) Copy, d as u64, |ok| described::old_copy_2d(ok, d, A, s as u64);
    cuMemcpy3D(d: *const c_void) Copy, d as u64, |ok| described::old_copy_3d(ok, d, 0, 0);
    cuMemcpy3DAsync(d: *const c_void, s: Stream) Copy, d as u64, |ok| described::old_copy_3d(ok, d, A, s as u64);
    cuMemsetD8(p: OldPointer, v: c_uint, n: c_uint) Set, u64::from(p), |_ok| [0, u64::from(p), u64::from(n), 0, 0];
    cuMemsetD16(p: OldPointer, v: c_uint, n: c_uint) Set, u64::from(p), |_ok| [0, u64::from(p), old_times(n, 2), 0, 0];
    cuMemsetD32(p: OldPointer, v: c_uint, n: c_uint) Set, u64::from(p), |_ok| [0, u64::from(p), old_times(n, 4), 0, 0];
    cuMemsetD2D8(p: OldPointer, pitch: c_uint, v: c_uint, w: c_uint, h: c_uint) Set, u64::from(p), |_ok| [0, u64::from(p), old_times(w, h), 0, 0];
    cuMemsetD2D16(p: OldPointer, pitch: c_uint, v: c_uint, w: c_uint, h: c_uint) Set, u64::from(p), |_ok| [0, u64::from(p), old_times(w, h).wrapping_mul(2), 0, 0];
    cuMemsetD2D32(p: OldPointer, pitch: c_uint, v: c_uint, w: c_uint, h: c_uint) Set, u64::from(p), |_ok| [0, u64::from(p), old_times(w, h).wrapping_mul(4), 0, 0];
    cuCtxCreate(c: *mut Handle, f: c_uint, d: c_int) ContextCreate, d as u64, |ok| [out_word(ok, c), i64::from(d).cast_unsigned(), 0, 0, 0],
        then record::context_current(out_word(true, c));
    cuCtxDestroy(c: Handle) ContextDestroy, c as u64, |_ok| [c as u64, 0, 0, 0, 0];
    cuDevicePrimaryCtxRelease(d: c_int) PrimaryRelease, d as u64, |_ok| [i64::from(d).cast_unsigned(), 0, 0, 0, 0];
    cuDevicePrimaryCtxReset(d: c_int) PrimaryReset, d as u64, |_ok| [i64::from(d).cast_unsigned(), 0, 0, 0, 0];

    @batches
    cuMemcpyBatchAsync(to: *const c_void, from: *const c_void, sizes: *const c_void, count: usize, a: *const c_void, firsts: *const c_void, kinds: usize, failed: *mut usize, s: Stream) Copy, count, |i| [A, element(to, i), element(from, i), element(sizes, i), s as u64];
    cuMemcpyBatchAsync_ptsz(to: *const c_void, from: *const c_void, sizes: *const c_void, count: usize, a: *const c_void, firsts: *const c_void, kinds: usize, failed: *mut usize, s: Stream) Copy, count, |i| [A, element(to, i), element(from, i), element(sizes, i), s as u64];
    cuMemcpyBatchAsync_v2(to: *const c_void, from: *const c_void, sizes: *const c_void, count: usize, a: *const c_void, firsts: *const c_void, kinds: usize, s: Stream) Copy, count, |i| [A, element(to, i), element(from, i), element(sizes, i), s as u64];
    cuMemcpyBatchAsync_v2_ptsz(to: *const c_void, from: *const c_void, sizes: *const c_void, count: usize, a: *const c_void, firsts: *const c_void, kinds: usize, s: Stream) Copy, count, |i| [A, element(to, i), element(from, i), element(sizes, i), s as u64];
    cuMemcpy3DBatchAsync(count: usize, list: *const c_void, failed: *mut usize, f: u64, s: Stream) Copy, count, |i| described::member(list, i, s as u64);
    cuMemcpy3DBatchAsync_ptsz(count: usize, list: *const c_void, failed: *mut usize, f: u64, s: Stream) Copy, count, |i| described::member(list, i, s as u64);
    cuMemcpy3DBatchAsync_v2(count: usize, list: *const c_void, f: u64, s: Stream) Copy, count, |i| described::member(list, i, s as u64);
    cuMemcpy3DBatchAsync_v2_ptsz(count: usize, list: *const c_void, f: u64, s: Stream) Copy, count, |i| described::member(list, i, s as u64);
    cuMemPrefetchBatchAsync(p: *const c_void, sizes: *const c_void, count: usize, l: *const c_void, firsts: *const c_void, kinds: usize, f: u64, s: Stream) Prefetch, count, |i| { let [kind, id] = targets.of(i).operands(); [element(p, i), element(sizes, i), kind, id, s as u64] }, with targets = Targets::new(l, firsts, kinds);
    cuMemPrefetchBatchAsync_ptsz(p: *const c_void, sizes: *const c_void, count: usize, l: *const c_void, firsts: *const c_void, kinds: usize, f: u64, s: Stream) Prefetch, count, |i| { let [kind, id] = targets.of(i).operands(); [element(p, i), element(sizes, i), kind, id, s as u64] }, with targets = Targets::new(l, firsts, kinds);
    cuMemDiscardAndPrefetchBatchAsync(p: *const c_void, sizes: *const c_void, count: usize, l: *const c_void, firsts: *const c_void, kinds: usize, f: u64, s: Stream) Prefetch, count, |i| { let [kind, id] = targets.of(i).operands(); [element(p, i), element(sizes, i), kind, id, s as u64] }, with targets = Targets::new(l, firsts, kinds);
    cuMemDiscardAndPrefetchBatchAsync_ptsz(p: *const c_void, sizes: *const c_void, count: usize, l: *const c_void, firsts: *const c_void, kinds: usize, f: u64, s: Stream) Prefetch, count, |i| { let [kind, id] = targets.of(i).operands(); [element(p, i), element(sizes, i), kind, id, s as u64] }, with targets = Targets::new(l, firsts, kinds);

    @chosen
    cuGraphAddNode(node: *mut Handle, g: Handle, d: *const Handle, n: usize, p: *mut c_void) |ok| graph_node(ok, p, g);
    cuGraphAddNode_v2(node: *mut Handle, g: Handle, d: *const Handle, e: *const c_void, n: usize, p: *mut c_void) |ok| graph_node(ok, p, g);

    @watched
    cuCtxSetCurrent(c: Handle) record::context_current(c as u64);
    cuCtxPushCurrent(c: Handle) record::context_current(c as u64);
    cuCtxPopCurrent(c: *mut Handle) { let _ = c; record::context_current(0) };
    cuCtxPushCurrent_v2(c: Handle) record::context_current(c as u64);
    cuCtxPopCurrent_v2(c: *mut Handle) { let _ = c; record::context_current(0) };
    cuCtxGetCurrent(c: *mut Handle) record::context_current(out_word(true, c));
    cuCtxGetDevice(d: *mut c_int) record::context_device(out_int(true, d));

    // Capture, and how it spreads from stream to stream.
    cuStreamBeginCapture(s: Stream) capture::begun(capture::key(s as u64, PER_THREAD));
    cuStreamBeginCapture_ptsz(s: Stream) capture::begun(capture::key(s as u64, PER_THREAD));
    cuStreamBeginCapture_v2(s: Stream, mode: c_uint) { let _ = mode; capture::begun(capture::key(s as u64, PER_THREAD)) };
    cuStreamBeginCapture_v2_ptsz(s: Stream, mode: c_uint) { let _ = mode; capture::begun(capture::key(s as u64, PER_THREAD)) };
    cuStreamBeginCaptureToGraph(s: Stream, g: Handle, d: *const Handle, e: *const c_void, n: usize, mode: c_uint) { let _ = (g, d, e, n, mode); capture::begun(capture::key(s as u64, PER_THREAD)) };
    cuStreamBeginCaptureToGraph_ptsz(s: Stream, g: Handle, d: *const Handle, e: *const c_void, n: usize, mode: c_uint) { let _ = (g, d, e, n, mode); capture::begun(capture::key(s as u64, PER_THREAD)) };
    cuEventRecord(e: Handle, s: Stream) capture::recorded(e as u64, s as u64, PER_THREAD, 0);
    cuEventRecord_ptsz(e: Handle, s: Stream) capture::recorded(e as u64, s as u64, PER_THREAD, 0);
    cuEventRecordWithFlags(e: Handle, s: Stream, f: c_uint) capture::recorded(e as u64, s as u64, PER_THREAD, f);
    cuEventRecordWithFlags_ptsz(e: Handle, s: Stream, f: c_uint) capture::recorded(e as u64, s as u64, PER_THREAD, f);
    cuStreamWaitEvent(s: Stream, e: Handle, f: c_uint) capture::waits(s as u64, PER_THREAD, e as u64, f);
    cuStreamWaitEvent_ptsz(s: Stream, e: Handle, f: c_uint) capture::waits(s as u64, PER_THREAD, e as u64, f);
}
