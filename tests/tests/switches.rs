//! Switches and computed gotos of all kinds do under observation what they do alone: where a table begins and ends, and what its
//! index may be, is nowhere written in the program.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use tomo_testkit::coverage::complete;

/// How a function chooses.
#[derive(Clone, Debug)]
enum Choice {
    /// By a switch over a value of this type; whether other values than the cases may occur, or what happens then.
    Switch {
        of: &'static str,
        otherwise: &'static str,
    },
    /// By a table of labels, or of their offsets; whether what is jumped to is kept in a variable.
    Labels { offsets: bool, kept: bool },
}

/// A function: its first value, and its cases in their order in the source, each with what it does and whether it ends there.
#[derive(Clone, Debug)]
struct Function {
    choice: Choice,
    low: i64,
    cases: Vec<(i64, &'static str, bool)>,
}

const DEEDS: [&str; 8] = [
    "v++;",
    "v += v;",
    "v ^= 3;",
    "v -= 2;",
    "v <<= 1;",
    "all += v;",
    "v = ~v;",
    "v *= 3;",
];

const TYPES: [&str; 6] = [
    "int",
    "long",
    "signed char",
    "short",
    "unsigned",
    "unsigned char",
];
/// What happens where no case is met; mostly that cannot be.
const OTHERWISE: [&str; 3] = [
    "__builtin_unreachable();",
    "__builtin_unreachable();",
    "v += 77;",
];

fn choices() -> impl Strategy<Value = Choice> {
    let switches = (select(&TYPES), select(&OTHERWISE));
    let switches = switches.prop_map(|(of, otherwise)| Choice::Switch { of, otherwise });
    let labels = any::<(bool, bool)>();
    let labels = labels.prop_map(|(offsets, kept)| Choice::Labels { offsets, kept });
    prop_oneof![3 => switches, 1 => labels]
}

fn functions() -> impl Strategy<Value = Function> {
    let lows = select(&[0_i64, 0, -1, -2, -5, 1, 7, -100][..]);
    let cases = (4..12_usize).prop_flat_map(|count| {
        let deed = (select(&DEEDS), any::<bool>());
        let deeds = prop::collection::vec(deed, count);
        let order = Just((0..count as i64).collect::<Vec<_>>()).prop_shuffle();
        let kept = subsequence((0..count).collect::<Vec<_>>(), count / 2..=count);
        (order, deeds, kept)
    });
    (choices(), lows, cases).prop_map(|(choice, low, (order, deeds, kept))| {
        let is_unsigned = matches!(choice, Choice::Switch { of, .. } if of.starts_with("unsigned"));
        let low = if is_unsigned { low.abs() } else { low };
        let all = order.into_iter().zip(deeds).enumerate();
        let is_label = matches!(choice, Choice::Labels { .. });
        // A table of labels has no holes.
        let cases = all.filter(|(at, _)| is_label || kept.contains(at));
        let cases = cases.map(|(_, (value, (deed, ends)))| (low + value, deed, ends));
        let cases = cases.collect();
        Function { choice, low, cases }
    })
}

impl Function {
    /// The type of what is chosen by.
    fn of(&self) -> &'static str {
        match self.choice {
            Choice::Switch { of, .. } => of,
            Choice::Labels { .. } => "long",
        }
    }

    /// What it does, but for the last `return`.
    fn body(&self) -> String {
        let mut body = String::new();
        let last = self.cases.len() - 1;
        for (at, (value, deed, ends)) in self.cases.iter().enumerate() {
            let (label, end) = match self.choice {
                Choice::Switch { .. } => (format!("case {value}"), "break;"),
                Choice::Labels { .. } => (format!("L{}", value - self.low), "return v;"),
            };
            // What is said never to be reached must not be run into.
            let end = if *ends || at == last { end } else { "" };
            let _ = writeln!(body, "    {label}: {deed} {end}");
        }
        match self.choice {
            Choice::Switch { otherwise, .. } => {
                format!("  switch (x) {{\n{body}    default: {otherwise}\n  }}\n")
            }
            Choice::Labels { offsets, kept } => {
                let (labels, goto) = self.labels(offsets, kept);
                format!("  {labels}\n  {goto}\n{body}")
            }
        }
    }

