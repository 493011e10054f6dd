//! The choice of branch predicates that are left out, and of the sites that stand in for them.

use std::collections::HashMap;

use tomo_graph::{EdgeId, Graph, NodeId};

use super::classes::equally_often;
use crate::coverage::{Flow, Subdivision, SuperBlocks, Unit};

/// Beyond so many pairs of the control dependence relation nothing is implied in counts.
pub const MOST_PAIRS: u32 = 1 << 22;

/// What is recorded of a predicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Model {
    /// Whether it was ever true.
    Binary,
    /// How often it was true.
    Counts,
}

/// Which branch predicates need no probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removal {
    /// By edge: the block whose site tells, if one does.
    pub told_by: Vec<Option<NodeId>>,
    /// The edges that are told, in an order in which each comes after all branch predicates of the
    /// block that tells of it.
    pub order: Vec<EdgeId>,
}

/// Which branch predicates of a flow are implied by sites. `value_site` says of each block whether a
/// value is looked at there; all branches count as sites.
pub fn implied(
    divided: &Subdivision,
    model: Model,
    value_site: impl Fn(NodeId) -> bool,
) -> Removal {
    let flow = divided.flow();
    let tells = |node: NodeId| value_site(node) || (is_fork(flow, node) && !flow.is_exit(node));
    let sites = flow
        .nodes()
        .filter(|&node| matches!(divided.unit(node), Unit::Block(_)) && tells(node));
    // A value is preferred to a branch, since nothing has to be recovered for it.
    let (mut sites, branches): (Vec<_>, Vec<_>) = sites.partition(|&node| value_site(node));
    sites.extend(branches);
    let told_by = match model {
        Model::Binary => binary(divided, &sites),
        Model::Counts => counts(divided, &sites),
    };
    let order = recovery_order(divided, &told_by, value_site);
    Removal { told_by, order }
}

fn is_fork(flow: &Flow<'_>, node: NodeId) -> bool {
    flow.out_edges(node).nth(1).is_some()
}

/// The branch predicates of the flow, as nodes.
fn predicates(divided: &Subdivision) -> impl Iterator<Item = (EdgeId, NodeId)> {
    let flow = divided.flow();
    let edge = |node: NodeId| match divided.unit(node) {
        Unit::Edge(edge) => Some((edge, node)),
        Unit::Block(_) => None,
    };
    flow.nodes().filter_map(edge).filter(|&(_, node)| {
        flow.predecessors(node)
            .any(|from| flow.successors(from).nth(1).is_some())
    })
}

/// The super block of the edge, as far as it lies behind the edge.
fn binary(divided: &Subdivision, sites: &[NodeId]) -> Vec<Option<NodeId>> {
    let classes = SuperBlocks::of(divided.flow());
    let mut by_class: HashMap<usize, Vec<NodeId>> = HashMap::new();
    for &site in sites {
        if let Some(class) = classes.of_node(site) {
            by_class.entry(class).or_default().push(site);
        }
    }
    let mut told = vec![None; divided.edge_count()];
    for (edge, node) in predicates(divided) {
        let class = classes.of_node(node).and_then(|class| by_class.get(&class));
        let behind = |site: &&NodeId| classes.dominators().dominates(node, **site);
        told[edge.index()] = class.and_then(|sites| sites.iter().find(behind)).copied();
    }
    told
}

fn counts(divided: &Subdivision, sites: &[NodeId]) -> Vec<Option<NodeId>> {
    let mut told = vec![None; divided.edge_count()];
    let Some(classes) = equally_often(divided.flow(), MOST_PAIRS) else {
        return told;
    };
    let mut by_class = HashMap::new();
    for &site in sites {
        if let Some(class) = classes[site.index()] {
            by_class.entry(class).or_insert(site);
        }
    }
    for (edge, node) in predicates(divided) {
        let class = classes[node.index()];
        told[edge.index()] = class.and_then(|class| by_class.get(&class)).copied();
    }
    told
}

/// Edges that are told, each after those that it is recovered from; a depth-first walk.
fn recovery_order(
    divided: &Subdivision,
    told_by: &[Option<NodeId>],
    value_site: impl Fn(NodeId) -> bool,
) -> Vec<EdgeId> {
    let flow = divided.flow();
    let needs = |edge: EdgeId| -> Vec<EdgeId> {
        let site = told_by[edge.index()].filter(|&site| !value_site(site));
        let nodes = site.into_iter().flat_map(|site| flow.successors(site));
        nodes
            .filter_map(|node| match divided.unit(node) {
                Unit::Edge(edge) => Some(edge),
                Unit::Block(_) => None,
            })
            .collect()
    };
    let mut order = Vec::new();
    let mut seen = vec![false; told_by.len()];
    for first in (0..told_by.len() as u32).map(EdgeId) {
        let mut open = vec![(first, false)];
        while let Some((edge, done)) = open.pop() {
            if done {
                order.push(edge);
            } else if told_by[edge.index()].is_some()
                && !std::mem::replace(&mut seen[edge.index()], true)
            {
                open.push((edge, true));
                open.extend(needs(edge).into_iter().map(|edge| (edge, false)));
            }
        }
    }
    order
}
