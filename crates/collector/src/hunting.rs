//! When a search goes on: whenever there is more to look at, and before anybody is told how it stands.
//!
//! One decision of a campaign is made at a time, on a thread of its own, from a copy of what is known; reports do not
//! wait for it. It counts once it is durable.

use std::sync::Arc;

use tomo_protocol::{Campaign, Terrain};
use tomo_wire::predicates::Predicates;

use crate::campaigns::{plan_object, terrain_object};
use crate::collector::Shared;
use crate::commit::{Logged, Queue};
use crate::hunt::{Edition, Hunt};
use crate::observed::Observed;

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
            let (number, changes) = (edition.number, edition.changes.len());
            let logged = vec![Logged::Edition(edition)];
            if let Err(denial) = queue.store(observed, logged, shared.now()).await {
                let campaign = observed.campaign.id;
                tracing::warn!(%campaign, ?denial, "a search could not go on");
                // It is decided anew when there is more.
                return;
            }
            let campaign = observed.campaign.id;
            tracing::info!(%campaign, edition = number, changes, "a search goes on");
        }
    }
}

async fn decide(shared: &Shared, observed: &Arc<Observed>) -> Option<Edition> {
    let decided = shared.on_a_copy(observed, |observed, state, _| {
        observed.hunt()?.decide(state)
    });
    decided.await.flatten()
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
