//! Witnesses of a program distributed over machines in all ways, and what that costs when they are planned and when they
//! are hit: the printed algorithms and ours side by side.

use std::collections::BTreeMap;

use rayon::prelude::*;
use serde::Serialize;
use tomo_graph::{Budget, Graph as _, NodeId, Weight};
use tomo_plan::witnesses::printed::figure_7::{self, Listed};
use tomo_plan::witnesses::{
    Call, Criterion, Distribution, DistributionError, Effort, Ends, Flow, FunctionId, Machines,
    Place, Placed, Program, Strategy, place,
};

use super::function::{Counts, Function};

/// The three strategies, with the paper's names.
pub const STRATEGIES: [(Strategy, &str); 3] = [
    (Strategy::FineGrained, "fine-grained"),
    (Strategy::FunctionWise, "function-wise"),
    (Strategy::Grouped, "optimized"),
];

/// The largest numbers of diamonds and cycles of a function that are listed, and of edges looked at for that.
const BUDGET: Budget = Budget {
    items: 600,
    steps: 300_000,
};

/// By what witnesses are chosen and distributed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub enum Weights {
    /// The heuristics of Ball and Larus (the paper's BL-profile).
    Estimate,
    /// How often everything ran in the run that is traced (the paper's trace profile).
    Trace,
}

/// Whose algorithm, on which functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub enum Whose {
    /// Ours, on all functions, as `tomo trace` has it: nothing is believed of calls, witnesses are at blocks or on ways.
    Ours,
    /// Ours, with witnesses on ways alone, where the diamonds can be listed, and calls come back.
    OursListed,
    /// The printed one, there.
    PrintedListed,
}

/// What is distributed, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Way {
    /// Whose algorithm.
    pub whose: Whose,
    /// By which weights.
    pub weights: Weights,
    /// By which strategy: a position in [`STRATEGIES`].
    pub strategy: usize,
    /// Over how many machines.
    pub machines: u32,
    /// How many witnesses a profile may have.
    pub bound: Option<u32>,
}

/// What a distribution costs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cost {
    /// Of what.
    pub way: Way,
    /// What the witnesses of the busiest machine weigh: the cost of distribution.
    pub distribution: u64,
    /// How often those of the busiest machine are hit: the cost of collection.
    pub collection: u64,
    /// How many witnesses there are, in all profiles together.
    pub witnesses: usize,
    /// How many profiles there are.
    pub profiles: usize,
    /// Functions whose ways are not told apart by the criterion.
    pub untold: usize,
}

/// What a program's functions are, as far as diamonds go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Shapes {
    /// Functions whose diamonds and cycles are listed.
    pub listed: usize,
    /// How many there are, how many have a way on which the run went, and how often it took the first way of one of their sides.
    pub diamonds: [u64; 3],
    /// How many there are that pass no diamond, how many were gone round, and how often at most.
    pub cycles: [u64; 3],
}

/// A program's functions, in all forms that the algorithms take.
pub struct Field {
    /// The functions.
    pub functions: Vec<Function>,
    loose: Program,
    /// Which of them are listed.
    listed: Vec<(usize, Listed)>,
    /// Those, called again and again by a function that comes first.
    plain: Program,
}

/// How often everything ran, by function and row.
pub type Hits = Vec<Vec<u64>>;

impl Field {
    /// The functions of a program.
    ///
    /// # Errors
    /// Where they are too many.
    pub fn of(functions: Vec<Function>) -> Result<Self, tomo_plan::witnesses::ProgramError> {
        let parts = functions.iter();
        let parts = parts.map(|one| (one.graph.clone(), one.loose.clone()));
        let loose = Program::of_loose(parts.collect())?;
        let listed: Vec<(usize, Listed)> = functions
            .par_iter()
            .enumerate()
            .filter_map(|(at, one)| Some((at, Listed::of(&one.graph, BUDGET)?)))
            .filter(|(at, _)| by_ways(&functions[*at]))
            .collect();
        let plain = called(listed.iter().map(|(at, _)| &functions[*at]))?;
        Ok(Self {
            functions,
            loose,
            listed,
            plain,
        })
    }

    /// How often everything ran, as far as it was counted.
    #[must_use]
    pub fn hits(&self, counts: &Counts) -> Hits {
        let functions = self.functions.iter();
        let own = |one: &Function| counts.get(&one.entry()).cloned();
        functions.map(|one| own(one).unwrap_or_default()).collect()
    }

