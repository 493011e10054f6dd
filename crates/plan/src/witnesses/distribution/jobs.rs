//! What has to be told, made into jobs by one of three strategies (DPT §4.2).
//!
//! Branches share witnesses if "they share the same cycle or an edge": here, if they lie in
//! one strongly connected component (of the whole function, if it may be entered again, as then the
//! way from exit to entry closes a cycle through everything), or if one is control dependent on the
//! other, as their diamonds then overlap (Ferrante, Ottenstein, Warren 1987).

use std::collections::{BTreeMap, BTreeSet};

use tomo_graph::{Components, ControlDependence, FlowGraph, Graph, NodeId, PostDominators, Weight};

use super::{DistributionError, FunctionWork, Strategy};
use crate::witnesses::{FunctionId, Program};

/// Branches of more ways are told as a whole, not two ways at a time.
pub const MANY: usize = 16;

/// Something that one profile must tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Duty {
    pub(super) node: NodeId,
    /// Two ways, or all.
    pub(super) ways: Option<(u32, u32)>,
}

/// What one machine must tell.
#[derive(Clone, Debug)]
pub(super) enum Job {
    /// Branches of one function.
    Branches(FunctionId, Vec<Duty>),
    /// A call, told by witnesses at the entries of all its targets.
    Targets(FunctionId, NodeId, Vec<(FunctionId, u32)>),
}

pub(super) fn of(
    program: &Program,
    works: &[FunctionWork],
    strategy: Strategy,
) -> Result<Vec<Job>, DistributionError> {
    let mut jobs = Vec::new();
    for id in program.ids() {
        let duties = duties(&works[id.index()]);
        let branches = |duties: Vec<Duty>| Job::Branches(id, duties);
        match strategy {
            _ if duties.is_empty() => {}
            Strategy::FineGrained => jobs.extend(duties.into_iter().map(|one| branches(vec![one]))),
            Strategy::FunctionWise => jobs.push(branches(duties)),
            Strategy::Grouped => jobs.extend(groups(program, id, duties).into_iter().map(branches)),
        }
    }
    let mut known = BTreeSet::new();
    for id in program.ids() {
        for call in &program.function(id).calls {
            if call.targets.len() > 1 && known.insert(call.targets.clone()) {
                let targets = entries(program, works, &call.targets)?;
                jobs.push(Job::Targets(id, call.node, targets));
            }
        }
    }
    Ok(jobs)
}

/// The entries of functions, as places.
fn entries(
    program: &Program,
    works: &[FunctionWork],
    targets: &[FunctionId],
) -> Result<Vec<(FunctionId, u32)>, DistributionError> {
    let entry = |&target: &FunctionId| {
        let node = program.function(target).graph.entry();
        match works[target.index()].weights[node.index()] {
            Weight::Infinite => Err(DistributionError::UnpatchableEntry(target)),
            Weight::Finite(_) => Ok((target, node.0)),
        }
    };
    targets.iter().map(entry).collect()
}

fn duties(work: &FunctionWork) -> Vec<Duty> {
    let mut duties = Vec::new();
    for node in work.flow.forks() {
        let ways = work.flow.ways(node);
        if ways > MANY {
            duties.push(Duty { node, ways: None });
        } else {
            duties.extend(pairs(node, ways as u32));
        }
    }
    duties
}

/// Each two ways of a branch.
pub(super) fn pairs(node: NodeId, ways: u32) -> impl Iterator<Item = Duty> {
    (1..ways).flat_map(move |other| {
        (0..other).map(move |one| Duty {
            node,
            ways: Some((one, other)),
        })
    })
}

fn groups(program: &Program, id: FunctionId, duties: Vec<Duty>) -> Vec<Vec<Duty>> {
    if program.entered_again(id) {
        return vec![duties];
    }
    let group = group_of_nodes(&program.function(id).graph);
    let mut groups: BTreeMap<u32, Vec<Duty>> = BTreeMap::new();
    for duty in duties {
        groups
            .entry(group[duty.node.index()])
            .or_default()
            .push(duty);
    }
    groups.into_values().collect()
}

/// Per node, its group: the components of a graph in which what belongs together is joined.
fn group_of_nodes(graph: &FlowGraph) -> Vec<u32> {
    let post = PostDominators::of(graph);
    let control = ControlDependence::of(graph, &post);
    let cycles = Components::of(graph);
    let mut joined: Vec<(NodeId, NodeId)> = Vec::new();
    for edge in control.deciding_edges() {
        let Some(&(source, _)) = graph.edges().get(edge.index()) else {
            continue;
        };
        joined.extend(control.dependents(edge).map(|node| (source, node)));
    }
    let first = |node| cycles.first(cycles.of_node(node));
    joined.extend(graph.nodes().map(|node| (first(node), node)));
    let both = joined.iter().flat_map(|&(a, b)| [(a, b), (b, a)]);
    let Ok(groups) = FlowGraph::new(graph.node_count(), graph.entry(), both) else {
        return vec![0; graph.node_count()];
    };
    let groups = Components::of(&groups);
    graph.nodes().map(|node| groups.of_node(node).0).collect()
}
