//! Looking after the store: learning what other collectors wrote, replacing segments by snapshots, and
//! keeping within bounds.
//!
//! A snapshot is a join of what its collector has read. It is durable before the objects that it covers
//! are deleted, and joining an object twice changes nothing; so a crash in between does no harm, and
//! two collectors that compact at once do none either. Who lists the store and finds an object gone by
//! the time that he reads it lists again: its content is in a snapshot that is newer than his list.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tomo_protocol::{Campaign, CampaignId, InstanceId};

use crate::campaigns::editions_of;
use crate::collector::Shared;
use crate::observed::{CHUNK, Observed};
use crate::segment::{self, Writer};
use crate::store::{ABANDONED, Object};
use crate::{StoreError, hunting, tokens};

/// What bounds the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// For how long a retired campaign is kept.
    pub keep: Option<Duration>,
    /// Bytes of the store at most.
    pub most_bytes: u64,
    /// Bytes of segments from which on they are replaced by a snapshot.
    pub compact_from: u64,
    /// How often the store is looked after.
    pub every: Duration,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            keep: None,
            most_bytes: u64::MAX,
            compact_from: 64 << 20,
            every: Duration::from_secs(5),
        }
    }
}

/// Objects of a log from which on they are replaced by a snapshot.
const MOST_OBJECTS: usize = 2000;
/// The store is nearly full when less than one part in so many is free.
const NEARLY_FULL: u64 = 4;
/// Segments are worth a snapshot where room is scarce when they are one part in so many of a log.
const WORTH_IT: u64 = 64;
/// How often a listing is begun anew since objects were gone.
const MOST_LISTINGS: usize = 100;

/// Looks after the store for ever.
pub(crate) async fn run(shared: Arc<Shared>) {
    let mut interval = tokio::time::interval(shared.options.retention.every);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut swept: Option<Instant> = None;
    loop {
        interval.tick().await;
        if swept.is_none_or(|swept| swept.elapsed() >= ABANDONED) {
            let store = shared.store.clone();
            // If it fails it is done the next time.
            let _ = tokio::task::spawn_blocking(move || store.sweep()).await;
            swept = Some(Instant::now());
        }
        if let Err(error) = once(&shared).await {
            tracing::error!(%error, "the store could not be looked after");
        }
    }
}

/// Looks after the store once. What cannot be done for one campaign does not keep the others from it; the first error is told.
pub(crate) async fn once(shared: &Shared) -> Result<(), StoreError> {
    refresh(shared).await?;
    let (over, others): (Vec<_>, Vec<_>) = shared
        .all_campaigns()
        .into_iter()
        .partition(|observed| is_over(shared, observed.live().retired));
    let mut outcome = Ok(());
    // What is removed makes room for the snapshots of the others.
    for observed in over {
        outcome = outcome.and(remove(shared, &observed.campaign).await);
    }
    let (due, others): (Vec<_>, Vec<_>) = others
        .into_iter()
        .partition(|observed| is_due(shared, observed));
    for observed in due {
        outcome = outcome.and(compact(shared, &observed).await);
    }
    outcome.and(make_room(shared, others).await)
}

/// Whether there is more of a campaign's log than there is to be beside a snapshot, however much room there is.
fn is_due(shared: &Shared, observed: &Observed) -> bool {
    let live = observed.live();
    let is_retired = live.retired.is_some() && live.covered.len() > 1;
    let is_long = live.covered.len() > MOST_OBJECTS;
    is_retired || is_long || live.uncompacted > shared.options.retention.compact_from
}

