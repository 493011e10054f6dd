//! Programs in Go, whose runtime knows each instruction by its place, and comes to places that only its own tables state.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

use tomo_program::dwarf::{Lines, Position, Sections, lines};
use tomo_program::{Address, Binary, Callee, EdgeKind, Function, Reason, Status};
use tomo_testkit::corpus::compiled;
use tomo_testkit::coverage::{Covering, complete, differences};
use tomo_testkit::tomo;

/// The program as it is built by default, as it is installed, and as the loader may place it anywhere.
fn programs() -> [PathBuf; 3] {
    let builds = [&[][..], &["-ldflags=-s -w"], &["-buildmode=pie"]];
    builds.map(|flags| compiled("go", "panicking.go", flags).expect("built"))
}

/// Its own functions, by name.
fn functions(program: &Path) -> Vec<(String, Range<u64>)> {
    let output = Command::new("nm").arg("-S").arg(program).output();
    let symbols = String::from_utf8_lossy(&output.expect("nm").stdout).into_owned();
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    let own = symbols.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let (start, size) = (number(words.next()?)?, number(words.next()?)?);
        let is_code = matches!(words.next()?, "t" | "T");
        let name = words.next()?.strip_prefix("main.")?;
        (is_code && size > 0).then(|| (name.to_owned(), start..start + size))
    });
    own.collect()
}

/// On all levels and placements; threads are interrupted while they do nothing but count.
#[test]
fn go_programs_do_what_they_do_alone() {
    for (number, program) in programs().into_iter().enumerate() {
        let run = |mut command: Command| {
            command.arg(&program).arg("longer");
            complete(command, b"").expect("run")
        };
        let alone = run(Command::new("env"));
        assert_eq!(alone.status.code(), Some(5));
        let ways = if number == 0 { WAYS } else { &WAYS[..1] };
        for way in ways {
            let covering = Covering::new().expect("a folder");
            let got = run(covering.command(way).expect("tomo"));
            let what = format!("{} {way:?}", program.display());
            assert_eq!(String::from_utf8_lossy(&got.stderr), "", "{what}");
            assert_eq!(
                (got.stdout, got.status.code()),
                (alone.stdout.clone(), Some(5)),
                "{what}"
            );
            let units = covering.only().expect("a record");
            assert_eq!((units.processes, units.traps), (1, 0), "{what}");
            assert!(units.hit.len() > 300, "{what}: {}", units.hit.len());
        }
    }
}

/// What an emulator executes of a program, which translates each instruction by itself when control comes to it first; it follows all
/// threads, and knows nothing of functions and blocks.
fn executed(program: &Path) -> BTreeSet<u64> {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("log");
    let help = Command::new("qemu-x86_64").arg("-help").output();
    let help = String::from_utf8(help.expect("an emulator").stdout).expect("text");
    // As it is called since QEMU 8.1, and before.
    let singly = ["-one-insn-per-tb", "-singlestep"];
    let singly = singly.into_iter().find(|option| help.contains(option));
    let mut emulator = Command::new("qemu-x86_64");
    emulator.arg(singly.expect("one of them"));
    emulator.args(["-d", "in_asm", "-D"]);
    emulator.arg(&log).arg(program);
    let output = complete(emulator, b"").expect("run");
    assert_eq!(output.status.code(), Some(5));
    let log = std::fs::read_to_string(log).expect("a log");
    let instructions = log.lines().filter_map(|line| {
        let (address, _) = line.strip_prefix("0x")?.split_once(':')?;
        u64::from_str_radix(address, 16).ok()
    });
    instructions.collect()
}

/// Where functions ask for a larger stack, and go back to their starts: which do depends on what stacks goroutines were given.
fn growing(program: &Path) -> Vec<Range<u64>> {
    let data = std::fs::read(program).expect("a program");
    let (functions, _) = tomo_program::analyse(&data, &()).expect("analysed");
    let grows = |function: &&Function| {
        let name = function.name.as_deref().unwrap_or_default();
        name.starts_with("runtime.morestack")
    };
    let grown: BTreeSet<_> = functions.iter().filter(grows).map(|it| it.entry).collect();
    let calls = functions.iter().flat_map(|function| {
        let calls = function.calls.iter();
        let calls = calls.filter(
            |call| matches!(call.callee, Callee::Function(entry) if grown.contains(&entry)),
        );
        calls.map(|call| &function.blocks[call.block as usize..][..2])
    });
    let blocks = calls.map(|two| two[0].range.start().0..two[1].range.end().0);
    blocks.collect()
}

