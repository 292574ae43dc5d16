//! `docs/hooks.md` is made from the table of hooks, and the table is what the library exports.
//!
//! After a change of the table: `GMMTRACE_BLESS=1 cargo test -p gmmtrace-tests --test hooks`.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test")]

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gmmtrace_format::Kind;
use gmmtrace_tests::products;

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
        let behind = rest.split_once(')')?.1.trim_start();
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
        None if behind.contains("capture_") => "watched: whether a stream is being captured",
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
         beneath, and make a `runtime_call` event when there was none.\n\n",
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
    text.push_str(KNOWN);
    text
}

/// What is known to take, give or move memory and has no row.
const KNOWN: &str = "
## Known and not hooked

Calls go through untouched. The report names those that a process looked up.

| entry points | why |
| --- | --- |
| `cuMemAlloc`, `cuMemFree`, `cuMemcpyHtoD` and all others of CUDA 2.0's 32-bit ABI | programs linked since CUDA 3.2 ask for their `_v2` |
| `cuArrayCreate*`, `cuArray3DCreate*`, `cuArrayDestroy`, `cuMipmappedArray*` | no ledger of arrays yet |
| `cuGraphAddMemAllocNode`, `cuGraphAddMemFreeNode`, `cuGraphAddMemcpyNode`, `cuGraphAddMemsetNode`, `cuDeviceGraphMemTrim` | no ledger of graphs yet |
| `cuIpc*MemHandle`, `cuImportExternalMemory`, `cuExternalMemoryGetMapped*`, `cuMemImportFromShareableHandle` | no ledger of imported memory yet |
| `cuMemPoolCreate`, `cuMemPoolDestroy`, `cuMemPoolTrimTo`, pool attributes | what a pool keeps is not followed yet |
| `cuMemcpyBatchAsync*`, `cuMemcpy3DBatchAsync*`, `cuMemPrefetch*`, `cuMemAdvise*`, `cuMemDiscard*` | not yet |
| `cuMulticast*`, `cuMemMapArrayAsync` | not yet |
| `cuGetExportTable` | private tables; calls through them cannot be seen |
";

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
