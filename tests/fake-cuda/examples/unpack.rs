//! Writes the simulated CUDA into a folder: `cargo run -p gmmtrace-fake-cuda --example unpack DIR`.
#![forbid(unsafe_code)]

fn main() -> std::io::Result<()> {
    let folder = std::env::args_os().nth(1).unwrap_or_else(|| "fake-cuda".into());
    gmmtrace_fake_cuda::unpack(folder.as_ref()).map(drop)
}