/// Of its own functions: what its runtime does depends on who comes first.
#[test]
fn what_go_programs_executed_is_recorded_and_nothing_else() {
    let [program, ..] = programs();
    let own = functions(&program);
    // Goroutines may not have come to the ends of these when the program ends.
    let own: Vec<_> = own
        .into_iter()
        .filter(|(name, _)| !name.starts_with("main.func"))
        .collect();
    assert!(own.len() > 8, "{own:?}");
    let growing = growing(&program);
    assert!(growing.len() > own.len() / 2, "most functions may grow");
    let is_own = |block: &u64| {
        let mut functions = own.iter();
        functions.any(|(_, function)| function.contains(block))
            && !growing.iter().any(|range| range.contains(block))
    };
    let of_own = |blocks: &BTreeSet<u64>| blocks.iter().copied().filter(is_own).collect();
    let ran: BTreeSet<u64> = of_own(&executed(&program));
    for (name, function) in &own {
        let has_run = ran.range(function.clone()).next().is_some();
        assert_eq!(has_run, name != "never", "{name}");
    }
    let cache = tempfile::tempdir().expect("a folder");
    for way in WAYS {
        let covering = Covering::cached_in(cache.path()).expect("a folder");
        let mut command = covering.command(way).expect("tomo");
        command.env("TOMO_CACHE_DIR", cache.path()).arg(&program);
        let output = complete(command, b"").expect("run");
        assert_eq!(output.status.code(), Some(5));
        let units = covering.only().expect("a record");
        let [hit, missed]: [BTreeSet<u64>; 2] = [&units.hit, &units.missed].map(of_own);
        assert!(hit.len() > 10, "{way:?}: {}", hit.len());
        assert_eq!(differences(&hit, &missed, &ran), None, "{way:?}");
    }
}

/// What is recovered from goes on at the call of `deferreturn`, whether a call raised it or an instruction that faulted: else what
/// follows from what would be wrong.
#[test]
fn panics_are_ways_out_of_whatever_raises_them() {
    let [program, stripped, _] = programs();
    let data = std::fs::read(&program).expect("a program");
    let (functions, _) = tomo_program::analyse(&data, &()).expect("analysed");
    let find = |name| {
        let mut all = functions.iter();
        all.find(|function| function.name.as_deref() == Some(name))
            .expect("a function")
    };
    let misses = find("main.misses");
    let pads: Vec<_> = misses
        .edges
        .iter()
        .filter(|edge| edge.kind == EdgeKind::LandingPad)
        .collect();
    let raises = |block: u32| pads.iter().any(|edge| edge.from == block);
    let by_calls = misses.calls.iter().filter(|call| raises(call.block));
    assert_eq!(by_calls.count(), misses.calls.len());
    let is_call = |block| misses.calls.iter().any(|call| call.block == block);
    let by_others = pads.iter().filter(|edge| !is_call(edge.from));
    assert!(by_others.count() > 2, "{misses:?}");
    let places: BTreeSet<_> = pads.iter().map(|edge| edge.to).collect();
    assert_eq!(places.len(), 1, "there is one such call");
    for name in ["main.misses", "main.defers", "main.descends", "main.main"] {
        assert_eq!(find(name).status, Status::Exact, "{name}");
    }
    // A stripped program names its functions all the same.
    let data = std::fs::read(&stripped).expect("a program");
    let (others, _) = tomo_program::analyse(&data, &()).expect("analysed");
    let names = |functions: &[Function]| -> BTreeSet<String> {
        let names = functions.iter().filter_map(|one| one.name.clone());
        names.filter(|name| name.starts_with("main.")).collect()
    };
    assert_eq!(names(&others), names(&functions));
    assert!(names(&others).contains("main.misses"));
    // Assembly is entered where the runtime likes.
    for name in [
        "runtime.goexit.abi0",
        "runtime.mcall",
        "runtime.morestack.abi0",
    ] {
        assert_eq!(find(name).status, Status::Opaque(Reason::Foreign), "{name}");
    }
}

/// C's linker made it, which puts the table of functions among other things.
#[test]
fn a_library_in_go_is_covered_where_c_loads_it() {
    let program = compiled("gcc", "loading.c", &["-pthread"]).expect("built");
    let library = compiled("go", "shared.go", &["-buildmode=c-shared"]).expect("built");
    let run = |mut command: Command| {
        command.arg(&program).arg("once").arg(&library);
        complete(command, b"").expect("run")
    };
    let alone = run(Command::new("env"));
    let covering = Covering::new().expect("a folder");
    let named = library.to_string_lossy().into_owned();
    let got = run(covering.command(&["--module", &named]).expect("tomo"));
    assert_eq!(String::from_utf8_lossy(&got.stderr), "");
    assert_eq!(
        (got.stdout, got.status.code()),
        (alone.stdout, alone.status.code())
    );
    let units = covering.only().expect("a record");
    assert_eq!(units.traps, 0);
    let own = functions(&library).into_iter();
    let own: Vec<_> = own.filter(|(name, _)| name.starts_with("steps")).collect();
    assert!(own.len() > 2, "{own:?}");
    for (name, function) in own {
        assert!(units.hit.range(function).next().is_some(), "{name}");
    }
}

