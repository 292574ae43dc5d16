//! What descriptors say: sizes of arrays, locations, members of batches.
//!
//! Each is read after the driver has read it, and only then, so a pointer that the driver
//! refused is never followed. Enums are read as numbers, because a newer driver's header may
//! have values that ours lacks.

use core::ffi::{c_int, c_uint, c_void};

use gmmtrace_format::kind::{array, copy};

use super::driver::direction;

/// `CUipcMemHandle`, which is passed by value and so on the stack.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct IpcHandle([u64; 8]);

/// `CUmemLocation`, as a word: two ints, which the ABI passes in one register.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Location(u64);

impl Location {
    /// On a device that an older ABI names by its number; -1 is the host.
    pub fn of_device(device: c_int) -> Self {
        if device < 0 { Self(2) } else { Self(1 | u64::from(device.cast_unsigned()) << 32) }
    }

    /// What a pointer to one points to.
    ///
    /// # Safety
    /// `location` is null or what a successful call read.
    pub unsafe fn at(location: *const c_void) -> Self {
        // SAFETY: by the caller's promise.
        Self(unsafe { super::out_word(true, location.cast::<u64>()) })
    }

    /// Its type, and its number as a signed operand.
    pub fn operands(self) -> [u64; 2] {
        let id = (self.0 >> 32) as u32;
        [self.0 & 0xffff_ffff, i64::from(id.cast_signed()).cast_unsigned()]
    }

    /// Both in one operand: the type above the number.
    pub fn word(self) -> u64 {
        self.0.rotate_left(32)
    }

    /// The same when a pool of this kind of memory is what stream-ordered allocations use, else
    /// no place.
    pub fn of_pinned(self, allocation_type: c_uint) -> Self {
        if allocation_type == 1 { self } else { Self(0) }
    }
}

/// The number at an attribute's pointer: an int for the first three, 64 bits up to the eighth.
///
/// # Safety
/// `value` is null or what a successful call read or wrote for `attribute`.
pub unsafe fn attribute(ok: bool, attribute: c_uint, value: *const c_void) -> u64 {
    // SAFETY: by the caller's promise.
    unsafe {
        match attribute {
            1..=3 => super::out_half(ok, value.cast()),
            4..=8 => super::out_word(ok, value.cast::<u64>()),
            _ => 0,
        }
    }
}

// ---- arrays -------------------------------------------------------------------------------

/// `CUDA_ARRAY3D_DESCRIPTOR`; the flat one is its beginning without depth.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Shape {
    width: usize,
    height: usize,
    depth: usize,
    format: u32,
    channels: u32,
    flags: u32,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct Flat {
    width: usize,
    height: usize,
    format: u32,
    channels: u32,
}

/// CUDA 2.0's, with 32-bit extents.
#[derive(Clone, Copy)]
#[repr(C)]
struct OldShape {
    width: u32,
    height: u32,
    depth: u32,
    format: u32,
    channels: u32,
    flags: u32,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct OldFlat {
    width: u32,
    height: u32,
    format: u32,
    channels: u32,
}

impl Shape {
    /// Bytes and flags of `levels` levels. 0 bytes where the array owns no memory, and where its
    /// format is not known.
    pub fn operands(self, levels: u32) -> [u64; 2] {
        let flags = u64::from(self.flags);
        if flags & (array::SPARSE | array::DEFERRED_MAPPING) != 0 {
            return [0, flags];
        }
        let layered = flags & (array::LAYERED | array::CUBEMAP) != 0;
        let mut bytes = 0_u64;
        for level in 0..levels.min(32) {
            let extent = |full: usize| (full as u64 >> level).max(1);
            let depth = if layered { (self.depth as u64).max(1) } else { extent(self.depth) };
            let plane = self.plane(extent(self.width), extent(self.height));
            bytes = bytes.saturating_add(plane.saturating_mul(depth));
        }
        [bytes, flags]
    }

