//! Linker flags of the agent as it is carried.
//!
//! It is linked to nothing, so that it loads beside any C library. `initfirst` has the loader run
//! its start before that of every other library, so that their own starts are observed, too.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var_os("CARGO_FEATURE_CARRIED").is_none() {
        return;
    }
    let flags = [
        "-nostdlib",
        "-nostartfiles",
        "-Wl,-z,initfirst",
        "-Wl,-z,now",
        "-Wl,-z,relro",
        "-Wl,-z,noexecstack",
        "-Wl,--hash-style=gnu",
        "-Wl,--gc-sections",
        "-Wl,-soname,libtomo_agent.so",
    ];
    for flag in flags {
        println!("cargo:rustc-cdylib-link-arg={flag}");
    }
}
