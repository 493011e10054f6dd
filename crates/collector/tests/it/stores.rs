//! What the store keeps: over restarts, over compactions, and for several collectors at once.

use std::sync::Arc;

use tomo_collector::{Options, Retention, Store};
use tomo_protocol::{Bound, Profile, Program, Role, Summary, What, paths};

use crate::fleet::{Fleet, Word, client, request_for, serve, token};

fn profile(admin: &tomo_protocol::Client, id: tomo_protocol::CampaignId) -> Profile {
    admin
        .get(&paths::of_campaign(paths::PROFILE, id))
        .expect("a profile")
}

fn log_of(folder: &std::path::Path, id: tomo_protocol::CampaignId) -> Vec<String> {
    let log = folder.join("store/log").join(id.to_string());
    let files = std::fs::read_dir(log).expect("a log");
    let mut names: Vec<String> = files
        .map(|file| {
            file.expect("a file")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names.sort();
    names
}

fn block<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.expect("a runtime").block_on(future)
}

#[test]
fn everything_is_there_after_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::local(&folder.path().join("store")).expect("a store");
    let fleet = Fleet::new(store.clone(), folder.path(), 30, 3, Bound::Probes(10));
    let assignment = fleet.assignment(1);
    let id = fleet.campaign.id;
    let unit = assignment.units.iter().next().expect("a unit");
    let mut word = Word::of(1, 1, &[unit]);
    word.variant = assignment.variant;
    let body = word.report(&fleet.campaign);
    fleet.send(&body);
    let before = profile(&fleet.reader, id);
    let instances = token(&fleet.admin, id, Role::Instance);
    drop(fleet);
    let served = serve(
        store,
        Options::default(),
        &folder.path().join("admin.token"),
    );
    let admin = client(&served.url, Some(&served.admin));
    assert_eq!(profile(&admin, id), before);
    let instance = client(&served.url, Some(&instances));
    let path = paths::of_assignment(tomo_protocol::InstanceId([1; 16]), None);
    let again: tomo_protocol::Assignment = instance.get(&path).expect("an assignment");
    assert_eq!(again.variant, assignment.variant);
    let answer: tomo_protocol::Answer = instance.post_bytes(paths::REPORTS, &body).expect("known");
    assert_eq!(answer.verdicts[0].what, What::Known);
    served.shutdown.end();
    served.thread.join().expect("an end");
}

#[test]
fn a_snapshot_replaces_segments_and_says_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::local(&folder.path().join("store")).expect("a store");
    let fleet = Fleet::new(store.clone(), folder.path(), 300, 1, Bound::None);
    let id = fleet.campaign.id;
    for run in 1..=100 {
        fleet.send(&Word::of(run as u8 % 7, run, &[run as u32]).report(&fleet.campaign));
    }
    let before = profile(&fleet.reader, id);
    assert_eq!(log_of(folder.path(), id).len(), 100);
    block(fleet.collector.compact()).expect("compacted");
    let names = log_of(folder.path(), id);
    assert!(
        names.len() == 1 && names[0].ends_with(".snapshot"),
        "{names:?}"
    );
    assert_eq!(profile(&fleet.reader, id), before);
    fleet.send(&Word::of(1, 200, &[299]).report(&fleet.campaign));
    let after = profile(&fleet.reader, id);
    drop(fleet);
    let served = serve(
        store,
        Options::default(),
        &folder.path().join("admin.token"),
    );
    assert_eq!(
        profile(&client(&served.url, Some(&served.admin)), id),
        after
    );
    served.shutdown.end();
    served.thread.join().expect("an end");
}

