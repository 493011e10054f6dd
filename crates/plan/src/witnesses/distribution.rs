//! Witnesses distributed over the profiles of several runs of one input (DPT §4.2, Figures 5, 7).
//!
//! A *job* is what one machine shall tell; the three strategies differ in what they make a job:
//! - [`Strategy::FineGrained`]: two ways of one branch;
//! - [`Strategy::FunctionWise`]: all branches of a function;
//! - [`Strategy::Grouped`] (the paper's *optimized grouping*): branches of a function that are
//!   likely to share witnesses, because one decides whether the other runs, or a cycle passes both.
//!
//! Jobs go, dearest first, to the machine that then has least to do (Graham's list scheduling, within
//! 4/3 − 1/(3m) of the best makespan for jobs that share nothing). Machines grow their witnesses
//! incrementally: while two ways of the job clash there, the cheapest place that could tell
//! them apart is added, out of a placement that tells everything apart; since more witnesses never
//! hurt, what was told stays told. At the end each machine drops what its jobs do not need, and with
//! [`Strategy::Grouped`] the busiest gives parts of its jobs away (`distribution/balance.rs`), then also to witnesses
//! that the placement has not: one function is often hotter than a machine's share of all.
//!
//! Where profiles are bounded, a machine has several, and a job is cut between them.
//!
//! **Deviations.** The paper gives a job to the machine that has least to do before it, which may
//! have to witness a cycle anew that another one witnesses already; and its groups stay whole. Its
//! jobs are diamonds and cycles, which are exponentially many, and whose being broken does not
//! suffice (`printed/theorem_1.rs`); ours are what the [criterion](super) asks for. Its incremental step recomputes a spanning tree (Figure 7).
//! Branches of more than [`MANY`] ways are one piece for the fine-grained strategy as well. Targets
//! of a call with several are told by witnesses at their entries, in one profile.

mod balance;
mod draft;
mod jobs;
mod machine;

use tomo_graph::{NodeId, Weight};

use super::flow::{Ends, Flow, Place};
use super::place::{Effort, NotRealizable, place};
use super::{FunctionId, Program};
use draft::Draft;

pub use jobs::MANY;

/// A witness of a [`Distribution`], counted from zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WitnessId(pub u32);

impl WitnessId {
    /// The position in a table with one row per witness.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The witnesses of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// The machine that runs it.
    pub machine: u32,
    /// Its witnesses, ascending.
    pub witnesses: Vec<WitnessId>,
}

/// A set of profiles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distribution {
    /// Where each witness is, ascending.
    sites: Vec<(FunctionId, Place)>,
    profiles: Vec<Profile>,
    /// Per witness, the profiles that hold it.
    holders: Vec<Vec<u32>>,
}

impl Distribution {
    /// The distribution of these places, a list per profile, each with its machine.
    #[must_use]
    pub fn new(profiles: &[(u32, Vec<(FunctionId, Place)>)]) -> Self {
        let mut sites: Vec<_> = profiles.iter().flat_map(|each| &each.1).copied().collect();
        sites.sort_unstable();
        sites.dedup();
        let mut holders = vec![Vec::new(); sites.len()];
        let mut numbered = Vec::new();
        for (number, (machine, places)) in (0u32..).zip(profiles) {
            let at = |site| sites.partition_point(|each| each < site) as u32;
            let mut witnesses: Vec<_> = places.iter().map(|site| WitnessId(at(site))).collect();
            witnesses.sort_unstable();
            witnesses.dedup();
            for witness in &witnesses {
                holders[witness.index()].push(number);
            }
            let machine = *machine;
            numbered.push(Profile { machine, witnesses });
        }
        Self {
            sites,
            profiles: numbered,
            holders,
        }
    }

    /// The profiles, in order of their machines.
    #[must_use]
    pub fn profiles(&self) -> &[Profile] {
        &self.profiles
    }

    /// Where each witness is: a position is a [`WitnessId`].
    #[must_use]
    pub fn sites(&self) -> &[(FunctionId, Place)] {
        &self.sites
    }

    /// The witness at a place, if there is one.
    #[must_use]
    pub fn witness_at(&self, function: FunctionId, place: Place) -> Option<WitnessId> {
        let at = self.sites.binary_search(&(function, place)).ok()?;
        Some(WitnessId(at as u32))
    }

    /// The witnesses of a function, with their places.
    pub fn witnesses_of(
        &self,
        function: FunctionId,
    ) -> impl Iterator<Item = (WitnessId, Place)> + '_ {
        let from = self.sites.partition_point(|site| site.0 < function);
        let to = self.sites.partition_point(|site| site.0 <= function);
        (from..to).map(|at| (WitnessId(at as u32), self.sites[at].1))
    }

    /// The profiles that hold a witness, ascending.
    #[must_use]
    pub fn profiles_of(&self, witness: WitnessId) -> &[u32] {
        &self.holders[witness.index()]
    }

    /// What each machine has to do: the weights of all witnesses in all its profiles.
    #[must_use]
    pub fn loads(&self, machines: u32, weight: impl Fn(FunctionId, Place) -> Weight) -> Vec<u64> {
        let mut loads = vec![0u64; machines as usize];
        for profile in &self.profiles {
            for witness in &profile.witnesses {
                let (function, place) = self.sites[witness.index()];
                let load = &mut loads[profile.machine as usize];
                *load = load.saturating_add(finite(weight(function, place)));
            }
        }
        loads
    }
}

