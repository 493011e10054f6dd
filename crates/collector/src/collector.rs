//! The collector: everything that a server process holds, its start and its end.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinHandle;
use tomo_protocol::{CampaignId, Name, Program, Role};

use crate::commit::{self, Queue};
use crate::hunt::Hunt;
use crate::limits::Buckets;
use crate::metrics::Metrics;
use crate::observed::Observed;
use crate::state::State;
use crate::tokens::{self, Grant, Tokens};
use crate::{Limits, Retention, Store, StoreError, hunting, keep};

/// Copies of what is known of a campaign at once.
const MOST_COPIES: usize = 4;

/// Tells the time in nanoseconds since 1970. It may jump in either direction: times are for people,
/// and joins take the earliest.
pub type Clock = Arc<dyn Fn() -> i64 + Send + Sync>;

/// How a collector works.
#[derive(Clone)]
pub struct Options {
    /// What it takes at most.
    pub limits: Limits,
    /// What bounds its store.
    pub retention: Retention,
    /// What tells the time.
    pub clock: Clock,
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut options = f.debug_struct("Options");
        options.field("limits", &self.limits);
        options.field("retention", &self.retention);
        options.finish_non_exhaustive()
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            retention: Retention::default(),
            clock: Arc::new(system_clock),
        }
    }
}

/// The time by the system's clock; the limits of 64 bits are in the years 1677 and 2262.
fn system_clock() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
    })
}

/// Why a collector does not start.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The store cannot be used.
    #[error("the store: {0}")]
    Store(#[from] StoreError),
    /// The file of the administrator's token cannot be used.
    #[error("{path}: {1}", path = .0.display())]
    Token(PathBuf, io::Error),
    /// The system gives no random numbers.
    #[error("the system gives no random numbers: {0}")]
    Random(#[from] getrandom::Error),
}

/// What all parts of a collector share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) store: Store,
    pub(crate) options: Options,
    pub(crate) metrics: Metrics,
    pub(crate) tokens: Tokens,
    pub(crate) buckets: Buckets,
    pub(crate) campaigns: RwLock<BTreeMap<CampaignId, Arc<Observed>>>,
    pub(crate) programs: RwLock<BTreeMap<String, Program>>,
    /// How many more may look at copies of what is known.
    copies: Arc<Semaphore>,
    /// How many more bytes bodies of reports may hold.
    pub(crate) bodies: Arc<Semaphore>,
    /// Announces the end.
    pub(crate) ending: Notify,
    /// Announces that there is more for searches to look at.
    pub(crate) hunting: Notify,
    /// Names this process in the store, and its lists of news.
    epoch: Name,
    objects: AtomicU64,
    stored: AtomicU64,
}

impl Shared {
    /// The time.
    pub(crate) fn now(&self) -> i64 {
        (self.options.clock)()
    }

    /// A name for a new object of a campaign's log. The number makes it unique even if the clock does
    /// not move.
    pub(crate) fn log_name(&self, campaign: CampaignId, kind: &str) -> String {
        let number = self.objects.fetch_add(1, Ordering::Relaxed);
        let (time, process) = (self.now().max(0), self.epoch);
        format!("log/{campaign}/{time:020}-{process}-{number:08}.{kind}")
    }

    /// Bytes of the store.
    pub(crate) fn stored(&self) -> u64 {
        self.stored.load(Ordering::Relaxed)
    }

    pub(crate) fn set_stored(&self, bytes: u64) {
        self.stored.store(bytes, Ordering::Relaxed);
    }

    /// Writes an object, if the policy has room for it.
    pub(crate) async fn put(&self, name: &str, bytes: Bytes) -> Result<(), StoreError> {
        let size = bytes.len() as u64;
        if self.stored().saturating_add(size) > self.options.retention.most_bytes {
            return Err(StoreError::Full(name.into()));
        }
        self.put_anyway(name, bytes).await
    }

    /// Writes an object that makes room, or ends something.
    pub(crate) async fn put_anyway(&self, name: &str, bytes: Bytes) -> Result<(), StoreError> {
        let size = bytes.len() as u64;
        self.store.put(name, bytes).await?;
        self.stored.fetch_add(size, Ordering::Relaxed);
        Ok(())
    }