#[test]
fn two_collectors_on_one_store_give_the_same_profile() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::local(&folder.path().join("store")).expect("a store");
    let one = Fleet::new(store.clone(), folder.path(), 300, 1, Bound::None);
    let id = one.campaign.id;
    let two = serve(
        store.clone(),
        Options::default(),
        &folder.path().join("admin.token"),
    );
    let admin = client(&two.url, Some(&two.admin));
    let instances = token(&admin, id, Role::Instance);
    let other = client(&two.url, Some(&instances));
    for run in 1..=120_u64 {
        let body = Word::of(run as u8 % 5, run, &[run as u32]).report(&one.campaign);
        // Some to one, some to the other, some to both.
        if run % 3 != 0 {
            one.send(&body);
        }
        if run % 3 != 1 {
            let _: tomo_protocol::Answer = other.post_bytes(paths::REPORTS, &body).expect("stored");
        }
        // Each compacts now and then, knowing only a part of what the other has written.
        if run % 17 == 0 {
            block(one.collector.compact()).expect("compacted");
        }
        if run % 23 == 0 {
            block(two.collector.keep_once()).expect("refreshed");
            block(two.collector.compact()).expect("compacted");
        }
    }
    block(one.collector.keep_once()).expect("refreshed");
    block(two.collector.keep_once()).expect("refreshed");
    let profiles = [profile(&one.reader, id), profile(&admin, id)];
    assert_eq!(profiles[0], profiles[1]);
    assert_eq!(profiles[0].seen.len(), 120);
    assert_eq!(profiles[0].totals.runs, 120);
    assert_eq!(profiles[0].totals.duration, 120_000_000_000);
    two.shutdown.end();
    two.thread.join().expect("an end");
    drop(one);
    let three = serve(
        store,
        Options::default(),
        &folder.path().join("admin.token"),
    );
    assert_eq!(
        profile(&client(&three.url, Some(&three.admin)), id),
        profiles[0]
    );
    three.shutdown.end();
    three.thread.join().expect("an end");
}

#[test]
fn a_retired_campaign_keeps_one_snapshot_and_goes_when_its_time_is_over() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::local(&folder.path().join("store")).expect("a store");
    let now = Arc::new(std::sync::atomic::AtomicI64::new(1_000));
    let clock = Arc::clone(&now);
    let options = Options {
        retention: Retention {
            keep: Some(std::time::Duration::from_nanos(500)),
            ..Retention::default()
        },
        clock: Arc::new(move || clock.load(std::sync::atomic::Ordering::Relaxed)),
        ..Options::default()
    };
    let fleet = Fleet::with(
        store.clone(),
        folder.path(),
        options,
        request_for(30, 1, Bound::None),
    );
    let id = fleet.campaign.id;
    for run in 1..=5 {
        fleet.send(&Word::of(1, run, &[run as u32]).report(&fleet.campaign));
    }
    // Another one on the same store, which is told of nothing.
    let other = serve(
        store,
        Options::default(),
        &folder.path().join("admin.token"),
    );
    let admin = client(&other.url, Some(&other.admin));
    assert_eq!(profile(&admin, id).seen.len(), 5);
    let path = paths::of_campaign(paths::RETIRE, id);
    let _: Summary = fleet.admin.post(&path, &()).expect("retired");
    block(fleet.collector.keep_once()).expect("kept");
    assert_eq!(log_of(folder.path(), id).len(), 1);
    assert_eq!(profile(&fleet.admin, id).seen.len(), 5);
    let editions = folder.path().join(format!("store/editions/{id}"));
    std::fs::create_dir_all(&editions).expect("a folder");
    std::fs::write(editions.join("00000001.edition"), "decided").expect("written");
    now.store(1_500, std::sync::atomic::Ordering::Relaxed);
    block(fleet.collector.keep_once()).expect("kept");
    let left: Vec<Summary> = fleet.admin.get(paths::CAMPAIGNS).expect("a list");
    assert!(left.is_empty());
    let files = |of: &str| -> Vec<_> {
        let files = std::fs::read_dir(folder.path().join("store").join(of));
        files.expect("a folder").collect()
    };
    let campaigns = files("campaigns");
    assert!(campaigns.is_empty(), "{campaigns:?}");
    assert!(files(&format!("editions/{id}")).is_empty());
    assert!(log_of(folder.path(), id).is_empty());
    assert_eq!(files("tokens").len(), 1, "the administrator's");
    block(other.collector.keep_once()).expect("kept");
    let left: Vec<Summary> = admin.get(paths::CAMPAIGNS).expect("a list");
    assert!(left.is_empty());
    let left: Vec<Program> = admin.get(paths::PROGRAMS).expect("a list");
    assert!(left.is_empty());
    other.shutdown.end();
    other.thread.join().expect("an end");
}

