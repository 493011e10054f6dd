//! Source positions, held against `addr2line` (binutils).

use crate::build::{Built, C, CPP, RUST, build, run};
use std::process::Command;
use tomo_program::Address;
use tomo_program::dwarf::{Lines, Sections, functions, lines};

/// Addresses all over the functions of a program, and some outside.
fn addresses(sections: &Sections<'_>) -> Vec<Address> {
    let info = functions(sections);
    let ranges = info.functions.iter().flat_map(|it| &it.ranges);
    let inside = ranges.flat_map(|it| (it.start().0..it.end().0).step_by(3));
    let mut addresses: Vec<_> = inside
        .chain([0, 1, 2, 0x40, u64::MAX - 1, u64::MAX])
        .collect();
    addresses.sort_unstable();
    addresses.dedup();
    addresses.into_iter().map(Address).collect()
}

/// What `addr2line` says: `file:line`, or nothing where it does not know the line.
fn expected(built: &Built, addresses: &[Address]) -> Vec<Option<String>> {
    let list: String = addresses.iter().map(|it| format!("{it}\n")).collect();
    let path = built.directory.path().join("addresses");
    std::fs::write(&path, list).expect("the addresses are written");
    let mut command = Command::new("addr2line");
    command.env("LC_ALL", "C").arg("-e").arg(&built.program);
    command.stdin(std::fs::File::open(&path).expect("the addresses are readable"));
    run(&mut command).lines().map(position).collect()
}

fn position(line: &str) -> Option<String> {
    let line = line.split(" (discriminator").next().unwrap_or(line);
    let is_known = !line.ends_with(":?") && !line.ends_with(":0");
    is_known.then(|| line.to_owned())
}

fn shown(lines: &Lines) -> Vec<Option<String>> {
    let show = |it: tomo_program::dwarf::Position| {
        format!("{}:{}", lines.files[it.file as usize], it.line)
    };
    lines.at.iter().map(|it| it.map(show)).collect()
}

/// Compares all addresses, and gives how many had a line.
fn check(built: &Built) -> usize {
    let bytes = built.bytes();
    let sections = Sections::read(&bytes);
    let addresses = addresses(&sections);
    let lines = lines(&sections, &addresses);
    assert_eq!(lines.warnings, []);
    let read = shown(&lines);
    let expected = expected(built, &addresses);
    assert_eq!(read.len(), addresses.len());
    for ((address, read), expected) in addresses.iter().zip(&read).zip(&expected) {
        assert_eq!(read, expected, "at {address}");
    }
    read.iter().flatten().count()
}

#[test]
fn c_in_all_versions() {
    for compiler in ["gcc", "clang-19"] {
        for version in ["-gdwarf-2", "-gdwarf-3", "-gdwarf-4", "-gdwarf-5"] {
            for level in ["-O0", "-O2"] {
                assert!(check(&build(compiler, &["-g", version, level], &C)) > 50);
            }
        }
    }
}

#[test]
fn cpp_and_function_sections_and_link_time_optimisation() {
    for compiler in ["g++", "clang++-19"] {
        assert!(check(&build(compiler, &["-g", "-O2"], &CPP)) > 100);
        assert!(check(&build(compiler, &["-g", "-O1", "-gdwarf-4"], &CPP)) > 100);
    }
    let flags = ["-g", "-O2", "-ffunction-sections", "-Wl,--gc-sections"];
    assert!(check(&build("gcc", &flags, &C)) > 50);
    // addr2line 2.40 takes the wrong file for the unit that gcc makes here in DWARF 5.
    assert!(check(&build("gcc", &["-g", "-O2", "-flto", "-gdwarf-4"], &C)) > 50);
    assert!(check(&build("gcc", &["-g", "-O2", "-gsplit-dwarf"], &C)) == 0);
    assert!(check(&build("gcc", &["-g1", "-O2", "-gz"], &C)) > 50);
}

#[test]
fn rust_with_all_of_its_standard_library() {
    let built = build(
        "rustc",
        &["-g", "-Copt-level=1", "--edition", "2024"],
        &RUST,
    );
    assert!(check(&built) > 1000);
}