    /// Deletes an object of so many bytes.
    pub(crate) async fn delete(&self, name: &str, size: u64) -> Result<(), StoreError> {
        self.store.delete(name).await?;
        let less = |stored: u64| Some(stored.saturating_sub(size));
        let _ = self
            .stored
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        Ok(())
    }

    /// What `work` makes of a copy of what is known of a campaign, and of whether that has ended, on a thread of its own: it takes
    /// long where there is much, and reports are not to wait for it. A copy takes as much memory as what is known, so there
    /// are not many at once, whoever asks; who does so meanwhile waits. Nothing where it panicked.
    pub(crate) async fn on_a_copy<T: Send + 'static>(
        &self,
        observed: &Arc<Observed>,
        work: impl FnOnce(&Observed, &State, bool) -> T + Send + 'static,
    ) -> Option<T> {
        let turn = Arc::clone(&self.copies).acquire_owned().await.ok()?;
        let observed = Arc::clone(observed);
        let work = move || {
            // It is over when the copy is gone, even if nobody waits for it any more.
            let _turn = turn;
            let (state, retired) = observed.copy();
            work(&observed, &state, retired)
        };
        tokio::task::spawn_blocking(work).await.ok()
    }

    /// A campaign.
    pub(crate) fn campaign(&self, id: CampaignId) -> Option<Arc<Observed>> {
        self.campaigns.read().get(&id).cloned()
    }

    /// All campaigns.
    pub(crate) fn all_campaigns(&self) -> Vec<Arc<Observed>> {
        self.campaigns.read().values().cloned().collect()
    }

    /// A campaign in memory of which nothing is known yet.
    pub(crate) fn observed(
        &self,
        campaign: tomo_protocol::Campaign,
        hunt: Option<Hunt>,
    ) -> Arc<Observed> {
        Arc::new(Observed::new(campaign, hunt, self.epoch))
    }
}

/// A collector, ready to be asked.
#[derive(Debug)]
pub struct Collector {
    pub(crate) shared: Arc<Shared>,
    pub(crate) queue: Queue,
    tasks: Mutex<Vec<JoinHandle<()>>>,
}

impl Collector {
    /// Reads the store and starts to work.
    ///
    /// # Errors
    /// Where the store cannot be read. Objects that are damaged are counted and left alone.
    pub async fn open(store: Store, options: Options) -> Result<Self, OpenError> {
        let shared = Arc::new(Shared {
            metrics: Metrics::new(),
            tokens: Tokens::default(),
            buckets: Buckets::new(options.limits.requests_per_second),
            campaigns: RwLock::default(),
            programs: RwLock::default(),
            copies: Arc::new(Semaphore::new(MOST_COPIES)),
            bodies: Arc::new(Semaphore::new(
                options.limits.bodies.max(options.limits.report_body),
            )),
            ending: Notify::new(),
            hunting: Notify::new(),
            epoch: Name(getrandom::u64()?),
            objects: AtomicU64::new(0),
            stored: AtomicU64::new(0),
            store,
            options,
        });
        keep::refresh(&shared).await?;
        let (queue, requests) = Queue::new(shared.options.limits.queue);
        let writer = tokio::spawn(commit::run(Arc::clone(&shared), requests));
        let hunter = tokio::spawn(hunting::run(Arc::clone(&shared), queue.clone()));
        shared.hunting.notify_one();
        Ok(Self {
            shared,
            queue,
            tasks: Mutex::new(vec![writer, hunter]),
        })
    }

    /// Starts to look after the store: what other collectors wrote, snapshots, what is too old.
    pub fn keep(&self) {
        let keeper = tokio::spawn(keep::run(Arc::clone(&self.shared)));
        self.tasks.lock().push(keeper);
    }

    /// Looks after the store once.
    ///
    /// # Errors
    /// Where the store cannot be read or written.
    pub async fn keep_once(&self) -> Result<(), StoreError> {
        keep::once(&self.shared).await
    }