/// Where the store is nearly full, compacts those campaigns, the ones with the most segments first, until it is not, or there is little to
/// gain. A campaign's snapshot is written anew only for a part of it that is worth that, lest it be at each look.
async fn make_room(shared: &Shared, campaigns: Vec<Arc<Observed>>) -> Result<(), StoreError> {
    let most = shared.options.retention.most_bytes;
    let is_nearly_full = || shared.stored() > most - most / NEARLY_FULL;
    let gain = |observed: &Arc<Observed>| {
        let live = observed.live();
        let log: u64 = live.covered.values().sum();
        let is_worth_it = live.covered.len() > 1 && live.uncompacted >= log / WORTH_IT;
        is_worth_it.then_some(live.uncompacted)
    };
    let mut gains: Vec<_> = campaigns
        .into_iter()
        .filter_map(|observed| Some((gain(&observed)?, observed)))
        .collect();
    gains.sort_by_key(|(gain, _)| std::cmp::Reverse(*gain));
    let mut outcome = Ok(());
    for (_, observed) in gains {
        if is_nearly_full() {
            outcome = outcome.and(compact(shared, &observed).await);
        }
    }
    outcome
}

fn is_over(shared: &Shared, retired: Option<i64>) -> bool {
    let (Some(retired), Some(keep)) = (retired, shared.options.retention.keep) else {
        return false;
    };
    let keep = i64::try_from(keep.as_nanos()).unwrap_or(i64::MAX);
    shared.now() >= retired.saturating_add(keep)
}

/// Learns all that is in the store.
pub(crate) async fn refresh(shared: &Shared) -> Result<(), StoreError> {
    for _ in 0..MOST_LISTINGS {
        let (covered, tokens) = (covered(shared), shared.tokens.hashes());
        let programs = stems(shared);
        let objects = shared.store.list("").await?;
        shared.set_stored(objects.iter().map(|object| object.size).sum());
        refresh_tokens(shared, &tokens, &objects).await?;
        refresh_programs(shared, &objects).await?;
        let mut whole = refresh_campaigns(shared, &objects).await?;
        for object in &objects {
            whole &= refresh_log(shared, object).await?;
        }
        forget_gone(shared, (&covered, &programs), &objects);
        if whole {
            return Ok(());
        }
    }
    tracing::warn!("objects of the store keep vanishing while they are read");
    Ok(())
}

/// The objects that are known, as they were before a listing.
fn covered(shared: &Shared) -> BTreeMap<CampaignId, Vec<String>> {
    let campaigns = shared.all_campaigns().into_iter();
    let names = campaigns.map(|observed| {
        let names = observed.live().covered.keys().cloned().collect();
        (observed.campaign.id, names)
    });
    names.collect()
}

/// The builds that are known.
fn stems(shared: &Shared) -> Vec<String> {
    shared.programs.read().keys().cloned().collect()
}

/// Forgets what was known before a listing and is not in it: objects that another collector has replaced by a snapshot,
/// campaigns and builds that it has removed.
fn forget_gone(
    shared: &Shared,
    (covered, programs): (&BTreeMap<CampaignId, Vec<String>>, &[String]),
    listed: &[Object],
) {
    let is_listed = |name: &str| {
        let found = listed.binary_search_by(|object| object.name.as_str().cmp(name));
        found.is_ok()
    };
    for (id, names) in covered {
        if !is_listed(&format!("campaigns/{id}.json")) {
            forget_campaign(shared, *id);
        }
        let Some(observed) = shared.campaign(*id) else {
            continue;
        };
        let mut live = observed.live();
        for name in names.iter().filter(|name| !is_listed(name)) {
            live.covered.remove(name);
        }
    }
    for stem in programs {
        if !is_listed(&format!("programs/{stem}/meta.json")) {
            forget_program(shared, stem);
        }
    }
}

fn forget_campaign(shared: &Shared, id: CampaignId) {
    shared.campaigns.write().remove(&id);
}

fn forget_program(shared: &Shared, stem: &str) {
    shared.programs.write().remove(stem);
}

async fn refresh_tokens(
    shared: &Shared,
    before: &[String],
    objects: &[Object],
) -> Result<(), StoreError> {
    let names = objects.iter();
    let hashes: HashSet<&str> = names
        .filter_map(|object| tokens::hash_of_object(&object.name))
        .collect();
    for hash in shared.tokens.compare(before, &hashes) {
        let Some(bytes) = shared.store.get(&tokens::object_of(&hash)).await? else {
            continue;
        };
        match serde_json::from_slice(&bytes) {
            Ok(grant) => shared.tokens.insert(hash, grant),
            Err(error) => tracing::error!(%hash, %error, "a token's object is damaged"),
        }
    }
    Ok(())
}

