//! Files beside images that are damaged: what was not observed is never taken for what was not hit.

use std::path::PathBuf;

use tomo_wire::report::ReportView;

use crate::instances::Fleet;

/// Nobody listens there.
const NOBODY: &str = "http://127.0.0.1:1";

/// The files of this kind that the first installation keeps beside its images.
fn beside(fleet: &Fleet, kind: &str) -> Vec<PathBuf> {
    let images = std::fs::read_dir(fleet.site.path("state-0/images")).expect("images");
    let files = images.flatten().map(|entry| entry.path());
    let found: Vec<PathBuf> = files
        .filter(|file| file.extension().is_some_and(|found| found == kind))
        .collect();
    assert!(!found.is_empty(), "{kind}");
    found
}

/// What a run says that tells everything.
fn said(fleet: &Fleet) -> String {
    let output = fleet.tomo(0, &["--verbose"], &["look", "8"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn is_observed(said: &str) -> bool {
    said.contains(", 1 process\n") && !said.contains(": 0 probes hit") && !said.contains("observed")
}

/// Damages the files of this kind in each way, and sees to it that it is told and mended.
fn is_noticed(fleet: &Fleet, kind: &str) {
    fleet.prepare(0);
    assert!(is_observed(&said(fleet)));
    let empty = || {
        for file in beside(fleet, kind) {
            std::fs::write(file, "").expect("a file");
        }
    };
    empty();
    let told = said(fleet);
    assert!(told.contains("not observed: what was prepared"), "{told}");
    let told = said(fleet);
    assert!(is_observed(&told), "the run before has mended it: {told}");
    empty();
    fleet.prepare(0);
    let told = said(fleet);
    assert!(is_observed(&told), "preparing has mended it: {told}");
    // Where only the last byte is wrong a start does not see it, but the end does.
    for file in beside(fleet, kind) {
        let mut bytes = std::fs::read(&file).expect("a file");
        *bytes.last_mut().expect("a byte") ^= 0x80;
        std::fs::write(file, bytes).expect("a file");
    }
    let mut command = fleet.instance_at(NOBODY, "60", 0, &[]);
    command.arg("--").arg(&fleet.program).args(["look", "8"]);
    let output = command.output().expect("tomo");
    let told = String::from_utf8_lossy(&output.stderr);
    let words = format!(".{kind} is missing or damaged");
    assert!(
        told.contains("was not observed") && told.contains(&words),
        "{told}"
    );
    let mut waiting = std::fs::read_dir(fleet.site.path("state-0/spool")).expect("a spool");
    let report = waiting.next().expect("a report").expect("a file").path();
    let report = std::fs::read(report).expect("a report");
    let (report, _) = ReportView::read(&report).expect("a report");
    assert_eq!((report.header.armed.get(), report.hits.len()), (0, 0));
    fleet.prepare(0);
    assert!(is_observed(&said(fleet)));
}

#[test]
fn what_says_what_marks_mean_is_missed_and_made_anew() {
    let words = ["campaign", "isolate", "--runs-per-step", "12"];
    is_noticed(&Fleet::new("isolating.c", &words), "predicates");
}

#[test]
fn what_says_what_counters_count_is_missed_and_made_anew() {
    let words = ["campaign", "new", "--observe", "paths", "--variants", "1"];
    is_noticed(&Fleet::new("isolating.c", &words), "tally");
}
