//! The [criterion](super) asked of a set of profiles, and what each branch is then told by.
//!
//! For every branch: one profile that separates all its ways if there is one, else for each two
//! ways a profile that separates these (the map M of DPT Figure 8). Views are a function's own
//! witnesses in one profile. A call with several targets is told by their entries: for each two
//! targets some profile has a witness at the entries of both, and its whole partial trace goes on
//! with the one that was called.
//!
//! O(branches × profiles × function), and for branches that no single profile decides, O(ways²) of
//! that. **Unreachable branches** are not asked.

use tomo_graph::{Graph, NodeId};

use super::distribution::{Distribution, WitnessId};
use super::first::Firsts;
use super::flow::{Ends, Flow, Place};
use super::{FunctionId, Program};

/// Two ways on that no profile tells apart by its next witness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Undecided {
    /// Two ways out of a node: positions among its edges, the last may be leaving.
    #[error("no profile tells ways {} and {} out of {node:?} of {function:?} apart", ways.0, ways.1)]
    Ways {
        /// The function.
        function: FunctionId,
        /// The branch.
        node: NodeId,
        /// The two ways.
        ways: (u32, u32),
    },
    /// Two targets of a call.
    #[error("no profile tells whether {node:?} of {function:?} calls {:?} or {:?}", targets.0, targets.1)]
    Targets {
        /// The function.
        function: FunctionId,
        /// The node of the call.
        node: NodeId,
        /// The two targets.
        targets: (FunctionId, FunctionId),
    },
}

/// What comes next in a view: a witness, or the end of the record.
pub type Head = Option<WitnessId>;

/// How a branch is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// By what comes next of the view in one profile.
    One {
        /// The profile.
        profile: u32,
        /// What may come next and the way that it follows, ascending.
        table: Vec<(Head, u32)>,
    },
    /// Two ways at a time.
    Pairs {
        /// The profile that tells ways i < j apart, at position j (j − 1) / 2 + i.
        by: Vec<u32>,
        /// Per profile that is used: the profile, and for each way what may come next, ascending.
        sets: Vec<(u32, Vec<Vec<Head>>)>,
    },
}

/// The proof that profiles are realizable: how each branch is told.
#[derive(Clone, Debug)]
pub struct Criterion {
    ends: Ends,
    /// Per function, ascending by node.
    forks: Vec<Vec<(NodeId, Decision)>>,
    /// Per function and call, in the order of its calls; `None` where there is one target.
    calls: Vec<Vec<Option<Decision>>>,
}

impl Criterion {
    /// Proves that `distribution` is realizable for `program`, or names what is not decided.
    pub fn of(
        program: &Program,
        distribution: &Distribution,
        ends: Ends,
    ) -> Result<Self, Undecided> {
        let mut result = Self {
            ends,
            forks: Vec::new(),
            calls: Vec::new(),
        };
        for id in program.ids() {
            let flow = Flow::of_function(program, id, ends);
            let views = Views::of(distribution, id, &flow);
            result.forks.push(views.forks(id, &flow)?);
            result.calls.push(calls(program, distribution, id)?);
        }
        Ok(result)
    }

    /// Which ends of a run are told.
    #[must_use]
    pub fn ends(&self) -> Ends {
        self.ends
    }

    /// How the branches of a function are told, ascending by node.
    #[must_use]
    pub fn forks(&self, id: FunctionId) -> &[(NodeId, Decision)] {
        &self.forks[id.index()]
    }

    /// How the targets of a function's calls are told; heads are those of whole profiles here.
    #[must_use]
    pub fn calls(&self, id: FunctionId) -> &[Option<Decision>] {
        &self.calls[id.index()]
    }
}

/// The witnesses of one function in each profile.
struct Views {
    /// Per place, its witness.
    ids: Vec<Option<WitnessId>>,
    /// The profiles with any, and whether each place is a witness there.
    profiles: Vec<(u32, Vec<bool>)>,
}

impl Views {
    fn of(distribution: &Distribution, id: FunctionId, flow: &Flow) -> Self {
        let mut ids = vec![None; flow.places()];
        let mut profiles: Vec<(u32, Vec<bool>)> = Vec::new();
        for (witness, place) in distribution.witnesses_of(id) {
            let number = flow.number(place) as usize;
            if number >= ids.len() {
                continue;
            }
            ids[number] = Some(witness);
            for &profile in distribution.profiles_of(witness) {
                let at = profiles.iter().position(|each| each.0 == profile);
                let at = at.unwrap_or_else(|| {
                    profiles.push((profile, vec![false; flow.places()]));
                    profiles.len() - 1
                });
                profiles[at].1[number] = true;
            }
        }
        profiles.sort_by_key(|each| each.0);
        Self { ids, profiles }
    }

