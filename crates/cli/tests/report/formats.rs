//! Each format, of a program whose blocks are known to the byte, read back by the format's own rules.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::bench::{BLOCKS, Bench, RAN, Seen};
use tomo_wire::plan::Level;

#[test]
fn the_table() {
    let bench = Bench::with_a_run();
    let shown = bench.tomo(&["report"]).well();
    insta::assert_snapshot!("table", bench.table(&shown));
    let shown = bench.tomo(&["report", "--functions"]).well();
    insta::assert_snapshot!("table_with_functions", bench.table(&shown));
    assert!(shown.lines().all(|line| line.chars().count() <= 80));
    assert!(
        !shown.contains('\u{1b}'),
        "no colours where it is no terminal"
    );
}

/// With functions only, nothing is said of lines.
#[test]
fn the_table_of_functions() {
    let bench = Bench::new();
    let program = bench.sample();
    let mut seen = Seen::blocks(&RAN);
    seen.level = Level::Function;
    seen.probes
        .retain(|(at, _)| [0x1000, 0x1017, 0x101f].contains(at));
    bench.run("tomo-out", 1, &program, &seen);
    let shown = bench.tomo(&["report"]).well();
    insta::assert_snapshot!("table_of_functions", bench.table(&shown));
    let lcov = bench.tomo(&["report", "--format", "lcov"]).well();
    assert!(lcov.contains("FNDA:1,main") && lcov.contains("FNDA:0,unused"));
    assert!(!lcov.contains("\nDA:") && !lcov.contains("\nBRDA:"));
    let refused = bench.tomo(&["report", "--format", "drcov"]);
    assert_eq!(refused.code, Some(2));
}

/// A stripped program is shown by function.
#[test]
fn the_table_of_a_program_without_lines() {
    let bench = Bench::new();
    let flags = [
        "-nostdlib",
        "-nostartfiles",
        "-Wl,-e,main",
        "-Wl,--build-id",
        "-Wl,-S",
    ];
    let program = bench.build("plain", "sample.s", crate::bench::SAMPLE, &flags);
    bench.run("tomo-out", 1, &program, &Seen::blocks(&RAN));
    // By this name, so that the table is as wide wherever it is made.
    let shown = bench.tomo(&["report", "--program", "plain"]).well();
    insta::assert_snapshot!("table_without_lines", bench.table(&shown));
}

/// A tracefile read by the rules of geninfo(1): files, each with its records by tag.
pub(crate) fn lcov(text: &str) -> BTreeMap<String, BTreeSet<(String, Vec<String>)>> {
    let mut files = BTreeMap::new();
    let mut open: Option<(String, BTreeSet<_>)> = None;
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        if line == "end_of_record" {
            let (name, records) = open.take().expect("a record is open");
            assert!(files.insert(name, records).is_none(), "a file twice");
            continue;
        }
        let (tag, rest) = line.split_once(':').expect("a tag");
        let count = match tag {
            "TN" => {
                assert!(open.is_none() && rest.is_empty());
                continue;
            }
            "SF" => {
                assert!(open.replace((rest.to_owned(), BTreeSet::new())).is_none());
                continue;
            }
            "FN" | "FNDA" | "DA" => 2,
            "BRDA" => 4,
            "FNF" | "FNH" | "LF" | "LH" | "BRF" | "BRH" => 1,
            other => panic!("no such tag: {other}"),
        };
        let fields: Vec<String> = rest.splitn(count, ',').map(str::to_owned).collect();
        assert_eq!(fields.len(), count, "{line}");
        let record = (tag.to_owned(), fields);
        let (_, records) = open.as_mut().expect("a file is open");
        assert!(records.insert(record), "{line} twice");
    }
    assert!(open.is_none(), "the last record is closed");
    files.iter().for_each(|(_, records)| check_sums(records));
    files
}

/// What is counted must be there as often as it says.
fn check_sums(records: &BTreeSet<(String, Vec<String>)>) {
    let all = |tag: &str| {
        let tag = tag.to_owned();
        records.iter().filter(move |(known, _)| *known == tag)
    };
    for (list, found, hit, field) in [
        ("DA", "LF", "LH", 1),
        ("BRDA", "BRF", "BRH", 3),
        ("FNDA", "FNF", "FNH", 0),
    ] {
        let stated = |tag: &str| {
            all(tag).next().expect(tag).1[0]
                .parse::<usize>()
                .expect(tag)
        };
        assert_eq!(all(list).count(), stated(found), "{list}");
        let hits = all(list).filter(|(_, fields)| !["0", "-"].contains(&fields[field].as_str()));
        assert_eq!(hits.count(), stated(hit), "{list}");
    }
    assert_eq!(all("FN").count(), all("FNDA").count());
}

