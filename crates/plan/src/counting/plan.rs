//! A set of counters of least cost that determines how often every edge and block runs.
//!
//! Source: BL94, §3.1 (the chords of a maximum spanning tree), after Knuth, Stevenson 1973.
//! O(m log m) for the tree; the plan also lists in which order tree arcs are inferred, leaves first.
//!
//! Why it is right: each equation "what enters a node leaves it" has one unknown when the tree arcs
//! below the node are known, so all counts follow. Why it is cheapest: the arcs that are *not*
//! counted must hold no undirected cycle (a flow round it would change no counter), so they weigh
//! no more than a maximum spanning forest does.
//!
//! **Deviation: what cannot be counted.** If arcs of infinite weight close a cycle among
//! themselves, no set of counters determines the flow round it. The plan then still determines all
//! that can be determined, and names the rest: [`lost`](CountingPlan::lost) arcs are those on such
//! cycles, and [`lost_nodes`](CountingPlan::lost_nodes) the nodes whose count depends on them. (Two
//! uncountable edges between the same nodes are both lost, the nodes are not.)

use tomo_graph::{FlowArc, FlowEnds, Graph, NodeId, Weight, WithExit, closed_flow, maximum_forest};

/// A counter of a plan, counted from zero: its place in what is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CounterId(pub u32);

/// How the count of an arc is come by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// This counter counts it.
    Counted(CounterId),
    /// It follows from the counters.
    Inferred,
    /// It cannot be known.
    Lost,
}

/// An arc of the closed flow graph and its role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedArc {
    /// The arc and the nodes that it connects; the virtual exit is the node after the last.
    pub ends: FlowEnds,
    /// How its count is come by.
    pub role: Role,
}

/// One step of the inference: the only arc at `node` that is not known yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The node whose equation is solved.
    pub node: NodeId,
    /// Position in [`CountingPlan::arcs`] of the arc that it is solved for.
    pub arc: u32,
}

/// Which arcs to count, and how the others follow.
#[derive(Clone, Debug)]
pub struct CountingPlan {
    node_count: usize,
    arcs: Vec<PlannedArc>,
    counters: Vec<FlowArc>,
    steps: Vec<Step>,
    lost: Vec<FlowArc>,
    lost_nodes: Vec<NodeId>,
    cost: u128,
}

impl CountingPlan {
    /// The cheapest plan for `graph`. `weight` says what counting an arc costs, as a rule how often
    /// it runs; it is asked once per arc. [`FlowArc::Endless`] can carry no counter whatever it
    /// says.
    pub fn new<G: Graph>(graph: &G, mut weight: impl FnMut(FlowArc) -> Weight) -> Self {
        let view = WithExit::of(graph);
        let ends = closed_flow(&view);
        let weigh = |each: &FlowEnds| match each.arc {
            FlowArc::Endless(_) => Weight::Infinite,
            arc => weight(arc),
        };
        let weights: Vec<Weight> = ends.iter().map(weigh).collect();
        let weighted: Vec<_> = ends
            .iter()
            .zip(&weights)
            .map(|(each, &weight)| (each.from, each.to, weight))
            .collect();
        let in_tree = maximum_forest(view.node_count(), &weighted);
        let mut plan = Self::with_counters(graph.node_count(), &ends, &weights, &in_tree);
        let tree = Tree::of(&plan.arcs, &in_tree, view.exit());
        plan.lose(&tree, &in_tree);
        plan.steps = tree.steps;
        plan
    }

    fn with_counters(
        node_count: usize,
        ends: &[FlowEnds],
        weights: &[Weight],
        in_tree: &[bool],
    ) -> Self {
        let (mut counters, mut cost) = (Vec::new(), 0);
        let mut arcs = Vec::with_capacity(ends.len());
        for ((&ends, &weight), &in_tree) in ends.iter().zip(weights).zip(in_tree) {
            let role = match weight {
                _ if in_tree => Role::Inferred,
                Weight::Infinite => Role::Lost,
                Weight::Finite(weight) => {
                    cost += u128::from(weight);
                    counters.push(ends.arc);
                    Role::Counted(CounterId(counters.len() as u32 - 1))
                }
            };
            arcs.push(PlannedArc { ends, role });
        }
        Self {
            node_count,
            arcs,
            counters,
            steps: Vec::new(),
            lost: Vec::new(),
            lost_nodes: Vec::new(),
            cost,
        }
    }

