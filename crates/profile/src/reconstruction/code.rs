//! A program as reconstruction runs it: blocks of all functions in one array, with their witnesses,
//! calls, ways on, and what tells these apart.

use tomo_graph::{Graph, NodeId};
use tomo_plan::witnesses::{Criterion, Distribution, Flow, FunctionId, Place, Program, WitnessId};

use super::decide::Decider;

/// No witness, no decision, no event.
pub(super) const NONE: u32 = u32::MAX;
/// In place of a block: back to the caller.
pub(super) const RETURN: u32 = u32::MAX;
/// In place of a block: the run is over.
pub(super) const HALT: u32 = u32::MAX - 1;

/// A block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub(super) function: u32,
    pub(super) node: u32,
    pub(super) witness: u32,
    pub(super) calls: (u32, u32),
    pub(super) ways: (u32, u32),
    pub(super) decider: u32,
}

/// A way on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    /// A block, [`RETURN`] or [`HALT`].
    pub(super) to: u32,
    pub(super) edge: u32,
    pub(super) witness: u32,
}

/// A call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Site {
    /// The entries of its targets.
    pub(super) targets: (u32, u32),
    pub(super) decider: u32,
}

/// All of it.
#[derive(Debug, Default)]
pub(super) struct Code {
    pub(super) blocks: Vec<Block>,
    pub(super) ways: Vec<Way>,
    pub(super) sites: Vec<Site>,
    pub(super) targets: Vec<u32>,
    pub(super) deciders: Vec<Decider>,
    /// Per function, how many blocks it has.
    pub(super) sizes: Vec<u32>,
    pub(super) main: u32,
    /// Per witness, its function.
    pub(super) function_of: Vec<u32>,
    /// Per witness, where its holders begin in `holders`.
    holder_starts: Vec<u32>,
    holders: Vec<u32>,
    pub(super) profiles: usize,
    pub(super) ends: Option<tomo_plan::witnesses::Ends>,
}

impl Code {
    pub(super) fn of(
        program: &Program,
        distribution: &Distribution,
        criterion: &Criterion,
    ) -> Self {
        let mut bases = Vec::new();
        let mut next = 0u32;
        for function in program.functions() {
            bases.push(next);
            next += function.graph.node_count() as u32;
        }
        let entry = |id: FunctionId| bases[id.index()] + program.function(id).graph.entry().0;
        let mut code = Self {
            main: entry(program.main()),
            profiles: distribution.profiles().len(),
            ends: Some(criterion.ends()),
            ..Self::default()
        };
        code.witnesses(distribution);
        for id in program.ids() {
            let flow = Flow::of_function(program, id, criterion.ends());
            let mut maker = Maker {
                code: &mut code,
                program,
                distribution,
                criterion,
                id,
                base: bases[id.index()],
            };
            maker.blocks(&flow, &entry);
        }
        code
    }

    fn witnesses(&mut self, distribution: &Distribution) {
        self.holder_starts.push(0);
        for (at, site) in (0..).zip(distribution.sites()) {
            self.function_of.push(site.0.0);
            self.holders.extend(distribution.profiles_of(WitnessId(at)));
            self.holder_starts.push(self.holders.len() as u32);
        }
    }

    /// The profiles that hold a witness.
    pub(super) fn holders(&self, witness: u32) -> &[u32] {
        let at = witness as usize;
        let range = self.holder_starts[at] as usize..self.holder_starts[at + 1] as usize;
        &self.holders[range]
    }
}

struct Maker<'m> {
    code: &'m mut Code,
    program: &'m Program,
    distribution: &'m Distribution,
    criterion: &'m Criterion,
    id: FunctionId,
    base: u32,
}

impl Maker<'_> {
    fn blocks(&mut self, flow: &Flow, entry: &impl Fn(FunctionId) -> u32) {
        let function = self.program.function(self.id);
        self.code.sizes.push(function.graph.node_count() as u32);
        let mut calls = function
            .calls
            .iter()
            .zip(self.criterion.calls(self.id))
            .peekable();
        let mut forks = self.criterion.forks(self.id).iter().peekable();
        for node in function.graph.nodes() {
            let first = self.code.sites.len() as u32;
            while let Some((call, decision)) = calls.next_if(|each| each.0.node == node) {
                let from = self.code.targets.len() as u32;
                self.code
                    .targets
                    .extend(call.targets.iter().map(|&to| entry(to)));
                let targets = (from, self.code.targets.len() as u32);
                let decider = self.decider(decision.as_ref().map(Decider::of_call));
                self.code.sites.push(Site { targets, decider });
            }
            let fork = forks.next_if(|fork| fork.0 == node);
            let block = Block {
                function: self.id.0,
                node: node.0,
                witness: self.witness(Place::Node(node)),
                calls: (first, self.code.sites.len() as u32),
                ways: self.ways(flow, node),
                decider: self.decider(fork.map(|fork| Decider::of_branch(&fork.1))),
            };
            self.code.blocks.push(block);
        }
    }

    fn decider(&mut self, decider: Option<Decider>) -> u32 {
        decider.map_or(NONE, |decider| {
            self.code.deciders.push(decider);
            self.code.deciders.len() as u32 - 1
        })
    }

    fn witness(&self, place: Place) -> u32 {
        let witness = self.distribution.witness_at(self.id, place);
        witness.map_or(NONE, |witness| witness.0)
    }

    /// The ways on in the order of the flow: the edges, then leaving, if there is one more.
    fn ways(&mut self, flow: &Flow, node: NodeId) -> (u32, u32) {
        let function = self.program.function(self.id);
        let from = self.code.ways.len();
        for hop in function.graph.out_edges(node) {
            let way = Way {
                to: self.base + hop.node.0,
                edge: hop.edge.0,
                witness: self.witness(Place::Edge(hop.edge)),
            };
            self.code.ways.push(way);
        }
        if flow.ways(node) > self.code.ways.len() - from {
            let returns = function.graph.is_exit(node) && !function.halts.contains(&node);
            self.code.ways.push(Way {
                to: if returns { RETURN } else { HALT },
                edge: NONE,
                witness: NONE,
            });
        }
        (from as u32, self.code.ways.len() as u32)
    }
}
