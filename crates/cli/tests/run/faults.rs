//! Whatever the network and the disk do, the program does what it does alone, and what it hit is sent later, once.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::process::{Command, Output};

use crate::site::{Site, alone, errors, finish};
use crate::stub::{Manner, Stub};

fn is_undisturbed(output: &Output, input: &str) {
    assert_eq!(output.stdout, alone(input));
    assert_eq!(output.status.code(), Some(0), "{}", errors(output));
}

#[test]
fn without_a_network_reports_wait_and_are_sent_once() {
    for site in Site::each() {
        let assignment = site.assignment(|_| true);
        let gone = {
            let stub = Stub::new(Some(assignment.clone()));
            site.prepare(&stub.url(), "s");
            stub.url()
        };
        for input in ["a", "b", "c"] {
            let output = site.run(&gone, "s", &[], input);
            is_undisturbed(&output, input);
            assert_eq!(errors(&output), "", "it passes by itself");
        }
        assert_eq!(site.count("s", "spool"), 3);
        let stub = Stub::new(Some(assignment));
        assert_eq!(
            site.flush(&stub.url(), "s"),
            "3 reports sent, 0 refused, 0 waiting\n"
        );
        assert_eq!(
            site.flush(&stub.url(), "s"),
            "0 reports sent, 0 refused, 0 waiting\n"
        );
        let runs: Vec<_> = stub
            .reports()
            .iter()
            .map(|said| (said.run, said.outcome))
            .collect();
        assert_eq!(runs, [(1, 1), (2, 1), (3, 1)]);
    }
}

#[test]
fn an_answer_that_is_lost_brings_the_same_report_again() {
    let site = Site::new();
    let stub = Stub::new(Some(site.assignment(|_| true)));
    site.prepare(&stub.url(), "s");
    stub.behave(Manner::Drops);
    is_undisturbed(
        &site.run(&stub.url(), "s", &["--policy", "start"], "ab"),
        "ab",
    );
    let lost = stub.arrivals();
    assert!(!lost.is_empty());
    stub.behave(Manner::Serves);
    site.flush(&stub.url(), "s");
    let reports = stub.arrivals();
    assert!(
        reports.iter().all(|said| *said == reports[0]),
        "{reports:?}"
    );
    assert!(reports.len() > lost.len());
}

#[test]
fn a_collector_that_never_answers_holds_nobody() {
    let site = Site::new();
    let stub = Stub::new(Some(site.assignment(|_| true)));
    site.prepare(&stub.url(), "s");
    stub.behave(Manner::Hangs);
    let flags = ["--flush-timeout", "0.01"];
    is_undisturbed(&site.run(&stub.url(), "s", &flags, "abc"), "abc");
    is_undisturbed(&site.run(&stub.url(), "new", &flags, "abc"), "abc");
    is_undisturbed(
        &site.run(
            &stub.url(),
            "newer",
            &["--flush-timeout", "0", "--wait", "0.01"],
            "d",
        ),
        "d",
    );
    assert_eq!(site.count("s", "spool"), 1);
    stub.behave(Manner::Serves);
    assert!(site.flush(&stub.url(), "s").starts_with("1 report sent"));
}

#[test]
fn a_collector_that_is_busy_gets_it_later_and_one_that_says_no_is_quoted() {
    let site = Site::new();
    let stub = Stub::new(Some(site.assignment(|_| true)));
    site.prepare(&stub.url(), "s");
    stub.behave(Manner::Refuses(503));
    let busy = site.run(&stub.url(), "s", &[], "a");
    is_undisturbed(&busy, "a");
    assert_eq!(errors(&busy), "");
    stub.behave(Manner::Refuses(401));
    let refused = site.run(&stub.url(), "s", &[], "b");
    is_undisturbed(&refused, "b");
    assert_eq!(
        errors(&refused),
        "tomo: the collector refused (401): no; do not\n"
    );
    stub.behave(Manner::RefusesReports { again: true });
    assert!(site.flush(&stub.url(), "s").contains("2 waiting"));
    stub.behave(Manner::RefusesReports { again: false });
    assert_eq!(
        site.flush(&stub.url(), "s"),
        "0 reports sent, 2 refused, 0 waiting\n"
    );
    stub.behave(Manner::Serves);
    is_undisturbed(&site.run(&stub.url(), "s", &[], "c"), "c");
    let reports = stub.reports();
    let last = reports.last().expect("a report");
    let lost = (last.dropped, last.unfit);
    assert_eq!(lost, (0, 2), "what was lost is counted as what it is");
}

