//! Lines by their definition: a line ran if a block that holds a row of it, or in which the body of a call in it is
//! entered, ran. The rows come from `objdump`, the calls from `llvm-dwarfdump`, the blocks from `tomo map`, the hits
//! from chance, and nothing from the code under test.

use std::collections::BTreeMap;
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

/// Start and end of all blocks, as `tomo map` prints them.
fn blocks(bench: &Bench) -> Vec<(u64, u64)> {
    let lines = bench.tomo(&["map", "./demo", "--format", "jsonl"]).well();
    let functions: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let number = |value: &Value| value.as_u64().expect("a number");
    let all = functions
        .iter()
        .flat_map(|function| function["blocks"].as_array().expect("a list"));
    all.map(|it| {
        (
            number(&it["address"]),
            number(&it["address"]) + number(&it["size"]),
        )
    })
    .collect()
}

/// Address, file's last name and line of each row that begins a statement, and of each call that was inlined.
fn rows(program: &Program) -> Vec<(u64, String, u32)> {
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
        let number = words[1].parse().ok().filter(|number| *number > 0)?;
        (words.last() == Some(&"x")).then(|| (address, words[0].to_owned(), number))
    };
    let calls = calls(&program.path).expect("read");
    text.lines().filter_map(row).chain(calls).collect()
}

/// Numbers that look like chance, the same each time.
fn chance(seed: u64, index: u64) -> u64 {
    let mixed = (seed << 32 | index).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 40
}

fn check(flags: &[&str]) {
    let bench = Bench::new();
    let program = bench.build("demo", "demo.c", SOURCE, flags);
    let (blocks, rows) = (blocks(&bench), rows(&program));
    assert!(blocks.len() > 20 && rows.len() > 20);
    for seed in 1..4 {
        let hit = |index: usize| chance(seed, index as u64).is_multiple_of(seed);
        let probes = blocks
            .iter()
            .enumerate()
            .map(|(index, block)| (block.0, hit(index)));
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
        for (address, file, line) in &rows {
            let inside = |(start, end): &(u64, u64)| (*start..*end).contains(address);
            if let Some(index) = blocks.iter().position(inside) {
                *expected.entry((file.clone(), *line)).or_default() |= hit(index);
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
        assert_eq!(found, expected, "{flags:?}, seed {seed}");
        sums_of_all(&bench, &[&folder]);
    }
}

#[test]
fn lines_are_those_of_the_blocks_that_ran() {
    check(&["-g", "-O0"]);
    check(&["-g", "-O2"]);
    check(&["-g", "-O3", "-gdwarf-4"]);
}
