//! Link flags of `libgmmtrace.so`.

fn main() {
    // Never unloaded: hooks stay in other objects' tables for as long as the process lives.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,relro,-z,now");
    // What the table calls a stub is ours, also where another preload exports the same name.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-Bsymbolic");
    println!("cargo:rerun-if-changed=build.rs");
}
