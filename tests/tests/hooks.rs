//! `docs/hooks.md` is made from the table of hooks, and the table is what the library exports.
//!
//! After a change of the table: `GMMTRACE_BLESS=1 cargo test -p gmmtrace-tests --test hooks`.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gmmtrace_format::Kind;
use gmmtrace_tests::{Run, products};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Symbol and what stands behind its arguments, of every row in a file of rows.
fn rows(file: &str) -> Vec<(String, String)> {
    let text = fs::read_to_string(root().join("interposer/src/hooks").join(file)).unwrap();
    let (_, table) = text.split_once("\nrows! {").expect("a table of rows");
    let row = |line: &str| {
        let line = line.strip_prefix("    ")?;
        let (name, rest) = line.split_once('(').filter(|(name, _)| name.starts_with("cu"))?;
        let mut behind = rest.split_once(')')?.1.trim_start();
        if let Some(registers) = behind.strip_prefix("@ (") {
            behind = registers.split_once(')')?.1.trim_start();
        }
        Some((name.to_owned(), behind.to_owned()))
    };
    table.lines().filter_map(row).collect()
}

/// What a driver row does, from the word behind its arguments.
fn effect(behind: &str) -> &'static str {
    let word = behind.split([',', ' ']).next().unwrap_or("");
    let kind = Kind::ALL.iter().find(|kind| format!("{kind:?}") == word);
    match kind {
        Some(kind) => kind.name(),
        None if behind.contains("graph_node") => "graph_alloc, graph_free",
        None if behind.contains("capture::") => "watched: which streams are being captured",
        None => "watched: the thread's context",
    }
}

/// Symbols of PyTorch's reporters, and the kinds of their events.
fn reporters() -> Vec<(String, &'static str)> {
    let text = fs::read_to_string(root().join("interposer/src/hooks/torch.rs")).unwrap();
    let row = |line: &str| {
        let (name, rest) = line.trim().split_once(' ').filter(|(name, _)| is_reporter(name))?;
        let kinds = if rest.ends_with("usage;") { "torch_alloc, torch_free" } else { "torch_oom" };
        Some((name.to_owned(), kinds))
    };
    text.lines().filter_map(row).collect()
}

fn is_reporter(name: &str) -> bool {
    name.starts_with("_ZN3c10")
}

fn document() -> String {
    let mut text = String::from(
        "# Hooks\n\nMade from the tables in `interposer/src/hooks/` by `tests/tests/hooks.rs`; not \
         to be edited.\n\n## Driver\n\nEach makes the event named; `docs/trace-format.md` says \
         what is in it.\n\n| entry point | event |\n| --- | --- |\n",
    );
    for (name, behind) in rows("driver.rs") {
        writeln!(text, "| `{name}` | {} |", effect(&behind)).unwrap();
    }
    text.push_str(
        "\n## Runtime\n\nLabels: they name the call and its library on the driver events \
         beneath, and those that may take or give memory \
         themselves make a `runtime_call` event when there was none.\n\n",
    );
    for (name, _) in rows("runtime.rs") {
        writeln!(text, "- `{name}`").unwrap();
    }
    text.push_str(
        "\n## PyTorch\n\nReporters of its caching allocator, called with each block. What is on \
         a CUDA device makes the event named, and every call is passed on.\n\n| symbol | event \
         |\n| --- | --- |\n",
    );
    for (name, kinds) in reporters() {
        writeln!(text, "| `{name}` | {kinds} |").unwrap();
    }
    text.push_str(
        "\n## Lookups\n\n- `dlsym`, `dlvsym`\n- `cuGetProcAddress`, `cuGetProcAddress_v2`\n",
    );
    text.push_str(
        "\n## Known and not hooked\n\nCalls go through untouched. The report names those that a \
         process looked up.\n\n| entry points | why |\n| --- | --- |\n",
    );
    for (patterns, why) in KNOWN {
        let patterns: Vec<String> =
            patterns.split(' ').map(|pattern| format!("`{pattern}`")).collect();
        writeln!(text, "| {} | {why} |", patterns.join(", ")).unwrap();
    }
    text
}

