//! The library as a file: what it needs, what it shows, and that no way leads into a panic.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]
#![allow(clippy::print_stdout, reason = "what was not run, and figures")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use gmmtrace_tests::{binutils, products};

/// What a tool of binutils says about the library.
fn about(tool: &str, arguments: &[&str]) -> String {
    let output = binutils(tool).args(arguments).arg(&products().library).output();
    let output = output.unwrap_or_else(|error| panic!("{tool}: {error}"));
    assert!(output.status.success(), "{tool}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Names that the library exports.
fn exported() -> BTreeSet<String> {
    let symbols = about("nm", &["-D", "--defined-only"]);
    symbols.lines().map(|line| line.split_whitespace().nth(2).unwrap().to_owned()).collect()
}

#[test]
fn it_needs_nothing_but_the_c_library() {
    let dynamic = about("readelf", &["-dW"]);
    let needed: BTreeSet<&str> = dynamic
        .lines()
        .filter(|line| line.contains("(NEEDED)"))
        .map(|line| line.split(['[', ']']).nth(1).unwrap())
        .collect();
    println!("needed: {needed:?}");
    let allowed = BTreeSet::from(["libc.so.6", "ld-linux-x86-64.so.2", "libgcc_s.so.1"]);
    assert!(needed.is_subset(&allowed), "{needed:?}");
}

#[test]
fn it_is_never_unloaded() {
    let dynamic = about("readelf", &["-dW"]);
    assert!(dynamic.lines().any(|line| line.contains("FLAGS_1") && line.contains("NODELETE")));
}

/// Names in the sources' tables: rows of the hook files, and what else is exported by hand.
fn hook_names() -> BTreeSet<String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../interposer/src");
    let read = |name: &str| fs::read_to_string(source.join(name)).unwrap();
    let is_name = |name: &str| {
        name.starts_with("cu") && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let mut names = BTreeSet::new();
    for file in ["hooks/driver.rs", "hooks/runtime.rs", "lookup.rs"] {
        let text = read(file);
        // A row begins with its symbol and a parenthesis: `cuMemAlloc_v2(…`.
        let words = text.lines().filter_map(|line| line.trim_start().split_once('('));
        names.extend(words.map(|(word, _)| word.trim().to_owned()).filter(|word| is_name(word)));
    }
    names
}

/// What is exported besides hooks.
const OTHERS: [&str; 4] = ["dlclose", "dlsym", "dlvsym", "gmmtrace_mark"];

#[test]
fn it_exports_exactly_the_hooks() {
    let (exported, hooks) = (exported(), hook_names());
    let unknown: Vec<&String> = exported
        .iter()
        .filter(|name| !hooks.contains(*name) && !OTHERS.contains(&name.as_str()))
        .collect();
    println!("{} exported, {} hooks", exported.len(), hooks.len());
    assert!(unknown.iter().all(|name| is_other_api(name)), "exported, but no hook: {unknown:?}");
    for other in OTHERS {
        assert!(exported.contains(other), "{other}");
    }
    let hidden: Vec<&String> = hooks.difference(&exported).collect();
    assert!(hidden.is_empty(), "hooks that are not exported: {hidden:?}");
}

/// NVTX's injection, the resolvers and PyTorch's reports are exported by hand.
fn is_other_api(name: &str) -> bool {
    name == "InitializeInjectionNvtx2"
        || name.starts_with("cuGetProcAddress")
        || name.starts_with("_ZN3c10")
}

#[test]
fn its_names_have_no_versions() {
    let symbols = about("readelf", &["-W", "--dyn-syms"]);
    for line in symbols.lines().filter(|line| !line.contains(" UND ")) {
        assert!(!line.contains('@'), "{line}");
    }
    assert!(!about("readelf", &["-dW"]).contains("VERDEF"));
}

/// Functions of the library, with those that each may come to.
struct Calls {
    names: Vec<String>,
    starts: Vec<u64>,
    /// What each refers to: calls, jumps, and addresses that it takes.
    to: BTreeMap<u64, BTreeSet<u64>>,
}

impl Calls {
    /// From the disassembly. Every address of code that a function mentions counts as a call of
    /// it, so that functions handed on as pointers are followed, too; and so does what stands at
    /// an address of data that it mentions, as in the table of global offsets.
    fn read() -> Self {
        let pointers = pointers();
        let text = about("objdump", &["-d", "-w", "--no-show-raw-insn", "-M", "intel"]);
        let (mut names, mut starts) = (Vec::new(), Vec::new());
        for line in text.lines() {
            if let Some((start, name)) = heading(line) {
                starts.push(start);
                names.push(name.to_owned());
            }
        }
        let mut calls = Self { names, starts, to: BTreeMap::new() };
        let mut from = 0;
        for line in text.lines() {
            if let Some((start, _)) = heading(line) {
                from = start;
                continue;
            }
            for mentioned in addresses(line) {
                let address = pointers.get(&mentioned).copied().unwrap_or(mentioned);
                if let Some(to) = calls.function_at(address).filter(|to| *to != from) {
                    calls.to.entry(from).or_default().insert(to);
                }
            }
        }
        calls
    }

    /// Start of the function that this address is in.
    fn function_at(&self, address: u64) -> Option<u64> {
        let after = self.starts.partition_point(|start| *start <= address);
        let start = *self.starts.get(after.checked_sub(1)?)?;
        // Behind the last function, or in data before the first.
        (after < self.starts.len() || address < start + 0x4000).then_some(start)
    }

    fn name(&self, start: u64) -> &str {
        self.starts.binary_search(&start).map_or("?", |index| &self.names[index])
    }

    fn start_is_known(&self, start: u64) -> bool {
        self.starts.binary_search(&start).is_ok()
    }

    fn start(&self, name: &str) -> Option<u64> {
        self.names.iter().position(|known| known == name).map(|index| self.starts[index])
    }

    /// Everything that can be reached, and from where. What lies behind a panic is not followed.
    fn reach(&self, roots: impl IntoIterator<Item = u64>) -> BTreeMap<u64, u64> {
        let mut from: BTreeMap<u64, u64> = BTreeMap::new();
        let mut open: Vec<(u64, u64)> = roots.into_iter().map(|root| (root, root)).collect();
        while let Some((function, parent)) = open.pop() {
            if from.contains_key(&function) {
                continue;
            }
            from.insert(function, parent);
            if is_panic(self.name(function)) {
                continue;
            }
            open.extend(self.to.get(&function).into_iter().flatten().map(|to| (*to, function)));
        }
        from
    }

    /// The way to a function, as names.
    fn way(&self, from: &BTreeMap<u64, u64>, mut function: u64) -> Vec<&str> {
        let mut way = vec![self.name(function)];
        while from[&function] != function {
            function = from[&function];
            way.push(self.name(function));
        }
        way.reverse();
        way
    }
}

/// `0000000000022510 <name>:`
fn heading(line: &str) -> Option<(u64, &str)> {
    let (start, name) = line.strip_suffix(">:")?.split_once(" <")?;
    Some((u64::from_str_radix(start, 16).ok()?, name))
}

/// Addresses that an instruction names: a target (`call 25290 <…>`) or what objdump computed of
/// an offset to the instruction pointer (`# 36ea4 <…>`).
fn addresses(line: &str) -> impl Iterator<Item = u64> {
    let instruction = line.split_once('\t').map_or("", |(_, rest)| rest);
    let before = instruction.split(" <").zip(instruction.split(" <").skip(1));
    before.filter_map(|(before, _)| {
        let word = before.rsplit([' ', '\t']).next()?;
        u64::from_str_radix(word, 16).ok()
    })
}

/// Pointers in data by where they stand, from the relocations: tables of the hooks and of the
/// standard library alike.
fn pointers() -> BTreeMap<u64, u64> {
    let relocations = about("readelf", &["-rW"]);
    let relative = relocations.lines().filter(|line| line.contains("R_X86_64_RELATIVE"));
    let number = |word: &str| u64::from_str_radix(word, 16).ok();
    relative
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            Some((number(words.next()?)?, number(words.next_back()?)?))
        })
        .collect()
}