/// What keeps crashes gives the first thread a stack for handlers, unless it has one. Go's runtime asks the system itself
/// whether it has, and could not do without the one it found.
#[test]
fn gos_runtime_keeps_the_stack_on_which_it_handles_signals() {
    let program = compiled("go", "signalled.go", &[]).expect("built");
    let loads = compiled("gcc", "loading.c", &["-pthread"]).expect("built");
    let library = compiled("go", "shared.go", &["-buildmode=c-shared"]).expect("built");
    for words in [vec![&program], vec![&loads, &library]] {
        let run = |mut command: Command| {
            let (program, rest) = words.split_first().expect("a program");
            command.arg(program);
            command.args(rest.first().map(|_| "handled")).args(rest);
            complete(command, b"").expect("run")
        };
        let alone = run(Command::new("env"));
        let covering = Covering::new().expect("a folder");
        let got = run(covering.command(&["--crashes"]).expect("tomo"));
        assert_eq!(String::from_utf8_lossy(&got.stderr), "");
        assert_eq!(got.stdout, alone.stdout);
        assert_eq!(got.status.code(), alone.status.code());
    }
}

/// In which ways `tomo cover` is asked.
const WAYS: &[&[&str]] = &[
    &["--level", "block"],
    &["--level", "block", "--placement", "reduced"],
    &["--level", "edge"],
    &["--level", "function"],
];

/// Goroutines change threads and stacks, which nobody follows from outside.
#[test]
fn a_static_go_program_is_not_traced() {
    for program in programs() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut tomo = Command::new(tomo::path().expect("tomo"));
        tomo.env("TOMO_CACHE_DIR", folder.path().join("cache"))
            .args(["trace", "-o"])
            .arg(folder.path().join("out"))
            .arg("--")
            .arg(&program);
        let alone = complete(Command::new(&program), b"").expect("run");
        let got = complete(tomo, b"").expect("run");
        let said = String::from_utf8_lossy(&got.stderr).into_owned();
        let seen = (&got.stdout, got.status.code());
        assert_eq!(seen, (&alone.stdout, Some(5)), "{said}");
        assert!(said.contains("its code is Go's"), "{said}");
    }
}

/// It is linked dynamically, so the agent is in it. What executes code elsewhere leaves it alone, and says so.
#[test]
fn a_go_program_with_a_c_library_is_covered_and_nothing_else() {
    let program = compiled("go", "languages/main.go", &[]).expect("built");
    let alone = complete(Command::new(&program), b"").expect("run");
    let others = ["count", "paths", "chains", "predicates", "trace"];
    let others = others.iter().map(std::slice::from_ref);
    let ways: [&[&str]; 2] = [&["cover"], &["cover", "--disposal", "none"]];
    for way in ways.into_iter().chain(others) {
        let folder = tempfile::tempdir().expect("a folder");
        let mut tomo = Command::new(tomo::path().expect("tomo"));
        tomo.env("TOMO_CACHE_DIR", folder.path().join("cache"))
            .args(way)
            .arg("-o")
            .arg(folder.path().join("out"))
            .arg("--")
            .arg(&program);
        let got = complete(tomo, b"").expect("run");
        let said = String::from_utf8_lossy(&got.stderr).into_owned();
        assert_eq!(
            (&got.stdout, got.status.code()),
            (&alone.stdout, alone.status.code()),
            "{way:?}: {said}"
        );
        match way {
            ["cover"] => assert_eq!(said, ""),
            _ => assert!(said.contains("its code is Go's"), "{way:?}: {said}"),
        }
    }
}

/// Where each block of a program comes from, by where the block begins.
fn places(program: &Path) -> BTreeMap<u64, String> {
    let data = std::fs::read(program).expect("a program");
    let (functions, facts) = tomo_program::analyse(&data, &()).expect("analysed");
    let blocks = functions.iter().flat_map(|function| &function.blocks);
    let mut starts: Vec<u64> = blocks.map(|block| block.range.start().0).collect();
    starts.sort_unstable();
    let Lines { files, at, .. } = facts.lines;
    let place = |at: Option<Position>| match at {
        Some(at) => format!("{}:{}", files[at.file as usize], at.line),
        None => "?:0".to_owned(),
    };
    starts.into_iter().zip(at.into_iter().map(place)).collect()
}

