//! The log file on a real filesystem. What changes the whole process (limits, descriptors) runs
//! in a child: the test binary again, asked for one test by name.
#![cfg(not(miri))]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::alloc::{Layout, alloc_zeroed};
use std::collections::HashSet;
use std::env;
use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use gmmtrace_format::definition::{Definition, Definitions};
use gmmtrace_format::header::Anchor;
use gmmtrace_format::layout::{
    self, CHUNK_HEADER, CHUNK_SIZE, CONTENT_EVENTS, Counter, State, file,
};
use gmmtrace_format::varint::Input;
use gmmtrace_format::{ChunkHeader, Codec, Event, Kind, Shapes};
use gmmtrace_ring::{Backing, Chunk, CreateError, Dictionary, LogFile, Name, Opening, PATH_SPACE};

const NOW: Anchor = Anchor { ticks: 10, monotonic_ns: 20 };
const MIB: u64 = 1 << 20;

fn create(path: &Path, limit: u64) -> Result<&'static LogFile, CreateError> {
    let mut name = Name::new();
    name.push(path.as_os_str().as_bytes());
    // SAFETY: the layout is not empty, and the memory is never freed.
    let place = unsafe { alloc_zeroed(Layout::new::<LogFile>()) }.cast::<LogFile>();
    // SAFETY: zeroed memory of the right size that is never freed.
    unsafe { LogFile::create(place, name, limit) }
}

fn path_of(log: &LogFile) -> PathBuf {
    PathBuf::from(std::ffi::OsStr::from_bytes(log.path()))
}

/// Takes a slot and marks it with a number.
fn take(log: &LogFile, number: u32) -> bool {
    let Some(address) = log.take() else { return false };
    // SAFETY: a populated slot that only this thread was given.
    let chunk = unsafe { Chunk::at(address) };
    chunk.open(&Opening {
        tid: 1,
        writer: 1,
        sequence: number,
        content: CONTENT_EVENTS,
        base: 0,
        taken: NOW,
    });
    true
}

/// Sequence numbers of the open chunks in the file, in the order of their slots.
fn sequences(path: &Path) -> Vec<u32> {
    let bytes = fs::read(path).unwrap();
    let headers = bytes.chunks(CHUNK_SIZE).skip(1).map(|slot| ChunkHeader::parse(slot).unwrap());
    headers
        .filter(|header| header.state == Some(State::Open))
        .map(|header| header.sequence)
        .collect()
}

/// Runs a test of this file again, in a process of its own. True in that process.
fn in_a_child(test: &str) -> bool {
    if env::var_os("RING_CHILD").is_some_and(|name| name == test) {
        return true;
    }
    let output = Command::new(env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env("RING_CHILD", test)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", output.status);
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"), "{test} did not run");
    false
}

fn limit_file_size(bytes: u64) {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: fills a structure of ours.
    assert_eq!(unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) }, 0);
    limit.rlim_cur = bytes;
    // SAFETY: sets a limit of this process from a structure of ours.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) }, 0);
}

#[test]
fn a_new_log_is_private_and_all_zeros_but_for_the_slots_taken() {
    let folder = tempfile::tempdir().unwrap();
    let log = create(&folder.path().join("a.gmmt"), u64::MAX).unwrap();
    let path = path_of(log);
    assert_eq!(path, folder.path().join("a.gmmt"));
    let metadata = fs::metadata(&path).unwrap();
    assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
    assert_eq!(metadata.len(), MIB);
    let mut bytes = fs::read(&path).unwrap();
    assert_eq!(bytes[layout::file::SLOTS], 1);
    bytes[layout::file::SLOTS] = 0;
    assert!(bytes.iter().all(|&byte| byte == 0));
    assert_eq!(log.backing(), Backing::Mapped);
}

#[test]
fn an_existing_file_is_left_alone_and_the_next_name_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.gmmt");
    fs::write(&path, "somebody's").unwrap();
    let names: Vec<_> = (0..12).map(|_| path_of(create(&path, u64::MAX).unwrap())).collect();
    let expected: Vec<_> = (1..=12).map(|n| folder.path().join(format!("a.gmmt.{n}"))).collect();
    assert_eq!(names, expected);
    assert_eq!(fs::read(&path).unwrap(), b"somebody's");
}

