//! Reading coverage: from the probes that were hit to what ran, with how it is known.
//!
//! Source: the dominator inference of Agrawal, POPL 1994, and of DIS §3.2, sharpened by what was
//! *not* hit, and marked by what it rests on. Probes that were not hit are taken out of the graph,
//! since no walk of the run passed them. On what is left
//!
//! - a block may have run only if it is on a walk from the entry to a stop;
//! - a block ran if it dominates or post-dominates a hit probe.
//!
//! **This is all that can be known** from the hits of any placement, if a run is the union of any
//! walks. (A block may have run: add its walk; no other probe is hit by it. A block need not have
//! run: the union of all walks without it hits every probe that implies it on no walk.) Where the
//! placement is complete, nothing remains unknown. O(m log n) a function.
//!
//! **What it rests on.** That a probe without a hit has not run, and that the dominators of one
//! with a hit have, holds however the run ended. The rest holds if it ended as the flow promises
//! ([`Ending`]). A record that contradicts the promise shows itself: a probe is hit that lies on no
//! walk. It is then read as [`Ending::Anywhere`]; and if even so a hit cannot be, the graph is not
//! the program's, and only the probes themselves are believed. A reader who knows that the run was
//! killed asks for `Anywhere` to begin with.

use tomo_graph::{Dominators, FlowGraph, Graph, NodeId, Reversed};
use tomo_plan::coverage::{Ending, Flow};

/// How something is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Basis {
    /// Its own probe says so.
    Observed,
    /// Other probes say so, however the run ended.
    Inferred,
    /// Other probes say so, if the run ended as promised.
    InferredIfWhole,
}

/// What is known of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Verdict {
    /// It ran.
    Ran(Basis),
    /// It did not run.
    NotRun(Basis),
    /// It may have run; the probes look the same either way.
    Unknown,
}

/// How far a record could be believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Trust {
    /// It fits a run that ended as promised.
    AsPromised,
    /// It does not, but fits one that was cut; it was read as such.
    Cut,
    /// It fits no run of this graph; nothing was inferred from it.
    Foreign,
}

/// What a record says of every block of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// By block.
    pub verdicts: Vec<Verdict>,
    /// How far the record could be believed.
    pub trust: Trust,
}

/// What a probe says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mark {
    /// The block has no probe.
    None,
    /// The block has a probe, which was not hit.
    Silent,
    /// The block has a probe, which was hit.
    Hit,
}

/// Reads the marks of one function. `flow` is what the placement was made for, or the same graph
/// with a weaker promise.
pub fn read(flow: &Flow<'_>, mark: impl Fn(NodeId) -> Mark) -> Reading {
    if let Some(verdicts) = infer(flow, &mark) {
        return Reading {
            verdicts,
            trust: Trust::AsPromised,
        };
    }
    let cut = Flow::new(flow.graph(), Ending::Anywhere, |_| true);
    let (verdicts, trust) = match infer(&cut, &mark) {
        Some(verdicts) => (verdicts, Trust::Cut),
        None => (
            flow.nodes().map(|n| alone(mark(n))).collect(),
            Trust::Foreign,
        ),
    };
    Reading { verdicts, trust }
}

/// What a mark says by itself.
fn alone(mark: Mark) -> Verdict {
    match mark {
        Mark::None => Verdict::Unknown,
        Mark::Silent => Verdict::NotRun(Basis::Observed),
        Mark::Hit => Verdict::Ran(Basis::Observed),
    }
}

