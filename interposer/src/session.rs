//! The session: one log of one process, from its first CUDA call on.
//!
//!     Idle ──first call──▶ Starting ──▶ Active ──fork, in the child──▶ Starting …
//!                             └──▶ Off (no log could be made; hooks pass on)
//!
//! The generation of the active session stands in a page that the kernel wipes in a forked
//! child (MADV_WIPEONFORK), so a child knows without a system call that nothing here is its own.
//! A session's memory is never freed or touched by a child.

use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use gmmtrace_format::definition::Definition;
use gmmtrace_format::header::{Anchor, Item};
use gmmtrace_format::layout::{self, Counter, file};
use gmmtrace_ring::{Dictionary, ErrnoGuard, LogFile, Name};

use crate::record::Writer;
use crate::sites::Sites;
use crate::stacks::{Stacks, python};
use crate::{clock, helper, options, record};

/// Writers of one session. Writers of threads that ended are used again.
pub const WRITERS: usize = 1 << 15;
/// Chunks that the helper keeps ready.
pub const READY: usize = 64;
/// Writers of ended threads that wait for a new thread.
pub const ORPHANS: usize = 1024;

/// One log and everything that belongs to it.
pub struct Session {
    /// The file.
    pub log: &'static LogFile,
    /// Its definitions.
    pub dictionary: Dictionary,
    /// Call sites and modules.
    pub sites: Sites,
    /// Who called them.
    pub stacks: Stacks,
    /// What tells this session from those of other processes.
    pub generation: u64,
    /// Process id.
    pub pid: i32,
    /// Writers handed out so far.
    pub writers_used: AtomicU32,
    /// Populated slots, 0 address for none.
    pub ready: [AtomicPtr<u8>; READY],
    /// Writers whose thread has ended: index + 1, or 0.
    pub orphans: [AtomicU32; ORPHANS],
    /// Taken so far: chunks and writers; tells the helper whether there is work.
    pub activity: AtomicU64,
    /// The writers.
    pub writers: [Writer; WRITERS],
}

const IDLE: u64 = 0;
const STARTING: u64 = 1;
const ACTIVE: u64 = 2;
const OFF: u64 = 3;

/// Phase in the low two bits, generation above.
static STATE: AtomicU64 = AtomicU64::new(IDLE);
static SESSION: AtomicPtr<Session> = AtomicPtr::new(core::ptr::null_mut());
/// Never a generation: no session.
static NONE: AtomicU64 = AtomicU64::new(u64::MAX);
/// The wiped page, or `NONE`.
static PAGE: AtomicPtr<AtomicU64> = AtomicPtr::new((&raw const NONE).cast_mut());

/// Generation of this process's session; something else when there is none.
#[inline(always)]
pub fn generation() -> u64 {
    // SAFETY: PAGE always points to a live word: NONE or a page that is never unmapped.
    unsafe { &*PAGE.load(Ordering::Acquire) }.load(Ordering::Acquire)
}

/// The session, when `generation` says that it is this process's.
#[inline(always)]
pub fn current() -> Option<&'static Session> {
    let session = SESSION.load(Ordering::Acquire);
    // SAFETY: sessions are never freed.
    (!session.is_null()).then(|| unsafe { &*session })
}

/// This process's session, begun now if need be. None when recording is off or failed.
#[cold]
pub fn enter() -> Option<&'static Session> {
    if options::off() {
        return None;
    }
    for _ in 0..2_000_000 {
        let state = STATE.load(Ordering::Acquire);
        let forked = state != IDLE && is_child();
        match state & 3 {
            OFF if !forked => return None,
            ACTIVE if !forked => return current(),
            STARTING if !forked => {
                // SAFETY: no preconditions.
                unsafe { libc::sched_yield() };
                continue;
            }
            _ => {}
        }
        let generation = (state >> 2) + 1;
        let starting = generation << 2 | STARTING;
        if STATE.compare_exchange(state, starting, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            continue;
        }
        OWNER.store(own_pid(), Ordering::Release);
        let errno = ErrnoGuard::new();
        let session = start(generation);
        drop(errno);
        let phase = if session.is_some() { ACTIVE } else { OFF };
        STATE.store(generation << 2 | phase, Ordering::Release);
        return session;
    }
    None
}

/// Process that last began a session. Asked only on the slow path.
static OWNER: AtomicU32 = AtomicU32::new(0);

fn own_pid() -> u32 {
    // SAFETY: no preconditions.
    unsafe { libc::getpid() }.cast_unsigned()
}

fn is_child() -> bool {
    let owner = OWNER.load(Ordering::Acquire);
    owner != 0 && owner != own_pid()
}