#[test]
fn damaged_objects_are_left_out_counted_and_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::local(&folder.path().join("store")).expect("a store");
    let fleet = Fleet::new(store.clone(), folder.path(), 300, 1, Bound::None);
    let id = fleet.campaign.id;
    for run in 1..=4 {
        // Two reports in each segment.
        let mut body = Word::of(1, 2 * run, &[2 * run as u32]).report(&fleet.campaign);
        body.extend(Word::of(1, 2 * run + 1, &[2 * run as u32 + 1]).report(&fleet.campaign));
        fleet.send(&body);
    }
    drop(fleet);
    let names = log_of(folder.path(), id);
    let path = |at: usize| folder.path().join(format!("store/log/{id}/{}", names[at]));
    // One cut within its second report, one damaged in its first, one that is something else.
    let bytes = std::fs::read(path(0)).expect("a segment");
    std::fs::write(path(0), &bytes[..bytes.len() - 60]).expect("cut");
    let mut bytes = std::fs::read(path(1)).expect("a segment");
    bytes[100] ^= 1;
    std::fs::write(path(1), bytes).expect("changed");
    std::fs::write(path(2), b"something else").expect("replaced");
    let served = serve(
        store,
        Options::default(),
        &folder.path().join("admin.token"),
    );
    let admin = client(&served.url, Some(&served.admin));
    let seen: Vec<u32> = profile(&admin, id)
        .seen
        .iter()
        .map(|seen| seen.unit)
        .collect();
    assert_eq!(seen, [2, 8, 9]);
    let metrics = admin.get_bytes(paths::METRICS).expect("metrics");
    let metrics = String::from_utf8(metrics).expect("text");
    assert!(metrics.contains("tomo_log_damaged_total 3\n"), "{metrics}");
    block(served.collector.compact()).expect("compacted");
    assert_eq!(
        log_of(folder.path(), id).len(),
        4,
        "three damaged ones and a snapshot"
    );
    served.shutdown.end();
    served.thread.join().expect("an end");
}

#[test]
fn the_administrators_token_is_his_alone_and_survives() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::local(&folder.path().join("store")).expect("a store");
    let file = folder.path().join("admin.token");
    let first = serve(store.clone(), Options::default(), &file);
    let mode = std::fs::metadata(&file)
        .expect("a file")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let mode = std::fs::metadata(folder.path().join("store"))
        .expect("a folder")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o700);
    first.shutdown.end();
    first.thread.join().expect("an end");
    let second = serve(store, Options::default(), &file);
    assert_eq!(first.admin, second.admin);
    let admin = client(&second.url, Some(&second.admin));
    assert!(admin.get::<Vec<Summary>>(paths::CAMPAIGNS).is_ok());
    let stored = std::fs::read_dir(folder.path().join("store/tokens")).expect("tokens");
    for file in stored {
        let text = std::fs::read_to_string(file.expect("a file").path()).expect("text");
        assert!(!text.contains(&second.admin), "only hashes are kept");
    }
    second.shutdown.end();
    second.thread.join().expect("an end");
}

/// Another one is drawn, and the old one is worth nothing any more.
#[test]
fn who_removes_the_administrators_token_has_a_new_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::local(&folder.path().join("store")).expect("a store");
    let file = folder.path().join("admin.token");
    let fleet = Fleet::new(store.clone(), folder.path(), 30, 1, Bound::None);
    let old = std::fs::read_to_string(&file).expect("a token");
    let reader = token(&fleet.admin, fleet.campaign.id, Role::Reader);
    drop(fleet);
    std::fs::remove_file(&file).expect("it is there");
    let served = serve(store, Options::default(), &file);
    let list = |token: &str| {
        let campaigns: Result<Vec<Summary>, _> =
            client(&served.url, Some(token)).get(paths::CAMPAIGNS);
        campaigns.is_ok()
    };
    assert_eq!(
        [old.trim(), &served.admin, &reader].map(list),
        [false, true, true]
    );
    served.shutdown.end();
    served.thread.join().expect("an end");
}