/// All that follows, or nothing if no run leaves these marks.
fn infer(flow: &Flow<'_>, mark: &impl Fn(NodeId) -> Mark) -> Option<Vec<Verdict>> {
    let rest = Rest::of(flow, mark);
    let mut verdicts: Vec<Verdict> = flow
        .nodes()
        .map(|node| match mark(node) {
            Mark::None => rest.absence(node),
            said => alone(said),
        })
        .collect();
    let hits: Vec<NodeId> = flow
        .nodes()
        .filter(|&node| mark(node) == Mark::Hit)
        .collect();
    if hits.iter().any(|&node| !rest.is_possible(node)) {
        return None;
    }
    if let Some(graph) = rest.possible_graph(flow) {
        let exit = NodeId(flow.node_count() as u32);
        let dominators = Dominators::of(&graph);
        claim(&dominators, &hits, Basis::Inferred, &mut verdicts);
        let post = Dominators::of(&Reversed::from(&graph, exit));
        claim(&post, &hits, Basis::InferredIfWhole, &mut verdicts);
    }
    Some(verdicts)
}

/// Everything above a hit in the tree ran. Each node is climbed over once.
fn claim(tree: &Dominators, hits: &[NodeId], basis: Basis, verdicts: &mut [Verdict]) {
    let mut climbed = vec![false; verdicts.len()];
    for &hit in hits {
        for node in tree.dominators_of(hit) {
            // The virtual exit is in the tree, and has no verdict.
            let Some(verdict) = verdicts.get_mut(node.index()) else {
                continue;
            };
            if std::mem::replace(&mut climbed[node.index()], true) {
                break;
            }
            if *verdict == Verdict::Unknown {
                *verdict = Verdict::Ran(basis);
            }
        }
    }
}

/// The graph without its silent probes: what the entry reaches, and what reaches a stop.
struct Rest {
    reached: Vec<bool>,
    stopping: Vec<bool>,
}

impl Rest {
    fn of(flow: &Flow<'_>, mark: &impl Fn(NodeId) -> Mark) -> Self {
        let stays = |node: NodeId| mark(node) != Mark::Silent;
        let reached = closure(
            flow.node_count(),
            vec![flow.entry()],
            stays,
            |node, open| {
                open.extend(flow.successors(node));
            },
        );
        let stops = flow.nodes().filter(|&node| flow.is_exit(node)).collect();
        let possible = |node: NodeId| reached[node.index()];
        let stopping = closure(flow.node_count(), stops, possible, |node, open| {
            open.extend(flow.predecessors(node));
        });
        Self { reached, stopping }
    }

    fn is_possible(&self, node: NodeId) -> bool {
        self.stopping[node.index()]
    }

    /// What is known of a block without a probe before looking at hits.
    fn absence(&self, node: NodeId) -> Verdict {
        if self.stopping[node.index()] {
            Verdict::Unknown
        } else if self.reached[node.index()] {
            Verdict::NotRun(Basis::InferredIfWhole)
        } else {
            Verdict::NotRun(Basis::Inferred)
        }
    }

    /// The blocks that may have run, the edges between them, and an edge from each stop to one more
    /// node. Nothing if nothing may have run.
    fn possible_graph(&self, flow: &Flow<'_>) -> Option<FlowGraph> {
        if !self.is_possible(flow.entry()) {
            return None;
        }
        let exit = NodeId(flow.node_count() as u32);
        let inner = flow.graph().edges().iter().copied();
        let inner = inner.filter(|&(from, to)| self.is_possible(from) && self.is_possible(to));
        let outer = flow
            .nodes()
            .filter(|&node| self.is_possible(node) && flow.is_exit(node))
            .map(|node| (node, exit));
        FlowGraph::new(flow.node_count() + 1, flow.entry(), inner.chain(outer)).ok()
    }
}

/// All that is reached from `open` by `next` over nodes that are allowed.
fn closure(
    nodes: usize,
    mut open: Vec<NodeId>,
    allowed: impl Fn(NodeId) -> bool,
    next: impl Fn(NodeId, &mut Vec<NodeId>),
) -> Vec<bool> {
    let mut seen = vec![false; nodes];
    while let Some(node) = open.pop() {
        if allowed(node) && !std::mem::replace(&mut seen[node.index()], true) {
            next(node, &mut open);
        }
    }
    seen
}
