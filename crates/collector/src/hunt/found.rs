//! What readers hear of a search.

use std::collections::{BTreeMap, BTreeSet};

use tomo_protocol::{CampaignId, Cause, CrashFrame, Found, Group as Told, Known};
use tomo_wire::report::{Outcome, Told as ByProgram};

use super::Hunt;
use super::decide::best;
use super::share::{Counted, Label, runs};
use super::tally::{Carried, known};
use crate::state::{Evidence, State};
use crate::tokens::hexadecimal;

/// Predictors that are told of.
const MOST: usize = 50;

impl Hunt {
    /// How the search stands, by all that is known.
    pub(crate) fn found(&self, campaign: CampaignId, state: &State) -> Found {
        let shared = runs(state, &self.spec);
        let mut carried = Carried::of(self);
        let mut causes: BTreeMap<u64, Vec<&Counted<'_>>> = BTreeMap::new();
        let mut successes = 0;
        for run in &shared.runs {
            match run.label {
                Label::Passed => successes += 1,
                Label::Failed(cause) => causes.entry(cause).or_default().push(run),
            }
        }
        let waiting = match self.room() {
            0 => self.worth_a_search(&shared.runs),
            _ => Vec::new(),
        };
        let mut groups: Vec<Told> = causes
            .iter()
            .map(|(cause, failed)| {
                let mut told = self.group(*cause, &shared.runs, &mut carried);
                let instances: BTreeSet<_> = failed.iter().map(|run| run.instance).collect();
                told.failures = failed.len() as u64;
                told.instances = instances.len() as u64;
                told.successes = successes;
                told.waits = waiting.contains(cause);
                if let Some(first) = failed.first() {
                    told.cause = words(first.evidence, *cause, state);
                }
                told
            })
            .collect();
        groups.sort_by(|one, other| {
            let more = other.failures.cmp(&one.failures);
            more.then_with(|| one.cause.cmp(&other.cause))
        });
        Found {
            campaign,
            edition: self.edition(),
            sites: carried.count() as u32,
            unlabelled: shared.unlabelled,
            beyond_share: shared.beyond,
            groups,
        }
    }

    fn group(&self, cause: u64, runs: &[Counted<'_>], carried: &mut Carried<'_>) -> Told {
        let group = self.groups.iter().find(|group| group.cause == cause);
        let known = known(runs, carried, cause);
        let step_of = |row: u32| {
            let group = group?;
            let mut watched = group.watched.iter();
            let mine = |site: u32| {
                let site = self.watched(site);
                site.is_some_and(|site| (site.first..site.first + site.cases).contains(&row))
            };
            watched
                .find(|(site, _)| mine(**site))
                .map(|(_, step)| *step)
        };
        let told: Vec<Known> = best(&known)
            .into_iter()
            .take(MOST)
            .filter_map(|(row, _)| {
                let step = step_of(row).unwrap_or(0);
                known.get(&row).map(|known| Known { step, ..*known })
            })
            .collect();
        // What others' searches had watched was watched for this cause, too.
        let all = 0..self.terrain.sites.len() as u32;
        let seen = all.filter(|site| {
            let is_planned = group.is_some_and(|group| group.watched.contains_key(site));
            self.watched(*site)
                .is_some_and(|one| is_planned || known.contains_key(&one.first))
        });
        Told {
            cause: Cause::Exit { code: 0 },
            failures: 0,
            successes: 0,
            instances: 0,
            steps: group.map(|group| group.steps.clone()).unwrap_or_default(),
            seen: seen.count() as u32,
            done: group.is_some_and(|group| group.done),
            waits: false,
            known: told,
        }
    }
}

/// What runs like this one have in common.
fn words(evidence: &Evidence, cause: u64, state: &State) -> Cause {
    let mut instances = state.instances();
    let crash = instances.find_map(|(_, known)| known.evidence.crash(cause));
    if let Some((signal, frames)) = crash {
        let frame = |(id, address): &(Vec<u8>, u64)| CrashFrame {
            build_id: hexadecimal(id),
            address: *address,
        };
        return Cause::Crash {
            signal: signal.cast_signed(),
            frames: frames.iter().map(frame).collect(),
        };
    }
    let status = evidence.status;
    match (evidence.told(), evidence.outcome()) {
        (ByProgram::Failure, _) => Cause::Told {
            words: format!("{:016x}", evidence.cause),
        },
        (_, Outcome::Signal) => Cause::Signal { signal: status },
        _ if evidence.cause != 0 => Cause::Told {
            words: format!("{:016x}", evidence.cause),
        },
        _ => Cause::Exit { code: status },
    }
}