async fn refresh_programs(shared: &Shared, objects: &[Object]) -> Result<(), StoreError> {
    for object in objects {
        let stem = object.name.strip_prefix("programs/");
        let Some(stem) = stem.and_then(|rest| rest.strip_suffix("/meta.json")) else {
            continue;
        };
        if shared.programs.read().contains_key(stem) {
            continue;
        }
        let Some(bytes) = shared.store.get(&object.name).await? else {
            continue;
        };
        match serde_json::from_slice(&bytes) {
            Ok(program) => {
                shared.programs.write().insert(stem.to_owned(), program);
            }
            Err(error) => tracing::error!(%stem, %error, "a program's object is damaged"),
        }
    }
    Ok(())
}

/// Gives whether nothing vanished on the way.
async fn refresh_campaigns(shared: &Shared, objects: &[Object]) -> Result<bool, StoreError> {
    let mut whole = true;
    for object in objects {
        let Some(name) = object.name.strip_prefix("campaigns/") else {
            continue;
        };
        if let Some(id) = name.strip_suffix(".json").and_then(|id| id.parse().ok())
            && shared.campaign(id).is_none()
        {
            whole &= learn_campaign(shared, id, &object.name).await?;
        }
        let retired = name.strip_suffix(".retired");
        if let Some(observed) = retired
            .and_then(|id| id.parse().ok())
            .and_then(|id| shared.campaign(id))
            && observed.live().retired.is_none()
        {
            let text = shared.store.get(&object.name).await?.unwrap_or_default();
            let at = std::str::from_utf8(&text)
                .ok()
                .and_then(|text| text.trim().parse().ok());
            // If the time cannot be read the campaign has ended all the same.
            observed.live().retired = Some(at.unwrap_or_else(|| shared.now()));
        }
    }
    Ok(whole)
}

async fn learn_campaign(shared: &Shared, id: CampaignId, name: &str) -> Result<bool, StoreError> {
    let Some(bytes) = shared.store.get(name).await? else {
        return Ok(false);
    };
    match serde_json::from_slice::<Campaign>(&bytes) {
        Ok(campaign) if campaign.id == id => {
            let hunt = match hunting::hunt_of(shared, &campaign).await {
                Ok(hunt) => hunt,
                Err(why) => {
                    tracing::error!(%id, why, "a campaign's search cannot be gone on with");
                    return Ok(true);
                }
            };
            let observed = shared.observed(campaign, hunt);
            let mut campaigns = shared.campaigns.write();
            campaigns.entry(id).or_insert(observed);
        }
        Ok(_) => tracing::error!(%id, "a campaign's object is that of another"),
        Err(error) => tracing::error!(%id, %error, "a campaign's object is damaged"),
    }
    Ok(true)
}

/// Joins an object of a log, unless that is done; gives whether it was there.
async fn refresh_log(shared: &Shared, object: &Object) -> Result<bool, StoreError> {
    let Some(observed) = campaign_of(shared, &object.name) else {
        return Ok(true);
    };
    {
        let live = observed.live();
        if live.covered.contains_key(&object.name) || live.damaged.contains_key(&object.name) {
            return Ok(true);
        }
    }
    let Some(bytes) = shared.store.get(&object.name).await? else {
        return Ok(false);
    };
    let mut live = observed.live();
    let read = segment::read(&bytes, observed.campaign.id, |entry, at| {
        observed.take(&mut live, entry, at);
    });
    match read {
        Ok(()) => {
            live.covered.insert(object.name.clone(), object.size);
            if object.name.ends_with(".segment") {
                live.uncompacted += object.size;
            }
        }
        Err(damage) => {
            let name = &object.name;
            tracing::error!(%name, %damage, "an object of the log is used only in part");
            shared.metrics.damaged.inc();
            live.damaged.insert(name.clone(), object.size);
        }
    }
    Ok(true)
}

