//! A simulated CUDA: driver, runtimes, NVML and a demo program, so that gmmtrace can be tested
//! and shown on a machine without a GPU.
//!
//! Everything is C, built by `build.rs` and embedded as bytes, because what is simulated is an
//! ABI: sonames, symbol versions, entry points by name and version. [`unpack`] writes it where a
//! program can be pointed at it with `LD_LIBRARY_PATH`. `README.md` lists what is simulated and
//! the environment variables that change it.
#![forbid(unsafe_code)]

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

struct Embedded {
    name: &'static str,
    bytes: &'static [u8],
    mode: u32,
}

macro_rules! built {
    ($name:literal, $mode:literal) => {
        Embedded {
            name: $name,
            bytes: include_bytes!(concat!(env!("OUT_DIR"), "/", $name)),
            mode: $mode,
        }
    };
}

const FILES: &[Embedded] = &[
    built!("libcuda.so.1", 0o755),
    built!("libcudart.so.12", 0o755),
    built!("libcudart.so.13", 0o755),
    built!("libcudart_static.a", 0o644),
    built!("libnvidia-ml.so.1", 0o755),
    built!("gmmtrace-demo-service", 0o755),
    Embedded {
        name: "include/fake_cuda.h",
        bytes: include_bytes!("../include/fake_cuda.h"),
        mode: 0o644,
    },
    Embedded {
        name: "include/fake_cudart.h",
        bytes: include_bytes!("../include/fake_cudart.h"),
        mode: 0o644,
    },
];

/// Names for the linker and what they stand for.
const LINKS: &[(&str, &str)] = &[
    ("libcuda.so", "libcuda.so.1"),
    ("libcudart.so", "libcudart.so.13"),
    ("libnvidia-ml.so", "libnvidia-ml.so.1"),
];

/// Where [`unpack`] put things.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paths {
    /// The folder with the libraries: what `LD_LIBRARY_PATH` needs to name.
    pub libraries: PathBuf,
    /// The simulated driver, `libcuda.so.1`.
    pub driver: PathBuf,
    /// The simulated runtime of CUDA 12, with its signatures and symbol versions.
    pub runtime_12: PathBuf,
    /// The simulated runtime of CUDA 13.
    pub runtime_13: PathBuf,
    /// The archive that programs link to carry a runtime of their own.
    pub static_runtime: PathBuf,
    /// The simulated NVML.
    pub nvml: PathBuf,
    /// `fake_cuda.h` and `fake_cudart.h`.
    pub include: PathBuf,
    /// The demo program. It carries a static runtime and finds the driver by name.
    pub demo_service: PathBuf,
}

impl Paths {
    fn within(folder: &Path) -> Self {
        Self {
            libraries: folder.to_path_buf(),
            driver: folder.join("libcuda.so.1"),
            runtime_12: folder.join("libcudart.so.12"),
            runtime_13: folder.join("libcudart.so.13"),
            static_runtime: folder.join("libcudart_static.a"),
            nvml: folder.join("libnvidia-ml.so.1"),
            include: folder.join("include"),
            demo_service: folder.join("gmmtrace-demo-service"),
        }
    }
}

/// Writes the simulated CUDA into `folder`, which is created when it is not there.
///
/// Every file appears under its name by a rename, so that several processes may unpack into the
/// same folder, also while programs run from it.
///
/// # Errors
///
/// What creating, writing or renaming a file reports.
pub fn unpack(folder: &Path) -> io::Result<Paths> {
    let paths = Paths::within(folder);
    fs::create_dir_all(&paths.include)?;
    for file in FILES {
        place(&folder.join(file.name), |temporary| write(temporary, file))?;
    }
    for (name, target) in LINKS {
        place(&folder.join(name), |temporary| symlink(target, temporary))?;
    }
    Ok(paths)
}

fn write(path: &Path, file: &Embedded) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true).mode(file.mode);
    options.open(path)?.write_all(file.bytes)
}

/// Makes something under a name that nobody else uses, then gives it its own.
fn place(path: &Path, make: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let mut name = path.as_os_str().to_os_string();
    name.push(format!(".{}.{count}.tmp", process::id()));
    let temporary = PathBuf::from(name);
    let outcome = make(&temporary).and_then(|()| fs::rename(&temporary, path));
    if outcome.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    outcome
}