fn records(list: &[&str]) -> BTreeSet<(String, Vec<String>)> {
    let record = |line: &&str| {
        let (tag, rest) = line.split_once(':').expect("a tag");
        (tag.to_owned(), rest.split(',').map(str::to_owned).collect())
    };
    list.iter().map(record).collect()
}

#[test]
fn the_tracefile() {
    let bench = Bench::with_a_run();
    let files = lcov(&bench.tomo(&["report", "--format", "lcov"]).well());
    let a = records(&[
        "FN:3,main",
        "FN:20,helper",
        "FNDA:1,main",
        "FNDA:1,helper",
        "FNF:2",
        "FNH:2",
        "BRDA:3,0,0,0",
        "BRDA:3,0,1,1",
        "BRDA:20,0,0,1",
        "BRDA:20,0,1,0",
        "BRF:4",
        "BRH:2",
        "DA:3,1",
        "DA:4,1",
        "DA:5,1",
        "DA:7,0",
        "DA:9,1",
        "DA:20,1",
        "DA:21,0",
        "DA:23,1",
        "LF:8",
        "LH:6",
    ]);
    let b = records(&[
        "FN:30,unused",
        "FNDA:0,unused",
        "FNF:1",
        "FNH:0",
        "BRF:0",
        "BRH:0",
        "DA:12,1",
        "DA:30,0",
        "LF:2",
        "LH:1",
    ]);
    let names = ["/src/demo/a.c", "/src/demo/lib/b.h"].map(str::to_owned);
    assert_eq!(files, BTreeMap::from_iter(names.into_iter().zip([a, b])));
}

/// The public DTD, as far as it says what may be in what, and which attributes must be there.
fn check_cobertura(node: roxmltree::Node<'_, '_>) {
    const RATES: [&str; 2] = ["line-rate", "branch-rate"];
    let (children, attributes): (&[&str], &[&str]) = match node.tag_name().name() {
        "coverage" => (
            &["sources", "packages"],
            &[
                "lines-covered",
                "lines-valid",
                "branches-covered",
                "branches-valid",
                "complexity",
                "version",
                "timestamp",
            ],
        ),
        "sources" => (&["source*"], &[]),
        "packages" => (&["package*"], &[]),
        "package" => (&["classes"], &["name", "complexity"]),
        "classes" => (&["class*"], &[]),
        "class" => (&["methods", "lines"], &["name", "filename", "complexity"]),
        "methods" => (&["method*"], &[]),
        "method" => (&["lines"], &["name", "signature"]),
        "lines" => (&["line*"], &[]),
        "line" => (&["conditions*"], &["number", "hits"]),
        "conditions" => (&["condition*"], &[]),
        "condition" => (&[], &["number", "type", "coverage"]),
        "source" => (&[], &[]),
        other => panic!("no such element: {other}"),
    };
    let rated = ["coverage", "package", "class", "method"].contains(&node.tag_name().name());
    for name in attributes.iter().chain(RATES.iter().filter(|_| rated)) {
        assert!(node.has_attribute(*name), "{name} of {node:?}");
    }
    let inside = node.children().filter(roxmltree::Node::is_element);
    let names: Vec<_> = inside
        .clone()
        .map(|child| child.tag_name().name())
        .collect();
    match children {
        [many] if many.ends_with('*') => {
            assert!(
                names.iter().all(|name| *name == many.trim_end_matches('*')),
                "{names:?}"
            );
        }
        exactly => assert_eq!(names, *exactly, "in {node:?}"),
    }
    inside.for_each(check_cobertura);
}

