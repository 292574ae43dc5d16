//! What is tested and what it is tested on, built once for all test binaries.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::Value;

/// The products as built.
#[derive(Debug)]
pub struct Products {
    /// The binary.
    pub gmmtrace: PathBuf,
    /// The library that is preloaded.
    pub library: PathBuf,
}

/// A line of `build.list`.
#[derive(Debug, Clone)]
pub struct Recipe {
    /// Its name in the output folder.
    pub name: String,
    /// Its first source.
    pub source: PathBuf,
}

/// The products, built in release mode into a target folder of their own.
///
/// # Panics
/// When they cannot be built.
pub fn products() -> &'static Products {
    static PRODUCTS: OnceLock<Products> = OnceLock::new();
    PRODUCTS.get_or_init(build_products)
}

/// The folder with the test programs, built.
///
/// # Panics
/// When they cannot be built.
pub fn programs() -> &'static Path {
    static PROGRAMS: OnceLock<PathBuf> = OnceLock::new();
    PROGRAMS.get_or_init(build_programs)
}

/// The folder with the simulated CUDA, unpacked.
///
/// # Panics
/// When it cannot be written.
pub fn fake_cuda() -> &'static Path {
    static FAKE: OnceLock<PathBuf> = OnceLock::new();
    FAKE.get_or_init(|| {
        let folder = place("fake-cuda");
        gmmtrace_fake_cuda::unpack(&folder).expect("the simulated CUDA can be written").libraries
    })
}

/// The folder with the sources of the test programs.
#[must_use]
pub fn programs_source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("programs")
}

/// The programs of `build.list`, without the libraries.
///
/// # Panics
/// When the list cannot be read.
#[must_use]
pub fn known_programs() -> Vec<Recipe> {
    let list = fs::read_to_string(programs_source().join("build.list")).expect("build.list");
    let recipe = |line: &str| {
        let mut words = line.split_whitespace();
        let (kind, name, sources) = (words.next()?, words.next()?, words.next()?);
        let source = programs_source().join(sources.split(',').next()?);
        (kind == "program").then(|| Recipe { name: name.to_owned(), source })
    };
    list.lines().filter_map(recipe).collect()
}

/// A tool of binutils, ready to be given arguments.
#[must_use]
pub fn binutils(name: &str) -> Command {
    let mut command = Command::new(name);
    command.env("LC_ALL", "C");
    command
}

/// A folder below the target folder that this test binary was built in.
fn place(name: &str) -> PathBuf {
    let binary = std::env::current_exe().expect("a test binary knows its path");
    // target/PROFILE/deps/BINARY
    let target = binary.ancestors().nth(3).expect("a test binary stands in a target folder");
    let folder = target.join("end-to-end").join(name);
    fs::create_dir_all(&folder).expect("a folder in the target folder can be made");
    folder
}

fn build_products() -> Products {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.toml");
    // Cargo locks the folder by itself.
    let output = Command::new(cargo)
        .args(["build", "--release", "--locked", "--message-format=json"])
        .args(["-p", "gmmtrace", "-p", "gmmtrace-interposer", "--manifest-path"])
        .arg(manifest)
        .arg("--target-dir")
        .arg(place("products"))
        .stderr(Stdio::inherit())
        .output()
        .expect("cargo can be started");
    assert!(output.status.success(), "the products cannot be built");
    let messages = String::from_utf8(output.stdout).expect("cargo's messages are text");
    let files: Vec<PathBuf> = messages.lines().flat_map(artifacts).collect();
    let find = |name: &str| {
        let found = files.iter().find(|path| path.file_name().is_some_and(|file| file == name));
        found.unwrap_or_else(|| panic!("cargo built no {name}: {files:?}")).clone()
    };
    Products { gmmtrace: find("gmmtrace"), library: find("libgmmtrace.so") }
}

fn artifacts(message: &str) -> Vec<PathBuf> {
    let message: Value = serde_json::from_str(message).expect("a message is JSON");
    if message["reason"] != "compiler-artifact" {
        return Vec::new();
    }
    let names = message["filenames"].as_array().into_iter().flatten();
    names.filter_map(|name| name.as_str().map(PathBuf::from)).collect()
}

/// Builds anew when a source or the simulated CUDA is another than last time.
fn build_programs() -> PathBuf {
    let fake = fake_cuda();
    let folder = place("programs");
    let guard = File::create(place("locks").join("programs")).expect("a lock file can be made");
    guard.lock().expect("a file can be locked");
    let stamp = folder.join("stamp");
    let now = fingerprint(&[&programs_source(), fake, &fake.join("include")]);
    if fs::read_to_string(&stamp).is_ok_and(|then| then == now) {
        return folder;
    }
    let built = Command::new("sh")
        .arg(programs_source().join("build.sh"))
        .args([&folder, fake])
        .status()
        .expect("sh can be started");
    assert!(built.success(), "the test programs cannot be built");
    fs::write(stamp, now).expect("the stamp can be written");
    folder
}

/// Of the files in these folders.
fn fingerprint(folders: &[&Path]) -> String {
    let mut hasher = DefaultHasher::new();
    for folder in folders {
        let entries = fs::read_dir(folder).expect("the folder can be read");
        let mut paths: Vec<PathBuf> =
            entries.map(|entry| entry.expect("an entry").path()).collect();
        paths.sort();
        for path in paths.iter().filter(|path| path.is_file()) {
            path.file_name().hash(&mut hasher);
            fs::read(path).expect("a file can be read").hash(&mut hasher);
        }
    }
    format!("{:016x}", hasher.finish())
}
