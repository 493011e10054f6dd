//! What cannot be mapped: one line on standard error, exit code 2, nothing else.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use crate::bench::Bench;
use crate::sample;

const SOURCE: &str =
    "int twice(int n) { return n * 2; } int main(int n, char **v) { return n > 1 ? twice(n) : 0; }";

/// What `tomo map` says of the file with these bytes.
fn refusal(bytes: &[u8]) -> String {
    let bench = Bench::new();
    bench.write("program", bytes);
    let said = bench.tomo(&["map", "./program"]).refusal();
    assert!(bench.cache_is_untouched());
    let (path, what) = said
        .trim_start_matches("tomo: ")
        .split_once(": ")
        .expect("a path, then what is wrong");
    assert_eq!(path, "./program");
    what.to_owned()
}

#[test]
fn files_that_are_no_programs() {
    assert_eq!(refusal(b""), "is empty");
    assert_eq!(
        refusal(b"#!/bin/sh\nexec true\n"),
        "is a script run by /bin/sh; map that instead"
    );
    assert!(refusal(b"hello").contains("not an ELF file"));
    assert!(refusal(&[0; 5000]).contains("not an ELF file"));
    assert!(!refusal(b"\x7fELF").is_empty());
}

/// Each of these bytes of the header makes it a program for somebody else.
#[test]
fn programs_of_other_machines() {
    let bench = Bench::new();
    let bytes = bench.compile("program", SOURCE, &["-O1"]);
    let changed = |at: usize, value: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = value;
        refusal(&bytes)
    };
    assert!(changed(4, 1).contains("32-bit"));
    assert!(changed(5, 2).contains("big-endian"));
    assert!(changed(18, 183).to_lowercase().contains("aarch64"));
    assert!(!changed(16, 1).is_empty(), "an object file");
    assert!(!changed(16, 4).is_empty(), "a core file");
}

/// A program cut short anywhere has lost its section headers at least, which lie at its end.
#[test]
fn truncated_programs() {
    let bench = Bench::new();
    let bytes = bench.compile("program", SOURCE, &["-O1"]);
    let ends = (0..bytes.len())
        .step_by(bytes.len() / 64)
        .chain([63, 64, bytes.len() - 1]);
    for end in ends {
        assert!(!refusal(&bytes[..end]).is_empty(), "cut after {end} bytes");
    }
}

#[test]
fn what_is_no_file() {
    let bench = Bench::new();
    let refusal = |name: &str| bench.tomo(&["map", name]).refusal();
    assert_eq!(refusal("absent"), "tomo: absent: no such file or directory");
    assert_eq!(refusal("."), "tomo: .: is a directory, not a file");
    assert_eq!(
        refusal("/dev/zero"),
        "tomo: /dev/zero: is a device, not a file"
    );
    let made = Command::new("mkfifo")
        .arg(bench.path("pipe"))
        .status()
        .expect("mkfifo runs");
    assert!(made.success());
    assert_eq!(
        refusal("./pipe"),
        "tomo: ./pipe: is a named pipe, not a file"
    );
    assert!(bench.cache_is_untouched());
}

#[test]
fn what_may_not_be_read() {
    let bench = Bench::new();
    bench.write("secret", b"\x7fELF");
    fs::set_permissions(bench.path("secret"), fs::Permissions::from_mode(0o000)).expect("ours");
    assert_eq!(
        bench.tomo_as_nobody(&["map", "./secret"]).refusal(),
        "tomo: ./secret: permission denied"
    );
    assert!(bench.cache_is_untouched());
}

#[test]
fn functions_that_are_not_there() {
    let bench = Bench::new();
    bench.program_with("demo", sample::functions(), sample::facts());
    let refusal = |query: &str| {
        bench
            .tomo(&["map", "demo", "-f", query, "-o", "out"])
            .refusal()
    };
    assert_eq!(
        refusal("absent"),
        "tomo: demo: no function is called \"absent\"; --functions lists all"
    );
    assert_eq!(
        refusal("0x9999"),
        "tomo: demo: no function has the address 0x9999"
    );
    assert_eq!(
        refusal("s"),
        "tomo: demo: \"s\" is part of the names of 2 functions: ns::spin(int) at 0x1000, demo::second at 0x1030; \
         give an address"
    );
    assert!(
        !bench.path("out").exists(),
        "no output where there is nothing to say"
    );
}

#[test]
fn flags_that_contradict_each_other() {
    let bench = Bench::new();
    for flags in [
        &["--refresh", "--no-cache"][..],
        &["-l", "-f", "main"],
        &["--format", "xml"],
        &["--nonsense"],
    ] {
        let said = bench.tomo(&[&["map", "demo"], flags].concat());
        assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{said:?}");
    }
}

/// Not even by mistake is the program replaced by its description.
#[test]
fn output_over_the_program_is_refused() {
    let bench = Bench::new();
    bench.program_with("demo", sample::functions(), sample::facts());
    let before = fs::read(bench.path("demo")).expect("there");
    let said = bench.tomo(&["map", "demo", "-o", "./demo"]).refusal();
    assert_eq!(
        said,
        "tomo: demo: is the output file too; it would be overwritten"
    );
    assert_eq!(fs::read(bench.path("demo")).expect("there"), before);
    let said = bench
        .tomo(&["map", "demo", "-o", "no/such/directory"])
        .refusal();
    assert!(
        said.starts_with("tomo: writing no/such/directory: "),
        "{said}"
    );
}
