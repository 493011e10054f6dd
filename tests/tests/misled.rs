//! What misleads moves no probe into the middle of an instruction or into data: line tables that lie, tables of jumps that seem to
//! go on, constants among the code.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use tomo_testkit::corpus::compiled;
use tomo_testkit::coverage::{Covering, Units, complete};

fn objdump(argument: &str, program: &Path) -> String {
    let output = Command::new("objdump").arg(argument).arg(program).output();
    String::from_utf8(output.expect("objdump").stdout).expect("text")
}

fn number(text: &str) -> Option<u64> {
    let digits = text.trim().trim_end_matches(':');
    u64::from_str_radix(digits.trim_start_matches("0x"), 16).ok()
}

/// Where instructions start.
fn instructions(program: &Path) -> BTreeSet<u64> {
    let listing = objdump("-d", program);
    let lines = listing.lines().filter(|line| line.contains(":\t"));
    lines
        .filter_map(|line| number(line.split('\t').next()?))
        .collect()
}

/// Where the line table says that statements start.
fn statements(program: &Path) -> BTreeSet<u64> {
    let listing = objdump("--dwarf=decodedline", program);
    let addresses = listing.lines().filter_map(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        number(words.get(2).filter(|word| word.starts_with("0x"))?)
    });
    addresses.collect()
}

/// What is observed of a run, which must do what it does alone.
fn observed(program: &Path, level: &str) -> Units {
    let alone = complete(Command::new(program), b"").expect("run");
    let covering = Covering::new().expect("a folder");
    let mut command = covering.command(&["--level", level]).expect("tomo");
    command.arg(program);
    let output = complete(command, b"").expect("run");
    assert_eq!(
        (&output.stdout, output.status),
        (&alone.stdout, alone.status),
        "{level}"
    );
    covering.only().expect("a record")
}

#[test]
fn a_line_table_that_lies_moves_no_probe() {
    let program = compiled("gcc", "misleading.c", &["-g", "-O2"]).expect("built");
    let starts = instructions(&program);
    let lies: BTreeSet<_> = statements(&program).difference(&starts).copied().collect();
    assert!(lies.len() >= 4, "{lies:x?}");
    for level in ["block", "edge"] {
        let units = observed(&program, level);
        assert!(units.hit.len() > 5);
        for at in units.hit.iter().chain(&units.missed) {
            assert!(starts.contains(at) && !lies.contains(at), "{at:#x}");
        }
    }
}

#[test]
fn a_table_that_is_read_too_far_puts_no_probe_into_an_instruction() {
    let program = compiled("gcc", "misread.s", &[]).expect("built");
    for level in ["function", "block", "edge"] {
        assert!(!observed(&program, level).hit.is_empty(), "{level}");
    }
}

/// A jump that leads who knows where may enter blocks in their middle.
#[test]
fn lines_that_may_have_been_entered_within_a_block_are_not_said_to_be_missed() {
    let source = include_str!("../programs/differences.c");
    no_line_that_runs_is_missed("differences.c", source);
}

/// What a breakpoint stands in front of runs once that was passed.
#[test]
fn breakpoints_of_the_programs_own_hide_nothing() {
    let source = include_str!("../programs/breakpoints.c");
    no_line_that_runs_is_missed("breakpoints.c", source);
    for level in ["-O0", "-O1", "-O2"] {
        let program = compiled("gcc", "breakpoints.c", &["-g", level]).expect("built");
        does_the_same(&program, 5);
        for level in ["function", "block", "edge"] {
            observed(&program, level);
        }
        let map = |name: &str| {
            let mut command = Command::new(tomo_testkit::tomo::path().expect("tomo"));
            command
                .args(["map", "--no-cache", "--function", name])
                .arg(&program);
            String::from_utf8(complete(command, b"").expect("run").stdout).expect("text")
        };
        assert!(
            !map("aligned").contains("does not return"),
            "{}",
            map("aligned")
        );
    }
}