#[test]
fn a_symbolic_link_is_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let (path, target) = (folder.path().join("a.gmmt"), folder.path().join("target"));
    let (whole, other) = (folder.path().join("b.gmmt"), folder.path().join("other"));
    symlink(&target, &path).unwrap();
    fs::write(&other, "somebody's").unwrap();
    symlink(&other, &whole).unwrap();
    assert_eq!(path_of(create(&path, u64::MAX).unwrap()), folder.path().join("a.gmmt.1"));
    assert_eq!(path_of(create(&whole, u64::MAX).unwrap()), folder.path().join("b.gmmt.1"));
    assert!(!target.exists(), "a dangling link made no file");
    assert_eq!(fs::read(&other).unwrap(), b"somebody's");
}

#[test]
fn a_name_that_is_too_long_is_an_error_with_or_without_its_number() {
    let long = "x/".repeat(PATH_SPACE);
    let refused = create(Path::new(&long), u64::MAX).err();
    assert!(matches!(refused, Some(CreateError::NameTooLong)), "{refused:?}");
    let nowhere = create(Path::new("/nowhere/at/all.gmmt"), u64::MAX).err();
    assert!(matches!(nowhere, Some(CreateError::Open(libc::ENOENT))), "{nowhere:?}");
    // Just long enough that a number behind it has no room.
    let folder = tempfile::tempdir().unwrap();
    let mut name = folder.path().as_os_str().as_bytes().to_vec();
    while name.len() + 2 < PATH_SPACE - 2 {
        name.extend_from_slice(b"/.");
    }
    name.extend_from_slice(b"/a");
    name.resize(PATH_SPACE - 1, b'b');
    let path = Path::new(std::ffi::OsStr::from_bytes(&name));
    let first = create(path, u64::MAX).err();
    let second = create(path, u64::MAX).err();
    assert!(first.is_none(), "{first:?}");
    assert!(matches!(second, Some(CreateError::NameTooLong)), "{second:?}");
}

#[test]
fn slots_come_one_after_the_other_through_every_step_of_growth() {
    let folder = tempfile::tempdir().unwrap();
    let log = create(&folder.path().join("a.gmmt"), u64::MAX).unwrap();
    // Windows of 16, 32 and 64 slots, and one slot of the fourth.
    for number in 0..16 + 32 + 64 {
        assert!(take(log, number));
    }
    let expected: Vec<u32> = (0..16 + 32 + 64).collect();
    assert_eq!(sequences(&path_of(log)), expected);
    assert_eq!(fs::metadata(path_of(log)).unwrap().len(), 15 * MIB);
}

#[test]
fn slots_taken_by_many_threads_are_different_ones() {
    let folder = tempfile::tempdir().unwrap();
    let log = create(&folder.path().join("a.gmmt"), u64::MAX).unwrap();
    thread::scope(|scope| {
        for thread in 0..8 {
            scope.spawn(move || {
                for number in 0..64 {
                    assert!(take(log, thread * 64 + number));
                }
            });
        }
    });
    let found = sequences(&path_of(log));
    let distinct: HashSet<_> = found.iter().collect();
    assert_eq!((found.len(), distinct.len()), (512, 512));
}

#[test]
fn a_size_cap_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let log = create(&folder.path().join("a.gmmt"), 3 * MIB + MIB / 2).unwrap();
    let taken = (0..1000).take_while(|&number| take(log, number)).count();
    assert_eq!(taken, 3 * 16 + 8 - 1, "the header's slot counts");
    assert!(!take(log, 0), "and stays kept");
}

