//! Texts that `dwz -m` moved to a file that several programs share.

use crate::build::{Built, build, run};
use std::process::Command;
use tomo_program::Address;
use tomo_program::dwarf::{Sections, functions, lines};

/// One function with one line, whose unit has its name and folder in the shared file.
const PROGRAM: (&str, &str) = (
    "program.s",
    r#"
        .globl main
        .file 1 "main.c"
main:   .loc 1 7
        ret
.Lend:
        .section .debug_abbrev
        .uleb128 1, 0x11
        .byte 0
        .uleb128 0x03, 0x1f21, 0x1b, 0x1f21, 0x10, 0x17, 0, 0, 0
        .section .debug_info
        .long .Lafter - .Lversion
.Lversion: .short 4
        .long 0
        .byte 8
        .uleb128 1
        .long 0
        .long 7
        .long .Llines
.Lafter:
        .section .debug_line
.Llines:
        .section .gnu_debugaltlink
        .string "shared.debug"
        .byte 1, 0x23, 0x45, 0x67
    "#,
);
const SHARED: &str = ".section .debug_str\n.string \"main.c\"\n.string \"/made/here\"\n";

fn bare(name: &str) -> Built {
    let flags = ["-nostdlib", "-shared", "-Wl,--build-id=none"];
    let built = build("gcc", &flags, &[PROGRAM]);
    std::fs::write(built.directory.path().join("shared.s"), SHARED).expect("written");
    let id = format!("-Wl,--build-id={name}");
    run(Command::new("gcc")
        .current_dir(built.directory.path())
        .args([
            "-nostdlib",
            "-shared",
            &id,
            "shared.s",
            "-o",
            "shared.debug",
        ]));
    built
}

fn files(built: &Built) -> (Vec<String>, Vec<String>) {
    let bytes = built.bytes();
    let sections = Sections::read_at(&bytes, &built.program);
    let address = Address(symbol(built));
    let warnings = functions(&sections).warnings;
    let warnings = warnings.iter().map(ToString::to_string).collect();
    (lines(&sections, &[address]).files, warnings)
}

fn symbol(built: &Built) -> u64 {
    let shown = run(Command::new("nm").arg(&built.program));
    let line = shown.lines().find(|line| line.ends_with(" main"));
    let address = line.and_then(|line| line.split(' ').next()).expect("main");
    u64::from_str_radix(address, 16).expect("an address")
}

#[test]
fn a_folder_in_the_shared_file_is_that_of_the_source() {
    let built = bare("0x01234567");
    let none: Vec<String> = Vec::new();
    assert_eq!(files(&built), (vec!["/made/here/main.c".to_owned()], none));
}

#[test]
fn a_shared_file_that_is_missing_or_of_another_build_is_named() {
    let built = bare("0x01234568");
    let (found, warnings) = files(&built);
    assert_eq!(found, ["main.c"]);
    assert!(
        warnings[0].contains("shared.debug is of another build"),
        "{warnings:?}"
    );
    std::fs::remove_file(built.directory.path().join("shared.debug")).expect("removed");
    let (found, warnings) = files(&built);
    assert_eq!(found, ["main.c"]);
    assert!(
        warnings[0].contains("shared.debug was not found"),
        "{warnings:?}"
    );
}

#[test]
fn a_shared_file_with_entries_is_told_as_not_read() {
    let built = bare("0x01234567");
    let bytes = built.bytes();
    let unread = || {
        let sections = Sections::read_at(&bytes, &built.program);
        sections
            .unread()
            .map(|it| it.file_name().map(ToOwned::to_owned))
    };
    assert_eq!(unread(), None, "there are texts alone");
    let entries = format!("{SHARED}.section .debug_info\n.long 0\n");
    std::fs::write(built.directory.path().join("shared.s"), entries).expect("written");
    run(Command::new("gcc")
        .current_dir(built.directory.path())
        .args(["-nostdlib", "-shared", "-Wl,--build-id=0x01234567"])
        .args(["shared.s", "-o", "shared.debug"]));
    assert_eq!(unread(), Some(Some("shared.debug".into())));
}