/// What is made a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// Two ways of a branch.
    FineGrained,
    /// All branches of a function.
    FunctionWise,
    /// Branches that are likely to share witnesses.
    Grouped,
}

/// Over what to distribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machines<'m> {
    /// How many there are.
    pub count: u32,
    /// How many witnesses a profile may have; each machine then has as many profiles as it needs.
    pub bound: Option<u32>,
    /// What each of them has to do besides, from the first on; the others nothing.
    pub besides: &'m [u64],
}

impl Machines<'_> {
    fn besides(self, machine: u32) -> u64 {
        self.besides.get(machine as usize).copied().unwrap_or(0)
    }
}

/// Why witnesses cannot be distributed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DistributionError {
    /// No machine to run anything.
    #[error("there are no machines")]
    NoMachines,
    /// A function cannot be traced at the allowed places.
    #[error("{function:?}: {reason}")]
    NotRealizable {
        /// The function.
        function: FunctionId,
        /// What cannot be told apart.
        reason: NotRealizable,
    },
    /// A call with several targets, of which one cannot have a witness at its entry.
    #[error("{0:?} is one of several targets of a call, and its entry cannot carry a probe")]
    UnpatchableEntry(FunctionId),
    /// Telling two ways of this branch, or the targets of this call, apart takes more witnesses
    /// than a profile may have.
    #[error(
        "{node:?} of {function:?} needs {needs} witnesses in one profile, which may have {bound}"
    )]
    BoundTooSmall {
        /// The function.
        function: FunctionId,
        /// The branch or call.
        node: NodeId,
        /// How many witnesses were found to do.
        needs: usize,
        /// How many are allowed.
        bound: u32,
    },
}

/// Distributes witnesses over profiles such that each run of the program can be reconstructed from
/// all its partial traces. `weight` says how often a place is passed, as a rule.
pub fn distribute(
    program: &Program,
    weight: impl Fn(FunctionId, Place) -> Weight,
    strategy: Strategy,
    machines: Machines<'_>,
    ends: Ends,
) -> Result<Distribution, DistributionError> {
    Placed::of(program, weight, ends)?.distribute(strategy, machines)
}

/// A program with witnesses that tell everything apart, to be distributed in several ways.
pub struct Placed<'p> {
    program: &'p Program,
    works: Vec<FunctionWork>,
}

impl<'p> Placed<'p> {
    /// The cheapest witnesses that were found.
    pub fn of(
        program: &'p Program,
        weight: impl Fn(FunctionId, Place) -> Weight,
        ends: Ends,
    ) -> Result<Self, DistributionError> {
        let works = program.ids();
        let works = works.map(|id| FunctionWork::of(program, id, &weight, ends));
        Ok(Self {
            program,
            works: works.collect::<Result<_, _>>()?,
        })
    }

    /// As [`distribute`].
    pub fn distribute(
        &self,
        strategy: Strategy,
        machines: Machines<'_>,
    ) -> Result<Distribution, DistributionError> {
        if machines.count == 0 {
            return Err(DistributionError::NoMachines);
        }
        let jobs = jobs::of(self.program, &self.works, strategy)?;
        let mut profiles = machine::assign(&self.works, jobs, machines)?;
        if strategy == Strategy::Grouped && machines.bound.is_none() {
            balance::even(&self.works, &mut profiles, machines);
        }
        let places = |(machine, draft): &(u32, Draft)| (*machine, draft.places(&self.works));
        Ok(Distribution::new(
            &profiles.iter().map(places).collect::<Vec<_>>(),
        ))
    }
}

/// A function with a placement that tells everything apart, from which machines take.
struct FunctionWork {
    flow: Flow,
    weights: Vec<Weight>,
    pool: Vec<bool>,
}

/// How many moves pruning a function's pool may look at.
const EFFORT: Effort = Effort::Pruned(200_000);

impl FunctionWork {
    fn of(
        program: &Program,
        function: FunctionId,
        weight: &impl Fn(FunctionId, Place) -> Weight,
        ends: Ends,
    ) -> Result<Self, DistributionError> {
        let flow = Flow::of_function(program, function, ends);
        let at = |place| weight(function, place);
        let placed = place(&flow, at, EFFORT)
            .map_err(|reason| DistributionError::NotRealizable { function, reason })?;
        let mut pool = vec![false; flow.places()];
        for place in placed.witnesses {
            pool[flow.number(place) as usize] = true;
        }
        let places = 0..flow.places() as u32;
        let weights = places.map(|number| at(flow.place(number))).collect();
        Ok(Self {
            flow,
            weights,
            pool,
        })
    }

    fn weight(&self, place: u32) -> u64 {
        finite(self.weights[place as usize])
    }
}

fn finite(weight: Weight) -> u64 {
    match weight {
        Weight::Finite(weight) => weight,
        Weight::Infinite => u64::MAX,
    }
}
