//! What realizable means, executed: no two executions leave the same partial traces.

use std::collections::HashMap;

use tomo_graph::{FlowGraph, Graph, NodeId};

/// Two executions that leave the same partial traces in all profiles, among those of at most
/// `longest` nodes; `Err` if there are more than `most` executions to look at.
pub(crate) fn alike(
    graph: &FlowGraph,
    profiles: &[Vec<NodeId>],
    longest: usize,
    most: usize,
) -> Result<Option<[Vec<NodeId>; 2]>, ()> {
    let mut known: HashMap<Vec<Vec<NodeId>>, Vec<NodeId>> = HashMap::new();
    let mut work = std::collections::VecDeque::from([vec![graph.entry()]]);
    let mut seen = 0;
    while let Some(path) = work.pop_front() {
        seen += 1;
        if seen > most {
            return Err(());
        }
        let last = path[path.len() - 1];
        if graph.is_exit(last) {
            let partial = |profile: &Vec<NodeId>| {
                let held = path.iter().filter(|node| profile.contains(node));
                held.copied().collect()
            };
            let partial = profiles.iter().map(partial).collect();
            if let Some(other) = known.insert(partial, path.clone()) {
                return Ok(Some([other, path]));
            }
        }
        if path.len() < longest {
            work.extend(
                graph
                    .successors(last)
                    .map(|next| [&path[..], &[next]].concat()),
            );
        }
    }
    Ok(None)
}