#[test]
fn cobertura() {
    let bench = Bench::with_a_run();
    let text = bench.tomo(&["report", "--format", "cobertura"]).well();
    let options = roxmltree::ParsingOptions {
        allow_dtd: true,
        ..Default::default()
    };
    let document = roxmltree::Document::parse_with_options(&text, options).expect("XML");
    check_cobertura(document.root_element());
    let of_line = |file: &str, line: &str| {
        let class = document
            .descendants()
            .find(|node| node.attribute("filename") == Some(file));
        let mut lines = class
            .expect(file)
            .children()
            .filter(|node| node.has_tag_name("lines"));
        let line = lines
            .next_back()
            .expect("lines")
            .children()
            .find(|it| it.attribute("number") == Some(line));
        let line = line.expect("a line");
        (line.attribute("hits"), line.attribute("condition-coverage"))
    };
    assert_eq!(of_line("a.c", "3"), (Some("1"), Some("50% (1/2)")));
    assert_eq!(of_line("a.c", "7"), (Some("0"), None));
    assert_eq!(of_line("lib/b.h", "12"), (Some("1"), None));
    assert_eq!(
        document.root_element().attribute("lines-covered"),
        Some("7")
    );
    assert_eq!(
        document.root_element().attribute("timestamp"),
        Some("1700000000")
    );
}

/// The log, as Lighthouse reads it: names of modules, and blocks as module, offset and size.
fn drcov(bytes: &[u8]) -> (Vec<String>, BTreeSet<(u16, u32, u16)>) {
    let mut rest = bytes;
    let mut line = || {
        let end = rest.iter().position(|byte| *byte == b'\n').expect("a line");
        let (line, after) = rest.split_at(end);
        rest = &after[1..];
        String::from_utf8(line.to_vec()).expect("UTF-8")
    };
    assert_eq!(line(), "DRCOV VERSION: 2");
    assert!(line().starts_with("DRCOV FLAVOR: "));
    let table = line();
    let count = table
        .strip_prefix("Module Table: version 2, count ")
        .expect("a table");
    assert_eq!(line(), "Columns: id, base, end, entry, path");
    let modules: Vec<String> = (0..count.parse().expect("a number"))
        .map(|_| line())
        .collect();
    let blocks = line();
    let blocks = blocks
        .strip_prefix("BB Table: ")
        .and_then(|it| it.strip_suffix(" bbs"));
    let blocks: usize = blocks.expect("a table").parse().expect("a number");
    assert_eq!(rest.len(), blocks * 8);
    let block = |entry: &[u8]| {
        let short = |at: usize| u16::from_le_bytes([entry[at], entry[at + 1]]);
        let start = u32::from_le_bytes(entry[..4].try_into().expect("four"));
        (short(6), start, short(4))
    };
    (modules, rest.chunks_exact(8).map(block).collect())
}

#[test]
fn the_log_of_blocks() {
    let bench = Bench::with_a_run();
    bench
        .tomo(&["report", "--format", "drcov", "-o", "log"])
        .well();
    let (modules, blocks) = drcov(&std::fs::read(bench.path("log")).expect("written"));
    assert_eq!(modules.len(), 1);
    let fields: Vec<_> = modules[0].split(',').map(str::trim).collect();
    assert_eq!((fields[0], fields[1]), ("0", "0x0000000000000000"));
    assert_eq!(fields[4], bench.path("sample").to_str().expect("UTF-8"));
    let starts: Vec<u64> = blocks
        .iter()
        .map(|(_, start, _)| u64::from(*start))
        .collect();
    assert_eq!(starts, RAN);
    assert_eq!(
        blocks
            .iter()
            .map(|(_, _, size)| u64::from(*size))
            .sum::<u64>(),
        4 + 10 + 2 + 2 + 5 + 2
    );
}

pub(crate) fn json(bench: &Bench, arguments: &[&str]) -> Value {
    let said = bench.tomo(&[&["report", "--format", "json"], arguments].concat());
    serde_json::from_str(&said.well()).expect("JSON")
}

/// State and how it is known, by block.
fn blocks_of(document: &Value) -> BTreeMap<u64, (String, String)> {
    let functions = document["modules"][0]["functions"]
        .as_array()
        .expect("a list");
    let blocks = functions
        .iter()
        .flat_map(|function| function["blocks"].as_array().expect("a list"));
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    blocks
        .map(|it| {
            (
                it["address"].as_u64().expect("a number"),
                (text(&it["state"]), text(&it["how"])),
            )
        })
        .collect()
}

#[test]
fn the_document() {
    let bench = Bench::with_a_run();
    let document = json(&bench, &[]);
    assert_eq!(document["schema"], "tomo.coverage/1");
    let blocks = blocks_of(&document);
    for at in BLOCKS {
        let state = if RAN.contains(&at) { "ran" } else { "not-run" };
        assert_eq!(
            blocks[&at],
            (state.to_owned(), "observed".to_owned()),
            "{at:#x}"
        );
    }
    let mut shown = document;
    shown["modules"][0]["build_id"] = "…".into();
    let pretty = serde_json::to_string_pretty(&shown).expect("JSON");
    insta::assert_snapshot!("document", bench.clean(&pretty));
}