    /// Marks what depends on the flow round the cycles that uncountable chords close.
    fn lose(&mut self, tree: &Tree, in_tree: &[bool]) {
        let chords: Vec<usize> = (0..self.arcs.len())
            .filter(|&at| !in_tree[at] && self.arcs[at].role == Role::Lost)
            .collect();
        for chord in chords {
            let cycle = tree.cycle(&self.arcs, chord);
            // What flows into a node changes by one per arc of the cycle that enters it.
            let mut inflow: Vec<(NodeId, i32)> = Vec::with_capacity(cycle.len());
            for (at, sign) in cycle {
                self.arcs[at].role = Role::Lost;
                inflow.push((self.arcs[at].ends.to, sign));
            }
            inflow.sort_unstable();
            for group in inflow.chunk_by(|a, b| a.0 == b.0) {
                let changes = group.iter().map(|each| each.1).sum::<i32>() != 0;
                if changes && group[0].0.index() < self.node_count {
                    self.lost_nodes.push(group[0].0);
                }
            }
        }
        self.lost_nodes.sort_unstable();
        self.lost_nodes.dedup();
        let lost = self.arcs.iter().filter(|each| each.role == Role::Lost);
        self.lost = lost.map(|each| each.ends.arc).collect();
    }

    /// How many nodes the graph has, the virtual exit not among them.
    #[must_use]
    pub fn node_count(&self) -> usize {
        self.node_count
    }

    /// All arcs between reachable nodes, ascending by [`FlowArc`]. Other edges never run.
    #[must_use]
    pub fn arcs(&self) -> &[PlannedArc] {
        &self.arcs
    }

    /// The arcs to count, by counter.
    #[must_use]
    pub fn counters(&self) -> &[FlowArc] {
        &self.counters
    }

    /// How the others are inferred, in this order. Steps for lost arcs are among them: they take
    /// the flow round uncountable cycles to be zero, which does not touch what is not lost.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The arcs whose count cannot be known, ascending.
    #[must_use]
    pub fn lost(&self) -> &[FlowArc] {
        &self.lost
    }

    /// The nodes whose count cannot be known, ascending.
    #[must_use]
    pub fn lost_nodes(&self) -> &[NodeId] {
        &self.lost_nodes
    }

    /// Whether every count can be known.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.lost.is_empty()
    }

    /// The sum of the weights of what is counted.
    #[must_use]
    pub fn cost(&self) -> u128 {
        self.cost
    }

    /// How the count of `arc` is come by; `None` if it never runs, being unreachable, or is no arc
    /// of the graph. O(log m).
    #[must_use]
    pub fn role(&self, arc: FlowArc) -> Option<Role> {
        let at = self
            .arcs
            .binary_search_by_key(&arc, |each| each.ends.arc)
            .ok()?;
        Some(self.arcs[at].role)
    }
}

/// The spanning tree, hung up at the virtual exit.
struct Tree {
    /// Per node: its depth, and the position of the arc that leads towards the root.
    above: Vec<(u32, u32)>,
    steps: Vec<Step>,
}

const ROOT: u32 = u32::MAX;

impl Tree {
    fn of(arcs: &[PlannedArc], in_tree: &[bool], root: NodeId) -> Self {
        let near = Incidence::of(arcs, in_tree, root.index() + 1);
        let mut tree = Self {
            above: vec![(0, ROOT); root.index() + 1],
            steps: Vec::new(),
        };
        let mut queue = vec![root];
        let mut next = 0;
        while let Some(&node) = queue.get(next) {
            next += 1;
            let (depth, above) = tree.above[node.index()];
            for &arc in near.at(node) {
                if arc == above {
                    continue;
                }
                let other = other_end(&arcs[arc as usize].ends, node);
                tree.above[other.index()] = (depth + 1, arc);
                tree.steps.push(Step { node: other, arc });
                queue.push(other);
            }
        }
        tree.steps.reverse();
        tree
    }

    /// The arcs of the cycle that a chord closes, itself included, each with +1 if it points the
    /// way the chord does.
    fn cycle(&self, arcs: &[PlannedArc], chord: usize) -> Vec<(usize, i32)> {
        let FlowEnds { from, to, .. } = arcs[chord].ends;
        let mut cycle = vec![(chord, 1)];
        // From `to` the cycle goes up to where both ways meet, and from there down to `from`.
        let (mut going, mut coming) = (to, from);
        while going != coming {
            let is_going = self.above[going.index()].0 >= self.above[coming.index()].0;
            let node = if is_going { &mut going } else { &mut coming };
            let arc = self.above[node.index()].1 as usize;
            let ends = &arcs[arc].ends;
            let leaves = ends.from == *node;
            cycle.push((arc, if leaves == is_going { 1 } else { -1 }));
            *node = other_end(ends, *node);
        }
        cycle
    }
}