    fn estimate(&self) -> Hits {
        let functions = self.functions.iter();
        functions.map(|one| one.estimated.clone()).collect()
    }

    /// Witnesses placed by weights, from which all distributions of ours are made.
    ///
    /// # Errors
    /// Where ways cannot be told apart.
    pub fn place(&self, weights: &Hits) -> Result<Planned<'_>, DistributionError> {
        let all = |id: FunctionId, place| Weight::Finite(self.value(weights, id.index(), place));
        let plain = |id: FunctionId, place: Place| match (place, id.index().checked_sub(1)) {
            (Place::Edge(_), Some(at)) => {
                Weight::Finite(self.value(weights, self.listed[at].0, place))
            }
            _ => Weight::Infinite,
        };
        Ok(Planned {
            field: self,
            weights: weights.clone(),
            all: Placed::of(&self.loose, all, Ends::Returns)?,
            plain: Placed::of(&self.plain, plain, Ends::Returns)?,
        })
    }

    /// The same by the estimate.
    ///
    /// # Errors
    /// Where ways cannot be told apart.
    pub fn place_by_estimate(&self) -> Result<Planned<'_>, DistributionError> {
        self.place(&self.estimate())
    }

    fn value(&self, of: &Hits, function: usize, place: Place) -> u64 {
        let row = self.functions[function].row(place);
        of[function].get(row).copied().unwrap_or(0)
    }

    /// Diamonds and cycles, and how often they were passed.
    #[must_use]
    pub fn shapes(&self, hits: &Hits) -> Shapes {
        let mut shapes = Shapes {
            listed: self.listed.len(),
            ..Shapes::default()
        };
        for (at, listed) in &self.listed {
            let own = self.functions[*at].graph.edge_count();
            let often = |edge: &tomo_graph::EdgeId| match edge.index() < own {
                true => self.value(hits, *at, Place::Edge(*edge)),
                // How often the function was left is not looked at.
                false => u64::MAX,
            };
            for one in &listed.diamonds {
                let firsts = [&one.left, &one.right].map(|side| side.first().map_or(0, often));
                let times = firsts.iter().filter(|times| **times != u64::MAX).sum();
                add(&mut shapes.diamonds, times);
            }
            for cycle in &listed.cycles {
                let times = cycle.iter().map(often).min();
                add(
                    &mut shapes.cycles,
                    times.filter(|times| *times != u64::MAX).unwrap_or(0),
                );
            }
        }
        shapes
    }
}

/// One more, of which `times` are known.
pub(super) fn add(counts: &mut [u64; 3], times: u64) {
    counts[0] += 1;
    counts[1] += u64::from(times > 0);
    counts[2] += times;
}

/// Whether witnesses on ways alone tell a function apart that may be called again.
fn by_ways(function: &Function) -> bool {
    let program = called([function].into_iter());
    program.is_ok_and(|program| {
        let flow = Flow::of_function(&program, FunctionId(1), Ends::Returns);
        let weight = |place| match place {
            Place::Edge(_) => Weight::Finite(1),
            Place::Node(_) => Weight::Infinite,
        };
        place(&flow, weight, Effort::Forest).is_ok()
    })
}

/// A program that calls each of these functions twice.
fn called<'f>(
    functions: impl Iterator<Item = &'f Function>,
) -> Result<Program, tomo_plan::witnesses::ProgramError> {
    let leaves = functions.map(|one| tomo_plan::witnesses::Function::leaf(one.graph.clone()));
    let mut all: Vec<_> = leaves.collect();
    let alone = tomo_graph::FlowGraph::new(1, NodeId(0), []);
    let Ok(alone) = alone else {
        return Err(tomo_plan::witnesses::ProgramError::TooLarge);
    };
    let call = |at: usize| Call {
        node: NodeId(0),
        targets: vec![FunctionId(at as u32 / 2 + 1)],
    };
    let main = tomo_plan::witnesses::Function {
        calls: (0..2 * all.len()).map(call).collect(),
        ..tomo_plan::witnesses::Function::leaf(alone)
    };
    all.insert(0, main);
    Program::new(all, FunctionId(0))
}

/// A field with its witnesses placed by some weights.
pub struct Planned<'f> {
    field: &'f Field,
    weights: Hits,
    all: Placed<'f>,
    plain: Placed<'f>,
}

