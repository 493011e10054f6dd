//! Programs that nobody wrote: loops within loops, jumps into them, recursion, tables of cases and of functions, exceptions. Their
//! traces are what single steps say, in one run and in several.

use std::fmt::Write as _;
use std::fs;

use proptest::prelude::Rng as _;
use proptest::test_runner::{RngAlgorithm, TestRng};
use tomo_testkit::corpus::{Built, Workload, compiled};

use super::kit::compare;

/// Functions of a program.
const FUNCTIONS: u32 = 7;

/// Writes a program.
struct Writer {
    random: TestRng,
    text: String,
    labels: u32,
}

const BEGIN: &str = "\
#include <cstdio>
static volatile unsigned state, sum;
static volatile int fuel = 3000;
static unsigned next() { state = state * 1664525u + 1013904223u; return state >> 16; }
typedef void (*function)(int);
extern function const table[];
";

impl Writer {
    fn below(&mut self, limit: u32) -> u32 {
        self.random.next_u32() % limit
    }

    fn line(&mut self, text: &str) {
        let _ = writeln!(self.text, "{text}");
    }

    fn program(mut self) -> String {
        for at in 0..FUNCTIONS {
            self.line(&format!("static void f{at}(int);"));
        }
        for at in 0..FUNCTIONS {
            self.line(&format!(
                "__attribute__((noinline)) static void f{at}(int depth) {{"
            ));
            self.line("if (depth > 7 || fuel-- <= 0) return;");
            for _ in 0..=self.below(3) {
                self.statement(3);
            }
            self.line("}");
        }
        let names: Vec<String> = (0..FUNCTIONS).map(|at| format!("f{at}")).collect();
        self.line(&format!(
            "function const table[] = {{ {} }};",
            names.join(", ")
        ));
        self.line("int main() { for (int at = 0; at < 6; at++) {");
        self.line(
            "try { state = state * 31 + at; table[at](0); } catch (int thrown) { sum += thrown; }",
        );
        self.line("} std::printf(\"%u\\n\", sum); }");
        self.text
    }

    fn statement(&mut self, depth: u32) {
        let kinds = if depth == 0 { 4 } else { 11 };
        match self.below(kinds) {
            0 => {
                let number = self.below(1000);
                self.line(&format!("sum += next() ^ {number};"));
            }
            1 => {
                let callee = self.below(FUNCTIONS);
                self.line(&format!("f{callee}(depth + 1);"));
            }
            2 => self.line(&format!("table[next() % {FUNCTIONS}](depth + 1);")),
            3 => self.line("if (next() % 5 == 0) return;"),
            4 | 5 => {
                self.line("if (next() & 64) {");
                self.statement(depth - 1);
                self.line("} else {");
                self.statement(depth - 1);
                self.line("}");
            }
            6 => {
                let rounds = 2 + self.below(5);
                self.line(&format!(
                    "for (int round = next() % {rounds}; round > 0 && fuel-- > 0; round--) {{"
                ));
                self.statement(depth - 1);
                self.statement(depth - 1);
                self.line("}");
            }
            7 => self.cases(depth),
            8 => self.write_entry_of_loop(depth),
            9 => {
                let thrown = self.below(100);
                self.line(&format!(
                    "if (depth > 0 && next() % 9 == 0) throw {thrown};"
                ));
            }
            _ => {
                self.line("try {");
                self.statement(depth - 1);
                self.line("} catch (int thrown) { sum ^= thrown;");
                self.statement(depth - 1);
                self.line("}");
            }
        }
    }

    fn cases(&mut self, depth: u32) {
        let count = 4 + self.below(6);
        self.line(&format!("switch (next() % {}) {{", count + 1));
        for case in 0..count {
            self.line(&format!("case {case}:"));
            self.statement(depth - 1);
            if self.below(3) > 0 {
                self.line("break;");
            }
        }
        self.line("}");
    }

    /// A loop with two entries.
    fn write_entry_of_loop(&mut self, depth: u32) {
        let label = self.labels;
        self.labels += 1;
        self.line(&format!("if (next() & 8) goto middle{label};"));
        self.line(&format!("again{label}: sum += 3;"));
        self.statement(0);
        self.line(&format!("middle{label}: sum ^= 5;"));
        self.statement(depth - 1);
        self.line(&format!("if (fuel-- > 0 && next() % 3) goto again{label};"));
    }
}

/// Traces of the program with this number, held against single steps.
fn check(seed: u8, tool: &str, level: &str, ways: &[&[&str]]) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut writer = Writer {
        random: TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]),
        text: BEGIN.into(),
        labels: 0,
    };
    let _ = writeln!(writer.text, "// {seed}");
    let source = folder.path().join("generated.cpp");
    fs::write(&source, writer.program()).expect("written");
    let program = compiled(tool, source.to_str().expect("UTF-8"), &[level]);
    let built = Built {
        program: program.expect("built"),
        name: format!("generated {seed} {tool} {level}"),
        workloads: vec![Workload::default()],
    };
    compare(&built, ways, folder.path());
}

#[test]
fn traces_of_generated_programs_are_exact() {
    let tools = ["g++", "clang++-19"];
    let levels = ["-O0", "-O1", "-O2", "-O3"];
    for seed in 0..8 {
        let at = usize::from(seed);
        let runs = (2 + at % 6).to_string();
        let strategy = ["fine", "function", "optimized"][at % 3];
        let witness = ["auto", "edge", "node"][at / 2 % 3];
        let many = [
            "--runs",
            &runs,
            "--strategy",
            strategy,
            "--witness",
            witness,
        ];
        check(seed, tools[at % 2], levels[at / 2 % 4], &[&[], &many]);
    }
}

#[test]
fn breakpoints_tell_of_generated_programs_what_happens() {
    let ways: [&[&str]; 2] = [
        &["--collect", "breakpoint"],
        &["--collect", "breakpoint", "--runs", "3", "-j", "2"],
    ];
    check(100, "g++", "-O2", &ways);
    check(101, "clang++-19", "-O1", &ways);
}