/// What is known and has no row, and why. A star stands for any text.
const KNOWN: &[(&str, &str)] = &[
    // Arrays, mapping, sharing.
    (
        "cu*Array*GetDescriptor* cu*ArrayGet*Requirements cu*ArrayGetSparseProperties \
         cudaArrayGetInfo cuMemGetAccess cuMemGetAddressRange* cuMemGetAllocation* \
         cuMemGetAttribute* cu*MemPoolGetAccess cu*MemRangeGetAttribute* cuMemHostGetFlags \
         cuDeviceTotalMem* cuMulticastGetGranularity",
        "asks, and changes nothing",
    ),
    (
        "cu*ArrayGetPlane cuMipmappedArrayGetLevel cudaGetMipmappedArrayLevel \
         cuMemHostGetDevicePointer*",
        "another name for memory that is counted",
    ),
    ("cu*MemPoolSetAccess", "access rights of a pool, without memory"),
    (
        "cuMemExportToShareableHandle cu*MemPoolExport* cu*IpcGetMemHandle \
         cuMemGetHandleForAddressRange",
        "gives a name to another process; the memory stays where it is counted",
    ),
    (
        "cuMemMapArrayAsync*",
        "maps memory of `cuMemCreate`, which is counted, into sparse arrays; that such a mapping \
         keeps released memory is not followed",
    ),
    (
        "cuMulticastAddDevice cuMulticastBind* cuMulticastUnbind",
        "a multicast object owns no memory, whatever is bound to it",
    ),
    (
        "cu*GraphicsMapResources* cu*Graphics*GetMapped* cu*GraphicsResourceSetMapFlags* \
         cu*GLMapBufferObject* cu*GLSetBufferObjectMapFlags",
        "memory of a graphics library, lent while it is mapped",
    ),
    // Residency and what is not memory at all.
    (
        "cu*MemDiscardBatchAsync* cu*StreamAttachMemAsync*",
        "says what becomes of contents or who may look at them; no memory is taken or given",
    ),
    ("cuMemBatchDecompressAsync*", "computes from memory to memory"),
    ("cuStreamBatchMemOp*", "waits for, or writes, single words"),
    ("cu*IpcGetEventHandle cu*IpcOpenEventHandle cu*ImportExternalSemaphore", "no memory"),
    (
        "cu*SharedMemConfig cu*OccupancyAvailableDynamicSMemPerBlock cuTensorMap* \
         cuSurfRef*Array cuTexRef*Array cu*LogsDumpToMemory cudbg*",
        "only sounds like device memory",
    ),
    ("cuCtxAttach cuCtxDetach", "counts uses of a context; withdrawn since CUDA 4"),
    ("cu*GetExportTable", "private tables; calls through them cannot be seen"),
    // Graphs.
    (
        "cu*GraphAddMemcpyNode* cu*GraphAddMemsetNode cu*Graph*emcpyNode*Params* \
         cu*Graph*emsetNode*Params cuGraph*BatchMemOpNode*",
        "what launches of graphs copy is not counted",
    ),
    ("cu*GraphMemAllocNodeGetParams cu*GraphMemFreeNodeGetParams", "asks, and changes nothing"),
    ("cu*DeviceSetGraphMemAttribute", "sets back what the driver counts"),
];

/// Words in the names of exports that may take, give, move or lend memory.
const WORDS: [&str; 11] = [
    "Mem", "Alloc", "Free", "Map", "Array", "Pool", "Ipc", "Prefetch", "Advise", "Import", "Export",
];

/// Whether `name` is `pattern`, whose stars stand for any text.
fn fits(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((head, rest)) => name.strip_prefix(head).is_some_and(|name| {
            name.char_indices().any(|(at, _)| fits(rest, &name[at..])) || fits(rest, "")
        }),
    }
}

