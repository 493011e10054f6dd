//! What machines read, and where output goes: on a program compiled here.

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::bench::Bench;
use crate::sample;

const SOURCE: &str = r#"
#include <stdio.h>
#include <stdlib.h>
static int choose(int n) {
    switch (n) { case 0: return 7; case 1: return 9; case 2: puts("two"); return 1; case 3: return n * 3;
                 case 4: return 11; case 5: puts("five"); return 2; default: return n; }
}
int main(int count, char **words) {
    int sum = 0;
    for (int word = 0; word < count; word++) sum += choose(atoi(words[word]));
    if (sum > 99) exit(sum);
    return sum;
}
"#;

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

fn number(value: &Value) -> u64 {
    value.as_u64().expect("a number")
}

/// The summary and the functions, by the counts of which they must agree.
#[test]
fn the_summary_agrees_with_the_functions() {
    let bench = Bench::new();
    bench.compile("demo", SOURCE, &["-O1", "-g"]);
    let summary = json(&bench.tomo(&["map", "demo", "--format", "json"]).well());
    assert_eq!(summary["schema"], "tomo.map/1");
    assert_eq!(summary["cached"], false);
    let lines = bench.tomo(&["map", "demo", "--format", "jsonl"]).well();
    let functions: Vec<Value> = lines.lines().map(json).collect();
    let array = json(
        &bench
            .tomo(&["map", "demo", "--format", "json", "--functions"])
            .well(),
    );
    assert_eq!(array.as_array(), Some(&functions));
    let sum = |list: &str| {
        functions
            .iter()
            .map(|f| f[list].as_array().expect("a list").len() as u64)
            .sum::<u64>()
    };
    assert_eq!(
        number(&summary["functions"]["total"]),
        functions.len() as u64
    );
    assert_eq!(number(&summary["blocks"]), sum("blocks"));
    assert_eq!(number(&summary["call_sites"]), sum("calls"));
    assert_eq!(
        number(&summary["indirect_jumps"]["total"]),
        sum("indirect_jumps")
    );
    let blocks = functions
        .iter()
        .flat_map(|f| f["blocks"].as_array().expect("a list"));
    let edges = blocks
        .map(|block| block["successors"].as_array().expect("a list").len() as u64)
        .sum::<u64>();
    assert_eq!(number(&summary["edges"]), edges);
    for field in [
        "seconds",
        "peak_memory_bytes",
        "text_bytes",
        "text_bytes_exact",
        "branch_sites",
        "return_sites",
    ] {
        assert!(summary[field].is_number(), "{field}");
    }
    assert!(summary["build_id"].is_string() || summary["build_id"].is_null());
}

#[test]
fn a_function_has_what_its_schema_says() {
    let bench = Bench::new();
    bench.compile("demo", SOURCE, &["-O1", "-g"]);
    let main = json(
        &bench
            .tomo(&["map", "demo", "--function", "main", "--format", "jsonl"])
            .well(),
    );
    assert_eq!(
        (main["schema"].as_str(), main["name"].as_str()),
        (Some("tomo.function/1"), Some("main"))
    );
    assert_eq!(
        (main["status"].as_str(), &main["reason"]),
        (Some("exact"), &Value::Null)
    );
    let blocks = main["blocks"].as_array().expect("a list");
    let starts: Vec<_> = blocks
        .iter()
        .map(|block| number(&block["address"]))
        .collect();
    assert!(starts.contains(&number(&main["address"])) && starts.is_sorted());
    assert!(blocks.iter().any(|block| {
        block["file"]
            .as_str()
            .is_some_and(|file| file.ends_with("source.c"))
    }));
    let edges = blocks
        .iter()
        .flat_map(|block| block["successors"].as_array().expect("a list"));
    for edge in edges {
        assert!(starts.contains(&number(&edge["address"])), "{edge}");
        assert!(edge["kind"].is_string());
    }
}

