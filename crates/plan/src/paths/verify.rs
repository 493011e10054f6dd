//! Proof of a path plan: each path is counted once, under its own number.
//!
//! Source: the definition. The values of the ways out of each node are held against path counts
//! made anew, so numbers are unique; then what is known of the register is carried from the source
//! to the sink way by way: not set yet, set and short of the true sum by so much, or counted. Ways
//! that meet must agree. Shares no code with the numbering or the placement. O(nodes + arcs).

use super::{ArcId, DagNode, Op, PathDag, PathPlan};

/// Why a path plan does not count what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathFlaw {
    /// The ways on from a node have no values that keep paths apart.
    #[error("the values out of {0:?} are not those of its paths")]
    Values(DagNode),
    /// Ways that meet in a node leave different things in the register.
    #[error("what the register holds at {0:?} depends on the way there")]
    Meeting(DagNode),
    /// A probe counts under a wrong number, twice, or needs a register that is not set.
    #[error("the probe on {0:?} does what it should not")]
    Probe(ArcId),
    /// A way ends its path uncounted.
    #[error("paths that end by {0:?} are not counted")]
    Uncounted(ArcId),
}

/// What is known of the register at a node, on every way there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Not set; the values so far sum up to this.
    Unset(u64),
    /// Short of the sum of the values so far by this.
    Short(u64),
    /// The path is counted, under what its number was to be; the ways on must add so much.
    Counted(u64),
}

/// Checks that `plan` counts every path once, under its number.
///
/// # Errors
/// The first flaw found.
pub fn verify(plan: &PathPlan) -> Result<(), PathFlaw> {
    let dag = plan.dag();
    let rest = check_values(dag, plan)?;
    let mut states: Vec<Option<State>> = vec![None; dag.node_count()];
    states[0] = Some(State::Unset(0));
    for id in dag.ids() {
        let arc = dag.arc(id);
        let before = states[arc.from.index()].ok_or(PathFlaw::Probe(id))?;
        let after = step(plan, id, before, rest[arc.to.index()])?;
        let slot = &mut states[arc.to.index()];
        if slot.is_some_and(|known| known != after) {
            return Err(PathFlaw::Meeting(arc.to));
        }
        *slot = Some(after);
        if arc.to == dag.sink() && after != State::Counted(0) {
            return Err(PathFlaw::Uncounted(id));
        }
    }
    Ok(())
}

/// What is known behind a way. `rest` is what the ways on will add, if there is one way only.
fn step(plan: &PathPlan, id: ArcId, before: State, rest: Option<u64>) -> Result<State, PathFlaw> {
    let value = plan.numbering().value(id);
    let flaw = PathFlaw::Probe(id);
    let rest = rest.ok_or(flaw);
    match (plan.ops()[id.index()], before) {
        (None, State::Unset(sum)) => Ok(State::Unset(sum.wrapping_add(value))),
        (None, State::Short(short)) => Ok(State::Short(short.wrapping_add(value))),
        (None, State::Counted(left)) => Ok(State::Counted(left.wrapping_sub(value))),
        (Some(Op::Set(set)), State::Unset(sum)) => {
            Ok(State::Short(sum.wrapping_add(value).wrapping_sub(set)))
        }
        (Some(Op::Add(added)), State::Short(short)) => {
            Ok(State::Short(short.wrapping_add(value).wrapping_sub(added)))
        }
        (Some(Op::Count(added)), State::Short(short)) => {
            let missing = short.wrapping_add(value).wrapping_add(rest?);
            (missing == added)
                .then_some(State::Counted(rest?))
                .ok_or(flaw)
        }
        (Some(Op::CountAt(number)), State::Unset(sum)) => {
            let total = sum.wrapping_add(value).wrapping_add(rest?);
            (total == number)
                .then_some(State::Counted(rest?))
                .ok_or(flaw)
        }
        _ => Err(flaw),
    }
}

/// Holds values against counts made anew. Per node: what the one way on adds, if there is one.
fn check_values(dag: &PathDag, plan: &PathPlan) -> Result<Vec<Option<u64>>, PathFlaw> {
    let mut paths = vec![1u64; dag.node_count()];
    let mut rest = vec![Some(0u64); dag.node_count()];
    for node in dag.nodes().rev() {
        let flaw = PathFlaw::Values(node);
        let mut sum = 0u64;
        for id in dag.out(node) {
            if plan.numbering().value(id) != sum {
                return Err(flaw);
            }
            sum = sum.checked_add(paths[dag.arc(id).to.index()]).ok_or(flaw)?;
        }
        paths[node.index()] = sum;
        let only = dag.out(node).next().filter(|_| dag.out(node).len() == 1);
        rest[node.index()] = only.and_then(|id| {
            let behind = rest[dag.arc(id).to.index()]?;
            Some(behind.wrapping_add(plan.numbering().value(id)))
        });
    }
    if paths[0] == plan.numbering().total() {
        Ok(rest)
    } else {
        Err(PathFlaw::Values(DagNode::SOURCE))
    }
}
