//! What was prepared, and cannot be used: by another build of tomo, or not to the end.

use std::path::{Path, PathBuf};
use std::process::Output;

use tomo_protocol::{Assignment, Name};
use tomo_wire::report::name_of_plans;

use crate::site::{Site, alone, errors, finish};
use crate::stub::{Manner, Stub};

/// An assignment whose runs do not ask for another.
fn lasting(site: &Site) -> Assignment {
    let mut assignment = site.assignment(|_| true);
    assignment.policy.update_at_start = false;
    assignment
}

/// Changes each file of the state's images whose name ends so.
fn change(site: &Site, state: &str, end: &str, with: impl Fn(&mut Vec<u8>)) {
    let folder = site.state(state).join("images");
    let entries = std::fs::read_dir(folder).expect("a folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let files: Vec<PathBuf> = paths
        .filter(|path| path.to_string_lossy().ends_with(end))
        .collect();
    assert!(!files.is_empty());
    for path in files {
        let mut bytes = std::fs::read(&path).expect("a file");
        with(&mut bytes);
        std::fs::write(&path, bytes).expect("written");
    }
}

/// Runs unobserved, and says why; then observed again, and says nothing.
fn is_said_and_mended(site: &Site, stub: &Stub, state: &str) {
    let before = stub.reports().len();
    let unobserved = site.run(&stub.url(), state, &[], "ab");
    assert_eq!(
        (unobserved.stdout.clone(), unobserved.status.code()),
        (alone("ab"), Some(0))
    );
    assert_eq!(
        errors(&unobserved),
        "tomo: not observed: what was prepared here was prepared by another build of tomo, or has been damaged; \
         it is made anew for the next runs (at once: tomo run --prepare)\n"
    );
    assert_eq!(stub.reports().len(), before);
    let observed = site.run(&stub.url(), state, &[], "ab");
    assert_eq!(errors(&observed), "");
    assert_eq!(stub.reports().len(), before + 1);
}

#[test]
fn images_of_another_build_are_said_and_made_anew() {
    let site = Site::new();
    let stub = Stub::new(Some(lasting(&site)));
    site.prepare(&stub.url(), "s");
    // Behind the magic number is the version of the format.
    change(&site, "s", ".image", |image| image[8] ^= 0x40);
    is_said_and_mended(&site, &stub, "s");
}

#[test]
fn an_assignment_that_another_build_wrote_down_is_said_and_asked_for_anew() {
    let site = Site::new();
    let stub = Stub::new(Some(lasting(&site)));
    site.prepare(&stub.url(), "s");
    let path = site.state("s").join("known.json");
    let known = std::fs::read_to_string(&path).expect("a file");
    let other = known.replace("tomo.known/", "tomo.known/0");
    assert_ne!(other, known);
    std::fs::write(&path, other).expect("written");
    is_said_and_mended(&site, &stub, "s");
}

#[test]
fn who_waits_is_observed_though_another_build_prepared() {
    let site = Site::new();
    let stub = Stub::new(Some(lasting(&site)));
    site.prepare(&stub.url(), "s");
    change(&site, "s", ".image", |image| image[8] ^= 0x40);
    let output = site.run(&stub.url(), "s", &["--wait", "100"], "a");
    assert_eq!(
        (output.stdout.clone(), errors(&output)),
        (alone("a"), String::new())
    );
    assert_eq!(stub.reports().len(), 1);
}

/// It may have been found by a process of its own, to which nobody listens.
#[test]
fn why_nothing_could_be_prepared_is_said_by_the_next_run() {
    let site = Site::new();
    let mut assignment = site.assignment(|_| true);
    let plan = Name(assignment.modules[0].plan.0 ^ 1);
    assignment.modules[0].plan = plan;
    assignment.plans = Name(name_of_plans(&[plan.0.into()]));
    let stub = Stub::new(Some(assignment));
    let failed = site.run(&stub.url(), "s", &["--prepare"], "");
    assert_eq!(failed.status.code(), Some(2));
    stub.behave(Manner::Refuses(503));
    let output = site.run(&stub.url(), "s", &[], "ab");
    assert_eq!(
        (output.stdout.clone(), output.status.code()),
        (alone("ab"), Some(0))
    );
    assert_eq!(errors(&output), errors(&failed));
    assert!(
        errors(&output).contains("`tomo campaign new`"),
        "{}",
        errors(&output)
    );
    stub.behave(Manner::Serves);
    stub.assign(site.assignment(|_| true));
    site.prepare(&stub.url(), "s");
    assert_eq!(errors(&site.run(&stub.url(), "s", &[], "ab")), "");
}

#[test]
fn who_waits_waits_for_a_collector_that_is_not_there_yet() {
    let site = Site::new();
    let stub = Stub::new(Some(site.assignment(|_| true)));
    for (state, manner) in [("closes", Manner::Drops), ("busy", Manner::Refuses(503))] {
        stub.behave(manner);
        let (before, asked) = (stub.reports().len(), stub.asked());
        let command = site.command(&stub.url(), state, &["--wait", "100"]);
        let child = crate::site::started(command);
        stub.wait_until_asked(asked + 1);
        stub.behave(Manner::Serves);
        let output = child.wait_with_output().expect("ended");
        assert_eq!(
            (output.status.code(), errors(&output)),
            (Some(0), String::new())
        );
        assert_eq!(stub.reports().len(), before + 1, "{state}");
    }
}

/// A copy of the program, which may be replaced.
fn install(site: &Site) -> PathBuf {
    let installed = site.state("installed");
    std::fs::copy(site.program, &installed).expect("installed");
    installed
}

/// What comes of a run of `installed` with these flags.
fn run_installed(site: &Site, stub: &Stub, installed: &Path, flags: &[&str]) -> Output {
    let mut command = site.tomo(&stub.url(), "s", flags);
    command.arg("--").arg(installed);
    finish(command, "ab")
}

/// An update of the program leaves what was prepared for the build before it, whole and of no use.
#[test]
fn a_program_that_was_replaced_since_is_said_not_to_be_observed() {
    for site in Site::each() {
        let stub = Stub::new(Some(lasting(&site)));
        let (installed, update) = (install(&site), site.state("update"));
        let run = |flags: &[&str]| run_installed(&site, &stub, &installed, flags);
        assert!(run(&["--prepare"]).status.success());
        assert_eq!(errors(&run(&[])), "");
        std::fs::copy(site.other_build(), &update).expect("copied");
        std::fs::rename(&update, &installed).expect("replaced");
        for flags in [&[][..], &["--verbose"], &["--wait", "100"]] {
            let output = run(flags);
            let seen = (output.stdout.clone(), output.status.code());
            assert_eq!(seen, (alone("ab"), Some(0)));
            let said = errors(&output);
            assert_eq!(said.matches("another build").count(), 1, "{said}");
            assert!(said.contains("`tomo campaign new`"), "{said}");
        }
        let failed = run(&["--prepare"]);
        assert_eq!(failed.status.code(), Some(2));
        assert!(errors(&failed).contains("another build"));
        // The build before it comes back, and is observed with what was prepared.
        std::fs::copy(site.program, &update).expect("copied");
        std::fs::rename(&update, &installed).expect("replaced");
        assert_eq!(errors(&run(&[])), "");
        let armed: Vec<u64> = stub.reports().iter().map(|said| said.armed).collect();
        assert_eq!(armed, [1, 0, 0, 0, 1]);
    }
}

/// Its build id tells nothing of that, and nobody is in it who would look at its text.
#[test]
fn a_static_program_that_was_patched_since_is_not_armed() {
    let site = Site::of_static();
    let stub = Stub::new(Some(lasting(&site)));
    let installed = install(&site);
    let run = |flags: &[&str]| run_installed(&site, &stub, &installed, flags);
    assert!(run(&["--prepare"]).status.success());
    // What fills the room between functions is code as well.
    let filling = [0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0];
    let mut bytes = std::fs::read(&installed).expect("read");
    let mut windows = bytes.windows(filling.len());
    let at = windows.position(|bytes| bytes == filling).expect("one");
    bytes[at + filling.len() - 1] = 1;
    std::fs::write(&installed, bytes).expect("patched");
    let output = run(&[]);
    assert_eq!(
        (output.stdout.clone(), output.status.code()),
        (alone("ab"), Some(0))
    );
    let said = errors(&output);
    assert!(
        said.contains("not the one its image was made for"),
        "{said}"
    );
    assert_eq!(stub.reports().last().expect("a report").armed, 0);
}
