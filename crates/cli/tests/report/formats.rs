//! Each format, of a program whose blocks are known to the byte, read back by the format's own rules.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::bench::{BARE, BLOCKS, Bench, RAN, Seen};
use tomo_wire::plan::Level;

#[test]
fn the_table() {
    let bench = Bench::with_a_run();
    let shown = bench.tomo(&["report"]).well();
    insta::assert_snapshot!("table", bench.table(&shown));
    let shown = bench.tomo(&["report", "--functions"]).well();
    insta::assert_snapshot!("table_with_functions", bench.table(&shown));
    assert!(shown.lines().all(|line| line.chars().count() <= 80));
    let narrow = ("COLUMNS", "60");
    let shown = bench.tomo_with(narrow, &["report", "--functions"]).well();
    let (table, _) = shown.split_once("\nall ").expect("a last row");
    assert!(
        table.lines().all(|line| line.chars().count() <= 60),
        "{table}"
    );
    let missing = bench.tomo(&["report", "--show-missing-lines"]).well();
    insta::assert_snapshot!("table_with_missing_lines", bench.table(&missing));
    assert!(
        !shown.contains('\u{1b}'),
        "no colours where it is no terminal"
    );
}

/// With functions only, nothing is said of lines.
#[test]
fn the_table_of_functions() {
    let bench = Bench::with_functions();
    let shown = bench.tomo(&["report"]).well();
    insta::assert_snapshot!("table_of_functions", bench.table(&shown));
    let lcov = bench.tomo(&["report", "--format", "lcov"]).well();
    assert!(lcov.contains("FNDA:1,main") && lcov.contains("FNDA:0,unused"));
    assert!(!lcov.contains("\nBRDA:"));
}

/// Formats that know lines alone have those that functions begin at, where only functions were asked for.
/// What stands in a file is not cut for a terminal: functions of templates are told apart by their middles.
#[test]
fn names_in_a_file_are_whole() {
    let bench = Bench::new();
    let name = format!("long_{}_name", "x".repeat(150));
    let source = format!("int {name}(void) {{ return 1; }} int main(void) {{ return {name}(); }}");
    bench.build("prog", "prog.c", &source, &["-g"]);
    bench.tomo(&["cover", "-o", "out", "--", "./prog"]);
    let table = bench.tomo(&["report", "out", "-l"]).well();
    let mut lines = table.lines().skip_while(|line| line.trim() != name);
    assert!(lines.next().is_some(), "{table}");
    let numbers = lines.next().expect("its numbers");
    assert!(numbers.trim_start().starts_with("1/1"), "{table}");
    assert!(numbers.chars().count() <= 80, "{table}");
}

#[test]
fn functions_are_told_by_the_lines_that_they_begin_at() {
    let bench = Bench::with_functions();
    let files = lcov(&bench.tomo(&["report", "--format", "lcov"]).well());
    let lines: Vec<_> = files.values().flatten().filter(|it| it.0 == "DA").collect();
    let lines: Vec<_> = lines.iter().map(|it| it.1.join(",")).collect();
    assert_eq!(lines, ["20,1", "3,1", "30,0"]);
    let xml = bench.tomo(&["report", "--format", "cobertura"]).well();
    let sums = of_cobertura(&xml);
    assert_eq!((sums.lines, sums.branches), ((2, 3), (0, 0)));
}

/// What cannot be written as asked leaves what was there as it was.
#[test]
fn a_file_stays_when_its_format_is_refused() {
    let bench = Bench::with_functions();
    std::fs::write(bench.path("kept"), "precious").expect("written");
    let refused = bench.tomo(&["report", "--format", "drcov", "-o", "kept"]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.err.contains("only functions"), "{}", refused.err);
    let kept = std::fs::read_to_string(bench.path("kept")).expect("there");
    assert_eq!(kept, "precious");
}

