//! How many probes tell some paths of a function from all others.
//!
//! SPP counts edges whose value is not zero. That is done here too, of the cheaper of two placements where there are
//! two: values as they are numbered, or moved to the chords of a spanning tree (BL96 §3.2). One more probe sets a
//! register and one counts, whoever is asked for.

use std::collections::BTreeSet;

use serde::Serialize;
use tomo_graph::{FlowGraph, Weight};
use tomo_plan::paths::selective::Selection;
use tomo_plan::paths::{ArcId, Increments, Interest, Numbering, PathDag, PathError};
use tomo_plan::random::Random;
use tomo_profile::paths::Decoder;

/// How many paths are selected at once.
pub const SIZES: [usize; 5] = [1, 2, 3, 4, 5];

/// A function with more than one path.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Function {
    /// Its program.
    pub program: String,
    /// What it is called.
    pub name: String,
    /// How many paths it has.
    pub paths: u64,
    /// Probes that tell all of them apart.
    pub all: usize,
    /// Per size: how many probes a selection takes on the average; none where there are not more paths.
    pub some: [Option<f64>; SIZES.len()],
    /// The same of single paths as published: phase 2 as it is printed, which may give others the same sum.
    pub published: Option<f64>,
    /// How many selections of single paths there were.
    pub drawn: usize,
}

impl Function {
    /// How much its branches look like a chain (SPP §4, the order of the figures): paths for each set of probes.
    #[must_use]
    pub fn chain(&self) -> f64 {
        self.paths as f64 / 2f64.powi(i32::try_from(self.all).unwrap_or(i32::MAX))
    }

    /// Probes of a selection for each of those that tell all paths apart.
    #[must_use]
    pub fn ratio(&self, size: usize) -> Option<f64> {
        let probes = *self.some.get(size.checked_sub(1)?)?;
        probes.map(|probes| probes / self.all as f64)
    }
}

/// Counts the probes of a function. None if it has but one path.
pub fn function(
    graph: &FlowGraph,
    selections: usize,
    seed: u64,
) -> Option<Result<Function, PathError>> {
    let dag = PathDag::of(graph);
    let numbering = match Numbering::of(&dag) {
        Ok(numbering) => numbering,
        Err(error) => return Some(Err(error)),
    };
    let weights = vec![Weight::Finite(1); dag.arcs().len()];
    let moved = Increments::of(&dag, numbering.values(), &weights).probes();
    let all = moved.min(Increments::unmoved(&dag, numbering.values()).probes());
    // What can only be one thing needs no probe, and what needs none is one thing.
    if numbering.total() < 2 || all == 0 {
        return None;
    }
    let counting = Counting {
        decoder: Decoder::new(&dag, &numbering),
        total: numbering.total(),
        dag: &dag,
    };
    Some(counting.counted(all, selections, &mut Random::new(seed)))
}

struct Counting<'d> {
    dag: &'d PathDag,
    decoder: Decoder<'d>,
    total: u64,
}

