//! When a search goes on: whenever there is more to look at, and before anybody is told how it stands.
//!
//! One decision of a campaign is made at a time, on a thread of its own, from a copy of what is known; reports do not
//! wait for it. It counts once it is durable. Of collectors that share a store and decide at the same time the first is followed by
//! all, since the number of an edition is all that reports say of it.

use std::sync::Arc;

use tomo_protocol::{Campaign, CampaignId, Terrain};
use tomo_wire::predicates::Predicates;

use crate::campaigns::{edition_object, plan_object, terrain_object};
use crate::collector::Shared;
use crate::commit::{Logged, Queue};
use crate::hunt::{Edition, Hunt};
use crate::observed::Observed;
use crate::{Denial, StoreError};

/// Looks at all searches whenever there is something new, for ever.
pub(crate) async fn run(shared: Arc<Shared>, queue: Queue) {
    loop {
        shared.hunting.notified().await;
        for observed in shared.all_campaigns() {
            if observed.hunt.is_some() {
                go_on(&shared, &queue, &observed).await;
            }
        }
    }
}

/// Lets one search go on as far as what is known leads it.
pub(crate) async fn go_on(shared: &Shared, queue: &Queue, observed: &Arc<Observed>) {
    let mut looked = observed.deciding.lock().await;
    loop {
        let (evidence, retired) = {
            let live = observed.live();
            (live.evidence, live.retired.is_some())
        };
        // A test that is looked at less often errs less; what was looked at needs a hundredth more to be worth it.
        let is_more = evidence > *looked && evidence - *looked > *looked / 100;
        if retired || !is_more {
            return;
        }
        *looked = evidence;
        while let Some(edition) = decide(shared, observed).await {
            let campaign = observed.campaign.id;
            match adopt(shared, queue, observed, edition).await {
                Ok((number, changes)) => {
                    tracing::info!(%campaign, edition = number, changes, "a search goes on");
                }
                Err(denial) => {
                    tracing::warn!(%campaign, ?denial, "a search could not go on");
                    // It is decided anew when there is more.
                    return;
                }
            }
        }
    }
}

async fn decide(shared: &Shared, observed: &Arc<Observed>) -> Option<Edition> {
    let decided = shared.on_a_copy(observed, |observed, state, _| {
        observed.hunt()?.decide(state)
    });
    decided.await.flatten()
}

/// Goes on with what was decided, here or by who was faster; gives the number and how much changed.
async fn adopt(
    shared: &Shared,
    queue: &Queue,
    observed: &Arc<Observed>,
    edition: Edition,
) -> Result<(u32, usize), Denial> {
    let elected = elect(shared, observed.campaign.id, edition).await;
    let edition = elected.map_err(|error| Denial::from(&error))?;
    let adopted = (edition.number, edition.changes.len());
    let logged = vec![Logged::Edition(edition)];
    queue.store(observed, logged, shared.now()).await?;
    Ok(adopted)
}

/// The edition of this number: what is decided here, unless another collector has been faster.
async fn elect(
    shared: &Shared,
    campaign: CampaignId,
    edition: Edition,
) -> Result<Edition, StoreError> {
    let name = edition_object(campaign, edition.number);
    // Its numbers and lists always can be put into bytes.
    let bytes = postcard::to_allocvec(&edition).unwrap_or_default();
    if shared.store.put_new(&name, bytes.into()).await? {
        return Ok(edition);
    }
    let first = shared.store.get(&name).await?.unwrap_or_default();
    match postcard::from_bytes(&first) {
        Ok(Edition { number, changes }) if number == edition.number => {
            Ok(Edition { number, changes })
        }
        _ => {
            tracing::error!(%name, "what another collector decided is damaged");
            Ok(edition)
        }
    }
}

/// The search of a campaign, if it has one, which nobody has gone on with.
pub(crate) async fn hunt_of(
    shared: &Shared,
    campaign: &Campaign,
) -> Result<Option<Hunt>, &'static str> {
    let Some(spec) = &campaign.search else {
        return Ok(None);
    };
    let [module] = campaign.modules.as_slice() else {
        return Err("it observes more than one module");
    };
    let terrain = shared.store.get(&terrain_object(module.plan)).await;
    let terrain = terrain.ok().flatten().ok_or("its terrain is not there")?;
    let terrain = Terrain::from_bytes(&terrain).ok_or("its terrain is damaged")?;
    let plan = shared.store.get(&plan_object(module.plan)).await;
    let plan = plan.ok().flatten().ok_or("its predicates are not there")?;
    let (header, rows) = Predicates::read(&plan).map_err(|_| "its predicates are damaged")?;
    let id = header.module.build_id().unwrap_or_default().to_vec();
    let hunt = Hunt::new((spec, campaign.bound), terrain, (id, rows.len() as u32));
    hunt.map(Some).ok_or("its terrain contradicts itself")
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use tomo_protocol::CampaignId;

    use super::{Edition, elect};
    use crate::Store;
    use crate::campaigns::edition_object;
    use crate::collector::{Collector, Options};
    use crate::hunt::Change;

    fn of(number: u32, cause: u64) -> Edition {
        let place = None;
        let changes = vec![Change::Open { cause, place }];
        Edition { number, changes }
    }

    #[tokio::test]
    async fn all_collectors_of_a_store_follow_who_decides_first() {
        let folder = tempfile::tempdir().unwrap();
        let open = || async {
            let store = Store::local(folder.path()).unwrap();
            Collector::open(store, Options::default()).await.unwrap()
        };
        let (one, other) = (open().await, open().await);
        let (id, another) = (CampaignId([1; 16]), CampaignId([2; 16]));
        let first = elect(&one.shared, id, of(1, 7)).await.unwrap();
        assert_eq!(first, of(1, 7));
        assert_eq!(elect(&other.shared, id, of(1, 8)).await.unwrap(), first);
        assert_eq!(elect(&one.shared, id, of(1, 9)).await.unwrap(), first);
        for (of_whom, edition) in [(id, of(2, 8)), (another, of(1, 8))] {
            let elected = elect(&other.shared, of_whom, edition.clone()).await;
            assert_eq!(elected.unwrap(), edition);
        }
        // What says something else than its name, and what says nothing, is nobody's decision.
        for damaged in [
            Bytes::new(),
            postcard::to_allocvec(&of(1, 7)).unwrap().into(),
        ] {
            let name = edition_object(id, 3);
            one.shared.store.put(&name, damaged).await.unwrap();
            assert_eq!(elect(&one.shared, id, of(3, 5)).await.unwrap(), of(3, 5));
        }
        one.close().await;
        other.close().await;
    }
}