fn other_end(ends: &FlowEnds, node: NodeId) -> NodeId {
    if ends.from == node {
        ends.to
    } else {
        ends.from
    }
}

/// Per node, the tree arcs at it.
struct Incidence {
    starts: Vec<u32>,
    arcs: Vec<u32>,
}

impl Incidence {
    fn of(arcs: &[PlannedArc], in_tree: &[bool], nodes: usize) -> Self {
        let tree = || (0..arcs.len()).filter(|&at| in_tree[at]);
        let ends = |at: usize| [arcs[at].ends.from, arcs[at].ends.to];
        let mut starts = vec![0u32; nodes + 1];
        for node in tree().flat_map(ends) {
            starts[node.index() + 1] += 1;
        }
        for node in 0..nodes {
            starts[node + 1] += starts[node];
        }
        let mut result = Self {
            arcs: vec![0; starts[nodes] as usize],
            starts: starts.clone(),
        };
        for at in tree() {
            for node in ends(at) {
                let cursor = &mut starts[node.index()];
                result.arcs[*cursor as usize] = at as u32;
                *cursor += 1;
            }
        }
        result
    }

    fn at(&self, node: NodeId) -> &[u32] {
        &self.arcs[self.starts[node.index()] as usize..self.starts[node.index() + 1] as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counting::{Flaw, verify};
    use tomo_graph::{EdgeId, FlowGraph};

    /// Two branches one after the other, one edge of the first uncountable together with another.
    fn plan() -> (FlowGraph, CountingPlan) {
        let edges = [(0, 1), (0, 1), (1, 2), (1, 3), (2, 4), (3, 4)];
        let edges = edges.map(|(from, to)| (NodeId(from), NodeId(to)));
        let graph = FlowGraph::new(5, NodeId(0), edges).expect("a graph");
        let plan = CountingPlan::new(&graph, |arc| match arc {
            FlowArc::Edge(EdgeId(0 | 1)) => Weight::Infinite,
            _ => Weight::Finite(1),
        });
        assert_eq!(verify(&graph, &plan), Ok(()));
        (graph, plan)
    }

    fn flaw(damage: impl FnOnce(&mut CountingPlan)) -> Option<Flaw> {
        let (graph, mut plan) = plan();
        damage(&mut plan);
        verify(&graph, &plan).err()
    }

    fn set_role(plan: &mut CountingPlan, edge: u32, role: Role) {
        let arc = FlowArc::Edge(EdgeId(edge));
        let of_arc = |each: &&mut PlannedArc| each.ends.arc == arc;
        if let Some(each) = plan.arcs.iter_mut().find(of_arc) {
            each.role = role;
        }
    }

    /// The checker finds every kind of damage.
    #[test]
    fn damaged_plans_are_found_out() {
        let edge = |id| FlowArc::Edge(EdgeId(id));
        let is_step = |flaw| matches!(flaw, Some(Flaw::Step(_)));
        assert!(is_step(flaw(|plan| plan.steps.reverse())));
        assert!(is_step(flaw(|plan| plan.steps[0].node = NodeId(0))));
        assert!(matches!(
            flaw(|plan| _ = plan.steps.pop()),
            Some(Flaw::Missing(_))
        ));
        let promised = flaw(|plan| set_role(plan, 0, Role::Inferred));
        assert!(matches!(promised, Some(Flaw::Missing(_) | Flaw::Arc(_))));
        let given_up = flaw(|plan| set_role(plan, 4, Role::Lost));
        assert!(matches!(
            given_up,
            Some(Flaw::Counter(_) | Flaw::NeedlesslyLost(_))
        ));
        let node = flaw(|plan| plan.lost_nodes.push(NodeId(4)));
        assert_eq!(node, Some(Flaw::NeedlesslyLostNode(NodeId(4))));
        assert!(matches!(
            flaw(|plan| plan.counters.swap(0, 1)),
            Some(Flaw::Counter(0))
        ));
        let other = flaw(|plan| _ = plan.arcs.pop());
        assert!(matches!(
            other,
            Some(Flaw::OtherGraph { .. } | Flaw::Step(_))
        ));
        let (graph, _) = plan();
        let shorter = FlowGraph::new(5, NodeId(0), graph.edges()[..5].to_vec()).expect("a graph");
        let foreign = CountingPlan::new(&shorter, |_| Weight::Finite(1));
        assert!(matches!(
            verify(&graph, &foreign),
            Err(Flaw::OtherGraph { .. })
        ));
        assert_eq!(foreign.role(edge(5)), None);
    }
}
