//! Proof of a plan: that everything it promises follows from what it records.
//!
//! Source: the definition, by linear algebra. A flow is known when every arc's count is a
//! combination of recorded ones. The checker lets each uncounted, uninferred arc be a symbol,
//! replays the plan's steps as equations over these symbols, and demands that what is promised
//! holds none of them. It shares nothing with the planning but the graph: no spanning tree, no union
//! of sets. O(nodes + arcs) for complete plans, times the number of uncountable chords otherwise.

use std::collections::BTreeMap;

use tomo_graph::{FlowArc, Graph, NodeId, WithExit};

use super::{CountingPlan, Role};

/// Why a plan does not hold what it promises.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// The arcs of the plan are not those of the graph.
    #[error("the plan has {planned} arcs, the graph {found}, or others")]
    OtherGraph {
        /// Arcs of the plan.
        planned: usize,
        /// Arcs of the closed flow graph.
        found: usize,
    },
    /// A counter belongs to another arc than the plan says.
    #[error("counter {0} is not that of its arc")]
    Counter(usize),
    /// A step solves an equation for an arc that is not the one unknown there.
    #[error("step {0} has not just one unknown")]
    Step(usize),
    /// No step infers this arc.
    #[error("{0:?} is promised, and never inferred")]
    Missing(FlowArc),
    /// The count of this arc depends on what is not recorded.
    #[error("{0:?} is promised, and depends on what is not counted")]
    Arc(FlowArc),
    /// The count of this node depends on what is not recorded.
    #[error("{0:?} is promised, and depends on what is not counted")]
    Node(NodeId),
    /// More is given up than must be.
    #[error("{0:?} is given up, and could be known")]
    NeedlesslyLost(FlowArc),
    /// More is given up than must be.
    #[error("{0:?} is given up, and could be known")]
    NeedlesslyLostNode(NodeId),
}

/// A count as a combination of unrecorded ones; what is recorded is left out, being known.
type Unknown = BTreeMap<u32, i64>;

/// Checks that `plan`, made for `graph`, determines all that it does not name as lost, and loses
/// nothing that its counters determine.
///
/// # Errors
/// The first flaw found.
pub fn verify<G: Graph>(graph: &G, plan: &CountingPlan) -> Result<(), Flaw> {
    same_arcs(graph, plan)?;
    for (at, &arc) in plan.counters().iter().enumerate() {
        if plan.role(arc) != Some(Role::Counted(super::CounterId(at as u32))) {
            return Err(Flaw::Counter(at));
        }
    }
    let values = replay(plan)?;
    let mut inflow = vec![Unknown::new(); plan.node_count() + 1];
    for (each, value) in plan.arcs().iter().zip(&values) {
        add(&mut inflow[each.ends.to.index()], value, 1);
        let arc = each.ends.arc;
        match (each.role, value.is_empty()) {
            (Role::Lost, true) => return Err(Flaw::NeedlesslyLost(arc)),
            (Role::Inferred, false) => return Err(Flaw::Arc(arc)),
            _ => {}
        }
    }
    for node in graph.nodes() {
        let is_lost = plan.lost_nodes().binary_search(&node).is_ok();
        match (is_lost, inflow[node.index()].is_empty()) {
            (true, true) => return Err(Flaw::NeedlesslyLostNode(node)),
            (false, false) => return Err(Flaw::Node(node)),
            _ => {}
        }
    }
    Ok(())
}

/// Counts the arcs of the closed flow graph anew: one per edge and exit of what is reached.
fn same_arcs<G: Graph>(graph: &G, plan: &CountingPlan) -> Result<(), Flaw> {
    let view = WithExit::of(graph);
    let mut reached = vec![false; view.node_count()];
    let mut work = vec![view.entry()];
    let (mut found, mut same) = (1, plan.role(FlowArc::Return).is_some());
    while let Some(node) = work.pop() {
        if std::mem::replace(&mut reached[node.index()], true) {
            continue;
        }
        for hop in view.out_edges(node) {
            found += 1;
            let real = hop.edge.index() < graph.edge_count();
            same &= !real || plan.role(FlowArc::Edge(hop.edge)).is_some();
            work.push(hop.node);
        }
    }
    let planned = plan.arcs().len();
    if planned == found && same {
        Ok(())
    } else {
        Err(Flaw::OtherGraph { planned, found })
    }
}

/// What every arc's count depends on, by the plan's own steps.
fn replay(plan: &CountingPlan) -> Result<Vec<Unknown>, Flaw> {
    let arcs = plan.arcs();
    let mut inferred = vec![false; arcs.len()];
    for step in plan.steps() {
        if let Some(slot) = inferred.get_mut(step.arc as usize) {
            *slot = true;
        }
    }
    let mut values = vec![Unknown::new(); arcs.len()];
    // Per node: what flows in minus what flows out, and how many arcs of it are not known.
    let mut excess = vec![Unknown::new(); plan.node_count() + 1];
    let mut open = vec![0u32; plan.node_count() + 1];
    for (at, each) in arcs.iter().enumerate() {
        if inferred[at] {
            open[each.ends.from.index()] += 1;
            open[each.ends.to.index()] += 1;
            continue;
        }
        match each.role {
            Role::Counted(_) => {}
            Role::Lost => _ = values[at].insert(at as u32, 1),
            Role::Inferred => return Err(Flaw::Missing(each.ends.arc)),
        }
        add(&mut excess[each.ends.to.index()], &values[at], 1);
        add(&mut excess[each.ends.from.index()], &values[at], -1);
    }
    for (at, step) in plan.steps().iter().enumerate() {
        let arc = step.arc as usize;
        let ends = arcs.get(arc).ok_or(Flaw::Step(at))?.ends;
        let touches = ends.from != ends.to && [ends.from, ends.to].contains(&step.node);
        if !touches || !std::mem::take(&mut inferred[arc]) || open[step.node.index()] != 1 {
            return Err(Flaw::Step(at));
        }
        let sign = if ends.to == step.node { -1 } else { 1 };
        let mut value = Unknown::new();
        add(&mut value, &excess[step.node.index()], sign);
        add(&mut excess[ends.to.index()], &value, 1);
        add(&mut excess[ends.from.index()], &value, -1);
        open[ends.to.index()] -= 1;
        open[ends.from.index()] -= 1;
        values[arc] = value;
    }
    Ok(values)
}

fn add(sum: &mut Unknown, term: &Unknown, sign: i64) {
    for (&symbol, &coefficient) in term {
        let entry = sum.entry(symbol).or_insert(0);
        *entry += sign * coefficient;
        if *entry == 0 {
            sum.remove(&symbol);
        }
    }
}