/// No line of the program that says that it runs is said to be missed.
fn no_line_that_runs_is_missed(name: &str, source: &str) {
    let program = compiled("gcc", name, &["-g", "-O2"]).expect("built");
    let covering = Covering::new().expect("a folder");
    let mut command = covering.command(&[]).expect("tomo");
    command.arg(&program);
    complete(command, b"").expect("run");
    let mut report = Command::new(tomo_testkit::tomo::path().expect("tomo"));
    report.env("TOMO_CACHE_DIR", covering.output().with_extension("cache"));
    report
        .args(["report", "--format", "lcov"])
        .arg(covering.output());
    let tracefile = String::from_utf8(complete(report, b"").expect("run").stdout).expect("text");
    assert!(
        tracefile.lines().any(|line| line.starts_with("DA:")),
        "{tracefile}"
    );
    let ran = (1..)
        .zip(source.lines())
        .filter(|(_, line)| line.ends_with("/* runs */"));
    let mut ran = ran.map(|(number, _)| number).peekable();
    assert!(ran.peek().is_some());
    for number in ran {
        let missed = format!("DA:{number},0");
        assert!(!tracefile.lines().any(|line| line == missed), "{missed}");
    }
}

/// In each of these ways a program, which ends with this code, does what it does alone.
fn does_the_same(program: &Path, expected: i32) {
    const WAYS: [&str; 8] = [
        "cover",
        "cover --level edge",
        "cover --placement reduced",
        "count",
        "paths",
        "chains",
        "predicates",
        "trace",
    ];
    let alone = complete(Command::new(program), b"").expect("run");
    assert_eq!(alone.status.code(), Some(expected));
    let covering = Covering::new().expect("a folder");
    for way in WAYS {
        let mut command = Command::new(tomo_testkit::tomo::path().expect("tomo"));
        let output = covering.output().join(way.replace(' ', "-"));
        command.args(way.split(' ')).arg("-o").arg(output);
        command.arg("--").arg(program);
        let got = complete(command, b"").expect("run");
        let said = String::from_utf8_lossy(&got.stderr).into_owned();
        assert_eq!(got.stdout, alone.stdout, "{way}: {said}");
        assert_eq!(got.status, alone.status, "{way}: {said}");
    }
}

/// An address that is held is no proof that there is code.
#[test]
fn constants_among_the_code_stay_as_they_are() {
    for flags in [&["-O2", "-w"][..], &["-O2", "-w", "-s"]] {
        does_the_same(&compiled("gcc", "constants.c", flags).expect("built"), 3);
    }
}

/// An address through which something is read is none to jump to.
#[test]
fn data_behind_a_jump_stays_as_it_is() {
    does_the_same(&compiled("gcc", "databehind.s", &[]).expect("built"), 4);
}

/// Where the stack pointer points at data nobody writes below it.
#[test]
fn data_below_a_stack_pointer_that_is_none_stays_as_it_is() {
    does_the_same(&compiled("gcc", "stackaside.s", &[]).expect("built"), 74);
}

/// What forbids most of what is known of a function decides.
#[test]
fn overlapping_instructions_stay_as_they_are_whatever_else_is_known() {
    for flags in [&["-O2", "-w"][..], &["-O2", "-w", "-s"]] {
        does_the_same(&compiled("gcc", "overlapping.c", flags).expect("built"), 6);
    }
}

/// What cannot be proven to be all ways into a function is not relied upon.
#[test]
fn functions_that_are_entered_in_ways_that_are_hard_to_see_do_what_they_do() {
    for flags in ["-O0", "-O1", "-O2", "-Os", "-O1 -fno-pie -no-pie"] {
        let flags: Vec<&str> = flags.split(' ').chain(["-w"]).collect();
        does_the_same(&compiled("gcc", "entered.c", &flags).expect("built"), 8);
    }
}

/// Where there is no room the body of a function is called behind the return of the call that asks for more.
#[test]
fn functions_that_take_their_stack_in_pieces_do_what_they_do() {
    for flags in [&["-O0", "-w"][..], &["-Os", "-w", "-fuse-ld=gold"]] {
        let flags = [flags, &["-fsplit-stack"]].concat();
        does_the_same(&compiled("gcc", "pieces.c", &flags).expect("built"), 9);
    }
}