/// The network is there, so somebody should do something about it.
#[test]
fn who_is_no_collector_is_told_of_once() {
    let site = Site::new();
    let listener = TcpListener::bind("127.0.0.1:0").expect("an address");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut stream = BufReader::new(stream);
            let heard = |line: &Result<String, _>| line.as_ref().is_ok_and(|line| !line.is_empty());
            stream.by_ref().lines().take_while(heard).for_each(drop);
            let _ = stream.get_mut().write_all(b"SSH-2.0-other\r\n");
        }
    });
    let output = site.run(&url, "s", &["--wait", "60"], "ab");
    is_undisturbed(&output, "ab");
    let said = errors(&output);
    let told = said.matches("cannot be taken for the collector").count();
    assert_eq!(told, 1, "{said}");
}

#[test]
fn a_disk_that_is_full_keeps_the_program_unobserved_and_nothing_else() {
    let site = Site::new();
    let stub = Stub::new(Some(site.assignment(|_| true)));
    site.prepare(&stub.url(), "s");
    for kilobytes in [0, 1, 4, 8, 16, 64] {
        // What may be written to a file is bounded, which looks as a full disk does.
        let mut shell = Command::new("bash");
        let line = format!(
            "ulimit -f {kilobytes}; exec \"$0\" run --collector \"$1\" --state \"$2\" -- \"$3\""
        );
        shell
            .env("TOMO_CACHE_DIR", site.cache())
            .args(["-c", &line, env!("CARGO_BIN_EXE_tomo"), &stub.url()])
            .arg(site.state("s"))
            .arg(site.program);
        is_undisturbed(&finish(shell, "abcd"), "abcd");
    }
    site.flush(&stub.url(), "s");
    assert_eq!(site.count("s", "spool") + site.count("s", "runs"), 0);
}

#[test]
fn states_that_others_could_write_and_addresses_that_are_none_are_named() {
    use std::os::unix::fs::PermissionsExt as _;
    let site = Site::new();
    let folder = site.state("open");
    std::fs::create_dir(&folder).unwrap();
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o777)).unwrap();
    let output = site.run("http://127.0.0.1:1", "open", &[], "a");
    is_undisturbed(&output, "a");
    assert!(
        errors(&output).contains("was not observed"),
        "{}",
        errors(&output)
    );
    let output = site.run("nonsense", "s", &[], "a");
    is_undisturbed(&output, "a");
    assert!(
        errors(&output).contains("no address of a collector"),
        "{}",
        errors(&output)
    );
    let output = site.run(
        "http://127.0.0.1:1",
        "s",
        &["--token-file", "/no/such"],
        "a",
    );
    is_undisturbed(&output, "a");
    assert!(errors(&output).contains("/no/such"), "{}", errors(&output));
}

#[test]
fn damaged_files_of_the_state_are_made_anew_or_left_out() {
    let site = Site::new();
    let stub = Stub::new(Some(site.assignment(|_| true)));
    site.prepare(&stub.url(), "s");
    site.run(&stub.url(), "s", &[], "a");
    for name in [
        "known.json",
        "images/05050505050505050505050505050505-4.heard",
        "spool/77",
        "runs/99",
        "dropped",
        "unfit",
        "next-run",
        "reserved",
    ] {
        std::fs::write(site.state("s").join(name), "not what it should be").unwrap();
        let output = site.run(&stub.url(), "s", &[], "bc");
        is_undisturbed(&output, "bc");
        let _ = std::fs::remove_file(site.state("s").join(name));
    }
    site.run(&stub.url(), "s", &[], "a");
    let before = stub.reports().len();
    is_undisturbed(&site.run(&stub.url(), "s", &[], "d"), "d");
    assert!(stub.reports().len() > before);
}
