//! The log file: created once, grown in steps, never closed.
//!
//! The descriptor is kept for growth only and is never trusted: before each use its device and
//! inode are compared with those of the file we made, because a daemon may have closed it and
//! the host may have been given its number. A foreign descriptor is left alone and the file is
//! opened again by its path.

use core::ffi::CStr;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, Ordering};

use gmmtrace_format::layout::{CHUNK_SIZE, Counter};

use crate::chunk::Header;
use crate::window::{self, WINDOWS};

/// Room for a path and its NUL.
pub const PATH_SPACE: usize = 4096;
/// Descriptors from here on are rarely used by programs.
const HIGH_DESCRIPTOR: libc::c_int = 700;

/// A path under construction: always NUL-terminated, never longer than [`PATH_SPACE`].
pub struct Name {
    bytes: [u8; PATH_SPACE],
    length: usize,
    cut: bool,
}

impl Default for Name {
    fn default() -> Self {
        Self::new()
    }
}

impl Name {
    /// An empty name.
    #[must_use]
    pub const fn new() -> Self {
        Self { bytes: [0; PATH_SPACE], length: 0, cut: false }
    }

    /// Appends bytes. What does not fit is left out and [`Name::is_cut`] says so.
    pub fn push(&mut self, text: &[u8]) {
        for &byte in text {
            match self.bytes.get_mut(self.length) {
                Some(slot) if self.length + 1 < PATH_SPACE => {
                    *slot = byte;
                    self.length += 1;
                }
                _ => self.cut = true,
            }
        }
    }

    /// Appends a decimal number.
    pub fn push_number(&mut self, value: u64) {
        let mut digits = [0; 20];
        let mut at = digits.len();
        let mut rest = value;
        loop {
            at = at.saturating_sub(1);
            if let Some(digit) = digits.get_mut(at) {
                *digit = b'0' + (rest % 10) as u8;
            }
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        self.push(digits.get(at..).unwrap_or(&[]));
    }

    /// Cuts the name back to `length` bytes.
    pub fn truncate(&mut self, length: usize) {
        while self.length > length {
            self.length -= 1;
            if let Some(slot) = self.bytes.get_mut(self.length) {
                *slot = 0;
            }
        }
    }

    /// Bytes so far.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or(&[])
    }

    /// Whether something did not fit.
    #[must_use]
    pub const fn is_cut(&self) -> bool {
        self.cut
    }

    fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or(c"")
    }
}

/// How the file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backing {
    /// The file itself is mapped: what is committed survives SIGKILL.
    Mapped,
    /// The filesystem cannot share mappings: the helper copies what is committed.
    Written,
}

/// Why a log could not be created: `errno` of the step that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreateError {
    /// The name is longer than a path may be.
    NameTooLong,
    /// `open` failed.
    Open(i32),
    /// The file could not be given room.
    Room(i32),
}

/// One log file.
pub struct LogFile {
    windows: [AtomicPtr<u8>; WINDOWS],
    mapped_windows: AtomicU32,
    next: AtomicU32,
    growing: AtomicBool,
    descriptor: AtomicI32,
    device: libc::dev_t,
    inode: libc::ino_t,
    limit: u32,
    backing: Backing,
    path: Name,
    written: AtomicU32,
}

