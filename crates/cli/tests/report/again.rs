//! Counters of earlier runs shown again.

use std::fs;

use crate::bench::Bench;

const COUNTING: &str = "
__attribute__((noinline)) int counted(int n) { int all = 0; while (n--) all += n & 3; return all; }
int main(int n, char **words) { (void)words; return counted(n) > 9 ? counted(n) : 0; }
";

/// A bench with two runs of a program, of one and of two words; their folders are named.
fn with_two_runs() -> (Bench, [String; 2]) {
    let bench = Bench::new();
    bench.build("counting", "counting.c", COUNTING, &["-O1", "-g"]);
    for words in [&["a"][..], &["a", "b"]] {
        let flags = ["count", "--format", "json", "--to", "told"];
        let said = bench.tomo(&[&flags[..], &["--", "./counting"], words].concat());
        assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
        fs::rename(
            bench.path("told"),
            bench.path(format!("told-{}", words.len())),
        )
        .expect("told");
    }
    let runs = fs::read_dir(bench.path("tomo-counts")).expect("runs");
    let names = runs.map(|run| format!("tomo-counts/{}", run.expect("run").file_name().display()));
    let names: Vec<String> = names.collect();
    let names = names.try_into().expect("two");
    (bench, names)
}

fn document(text: &[u8]) -> serde_json::Value {
    serde_json::from_slice(text).expect("JSON")
}

/// How often the function that is called so was entered, and all counts of its blocks together.
fn told(document: &serde_json::Value, name: &str) -> (u64, u64) {
    let functions = document["functions"].as_array().expect("functions");
    let function = functions.iter().find(|function| function["name"] == name);
    let function = function.expect("the function");
    let blocks = function["blocks"].as_array().expect("blocks").iter();
    let counts = blocks.map(|block| block["count"].as_u64().expect("a count"));
    (function["entered"].as_u64().expect("a count"), counts.sum())
}

#[test]
fn counters_of_a_run_are_shown_as_at_its_end() {
    let (bench, runs) = with_two_runs();
    let ends = ["told-1", "told-2"].map(|name| fs::read(bench.path(name)).expect("told"));
    let shown = runs.map(|run| {
        bench
            .tomo(&["count", "--format", "json", "--show", &run])
            .well()
    });
    assert!(shown.iter().all(|shown| {
        let shown = document(shown.as_bytes());
        ends.iter().any(|end| document(end) == shown)
    }));
    assert_ne!(shown[0], shown[1]);
}

#[test]
fn counters_of_several_runs_are_added_up() {
    let (bench, [one, other]) = with_two_runs();
    let ends = ["told-1", "told-2"].map(|name| fs::read(bench.path(name)).expect("told"));
    let flags = ["count", "--format", "json", "--show", &one, &other];
    let together = document(bench.tomo(&flags).well().as_bytes());
    let each = ends.each_ref().map(|end| told(&document(end), "counted"));
    let sum = (each[0].0 + each[1].0, each[0].1 + each[1].1);
    assert_eq!(sum.0, 2);
    assert_eq!(told(&together, "counted"), sum);
    // One that was killed in its first moments is named, and left out.
    let early = "tomo-counts/run-early";
    fs::create_dir(bench.path(early)).expect("a folder");
    let said = bench.tomo(&["count", "--format", "json", "--show", early, &one, &other]);
    let words = "left out: tomo-counts/run-early is no run of `tomo count`";
    assert!(said.err.contains(words), "{}", said.err);
    let together = document(said.out.as_bytes());
    assert_eq!((told(&together, "counted"), said.code), (sum, Some(0)));
}

#[test]
fn what_holds_no_counters_is_no_run_of_them() {
    let (bench, [run, _]) = with_two_runs();
    let said = bench.tomo(&["count", "--show", "tomo-counts"]);
    assert_eq!(said.code, Some(2));
    let words = "tomo-counts is no run of `tomo count`; a run's folder is called run-…";
    assert!(said.err.contains(words), "{}", said.err);
    let said = bench.tomo(&["paths", "--show", &run]);
    assert_eq!(said.code, Some(2));
    assert!(
        said.err.contains("is no run of `tomo paths`"),
        "{}",
        said.err
    );
    bench
        .tomo(&["count", "--format", "callgrind", "--show", &run])
        .well();
}

/// Build ids may be named by hand: what a program is, is told by all of its bytes.
#[test]
fn another_program_of_the_same_build_id_and_layout_is_another_one() {
    let bench = Bench::new();
    let (g, h) = (
        "__attribute__((noinline)) int g(int x) { if (x & 1) return x * 3; if (x > 10) return x / 7; return x + 1; }\n",
        "__attribute__((noinline)) int h(int x) { int s = 0; while (x > 1) { s += x; x -= 2; } return s; }\n",
    );
    let main = "int main(void) { int s = 0; for (int i = 0; i < 30; i++) s += g(i) + h(i); return s % 101; }\n";
    let flags = ["-O1", "-Wl,--build-id=0xfeedfacefeedface"];
    for (number, functions) in [[g, h], [h, g]].iter().enumerate() {
        bench.build("prog", "prog.c", &(functions.concat() + main), &flags);
        for command in ["cover", "count", "paths"] {
            let output = format!("out-{command}");
            let said = bench.tomo(&[command, "-o", &output, "--", "./prog"]);
            assert_eq!(said.code, Some(3078 % 101), "{command}: {}", said.err);
            assert!(command != "cover" || said.err.is_empty(), "{}", said.err);
        }
        let shown = bench.tomo(&["report", "out-cover", "--functions"]);
        let ran = shown.out.lines().filter(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            words.contains(&"g") || words.contains(&"h")
        });
        let whole = ran.filter(|line| line.contains(" 100 %") && !line.contains("0/1"));
        assert_eq!(whole.count(), 2, "{}", shown.out);
        let left_out = shown.err.lines().filter(|line| line.contains("left out"));
        assert_eq!(left_out.count(), number, "{}", shown.err);
    }
}
