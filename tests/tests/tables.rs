//! Tables tell of what ran alone, and find out no more than that; documents tell of everything. Of one run both say the
//! same.

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tomo_export::words::grouped;
use tomo_testkit::corpus::{Built, Compiler, Level, Recipe, Source, build};
use tomo_testkit::coverage::complete;
use tomo_testkit::tomo;

/// What a command says of the program's first workload: the table, and the document that `options` ask for.
fn said(built: &Built, command: &str, options: &[&str]) -> (String, Value) {
    let folder = tempfile::tempdir().expect("a folder");
    let workload = &built.workloads[0];
    let told = |options: &[&str]| {
        let file = folder.path().join("told");
        let mut tomo = Command::new(tomo::path().expect("tomo"));
        tomo.env("TOMO_CACHE_DIR", folder.path().join("cache"))
            .current_dir(folder.path())
            .args([command, "--to"])
            .arg(&file)
            .args(options)
            .arg("--")
            .arg(&built.program)
            .args(&workload.args);
        let input = workload.stdin.as_deref().unwrap_or_default();
        complete(tomo, input).expect("run");
        std::fs::read_to_string(&file).expect("told")
    };
    let document = serde_json::from_str(&told(options)).expect("a document");
    (told(&[]), document)
}

fn bzip2() -> Built {
    build(&Recipe::new(Source::Bzip2, Compiler::Gcc, Level::O2)).expect("built")
}

fn list<'v>(of: &'v Value, key: &str) -> &'v [Value] {
    of[key].as_array().map_or(&[], Vec::as_slice)
}

/// How many lines of a table begin with numbers, and how many more it says there are.
fn rows(table: &str, more: &str) -> usize {
    let first = |line: &str| line.split_whitespace().next().map(str::to_owned);
    let numbered = table.lines().take_while(|line| !line.is_empty());
    let is_row = |line: &&str| {
        let first = first(line).unwrap_or_default();
        first.parse::<u64>().is_ok() && !line.contains(more)
    };
    let rows = numbered.clone().filter(is_row).count();
    let others = table.lines().find(|line| line.contains(more));
    let others = others
        .and_then(first)
        .and_then(|first| first.parse::<usize>().ok());
    rows + others.unwrap_or(0)
}

#[test]
fn a_table_of_counts_says_what_the_document_says() {
    let (table, document) = said(&bzip2(), "count", &["--format", "json"]);
    let functions = list(&document, "functions").iter();
    let mut ran: Vec<(u64, u64, &str)> = functions
        .map(|function| {
            let blocks = list(function, "blocks").iter();
            let blocks = blocks.filter_map(|block| block["count"].as_u64()).sum();
            let entered = function["entered"].as_u64().unwrap_or(0);
            (entered, blocks, function["name"].as_str().expect("a name"))
        })
        .filter(|(entered, ..)| *entered > 0)
        .collect();
    ran.sort_unstable();
    assert!(ran.len() > 30, "{}", ran.len());
    assert_eq!(rows(&table, "more functions ran"), ran.len(), "{table}");
    let (entered, blocks, name) = ran.last().expect("the most");
    let line = format!("{entered:>16} {blocks:>16}  {name}");
    assert!(table.lines().any(|shown| shown == line), "{line}: {table}");
    let uncounted = list(&document, "uncounted").len();
    let said = format!("{uncounted} functions could not be counted");
    assert_eq!(table.contains(&said), uncounted > 0, "{table}");
}

#[test]
fn a_table_of_paths_says_what_the_document_says() {
    let (table, document) = said(&bzip2(), "paths", &["--format", "json"]);
    let functions = list(&document, "functions").iter();
    let counts: Vec<u64> = functions
        .flat_map(|function| list(function, "paths"))
        .filter_map(|path| path["count"].as_u64().filter(|count| *count > 0))
        .collect();
    assert!(counts.len() > 100, "{}", counts.len());
    assert_eq!(rows(&table, "more paths ran"), counts.len(), "{table}");
}

#[test]
fn a_table_of_predicates_says_what_the_document_says() {
    let (table, document) = said(&bzip2(), "predicates", &["--json"]);
    let sites = list(&document, "sites");
    let is_true = |case: &&Value| case["true"] == true;
    let trues = |site: &Value| list(site, "predicates").iter().filter(is_true).count();
    let seen = sites.iter().filter(|site| trues(site) > 0).count();
    assert!(seen > 100, "{seen}");
    let (lines, remarks) = table.split_once("\n\n").expect("remarks");
    assert_eq!(lines.lines().count(), seen, "{table}");
    let grouped = grouped(sites.iter().map(trues).sum::<usize>() as u64);
    assert!(remarks.starts_with(&format!("{grouped} of ")), "{remarks}");
    assert!(Path::new(document["module"].as_str().expect("a module")).exists());
}