impl Planned<'_> {
    /// What the way yields: the profiles, and of each witness the function among those of the field and the place.
    ///
    /// # Errors
    /// Where a profile would have to be larger than the bound.
    pub fn distribute(&self, way: Way) -> Result<Distribution, DistributionError> {
        let (strategy, _) = STRATEGIES[way.strategy];
        let machines = Machines {
            count: way.machines,
            bound: way.bound,
            besides: &[],
        };
        let made = match way.whose {
            Whose::Ours => return self.all.distribute(strategy, machines),
            Whose::OursListed => profiles(&self.plain.distribute(strategy, machines)?, 1),
            Whose::PrintedListed => {
                let weight = |id: FunctionId, edge| {
                    let (at, _) = self.field.listed[id.index()];
                    self.field.value(&self.weights, at, Place::Edge(edge))
                };
                let listed = self.field.listed.iter().map(|(_, listed)| listed);
                let listed: Vec<&Listed> = listed.collect();
                figure_7::distribute(&listed, weight, strategy, machines)
            }
        };
        let named = made.into_iter().map(|(machine, places)| {
            let named = places.into_iter().map(|(id, place)| {
                let at = self.field.listed[id.index()].0;
                (FunctionId(at as u32), place)
            });
            (machine, named.collect())
        });
        Ok(Distribution::new(&named.collect::<Vec<_>>()))
    }

    /// What the way costs if that is hit; nothing where a profile would have to be larger than the bound.
    #[must_use]
    pub fn cost(&self, way: Way, inputs: &[&Hits]) -> Vec<Option<Cost>> {
        let Ok(made) = self.distribute(way) else {
            return vec![None; inputs.len()];
        };
        let untold = match way.whose {
            Whose::PrintedListed => self.untold(&made),
            _ => 0,
        };
        let busiest = |of: &Hits| {
            let value =
                |id: FunctionId, place| Weight::Finite(self.field.value(of, id.index(), place));
            let loads = made.loads(way.machines, value);
            loads.into_iter().max().unwrap_or(0)
        };
        let sizes = made.profiles().iter().map(|one| one.witnesses.len());
        let cost = |input: &&Hits| Cost {
            way,
            distribution: busiest(&self.weights),
            collection: busiest(input),
            witnesses: sizes.clone().sum(),
            profiles: sizes.clone().filter(|size| *size > 0).count(),
            untold,
        };
        inputs.iter().map(|input| Some(cost(input))).collect()
    }

    /// How many of the listed functions are not told by the criterion.
    fn untold(&self, made: &Distribution) -> usize {
        let listed = self.field.listed.par_iter();
        let fails = listed.filter(|(at, _)| {
            let mut own: BTreeMap<u32, Vec<_>> = BTreeMap::new();
            for (witness, place) in made.witnesses_of(FunctionId(*at as u32)) {
                for profile in made.profiles_of(witness) {
                    own.entry(*profile)
                        .or_default()
                        .push((FunctionId(1), place));
                }
            }
            let own: Vec<_> = own.into_iter().collect();
            let program = called([&self.field.functions[*at]].into_iter());
            program.is_ok_and(|program| {
                Criterion::of(&program, &Distribution::new(&own), Ends::Returns).is_err()
            })
        });
        fails.count()
    }
}

/// The profiles of a distribution, functions counted from `first` on.
fn profiles(made: &Distribution, first: u32) -> Vec<(u32, Vec<(FunctionId, Place)>)> {
    let profile = |one: &tomo_plan::witnesses::Profile| {
        let places = one.witnesses.iter().map(|id| {
            let (function, place) = made.sites()[id.index()];
            (FunctionId(function.0 - first), place)
        });
        (one.machine, places.collect())
    };
    made.profiles().iter().map(profile).collect()
}

/// All ways of the study for some weights: unbounded ones for each number of machines, then bounded ones.
#[must_use]
pub fn ways(weights: Weights, machines: u32, bounds: &[u32]) -> Vec<Way> {
    let mut ways = Vec::new();
    for whose in [Whose::Ours, Whose::OursListed, Whose::PrintedListed] {
        let way = |strategy, machines, bound| Way {
            whose,
            weights,
            strategy,
            machines,
            bound,
        };
        for machines in 1..=machines {
            ways.extend((0..STRATEGIES.len()).map(|at| way(at, machines, None)));
        }
        // As in the paper: function-wise, on three machines. Of all functions some are larger than any bound.
        if whose != Whose::Ours {
            ways.extend(bounds.iter().map(|bound| way(1, 3, Some(*bound))));
        }
    }
    ways
}
