//! The posterior optimum: what the best distribution would have shown, known afterwards from complete
//! field data (*Opt*, PDT §5.3). Instance `i` carries variant `i`, as in PDT's study.
//!
//! Which events happened at which instance is known; to choose for each instance some of its own
//! within the bound, so that most different ones are chosen, is as hard as distributing at all. PDT
//! approximates from above: each instance starts with probes for all that happened there, and drops events
//! that another instance has too, or else its shortest one ([`by_dropping`]). What that misses is
//! unknown. So [`optimum`] takes the better of that and of a greedy choice, whose share is proven,
//! and says what cannot be exceeded.
//!
//! **Share.** The greedy choice packs instance after instance for the events that are new
//! ([`Packer`], a share α of the best packing). Let a unit be in at most Δ events. What the best
//! choice shows in an instance's variant beyond all that is chosen is at most 1/α of what was new when this
//! instance was packed, and sums up, over all instances, to at most 1/α of all that is seen; so the best
//! choice shows at most (1 + 1/α) times as much, and with α ≥ 1/(2Δ + 2) at most 2Δ + 3 times (after
//! Fisher, Nemhauser, Wolsey, *An Analysis of Approximations for Maximizing Submodular Set Functions
//! II*, Math. Programming Study 8, 1978).

use super::{AwardError, Events, Run, different};
use tomo_plan::distribution::{
    Bound, Distribution, Packer, Repeats, SetId, UnitSets, Variant, oversized, upper_bound,
};

/// What could have been seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Posterior {
    /// A variant for each instance.
    pub distribution: Distribution,
    /// The events that it would have shown, ascending.
    pub seen: Vec<SetId>,
    /// No distribution would have shown more.
    pub upper: usize,
}

/// A distribution close to the best one for these runs, and how good the best can be at most.
///
/// # Errors
/// [`AwardError::NoSuchUnit`], [`AwardError::NoVariant`] for a run of an instance beyond `instances`,
/// [`AwardError::Events`].
pub fn optimum(
    events: &Events,
    runs: &[Run],
    instances: usize,
    bound: &Bound,
) -> Result<Posterior, AwardError> {
    let happened = by_instance(events, runs, instances)?;
    let greedy = by_packing(events, &happened, bound)?;
    let printed = dropped(events, &happened, bound)?;
    let upper = upper(events.sets(), &happened, bound)?;
    let candidates = [greedy, printed].map(|found| (seen(events, &happened, &found), found));
    let [(seen, distribution), (others, other)] = candidates;
    let (seen, distribution) = if others.len() > seen.len() {
        (others, other)
    } else {
        (seen, distribution)
    };
    Ok(Posterior {
        distribution,
        seen,
        upper,
    })
}

/// PDT's approximation, for study. An instance over the bound drops the longest event that another
/// one still has, or if there is none the shortest that it has.
///
/// # Errors
/// As [`optimum`].
pub fn by_dropping(
    events: &Events,
    runs: &[Run],
    instances: usize,
    bound: &Bound,
) -> Result<Distribution, AwardError> {
    dropped(events, &by_instance(events, runs, instances)?, bound)
}

/// Per instance, the events that happened there, ascending.
fn by_instance(
    events: &Events,
    runs: &[Run],
    instances: usize,
) -> Result<Vec<Vec<SetId>>, AwardError> {
    events.check(runs)?;
    let mut happened = vec![Vec::new(); instances];
    for run in runs {
        let list = happened
            .get_mut(run.instance)
            .ok_or(AwardError::NoVariant(run.instance))?;
        list.append(&mut events.happened(&run.trace));
    }
    Ok(happened.into_iter().map(different).collect())
}

