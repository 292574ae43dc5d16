//! Link flags of `libgmmtrace.so`.

fn main() {
    // Never unloaded: hooks stay in other objects' tables for as long as the process lives.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,relro,-z,now");
    println!("cargo:rerun-if-changed=build.rs");
}
