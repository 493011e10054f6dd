//! Forked children go on with the callers that their parents had: what the last of several generations does is, block for
//! block, what one process does after it has only seemed to fork as often.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use tomo_export::traced::Traced;
use tomo_profile::tracing::{Divergence, Sink};
use tomo_testkit::corpus::{Workload, compiled};
use tomo_testkit::coverage::complete;
use tomo_testkit::steps::{Outside, observe_in_order};
use tomo_testkit::tomo;

use super::kit::{LIMIT, began, read, title, traced};

/// What a thread did: blocks, and how deep they were called.
struct Thread {
    blocks: Vec<(u64, u32)>,
    /// The functions that had called when it began.
    callers: Vec<String>,
}

/// What the threads of a trace did, in the order in which they were made: all of it, but for what comes behind the last decision where
/// several runs are merged.
fn threads(traced: &Traced) -> Vec<Thread> {
    let atlas = traced.atlas().expect("an atlas");
    let threads = traced.threads(&atlas);
    let address = |block: u32| atlas.chart.blocks[block as usize].address.get();
    let done = threads.iter().map(|thread| {
        let mut sink = Passed::default();
        let ended = traced.walk(&atlas, &threads, thread, &mut sink);
        let is_cut = matches!(ended.divergence, Some(Divergence::Ends { .. }));
        let is_whole = ended.divergence.is_none() || (is_cut && traced.runs.len() > 1);
        assert!(is_whole, "{ended:?}");
        assert!(!ended.is_orphan, "{ended:?}");
        let blocks = sink.blocks.iter();
        Thread {
            blocks: blocks.map(|(one, depth)| (address(*one), *depth)).collect(),
            callers: sink
                .before
                .iter()
                .map(|one| title(traced, address(*one)))
                .collect(),
        }
    });
    done.collect()
}

#[derive(Default)]
struct Passed {
    before: Vec<u32>,
    blocks: Vec<(u32, u32)>,
}

impl Sink for Passed {
    fn enter(&mut self, block: u32, _: u32) {
        if self.blocks.is_empty() {
            self.before.push(block);
        }
    }

    fn block(&mut self, block: u32, depth: u32) {
        self.blocks.push((block, depth));
    }
}

/// Holds `generations` of children, made in this way, against one process that makes none.
fn hold(program: &Path, (way, without): (&str, &str), generations: usize, options: &[&str]) {
    let folder = tempfile::tempdir().expect("a folder");
    let words = |way: &str| vec![way.to_owned(), generations.to_string()];
    let trace = traced(program, &words(way), b"", options, folder.path());
    let trace = read(&trace, folder.path());
    let workload = Workload {
        args: words(without),
        ..Workload::default()
    };
    let truth = observe_in_order(program, &workload, Outside::Leap, LIMIT).expect("steps");
    let began = began(&trace, &truth.order);
    let threads = threads(&trace);
    let named = format!("{way} {generations} {options:?}");
    assert_eq!(threads.len(), generations + 1, "{named}");
    let (Some(first), Some(last)) = (threads.first(), threads.last()) else {
        unreachable!("there is one at least");
    };

    // It begins behind the last of the calls that seem to fork, and nowhere else.
    let blocks: Vec<u64> = last.blocks.iter().map(|(block, _)| *block).collect();
    let atlas = trace.atlas().expect("an atlas");
    let sizes = atlas.chart.blocks.iter();
    let sizes: BTreeMap<u64, u32> = sizes
        .map(|block| (block.address.get(), block.size.get()))
        .collect();
    let falls_to = |block: &u64| *block + u64::from(sizes[block]) == blocks[0];
    let call = began.iter().rposition(falls_to).expect("a call");
    let behind = &began[call + 1..];
    assert!(blocks.len() > generations * 20, "{named}");
    assert!(behind.starts_with(&blocks), "{named}");
    if trace.runs.len() == 1 {
        assert_eq!(blocks.len(), behind.len(), "{named}");
    }

    // Those who had called, and who are called, are as deep in the child as in who was there first.
    assert_eq!(last.callers[..3], ["_start", "main", "parts"], "{named}");
    for (block, depth) in &last.blocks {
        if let Some((_, at)) = first.blocks.iter().find(|(one, _)| one == block)
            && title(&trace, *block) == "main"
        {
            assert_eq!(depth, at, "{named}");
        }
    }
}

#[test]
fn forked_children_return_to_those_who_called_in_their_parents() {
    for level in ["-O0", "-O2"] {
        let program = compiled("gcc", "descending.c", &[level]).expect("built");
        for ways in [
            ("fork", "yield"),
            ("_Fork", "yield"),
            ("number", "yield-number"),
        ] {
            for generations in [1, 3] {
                hold(&program, ways, generations, &[]);
            }
        }
        hold(&program, ("fork", "yield"), 2, &["--runs", "3"]);
        hold(&program, ("fork", "yield"), 2, &["--collect", "breakpoint"]);
    }
}

/// Tracks of processes that are over are nobody's way to a track of his own.
#[test]
fn threads_behind_many_forks_take_no_more_memory() {
    let program = compiled("gcc", "threads_after_forks.c", &["-O1", "-pthread"]).expect("built");
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(tomo::path().expect("tomo"));
    command
        .env("TOMO_CACHE_DIR", folder.path().join("cache"))
        .current_dir(folder.path());
    command.args(["trace", "-o", "traces", "--"]).arg(program);
    let output = complete(command, b"").expect("run");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "as before\n");
    assert!(output.status.success());
}
