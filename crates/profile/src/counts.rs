//! How often every edge and block ran, inferred from a plan's counters by conservation of flow.
//!
//! Source: Knuth, Stevenson, *Optimal Measurement Points for Program Frequency Counts*, BIT 13,
//! 1973; BL94 §3.1 (there by recursion over the spanning tree; here by the order of steps that the
//! plan carries). O(nodes + arcs).
//!
//! Exact, or an error: sums are kept in 128 bits, which fewer than 2^60 arcs of 64 bits cannot fill, and
//! what comes out is an error if it is below zero or beyond 64 bits. What the counts mean, and what
//! happens to activations that are cut short, is said at [`tomo_plan::counting`].
//!
//! Recorded vectors of several runs may be summed before or after: inference is linear.

use tomo_graph::{FlowArc, FlowGraph, NodeId};
use tomo_plan::counting::{CountingPlan, Frequencies, Role};

/// Why what was recorded cannot be what happened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CountError {
    /// Not as many counters as the plan has.
    #[error("{found} counters were recorded; the plan has {expected}")]
    Length {
        /// Counters of the plan.
        expected: usize,
        /// Counters recorded.
        found: usize,
    },
    /// A cut in a node that the graph does not have.
    #[error("{0:?} is not a node of the graph")]
    NoSuchNode(NodeId),
    /// A handler of a fault has let more activations go on in a block than were cut in it: how they came there is in no graph.
    #[error("{count} activations were cut in {node:?}: some came there by handlers of faults", count = .count)]
    CameBack {
        /// The block.
        node: NodeId,
        /// How many were cut in it, less those that came.
        count: i64,
    },
    /// An arc would have run less than never: counters of different runs, a lost increment, or
    /// activations that were cut short and not accounted for.
    #[error("{arc:?} would have run {count} times")]
    Negative {
        /// The arc.
        arc: FlowArc,
        /// Its count.
        count: i128,
    },
    /// An arc would have run more than 2^64 times.
    #[error("{arc:?} would have run {count} times, more than 64 bits hold")]
    ArcOverflow {
        /// The arc.
        arc: FlowArc,
        /// Its count.
        count: i128,
    },
    /// A node would have been entered less than never, or more than 2^64 times.
    #[error("{node:?} would have been entered {count} times, which 64 bits do not hold")]
    Node {
        /// The node.
        node: NodeId,
        /// Its count.
        count: i128,
    },
}

/// Activations that ended inside a block, not by an exit of the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The block.
    pub node: NodeId,
    /// How many ended there.
    pub count: u64,
}

/// The counts of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts {
    arcs: Vec<(FlowArc, Option<u64>)>,
    nodes: Vec<Option<u64>>,
}

impl Counts {
    /// How often control passed along `arc`: zero if it is unreachable, `None` if the plan could not
    /// have it known.
    #[must_use]
    pub fn of(&self, arc: FlowArc) -> Option<u64> {
        match self.arcs.binary_search_by_key(&arc, |each| each.0) {
            Ok(at) => self.arcs[at].1,
            Err(_) => Some(0),
        }
    }

    /// How often the function was entered.
    #[must_use]
    pub fn activations(&self) -> Option<u64> {
        self.of(FlowArc::Return)
    }

    /// How often `node` was entered: zero if it is unreachable, `None` if the plan could not have
    /// it known.
    #[must_use]
    pub fn of_node(&self, node: NodeId) -> Option<u64> {
        self.nodes.get(node.index()).copied().unwrap_or(Some(0))
    }

    /// The counts as weights for the next plan; what is not known counts as never.
    #[must_use]
    pub fn frequencies(&self, graph: &FlowGraph) -> Frequencies {
        let mut frequencies = Frequencies::none(graph);
        for &(arc, count) in &self.arcs {
            let slot = match arc {
                FlowArc::Return => Some(&mut frequencies.entries),
                FlowArc::Exit(node) => frequencies.exits.get_mut(node.index()),
                FlowArc::Edge(edge) => frequencies.edges.get_mut(edge.index()),
                FlowArc::Endless(_) => None,
            };
            if let (Some(slot), Some(count)) = (slot, count) {
                *slot = count;
            }
        }
        frequencies
    }