    /// Bytes of one layer.
    fn plane(self, width: u64, height: u64) -> u64 {
        let pixels = width.saturating_mul(height);
        let channels = u64::from(self.channels);
        let blocks = || width.div_ceil(4).saturating_mul(height.div_ceil(4));
        match self.format {
            // Integers of 8 bits, of 16 with half floats, of 32 with floats.
            0x01 | 0x08 => pixels.saturating_mul(channels),
            0x02 | 0x09 | 0x10 => pixels.saturating_mul(2).saturating_mul(channels),
            0x03 | 0x0a | 0x20 => pixels.saturating_mul(4).saturating_mul(channels),
            // Normalised integers, whose channels stand in the format: 1, 2 or 4.
            0xc0 | 0xc6 => pixels,
            0xc1 | 0xc3 | 0xc7 | 0xc9 => pixels.saturating_mul(2),
            0x50 | 0xc2 | 0xc4 | 0xc8 | 0xca => pixels.saturating_mul(4),
            0xc5 | 0xcb => pixels.saturating_mul(8),
            // Blocks of 4 × 4: BC1 and BC4 with 8 bytes, the others with 16.
            0x91 | 0x92 | 0x97 | 0x98 => blocks().saturating_mul(8),
            0x93..=0x96 | 0x99..=0x9e => blocks().saturating_mul(16),
            // NV12: a plane of 8 bits and one with a quarter of the pixels and two channels.
            0xb0 => pixels.saturating_mul(3) / 2,
            _ => 0,
        }
    }
}

/// Reads a descriptor; none for null.
///
/// # Safety
/// `descriptor` is null or what a successful call read.
unsafe fn read<T: Copy>(descriptor: *const c_void) -> Option<T> {
    // SAFETY: by the caller's promise.
    unsafe { super::out(true, descriptor.cast::<T>()) }
}

/// Bytes and flags of an array, when the call succeeded.
///
/// # Safety
/// When `ok`, `descriptor` is null or a `CUDA_ARRAY3D_DESCRIPTOR`.
pub unsafe fn shape(ok: bool, descriptor: *const c_void, levels: c_uint) -> [u64; 2] {
    // SAFETY: by the caller's promise.
    let shape = ok.then(|| unsafe { read::<Shape>(descriptor) }).flatten();
    shape.map_or([0, 0], |shape| shape.operands(levels))
}

/// As [`shape`].
///
/// # Safety
/// When `ok`, `descriptor` is null or a `CUDA_ARRAY_DESCRIPTOR`.
pub unsafe fn flat(ok: bool, descriptor: *const c_void) -> [u64; 2] {
    // SAFETY: by the caller's promise.
    let flat = ok.then(|| unsafe { read::<Flat>(descriptor) }).flatten();
    flat.map_or([0, 0], |Flat { width, height, format, channels }| {
        Shape { width, height, depth: 0, format, channels, flags: 0 }.operands(1)
    })
}

/// As [`shape`].
///
/// # Safety
/// When `ok`, `descriptor` is null or a `CUDA_ARRAY3D_DESCRIPTOR_v1`.
pub unsafe fn old_shape(ok: bool, descriptor: *const c_void) -> [u64; 2] {
    // SAFETY: by the caller's promise.
    let old = ok.then(|| unsafe { read::<OldShape>(descriptor) }).flatten();
    old.map_or([0, 0], |OldShape { width, height, depth, format, channels, flags }| {
        let [width, height, depth] = [width as usize, height as usize, depth as usize];
        Shape { width, height, depth, format, channels, flags }.operands(1)
    })
}

/// As [`shape`].
///
/// # Safety
/// When `ok`, `descriptor` is null or a `CUDA_ARRAY_DESCRIPTOR_v1`.
pub unsafe fn old_flat(ok: bool, descriptor: *const c_void) -> [u64; 2] {
    // SAFETY: by the caller's promise.
    let old = ok.then(|| unsafe { read::<OldFlat>(descriptor) }).flatten();
    old.map_or([0, 0], |OldFlat { width, height, format, channels }| {
        let [width, height] = [width as usize, height as usize];
        Shape { width, height, depth: 0, format, channels, flags: 0 }.operands(1)
    })
}

/// `CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC`, as far as it is read.
#[derive(Clone, Copy)]
#[repr(C)]
struct ExternalArray {
    offset: u64,
    shape: Shape,
    levels: u32,
}

/// Bytes of an array in external memory.
///
/// # Safety
/// When `ok`, `descriptor` is null or a `CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC`.
pub unsafe fn external_array(ok: bool, descriptor: *const c_void) -> u64 {
    // SAFETY: by the caller's promise.
    let found = ok.then(|| unsafe { read::<ExternalArray>(descriptor) }).flatten();
    let Some(ExternalArray { offset: _, shape, levels }) = found else { return 0 };
    let [bytes, _] = shape.operands(levels);
    bytes
}

/// `CUDA_EXTERNAL_MEMORY_BUFFER_DESC`, as far as it is read.
#[derive(Clone, Copy)]
#[repr(C)]
struct ExternalBuffer {
    offset: u64,
    bytes: u64,
}

/// Bytes of a buffer in external memory.
///
/// # Safety
/// When `ok`, `descriptor` is null or a `CUDA_EXTERNAL_MEMORY_BUFFER_DESC`.
pub unsafe fn external_buffer(ok: bool, descriptor: *const c_void) -> u64 {
    // SAFETY: by the caller's promise.
    let found = ok.then(|| unsafe { read::<ExternalBuffer>(descriptor) }).flatten();
    found.map_or(0, |ExternalBuffer { offset: _, bytes }| bytes)
}

/// Location of a new pool.
///
/// # Safety
/// When `ok`, `properties` is null or a `CUmemPoolProps`.
pub unsafe fn pool_location(ok: bool, properties: *const c_void) -> Location {
    if !ok || properties.is_null() {
        return Location(0);
    }
    // SAFETY: by the caller's promise; the location stands behind two enums.
    unsafe { Location::at(properties.byte_add(8)) }
}

// ---- batches ------------------------------------------------------------------------------

/// The element of an array of words that the caller passed.
///
/// # Safety
/// `array` is null, or the successful call read at least `index + 1` of it.
pub unsafe fn element(array: *const c_void, index: usize) -> u64 {
    if array.is_null() {
        return 0;
    }
    // SAFETY: by the caller's promise.
    unsafe { super::out_word(true, array.cast::<u64>().add(index)) }
}

/// Where each member of a batch of prefetches goes.
pub struct Targets {
    locations: *const c_void,
    first_members: *const c_void,
    count: usize,
    at: usize,
}

impl Targets {
    /// Location `n` holds for members from `first_members[n]` on.
    pub fn new(locations: *const c_void, first_members: *const c_void, count: usize) -> Self {
        Self { locations, first_members, count, at: 0 }
    }

