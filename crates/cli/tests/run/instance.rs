//! What an instance does where nothing goes wrong.

use std::os::unix::process::ExitStatusExt as _;

use crate::site::{Site, alone, errors};
use crate::stub::Stub;

const IN_ALL: &str = "abcd";

#[test]
fn the_first_run_prepares_and_the_next_ones_report_what_they_hit() {
    for site in Site::each() {
        let stub = Stub::new(Some(site.assignment(|_| true)));
        let first = site.run(&stub.url(), "s", &[], IN_ALL);
        assert_eq!(
            (first.stdout, first.status.code()),
            (alone(IN_ALL), Some(0))
        );
        assert_eq!(stub.reports(), [], "nothing was known yet");
        let second = site.run(&stub.url(), "s", &[], IN_ALL);
        assert_eq!(errors(&second), "");
        assert_eq!(
            (second.stdout, second.status.code()),
            (alone(IN_ALL), Some(0))
        );
        let reports = stub.reports();
        let said = reports.last().expect("a report");
        assert_eq!((said.run, said.outcome, said.status), (1, 1, 0));
        assert_eq!((said.armed, said.variant, said.dropped), (1, 4, 0));
        assert!(said.hits.len() > 10 && said.duration > 0, "{said:?}");
        // What it hit is gone for good.
        let third = site.run(&stub.url(), "s", &[], IN_ALL);
        assert_eq!(third.stdout, alone(IN_ALL));
        let reports = stub.reports();
        let later = reports.last().expect("a report");
        assert_eq!(later.run, 2);
        let again: Vec<_> = later
            .hits
            .iter()
            .filter(|unit| said.hits.contains(unit))
            .collect();
        assert!(again.is_empty(), "hit though disposed of: {again:?}");
        assert_eq!(later.hits, [0; 0]);
        assert_eq!(later.instance, said.instance);
        assert_eq!(site.count("s", "spool") + site.count("s", "runs"), 0);
    }
}

#[test]
fn who_waits_is_observed_from_the_first_run_on() {
    let site = Site::new();
    let stub = Stub::new(Some(site.assignment(|_| true)));
    let output = site.run(&stub.url(), "s", &["--wait", "100", "-v"], "a");
    assert_eq!(output.stdout, alone("a"));
    assert!(
        stub.reports()
            .last()
            .is_some_and(|said| said.hits.len() > 5)
    );
    assert!(
        errors(&output).contains("1 final report sent, 0 waiting"),
        "{}",
        errors(&output)
    );
}

#[test]
fn only_what_was_assigned_is_observed() {
    for site in Site::each() {
        let all = Stub::new(Some(site.assignment(|_| true)));
        site.prepare(&all.url(), "all");
        site.run(&all.url(), "all", &[], IN_ALL);
        let truth = all.reports().last().expect("a report").hits.clone();
        for third in 0..3 {
            let stub = Stub::new(Some(site.assignment(|unit| unit % 3 == third)));
            let state = format!("part-{third}");
            site.prepare(&stub.url(), &state);
            site.run(&stub.url(), &state, &[], IN_ALL);
            let expected: Vec<u32> = truth
                .iter()
                .copied()
                .filter(|unit| unit % 3 == third)
                .collect();
            assert_eq!(stub.reports().last().expect("a report").hits, expected);
        }
    }
}

#[test]
fn exit_codes_and_signals_are_the_programs() {
    for site in Site::each() {
        let stub = Stub::new(Some(site.assignment(|_| true)));
        site.prepare(&stub.url(), "s");
        let ended = |input| site.run(&stub.url(), "s", &[], input).status;
        assert_eq!(ended("ax").code(), Some(7));
        assert_eq!(ended("bk").code(), Some(137));
        assert_eq!(ended("").signal(), None);
        let said: Vec<_> = stub
            .reports()
            .iter()
            .map(|r| (r.outcome, r.status))
            .collect();
        assert_eq!(said, [(1, 7), (2, 9), (1, 0)]);
        let missing = crate::site::finish(
            {
                let mut command = site.tomo(&stub.url(), "s", &["--"]);
                command.arg("no-such-program-anywhere");
                command
            },
            "",
        );
        assert_eq!(missing.status.code(), Some(127));
    }
}

#[test]
fn runs_at_the_same_time_have_numbers_of_their_own_and_one_image() {
    for site in Site::each() {
        let stub = Stub::new(Some(site.assignment(|_| true)));
        site.prepare(&stub.url(), "s");
        let children: Vec<_> = (0..6)
            .map(|_| crate::site::started(site.command(&stub.url(), "s", &[])))
            .collect();
        for mut child in children {
            use std::io::Write as _;
            child
                .stdin
                .take()
                .expect("a pipe")
                .write_all(b"abcd")
                .expect("written");
            let output = child.wait_with_output().expect("ended");
            assert_eq!(
                (output.stdout, output.status.code()),
                (alone(IN_ALL), Some(0))
            );
        }
        site.flush(&stub.url(), "s");
        let mut runs: Vec<u64> = stub.reports().iter().map(|said| said.run).collect();
        runs.sort_unstable();
        runs.dedup();
        assert_eq!(runs, [1, 2, 3, 4, 5, 6]);
    }
}

#[test]
fn a_new_assignment_is_taken_up_and_what_belonged_to_the_old_one_goes() {
    let site = Site::new();
    let one = Stub::new(Some(site.assignment(|unit| unit % 2 == 0)));
    site.prepare(&one.url(), "s");
    site.run(&one.url(), "s", &[], IN_ALL);
    let mut assignment = site.assignment(|unit| unit % 2 == 1);
    assignment.variant = 9;
    let other = Stub::new(Some(assignment));
    // It carries the old one still, and prepares the new one meanwhile.
    site.run(&other.url(), "s", &[], IN_ALL);
    let output = site.run(&other.url(), "s", &[], IN_ALL);
    assert_eq!(output.stdout, alone(IN_ALL));
    let reports = other.reports();
    let variants: Vec<u32> = reports.iter().map(|said| said.variant).collect();
    assert_eq!(variants, [4, 9]);
    assert!(reports[1].hits.len() > 10 && reports[1].hits.iter().all(|unit| unit % 2 == 1));
    assert_eq!(
        site.count("s", "images"),
        3,
        "an image, its disposals, and what was heard of it"
    );
}
