//! One function's marks read into findings for its blocks and edges.
//!
//! Where its graph is wholly known, edges are nodes too ([`tomo_plan::coverage::Subdivision`]), so that
//! one reading ([`crate::coverage::read`]) says of both all that follows. Elsewhere only what probes
//! say is believed, and that an edge did not run of which one end did not.

use tomo_graph::{EdgeId, FlowGraph, NodeId};
use tomo_plan::coverage::{Ending, Flow, Subdivision, Unit};

use crate::coverage::{Mark, Reading, Trust, read};
use crate::merge::Finding;

/// What is known of a function's blocks and of the edges between them, by their numbers in its graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Findings {
    /// By node.
    pub blocks: Vec<Finding>,
    /// By edge.
    pub edges: Vec<Finding>,
    /// Whether the marks are such as some execution of the graph leaves.
    pub fits: bool,
}

/// What the marks of a function say.
#[derive(Clone, Copy, Debug)]
pub struct Marked<'a> {
    /// By block.
    pub blocks: &'a [Mark],
    /// By edge.
    pub edges: &'a [Mark],
}

/// All that follows from the marks in a function whose graph is known with all ways in. `may_stop`
/// says behind which blocks control may stay away for ever; `cut` that the run was cut by a signal.
pub fn infer(
    graph: &FlowGraph,
    may_stop: impl Fn(usize) -> bool,
    cut: bool,
    marked: Marked<'_>,
) -> Findings {
    let ending = if cut {
        Ending::Anywhere
    } else {
        Ending::AtStops
    };
    let flow = Flow::new(graph, ending, |node| may_stop(node.index()));
    let Ok(divided) = Subdivision::of(&flow) else {
        return believe(graph.edges().iter().copied(), marked);
    };
    let mark = |node: NodeId| match divided.unit(node) {
        Unit::Block(node) => marked.blocks.get(node.index()).copied(),
        Unit::Edge(EdgeId(edge)) => marked.edges.get(edge as usize).copied(),
    };
    let reading = read(divided.flow(), |node| mark(node).unwrap_or(Mark::None));
    let Reading { verdicts, trust } = reading;
    let mut findings = verdicts.into_iter().map(Finding::from);
    let blocks = findings.by_ref().take(marked.blocks.len()).collect();
    Findings {
        blocks,
        edges: findings.collect(),
        fits: trust != Trust::Foreign,
    }
}

/// What the probes themselves say. `ends` are the edges, by number, each as the blocks it leaves and
/// enters.
pub fn believe(ends: impl IntoIterator<Item = (NodeId, NodeId)>, marked: Marked<'_>) -> Findings {
    let alone = |mark: &Mark| match mark {
        Mark::None => Finding::Unknown,
        Mark::Silent => Finding::NotRun,
        Mark::Hit => Finding::Ran,
    };
    let silent = |node: NodeId| marked.blocks.get(node.index()) == Some(&Mark::Silent);
    let edge = |((from, to), mark): ((NodeId, NodeId), &Mark)| match alone(mark) {
        Finding::Unknown if silent(from) || silent(to) => Finding::NotRunInferred,
        own => own,
    };
    Findings {
        blocks: marked.blocks.iter().map(alone).collect(),
        edges: ends.into_iter().zip(marked.edges).map(edge).collect(),
        fits: true,
    }
}