#[test]
fn definitions_of_many_threads_are_all_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let log = create(&folder.path().join("a.gmmt"), u64::MAX).unwrap();
    let dictionary = Dictionary::new();
    let remark = |thread: u32, number: u32| {
        let length = if number.is_multiple_of(5) { 2500 } else { number as usize % 30 };
        format!("{thread}/{number} {}", "x".repeat(length))
    };
    thread::scope(|scope| {
        for thread in 0..8 {
            let dictionary = &dictionary;
            scope.spawn(move || {
                for number in 0..1000 {
                    let text = remark(thread, number);
                    let definition = Definition::Remark { text: text.as_bytes() };
                    dictionary.define(log, NOW, &definition);
                }
            });
        }
    });
    let bytes = fs::read(path_of(log)).unwrap();
    let mut texts = HashSet::new();
    for slot in bytes.chunks(CHUNK_SIZE).skip(1) {
        for definition in Definitions::new(&slot[CHUNK_HEADER..]) {
            match definition {
                Ok(Definition::Remark { text }) => texts.insert(text.to_vec()),
                other => panic!("{other:?}"),
            };
        }
    }
    assert_eq!(texts.len(), 8000);
    assert!(texts.contains(remark(7, 999).as_bytes()));
}

#[test]
fn a_reader_sees_whole_events_while_they_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let log = create(&folder.path().join("a.gmmt"), u64::MAX).unwrap();
    let path = path_of(log);
    // SAFETY: a populated slot that only this test was given.
    let chunk = unsafe { Chunk::at(log.take().unwrap()) };
    chunk.open(&Opening {
        tid: 1,
        writer: 1,
        sequence: 0,
        content: CONTENT_EVENTS,
        base: 0,
        taken: NOW,
    });
    let event = |n: u64| Event::new(Kind::PinnedAlloc, 1, n * 9, n * 9 + 4, [n << 12, n, n, 0, 0]);
    let writer = thread::spawn({
        let shared = Shared(chunk);
        move || {
            let chunk = shared.chunk();
            let (mut codec, mut at) = (Codec::new(0), 0);
            for number in 0.. {
                // SAFETY: this thread owns the chunk; bytes behind `at` are not committed.
                let out = unsafe { chunk.payload(at) };
                let Some(length) = codec.encode(Kind::PinnedAlloc, &event(number), out) else {
                    return number;
                };
                at += length;
                chunk.commit(at);
            }
            0
        }
    });
    let read = || {
        let bytes = fs::read(&path).unwrap();
        let slot = &bytes[CHUNK_SIZE..2 * CHUNK_SIZE];
        let committed = ChunkHeader::parse(slot).unwrap().committed as usize;
        let (mut codec, mut input) =
            (Codec::new(0), Input::new(&slot[CHUNK_HEADER..CHUNK_HEADER + committed]));
        let mut count = 0;
        while let Some(found) = codec.decode(&Shapes::default(), &mut input).unwrap() {
            assert_eq!(found, event(count));
            count += 1;
        }
        assert!(input.is_empty());
        count
    };
    let mut before = 0;
    while !writer.is_finished() {
        let now = read();
        assert!(now >= before);
        before = now;
    }
    assert_eq!(read(), writer.join().unwrap());
}

/// A chunk that is handed to its only writer.
struct Shared(Chunk);

// SAFETY: one thread writes to it.
unsafe impl Send for Shared {}

impl Shared {
    fn chunk(self) -> Chunk {
        self.0
    }
}

#[test]
fn the_limit_of_file_sizes_ends_growth_without_a_signal() {
    if !in_a_child("the_limit_of_file_sizes_ends_growth_without_a_signal") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let log = create(&folder.path().join("a.gmmt"), u64::MAX).unwrap();
    // Room for the windows of 1 and 2 MiB, not for that of 4.
    limit_file_size(5 * MIB);
    let taken = (0..1000).take_while(|&number| take(log, number)).count();
    assert_eq!(taken, 47);
    assert_eq!(fs::metadata(path_of(log)).unwrap().len(), 3 * MIB);
    assert_eq!(sequences(&path_of(log)).len(), 47, "what was taken is there");
    // And when the limit is lifted, the log grows again.
    limit_file_size(libc::RLIM_INFINITY);
    assert!(take(log, 47));
    assert_eq!(sequences(&path_of(log)).len(), 48);
}