fn is_panic(name: &str) -> bool {
    let panics = ["9panicking", "core::panicking", "std::panicking", "rust_begin_unwind"];
    let fails = ["unwrap_failed", "expect_failed", "handle_alloc_error", "capacity_overflow"];
    panics.iter().chain(&fails).any(|part| name.contains(part))
}

#[test]
fn no_exported_function_can_come_to_a_panic() {
    let calls = Calls::read();
    let mut roots: BTreeSet<u64> =
        exported().iter().map(|name| calls.start(name).expect("an export has code")).collect();
    // The hooks' stubs are handed out from tables, too: those are in our own crates.
    let ours = |start: &u64| {
        let name = calls.name(*start);
        name.contains("8gmmtrace") || name.contains("gmmtrace_")
    };
    let own: BTreeSet<u64> = pointers()
        .into_values()
        .filter(|start| calls.start_is_known(*start))
        .filter(ours)
        .collect();
    roots.extend(&own);
    let reached = calls.reach(roots.iter().copied());
    println!(
        "{} functions, {} exported or in tables of ours, {} reached",
        calls.starts.len(),
        roots.len(),
        reached.len()
    );
    assert!(reached.len() > roots.len(), "the disassembly was understood");
    let panics: Vec<Vec<&str>> = reached
        .keys()
        .filter(|start| is_panic(calls.name(**start)))
        .map(|start| calls.way(&reached, *start))
        .collect();
    assert!(panics.is_empty(), "{panics:#?}");
}

/// That the search would find one: the library's copy of the standard library has panics, and
/// they are called from somewhere.
#[test]
fn the_search_for_panics_finds_those_of_the_standard_library() {
    let calls = Calls::read();
    let all: BTreeSet<u64> = calls.starts.iter().copied().collect();
    let callers = all.iter().filter(|start| {
        let to = calls.to.get(start).into_iter().flatten();
        !is_panic(calls.name(**start)) && to.into_iter().any(|to| is_panic(calls.name(*to)))
    });
    assert!(callers.count() > 0);
}