/// Zeroed memory that is given back by nobody.
pub fn zeroed(bytes: usize) -> Option<*mut u8> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new mapping at an address of the kernel's choice.
    let address = unsafe { libc::mmap(core::ptr::null_mut(), bytes, protection, flags, -1, 0) };
    (address != libc::MAP_FAILED).then_some(address.cast())
}

fn start(generation: u64) -> Option<&'static Session> {
    let clock = clock::choose();
    if generation > 1 {
        crate::capture::forget();
    }
    let name = log_name()?;
    let place = zeroed(size_of::<LogFile>())?.cast::<LogFile>();
    // SAFETY: zeroed memory of the right size, never freed.
    let log = unsafe { LogFile::create(place, name, options::get().max_bytes) }.ok()?;
    let now = clock::now();
    write_header(log, clock, now, generation);
    let session = zeroed(size_of::<Session>())?.cast::<Session>();
    // SAFETY: zeroed memory is a valid Session but for the reference, which is set before a
    // reference to the whole is made; it is never freed.
    let session: &'static Session = unsafe {
        (&raw mut (*session).log).write(log);
        (&raw mut (*session).generation).write(generation);
        (&raw mut (*session).pid).write(own_pid().cast_signed());
        &*session
    };
    log.header().publish();
    // Before the first call, so that one which never returns has a name.
    for (id, layer, name) in crate::table::apis() {
        let definition = Definition::Api { id, layer: layer as u64, name };
        session.dictionary.define(log, now, &definition);
    }
    let page = zeroed(4096)?;
    // SAFETY: our own page.
    let wipes = unsafe { libc::madvise(page.cast(), 4096, libc::MADV_WIPEONFORK) } == 0;
    for (bit, text) in options::MISREAD {
        if options::get().misread & bit != 0 {
            session.dictionary.define(log, now, &Definition::Remark { text });
        }
    }
    if !wipes {
        // A forked child could not tell that the session is its parent's, and would write to
        // memory that it does not have.
        let text = b"nothing is recorded: this kernel has no MADV_WIPEONFORK";
        session.dictionary.define(log, now, &Definition::Remark { text });
        return None;
    }
    if options::python_stacks() != 0 {
        python::look(session);
    }
    let page = page.cast::<AtomicU64>();
    // SAFETY: our own page, aligned, never unmapped.
    unsafe { &*page }.store(generation, Ordering::Release);
    SESSION.store(core::ptr::from_ref(session).cast_mut(), Ordering::Release);
    PAGE.store(page, Ordering::Release);
    if !helper::start(session) {
        log.header().set(Counter::HelperMissing, 1);
        crate::lookup::flush(session);
    }
    Some(session)
}

/// The absolute path of the log, from the pattern.
fn log_name() -> Option<Name> {
    let mut name = Name::new();
    let pattern: &[u8] = match options::get().out() {
        b"" => b"gmmtrace.%e.%p.%t.gmmt",
        pattern => pattern,
    };
    if pattern.first() != Some(&b'/') {
        let mut directory = [0_u8; 4096];
        // SAFETY: getcwd writes at most the length given, NUL included.
        let found = unsafe { libc::getcwd(directory.as_mut_ptr().cast(), directory.len()) };
        if found.is_null() {
            return None;
        }
        name.push(until_nul(&directory));
        name.push(b"/");
    }
    let mut bytes = pattern.iter();
    while let Some(&byte) = bytes.next() {
        if byte != b'%' {
            name.push(&[byte]);
            continue;
        }
        match bytes.next() {
            Some(b'p') => name.push_number(u64::from(own_pid())),
            Some(b't') => name.push_number(clock::realtime()),
            Some(b'h') => push_plain(&mut name, host(&mut [0; 256])),
            Some(b'e') => push_plain(&mut name, base_name(executable(&mut [0; 4096]))),
            Some(b'r') => push_plain(&mut name, options::get().rank()),
            Some(b'%') => name.push(b"%"),
            Some(&other) => name.push(&[b'%', other]),
            None => name.push(b"%"),
        }
    }
    Some(name)
}

fn push_plain(name: &mut Name, text: &[u8]) {
    for &byte in text {
        name.push(if byte == b'/' || byte < b' ' { b"_" } else { core::slice::from_ref(&byte) });
    }
}

fn until_nul(bytes: &[u8]) -> &[u8] {
    bytes.split(|&byte| byte == 0).next().unwrap_or(&[])
}

fn base_name(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or(path)
}

fn executable(buffer: &mut [u8; 4096]) -> &[u8] {
    let path = c"/proc/self/exe".as_ptr();
    // SAFETY: readlink writes at most the length given.
    let count = unsafe { libc::readlink(path, buffer.as_mut_ptr().cast(), buffer.len()) };
    buffer.get(..usize::try_from(count).unwrap_or(0)).unwrap_or(&[])
}