    /// That of the next member; members are asked for in order.
    ///
    /// # Safety
    /// The arrays are those of a successful call.
    pub unsafe fn of(&mut self, member: usize) -> Location {
        if self.count == 0 {
            return Location(0);
        }
        while self.at + 1 < self.count
            // SAFETY: below the count that the call was given.
            && unsafe { element(self.first_members, self.at + 1) } <= member as u64
        {
            self.at += 1;
        }
        // SAFETY: likewise.
        Location(unsafe { element(self.locations, self.at) })
    }
}

/// `CUmemcpy3DOperand`: an address or an array, each with three words and a location or offsets.
#[derive(Clone, Copy)]
#[repr(C)]
struct End {
    kind: u32,
    place: u64,
    rest: [u64; 3],
}

/// `CUDA_MEMCPY3D_BATCH_OP`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Member {
    source: End,
    target: End,
    extent: [u64; 3],
    order: u32,
    flags: u32,
}

const _: () = assert!(size_of::<Member>() == 112);

/// Operands of a member of a batch of three-dimensional copies.
///
/// # Safety
/// `list` is null, or the successful call read at least `index + 1` of it.
pub unsafe fn member(list: *const c_void, index: usize, stream: u64) -> [u64; 5] {
    /// `CU_MEMCPY_OPERAND_TYPE_ARRAY`.
    const ARRAY: u32 = 2;
    if list.is_null() {
        return [copy::ASYNCHRONOUS, 0, 0, 0, stream];
    }
    // SAFETY: by the caller's promise.
    let read = unsafe { super::out(true, list.cast::<Member>().add(index)) };
    let Some(Member { source, target, extent, order: _, flags: _ }) = read else {
        return [copy::ASYNCHRONOUS, 0, 0, 0, stream];
    };
    let direction = match (source.kind, target.kind) {
        (ARRAY, ARRAY) => copy::ARRAY_TO_ARRAY,
        _ => copy::UNIFIED,
    };
    let [width, height, depth] = extent;
    let bytes = width.wrapping_mul(height).wrapping_mul(depth);
    [direction | copy::ASYNCHRONOUS, target.place, source.place, bytes, stream]
}