    /// All arcs between reachable nodes, ascending.
    #[must_use]
    pub fn arcs(&self) -> &[(FlowArc, Option<u64>)] {
        &self.arcs
    }
}

/// Infers all counts that `plan` promises from `recorded`, one number per counter, and from where
/// activations were cut, if that is known.
///
/// # Errors
/// If the numbers cannot have come about.
pub fn infer(plan: &CountingPlan, recorded: &[u64], cuts: &[Cut]) -> Result<Counts, CountError> {
    infer_with(plan, recorded, cuts, |_| false)
}

/// The same where blocks that `return_again` end in calls that may come back more often than they are made
/// (`setjmp`, or whatever forks). What ends in such a block and what begins again there cannot be told apart,
/// so it is not known how many activations ended in it; all else is.
///
/// # Errors
/// As for [`infer`].
pub fn infer_with(
    plan: &CountingPlan,
    recorded: &[u64],
    cuts: &[Cut],
    return_again: impl Fn(NodeId) -> bool,
) -> Result<Counts, CountError> {
    if recorded.len() != plan.counters().len() {
        return Err(CountError::Length {
            expected: plan.counters().len(),
            found: recorded.len(),
        });
    }
    let mut excess = cut_short(plan, cuts)?;
    let mut values = vec![0i128; plan.arcs().len()];
    for (value, each) in values.iter_mut().zip(plan.arcs()) {
        if let Role::Counted(counter) = each.role {
            *value = i128::from(recorded[counter.0 as usize]);
            excess[each.ends.to.index()] += *value;
            excess[each.ends.from.index()] -= *value;
        }
    }
    for step in plan.steps() {
        let ends = plan.arcs()[step.arc as usize].ends;
        let missing = excess[step.node.index()];
        let value = if ends.to == step.node {
            -missing
        } else {
            missing
        };
        excess[ends.to.index()] += value;
        excess[ends.from.index()] -= value;
        values[step.arc as usize] = value;
    }
    Ok(Counts {
        arcs: arc_counts(plan, &values, return_again)?,
        nodes: node_counts(plan, &values)?,
    })
}

/// Per node, what flows in minus what flows out, of cut activations: each goes to the virtual exit.
fn cut_short(plan: &CountingPlan, cuts: &[Cut]) -> Result<Vec<i128>, CountError> {
    let exit = plan.node_count();
    let mut excess = vec![0i128; exit + 1];
    for cut in cuts {
        if cut.node.index() >= exit {
            return Err(CountError::NoSuchNode(cut.node));
        }
        excess[cut.node.index()] -= i128::from(cut.count);
        excess[exit] += i128::from(cut.count);
    }
    Ok(excess)
}

fn arc_counts(
    plan: &CountingPlan,
    values: &[i128],
    return_again: impl Fn(NodeId) -> bool,
) -> Result<Vec<(FlowArc, Option<u64>)>, CountError> {
    let is_net = |arc| matches!(arc, FlowArc::Exit(node) if return_again(node));
    let count = |arc: FlowArc, count: i128| match u64::try_from(count) {
        Ok(count) => Ok((arc, Some(count))),
        Err(_) if count < 0 => Err(CountError::Negative { arc, count }),
        Err(_) => Err(CountError::ArcOverflow { arc, count }),
    };
    let arcs = plan.arcs().iter().zip(values);
    arcs.map(|(each, &value)| match each.role {
        Role::Lost => Ok((each.ends.arc, None)),
        _ if is_net(each.ends.arc) => Ok((each.ends.arc, None)),
        _ => count(each.ends.arc, value),
    })
    .collect()
}

fn node_counts(plan: &CountingPlan, values: &[i128]) -> Result<Vec<Option<u64>>, CountError> {
    let mut inflow = vec![0i128; plan.node_count() + 1];
    for (each, value) in plan.arcs().iter().zip(values) {
        inflow[each.ends.to.index()] += value;
    }
    let count = |(node, count): (u32, i128)| {
        let node = NodeId(node);
        if plan.lost_nodes().binary_search(&node).is_ok() {
            return Ok(None);
        }
        u64::try_from(count)
            .map(Some)
            .map_err(|_| CountError::Node { node, count })
    };
    (0..)
        .zip(inflow)
        .take(plan.node_count())
        .map(count)
        .collect()
}
