//! A store that fails or stalls, and a clock that jumps.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use async_trait::async_trait;
use futures::TryStreamExt as _;
use futures::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use tomo_collector::{Limits, Options, Retention, Store};
use tomo_protocol::{Bound, Campaign, ClientError, Profile, Role, What, paths};

use crate::fleet::{Fleet, Word, client, request_for, serve, token};

/// A store in memory that has no room after so many writes, and where writes may have to wait.
#[derive(Debug)]
struct Broken {
    inner: InMemory,
    writes_left: AtomicI64,
    writes_begun: AtomicU64,
    gate: tokio::sync::Semaphore,
}

impl Broken {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            inner: InMemory::new(),
            writes_left: AtomicI64::new(i64::MAX),
            writes_begun: AtomicU64::new(0),
            gate: tokio::sync::Semaphore::new(1),
        })
    }

    fn full(&self) -> object_store::Error {
        object_store::Error::Generic {
            store: "Broken",
            source: Box::new(io::Error::from(io::ErrorKind::StorageFull)),
        }
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Broken")
    }
}

#[async_trait]
impl ObjectStore for Broken {
    async fn put_opts(&self, path: &Path, bytes: PutPayload, how: PutOptions) -> Result<PutResult> {
        self.writes_begun.fetch_add(1, Ordering::SeqCst);
        let _turn = self.gate.acquire().await;
        if self.writes_left.fetch_sub(1, Ordering::SeqCst) <= 0 {
            return Err(self.full());
        }
        self.inner.put_opts(path, bytes, how).await
    }

    async fn put_multipart_opts(
        &self,
        path: &Path,
        how: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(path, how).await
    }

    async fn get_opts(&self, path: &Path, how: GetOptions) -> Result<GetResult> {
        self.inner.get_opts(path, how).await
    }

    fn delete_stream(
        &self,
        paths: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(paths)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, how: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, how).await
    }
}

fn profile(client: &tomo_protocol::Client, id: tomo_protocol::CampaignId) -> Profile {
    client
        .get(&paths::of_campaign(paths::PROFILE, id))
        .expect("a profile")
}

fn block<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.expect("a runtime").block_on(future)
}

