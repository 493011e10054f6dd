//! What programs name to their loader, held against what readelf reads.

use std::fs::File;
use std::io::Write as _;
use std::process::Command;

use tomo_program::Needed;

/// Names and whether there is a search path, by readelf.
fn by_readelf(path: &str) -> (Vec<Vec<u8>>, bool) {
    let output = Command::new("readelf").args(["-dW", path]).output();
    let text = String::from_utf8(output.expect("readelf").stdout).expect("text");
    let named = |line: &str| {
        let rest = line.split_once("(NEEDED)")?.1.split_once('[')?.1;
        Some(rest.split_once(']')?.0.as_bytes().to_vec())
    };
    let searches = text.contains("(RUNPATH)") || text.contains("(RPATH)");
    (text.lines().filter_map(named).collect(), searches)
}

#[test]
fn names_are_those_that_readelf_reads() {
    let this = std::env::current_exe().expect("this test");
    let gcc = Command::new("gcc").arg("-print-prog-name=cc1").output();
    let compiler = String::from_utf8(gcc.expect("gcc").stdout).expect("text");
    for path in ["/bin/bash", compiler.trim(), &this.to_string_lossy()] {
        let needed = Needed::of(&File::open(path).expect("a program")).expect(path);
        assert!(!needed.names.is_empty(), "{path}");
        assert_eq!((needed.names, needed.searches), by_readelf(path), "{path}");
    }
}

#[test]
fn search_paths_are_noticed() {
    let folder = tempfile::tempdir().expect("a folder");
    let (source, program) = (folder.path().join("a.c"), folder.path().join("a"));
    std::fs::write(&source, "int main(void) { return 0; }").expect("written");
    for (flag, searches) in [("-Wl,-rpath,$ORIGIN/lib", true), ("-O1", false)] {
        let mut gcc = Command::new("gcc");
        gcc.arg(flag).arg("-o").arg(&program).arg(&source);
        assert!(gcc.status().expect("gcc").success());
        let needed = Needed::of(&File::open(&program).expect("built")).expect("dynamic");
        assert_eq!(needed.names, [b"libc.so.6".to_vec()]);
        assert_eq!(needed.searches, searches, "{flag}");
    }
}

#[test]
fn what_is_cut_or_no_program_is_nothing() {
    let whole = std::fs::read("/bin/bash").expect("bash");
    for length in (0..4096).chain((4096..whole.len()).step_by(65_521)) {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(&whole[..length]).expect("written");
        let found = Needed::of(&file);
        assert!(length > 4096 || found.is_none(), "{length}");
    }
}