/// A program without debug information: what Go's own table states of lines is told, as Go's own tool reads it. (It does not
/// find the table where the loader may place the program anywhere.)
#[test]
fn lines_of_stripped_go_programs_are_those_that_go_states() {
    let program = compiled("go", "panicking.go", &["-ldflags=-s -w"]).expect("built");
    let told = places(&program);
    let asked: String = told.keys().map(|start| format!("{start:x}\n")).collect();
    let mut tool = Command::new("go");
    tool.args(["tool", "addr2line"]).arg(&program);
    let said = complete(tool, asked.as_bytes()).expect("run").stdout;
    let said = String::from_utf8(said).expect("text");
    // For each address a function and a place, which is no file's for what the compiler made up.
    let is_made_up = |place: &str| place.starts_with("<autogenerated>:");
    let stated = said.lines().skip(1).step_by(2);
    let stated: Vec<&str> = stated
        .map(|place| if is_made_up(place) { "?:0" } else { place })
        .collect();
    assert_eq!(told.len(), stated.len());
    let differ: Vec<_> = told
        .iter()
        .zip(stated)
        .filter(|(told, stated)| told.1 != stated)
        .take(9)
        .collect();
    assert!(differ.is_empty(), "{differ:?}");
    let known = told.values().filter(|told| told.contains("panicking.go:"));
    assert!(known.count() > 100);
}

/// With and without debug information, the program's own blocks come from the same lines. (Of the runtime's, one in a
/// thousand does not: Go's two tables differ there.)
#[test]
fn lines_of_go_programs_are_the_same_with_and_without_debug_information() {
    for mode in ["-buildmode=exe", "-buildmode=pie"] {
        let [whole, stripped] = [&[mode][..], &[mode, "-ldflags=-s -w"]].map(|flags| {
            let program = compiled("go", "panicking.go", flags).expect("built");
            let mut own = places(&program);
            own.retain(|_, place| place.contains("panicking.go:"));
            own
        });
        assert!(whole.len() > 100, "{mode}");
        assert_eq!(whole, stripped, "{mode}");
    }
}

/// What a report shows of a stripped program: each line of its source that has code, with whether it ran.
#[test]
fn reports_show_the_lines_of_stripped_go_programs() {
    let [whole, stripped] = [&[][..], &["-ldflags=-s -w"]].map(|flags| {
        let program = compiled("go", "panicking.go", flags).expect("built");
        let covering = Covering::new().expect("a folder");
        let mut command = covering.command(&[]).expect("tomo");
        command.arg(&program);
        assert_eq!(complete(command, b"").expect("run").status.code(), Some(5));
        let mut report = Command::new(tomo::path().expect("tomo"));
        report
            .args(["report", "--format", "lcov"])
            .arg(covering.output());
        let report = complete(report, b"").expect("run").stdout;
        let report = String::from_utf8(report).expect("text");
        let own = report
            .split("end_of_record")
            .find(|file| file.contains("panicking.go\n"));
        let lines = own
            .expect("the source")
            .lines()
            .filter(|line| line.starts_with("DA:"));
        lines.map(str::to_owned).collect::<BTreeSet<_>>()
    });
    assert!(whole.iter().any(|line| line.ends_with(",1")));
    assert!(whole.iter().any(|line| line.ends_with(",0")));
    let missing: Vec<_> = whole.difference(&stripped).collect();
    let more: Vec<_> = stripped.difference(&whole).collect();
    assert!(
        missing.is_empty() && more.is_empty(),
        "{missing:?} {more:?}"
    );
}

/// Whatever the table says, what is told of it is lines of its files; and nobody waits long for that.
#[test]
fn damaged_tables_of_go_do_no_harm() {
    let program = compiled("go", "panicking.go", &["-ldflags=-s -w"]).expect("built");
    let mut data = std::fs::read(&program).expect("a program");
    let starts: Vec<Address> = places(&program).keys().copied().map(Address).collect();
    let table = {
        let binary = Binary::parse(&data).expect("a program");
        let section = binary.section(".gopclntab").expect("the table");
        let from = section.file_offset as usize;
        from..from + section.data.len()
    };
    let mut random = 1_u64;
    let mut next = |below: usize| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (random >> 33) as usize % below
    };
    let mut told = 0;
    for round in 0..100 {
        let whole = data.clone();
        // Of each second its head is left as it is: else hardly any is taken for a table.
        let head = if round % 2 == 0 { 72 } else { 0 };
        for _ in 0..=next(3000) {
            data[table.start + head + next(table.len() - head)] = next(256) as u8;
        }
        let found = lines(&Sections::read(&data).or_of_go(&data), &starts);
        assert_eq!(found.at.len(), starts.len());
        for position in found.at.iter().flatten() {
            assert!(position.line > 0 && (position.file as usize) < found.files.len());
        }
        told += found.at.iter().flatten().count();
        data = whole;
    }
    assert!(told > starts.len());
}