/// The status of a refusal.
fn refused<T: fmt::Debug>(outcome: std::result::Result<T, ClientError>) -> u16 {
    match outcome {
        Err(ClientError::Refused { status, .. }) => status,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_disk_that_is_full_after_any_number_of_writes_loses_nothing_acknowledged() {
    let folder = tempfile::tempdir().expect("a folder");
    let broken = Broken::new();
    let store = Store::over(Arc::clone(&broken) as Arc<dyn ObjectStore>);
    let fleet = Fleet::new(store.clone(), folder.path(), 300, 1, Bound::None);
    let id = fleet.campaign.id;
    let mut acknowledged = Vec::new();
    let mut run = 0;
    for room in 0..12 {
        broken.writes_left.store(room, Ordering::SeqCst);
        for _ in 0..12 {
            run += 1;
            let body = Word::of(1, run, &[run as u32 % 300]).report(&fleet.campaign);
            let answer: std::result::Result<tomo_protocol::Answer, _> =
                fleet.instances.post_bytes(paths::REPORTS, &body);
            match answer {
                Ok(answer) => {
                    assert_eq!(answer.verdicts[0].what, What::Stored);
                    acknowledged.push(body);
                }
                refusal => assert_eq!(refused(refusal), 507),
            }
        }
        // Assignments need room, too; compaction fails without harm.
        let path = paths::of_assignment(tomo_protocol::InstanceId([200; 16]), None);
        assert_eq!(
            refused(fleet.instances.get::<serde_json::Value>(&path)),
            507
        );
        let kept = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let kept = kept.expect("a runtime").block_on(fleet.collector.compact());
        assert!(kept.is_err() || acknowledged.is_empty());
        assert_eq!(
            profile(&fleet.admin, id).totals.runs,
            acknowledged.len() as u64
        );
    }
    assert_eq!(acknowledged.len(), (0..12).sum::<usize>());
    broken.writes_left.store(i64::MAX, Ordering::SeqCst);
    for body in &acknowledged {
        assert_eq!(fleet.send(body).verdicts[0].what, What::Known);
    }
    drop(fleet);
    let served = serve(
        store,
        Options::default(),
        &folder.path().join("admin.token"),
    );
    let admin = client(&served.url, Some(&served.admin));
    assert_eq!(profile(&admin, id).totals.runs, acknowledged.len() as u64);
    served.shutdown.end();
    served.thread.join().expect("an end");
}

#[test]
fn a_store_that_is_as_large_as_it_may_be_refuses_and_still_ends_campaigns() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = Options {
        retention: Retention {
            most_bytes: 60_000,
            ..Retention::default()
        },
        ..Options::default()
    };
    let store = Store::local(&folder.path().join("store")).expect("a store");
    let fleet = Fleet::with(
        store,
        folder.path(),
        options,
        request_for(300, 1, Bound::None),
    );
    let all: Vec<u32> = (0..300).collect();
    let send = |run| {
        let body = Word::of(1, run, &all).report(&fleet.campaign);
        fleet
            .instances
            .post_bytes::<tomo_protocol::Answer>(paths::REPORTS, &body)
    };
    let stored = (1..1000).take_while(|&run| send(run).is_ok()).count() as u64;
    assert!((10..60).contains(&stored), "{stored}");
    assert_eq!(refused(send(stored + 1)), 507);
    let path = paths::of_campaign(paths::RETIRE, fleet.campaign.id);
    let _: tomo_protocol::Summary = fleet.admin.post(&path, &()).expect("retired");
    let kept = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let kept = kept
        .expect("a runtime")
        .block_on(fleet.collector.keep_once());
    kept.expect("the snapshot makes room");
    assert_eq!(profile(&fleet.admin, fleet.campaign.id).totals.runs, stored);
}

#[test]
fn a_snapshot_that_could_not_be_written_is_written_the_next_time_and_others_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let broken = Broken::new();
    let store = Store::over(Arc::clone(&broken) as Arc<dyn ObjectStore>);
    let options = Options {
        retention: Retention {
            compact_from: 0,
            ..Retention::default()
        },
        ..Options::default()
    };
    let new = request_for(300, 1, Bound::None);
    let fleet = Fleet::with(store, folder.path(), options, new.clone());
    let other: Campaign = fleet.admin.post(paths::CAMPAIGNS, &new.1).expect("another");
    let shown = token(&fleet.admin, other.id, Role::Instance);
    fleet.send(&Word::of(1, 1, &[1]).report(&fleet.campaign));
    let _: tomo_protocol::Answer = client(&fleet.url, Some(&shown))
        .post_bytes(paths::REPORTS, &Word::of(1, 1, &[1]).report(&other))
        .expect("an answer");
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().expect("a runtime");
    let keep = || runtime.block_on(fleet.collector.keep_once());
    let count = |ending: &str| {
        let log = broken.list(Some(&Path::from("log")));
        let log: Vec<ObjectMeta> = runtime.block_on(log.try_collect()).expect("listed");
        let named = log
            .iter()
            .filter(|it| it.location.as_ref().ends_with(ending));
        named.count()
    };
    // One write, and then all there is room for.
    broken.writes_left.store(i64::MIN, Ordering::SeqCst);
    assert!(keep().is_err());
    assert_eq!((count(".segment"), count(".snapshot")), (1, 1));
    keep().expect("there is room");
    assert_eq!((count(".segment"), count(".snapshot")), (0, 2));
}

#[test]
fn a_store_that_is_nearly_full_is_compacted_before_it_refuses() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = Options {
        retention: Retention {
            most_bytes: 60_000,
            ..Retention::default()
        },
        ..Options::default()
    };
    let fleet = Fleet::with(
        Store::over(Arc::new(InMemory::new())),
        folder.path(),
        options,
        request_for(300, 1, Bound::None),
    );
    let all: Vec<u32> = (0..300).collect();
    let mut run = 0;
    for _ in 0..5 {
        // As much as there is room for.
        let refusal = loop {
            run += 1;
            let body = Word::of(1, run, &all).report(&fleet.campaign);
            let sent = fleet.instances.post_bytes(paths::REPORTS, &body);
            if let Err(error) = sent.map(|_: tomo_protocol::Answer| ()) {
                break error;
            }
        };
        assert_eq!(refused::<()>(Err(refusal)), 507);
        block(fleet.collector.keep_once()).expect("kept");
        fleet.send(&Word::of(1, run, &all).report(&fleet.campaign));
    }
    assert_eq!(profile(&fleet.admin, fleet.campaign.id).totals.runs, run);
}