fn host(buffer: &mut [u8; 256]) -> &[u8] {
    // SAFETY: gethostname writes at most the length given.
    unsafe { libc::gethostname(buffer.as_mut_ptr().cast(), buffer.len() - 1) };
    until_nul(buffer)
}

/// Environment switches that explain memory; never the whole environment. `TF_` alone is
/// Terraform's too.
const SWITCHES: [&[u8]; 12] = [
    b"CUDA_",
    b"PYTORCH_",
    b"XLA_",
    b"TF_GPU_",
    b"TF_FORCE_",
    b"TF_XLA_",
    b"TF_CUDNN_",
    b"TF_ENABLE_",
    b"NCCL_",
    b"GMMTRACE",
    b"CUBLAS_",
    b"JAX_",
];
/// A switch with such a word in its name stays out of the log.
const SECRETS: [&[u8]; 4] = [b"KEY", b"TOKEN", b"SECRET", b"PASSWORD"];

fn is_switch(entry: &[u8]) -> bool {
    let name = entry.split(|&byte| byte == b'=').next().unwrap_or(&[]);
    let secret = |word: &&[u8]| name.windows(word.len()).any(|part| part == *word);
    SWITCHES.iter().any(|prefix| name.starts_with(prefix)) && !SECRETS.iter().any(secret)
}

fn write_header(log: &LogFile, clock: layout::Clock, now: Anchor, generation: u64) {
    // SAFETY: not published yet, and this thread is alone with it.
    let bytes = unsafe { log.header().bytes() };
    let mut put = |offset: usize, value: &[u8]| {
        if let Some(target) = bytes.get_mut(offset..offset + value.len()) {
            target.copy_from_slice(value);
        }
    };
    let load = options::get().load;
    let load_ticks = match clock {
        layout::Clock::TimeStampCounter => load.ticks,
        layout::Clock::Monotonic => load.monotonic_ns,
    };
    put(file::MAJOR, &layout::MAJOR.to_le_bytes());
    put(file::MINOR, &layout::MINOR.to_le_bytes());
    put(file::CHUNK_LOG2, &[layout::CHUNK_LOG2, clock as u8]);
    put(file::PID, &own_pid().to_le_bytes());
    // SAFETY: no preconditions.
    put(file::PARENT_PID, &unsafe { libc::getppid() }.to_le_bytes());
    put(file::GENERATION, &((generation - 1) as u32).to_le_bytes());
    put(file::LOAD_TICKS, &load_ticks.to_le_bytes());
    put(file::LOAD_MONOTONIC, &load.monotonic_ns.to_le_bytes());
    put(file::START_TICKS, &now.ticks.to_le_bytes());
    put(file::START_MONOTONIC, &now.monotonic_ns.to_le_bytes());
    put(file::START_REALTIME, &clock::realtime().to_le_bytes());
    put(file::PROCESS_START, &process_start().to_le_bytes());
    put(file::BOOT_ID, &boot_id());
    put(file::PID_NAMESPACE, &pid_namespace().to_le_bytes());
    let items = bytes.get_mut(file::ITEMS..).unwrap_or(&mut []);
    let length = write_items(items);
    if let Some(target) = bytes.get_mut(file::ITEMS_LENGTH..file::ITEMS_LENGTH + 4) {
        target.copy_from_slice(&(length as u32).to_le_bytes());
    }
}

fn write_items(out: &mut [u8]) -> usize {
    let mut at = 0;
    let mut item = |tag: Item, value: &[u8]| {
        let value = value.get(..value.len().min(8192)).unwrap_or(&[]);
        if let Some(target) = out.get_mut(at..at + 4 + value.len()) {
            let (head, body) = target.split_at_mut_checked(4).unwrap_or_default();
            let tag = (tag as u16).to_le_bytes();
            let length = (value.len() as u16).to_le_bytes();
            for (slot, &byte) in head.iter_mut().zip(tag.iter().chain(&length)) {
                *slot = byte;
            }
            body.copy_from_slice(value);
            at += 4 + value.len();
        }
    };
    let mut kinds = [0; 512];
    let declared = gmmtrace_format::kind::write_declaration(&mut kinds).unwrap_or(0);
    item(Item::Kinds, kinds.get(..declared).unwrap_or(&[]));
    item(Item::Recorder, concat!("gmmtrace ", env!("CARGO_PKG_VERSION")).as_bytes());
    item(Item::Executable, executable(&mut [0; 4096]));
    item(Item::Host, host(&mut [0; 256]));
    let mut text = [0; 8192];
    let count = options::read_file(c"/proc/self/cmdline", &mut text);
    item(Item::CommandLine, text.get(..count).unwrap_or(&[]));
    let count = options::read_file(c"/proc/sys/kernel/osrelease", &mut text);
    item(Item::Kernel, text.get(..count).unwrap_or(&[]).trim_ascii());
    // SAFETY: getcwd writes at most the length given, NUL included.
    if !unsafe { libc::getcwd(text.as_mut_ptr().cast(), text.len()) }.is_null() {
        item(Item::Directory, until_nul(&text));
    }
    // What the process was started with: reading `environ` would race with setenv.
    let mut environment = [0; 65536];
    let count = options::read_file(c"/proc/self/environ", &mut environment);
    for entry in environment.get(..count).unwrap_or(&[]).split(|&byte| byte == 0) {
        if is_switch(entry) {
            item(Item::Environment, entry);
        }
    }
    at
}

