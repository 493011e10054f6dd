//! Lines by their definition: a line ran if a block that holds a row of it, or in which the body of a call in it is
//! entered, ran, or, of LLVM, one that begins in the midst of its code, or, of GCC where it does not optimise, in its code. The rows come from `objdump`, the calls from `llvm-dwarfdump`, the blocks from `tomo map`, the hits
//! from chance, and nothing from the code under test.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

use crate::bench::{Bench, Program, Seen};
use crate::formats::{lcov, sums_of_all};
use tomo_testkit::inlined::calls;
use tomo_wire::plan::Level;

const SOURCE: &str = r#"
#include <stdio.h>
#include <stdlib.h>
static inline int square(int x) { return x > 9 ? x * x : x + 1; }
static int odd(int n) {
    int sum = 0;
    for (int i = 0; i < n; i++) {
        if (i % 3 == 0 && n > 4) sum += square(i);
        else if (i % 5 == 0) sum -= 2;
        switch (i) { case 1: sum++; break; case 2: sum *= 2; break; case 7: puts("seven"); break;
                     case 9: sum = square(sum); break; default: sum--; }
    }
    return sum;
}
int main(int count, char **words) {
    for (int word = 1; word < count; word++)
        printf("%d\n", odd(atoi(words[word])));
    return count > 3 ? odd(count) : 0;
}
"#;

/// A block: its start and end, and the number of its function.
#[derive(Clone, Copy)]
struct Block {
    start: u64,
    end: u64,
    function: usize,
}

/// All blocks, as `tomo map` prints them.
fn blocks(bench: &Bench) -> Vec<Block> {
    let lines = bench.tomo(&["map", "./demo", "--format", "jsonl"]).well();
    let functions: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let number = |value: &Value| value.as_u64().expect("a number");
    let of = |(number_of, function): (usize, &Value)| {
        let blocks = function["blocks"].as_array().expect("a list").iter();
        let block = |it: &Value| Block {
            start: number(&it["address"]),
            end: number(&it["address"]) + number(&it["size"]),
            function: number_of,
        };
        blocks.map(block).collect::<Vec<_>>()
    };
    functions.iter().enumerate().flat_map(of).collect()
}

/// A row of a line program, or a call that was inlined: its address, and the file's last name and the line, where there is one.
struct Row {
    address: u64,
    place: Option<(String, u32)>,
    /// Whether a statement begins there.
    begins: bool,
    /// Whether it is the last one of a run of rows.
    ends: bool,
}

/// All rows, in order.
fn rows(program: &Program) -> Vec<Row> {
    let mut command = Command::new("objdump");
    command
        .env("LC_ALL", "C")
        .arg("--dwarf=decodedline")
        .arg(&program.path);
    let output = command.output().expect("objdump (Debian package binutils)");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let row = |line: &str| {
        let words: Vec<_> = line.split_whitespace().collect();
        let address = u64::from_str_radix(words.get(2)?.strip_prefix("0x")?, 16).ok()?;
        let number = words[1].parse().ok().filter(|number| *number > 0);
        Some(Row {
            address,
            place: number.map(|number| (words[0].to_owned(), number)),
            begins: words.last() == Some(&"x"),
            ends: words.contains(&"END") || words[1] == "-",
        })
    };
    text.lines().filter_map(row).collect()
}

/// The line that code at `address` goes on with: that of the row in whose code it lies, where `any` will do, or that begins before or
/// has the line of the row before it.
fn goes_on(rows: &[Row], address: u64, any: bool) -> Option<(String, u32)> {
    let covers =
        |pair: &[Row]| !pair[0].ends && pair[0].address <= address && address < pair[1].address;
    let at = rows.windows(2).position(covers)?;
    let before = rows[..at].iter().rev();
    let mut before = before.take_while(|row| !row.ends);
    let before = before.find_map(|row| row.place.as_ref());
    let same = before == rows[at].place.as_ref();
    let place = rows[at].place.clone();
    place.filter(|_| any || same || rows[at].address < address)
}

/// Numbers that look like chance, the same each time.
fn chance(seed: u64, index: u64) -> u64 {
    let mixed = (seed << 32 | index).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 40
}

