//! The C library's own `dlsym`, `dlvsym` and `dlclose`, behind all interposers.
//!
//! We export these names, so any reference to them would reach ourselves. They are therefore
//! read from the symbol table of the object that defines `dladdr1`, which is the object that
//! defines them too: libc from glibc 2.34 on, libdl before.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicUsize, Ordering};

/// Type of `dlsym`.
pub type Dlsym = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;
/// Type of `dlvsym`.
pub type Dlvsym = unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char) -> *mut c_void;

/// The beginning of the loader's public description of an object.
#[repr(C)]
pub struct LinkMap {
    /// Difference between its addresses and those in its file.
    pub base: usize,
    /// Its path; empty for the executable.
    pub name: *const c_char,
    dynamic: *const Dynamic,
    next: *const LinkMap,
    previous: *const LinkMap,
}

impl LinkMap {
    /// The object before it in the order of loading.
    pub fn previous(&self) -> Option<&'static Self> {
        // SAFETY: null, or the loader's description of a loaded object.
        unsafe { self.previous.as_ref() }
    }
}

#[repr(C)]
struct Dynamic {
    tag: i64,
    value: usize,
}

#[repr(C)]
struct Symbol {
    name: u32,
    info: u8,
    other: u8,
    section: u16,
    value: usize,
    size: usize,
}

const STRINGS: i64 = 5;
const SYMBOLS: i64 = 6;
const GNU_HASH: i64 = 0x6fff_fef5;
const RTLD_DL_LINKMAP: c_int = 2;

unsafe extern "C" {
    fn dladdr1(
        address: *const c_void,
        info: *mut libc::Dl_info,
        extra: *mut *mut c_void,
        flags: c_int,
    ) -> c_int;
}

/// The object that `address` lies in. Takes the loader's lock on old C libraries: not for the
/// hot path.
pub fn object_of(address: usize) -> Option<&'static LinkMap> {
    let mut info = core::mem::MaybeUninit::<libc::Dl_info>::uninit();
    let mut map = core::ptr::null_mut();
    // SAFETY: both out-parameters are ours; dladdr1 accepts any address.
    let found = unsafe {
        dladdr1(address as *const c_void, info.as_mut_ptr(), &raw mut map, RTLD_DL_LINKMAP)
    };
    // SAFETY: on success the loader gives its link map, which lives as long as the object.
    (found != 0 && !map.is_null()).then(|| unsafe { &*map.cast::<LinkMap>() })
}

static DLSYM: AtomicUsize = AtomicUsize::new(0);
static DLVSYM: AtomicUsize = AtomicUsize::new(0);

fn cached(cell: &AtomicUsize, name: &CStr) -> usize {
    let known = cell.load(Ordering::Relaxed);
    if known != 0 {
        return known;
    }
    let found = object_of(dladdr1 as *const () as usize)
        .and_then(|map| find(map.base, map.dynamic, name))
        .unwrap_or(0);
    cell.store(found, Ordering::Relaxed);
    found
}

/// The C library's `dlsym`.
pub fn dlsym() -> Option<Dlsym> {
    let address = cached(&DLSYM, c"dlsym");
    // SAFETY: the symbol's address and type.
    (address != 0).then(|| unsafe { core::mem::transmute::<usize, Dlsym>(address) })
}

/// The C library's `dlvsym`.
pub fn dlvsym() -> Option<Dlvsym> {
    let address = cached(&DLVSYM, c"dlvsym");
    // SAFETY: the symbol's address and type.
    (address != 0).then(|| unsafe { core::mem::transmute::<usize, Dlvsym>(address) })
}

static DLCLOSE: AtomicUsize = AtomicUsize::new(0);

/// Type of `dlclose`.
pub type Dlclose = unsafe extern "C" fn(*mut c_void) -> c_int;

/// The C library's `dlclose`.
pub fn dlclose() -> Option<Dlclose> {
    let address = cached(&DLCLOSE, c"dlclose");
    // SAFETY: the symbol's address and type.
    (address != 0).then(|| unsafe { core::mem::transmute::<usize, Dlclose>(address) })
}

fn gnu_hash(name: &[u8]) -> u32 {
    name.iter().fold(5381, |hash: u32, &byte| hash.wrapping_mul(33).wrapping_add(u32::from(byte)))
}

/// The definitions of a name in all loaded objects.
pub struct Definitions<'a> {
    name: &'a CStr,
    except: usize,
    /// The first one, or 0.
    pub first: usize,
    /// How many different ones there are.
    pub count: usize,
}

/// Every definition of `name` but the one at `except`. Reads the objects' own symbol tables
/// under the loader's lock and calls nothing from there.
pub fn definitions(name: &CStr, except: usize) -> Definitions<'_> {
    let mut found = Definitions { name, except, first: 0, count: 0 };
    // SAFETY: the callback gets the address of `found`, which outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut found).cast()) };
    found
}

unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _: usize, found: *mut c_void) -> c_int {
    // SAFETY: the loader's description of an object, and what `definitions` handed in.
    let (info, found) = unsafe { (&*info, &mut *found.cast::<Definitions<'_>>()) };
    let base = info.dlpi_addr as usize;
    for index in 0..usize::from(info.dlpi_phnum) {
        // SAFETY: the object has this many program headers.
        let header = unsafe { &*info.dlpi_phdr.add(index) };
        if header.p_type == libc::PT_DYNAMIC {
            let dynamic = base.wrapping_add(header.p_vaddr as usize) as *const Dynamic;
            match find(base, dynamic, found.name) {
                Some(address) if address != found.except => {
                    found.first = if found.count == 0 { address } else { found.first };
                    found.count += 1;
                }
                _ => {}
            }
        }
    }
    0
}

/// Looks a name up in one object's GNU hash table.
fn find(base: usize, dynamic: *const Dynamic, name: &CStr) -> Option<usize> {
    let (mut strings, mut symbols, mut table) = (0, 0, 0);
    let mut entry = dynamic;
    // SAFETY: a loaded object's dynamic section ends with a zero tag.
    unsafe {
        while (*entry).tag != 0 {
            match (*entry).tag {
                STRINGS => strings = (*entry).value,
                SYMBOLS => symbols = (*entry).value,
                GNU_HASH => table = (*entry).value,
                _ => {}
            }
            entry = entry.add(1);
        }
    }
    if strings == 0 || symbols == 0 || table == 0 {
        return None;
    }
    // glibc has relocated these for every object but the kernel's own.
    for value in [&mut strings, &mut symbols, &mut table] {
        if *value < base {
            *value = base.wrapping_add(*value);
        }
    }
    let hash = gnu_hash(name.to_bytes());
    // SAFETY: the layout of DT_GNU_HASH: four words, the bloom filter, buckets, chains. All of
    // it is read-only memory of a loaded object.
    unsafe {
        let words = table as *const u32;
        let (buckets, first, bloom) = (*words, *words.add(1), *words.add(2));
        if buckets == 0 {
            return None;
        }
        let bucket = words.add(4 + 2 * bloom as usize);
        let chain = bucket.add(buckets as usize);
        let mut index = *bucket.add(hash.wrapping_rem(buckets) as usize);
        if index < first {
            return None;
        }
        loop {
            let link = *chain.add((index - first) as usize);
            let symbol = &*(symbols as *const Symbol).add(index as usize);
            let text = CStr::from_ptr((strings + symbol.name as usize) as *const c_char);
            if link | 1 == hash | 1 && text == name && symbol.section != 0 {
                return Some(base.wrapping_add(symbol.value));
            }
            if link & 1 != 0 {
                return None;
            }
            index += 1;
        }
    }
}
