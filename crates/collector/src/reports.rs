//! What instances ask: to take their reports, and what to observe.

use std::collections::BTreeSet;

use bytes::Bytes;
use tomo_protocol::{
    Answer, AssignedModule, Assignment, CampaignId, InstanceId, Since, Units, Verdict, What,
};
use tomo_wire::report::ReportView;

use crate::collector::Collector;
use crate::commit::Logged;
use crate::observed::{Objection, Observed};
use crate::{Denial, Limits};

/// What is to become of a report.
enum Decision {
    Store,
    Known,
    Refused(Objection),
}

/// A report of a body.
struct Received {
    run: u64,
    sequence: u32,
    bytes: Bytes,
    decision: Decision,
}

/// What a body says.
#[derive(Default)]
struct Read {
    received: Vec<Received>,
    /// Instances whose first reports are to be stored.
    new: BTreeSet<InstanceId>,
    /// Why what follows those reports cannot be read.
    unread: Option<String>,
}

impl Collector {
    /// Takes a body of reports. Comes back when all that is acknowledged is durable.
    pub(crate) async fn take_reports(
        &self,
        campaign: CampaignId,
        body: &Bytes,
        since: Option<Since>,
    ) -> Result<Answer, Denial> {
        let observed = self.observed(campaign)?;
        let limits = &self.shared.options.limits;
        let Read {
            received,
            new,
            unread,
        } = self.receive(&observed, body, limits)?;
        let mut logged = Vec::new();
        let mut verdicts = Vec::new();
        for report in received {
            let what = match report.decision {
                Decision::Store => {
                    logged.push(Logged::Report(report.bytes));
                    What::Stored
                }
                Decision::Known => What::Known,
                Decision::Refused(objection) => What::Refused {
                    why: objection.to_string(),
                    again: objection == Objection::TooManyInstances
                        || (objection == Objection::NoSuchVariant && observed.hunt.is_some()),
                },
            };
            verdicts.push(Verdict {
                run: report.run,
                sequence: report.sequence,
                what,
            });
        }
        if !logged.is_empty() {
            let now = self.shared.now();
            observed.live().expect(new.iter().copied());
            let stored = self.queue.store(&observed, logged, now).await;
            if let Err(denial) = stored {
                let mut live = observed.live();
                new.into_iter().for_each(|one| live.expect_no_more(one));
                return Err(denial);
            }
            if observed.hunt.is_some() {
                self.shared.hunting.notify_one();
            }
        }
        self.count(&verdicts, unread.is_some());
        // Who counts goes on counting what others have seen.
        let piggyback = observed.campaign.policy.piggyback && !observed.campaign.is_counted();
        Ok(Answer {
            verdicts,
            unread,
            interval_ms: self.pace_ms(),
            news: piggyback.then(|| observed.news(since)),
        })
    }

    /// Reads a body and decides on each report of it. Of several of one run only the last can be news
    /// to the state, but joining them all is as right.
    fn receive(&self, observed: &Observed, body: &Bytes, limits: &Limits) -> Result<Read, Denial> {
        let mut read = Read::default();
        for report in ReportView::all(body) {
            let report = match report {
                Ok(report) => report,
                Err(refusal) => {
                    read.unread = Some(refusal.to_string());
                    break;
                }
            };
            if read.received.len() == limits.reports_per_body {
                let error = format!("more than {} reports in one body", limits.reports_per_body);
                let status = axum::http::StatusCode::PAYLOAD_TOO_LARGE;
                return Err(Denial::new(status, error, "send them in several bodies"));
            }
            let decision = decide(observed, &report, limits, &mut read.new);
            read.received.push(Received {
                run: report.header.run.get(),
                sequence: report.header.sequence.get(),
                bytes: body.slice_ref(report.bytes),
                decision,
            });
        }
        Ok(read)
    }

    fn count(&self, verdicts: &[Verdict], unread: bool) {
        let metrics = &self.shared.metrics;
        for verdict in verdicts {
            match &verdict.what {
                What::Stored => metrics.report("stored", 1),
                What::Known => metrics.report("known", 1),
                What::Refused { why, .. } => metrics.report(why, 1),
            }
        }
        if unread {
            metrics.report("unread", 1);
        }
    }