fn process_start() -> u64 {
    let mut text = [0; 1024];
    let count = options::read_file(c"/proc/self/stat", &mut text);
    let text = text.get(..count).unwrap_or(&[]);
    let Some(end) = text.iter().rposition(|&byte| byte == b')') else { return 0 };
    let fields = text.get(end + 1..).unwrap_or(&[]);
    // Field 22; the first after the name is field 3, behind a space.
    let field = fields.split(|&byte| byte == b' ').nth(20).unwrap_or(&[]);
    field.iter().fold(0, |value: u64, &digit| {
        value.wrapping_mul(10).wrapping_add(u64::from(digit.wrapping_sub(b'0')))
    })
}

fn boot_id() -> [u8; 16] {
    let mut text = [0; 64];
    let count = options::read_file(c"/proc/sys/kernel/random/boot_id", &mut text);
    let mut id = [0_u8; 16];
    let digits = text.get(..count).unwrap_or(&[]).iter().filter(|byte| byte.is_ascii_hexdigit());
    for (place, &digit) in digits.take(32).enumerate() {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            _ => (digit | 0x20).wrapping_sub(b'a').wrapping_add(10),
        };
        if let Some(byte) = id.get_mut(place / 2) {
            *byte = *byte << 4 | value & 15;
        }
    }
    id
}

fn pid_namespace() -> u64 {
    let mut status = core::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: stat fills the structure when it returns 0.
    unsafe {
        match libc::stat(c"/proc/self/ns/pid".as_ptr(), status.as_mut_ptr()) {
            0 => status.assume_init().st_ino,
            _ => 0,
        }
    }
}

/// The host called `exit`.
pub fn exiting() {
    if let Some(session) = current()
        && generation() == session.generation
    {
        crate::lookup::flush(session);
        session.log.header().exited(clock::before(false));
        session.log.write_back();
    }
}

/// Counts a loss or a fact in this process's log, if it has one.
#[cold]
pub fn count(counter: Counter) {
    if let Some(session) = current()
        && generation() == session.generation
    {
        session.log.header().count(counter, 1);
    }
}

impl Session {
    /// The next chunk: one of the helper's, else taken here.
    pub fn take_chunk(&self) -> Option<*mut u8> {
        self.activity.fetch_add(1, Ordering::Relaxed);
        for cell in &self.ready {
            if !cell.load(Ordering::Relaxed).is_null() {
                let chunk = cell.swap(core::ptr::null_mut(), Ordering::AcqRel);
                if !chunk.is_null() {
                    return Some(chunk);
                }
            }
        }
        self.log.take()
    }

    /// A writer for a new thread: that of a thread that ended, else a new one.
    pub fn take_writer(&self) -> Option<*mut Writer> {
        self.activity.fetch_add(1, Ordering::Relaxed);
        for cell in &self.orphans {
            if cell.load(Ordering::Relaxed) != 0 {
                let index = cell.swap(0, Ordering::AcqRel);
                if let Some(writer) = self.writer(index.wrapping_sub(1)) {
                    return Some(writer);
                }
            }
        }
        let index = self.writers_used.fetch_add(1, Ordering::AcqRel);
        let writer = self.writer(index);
        if writer.is_none() {
            self.writers_used.fetch_sub(1, Ordering::AcqRel);
        }
        writer
    }

    /// The writer with this index.
    pub fn writer(&self, index: u32) -> Option<*mut Writer> {
        self.writers.get(index as usize).map(|writer| core::ptr::from_ref(writer).cast_mut())
    }
}

// SAFETY: shared parts are atomics; a writer's plain fields belong to one thread at a time.
unsafe impl Sync for Session {}

const _: () = assert!(size_of::<record::Writer>() <= 256);