impl LogFile {
    /// Creates the file at the absolute path `name`, or with `.1`, `.2` … behind it when that
    /// exists, and writes the log into `place`. At most `limit` bytes are used.
    ///
    /// # Safety
    /// `place` is zeroed memory of the size of a `LogFile` that is never freed.
    ///
    /// # Errors
    /// When the file cannot be opened or given room for its header.
    pub unsafe fn create(
        place: *mut Self,
        mut name: Name,
        limit: u64,
    ) -> Result<&'static Self, CreateError> {
        let descriptor = open_new(&mut name)?;
        let descriptor = move_high(descriptor);
        let status = file_status(descriptor).ok_or(CreateError::Open(libc::EBADF))?;
        // SAFETY: the caller gives zeroed memory, which is a valid LogFile but for the fields
        // set here; nobody else sees it yet.
        unsafe {
            (*place).path = name;
            (*place).device = status.st_dev;
            (*place).inode = status.st_ino;
            (*place).limit = u32::try_from(limit / CHUNK_SIZE as u64).unwrap_or(u32::MAX);
            (*place).backing = Backing::Mapped;
            (*place).descriptor = AtomicI32::new(descriptor);
        }
        // SAFETY: initialised above and never freed.
        let log = unsafe { &mut *place };
        if !log.grow() {
            log.backing = Backing::Written;
            // The smallest log that says anything: the header and a chunk.
            if file_size_limit() < 2 * CHUNK_SIZE as u64 || !log.grow() {
                let error = crate::errno();
                discard(descriptor, &log.path);
                return Err(CreateError::Room(error));
            }
            // What cannot be written later must not be handed out now: then its loss is counted.
            let room = u32::try_from(file_size_limit() / CHUNK_SIZE as u64).unwrap_or(u32::MAX);
            log.limit = log.limit.min(room);
        }
        if log.take().is_none() {
            let error = crate::errno();
            discard(descriptor, &log.path);
            return Err(CreateError::Room(error));
        }
        Ok(log)
    }

    /// The file header.
    #[must_use]
    pub fn header(&self) -> Header {
        // SAFETY: slot 0 was populated by `create` and is never unmapped.
        unsafe { Header::at(self.address(0)) }
    }

    /// The file's absolute path.
    #[must_use]
    pub fn path(&self) -> &[u8] {
        self.path.as_bytes()
    }

    /// How the file is written.
    #[must_use]
    pub const fn backing(&self) -> Backing {
        self.backing
    }

    /// The next slot, populated and all zeros, or `None` when the log cannot grow. Any thread.
    pub fn take(&self) -> Option<*mut u8> {
        let mut slot = self.next.load(Ordering::Relaxed);
        loop {
            if slot >= self.limit {
                return None;
            }
            let mapped = window::start(self.mapped_windows.load(Ordering::Acquire) as usize);
            if slot >= mapped && !self.grow() {
                return None;
            }
            if slot >= mapped {
                slot = self.next.load(Ordering::Relaxed);
                continue;
            }
            let next = slot + 1;
            match self.next.compare_exchange_weak(slot, next, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => break,
                Err(other) => slot = other,
            }
        }
        let address = self.address(slot);
        if self.populate(address, slot) {
            self.header().taken(slot + 1);
            return Some(address);
        }
        // Give the slot back if nobody took the next one; else it stays Empty.
        let _ = self.next.compare_exchange(slot + 1, slot, Ordering::AcqRel, Ordering::Relaxed);
        None
    }

    fn address(&self, slot: u32) -> *mut u8 {
        let (window, place) = window::locate(slot);
        let base = self
            .windows
            .get(window)
            .map_or(core::ptr::null_mut(), |window| window.load(Ordering::Acquire));
        base.wrapping_add(place as usize * CHUNK_SIZE)
    }

    /// Gives a slot real storage, so that writing to it can raise no SIGBUS later.
    fn populate(&self, address: *mut u8, slot: u32) -> bool {
        // SAFETY: the slot is mapped; populating changes no contents.
        let done = unsafe { libc::madvise(address.cast(), CHUNK_SIZE, libc::MADV_POPULATE_WRITE) };
        if done == 0 {
            return true;
        }
        if crate::errno() != libc::EINVAL {
            return false;
        }
        if self.backing == Backing::Written {
            // Anonymous memory: no file stands behind it that could be full.
            return true;
        }
        // Kernels before 5.14: reserve the blocks, or where that is not supported write zeros
        // (never glibc's posix_fallocate, whose emulation reads and writes the host's file).
        let Some(descriptor) = self.trusted_descriptor() else { return false };
        let offset = i64::from(slot) * CHUNK_SIZE as i64;
        // SAFETY: plain system call on our own descriptor.
        if unsafe { libc::fallocate(descriptor, 0, offset, CHUNK_SIZE as i64) } == 0 {
            return true;
        }
        static ZEROS: [u8; 4096] = [0; 4096];
        (0..(CHUNK_SIZE / ZEROS.len()) as i64).all(|page| {
            let at = offset + page * ZEROS.len() as i64;
            // SAFETY: writes zeros from a static to our own file.
            let count = unsafe { libc::pwrite(descriptor, ZEROS.as_ptr().cast(), ZEROS.len(), at) };
            count == ZEROS.len() as isize
        })
    }

    /// Maps the next window. True when there is more room than before, by whomever.
    fn grow(&self) -> bool {
        let before = self.mapped_windows.load(Ordering::Acquire);
        if self.growing.swap(true, Ordering::Acquire) {
            // Another thread grows; it needs a few system calls and no lock of the host's.
            for _ in 0..1_000_000 {
                if !self.growing.load(Ordering::Acquire) {
                    break;
                }
                // SAFETY: no preconditions.
                unsafe { libc::sched_yield() };
            }
            return self.mapped_windows.load(Ordering::Acquire) > before;
        }
        let grown = self.mapped_windows.load(Ordering::Acquire) > before || self.map_next(before);
        self.growing.store(false, Ordering::Release);
        grown
    }

    fn map_next(&self, window: u32) -> bool {
        let index = window as usize;
        let Some(entry) = self.windows.get(index) else { return false };
        let offset = i64::from(window::start(index)) * CHUNK_SIZE as i64;
        let bytes = window::slots(index) as usize * CHUNK_SIZE;
        let address = match self.backing {
            Backing::Mapped => self.map_file(offset, bytes),
            Backing::Written => map_anonymous(bytes),
        };
        let Some(address) = address else { return false };
        // SAFETY: our own mapping; a forked child must not write into the parent's log.
        unsafe { libc::madvise(address.cast(), bytes, libc::MADV_DONTFORK) };
        entry.store(address, Ordering::Release);
        self.mapped_windows.store(window + 1, Ordering::Release);
        true
    }

    fn map_file(&self, offset: i64, bytes: usize) -> Option<*mut u8> {
        let descriptor = self.trusted_descriptor()?;
        // What lies behind the cap is mapped and never touched.
        let end = (offset + bytes as i64).min(i64::from(self.limit) * CHUNK_SIZE as i64);
        if end.cast_unsigned() > file_size_limit() {
            set_errno(libc::EFBIG);
            return None;
        }
        let status = file_status(descriptor)?;
        // SAFETY: our own descriptor, just recognised; below RLIMIT_FSIZE, so no SIGXFSZ.
        if status.st_size < end && unsafe { libc::ftruncate(descriptor, end) } != 0 {
            return None;
        }
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let address = unsafe {
            libc::mmap(
                core::ptr::null_mut(),
                bytes,
                protection,
                libc::MAP_SHARED,
                descriptor,
                offset,
            )
        };
        (address != libc::MAP_FAILED).then_some(address.cast())
    }

    /// Our descriptor, or the file opened again when the number is not ours any more.
    fn trusted_descriptor(&self) -> Option<libc::c_int> {
        let descriptor = self.descriptor.load(Ordering::Relaxed);
        if descriptor >= 0 && self.is_ours(descriptor) {
            return Some(descriptor);
        }
        let flags = libc::O_RDWR | libc::O_CLOEXEC | libc::O_NOFOLLOW;
        // SAFETY: a NUL-terminated path.
        let opened = unsafe { libc::open(self.path.as_c_str().as_ptr(), flags) };
        if opened < 0 {
            return None;
        }
        if !self.is_ours(opened) {
            // SAFETY: opened a moment ago by us.
            unsafe { libc::close(opened) };
            set_errno(libc::ENOENT);
            return None;
        }
        let opened = move_high(opened);
        self.descriptor.store(opened, Ordering::Relaxed);
        if self.next.load(Ordering::Relaxed) > 0 {
            self.header().count(Counter::DescriptorLost, 1);
        }
        Some(opened)
    }

    fn is_ours(&self, descriptor: libc::c_int) -> bool {
        file_status(descriptor)
            .is_some_and(|status| status.st_dev == self.device && status.st_ino == self.inode)
    }

    /// Copies the log to its file, where it is not mapped. The helper's, now and then.
    pub fn write_back(&self) {
        if self.backing == Backing::Mapped {
            return;
        }
        let Some(descriptor) = self.trusted_descriptor() else { return };
        let end = self.next.load(Ordering::Acquire);
        // The header and every slot that may have changed: those not long sealed.
        let from = self.written.load(Ordering::Relaxed).saturating_sub(256);
        for slot in core::iter::once(0).chain(from.max(1)..end) {
            let offset = i64::from(slot) * CHUNK_SIZE as i64;
            if (offset + CHUNK_SIZE as i64).cast_unsigned() > file_size_limit() {
                return;
            }
            // SAFETY: a mapped slot, written to our own descriptor.
            unsafe { libc::pwrite(descriptor, self.address(slot).cast(), CHUNK_SIZE, offset) };
        }
        self.written.store(end, Ordering::Relaxed);
    }
}

