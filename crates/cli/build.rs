//! How `tomo` is linked: it starts beside each program that it observes, so what its loader does not have to do counts.
//!
//! - **Packed relative relocations** (`DT_RELR`), where the C library's loader knows them. The command has 25,000
//!   addresses that the loader adjusts when it starts. Listed one by one they take 600 kB, which are
//!   read from the file each time; packed they take 7 kB, and what `tomo cover` adds to a short program is a seventh
//!   less. A loader that does not know them would leave the addresses as they are, so the library is asked first.
//! - **The unwinder in the file**, where the compiler has it so. As a library (`libgcc_s`) it is one more to find and
//!   to map, it asks the processor what it can do, which takes long in virtual machines, and small containers do
//!   not have it; what `tomo cover` adds to a short program is a twelfth less without it.

use std::path::PathBuf;
use std::process::Command;

/// The version that glibc's loader has from 2.36 on, which is the first that reads them.
const KNOWN: &[u8] = b"GLIBC_ABI_DT_RELR";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let library = file_of_compiler("libc.so.6").and_then(|path| std::fs::read(path).ok());
    if library.is_some_and(|bytes| bytes.windows(KNOWN.len()).any(|part| part == KNOWN)) {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
    if let Some(folder) =
        file_of_compiler("libgcc_eh.a").and_then(|path| Some(path.parent()?.to_owned()))
    {
        println!("cargo::rustc-link-search=native={}", folder.display());
        println!("cargo::rustc-link-lib=static:-bundle=gcc_eh");
    }
}

/// The file of this name for which programs are linked here, where the compiler knows one.
fn file_of_compiler(name: &str) -> Option<PathBuf> {
    let mut compiler = Command::new("cc");
    let output = compiler
        .arg(format!("-print-file-name={name}"))
        .output()
        .ok()?;
    let path = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim_end());
    path.is_absolute().then_some(path)
}