#[test]
fn under_a_limit_that_is_too_low_for_a_mapping_the_log_is_written_as_far_as_it_goes() {
    if !in_a_child(
        "under_a_limit_that_is_too_low_for_a_mapping_the_log_is_written_as_far_as_it_goes",
    ) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    limit_file_size(5 * CHUNK_SIZE as u64);
    let log = create(&folder.path().join("a.gmmt"), u64::MAX).unwrap();
    assert_eq!(log.backing(), Backing::Written);
    for number in 0..10 {
        assert_eq!(take(log, number), number < 4, "what could not be written is not handed out");
    }
    log.write_back();
    assert_eq!(fs::metadata(path_of(log)).unwrap().len(), 5 * CHUNK_SIZE as u64);
    assert_eq!(sequences(&path_of(log)), [0, 1, 2, 3]);
}

/// Every descriptor that this process has of the file.
fn descriptors_of(path: &Path) -> Vec<i32> {
    let inode = fs::metadata(path).unwrap().ino();
    let open = fs::read_dir("/proc/self/fd").unwrap().filter_map(|entry| {
        let descriptor = entry.unwrap().path();
        let same = fs::metadata(&descriptor).is_ok_and(|metadata| metadata.ino() == inode);
        same.then(|| descriptor.file_name().unwrap().to_str().unwrap().parse().unwrap())
    });
    open.collect()
}

#[test]
fn a_descriptor_that_the_host_took_over_is_neither_used_nor_closed() {
    if !in_a_child("a_descriptor_that_the_host_took_over_is_neither_used_nor_closed") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let log = create(&folder.path().join("a.gmmt"), u64::MAX).unwrap();
    let path = path_of(log);
    let &[ours] = descriptors_of(&path).as_slice() else { panic!("one descriptor") };
    // A daemon closes everything, and a file of its own gets the number.
    let foreign = folder.path().join("foreign");
    fs::write(&foreign, "theirs").unwrap();
    let name = CString::new(foreign.as_os_str().as_bytes()).unwrap();
    // SAFETY: a C string; the number is this test's to take over.
    unsafe {
        let opened = libc::open(name.as_ptr(), libc::O_RDWR);
        assert_eq!(libc::dup2(opened, ours), ours);
    }
    for number in 0..40 {
        assert!(take(log, number), "the log grows on");
    }
    assert_eq!(sequences(&path).len(), 40);
    assert_eq!(fs::read(&foreign).unwrap(), b"theirs", "nothing was written there");
    assert!(descriptors_of(&foreign).contains(&ours), "and it is still open");
    let counter = file::COUNTERS + 8 * Counter::DescriptorLost as usize;
    assert_eq!(fs::read(&path).unwrap()[counter], 1, "and it is told");
}

#[test]
fn a_log_that_was_replaced_under_its_name_is_not_written_to() {
    if !in_a_child("a_log_that_was_replaced_under_its_name_is_not_written_to") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let log = create(&folder.path().join("a.gmmt"), u64::MAX).unwrap();
    let path = path_of(log);
    for descriptor in descriptors_of(&path) {
        // SAFETY: the test plays a host that closes everything.
        unsafe { libc::close(descriptor) };
    }
    fs::rename(&path, folder.path().join("moved")).unwrap();
    fs::write(&path, "another file").unwrap();
    let taken = (0..1000).take_while(|&number| take(log, number)).count();
    assert_eq!(taken, 15, "what was mapped is used, and no more");
    assert_eq!(sequences(&folder.path().join("moved")).len(), 15);
    assert_eq!(fs::read(&path).unwrap(), b"another file");
}

#[test]
fn a_log_without_room_is_an_answer_and_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let tiny = create(&folder.path().join("a.gmmt"), CHUNK_SIZE as u64).unwrap();
    assert!(!take(tiny, 0), "one slot is the header's");
    let none = create(&folder.path().join("b.gmmt"), 100).err();
    assert!(matches!(none, Some(CreateError::Room(_))), "{none:?}");
    assert!(!folder.path().join("b.gmmt").exists(), "a file without a header is removed");
}
