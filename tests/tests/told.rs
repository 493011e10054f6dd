//! Handlers of signals are told where in the program their signal came, though that is executed elsewhere: held against the program
//! alone, instruction for instruction, by the processor's own word (the trap flag).

use std::path::Path;
use std::process::{Command, Output};

use object::{Object as _, ObjectSection as _};
use tempfile::TempDir;
use tomo_testkit::corpus::compiled;
use tomo_testkit::tomo;

/// The ways of observing in which code is executed elsewhere; whether short jumps in filling lead to some of it.
const WAYS: [(&[&str], bool); 6] = [
    (&["count"], false),
    (&["paths"], false),
    (&["chains"], false),
    (&["trace"], false),
    (&["predicates"], true),
    (&["cover", "--disposal", "none"], true),
];

fn observed(folder: &TempDir, way: &[&str], program: &Path, words: &[&Path]) -> Output {
    let mut command = Command::new(tomo::path().expect("tomo"));
    command
        .env("TOMO_CACHE_DIR", folder.path().join("cache"))
        .current_dir(folder.path())
        .args(way)
        .args(["-o", "out", "--"])
        .arg(program)
        .args(words);
    command.output().expect("run")
}

/// Instructions and how much lower than at its start stack and frame are there, without those that repeat.
type Told = Vec<(u64, u64)>;

fn told(file: &Path) -> Told {
    let bytes = std::fs::read(file).expect("what it was told");
    let words = bytes.chunks_exact(8);
    let words = words.map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")));
    let words: Vec<u64> = words.collect();
    let pairs = words.chunks_exact(2).map(|pair| (pair[0], pair[1]));
    let mut told: Told = pairs.collect();
    told.dedup();
    told
}

/// Whether a direct jump is at an address of the program: those to what comes next anyway are left out.
fn is_jump(program: &Path, address: u64) -> bool {
    let bytes = std::fs::read(program).expect("the program");
    let file = object::File::parse(&*bytes).expect("ELF");
    let text = file.section_by_name(".text").expect("code");
    let data = text.data_range(address, 1).expect("code");
    data.is_some_and(|byte| matches!(byte, [0xeb | 0xe9]))
}

fn compare(name: &str, program: &Path, alone: &Told, mut seen: Told, by_filling: bool) {
    // What stands in front of the first instruction of which the program is told.
    let first = seen.iter().position(|one| *one == alone[0]);
    seen.drain(..first.unwrap_or_else(|| panic!("{name}: {:x?}", &seen[..seen.len().min(4)])));
    if by_filling {
        let executed: std::collections::BTreeSet<u64> = alone.iter().map(|one| one.0).collect();
        seen.retain(|one| executed.contains(&one.0));
        seen.dedup();
    }
    let mut seen = seen.iter().peekable();
    let mut left_out = 0;
    for (number, one) in alone.iter().enumerate() {
        match seen.next_if_eq(&one) {
            Some(_) => {}
            None if is_jump(program, one.0) => left_out += 1,
            None => panic!(
                "{name}, number {number}: {:x?} in place of {one:x?}",
                seen.peek()
            ),
        }
    }
    assert_eq!(seen.next(), None, "{name}");
    assert!(
        10 * left_out < alone.len(),
        "{name}: {left_out} jumps left out"
    );
}

#[test]
fn a_handler_is_told_each_instruction_as_without_us() {
    let folder = tempfile::tempdir().expect("a folder");
    let builds = [("gcc", "-O0"), ("gcc", "-O2"), ("clang-19", "-O2")];
    for (compiler, level) in builds {
        let program = compiled(compiler, "told.c", &[level]).expect("built");
        let file = folder.path().join("alone");
        let plain = Command::new(&program).arg(&file).output().expect("run");
        assert!(plain.status.success(), "{compiler} {level}: {plain:?}");
        let alone = told(&file);
        assert!(alone.len() > 1000, "{compiler} {level}: {}", alone.len());
        for (way, by_filling) in WAYS {
            let name = format!("{compiler} {level}, {way:?}");
            let file = folder.path().join("seen");
            let output = observed(&folder, way, &program, &[&file]);
            assert!(
                output.stdout.starts_with(&plain.stdout),
                "{name}: {output:?}"
            );
            compare(&name, &program, &alone, told(&file), by_filling);
        }
    }
}

/// Who sends threads elsewhere from a handler has them go there, with their own registers.
#[test]
fn who_is_sent_elsewhere_goes_there() {
    let folder = tempfile::tempdir().expect("a folder");
    for (compiler, level) in [("gcc", "-O0"), ("gcc", "-O2"), ("clang-19", "-O2")] {
        let program = compiled(compiler, "sent.c", &[level]).expect("built");
        let plain = Command::new(&program).output().expect("run");
        let said = String::from_utf8_lossy(&plain.stdout).into_owned();
        assert!(
            said.ends_with(" in turns\n"),
            "{compiler} {level}: {plain:?}"
        );
        for (way, _) in WAYS {
            let output = observed(&folder, way, &program, &[]);
            let found = String::from_utf8_lossy(&output.stdout);
            assert!(
                found.starts_with(&said),
                "{compiler} {level}, {way:?}: {output:?}"
            );
        }
    }
}

/// Who throws from a handler, names callers, looks a fault up by its instruction, passes over it or does it once more does so as alone; and
/// is told of his handlers what he has said.
#[test]
fn who_handles_faults_by_their_places_does_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let flags = ["-fnon-call-exceptions", "-rdynamic"];
    for (compiler, level) in [("g++", "-O0"), ("g++", "-O2")] {
        let flags = [&flags[..], &[level]].concat();
        let program = compiled(compiler, "faulting.cpp", &flags).expect("built");
        let plain = Command::new(&program).arg("all").output().expect("run");
        let said = String::from_utf8_lossy(&plain.stdout).into_owned();
        assert!(
            plain.status.success() && said.contains("inner outer") && said.contains("at once: 5"),
            "{level}: {plain:?}"
        );
        for (way, _) in WAYS {
            let output = observed(&folder, way, &program, &[Path::new("all")]);
            let seen = String::from_utf8_lossy(&output.stdout);
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(seen.starts_with(&said), "{level}, {way:?}: {seen}{errors}");
        }
    }
}