fn by_packing(
    events: &Events,
    happened: &[Vec<SetId>],
    bound: &Bound,
) -> Result<Distribution, AwardError> {
    let packer = Packer::new(events.sets(), bound)?;
    let mut is_seen = vec![false; events.sets().len()];
    let mut weights = vec![0; events.sets().len()];
    let variants = happened.iter().map(|here| {
        here.iter()
            .for_each(|set| weights[set.index()] = u64::from(!is_seen[set.index()]));
        let variant = packer.pack(&weights);
        here.iter().for_each(|set| weights[set.index()] = 0);
        variant
            .sets()
            .iter()
            .for_each(|set| is_seen[set.index()] = true);
        variant
    });
    Ok(Distribution::new(variants.collect()))
}

fn dropped(
    events: &Events,
    happened: &[Vec<SetId>],
    bound: &Bound,
) -> Result<Distribution, AwardError> {
    let sets = events.sets();
    let oversized = oversized(sets, bound)?;
    let fits = |set: &SetId| oversized.binary_search(set).is_err();
    let mut kept: Vec<Vec<SetId>> = happened
        .iter()
        .map(|here| here.iter().copied().filter(fits).collect())
        .collect();
    let mut instances = vec![0_u32; sets.len()];
    kept.iter()
        .flatten()
        .for_each(|set| instances[set.index()] += 1);
    for here in &mut kept {
        let mut load = Load::new(sets, bound, here);
        while load.cost > bound.limit() {
            let Some(set) = take_next(here, sets, &instances) else {
                break;
            };
            instances[set.index()] -= 1;
            load.drop(set);
        }
    }
    let variants = kept.into_iter().map(|here| Variant::of_sets(sets, here));
    Ok(Distribution::new(variants.collect()))
}

/// Takes out what PDT drops next.
fn take_next(here: &mut Vec<SetId>, sets: &UnitSets, instances: &[u32]) -> Option<SetId> {
    let indices = || 0..here.len();
    let is_elsewhere = |at: &usize| instances[here[*at].index()] > 1;
    let longest = indices()
        .filter(is_elsewhere)
        .max_by_key(|&at| sets.length(here[at]));
    let at = longest.or_else(|| indices().min_by_key(|&at| sets.length(here[at])))?;
    Some(here.remove(at))
}

/// What an instance's probes cost while events are dropped.
struct Load<'a> {
    sets: &'a UnitSets,
    bound: &'a Bound,
    needs: Vec<u32>,
    cost: u64,
}

impl<'a> Load<'a> {
    fn new(sets: &'a UnitSets, bound: &'a Bound, placed: &[SetId]) -> Self {
        let mut needs = vec![0; sets.unit_count()];
        for unit in placed.iter().flat_map(|&set| sets.units(set)) {
            needs[unit.index()] += 1;
        }
        let variant = Variant::of_sets(sets, placed.to_vec());
        Self {
            sets,
            bound,
            needs,
            cost: bound.cost_of(variant.units()),
        }
    }

    fn drop(&mut self, set: SetId) {
        for &unit in self.sets.units(set) {
            let needs = &mut self.needs[unit.index()];
            *needs -= 1;
            if *needs == 0 {
                self.cost -= self.bound.cost(unit);
            }
        }
    }
}

/// The bound on the value of any distribution over the events that happened at all, and fit.
fn upper(sets: &UnitSets, happened: &[Vec<SetId>], bound: &Bound) -> Result<usize, AwardError> {
    let all = different(happened.concat());
    if all.is_empty() {
        return Ok(0);
    }
    let happened_sets = UnitSets::new(sets.unit_count(), all.iter().map(|&set| sets.units(set)))?;
    let weights = vec![1; all.len()];
    let upper = upper_bound(
        &happened_sets,
        &weights,
        bound,
        happened.len(),
        Repeats::Worthless,
    )?;
    Ok(usize::try_from(upper).unwrap_or(usize::MAX))
}

/// What an instance's variant shows of what happened there, placed for it or not.
fn seen(events: &Events, happened: &[Vec<SetId>], distribution: &Distribution) -> Vec<SetId> {
    let pairs = happened.iter().zip(distribution.variants());
    let shown = pairs.flat_map(|(here, variant)| {
        let is_shown = |set: &&SetId| variant.observes(events.sets().units(**set));
        here.iter().filter(is_shown).copied()
    });
    different(shown.collect())
}
