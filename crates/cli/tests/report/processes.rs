//! Records of single processes: each by itself, in a table, and together with all others.

use std::fs;

use crate::bench::{Bench, RAN, Seen};

/// One run of two processes; the record that counts them has no marks.
fn bench() -> Bench {
    let bench = Bench::new();
    let program = bench.sample();
    bench.run("out", 1, &program, &Seen::blocks(&[]));
    for (process, hit) in [("4711", &RAN[..3]), ("4712-2", &RAN[3..])] {
        let (_, record) = Seen::blocks(hit).files(program.id, 1);
        bench.process("out", 1, process, &record);
    }
    bench
}

#[test]
fn processes_are_listed_and_their_sum() {
    let bench = bench();
    let shown = bench.tomo(&["report", "out", "--processes"]).well();
    insta::assert_snapshot!("processes", bench.clean(&shown));
    let together = bench.tomo(&["report", "out", "--format", "lcov"]).well();
    let program = bench.sample();
    bench.run("shared", 1, &program, &Seen::blocks(&RAN));
    let shared = bench.tomo(&["report", "shared", "--format", "lcov"]).well();
    assert_eq!(together, shared);
}

#[test]
fn a_single_record_is_reported_and_merged() {
    let bench = bench();
    let program = bench.sample();
    bench.run("alone", 1, &program, &Seen::blocks(&RAN[..3]));
    let alone = bench.tomo(&["report", "alone", "--format", "lcov"]).well();
    let record = "out/run-1/m.4711.record";
    let single = bench.tomo(&["report", record, "--format", "lcov"]).well();
    assert_eq!(single, alone);
    bench.tomo(&["merge", "-o", "merged", record]).well();
    let merged = bench.tomo(&["report", "merged", "--format", "lcov"]).well();
    assert_eq!(merged, alone);
}

#[test]
fn a_process_whose_record_is_cut_is_named_and_the_others_count() {
    let bench = bench();
    let path = bench.path("out/run-1/m.4712-2.record");
    let record = fs::read(&path).expect("read");
    fs::write(&path, &record[..100]).expect("written");
    let said = bench.tomo(&["report", "out", "--format", "lcov"]);
    assert_eq!(said.code, Some(0));
    assert!(said.err.contains("m.4712-2.record: it is cut short"));
    assert_eq!(said.err.lines().count(), 1);
    let single = ["report", "out/run-1/m.4711.record", "--format", "lcov"];
    assert_eq!(said.out, bench.tomo(&single).well());
}

/// What had to be left out is said once, not once a process; a process of which nothing is left has no row.
#[test]
fn what_was_left_out_is_said_once_however_many_processes_there_are() {
    let bench = bench();
    let whole = bench.tomo(&["report", "out", "--processes"]).well();
    let program = bench.sample();
    let (_, record) = Seen::blocks(&RAN).files(program.id, 1);
    bench.process("out", 1, "4713", &record[..100]);
    let said = bench.tomo(&["report", "out", "--processes"]);
    assert_eq!((said.code, said.out), (Some(0), whole));
    assert_eq!(said.err.lines().count(), 1, "{}", said.err);
    assert!(said.err.contains("m.4713.record: it is cut short"));
}

/// Where processes share their records there is nothing to list.
#[test]
fn who_kept_no_processes_apart_is_told_how() {
    let bench = Bench::with_a_run();
    let said = bench.tomo(&["report", "--processes"]);
    assert_eq!((said.code, said.out.as_str()), (Some(2), ""));
    assert!(said.err.contains("--fork separate"), "{}", said.err);
}