/// Names of one of the lists of what NVIDIA's libraries export.
fn exports(file: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("exports").join(file);
    fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn every_export_that_may_concern_memory_is_hooked_or_known_with_a_reason() {
    let rows: Vec<String> =
        rows("driver.rs").into_iter().chain(rows("runtime.rs")).map(|(name, _)| name).collect();
    let all = ["libcuda-580.txt", "libcudart-13.0.txt"].map(exports).concat();
    let left: Vec<&String> = all.iter().filter(|name| !rows.contains(name)).collect();
    let patterns: Vec<&str> = KNOWN.iter().flat_map(|(names, _)| names.split(' ')).collect();
    let known = |name: &str| patterns.iter().any(|pattern| fits(pattern, name));
    let concerns = |name: &str| WORDS.iter().any(|word| name.contains(word));
    let unknown: Vec<_> = left.iter().filter(|name| concerns(name) && !known(name)).collect();
    assert!(unknown.is_empty(), "neither hooked nor known: {unknown:?}");
    let idle = |pattern: &&&str| !left.iter().any(|name| fits(pattern, name));
    let stale: Vec<_> = patterns.iter().filter(idle).collect();
    assert!(stale.is_empty(), "known as not hooked, but hooked or no export: {stale:?}");
}

#[test]
fn the_document_lists_the_table() {
    let path = root().join("docs/hooks.md");
    if std::env::var_os("GMMTRACE_BLESS").is_some() {
        fs::write(&path, document()).unwrap();
    }
    assert!(fs::read_to_string(&path).unwrap() == document(), "docs/hooks.md is not up to date");
}

#[test]
fn the_library_exports_a_function_for_every_row_and_no_other() {
    let output =
        Command::new("nm").args(["-D", "--defined-only"]).arg(&products().library).output();
    let symbols = String::from_utf8(output.unwrap().stdout).unwrap();
    let exported = symbols.lines().filter_map(|line| line.split_whitespace().last());
    let mut names: BTreeMap<String, i32> = BTreeMap::new();
    for name in exported.filter(|name| name.starts_with("cu") || is_reporter(name)) {
        *names.entry(name.to_owned()).or_default() += 1;
    }
    let lookups = ["cuGetProcAddress", "cuGetProcAddress_v2"].map(str::to_owned);
    let table = rows("driver.rs").into_iter().chain(rows("runtime.rs")).map(|(name, _)| name);
    let reporters = reporters().into_iter().map(|(name, _)| name);
    for name in table.chain(lookups).chain(reporters) {
        *names.entry(name).or_default() -= 1;
    }
    names.retain(|_, count| *count != 0);
    assert!(names.is_empty(), "exported (1) or in the table (-1) alone: {names:?}");
}

/// `base version flags symbol` of every entry point of the simulated driver.
fn entry_points() -> Vec<[String; 4]> {
    let text = fs::read_to_string(root().join("tests/fake-cuda/driver/table.inc")).unwrap();
    let rows = text.lines().filter_map(|line| line.strip_prefix("ROW(")?.strip_suffix(')'));
    let row = |row: &str| {
        let [base, version, stream, symbol] = row.split(", ").collect::<Vec<&str>>()[..] else {
            panic!("{row}")
        };
        let flags = if stream == "THREAD" { "2" } else { "0" };
        [base, version, flags, symbol].map(str::to_owned)
    };
    rows.map(row).collect()
}

#[test]
fn every_row_is_reached_by_its_symbol_and_by_name_version_and_stream() {
    let run = Run::traced("which");
    let list = run.folder().join("rows");
    let rows_of = |row: &[String; 4]| row.join(" ") + "\n";
    fs::write(&list, entry_points().iter().map(rows_of).collect::<String>()).unwrap();
    let outcome = run.argument(&list).finish();
    assert_eq!(outcome.code(), 0, "{}", outcome.stderr);
    let lookups = ["cuGetProcAddress", "cuGetProcAddress_v2"].map(str::to_owned);
    let hooked: Vec<String> =
        rows("driver.rs").into_iter().map(|(name, _)| name).chain(lookups).collect();
    let wrong = outcome.keys("");
    let wrong = wrong.iter().filter(|(name, way)| (**way == 1) != hooked.contains(name));
    let wrong: Vec<_> = wrong.collect();
    assert!(wrong.is_empty(), "hooked (1) or passed over (0) against the table: {wrong:?}");
    let simulated: Vec<String> = entry_points().into_iter().map(|[.., symbol]| symbol).collect();
    let untested: Vec<_> = hooked.iter().filter(|name| !simulated.contains(name)).collect();
    assert!(untested.is_empty(), "not in the simulation: {untested:?}");
}