/// The second time nothing is analysed, and the first line of the JSON is the same.
#[test]
fn the_second_time_it_is_cached() {
    let bench = Bench::new();
    bench.compile("demo", SOURCE, &["-O1"]);
    let summary = |flags: &[&str]| {
        json(
            &bench
                .tomo(&[&["map", "demo", "--format", "json"], flags].concat())
                .well(),
        )
    };
    assert_eq!(summary(&["--no-cache"])["cached"], false);
    assert!(bench.cache_is_untouched());
    let (first, second) = (summary(&[]), summary(&[]));
    assert_eq!(
        (&first["cached"], &second["cached"]),
        (&false.into(), &true.into())
    );
    for field in [
        "functions",
        "blocks",
        "edges",
        "patchability",
        "analysis_seconds",
        "fingerprint",
    ] {
        assert_eq!(first[field], second[field], "{field}");
    }
    assert_eq!(summary(&["--refresh"])["cached"], false);
    assert_eq!(summary(&[])["cached"], true);
}

/// A damaged model: a warning, and the same answer as before.
#[test]
fn damaged_models_cost_a_warning() {
    let bench = Bench::new();
    bench.compile("demo", SOURCE, &["-O1"]);
    let before = bench.tomo(&["map", "demo", "--functions"]).well();
    let models = fs::read_dir(bench.path("cache/models"))
        .expect("kept")
        .flatten();
    let model = models.map(|entry| entry.path()).next().expect("kept");
    let mut bytes = fs::read(&model).expect("readable");
    *bytes.last_mut().expect("bytes") ^= 1;
    fs::write(&model, bytes).expect("written");
    let said = bench.tomo(&["map", "demo", "--functions"]);
    assert_eq!((said.code, said.out), (Some(0), before.clone()));
    assert!(
        said.err
            .starts_with("tomo: warning: cached model not used: ")
            && said.err.lines().count() == 1
    );
    assert_eq!(bench.tomo(&["map", "demo", "--functions"]).well(), before);
}

#[test]
fn commands_are_found_on_the_path_unless_a_file_has_the_name() {
    let bench = Bench::new();
    fs::create_dir(bench.path("elsewhere")).expect("made");
    bench.program_with("demo", sample::functions(), sample::facts());
    let page = bench.tomo(&["map", "demo"]).well();
    assert_eq!(page.lines().next(), Some("demo"));
    let elsewhere = bench.path("elsewhere/demo");
    fs::rename(bench.path("demo"), &elsewhere).expect("moved");
    fs::set_permissions(&elsewhere, fs::Permissions::from_mode(0o755)).expect("set");
    assert_eq!(
        bench.tomo(&["map", "demo"]).refusal(),
        "tomo: demo: no such file or directory"
    );
    let mut command = Command::new(env!("CARGO_BIN_EXE_tomo"));
    command.args(["map", "demo"]).current_dir(bench.path("."));
    command
        .env("PATH", bench.path("elsewhere"))
        .env("TOMO_CACHE_DIR", bench.path("cache"));
    let output = command.output().expect("tomo runs");
    let page = String::from_utf8(output.stdout).expect("UTF-8");
    assert_eq!(
        page.lines().next(),
        Some(elsewhere.to_str().expect("UTF-8"))
    );
}

#[test]
fn output_goes_where_it_is_sent() {
    let bench = Bench::new();
    bench.program_with("demo", sample::functions(), sample::facts());
    let page = bench.tomo(&["map", "demo", "--functions"]).well();
    assert_eq!(
        bench
            .tomo(&["map", "demo", "--functions", "-o", "list"])
            .well(),
        ""
    );
    assert_eq!(
        fs::read_to_string(bench.path("list")).expect("written"),
        page
    );
}

/// Who has read enough stops reading, and that is no error.
#[test]
fn a_closed_pipe_is_no_error() {
    let bench = Bench::new();
    let mut functions = Vec::new();
    for number in 0..4000 {
        let mut function = sample::functions().remove(2);
        function.entry = tomo_program::Address(0x1_0000 + number * 16);
        function.ranges = vec![tomo_program::Range::sized(function.entry, 5).expect("small")];
        functions.push(function);
    }
    bench.program_with("demo", functions, sample::facts());
    let mut child = Command::new(env!("CARGO_BIN_EXE_tomo"))
        .args(["map", "demo", "--format", "jsonl"])
        .current_dir(bench.path("."))
        .env("TOMO_CACHE_DIR", bench.path("cache"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("tomo runs");
    let mut start = [0; 10];
    child
        .stdout
        .take()
        .expect("piped")
        .read_exact(&mut start)
        .expect("a beginning");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
}
