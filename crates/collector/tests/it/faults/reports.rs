//! Reports that come twice, in another order, cut, damaged, too large, without a token, of another
//! version, or for something else.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use proptest::prelude::*;
use proptest::sample::Index;
use proptest::strategy::ValueTree as _;
use tomo_collector::{Limits, Options, Store};
use tomo_protocol::{Bound, ClientError, Name, Profile, What, paths};
use tomo_wire::report::Outcome;

use crate::fleet::{Fleet, Word, client, request_for};

fn fleet(options: Options) -> (tempfile::TempDir, Fleet) {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::local(&folder.path().join("store")).expect("a store");
    let fleet = Fleet::with(
        store,
        folder.path(),
        options,
        request_for(100, 1, Bound::None),
    );
    (folder, fleet)
}

fn profile(fleet: &Fleet) -> Profile {
    let path = paths::of_campaign(paths::PROFILE, fleet.campaign.id);
    fleet.reader.get(&path).expect("a profile")
}

fn why(fleet: &Fleet, body: &[u8]) -> String {
    let answer = fleet.send(body);
    match &answer.verdicts[0].what {
        What::Refused { why, again: false } => why.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn duplicated_and_reordered_reports_change_nothing() {
    let (_folder, fleet) = fleet(Options::default());
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let words: Vec<Word> = (1..=40)
        .map(|run| Word::of(run as u8 % 4, run / 2 + 1, &[run as u32]))
        .enumerate()
        .map(|(at, word)| Word {
            sequence: at as u32 + 1,
            ..word
        })
        .collect();
    let orders = prop::collection::vec(any::<Index>(), 100);
    for _ in 0..5 {
        let order = orders.new_tree(&mut runner).expect("an order").current();
        let sent: Vec<u8> = order
            .iter()
            .flat_map(|index| index.get(&words).report(&fleet.campaign))
            .collect();
        fleet.send(&sent);
    }
    let rest: Vec<u8> = words
        .iter()
        .flat_map(|word| word.report(&fleet.campaign))
        .collect();
    fleet.send(&rest);
    let told = profile(&fleet);
    let runs: BTreeSet<(u8, u64)> = words.iter().map(|word| (word.instance, word.run)).collect();
    assert_eq!(told.totals.runs, runs.len() as u64);
    assert_eq!(told.totals.duration, runs.len() as u64 * 1_000_000_000);
    assert_eq!(told.seen.len(), 40);
    fleet.send(&rest);
    assert_eq!(profile(&fleet), told);
}

#[test]
fn truncated_reports_are_refused_and_what_came_before_is_taken() {
    let (_folder, fleet) = fleet(Options::default());
    let report = Word::of(1, 1, &[1, 2, 3]).report(&fleet.campaign);
    for length in 1..report.len() {
        let answer = fleet.send(&report[..length]);
        assert!(answer.verdicts.is_empty());
        let why = answer.unread.expect("a reason");
        assert!(
            why.contains("cut short") || why.contains("no file of this kind"),
            "{why}"
        );
    }
    assert_eq!(profile(&fleet).totals.runs, 0);
    let next = Word::of(1, 2, &[4]).report(&fleet.campaign);
    let answer = fleet.send(&[next.as_slice(), &report[..50]].concat());
    assert_eq!(answer.verdicts.len(), 1);
    assert_eq!(answer.verdicts[0].what, What::Stored);
    assert!(answer.unread.is_some());
    assert_eq!(profile(&fleet).totals.runs, 1);
}

#[test]
fn corrupt_reports_are_refused_whichever_byte_it_is() {
    let (_folder, fleet) = fleet(Options::default());
    let report = Word::of(1, 1, &[1, 2, 3]).report(&fleet.campaign);
    for at in 0..report.len() {
        let mut damaged = report.clone();
        damaged[at] ^= 0x10;
        let answer = fleet.send(&damaged);
        assert!(
            answer.verdicts.is_empty() && answer.unread.is_some(),
            "byte {at}"
        );
    }
    assert_eq!(profile(&fleet).totals.runs, 0);
}

#[test]
fn reports_of_another_version_are_refused_and_say_which() {
    let (_folder, fleet) = fleet(Options::default());
    let mut report = Word::of(1, 1, &[1]).report(&fleet.campaign);
    report[8] = 9;
    let why = fleet.send(&report).unread.expect("a reason");
    assert!(
        why.contains("version 9") && why.contains("version 3"),
        "{why}"
    );
}

#[test]
fn oversized_bodies_and_too_many_reports_are_refused() {
    let limits = Limits {
        report_body: 4096,
        reports_per_body: 5,
        ..Limits::default()
    };
    let (_folder, fleet) = fleet(Options {
        limits,
        ..Options::default()
    });
    let refused = |body: &[u8]| {
        let outcome = fleet
            .instances
            .post_bytes::<serde_json::Value>(paths::REPORTS, body);
        match outcome {
            Err(ClientError::Refused {
                status, problem, ..
            }) => (status, problem.error),
            other => panic!("{other:?}"),
        }
    };
    let (status, why) = refused(&vec![0; 5000]);
    assert_eq!(
        (status, why.as_str()),
        (413, "the body has more than 4096 bytes")
    );
    let many: Vec<u8> = (1..=6)
        .flat_map(|run| Word::of(1, run, &[]).report(&fleet.campaign))
        .collect();
    let (status, why) = refused(&many);
    assert_eq!(
        (status, why.as_str()),
        (413, "more than 5 reports in one body")
    );
    assert_eq!(profile(&fleet).totals.runs, 0, "none of them was taken");
}

#[test]
fn reports_without_a_token_or_with_a_readers_are_refused() {
    let (_folder, fleet) = fleet(Options::default());
    let body = Word::of(1, 1, &[1]).report(&fleet.campaign);
    for (client, expected) in [
        (client(&fleet.url, None), 401),
        (fleet.reader.clone(), 403),
        (fleet.admin.clone(), 403),
    ] {
        let outcome = client.post_bytes::<serde_json::Value>(paths::REPORTS, &body);
        match outcome {
            Err(ClientError::Refused { status, .. }) => assert_eq!(status, expected),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(profile(&fleet).totals.runs, 0);
}

#[test]
fn a_report_for_an_unknown_build_is_refused_and_says_so() {
    let (_folder, fleet) = fleet(Options::default());
    let report = Word::of(1, 1, &[1]).report_for(fleet.campaign.id, Name(1));
    assert!(why(&fleet, &report).contains("another build of the program"));
}

#[test]
fn reports_that_contradict_their_campaign_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::local(&folder.path().join("store")).expect("a store");
    let fleet = Fleet::new(store, folder.path(), 100, 4, Bound::Probes(25));
    let mut word = Word::of(1, 1, &[]);
    word.variant = 4;
    assert_eq!(
        why(&fleet, &word.report(&fleet.campaign)),
        "the campaign has no such variant"
    );
    let foreign = fleet.campaign.variants[1]
        .units
        .iter()
        .next()
        .expect("a unit");
    let body = Word::of(1, 1, &[foreign]).report(&fleet.campaign);
    assert!(why(&fleet, &body).contains("units that its variant does not carry"));
    let body = Word::of(1, 1, &[u32::MAX]).report(&fleet.campaign);
    assert!(why(&fleet, &body).contains("units that its variant does not carry"));
    let body = Word::of(1, 0, &[]).report(&fleet.campaign);
    assert!(why(&fleet, &body).contains("numbered from 1"));
    fleet.send(&Word::of(1, 1, &[]).report(&fleet.campaign));
    let body = Word::of(1, u64::MAX, &[]).report(&fleet.campaign);
    assert!(why(&fleet, &body).contains("numbered from 1"));
}

/// Copies of one installation give the same numbers to different runs. What cannot be counted is not taken in silence.
#[test]
fn a_run_that_has_ended_otherwise_is_refused_and_says_so() {
    let (_folder, fleet) = fleet(Options::default());
    let first = Word::of(1, 1, &[1]).report(&fleet.campaign);
    fleet.send(&first);
    let mut other = Word::of(1, 1, &[2]);
    other.duration += 1;
    let body = other.report(&fleet.campaign);
    assert!(why(&fleet, &body).contains("is a copy"));
    let again = fleet.send(&first);
    assert!(matches!(again.verdicts[0].what, What::Known));
    // What was said of it while it ran may come late.
    let mut before = Word::of(1, 1, &[]);
    (before.sequence, before.outcome) = (0, Outcome::Running);
    let late = fleet.send(&before.report(&fleet.campaign));
    assert!(matches!(late.verdicts[0].what, What::Known));
    assert_eq!(profile(&fleet).totals.runs, 1);
}

#[test]
fn an_instance_too_many_is_told_to_come_again() {
    let limits = Limits {
        instances: 2,
        ..Limits::default()
    };
    let (_folder, fleet) = fleet(Options {
        limits,
        ..Options::default()
    });
    for instance in 1..=2 {
        fleet.assignment(instance);
    }
    let answer = fleet.send(&Word::of(3, 1, &[]).report(&fleet.campaign));
    assert!(matches!(
        answer.verdicts[0].what,
        What::Refused { again: true, .. }
    ));
    let path = paths::of_assignment(tomo_protocol::InstanceId([3; 16]), None);
    let error = fleet.instances.get::<serde_json::Value>(&path).unwrap_err();
    assert!(error.to_string().contains("--max-instances"), "{error}");
}

#[test]
fn one_body_brings_no_more_instances_than_there_may_be() {
    let limits = Limits {
        instances: 5,
        ..Limits::default()
    };
    let (_folder, fleet) = fleet(Options {
        limits,
        ..Options::default()
    });
    let of = |instance, run| Word::of(instance, run, &[]).report(&fleet.campaign);
    let bodies = (1..=20).flat_map(|instance| [of(instance, 1), of(instance, 2)]);
    let answer = fleet.send(&bodies.flatten().collect::<Vec<u8>>());
    let stored = |verdict: &&tomo_protocol::Verdict| verdict.what == What::Stored;
    assert_eq!(answer.verdicts.iter().filter(stored).count(), 10);
    assert!(answer.verdicts.iter().take(10).all(|one| stored(&one)));
    // Those that there are may go on.
    let answer = fleet.send(&[of(6, 3), of(5, 3)].concat());
    assert!(matches!(
        answer.verdicts[0].what,
        What::Refused { again: true, .. }
    ));
    assert_eq!(answer.verdicts[1].what, What::Stored);
}

#[test]
fn who_never_comes_back_slows_nobody_down() {
    let now = Arc::new(AtomicI64::new(1_000_000_000_000_000_000));
    let clock = Arc::clone(&now);
    let limits = Limits {
        reports_per_second: 1,
        interval: std::time::Duration::from_millis(1),
        ..Limits::default()
    };
    let (_folder, fleet) = fleet(Options {
        limits,
        clock: Arc::new(move || clock.load(Ordering::Relaxed)),
        ..Options::default()
    });
    let of = |instance, run| Word::of(instance, run, &[]).report(&fleet.campaign);
    let all: Vec<u8> = (1..=50).flat_map(|instance| of(instance, 1)).collect();
    assert_eq!(fleet.send(&all).interval_ms, 50_000);
    // They come together, and not all of them in time.
    let pass = |minutes: i64| now.fetch_add(minutes * 60_000_000_000, Ordering::Relaxed);
    pass(90);
    let some: Vec<u8> = (1..=20).flat_map(|instance| of(instance, 2)).collect();
    assert_eq!(fleet.send(&some).interval_ms, 50_000);
    pass(90);
    assert_eq!(fleet.send(&of(21, 2)).interval_ms, 21_000);
    // A new one counts at once.
    assert_eq!(fleet.send(&of(51, 1)).interval_ms, 22_000);
}

#[test]
fn who_asks_too_often_is_told_to_wait() {
    let limits = Limits {
        requests_per_second: 5,
        ..Limits::default()
    };
    let (_folder, fleet) = fleet(Options {
        limits,
        ..Options::default()
    });
    let outcomes = (0..200).map(|_| fleet.reader.get::<serde_json::Value>(paths::CAMPAIGNS));
    let refused: Vec<ClientError> = outcomes.filter_map(Result::err).collect();
    assert!(!refused.is_empty());
    for error in refused {
        assert!(
            matches!(error, ClientError::Refused { status: 429, .. }),
            "{error}"
        );
        assert!(error.is_temporary() && error.retry_after().is_some());
    }
}