    /// Writes a snapshot of every campaign and deletes what it covers.
    ///
    /// # Errors
    /// Where the store cannot be written.
    pub async fn compact(&self) -> Result<(), StoreError> {
        for observed in self.shared.all_campaigns() {
            keep::compact(&self.shared, &observed).await?;
        }
        Ok(())
    }

    /// Stores what waits to be stored, and stops.
    pub async fn close(&self) {
        // One of them waits for this while it does nothing else; each hears it, or the next time.
        self.shared.ending.notify_one();
        let tasks = std::mem::take(&mut *self.tasks.lock());
        let mut tasks = tasks.into_iter();
        if let Some(writer) = tasks.next() {
            // It ends by itself; if it panicked there is nothing left to store.
            let _ = writer.await;
        }
        tasks.for_each(|keeper| keeper.abort());
    }

    /// Sees to it that the file holds a token for everything, and that no other one is for that. It is drawn at the first start,
    /// and whenever the file is gone.
    ///
    /// # Errors
    /// Where the file cannot be read or written, or the store cannot.
    pub async fn ensure_administrator(&self, file: &Path) -> Result<(), OpenError> {
        let token = match fs::read_to_string(file) {
            Ok(text) => text.trim().to_owned(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let token = tokens::draw(Role::Admin, None)?.token;
                write_private(file, &token)
                    .map_err(|error| OpenError::Token(file.into(), error))?;
                token
            }
            Err(error) => return Err(OpenError::Token(file.into(), error)),
        };
        if token.len() < 32 {
            let short = io::Error::other("holds no token; remove it and a new one is drawn");
            return Err(OpenError::Token(file.into(), short));
        }
        let hash = tokens::hash_of(&token);
        if self.shared.tokens.by_hash(&hash).is_none() {
            let grant = Grant {
                role: Role::Admin,
                campaign: None,
                note: "the administrator".into(),
                created: self.shared.now(),
            };
            let text = serde_json::to_vec(&grant).unwrap_or_default();
            self.shared
                .put_anyway(&tokens::object_of(&hash), text.into())
                .await?;
            self.shared.tokens.insert(hash.clone(), grant);
        }
        // An older one may be why the file was removed.
        for other in self.shared.tokens.administrators() {
            if other != hash {
                let name = tokens::object_of(&other);
                self.shared.store.delete(&name).await?;
                self.shared.tokens.remove(&other);
            }
        }
        Ok(())
    }
}

/// A file for its owner alone, durable before anybody relies on it.
fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(format!("{text}\n").as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use futures::FutureExt as _;
    use tomo_protocol::{Bound, Campaign, CampaignId, Name, Policy, Strategy};

    use super::{Collector, MOST_COPIES, Options};
    use crate::Store;

    fn empty() -> Campaign {
        Campaign {
            id: CampaignId([0; 16]),
            name: String::new(),
            created: 0,
            modules: Vec::new(),
            plans: Name(0),
            units: 0,
            strategy: Strategy::BalancedProbes,
            bound: Bound::None,
            seed: 0,
            policy: Policy::default(),
            variants: Vec::new(),
            left_out: 0,
            search: None,
        }
    }

    #[tokio::test]
    async fn no_more_copies_are_made_at_once_than_there_may_be() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::local(folder.path()).unwrap();
        let collector = Collector::open(store, Options::default()).await.unwrap();
        let shared = &collector.shared;
        let observed = shared.observed(empty(), None);
        let (begins, begun) = channel();
        let (mut gates, mut all) = (Vec::new(), Vec::new());
        for _ in 0..=MOST_COPIES {
            let ((open, gate), begins) = (channel::<()>(), begins.clone());
            gates.push(open);
            let work = move |_: &_, _: &_, _| {
                begins.send(()).unwrap();
                let _ = gate.recv();
            };
            let mut copy = Box::pin(shared.on_a_copy(&observed, work));
            assert!((&mut copy).now_or_never().is_none());
            all.push(copy);
        }
        (0..MOST_COPIES).for_each(|_| begun.recv().unwrap());
        assert!(begun.try_recv().is_err());
        drop(gates);
        let done = futures::future::join_all(all).await;
        assert!(done.iter().all(Option::is_some));
        begun.recv().unwrap();
        collector.close().await;
    }
}