    fn forks(&self, id: FunctionId, flow: &Flow) -> Result<Vec<(NodeId, Decision)>, Undecided> {
        let mut firsts = Firsts::new(flow);
        let decide = |node| Ok((node, self.decide(id, flow, &mut firsts, node)?));
        flow.forks().map(decide).collect()
    }

    fn decide(
        &self,
        function: FunctionId,
        flow: &Flow,
        firsts: &mut Firsts<'_>,
        node: NodeId,
    ) -> Result<Decision, Undecided> {
        let ways = flow.ways(node) as u32;
        for (profile, witness) in &self.profiles {
            let is_witness = |place: u32| witness[place as usize];
            if firsts.clash_at(node, is_witness).is_none() {
                let mut table: Vec<(Head, u32)> = Vec::new();
                for way in 0..ways {
                    let set = self.heads(&firsts.of(node, way, is_witness));
                    table.extend(set.into_iter().map(|head| (head, way)));
                }
                table.sort_unstable();
                let profile = *profile;
                return Ok(Decision::One { profile, table });
            }
        }
        let mut by = Vec::new();
        for other in 1..ways {
            for one in 0..other {
                let ways = (one, other);
                let separates = |(_, witness): &&(u32, Vec<bool>)| {
                    let is_witness = |place: u32| witness[place as usize];
                    firsts.clash_between(node, ways, is_witness).is_none()
                };
                let undecided = Undecided::Ways {
                    function,
                    node,
                    ways,
                };
                by.push(self.profiles.iter().find(separates).ok_or(undecided)?.0);
            }
        }
        Ok(self.pairs(firsts, node, ways, by))
    }

    fn pairs(&self, firsts: &mut Firsts<'_>, node: NodeId, ways: u32, by: Vec<u32>) -> Decision {
        let used = self.profiles.iter().filter(|each| by.contains(&each.0));
        let sets = used.map(|(profile, witness)| {
            let is_witness = |place: u32| witness[place as usize];
            let set = |way| self.heads(&firsts.of(node, way, is_witness));
            (*profile, (0..ways).map(set).collect())
        });
        let sets = sets.collect();
        Decision::Pairs { by, sets }
    }

    /// Places as witnesses, ascending; the end, which is no place, comes first.
    fn heads(&self, places: &[u32]) -> Vec<Head> {
        let head = |&place: &u32| self.ids.get(place as usize).copied().flatten();
        let mut heads: Vec<Head> = places.iter().map(head).collect();
        heads.sort_unstable();
        heads
    }
}

fn calls(
    program: &Program,
    distribution: &Distribution,
    function: FunctionId,
) -> Result<Vec<Option<Decision>>, Undecided> {
    let entry = |target: FunctionId| {
        let node = program.function(target).graph.entry();
        distribution.witness_at(target, Place::Node(node))
    };
    let decide = |call: &super::Call| {
        if call.targets.len() < 2 {
            return Ok(None);
        }
        let heads: Vec<Head> = call.targets.iter().map(|&to| entry(to)).collect();
        let mut by = Vec::new();
        for other in 1..heads.len() {
            for one in 0..other {
                let undecided = Undecided::Targets {
                    function,
                    node: call.node,
                    targets: (call.targets[one], call.targets[other]),
                };
                let shared = shared_profile(distribution, heads[one], heads[other]);
                by.push(shared.ok_or(undecided)?);
            }
        }
        let mut used = by.clone();
        used.sort_unstable();
        used.dedup();
        let sets = used.into_iter().map(|profile| {
            let set = |head: &Head| match head {
                Some(witness) if distribution.profiles_of(*witness).contains(&profile) => {
                    vec![*head]
                }
                _ => Vec::new(),
            };
            (profile, heads.iter().map(set).collect())
        });
        let sets = sets.collect();
        Ok(Some(Decision::Pairs { by, sets }))
    };
    program
        .function(function)
        .calls
        .iter()
        .map(decide)
        .collect()
}

/// A profile that records both of two different witnesses.
fn shared_profile(distribution: &Distribution, one: Head, other: Head) -> Option<u32> {
    let (one, other) = (one?, other?);
    let both = |profile: &&u32| distribution.profiles_of(other).contains(profile);
    let mut profiles = distribution.profiles_of(one).iter();
    profiles.find(both).copied().filter(|_| one != other)
}