fn check(compiler: &str, flags: &[&str]) {
    let bench = Bench::new();
    let program = bench.build_by(compiler, "demo", ("demo.c", SOURCE), flags);
    let (blocks, rows) = (blocks(&bench), rows(&program));
    assert!(blocks.len() > 20 && rows.len() > 20);
    let stated = rows.iter().filter(|row| row.begins);
    let stated = stated.filter_map(|row| {
        let (file, line) = row.place.clone()?;
        Some((row.address, file, line))
    });
    let calls = calls(&program.path).expect("read");
    let statements: Vec<(u64, String, u32)> = stated.chain(calls).collect();
    for seed in 1..4 {
        let hit = |index: usize| chance(seed, index as u64).is_multiple_of(seed);
        let probes = blocks
            .iter()
            .enumerate()
            .map(|(index, block)| (block.start, hit(index)));
        let seen = Seen {
            level: Level::Block,
            probes: probes.collect(),
            inferred: Vec::new(),
            unknown: Vec::new(),
            edges: Vec::new(),
        };
        let folder = format!("out-{seed}");
        bench.run(&folder, 1, &program, &seen);
        let mut expected: BTreeMap<(String, u32), bool> = BTreeMap::new();
        let mut begun = BTreeSet::new();
        for (address, file, line) in &statements {
            let inside = |block: &Block| (block.start..block.end).contains(address);
            if let Some(index) = blocks.iter().position(inside) {
                let place = (file.clone(), *line);
                begun.insert((blocks[index].function, place.clone()));
                *expected.entry(place).or_default() |= hit(index);
            }
        }
        for (_, block) in blocks.iter().enumerate().filter(|(index, _)| hit(*index)) {
            let (is_gnu, is_plain) = (compiler == "gcc", flags.contains(&"-O0"));
            let place = goes_on(&rows, block.start, is_gnu && is_plain);
            let place = place.filter(|_| !is_gnu || is_plain);
            let Some(place) = place else {
                continue;
            };
            if begun.contains(&(block.function, place.clone())) {
                expected.insert(place, true);
            }
        }
        // Chance is no execution: the report may say so, and believes what probes saw all the same.
        let said = bench.tomo(&["report", &folder, "--format", "lcov"]);
        assert_eq!(said.code, Some(0), "{}", said.err);
        let mut found = BTreeMap::new();
        for (path, records) in lcov(&said.out) {
            let name = path.rsplit('/').next().expect("a name").to_owned();
            for (_, fields) in records.iter().filter(|(tag, _)| tag == "DA") {
                let line = fields[0].parse().expect("a number");
                found.insert((name.clone(), line), fields[1] == "1");
            }
        }
        assert_eq!(found, expected, "{compiler} {flags:?}, seed {seed}");
        sums_of_all(&bench, &[&folder]);
    }
}

#[test]
fn lines_are_those_of_the_blocks_that_ran() {
    for compiler in ["gcc", "clang-19"] {
        check(compiler, &["-g", "-O0"]);
        check(compiler, &["-g", "-O2"]);
        check(compiler, &["-g", "-O3", "-gdwarf-4"]);
    }
}

/// Bodies that compilers put in place of calls begin in the midst of blocks, are there twice, and may be told of in another file.
#[test]
fn functions_ran_whose_bodies_did_wherever_those_begin() {
    use std::fmt::Write as _;
    let (mut source, mut calls) = ("static volatile int x = 1;\n".to_owned(), String::new());
    for number in 0..40 {
        let name = format!("a_helper_number_{number}");
        let always = "static inline __attribute__((always_inline)) int";
        let _ = writeln!(
            source,
            "{always} {name}(int n)\n{{\n    return n * {} + x;\n}}",
            number + 3
        );
        let guard = if number % 2 == 1 {
            "if (count > 5) "
        } else {
            ""
        };
        let _ = writeln!(calls, "    {guard}sum += {name}(sum);");
    }
    let main = "int main(int count, char **words) {\n    int sum = count;\n    (void)words;\n";
    let source = format!("{source}{main}{calls}    return sum == 77;\n}}\n");
    for flags in [
        &["-g", "-O1"][..],
        &["-g", "-O2"],
        &["-g", "-O1", "-gsplit-dwarf"],
    ] {
        let bench = Bench::new();
        bench.build_by("gcc", "demo", ("demo.c", &source), flags);
        let run = bench.tomo(&["cover", "-o", "out", "--", "./demo"]);
        assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
        let said = bench.tomo(&["report", "out", "--include", "demo.c", "--format", "lcov"]);
        let records = lcov(&said.out).into_values().flatten();
        let records = records.filter(|(tag, _)| tag == "FNDA");
        let ran: BTreeMap<String, bool> = records
            .map(|(_, fields)| (fields[1].clone(), fields[0] != "0"))
            .collect();
        // Of whose body nothing is stated apart from others' code it is not known.
        let helper = |number: u32| Some((number, *ran.get(&format!("a_helper_number_{number}"))?));
        let known: Vec<(u32, bool)> = (0..40).filter_map(helper).collect();
        assert!(known.len() > 35, "{flags:?}: {known:?}");
        for (number, ran) in known {
            assert_eq!(ran, number % 2 == 0, "{number}, {flags:?}");
        }
    }
}
