//! `tomo merge`: order, grouping and repetition do not matter, to the byte.

use std::collections::BTreeMap;
use std::fs;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::bench::{BLOCKS, Bench, Seen};

/// Everything in a folder.
fn content(bench: &Bench, folder: &str) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(bench.path(folder)).expect("a folder");
    entries
        .map(|entry| entry.expect("an entry"))
        .map(|it| {
            (
                it.file_name().into_string().expect("UTF-8"),
                fs::read(it.path()).expect("readable"),
            )
        })
        .collect()
}

#[test]
fn merging_is_a_monoid() {
    let bench = Bench::new();
    let program = bench.sample();
    let subset = || prop::collection::vec(any::<bool>(), BLOCKS.len());
    let mut runner = TestRunner::new_with_rng(
        Config {
            cases: 6,
            failure_persistence: None,
            ..Config::default()
        },
        proptest::test_runner::TestRng::deterministic_rng(
            proptest::test_runner::RngAlgorithm::ChaCha,
        ),
    );
    let rounds = std::cell::Cell::new(0);
    let outcome = runner.run(&prop::collection::vec(subset(), 3), |runs| {
        let round = rounds.get() + 1;
        rounds.set(round);
        let name = |what: &str| format!("{what}{round}");
        let folders = ["a", "b", "c"].map(&name);
        for (number, (folder, hit)) in (1..).zip(folders.iter().zip(&runs)) {
            let hit: Vec<u64> = BLOCKS
                .into_iter()
                .zip(hit)
                .filter(|it| *it.1)
                .map(|it| it.0)
                .collect();
            bench.run(folder, number, &program, &Seen::blocks(&hit));
        }
        let merge = |out: &str, inputs: &[&str]| {
            let out = name(out);
            assert_eq!(
                bench
                    .tomo(&[&["merge", "-o", &out], inputs].concat())
                    .well(),
                ""
            );
            content(&bench, &out)
        };
        let [a, b, c] = [0, 1, 2].map(|index| folders[index].as_str());
        let all = merge("all", &[a, b, c]);
        prop_assert_eq!(&all, &merge("reversed", &[c, b, a]));
        prop_assert_eq!(&all, &merge("twice", &[a, b, a, c, b]));
        merge("two", &[b, c]);
        prop_assert_eq!(&all, &merge("grouped", &[&name("two"), a]));
        prop_assert_eq!(&all, &merge("again", &[&name("all"), &name("two")]));
        let lcov = |folders: &[&str]| {
            let said = bench.tomo(&[&["report", "--format", "lcov"], folders].concat());
            assert_eq!(said.code, Some(0), "{}", said.err);
            said.out
        };
        prop_assert_eq!(lcov(&[a, b, c]), lcov(&[&name("all")]));
        Ok(())
    });
    outcome.expect("a monoid");
}

/// The same build ran on two machines: it lay elsewhere on each, and so do its sources here.
#[test]
fn records_of_two_machines_merge_whatever_their_paths() {
    let bench = Bench::new();
    let program = bench.sample();
    bench.run("both", 1, &program, &Seen::blocks(&BLOCKS));
    bench.run("here", 1, &program, &Seen::blocks(&BLOCKS[..4]));
    let there = crate::bench::Program {
        path: "/opt/elsewhere/sample".into(),
        ..bench.sample()
    };
    bench.run("there", 2, &there, &Seen::blocks(&BLOCKS[4..]));
    bench
        .tomo(&["merge", "-o", "merged", "here", "there"])
        .well();
    let report = |folders: &[&str]| {
        let flags = [
            "report",
            "--format",
            "lcov",
            "--replace-src-path",
            "/src:/home/me",
        ];
        let at = ["--program", "./sample"];
        bench.tomo(&[&flags, folders, &at].concat()).well()
    };
    assert_eq!(report(&["merged"]), report(&["both"]));
    assert_eq!(report(&["there", "here"]), report(&["both"]));
    assert!(report(&["merged"]).contains("SF:/home/me/demo/a.c"));
}

#[test]
fn what_was_merged_before_is_not_lost() {
    let bench = Bench::new();
    let program = bench.sample();
    bench.run("one", 1, &program, &Seen::blocks(&BLOCKS[..4]));
    bench.run("two", 2, &program, &Seen::blocks(&BLOCKS[2..]));
    bench.tomo(&["merge", "-o", "merged", "one"]).well();
    let before = bench.tomo(&["report", "merged", "--format", "lcov"]).well();
    let refused = bench.tomo(&["merge", "-o", "merged", "two"]);
    assert_eq!((refused.code, refused.out.as_str()), (Some(2), ""));
    assert!(refused.err.contains("merge it, too"), "{}", refused.err);
    let report = |folder: &str| bench.tomo(&["report", folder, "--format", "lcov"]).well();
    assert_eq!(report("merged"), before);
    // With it nothing is lost, and what has seen no less may take its place.
    bench
        .tomo(&["merge", "-o", "merged", "merged", "two"])
        .well();
    bench.tomo(&["merge", "-o", "merged", "one", "two"]).well();
    bench.tomo(&["merge", "-o", "both", "one", "two"]).well();
    assert_eq!(report("merged"), report("both"));
}

