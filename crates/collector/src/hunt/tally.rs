//! What runs say of predicates, for one cause: its failures against the runs that did not fail.
//!
//! Linear in what was hit: of what a run carried and did not hit it is enough to know which variant it was.

use std::collections::HashMap;

use tomo_profile::scores::{Decision, OddsTest, Outcome, Sufficiency, SufficiencyRule};
use tomo_protocol::Known;

use super::share::{Counted, Label};
use super::{Hunt, Watched};

/// The odds ratio that a predictor is to have, and the chances of an error of either kind.
const ODDS: f64 = 8.0;
const ALPHA: f64 = 0.05;
const BETA: f64 = 0.05;

/// Predicates of a site at most; what they say of a run fits into the bits of a byte.
const MOST_CASES: u32 = 8;

/// The outcome of a run as a search for this cause sees it: other failures are neither.
fn outcome(label: Label, cause: u64) -> Option<Outcome> {
    match label {
        Label::Passed => Some(Outcome::Success),
        Label::Failed(found) if found == cause => Some(Outcome::Failure),
        Label::Failed(_) => None,
    }
}

/// The sites that can be observed, and which of them each variant carries.
pub(super) struct Carried<'h> {
    hunt: &'h Hunt,
    /// By first row.
    sites: Vec<Watched>,
    /// By row: its site, if it is of one.
    site_of: Vec<Option<u32>>,
    variants: HashMap<u32, Vec<u32>>,
}

impl<'h> Carried<'h> {
    pub(super) fn of(hunt: &'h Hunt) -> Self {
        let all = 0..hunt.terrain.sites.len() as u32;
        let mut sites: Vec<Watched> = all.filter_map(|site| hunt.watched(site)).collect();
        sites.sort_unstable_by_key(|site| site.first);
        let end = sites.iter().map(|site| site.first + site.cases).max();
        let mut site_of = vec![None; end.unwrap_or(0) as usize];
        for (number, site) in (0..).zip(&sites) {
            let rows = site.first as usize..(site.first + site.cases.min(MOST_CASES)) as usize;
            site_of[rows].fill(Some(number));
        }
        Self {
            hunt,
            sites,
            site_of,
            variants: HashMap::new(),
        }
    }

    /// Sites that can be observed.
    pub(super) fn count(&self) -> usize {
        self.sites.len()
    }

    /// The sites that a variant carries.
    fn by(&mut self, variant: u32) -> &[u32] {
        self.variants.entry(variant).or_insert_with(|| {
            let Some(units) = self.hunt.units(variant) else {
                return Vec::new();
            };
            let sites = &self.sites;
            let whole = |row: u32| {
                let number = (*self.site_of.get(row as usize)?)?;
                (sites.get(number as usize)?.first == row).then_some(number)
            };
            units.iter().filter_map(whole).collect()
        })
    }

    /// Calls `each` with the sites that a run reached, and which of their predicates were true, a bit each.
    fn reached(&self, hits: &[u32], mut each: impl FnMut(u32, u8)) {
        let mut at = 0;
        while let Some(&hit) = hits.get(at) {
            let number = self.site_of.get(hit as usize).copied().flatten();
            let site = number.and_then(|number| self.sites.get(number as usize));
            let (Some(number), Some(site)) = (number, site) else {
                at += 1;
                continue;
            };
            let mut bits = 0;
            while let Some(case) = hits.get(at).map(|hit| hit.wrapping_sub(site.first))
                && case < site.cases.min(MOST_CASES)
            {
                bits |= 1 << case;
                at += 1;
            }
            each(number, bits);
        }
    }
}

/// Runs by outcome: those that failed, those that did not.
#[derive(Clone, Copy, Debug, Default)]
struct Runs([u64; 2]);

impl Runs {
    fn add(&mut self, outcome: Outcome) {
        self.0[usize::from(outcome == Outcome::Success)] += 1;
    }

    fn plus(&mut self, other: Self) {
        self.0[0] += other.0[0];
        self.0[1] += other.0[1];
    }
}