#[test]
fn what_is_over_is_removed_though_nothing_can_be_compacted() {
    const OTHERS: u64 = 5;
    let folder = tempfile::tempdir().expect("a folder");
    let broken = Broken::new();
    let options = Options {
        retention: Retention {
            keep: Some(std::time::Duration::ZERO),
            compact_from: 0,
            ..Retention::default()
        },
        ..Options::default()
    };
    let store = Store::over(Arc::clone(&broken) as Arc<dyn ObjectStore>);
    let fleet = Fleet::with(
        store,
        folder.path(),
        options,
        request_for(30, 1, Bound::None),
    );
    let (_, new) = request_for(30, 1, Bound::None);
    for run in 1..=OTHERS {
        let other: tomo_protocol::Campaign = fleet
            .admin
            .post(paths::CAMPAIGNS, &new)
            .expect("a campaign");
        let token = token(&fleet.admin, other.id, tomo_protocol::Role::Instance);
        let body = Word::of(1, run, &[1]).report(&other);
        let instance = client(&fleet.url, Some(&token));
        let _: tomo_protocol::Answer = instance.post_bytes(paths::REPORTS, &body).expect("stored");
    }
    let path = paths::of_campaign(paths::RETIRE, fleet.campaign.id);
    let _: tomo_protocol::Summary = fleet.admin.post(&path, &()).expect("retired");
    broken.writes_left.store(0, Ordering::SeqCst);
    block(fleet.collector.keep_once()).expect_err("the disk is full");
    let left: Vec<tomo_protocol::Summary> = fleet.admin.get(paths::CAMPAIGNS).expect("a list");
    assert_eq!(left.len() as u64, OTHERS);
    // What could not be done is done when it can.
    broken.writes_left.store(i64::MAX, Ordering::SeqCst);
    let before = broken.writes_begun.load(Ordering::SeqCst);
    block(fleet.collector.keep_once()).expect("kept");
    let written = broken.writes_begun.load(Ordering::SeqCst) - before;
    assert_eq!(written, OTHERS, "a snapshot each");
}

#[test]
fn a_disk_that_stalls_makes_others_wait_and_then_refuses_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let broken = Broken::new();
    let store = Store::over(Arc::clone(&broken) as Arc<dyn ObjectStore>);
    let options = Options {
        limits: Limits {
            queue: 2,
            ..Limits::default()
        },
        ..Options::default()
    };
    let fleet = Fleet::with(
        store,
        folder.path(),
        options,
        request_for(300, 1, Bound::None),
    );
    let turn = broken.gate.try_acquire().expect("nobody writes");
    let send = |run| {
        let body = Word::of(1, run, &[1]).report(&fleet.campaign);
        let client = fleet.instances.clone();
        move || client.post_bytes::<tomo_protocol::Answer>(paths::REPORTS, &body)
    };
    let begun = || broken.writes_begun.load(Ordering::SeqCst);
    let before = begun();
    let mut senders = vec![std::thread::spawn(send(1))];
    while begun() == before {
        std::thread::yield_now();
    }
    // One is being written and two wait, so of twenty seventeen are refused at once.
    senders.extend((2..=20).map(|run| std::thread::spawn(send(run))));
    let refused_now = || senders.iter().filter(|sender| sender.is_finished()).count();
    while refused_now() < 17 {
        std::thread::yield_now();
    }
    drop(turn);
    let outcomes = senders
        .into_iter()
        .map(|sender| sender.join().expect("no panic"));
    let stored = outcomes.filter(|outcome| match outcome {
        Ok(answer) => answer.verdicts[0].what == What::Stored,
        Err(error) => {
            assert!(
                error.is_temporary() && error.retry_after().is_some(),
                "{error}"
            );
            false
        }
    });
    let stored = stored.count() as u64;
    assert!((1..=3).contains(&stored), "{stored}");
    assert_eq!(profile(&fleet.admin, fleet.campaign.id).totals.runs, stored);
}

#[test]
fn a_clock_that_jumps_does_no_harm() {
    let folder = tempfile::tempdir().expect("a folder");
    let now = Arc::new(AtomicI64::new(0));
    let clock = Arc::clone(&now);
    let options = Options {
        clock: Arc::new(move || clock.load(Ordering::Relaxed)),
        ..Options::default()
    };
    let store = Store::local(&folder.path().join("store")).expect("a store");
    let fleet = Fleet::with(
        store.clone(),
        folder.path(),
        options,
        request_for(300, 1, Bound::None),
    );
    let id = fleet.campaign.id;
    let times = [5, -7, i64::MAX, i64::MIN, 0, -1, 3_000, 3_000, -7];
    for (run, time) in (1..).zip(times) {
        now.store(time, Ordering::Relaxed);
        let body = Word::of(run as u8, run, &[7, 10 + run as u32]).report(&fleet.campaign);
        assert_eq!(fleet.send(&body).verdicts[0].what, What::Stored);
    }
    let told = profile(&fleet.reader, id);
    assert_eq!(told.totals.runs, times.len() as u64);
    assert_eq!(
        told.seen[0].first,
        i64::MIN,
        "the earliest, whatever the clock said"
    );
    assert_eq!(told.seen[0].instances, times.len() as u32);
    let kept = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    kept.expect("a runtime")
        .block_on(fleet.collector.compact())
        .expect("compacted");
    drop(fleet);
    let served = serve(
        store,
        Options::default(),
        &folder.path().join("admin.token"),
    );
    assert_eq!(profile(&client(&served.url, Some(&served.admin)), id), told);
    served.shutdown.end();
    served.thread.join().expect("an end");
}