/// What is inferred and what could not be observed is marked as such, block by block.
#[test]
fn inferred_and_unknown_are_marked() {
    let bench = Bench::new();
    let program = bench.sample();
    let mut seen = Seen::blocks(&RAN);
    // B2 and B4 of main follow from others; helper's last block has no probe, and nothing tells.
    seen.probes.retain(|(at, _)| ![0x1000, 0x101d].contains(at));
    (seen.inferred, seen.unknown) = (vec![0x1000], vec![0x101d]);
    bench.run("tomo-out", 1, &program, &seen);
    let document = json(&bench, &[]);
    let blocks = blocks_of(&document);
    assert_eq!(blocks[&0x1000], ("ran".into(), "inferred".into()));
    // helper ran and did not return at its first ret; where else it went follows.
    assert_eq!(blocks[&0x101d].1, "inferred");
    assert_eq!(document["modules"][0]["unobserved"]["inferred"], 2);
    let mut seen = Seen::blocks(&RAN);
    seen.probes.retain(|(at, _)| ![0x101c, 0x101d].contains(at));
    seen.unknown = vec![0x101c, 0x101d];
    bench.run("other", 1, &program, &seen);
    let document = json(&bench, &["other"]);
    assert_eq!(
        blocks_of(&document)[&0x101d],
        ("unknown".into(), "unobservable".into())
    );
    let unobserved = &document["modules"][0]["unobserved"];
    assert_eq!(unobserved["blocks"]["part"], 2);
    assert_eq!(unobserved["bytes"]["part"], 0x101f - 0x101c);
    let shown = bench.table(&bench.tomo(&["report", "other"]).well());
    assert!(shown.contains("2 of 9 blocks (22.2 %)"), "{shown}");
    assert!(
        shown.contains("since unknown: 2 lines, 2 sides of branches"),
        "{shown}"
    );
    let lcov = bench.tomo(&["report", "other", "--format", "lcov"]).well();
    assert!(!lcov.contains("\nDA:23,") && lcov.contains("BRDA:20,0,0,-\nBRDA:20,0,1,-"));
}

/// Filler, in functions and between them, is no code; bytes that nothing known reaches are, and nobody can say whether they ran.
#[test]
fn bytes_of_code_are_accounted_for() {
    let bench = Bench::new();
    let flags = [
        "-nostdlib",
        "-nostartfiles",
        "-Wl,-e,main",
        "-Wl,--build-id",
    ];
    let program = bench.build("filled", "filled.s", include_str!("filled.s"), &flags);
    let mut seen = Seen {
        probes: [0x1000, 0x1004, 0x1020, 0x1040].map(|at| (at, true)).into(),
        ..Seen::blocks(&[])
    };
    let unobserved = |folder: &str, seen: &Seen| {
        bench.run(folder, 1, &program, seen);
        let document = json(&bench, &[folder]);
        let it = &document["modules"][0]["unobserved"];
        ["part", "whole"].map(|of| it["bytes"][of].as_u64().expect("a number"))
    };
    // Three instructions and filler up to 0x1020, two behind it, and 13 bytes, of which the last 6 are not reached.
    let code = 0x26 + 13;
    assert_eq!(unobserved("all", &seen), [6, code]);
    seen.probes.retain(|(at, _)| *at != 0x1020);
    seen.unknown = vec![0x1020];
    assert_eq!(unobserved("some", &seen), [6 + 6, code]);
}

/// Edges with probes of their own.
#[test]
fn edges_are_observed() {
    let bench = Bench::new();
    let program = bench.sample();
    let mut seen = Seen::blocks(&RAN);
    seen.level = Level::Edge;
    seen.edges = vec![(0x1000, 0x1010, false), (0x1000, 0x1004, true)];
    bench.run("tomo-out", 1, &program, &seen);
    let document = json(&bench, &[]);
    let branch = &document["files"][0]["branches"][0];
    assert_eq!(
        (&branch["taken"]["state"], &branch["taken"]["how"]),
        (&"not-run".into(), &"observed".into())
    );
    assert_eq!(
        (&branch["not_taken"]["state"], &branch["not_taken"]["how"]),
        (&"ran".into(), &"observed".into())
    );
}