/// What all of these runs say of the predicates that they carried.
pub(super) fn known(
    runs: &[Counted<'_>],
    carried: &mut Carried<'_>,
    cause: u64,
) -> HashMap<u32, Known> {
    let mut variants: HashMap<u32, Runs> = HashMap::new();
    let mut seen = vec![Runs::default(); carried.sites.len()];
    let mut held = vec![Runs::default(); carried.site_of.len()];
    for run in runs {
        let Some(outcome) = outcome(run.label, cause) else {
            continue;
        };
        variants.entry(run.variant).or_default().add(outcome);
        carried.reached(&run.evidence.hits, |number, bits| {
            seen[number as usize].add(outcome);
            let first = carried.sites[number as usize].first as usize;
            for case in (0..MOST_CASES as usize).filter(|case| bits >> case & 1 != 0) {
                held[first + case].add(outcome);
            }
        });
    }
    let mut all = vec![Runs::default(); carried.sites.len()];
    for (variant, runs) in variants {
        for &site in carried.by(variant) {
            all[site as usize].plus(runs);
        }
    }
    let mut known = HashMap::new();
    for (number, site) in carried.sites.iter().enumerate() {
        let ([failed, passed], [failed_seen, passed_seen]) = (all[number].0, seen[number].0);
        if failed + passed == 0 {
            continue;
        }
        for row in site.first..site.first + site.cases {
            let [failed_true, passed_true] = held[row as usize].0;
            let one = Known {
                row,
                failed_true,
                passed_true,
                failed_seen,
                passed_seen,
                failed,
                passed,
                step: 0,
            };
            known.insert(row, one);
        }
    }
    known
}

/// Whether the data of a plan suffice, by the sequential test, and how many runs there were; whether a row of it was
/// found to be predictive.
pub(super) struct Enough {
    pub(super) is_reached: bool,
    pub(super) runs: u64,
    predictive: Vec<u32>,
}

impl Enough {
    /// Looks at the runs that carried any of these sites, in order.
    pub(super) fn of(
        runs: &[Counted<'_>],
        carried: &mut Carried<'_>,
        (cause, plan, most): (u64, &[Watched], u64),
    ) -> Self {
        let mut enough = Self {
            is_reached: false,
            runs: 0,
            predictive: Vec::new(),
        };
        let rows: Vec<u32> = plan
            .iter()
            .flat_map(|site| site.first..site.first + site.cases)
            .collect();
        // By site: which of the plan's predicates is its first.
        let mut places = vec![None; carried.sites.len()];
        let mut place = 0;
        for site in plan {
            let number = carried.site_of.get(site.first as usize).copied().flatten();
            if let Some(number) = number {
                places[number as usize] = Some(place);
            }
            place += site.cases as usize;
        }
        let Ok(test) = OddsTest::new(ODDS, ALPHA, BETA) else {
            return enough;
        };
        let rule = SufficiencyRule::FirstFound;
        let mut sufficiency = Sufficiency::new(test, rows.len(), rule, most);
        let mut carries: HashMap<u32, bool> = HashMap::new();
        let mut failures = 0;
        for run in runs {
            let Some(outcome) = outcome(run.label, cause) else {
                continue;
            };
            let carries = *carries.entry(run.variant).or_insert_with(|| {
                let mut sites = carried.by(run.variant).iter();
                sites.any(|site| places[*site as usize].is_some())
            });
            if !carries {
                continue;
            }
            carried.reached(&run.evidence.hits, |number, bits| {
                if let Some(place) = places[number as usize] {
                    let cases = carried.sites[number as usize].cases.min(MOST_CASES);
                    let truths: [bool; MOST_CASES as usize] =
                        std::array::from_fn(|case| bits >> case & 1 != 0);
                    sufficiency.site(outcome, place, &truths[..cases as usize]);
                }
            });
            sufficiency.run();
            enough.runs += 1;
            failures += u64::from(outcome == Outcome::Failure);
        }
        let decisions = rows.iter().zip(sufficiency.decisions());
        let predictive = decisions.filter(|(_, decision)| *decision == Decision::Predictive);
        enough.predictive = predictive.map(|(row, _)| *row).collect();
        // Where there are neither failures nor successes nothing can be compared.
        enough.is_reached = sufficiency.is_reached() && failures > 0 && failures < enough.runs;
        enough
    }

    /// Whether the test has found this row to be predictive.
    pub(super) fn finds(&self, row: u32) -> bool {
        self.predictive.contains(&row)
    }
}