fn set_errno(value: i32) {
    // SAFETY: this thread's errno.
    unsafe { *libc::__errno_location() = value };
}

fn map_anonymous(bytes: usize) -> Option<*mut u8> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new mapping at an address of the kernel's choice.
    let address = unsafe { libc::mmap(core::ptr::null_mut(), bytes, protection, flags, -1, 0) };
    (address != libc::MAP_FAILED).then_some(address.cast())
}

fn open_new(name: &mut Name) -> Result<libc::c_int, CreateError> {
    let length = name.as_bytes().len();
    let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC | libc::O_NOFOLLOW;
    for attempt in 0..1000 {
        if attempt > 0 {
            name.truncate(length);
            name.push(b".");
            name.push_number(attempt);
        }
        if name.is_cut() {
            return Err(CreateError::NameTooLong);
        }
        // SAFETY: a NUL-terminated path.
        let descriptor = unsafe { libc::open(name.as_c_str().as_ptr(), flags, 0o600) };
        if descriptor >= 0 {
            return Ok(descriptor);
        }
        if crate::errno() != libc::EEXIST {
            break;
        }
    }
    Err(CreateError::Open(crate::errno()))
}

/// Moves a fresh descriptor out of the numbers that programs expect to be given.
fn move_high(descriptor: libc::c_int) -> libc::c_int {
    // SAFETY: duplicates our own descriptor.
    let high = unsafe { libc::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, HIGH_DESCRIPTOR) };
    if high < 0 {
        return descriptor;
    }
    // SAFETY: opened a moment ago by us.
    unsafe { libc::close(descriptor) };
    high
}

fn file_status(descriptor: libc::c_int) -> Option<libc::stat> {
    let mut status = core::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: fstat fills the structure when it returns 0.
    unsafe { (libc::fstat(descriptor, status.as_mut_ptr()) == 0).then(|| status.assume_init()) }
}

fn file_size_limit() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: getrlimit fills the structure.
    match unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) } {
        0 => limit.rlim_cur,
        _ => u64::MAX,
    }
}

/// Removes a file that got no further than its name.
fn discard(descriptor: libc::c_int, path: &Name) {
    let errno = crate::ErrnoGuard::new();
    // SAFETY: our own descriptor and path, both made a moment ago.
    unsafe {
        libc::close(descriptor);
        libc::unlink(path.as_c_str().as_ptr());
    }
    drop(errno);
}