impl Counting<'_> {
    fn counted(
        &self,
        all: usize,
        selections: usize,
        random: &mut Random,
    ) -> Result<Function, PathError> {
        let mut function = Function {
            paths: self.total,
            all,
            ..Function::default()
        };
        for (some, size) in function.some.iter_mut().zip(SIZES) {
            if self.total <= size as u64 {
                continue;
            }
            let sets = self.draw(size, selections, random);
            let each = sets.iter().map(|set| self.probes(set));
            let each: Vec<f64> = each.collect::<Result<_, _>>()?;
            *some = Some(mean(&each));
            if size == 1 {
                let published = sets.iter().map(|set| self.published(set));
                let published: Vec<f64> = published.collect::<Result<_, _>>()?;
                function.published = Some(mean(&published));
                function.drawn = sets.len();
            }
        }
        Ok(function)
    }

    /// Different sets of so many different numbers: all there are, if these are no more than `selections` single ones.
    fn draw(&self, size: usize, selections: usize, random: &mut Random) -> Vec<BTreeSet<u64>> {
        if size == 1 && self.total <= selections as u64 {
            return (0..self.total)
                .map(|number| BTreeSet::from([number]))
                .collect();
        }
        let mut sets = BTreeSet::new();
        // There may be fewer sets than are asked for.
        for _ in 0..selections * 4 {
            if sets.len() == selections {
                break;
            }
            let mut set = BTreeSet::new();
            while set.len() < size {
                set.insert(random.bits() % self.total);
            }
            sets.insert(set);
        }
        sets.into_iter().collect()
    }

    fn interest(&self, set: &BTreeSet<u64>) -> Result<Interest, PathError> {
        let along = set.iter().map(|number| {
            let mut arcs: Vec<ArcId> = Vec::new();
            self.decoder.decode(*number, &mut arcs);
            arcs
        });
        Interest::of(self.dag, along)
    }

    fn probes(&self, set: &BTreeSet<u64>) -> Result<f64, PathError> {
        let selection = Selection::new(self.dag, self.interest(set)?, |_| Weight::Finite(1))?;
        Ok(selection.probes() as f64)
    }

    fn published(&self, set: &BTreeSet<u64>) -> Result<f64, PathError> {
        let values =
            tomo_plan::paths::selective::published::values(self.dag, &self.interest(set)?)?;
        Ok(values.iter().filter(|value| **value != 0).count() as f64)
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::function;
    use tomo_graph::{FlowGraph, NodeId};

    fn graph(nodes: u32, edges: &[(u32, u32)]) -> FlowGraph {
        let edges = edges.iter().map(|(from, to)| (NodeId(*from), NodeId(*to)));
        let graph = FlowGraph::new(nodes as usize, NodeId(0), edges.collect::<Vec<_>>());
        graph
            .and_then(|graph| graph.with_exits(vec![NodeId(nodes - 1)]))
            .expect("a graph")
    }

    /// Two branches one after the other: four paths, two probes, and a path of which one way is a choice takes as many
    /// as the branches that it can be left at.
    #[test]
    fn a_chain_of_two_branches() {
        let edges = [
            (0, 1),
            (0, 2),
            (1, 3),
            (2, 3),
            (3, 4),
            (3, 5),
            (4, 6),
            (5, 6),
        ];
        let counted = function(&graph(7, &edges), 100, 1)
            .expect("paths")
            .expect("few");
        assert_eq!((counted.paths, counted.all, counted.drawn), (4, 2, 4));
        assert!((counted.chain() - 1.0).abs() < 1e-12);
        assert_eq!(
            counted.ratio(1),
            Some(1.0),
            "SPP §4: nothing is gained in a chain"
        );
        assert_eq!(counted.ratio(4), None, "all four are no selection");
        assert_eq!(counted.ratio(9), None);
    }

    /// A branch of three ways out of each of which nothing comes back: one path takes no more than one probe.
    #[test]
    fn a_tree() {
        let edges = [
            (0, 1),
            (0, 2),
            (1, 3),
            (1, 4),
            (2, 5),
            (2, 6),
            (3, 7),
            (4, 7),
            (5, 7),
            (6, 7),
        ];
        let counted = function(&graph(8, &edges), 100, 1)
            .expect("paths")
            .expect("few");
        assert_eq!(counted.paths, 4);
        assert!(
            counted.ratio(1).is_some_and(|ratio| ratio < 1.0),
            "{counted:?}"
        );
    }

    #[test]
    fn one_path_needs_no_probe_and_the_same_seed_draws_the_same() {
        assert!(function(&graph(2, &[(0, 1)]), 100, 1).is_none());
        let edges: Vec<_> = (0..20)
            .flat_map(|at| {
                [
                    (2 * at, 2 * at + 1),
                    (2 * at, 2 * at + 2),
                    (2 * at + 1, 2 * at + 2),
                ]
            })
            .collect();
        let graph = graph(41, &edges);
        let [one, two] =
            [3, 3].map(|seed| function(&graph, 20, seed).expect("paths").expect("few"));
        assert_eq!(one, two);
        assert_eq!((one.paths, one.drawn), (1 << 20, 20));
    }
}