// ---- CUDA 2.0's descriptors of copies ------------------------------------------------------

/// `CUDA_MEMCPY2D_v1`.
#[derive(Clone, Copy)]
#[repr(C)]
struct OldFlatCopy {
    from_offset: [u32; 2],
    from_kind: u32,
    from_host: u64,
    from_device: u32,
    from_array: u64,
    from_pitch: u32,
    to_offset: [u32; 2],
    to_kind: u32,
    to_host: u64,
    to_device: u32,
    to_array: u64,
    to_pitch: u32,
    extent: [u32; 2],
}

/// `CUDA_MEMCPY3D_v1`.
#[derive(Clone, Copy)]
#[repr(C)]
struct OldDeepCopy {
    from_offset: [u32; 4],
    from_kind: u32,
    from_host: u64,
    from_device: u32,
    from_array: u64,
    from_reserved: u64,
    from_pitch: [u32; 2],
    to_offset: [u32; 4],
    to_kind: u32,
    to_host: u64,
    to_device: u32,
    to_array: u64,
    to_reserved: u64,
    to_pitch: [u32; 2],
    extent: [u32; 3],
}

const _: () = assert!(size_of::<OldFlatCopy>() == 96 && size_of::<OldDeepCopy>() == 144);

/// Operands of a copy by CUDA 2.0's descriptor.
///
/// # Safety
/// When `ok`, `descriptor` is null or a `CUDA_MEMCPY2D_v1`.
pub unsafe fn old_copy_2d(ok: bool, descriptor: *const c_void, mode: u64, stream: u64) -> [u64; 5] {
    // SAFETY: by the caller's promise.
    let found = ok.then(|| unsafe { read::<OldFlatCopy>(descriptor) }).flatten();
    let Some(d) = found else { return [mode, 0, 0, 0, stream] };
    let target = side(d.to_kind, d.to_host, d.to_device, d.to_array);
    let source = side(d.from_kind, d.from_host, d.from_device, d.from_array);
    let [width, height] = d.extent.map(u64::from);
    [direction(d.from_kind, d.to_kind) | mode, target, source, width.wrapping_mul(height), stream]
}

/// Operands of a copy by CUDA 2.0's descriptor.
///
/// # Safety
/// When `ok`, `descriptor` is null or a `CUDA_MEMCPY3D_v1`.
pub unsafe fn old_copy_3d(ok: bool, descriptor: *const c_void, mode: u64, stream: u64) -> [u64; 5] {
    // SAFETY: by the caller's promise.
    let found = ok.then(|| unsafe { read::<OldDeepCopy>(descriptor) }).flatten();
    let Some(d) = found else { return [mode, 0, 0, 0, stream] };
    let target = side(d.to_kind, d.to_host, d.to_device, d.to_array);
    let source = side(d.from_kind, d.from_host, d.from_device, d.from_array);
    let [width, height, depth] = d.extent.map(u64::from);
    let bytes = width.wrapping_mul(height).wrapping_mul(depth);
    [direction(d.from_kind, d.to_kind) | mode, target, source, bytes, stream]
}

fn side(kind: u32, host: u64, device: u32, array: u64) -> u64 {
    super::driver::side(kind, host, u64::from(device), array)
}