    /// What an instance is to observe. The first time its variant is chosen and stored.
    pub(crate) async fn assign(
        &self,
        campaign: CampaignId,
        instance: InstanceId,
        since: Option<Since>,
    ) -> Result<Assignment, Denial> {
        let observed = self.observed(campaign)?;
        if observed.hunt.is_some() {
            let carried = self.searching(&observed, instance)?;
            return Ok(self.assignment(&observed, carried, None));
        }
        let known = {
            let mut live = observed.live();
            if live.retired.is_some() {
                return Err(retired());
            }
            let most = self.shared.options.limits.instances;
            match live.variant_of(instance) {
                Some(variant) => Ok(variant),
                None if live.state.instance(instance).is_none() && live.is_crowded(most) => {
                    return Err(crowded());
                }
                None => Err(live.choose(instance)),
            }
        };
        let variant = match known {
            Ok(variant) => variant,
            Err(chosen) => {
                let logged = vec![Logged::Assignment(instance, chosen)];
                let now = self.shared.now();
                let stored = self.queue.store(&observed, logged, now).await;
                if let Err(denial) = stored {
                    observed.live().forget(instance);
                    return Err(denial);
                }
                // Another collector may have been asked at the same time, and have been earlier.
                observed.live().variant_of(instance).unwrap_or(chosen)
            }
        };
        let carried = observed.campaign.variants.get(variant as usize);
        let units = carried.map(|one| one.units.clone()).unwrap_or_default();
        Ok(self.assignment(&observed, (variant, units), since))
    }

    /// What an instance is to carry of a search. Nothing need be kept: it follows from the runs that it has reported.
    fn searching(&self, observed: &Observed, instance: InstanceId) -> Result<(u32, Units), Denial> {
        // What is known is locked before the search, as where a decision is taken.
        let live = observed.live();
        if live.retired.is_some() {
            return Err(retired());
        }
        let most = self.shared.options.limits.instances;
        if live.state.instance(instance).is_none() && live.is_crowded(most) {
            return Err(crowded());
        }
        let Some(hunt) = observed.hunt() else {
            return Ok((0, Units::default()));
        };
        let variant = hunt.variant_of(instance, &live.state);
        Ok((variant, hunt.units(variant).cloned().unwrap_or_default()))
    }

    fn assignment(
        &self,
        observed: &Observed,
        (variant, units): (u32, Units),
        since: Option<Since>,
    ) -> Assignment {
        let campaign = &observed.campaign;
        let mut news = observed.news(since);
        if observed.hunt.is_some() || campaign.is_counted() {
            // What one has seen says nothing of the runs of others.
            news.units = Units::default();
        }
        let modules = campaign.modules.iter().map(|module| AssignedModule {
            stem: module.stem.clone(),
            level: module.level.clone(),
            placement: module.placement.clone(),
            plan: module.plan,
            probes: module.probes,
        });
        Assignment {
            campaign: campaign.id,
            plans: campaign.plans,
            modules: modules.collect(),
            variant,
            units,
            policy: campaign.policy,
            interval_ms: self.pace_ms(),
            news,
        }
    }

    /// A campaign, for somebody whose token says that there is one.
    pub(crate) fn observed(&self, id: CampaignId) -> Result<std::sync::Arc<Observed>, Denial> {
        let advice = "`tomo campaign list` lists those that there are";
        let found = self.shared.campaign(id);
        found.ok_or_else(|| Denial::unknown(&format!("campaign {id}"), advice))
    }

    fn pace_ms(&self) -> u64 {
        let campaigns = self.shared.all_campaigns();
        let now = self.shared.now();
        let instances = campaigns.iter().map(|observed| {
            let mut live = observed.live();
            match live.retired {
                Some(_) => 0,
                None => live.heard_lately(now),
            }
        });
        let pace = self.shared.options.limits;
        let pace = pace.pace(instances.sum(), self.queue.waiting());
        u64::try_from(pace.as_millis()).unwrap_or(u64::MAX)
    }
}

/// What is to become of a report, after those of a body that are the first of `new` instances.
fn decide(
    observed: &Observed,
    report: &ReportView<'_>,
    limits: &Limits,
    new: &mut BTreeSet<InstanceId>,
) -> Decision {
    if let Some(objection) = observed.object_to(report) {
        return Decision::Refused(objection);
    }
    let instance = InstanceId(report.header.instance);
    let live = observed.live();
    let most = match new.contains(&instance) {
        true => usize::MAX,
        false => limits.instances.saturating_sub(new.len()),
    };
    match live.object_to(report, most) {
        Some(objection) => Decision::Refused(objection),
        None if live.state.knows(report) => Decision::Known,
        None => {
            if live.is_new(instance) {
                new.insert(instance);
            }
            Decision::Store
        }
    }
}

fn retired() -> Denial {
    let advice = "the program runs unobserved from now on; point it to another campaign";
    let status = axum::http::StatusCode::GONE;
    Denial::new(status, "the campaign has been retired", advice)
}

fn crowded() -> Denial {
    let advice = "raise --max-instances of `tomo serve`";
    let status = axum::http::StatusCode::CONFLICT;
    Denial::new(status, Objection::TooManyInstances.to_string(), advice)
}
