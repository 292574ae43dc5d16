//! The simulation, held against what was measured on real hardware.
//!
//! Each check is a small C program in `checks/`, built against the unpacked files.
#![expect(clippy::expect_used, reason = "a test ends where its ground gives way")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use gmmtrace_fake_cuda::{Paths, unpack};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn paths() -> &'static Paths {
    static PATHS: OnceLock<Paths> = OnceLock::new();
    PATHS.get_or_init(|| {
        unpack(&Path::new(env!("CARGO_TARGET_TMPDIR")).join("fake-cuda")).expect("unpack")
    })
}

fn cc() -> Command {
    Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()))
}

/// Builds `checks/{source}.c` as `name`, with `link` as the last arguments.
fn build(source: &str, name: &str, link: &[&str]) -> PathBuf {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let status = cc()
        .args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function"])
        .arg("-I")
        .arg(&paths().include)
        .arg("-I")
        .arg(root().join("driver"))
        .arg(root().join("tests/checks").join(source).with_extension("c"))
        .arg("-o")
        .arg(&program)
        .arg("-L")
        .arg(&paths().libraries)
        .args(link)
        .args(["-ldl", "-lpthread"])
        .status()
        .expect("the compiler runs");
    assert!(status.success(), "{source}.c does not build");
    program
}

fn run(program: &Path, environment: &[(&str, &str)]) -> Output {
    Command::new(program)
        .env("LD_LIBRARY_PATH", &paths().libraries)
        .envs(environment.iter().copied())
        .output()
        .expect("the program runs")
}

fn passes(program: &Path, environment: &[(&str, &str)]) {
    let output = run(program, environment);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{said}", output.status);
}

#[test]
fn device_memory_comes_in_two_mebibyte_blocks_and_addresses_are_reused() {
    passes(&build("memory", "memory", &["-lcuda"]), &[]);
}

#[test]
fn pools_mappings_graphs_and_contexts_hold_memory_as_documented() {
    passes(&build("pools", "pools", &["-lcuda"]), &[]);
}

#[test]
fn every_name_and_version_leads_to_the_exported_symbol() {
    passes(&build("lookup", "lookup", &["-lcuda"]), &[]);
}

#[test]
fn calls_fail_and_wait_by_script() {
    let rules = "cuMemAlloc_v2:3=2,cuMemFree_v2:2=999,cuMemcpyDtoD_v2:*=700";
    let delay = "cuMemsetD8_v2=2000000";
    let environment = [("FAKE_CUDA_FAIL", rules), ("FAKE_CUDA_DELAY", delay)];
    passes(&build("script", "script", &["-lcuda"]), &environment);
}

#[test]
fn shared_runtimes_of_two_versions_work() {
    let newer = ["-DLINKED_DRIVER", "-l:libcudart.so.13", "-lcuda"];
    passes(&build("runtime", "runtime-13", &newer), &[]);
    let older = ["-DCUDART_MAJOR=12", "-l:libcudart.so.12"];
    passes(&build("runtime", "runtime-12", &older), &[]);
}

#[test]
fn a_program_carries_the_static_runtime_without_exporting_it() {
    let link = ["-DSTATIC_RUNTIME", "-rdynamic", "-l:libcudart_static.a"];
    let program = build("runtime", "runtime-static", &link);
    passes(&program, &[]);
    let names = Command::new("nm").arg("-D").arg(&program).output().expect("nm runs");
    let names = String::from_utf8_lossy(&names.stdout).into_owned();
    assert!(names.contains("main") && !names.contains("cudaMalloc"), "{names}");
}

#[test]
fn a_runtime_without_a_driver_answers_insufficient_driver() {
    let runtime = &paths().runtime_13;
    let alone = Path::new(env!("CARGO_TARGET_TMPDIR")).join("alone");
    std::fs::create_dir_all(&alone).expect("a folder");
    std::fs::copy(runtime, alone.join("libcudart.so.13")).expect("a copy");
    let program = build("absent", "absent", &["-l:libcudart.so.13"]);
    let output = Command::new(program).env("LD_LIBRARY_PATH", &alone).output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_fast_driver_never_gives_one_address_to_two_owners() {
    let program = build("fast", "fast", &["-lcuda"]);
    passes(&program, &[("FAKE_CUDA_FAST", "1")]);
    passes(&program, &[("FAKE_CUDA_FAST", "local")]);
}

#[test]
fn nvml_shows_what_the_driver_took() {
    passes(&build("nvml", "nvml", &["-lcuda"]), &[]);
}

#[test]
fn the_demo_service_leaks_one_buffer_for_every_request() {
    let truth = Path::new(env!("CARGO_TARGET_TMPDIR")).join("demo-truth");
    let path = truth.to_str().expect("a path");
    let output = run(&paths().demo_service, &[("FAKE_CUDA_TRUTH", path)]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        said.contains("160 answers kept (120 MiB never freed), 3 allocations refused"),
        "{said}"
    );
    let truth = std::fs::read_to_string(truth).expect("the truth");
    assert!(truth.contains("device.live_count 160\ndevice.live_bytes 125829120\n"), "{truth}");
    assert!(truth.contains("device.failed_allocs 3\n"), "{truth}");
    assert!(truth.contains("async_pool.live_count 0\n"), "{truth}");
}

#[test]
fn the_sources_are_free_of_warnings() {
    for folder in ["driver", "runtime", "nvml", "demo"] {
        for entry in std::fs::read_dir(root().join(folder)).expect("a folder") {
            let file = entry.expect("an entry").path();
            if file.extension().is_none_or(|extension| extension != "c") {
                continue;
            }
            let status = cc()
                .args(["-std=gnu11", "-O2", "-fPIC", "-Wall", "-Wextra", "-Werror", "-c"])
                .args(["-o", "/dev/null", "-I"])
                .arg(root().join("include"))
                .arg(&file)
                .status()
                .expect("the compiler runs");
            assert!(status.success(), "{}", file.display());
        }
    }
}
