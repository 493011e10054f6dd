//! A program into which no agent can be loaded takes part in a fleet as others do.

use std::process::Command;

use tomo_testkit::corpus::compiled;

use crate::instances::Fleet;
use crate::site::Site;

/// What is said of the lines of the program's source.
fn lines(lcov: &str) -> Vec<&str> {
    let lines = lcov.lines();
    lines.filter(|line| line.starts_with("DA:")).collect()
}

/// Stripped, in Go, and without a build id that others would know: each installation carries a third of its probes.
#[test]
fn what_installations_tell_of_a_static_program_makes_up_its_coverage() {
    const SOURCE: [&str; 2] = ["--include", "*panicking.go"];
    let program = compiled("go", "panicking.go", &["-ldflags=-s -w"]).expect("built");
    let words = ["campaign", "new", "--variants", "3", "--probes", "10000"];
    let fleet = Fleet::of(Site::new(), program, &words);
    assert_eq!(fleet.campaign().variants.len(), 3);
    let alone = Command::new(&fleet.program).output().expect("run");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    for instance in 0..3 {
        fleet.prepare(instance);
        let output = fleet.tomo(instance, &[], &[]);
        assert_eq!(text(&output.stdout), text(&alone.stdout));
        assert_eq!(text(&output.stderr), text(&alone.stderr));
        assert_eq!(output.status.code(), alone.status.code());
        let table = fleet.site.tomo(&["fleet", "report", &fleet.id]);
        let words: Vec<&str> = table.split_whitespace().collect();
        let said = words.join(" ");
        assert!(said.contains("no run has carried their probes"), "{table}");
        assert!(!said.contains("Could not be observed"), "{table}");
    }
    let report = ["fleet", "report", &fleet.id, "--format", "lcov"];
    let told = fleet.site.tomo(&[&report[..], &SOURCE].concat());
    let path = fleet.program.to_str().expect("UTF-8");
    let output = fleet.site.output(&["cover", "-o", "covered", "--", path]);
    assert_eq!(output.status.code(), alone.status.code());
    let report = ["report", "covered", "--format", "lcov"];
    let covered = fleet.site.tomo(&[&report[..], &SOURCE].concat());
    let (told, covered) = (lines(&told), lines(&covered));
    let ran = |lines: &[&str]| -> Vec<String> {
        let ran = lines.iter().filter(|line| line.ends_with(",1"));
        ran.map(|line| line.to_string()).collect()
    };
    assert!(ran(&covered).len() > 50, "{covered:?}");
    assert_eq!(ran(&told), ran(&covered));
    // Of runs that carry a third each, nothing is inferred from silence.
    assert!(told.iter().all(|line| covered.contains(line)), "{told:?}");
}