    fn labels(&self, offsets: bool, kept: bool) -> (String, String) {
        let labels = (0..self.cases.len()).map(|label| match offsets {
            true => format!("&&L{label} - &&L0"),
            false => format!("&&L{label}"),
        });
        let labels = labels.collect::<Vec<_>>().join(", ");
        let word = format!("o[x - ({})]", self.low);
        match (offsets, kept) {
            (true, true) => (
                format!("static int o[] = {{{labels}}};"),
                format!("void *q = (char *)&&L0 + {word}; v++; goto *q;"),
            ),
            (true, false) => (
                format!("static const int o[] = {{{labels}}};"),
                format!("goto *((char *)&&L0 + {word});"),
            ),
            (false, _) => (
                format!("static void *const o[] = {{{labels}}};"),
                format!("goto *{word};"),
            ),
        }
    }

    /// Calls it with each of its values, which are in no order.
    fn calls(&self, number: usize) -> String {
        let call = |(value, ..): &(i64, _, _)| {
            format!("  printf(\"%ld \", f{number}({value}, {}));\n", value * 7)
        };
        self.cases.iter().map(call).collect()
    }
}

/// The functions, of which each that follows one with a `switch` has that in it, too.
fn program(functions: &[Function]) -> String {
    let mut text =
        String::from("#include <stdio.h>\n#define APART __attribute__((noinline, noclone))\n");
    text.push_str("#define WITHIN static inline __attribute__((always_inline))\n");
    text.push_str("static volatile long all, which;\n");
    let mut main = String::from("int main(void) {\n");
    let mut before = String::new();
    for (number, function) in functions.iter().enumerate() {
        let (of, body) = (function.of(), function.body());
        let start = format!("long f{number}({of} x, long v) {{\n{before}");
        let _ = writeln!(text, "APART {start}{body}  return v;\n}}");
        main.push_str(&function.calls(number));
        before.clear();
        if let Choice::Switch { .. } = function.choice {
            let _ = writeln!(
                text,
                "WITHIN long g{number}({of} x, long v) {{\n{body}  return v;\n}}"
            );
            before = format!("  v += g{number}(({of})which, v);\n");
            let _ = writeln!(main, "  which = {};", function.cases[0].0);
        }
    }
    let end = "  printf(\"%ld\\n\", all);\n  return 0;\n}\n";
    format!("{text}{main}{end}")
}

const BUILDS: [&str; 6] = [
    "gcc -O0",
    "gcc -O1",
    "gcc -O2",
    "gcc -Os -fno-pie -no-pie",
    "clang-19 -O1 -fno-pie -no-pie",
    "clang-19 -O2",
];

/// The program built in this way.
fn build(folder: &Path, source: &str, way: &str) {
    fs::write(folder.join("program.c"), source).expect("written");
    let words: Vec<&str> = way.split(' ').collect();
    let mut command = Command::new(words[0]);
    command
        .args(&words[1..])
        .args(["-fwrapv", "-w", "-o", "program", "program.c"]);
    let built = command.current_dir(folder).output().expect("a compiler");
    assert!(
        built.status.success(),
        "{way}: {}\n{source}",
        String::from_utf8_lossy(&built.stderr)
    );
}

fn run(folder: &Path, way: &str) -> Output {
    let program = folder.join("program");
    let mut command = match way {
        "" => Command::new(&program),
        _ => Command::new(tomo_testkit::tomo::path().expect("tomo")),
    };
    if !way.is_empty() {
        command
            .args(way.split(' '))
            .arg("-o")
            .arg(folder.join("out"));
        command.env("TOMO_CACHE_DIR", folder.join("cache"));
        command.arg("--").arg(&program);
    }
    complete(command, b"").expect("run")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, max_shrink_iters: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_chooses_chooses_the_same(
        functions in prop::collection::vec(functions(), 8),
        way in select(&BUILDS),
    ) {
        let folder = tempfile::tempdir().expect("a folder");
        let source = program(&functions);
        build(folder.path(), &source, way);
        let alone = run(folder.path(), "");
        for observed in ["cover", "cover --level edge", "count", "trace"] {
            let got = run(folder.path(), observed);
            prop_assert_eq!(&got.stdout, &alone.stdout, "{}, {}\n{}", way, observed, &source);
            prop_assert_eq!(got.status, alone.status, "{}, {}\n{}", way, observed, &source);
        }
    }
}
