//! Breaking edges, so that no piece has more paths than a limit.
//!
//! Source: BL96, §4 (a function with too many paths is truncated at edges, as at retreating ones);
//! which edges, it does not say. Ours: nodes from the sink up; where the ways on add up to more than
//! the limit, edges are broken that cost least per path they take away, and those that turn out not
//! to be needed are mended again. Where edges cannot be broken, all that can be is broken behind them. Nothing is lost: a broken edge ends one path and starts the next,
//! so the pieces of every execution are known, though less of what preceded what. O(m log m).
//!
//! A piece is the set of paths with one start. A limit can be kept just if no block alone has more
//! ways on; broken edges need a probe, so those that cannot be patched stay whole.
//! No claim is made that the breaks are cheapest.

use tomo_graph::{EdgeId, FlowArc, Graph, NodeId, Weight};

use super::{ArcId, DagNode, PathDag, Way};

/// Why a function cannot be split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SplitError {
    /// More ways lead on from this block than a piece may have paths, when all are broken that can
    /// be.
    #[error("{paths} paths start at {node:?} at least; a piece may have {limit}")]
    TooWide {
        /// The block.
        node: NodeId,
        /// Paths from it.
        paths: u128,
        /// The limit asked for.
        limit: u64,
    },
}

/// Edges to break, so that from no block more than `limit` paths start. `weight` says how often an
/// arc runs, or that it cannot be patched.
///
/// # Errors
/// If a block has more ways on than that which cannot be broken.
pub fn split<G: Graph>(
    graph: &G,
    limit: u64,
    weight: impl Fn(FlowArc) -> Weight,
) -> Result<Vec<EdgeId>, SplitError> {
    let dag = PathDag::of(graph);
    let least = least_paths(&dag, &weight);
    for node in dag.nodes().skip(1) {
        let paths = least[node.index()];
        if let (true, Some(node)) = (paths > u128::from(limit), dag.block(node)) {
            return Err(SplitError::TooWide { node, paths, limit });
        }
    }
    // Nodes at which everything is broken, because edges that lead there cannot be.
    let mut tight = vec![false; dag.node_count()];
    loop {
        match break_upwards(&dag, limit, &weight, &tight) {
            Ok(mut broken) => {
                broken.sort_unstable();
                return Ok(broken);
            }
            Err(node) => tighten(&dag, node, &weight, &mut tight),
        }
    }
}

fn is_breakable(dag: &PathDag, id: ArcId, weight: &impl Fn(FlowArc) -> Weight) -> bool {
    let patchable = |edge| weight(FlowArc::Edge(edge)) != Weight::Infinite;
    matches!(dag.arc(id).way, Way::Edge(edge) if patchable(edge))
}

/// Per node: the paths from there if everything is broken that can be.
fn least_paths(dag: &PathDag, weight: &impl Fn(FlowArc) -> Weight) -> Vec<u128> {
    let mut least = vec![1u128; dag.node_count()];
    for node in dag.nodes().rev() {
        let ways = dag.out(node).map(|id| match is_breakable(dag, id, weight) {
            true => 1,
            false => least[dag.arc(id).to.index()],
        });
        least[node.index()] = ways.fold(0, u128::saturating_add);
    }
    least
}

/// What to break from the sink up. If a node has too many paths for all that it can break: that
/// node.
fn break_upwards(
    dag: &PathDag,
    limit: u64,
    weight: &impl Fn(FlowArc) -> Weight,
    tight: &[bool],
) -> Result<Vec<EdgeId>, DagNode> {
    let limit = u128::from(limit);
    let mut paths = vec![1u128; dag.node_count()];
    let mut broken = Vec::new();
    for node in dag.nodes().rev().filter(|&node| dag.block(node).is_some()) {
        let ways = dag.out(node).map(|id| paths[dag.arc(id).to.index()]);
        // Each way has no more than the limit, so this sum of fewer than 2^32 of them fits.
        let mut sum: u128 = ways.sum();
        let kept = if tight[node.index()] { 0 } else { limit };
        if sum > kept {
            let chosen = choose(dag, dag.out(node), &paths, weight, sum - kept);
            sum -= chosen.iter().map(|each| each.gain).sum::<u128>();
            broken.extend(chosen.into_iter().map(|each| each.edge));
        }
        if sum > limit {
            return Err(node);
        }
        paths[node.index()] = sum;
    }
    Ok(broken)
}

/// Marks `node` and what is reached from it by edges that cannot be broken. There is always one
/// more to mark: were all of them tight, the node would have its least number of paths.
fn tighten(dag: &PathDag, node: DagNode, weight: &impl Fn(FlowArc) -> Weight, tight: &mut [bool]) {
    let mut work = vec![node];
    let mut seen = vec![false; dag.node_count()];
    while let Some(node) = work.pop() {
        if std::mem::replace(&mut seen[node.index()], true) {
            continue;
        }
        tight[node.index()] = true;
        let stuck = dag.out(node).filter(|&id| !is_breakable(dag, id, weight));
        work.extend(stuck.map(|id| dag.arc(id).to));
    }
}

/// An edge that may be broken: how often it runs, and how many paths it takes away.
struct Candidate {
    edge: EdgeId,
    runs: u64,
    gain: u128,
}

/// Edges that together take away `excess` paths, if there are such.
fn choose(
    dag: &PathDag,
    ways: impl Iterator<Item = ArcId>,
    paths: &[u128],
    weight: &impl Fn(FlowArc) -> Weight,
    excess: u128,
) -> Vec<Candidate> {
    let candidate = |id: ArcId| {
        let gain = paths[dag.arc(id).to.index()] - 1;
        match (dag.arc(id).way, gain) {
            (_, 0) => None,
            (Way::Edge(edge), gain) => match weight(FlowArc::Edge(edge)) {
                Weight::Finite(runs) => Some(Candidate { edge, runs, gain }),
                Weight::Infinite => None,
            },
            _ => None,
        }
    };
    let mut candidates: Vec<Candidate> = ways.filter_map(candidate).collect();
    // Both factors have 64 bits: pieces are within the limit.
    let cost = |a: &Candidate, b: &Candidate| u128::from(a.runs) * b.gain;
    candidates.sort_by(|a, b| cost(a, b).cmp(&cost(b, a)).then(a.edge.cmp(&b.edge)));
    let mut taken = 0;
    candidates.retain(|each| {
        let needed = taken < excess;
        taken += if needed { each.gain } else { 0 };
        needed
    });
    // Mend the costliest first.
    candidates.sort_by_key(|each| (std::cmp::Reverse(each.runs), each.edge));
    candidates.retain(|each| {
        let superfluous = taken >= excess + each.gain;
        taken -= if superfluous { each.gain } else { 0 };
        !superfluous
    });
    candidates
}
