//! A program that is observed wherever a command starts it: a session.

use std::collections::BTreeSet;
use std::process::Output;

use tomo_testkit::corpus::compiled;

use crate::site::{Site, alone, errors, finish};
use crate::stub::Stub;

/// A session of these words, in which the program is observed.
fn session(site: &Site, stub: &Stub, words: &[&str]) -> Output {
    let mut command = site.tomo(&stub.url(), "s", &["--program"]);
    command
        .arg(site.program)
        .arg("--")
        .args(words)
        .arg(site.program);
    finish(command, "")
}

/// What runs with these inputs hit, each on an installation of its own.
fn hits(site: &Site, stub: &Stub, inputs: &[&str]) -> BTreeSet<u32> {
    let mut all = BTreeSet::new();
    for input in inputs {
        let state = format!("alone-{input}");
        site.prepare(&stub.url(), &state);
        site.run(&stub.url(), &state, &[], input);
        all.extend(&stub.reports().last().expect("a report").hits);
    }
    all
}

#[test]
fn a_session_is_one_run_of_all_that_it_starts() {
    let site = Site::new();
    let stub = Stub::new(Some(site.assignment(|_| true)));
    let expected = hits(&site, &stub, &["a", "bcd"]);
    site.prepare(&stub.url(), "s");
    let before = stub.reports().len();
    let script = r#"printf a | "$0" && printf bcd | "$0"; exit 3"#;
    let output = session(&site, &stub, &["sh", "-c", script]);
    assert_eq!(errors(&output), "");
    assert_eq!(output.stdout, [alone("a"), alone("bcd")].concat());
    assert_eq!(output.status.code(), Some(3), "the command's own");
    let reports = stub.reports().split_off(before);
    let [said] = reports.as_slice() else {
        panic!("one run, one report: {reports:?}");
    };
    assert_eq!((said.run, said.outcome, said.status), (1, 1, 3));
    assert_eq!(said.armed, 2, "the shell is not observed");
    assert_eq!(said.hits.iter().copied().collect::<BTreeSet<_>>(), expected);
    assert_eq!(site.count("s", "spool") + site.count("s", "runs"), 0);
    // What it hit is gone for whatever is run next.
    session(&site, &stub, &["sh", "-c", script]);
    let last = stub.reports().pop().expect("a report");
    assert_eq!((last.run, last.armed, last.hits.len()), (2, 2, 0));
}

/// A command that is linked statically takes no agent along, but what it starts does.
#[test]
fn what_only_starts_the_program_may_be_what_cannot_be_observed() {
    let site = Site::new();
    let stub = Stub::new(Some(site.assignment(|_| true)));
    site.prepare(&stub.url(), "s");
    let starter = compiled("gcc", "starting.c", &["-O1", "-static"]).expect("built");
    let output = session(&site, &stub, &[starter.to_str().expect("UTF-8")]);
    assert_eq!(errors(&output), "");
    assert_eq!(output.stdout, alone(""));
    let said = stub.reports().pop().expect("a report");
    assert_eq!((said.armed, said.status), (1, 0));
    assert!(!said.hits.is_empty());
}

/// The first session prepares for the program, not for the command.
#[test]
fn the_first_session_prepares_the_program() {
    let site = Site::new();
    let stub = Stub::new(Some(site.assignment(|_| true)));
    let mut command = site.tomo(&stub.url(), "s", &["--wait", "100", "--program"]);
    command
        .arg(site.program)
        .args(["--", "sh", "-c", "exec \"$0\""]);
    let output = finish(
        {
            command.arg(site.program);
            command
        },
        "a",
    );
    assert_eq!(errors(&output), "");
    assert_eq!(output.stdout, alone("a"));
    assert_eq!(stub.reports().pop().expect("a report").armed, 1);
}

#[test]
fn a_program_that_is_not_there_is_named_and_nothing_starts() {
    let site = Site::new();
    let stub = Stub::new(None);
    let mut command = site.tomo(&stub.url(), "s", &["--program", "./no-such-program", "--"]);
    command.args(["echo", "started"]);
    let output = finish(command, "");
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
    let said = errors(&output);
    assert!(said.contains("no-such-program"), "{said}");
}

/// Nobody would arm it.
#[test]
fn a_static_program_is_not_taken_for_one_that_others_start() {
    let site = Site::of_static();
    let stub = Stub::new(Some(site.assignment(|_| true)));
    let output = session(&site, &stub, &["sh", "-c", "exit 3"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        errors(&output).contains("statically linked"),
        "{}",
        errors(&output)
    );
}