#[test]
fn builds_are_not_mixed() {
    let bench = Bench::new();
    let program = bench.sample();
    bench.run("out", 1, &program, &Seen::blocks(&[0x1000]));
    let changed = crate::bench::SAMPLE.replace("mov $9", "mov $8");
    let other = bench.assembled(&changed);
    assert_ne!(other.id, program.id);
    bench.run("out", 2, &other, &Seen::blocks(&[0x1004]));
    let refused = bench.tomo(&["merge", "-o", "merged", "out"]);
    assert_eq!((refused.code, refused.out.as_str()), (Some(2), ""));
    assert!(
        refused
            .err
            .contains("sample: records of 2 builds of it cannot be merged"),
        "{}",
        refused.err
    );
    assert!(!bench.path("merged").exists());
    // A report names the one that is gone, and shows the other.
    let said = bench.tomo(&["report", "out", "--format", "lcov"]);
    assert_eq!(said.code, Some(0));
    let together = "records of 2 builds of it; their lines are put together by file and number";
    assert!(said.err.contains("is another build by now"), "{}", said.err);
    assert!(!said.err.contains(together), "{}", said.err);
    assert!(
        said.out.contains("DA:4,1") && said.out.contains("DA:3,0"),
        "{}",
        said.out
    );
}

#[test]
fn other_records_are_not_overwritten_or_mixed_in() {
    let bench = Bench::new();
    let program = bench.sample();
    bench.run("out", 1, &program, &Seen::blocks(&[0x1000]));
    fs::create_dir(bench.path("pool")).expect("made");
    fs::write(bench.path("pool/x.record"), b"something").expect("written");
    let refused = bench.tomo(&["merge", "-o", "pool", "out"]);
    assert_eq!(refused.code, Some(2));
    assert!(
        refused.err.contains("holds other records"),
        "{}",
        refused.err
    );
}

#[test]
fn where_runs_carried_different_probes_silence_implies_nothing() {
    let bench = Bench::new();
    let program = bench.sample();
    // The helper was entered; one of its two ways on was silent, the other has no probe.
    let seen = Seen {
        probes: vec![(0x1017, true), (0x101c, false)],
        unknown: vec![0x101d],
        ..Seen::blocks(&[])
    };
    bench.run("out", 1, &program, &seen);
    let state_of = |folder: &str, address: u64| {
        let said = bench.tomo(&["report", folder, "--format", "json"]).well();
        let document: serde_json::Value = serde_json::from_str(&said).expect("JSON");
        let functions = document["modules"][0]["functions"].as_array();
        let blocks = functions.expect("functions").iter().flat_map(|function| {
            let blocks = function["blocks"].as_array();
            blocks.expect("blocks").clone()
        });
        let mut found = blocks.filter(|block| block["address"] == address);
        found.next().expect("the block")["state"].clone()
    };
    assert_eq!(state_of("out", 0x101c), "not-run");
    assert_eq!(state_of("out", 0x101d), "ran", "the only way that is left");
    let path = bench.path("out/run-1/run.json");
    let text = fs::read_to_string(&path).expect("there");
    fs::write(&path, text.replacen('{', "{\"by_parts\":true,", 1)).expect("written");
    assert_eq!(state_of("out", 0x101c), "not-run", "its own probe says so");
    assert_eq!(state_of("out", 0x101d), "unknown");
    assert_eq!(state_of("out", 0x1017), "ran");
    assert_eq!(bench.tomo(&["merge", "-o", "merged", "out"]).well(), "");
    assert_eq!(state_of("merged", 0x101d), "unknown");
}

#[test]
fn a_file_is_no_folder_to_merge_into() {
    let bench = Bench::new();
    let program = bench.sample();
    bench.run("out", 1, &program, &Seen::blocks(&[0x1000]));
    fs::write(bench.path("file"), "precious").expect("written");
    let refused = bench.tomo(&["merge", "-o", "file", "out"]);
    assert_eq!(refused.code, Some(2));
    assert_eq!(refused.err, "tomo: file: not a directory\n");
}