fn campaign_of(shared: &Shared, name: &str) -> Option<Arc<Observed>> {
    let (id, file) = name.strip_prefix("log/")?.split_once('/')?;
    let ours = file.ends_with(".segment") || file.ends_with(".snapshot");
    shared.campaign(id.parse().ok().filter(|_| ours)?)
}

/// Replaces what is known of a campaign's log by a snapshot. Damaged objects stay for people to see.
pub(crate) async fn compact(shared: &Shared, observed: &Observed) -> Result<(), StoreError> {
    let id = observed.campaign.id;
    let (covered, uncompacted, instances) = {
        let live = observed.live();
        let covered = live.covered.clone();
        let instances: Vec<_> = live.state.instances().map(|(id, _)| id).collect();
        (covered, live.uncompacted, instances)
    };
    if covered.is_empty() {
        return Ok(());
    }
    let bytes = match snapshot(observed, &instances).await {
        Ok(bytes) => bytes,
        Err(error) => {
            tracing::error!(%id, %error, "a snapshot cannot be written");
            return Ok(());
        }
    };
    let name = shared.log_name(id, "snapshot");
    let size = bytes.len() as u64;
    shared.put_anyway(&name, bytes.into()).await?;
    shared.metrics.compactions.inc();
    {
        let mut live = observed.live();
        live.covered.insert(name, size);
        live.uncompacted = live.uncompacted.saturating_sub(uncompacted);
        covered.keys().for_each(|name| {
            live.covered.remove(name);
        });
    }
    for (name, size) in &covered {
        shared.delete(name, *size).await?;
    }
    tracing::info!(campaign = %id, objects = covered.len(), bytes = size, "compacted");
    Ok(())
}

/// A snapshot of these instances and of what the search decided. Reports go on in between.
async fn snapshot(
    observed: &Observed,
    instances: &[InstanceId],
) -> Result<Vec<u8>, postcard::Error> {
    let mut writer = Writer::new(observed.campaign.id);
    for chunk in instances.chunks(CHUNK) {
        {
            let live = observed.live();
            for &instance in chunk {
                if let Some(known) = live.state.instance(instance) {
                    writer.instance(instance, known)?;
                }
            }
        }
        tokio::task::yield_now().await;
    }
    for (at, edition) in observed.live().state.editions() {
        writer.edition(edition, at)?;
    }
    Ok(writer.finish())
}

/// Removes a campaign with its tokens, and the plans and builds that no other one uses.
async fn remove(shared: &Shared, campaign: &Campaign) -> Result<(), StoreError> {
    let id = campaign.id;
    forget_campaign(shared, id);
    let others = shared.all_campaigns();
    let used = |test: &dyn Fn(&tomo_protocol::ModuleOf) -> bool| {
        let modules = others.iter().flat_map(|other| &other.campaign.modules);
        modules.into_iter().any(test)
    };
    for module in &campaign.modules {
        if !used(&|other| other.plan == module.plan) {
            for kind in ["plan", "terrain"] {
                let name = format!("plans/{}.{kind}", module.plan);
                shared.store.delete(&name).await?;
            }
        }
        if !used(&|other| other.stem == module.stem) {
            for object in shared
                .store
                .list(&format!("programs/{}", module.stem))
                .await?
            {
                shared.store.delete(&object.name).await?;
            }
            forget_program(shared, &module.stem);
        }
    }
    for token in shared.tokens.of_campaign(id) {
        let name = tokens::object_of(&token.hash);
        shared.store.delete(&name).await?;
        shared.tokens.remove(&token.hash);
    }
    // The definition goes when nothing else is left, or nobody would come back to what a crash leaves here; what says that it has
    // ended goes last.
    for folder in [format!("log/{id}"), editions_of(id)] {
        for object in shared.store.list(&folder).await? {
            shared.store.delete(&object.name).await?;
        }
    }
    for kind in ["json", "retired"] {
        let name = format!("campaigns/{id}.{kind}");
        shared.store.delete(&name).await?;
    }
    tracing::info!(campaign = %id, "removed, as it was retired long enough ago");
    Ok(())
}
