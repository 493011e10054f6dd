//! Has `tomo` linked with packed relative relocations (`DT_RELR`), where the C library's loader knows them.
//!
//! The command has 25,000 addresses that the loader adjusts when it starts. Listed one by one they take 600 kB, which are
//! read from the file each time; packed they take 7 kB, and what `tomo cover` adds to a short program is a seventh
//! less. A loader that does not know them would leave the addresses as they are, so the library is asked first.

use std::path::PathBuf;
use std::process::Command;

/// The version that glibc's loader has from 2.36 on, which is the first that reads them.
const KNOWN: &[u8] = b"GLIBC_ABI_DT_RELR";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if library().is_some_and(|bytes| bytes.windows(KNOWN.len()).any(|part| part == KNOWN)) {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// The C library for which programs are linked here.
fn library() -> Option<Vec<u8>> {
    let mut compiler = Command::new("cc");
    let output = compiler.arg("-print-file-name=libc.so.6").output().ok()?;
    let path = String::from_utf8(output.stdout).ok()?;
    std::fs::read(PathBuf::from(path.trim_end())).ok()
}
