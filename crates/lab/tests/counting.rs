//! The counts that redundancy rests on, held against single steps of the same program.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Stdio};

use object::{Object as _, ObjectSymbol as _};
use tomo_lab::disposal::{Counts, Redundancy, Units};
use tomo_testkit::corpus::{Compiler, Level, Recipe, Source, build};
use tomo_testkit::steps::{End, Outside, observe};

/// Each call of the collector is a passage of control to its first instruction: as many of them as it
/// counted, from as many places as it has probes with a count.
#[test]
fn counts_are_those_of_single_steps() {
    for option in ["bb,no-prune", "bb", "func"] {
        let mut recipe = Recipe::new(Source::CFeatures, Compiler::Clang, Level::O2);
        recipe.extra = vec![
            format!("-fsanitize-coverage={option},trace-pc-guard"),
            "-fno-sanitize-link-runtime".into(),
        ];
        recipe.with = vec!["study/marks.c"];
        let built = build(&recipe).expect("built");
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("counts");
        let status = Command::new(&built.program)
            .env("TOMO_STUDY_COUNTS", &path)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status()
            .expect("started");
        assert!(status.success(), "{status}");
        let counts = Counts::parse(&fs::read(&path).expect("counts")).expect("counts");

        let bytes = fs::read(&built.program).expect("read");
        let file = object::File::parse(&*bytes).expect("ELF");
        let collector = file
            .symbols()
            .find(|symbol| symbol.name() == Ok("__sanitizer_cov_trace_pc_guard"))
            .expect("the collector")
            .address();
        let trace = observe(
            &built.program,
            &built.workloads[0],
            Outside::Leap,
            5_000_000,
        );
        let trace = trace.expect("observed");
        assert_eq!(trace.end, End::Exited(0));
        let calls = trace.transitions.iter();
        let calls: Vec<_> = calls.filter(|(one, _)| one.to == Some(collector)).collect();
        let executed: u64 = calls.iter().map(|(_, count)| **count).sum();
        let places: BTreeSet<_> = calls.iter().map(|(one, _)| one.from).collect();

        let sum = Redundancy::of("features", Units::Block, [&counts]);
        assert_eq!(sum.executed, executed, "{option}");
        assert_eq!(sum.unique, places.len() as u64, "{option}");
        assert_eq!(sum.redundant(), executed - places.len() as u64, "{option}");
        assert!(sum.redundant() > 0, "{option}");
    }
}