/// A stripped program is shown by function, and it is said where its debug file would have been.
#[test]
fn the_table_of_a_program_without_lines() {
    let bench = Bench::new();
    let id = "-Wl,--build-id=0x0123456789abcdef";
    let flags = [&BARE[..], &["-Wl,-S", id]].concat();
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
    for line in text.lines() {
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

/// XML with the type that Cobertura's has.
pub(crate) fn document(xml: &str) -> roxmltree::Document<'_> {
    let options = roxmltree::ParsingOptions {
        allow_dtd: true,
        ..Default::default()
    };
    roxmltree::Document::parse_with_options(xml, options).expect("XML")
}

#[test]
fn cobertura() {
    let bench = Bench::with_a_run();
    let text = bench.tomo(&["report", "--format", "cobertura"]).well();
    let document = document(&text);
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
    let said = bench.tomo(&["report", "other", "--format", "lcov"]);
    assert!(said.err.contains("2 of 9 blocks (22.2 %)"), "{}", said.err);
    let lcov = said.out;
    // A reader of it takes a side without a number for one that was missed.
    assert!(!lcov.contains("\nDA:23,") && !lcov.contains("BRDA:20,"));
    assert_eq!(sums_of_all(&bench, &["other"]).branches, (1, 2));
}

/// How many ran, of how many of which it is known.
#[derive(Debug, PartialEq)]
pub(crate) struct Sums {
    pub(crate) lines: (u64, u64),
    pub(crate) branches: (u64, u64),
}

fn of_lcov(text: &str) -> Sums {
    let files = lcov(text);
    let sum = |tag: &str| -> u64 {
        let all = files.values().flatten().filter(|it| it.0 == tag);
        all.map(|it| it.1[0].parse::<u64>().expect("a number"))
            .sum()
    };
    Sums {
        lines: (sum("LH"), sum("LF")),
        branches: (sum("BRH"), sum("BRF")),
    }
}

/// The sums that the document states, which are those of its lines.
fn of_cobertura(text: &str) -> Sums {
    let document = document(text);
    let (mut lines, mut branches) = ((0, 0), (0, 0));
    let is_class = |node: &roxmltree::Node<'_, '_>| {
        let parent = node.parent().and_then(|lines| lines.parent());
        parent.is_some_and(|class| class.has_tag_name("class"))
    };
    let all = document
        .descendants()
        .filter(|node| node.has_tag_name("line"));
    for line in all.filter(is_class) {
        lines.0 += u64::from(line.attribute("hits") != Some("0"));
        lines.1 += 1;
        let Some(share) = line.attribute("condition-coverage") else {
            continue;
        };
        let share = share
            .split_once('(')
            .expect("a share")
            .1
            .trim_end_matches(')');
        let (ran, all) = share.split_once('/').expect("a share");
        branches.0 += ran.parse::<u64>().expect("a number");
        branches.1 += all.parse::<u64>().expect("a number");
    }
    let root = document.root_element();
    let stated = |name: &str| {
        root.attribute(name)
            .expect(name)
            .parse::<u64>()
            .expect("a number")
    };
    assert_eq!(lines, (stated("lines-covered"), stated("lines-valid")));
    assert_eq!(
        branches,
        (stated("branches-covered"), stated("branches-valid"))
    );
    Sums { lines, branches }
}

/// What all formats say together; they agree, and no side of a branch is lost.
pub(crate) fn sums_of_all(bench: &Bench, arguments: &[&str]) -> Sums {
    let told = |format: &str| {
        let said = bench.tomo(&[&["report", "--format", format], arguments].concat());
        assert_eq!(said.code, Some(0), "{}", said.err);
        said.out
    };
    let document: Value = serde_json::from_str(&told("json")).expect("JSON");
    let number = |totals: &Value, what: &str, how: &str| {
        totals["totals"][what][how].as_u64().expect("a number")
    };
    let sum = |list: &str, what: &str, how: &[&str]| -> u64 {
        let all = document[list].as_array().expect("a list").iter();
        all.flat_map(|it| how.iter().map(move |how| number(it, what, how)))
            .sum()
    };
    let known = |what: &str| {
        (
            sum("files", what, &["ran"]),
            sum("files", what, &["ran", "missed"]),
        )
    };
    let sums = Sums {
        lines: known("lines"),
        branches: known("branches"),
    };
    let all = ["ran", "missed", "unknown"];
    let total: u64 = all
        .iter()
        .map(|how| number(&document, "branches", how))
        .sum();
    assert_eq!(sum("modules", "branches", &all), total, "a side is nowhere");
    let of_modules = |how: &[&str]| sum("modules", "lines", how);
    let lines = (of_modules(&["ran"]), of_modules(&["ran", "missed"]));
    assert_eq!(lines, sums.lines, "a line counts more than once");
    assert_eq!(of_lcov(&told("lcov")), sums);
    assert_eq!(of_cobertura(&told("cobertura")), sums);
    sums
}

/// Branches of line 0, and of lines at which no statement begins, are of no line that any format shows, and count
/// all the same.
#[test]
fn branches_without_a_line_to_show_count_and_formats_agree() {
    for (old, new, shown, all) in [
        (
            ".loc 1 5\n        jmp",
            ".loc 1 0\n        je",
            (2, 4),
            (3, 3),
        ),
        (
            "jg .Lmore\n        .loc 1 21",
            ".loc 1 25 is_stmt 0\n        jg .Lmore\n        .loc 1 21 is_stmt 1",
            (1, 2),
            (2, 2),
        ),
    ] {
        let bench = Bench::new();
        let program = bench.sample_with(old, new);
        bench.run("tomo-out", 1, &program, &Seen::blocks(&RAN));
        assert_eq!(sums_of_all(&bench, &[]).branches, shown, "{new}");
        let totals = &json(&bench, &[])["totals"]["branches"];
        let totals = ["ran", "missed"].map(|how| totals[how].as_u64().expect("a number"));
        assert_eq!((totals[0], totals[1]), all, "{new}");
    }
}

/// A line that two functions have code of is one line of the module, too.
#[test]
fn a_line_of_several_functions_counts_once() {
    let bench = Bench::new();
    let program = bench.sample_with(".loc 2 30", ".loc 2 12");
    bench.run("tomo-out", 1, &program, &Seen::blocks(&RAN));
    assert_eq!(sums_of_all(&bench, &[]).lines, (7, 9));
}

/// Of a branch of which one side is known that one counts, in all formats.
#[test]
fn a_branch_known_on_one_side_counts_once() {
    let bench = Bench::new();
    let program = bench.sample();
    // Into the middle of the function, so that no more follows from the probes than they say.
    let mut seen = Seen::blocks(&RAN);
    seen.level = Level::Edge;
    seen.probes.retain(|(at, _)| *at == 0x1017);
    seen.edges = vec![(0x1017, 0x101c, false)];
    seen.unknown = BLOCKS.into_iter().filter(|at| *at != 0x1017).collect();
    bench.run("tomo-out", 1, &program, &seen);
    bench.carried_a_part("tomo-out/run-1");
    assert_eq!(sums_of_all(&bench, &[]).branches, (0, 1));
    let xml = bench.tomo(&["report", "--format", "cobertura"]).well();
    assert!(xml.contains("condition-coverage=\"0% (0/1)\""), "{xml}");
}

/// Filler, in functions and between them, is no code; bytes that nothing known reaches are, and nobody can say whether they ran.
#[test]
fn bytes_of_code_are_accounted_for() {
    let bench = Bench::new();
    let program = bench.build("filled", "filled.s", include_str!("filled.s"), &BARE);
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

/// A path stands in a comment, which two hyphens would end.
#[test]
fn hyphens_end_no_comment() {
    let bench = Bench::new();
    let program = bench.sample();
    for name in ["a-b", "a--b", "a---b", "a----b-"] {
        std::fs::copy(&program.path, bench.path(name)).expect("copied");
        let program = bench.opened(bench.path(name));
        bench.run(&format!("out-{name}"), 1, &program, &Seen::blocks(&RAN));
        let report = ["report", &format!("out-{name}"), "--format", "cobertura"];
        let text = bench.tomo(&report).well();
        document(&text);
        let (_, comment) = text.split_once("<!--").expect("a comment");
        let (comment, _) = comment.split_once("-->").expect("its end");
        assert!(!comment.contains("--"), "{comment}");
    }
}
