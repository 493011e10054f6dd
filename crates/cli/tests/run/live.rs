//! What others have seen is disposed of while the program runs.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Child;

use crate::site::{Site, alone, started};
use crate::stub::Stub;

/// A program that does a letter at a time.
struct Patient {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Patient {
    fn new(command: std::process::Command) -> Self {
        let mut child = started(command);
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        Self { child, lines }
    }

    fn does(&mut self, letter: &str) {
        let pipe = self.child.stdin.as_mut().expect("a pipe");
        pipe.write_all(letter.as_bytes()).expect("written");
        let line = self.lines.next().expect("a line").expect("text");
        assert_eq!(line.as_bytes(), alone(letter).trim_ascii());
    }

    fn ends(mut self) -> Option<i32> {
        drop(self.child.stdin.take());
        self.child.wait().expect("ended").code()
    }
}

/// What the program hits for this input, in a state of its own.
fn hits(site: &Site, stub: &Stub, state: &str, input: &str) -> Vec<u32> {
    site.prepare(&stub.url(), state);
    site.run(&stub.url(), state, &[], input);
    stub.reports().last().expect("a report").hits.clone()
}

#[test]
fn what_others_have_seen_is_disposed_of_in_a_running_program() {
    for site in Site::each() {
        let assignment = site.assignment(|_| true);
        let stub = Stub::new(Some(assignment.clone()));
        let [before, with] = [("a", "b-without"), ("ab", "b-with")]
            .map(|(input, state)| hits(&site, &stub, state, input));
        let own: Vec<u32> = with
            .iter()
            .copied()
            .filter(|unit| !before.contains(unit))
            .collect();
        assert!(own.len() > 2, "{own:?}");

        let stub = Stub::new(Some(assignment));
        site.prepare(&stub.url(), "live");
        let mut patient =
            Patient::new(site.command(&stub.url(), "live", &["--policy", "interval=0.05"]));
        patient.does("a");
        stub.wait(|reports, _| reports.last().is_some_and(|said| !said.hits.is_empty()));
        stub.see(own.iter().copied());
        // Who asks for what came after has disposed of what came before.
        stub.wait(|_, heard| heard == own.len() as u64);
        patient.does("b");
        patient.does("c");
        assert_eq!(patient.ends(), Some(0));
        let reports = stub.reports();
        let last = reports.last().expect("a report");
        assert_eq!(last.outcome, 1);
        assert!(before.iter().all(|unit| last.hits.contains(unit)));
        let again: Vec<_> = own.iter().filter(|unit| last.hits.contains(unit)).collect();
        assert!(again.is_empty(), "hit though disposed of: {again:?}");
        assert!(last.hits.len() > before.len(), "c was observed");
        // Reports of a run are numbered, and say ever more.
        let run: Vec<_> = reports.iter().filter(|said| said.run == last.run).collect();
        assert!(
            run.windows(2)
                .all(|pair| pair[0].sequence < pair[1].sequence)
        );
        assert!(
            run.windows(2)
                .all(|pair| pair[0].hits.len() <= pair[1].hits.len())
        );
    }
}

#[test]
fn a_full_buffer_is_sent_at_once() {
    let site = Site::new();
    let stub = Stub::new(Some(site.assignment(|_| true)));
    site.prepare(&stub.url(), "s");
    let mut patient = Patient::new(site.command(&stub.url(), "s", &["--policy", "buffer=3"]));
    for letter in ["a", "b", "c"] {
        let before = stub.reports().last().map_or(0, |said| said.hits.len());
        patient.does(letter);
        stub.wait(|reports, _| {
            reports
                .last()
                .is_some_and(|said| said.hits.len() >= before + 3)
        });
    }
    assert_eq!(patient.ends(), Some(0));
}

#[test]
fn what_was_seen_before_the_first_run_is_never_armed() {
    let site = Site::new();
    let stub = Stub::new(Some(site.assignment(|_| true)));
    let truth = hits(&site, &stub, "one", "abcd");
    stub.see(truth.iter().copied());
    assert_eq!(hits(&site, &stub, "two", "abcd"), [0; 0]);
}

#[test]
fn a_program_outlives_its_launcher_and_is_reported_once_it_has_ended() {
    for site in Site::each() {
        let stub = Stub::new(Some(site.assignment(|_| true)));
        site.prepare(&stub.url(), "s");
        let mut patient = Patient::new(site.command(&stub.url(), "s", &[]));
        patient.does("a");
        // Waiting would close it.
        let pipe = patient.child.stdin.take();
        patient.child.kill().expect("killed");
        patient.child.wait().expect("ended");
        patient.child.stdin = pipe;
        let said = site.flush(&stub.url(), "s");
        let reports = stub.reports();
        assert!(
            said.starts_with("0 reports sent"),
            "it runs still: {said} {reports:?}"
        );
        patient.does("b");
        drop(patient.child.stdin.take());
        assert!(patient.lines.next().is_none(), "it ended");
        // Its pipe is closed a moment before it is gone.
        let sent = (0..10_000).any(|_| site.flush(&stub.url(), "s").starts_with("1 report sent"));
        assert!(sent);
        let reports = stub.reports();
        let said = reports.last().expect("a report");
        assert_eq!((said.outcome, said.run), (3, 1));
        assert!(said.hits.len() > 10, "{said:?}");
        assert_eq!(site.count("s", "runs"), 0);
    }
}
