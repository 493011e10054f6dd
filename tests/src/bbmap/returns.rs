//! Calls that never come back, by what the compiler's own map proves.
//!
//! Without optimisation clang leaves code behind a call to a function that never returns, if the
//! source does not say so (a static helper that ends in `exit`); an analysis of the whole program
//! knows better and sees no way to that code. Both are right, so the compiler's graphs are brought to
//! the same knowledge, by the compiler's own word: a function from whose entry its map leads to no
//! return, and to no jump into a function that may return, does not return; a call to it cuts its
//! block. Repeated until nothing changes, because cutting may make another function one of these.
//! Functions without a map, and calls through registers, are taken to return wherever the map of
//! the caller says that control continues. Each round is linear; there are as many rounds as
//! callers in the longest chain of such functions.

use std::collections::{BTreeMap, BTreeSet};

use super::refine::Refined;

/// Cuts every call that cannot return, and drops the blocks that nothing reaches any more. Returns
/// the addresses behind the calls that were cut although the map continues there.
pub fn cut_calls_that_never_return(functions: &mut BTreeMap<u64, Refined>) -> BTreeSet<u64> {
    let mut cut = BTreeSet::new();
    let mut dead: BTreeSet<u64> = BTreeSet::new();
    for function in functions.values_mut() {
        function.graph.keep_reachable();
    }
    loop {
        let newly = functions
            .iter()
            .filter(|(entry, f)| !dead.contains(entry) && !returns(f, &dead));
        let newly: Vec<u64> = newly.map(|(&entry, _)| entry).collect();
        if newly.is_empty() {
            return cut;
        }
        dead.extend(newly);
        for function in functions.values_mut() {
            cut_calls(function, &dead, &mut cut);
        }
    }
}

fn returns(function: &Refined, dead: &BTreeSet<u64>) -> bool {
    let reached = |block: &u64| function.graph.blocks.contains_key(block);
    function.returning.iter().any(reached)
        || function.jumps_out.iter().any(|(block, target)| {
            reached(block) && !target.is_some_and(|target| dead.contains(&target))
        })
}

fn cut_calls(function: &mut Refined, dead: &BTreeSet<u64>, cut: &mut BTreeSet<u64>) {
    let calls = function.calls.iter();
    let never = calls.filter(|(_, target)| target.is_some_and(|target| dead.contains(&target)));
    for end in never.map(|(&end, _)| end).collect::<Vec<_>>() {
        if cut_behind(function, end) {
            cut.insert(end);
        }
    }
    function.graph.keep_reachable();
}

/// Ends the block of the call in front of `end` there; the only edges that stay are those that this
/// very call takes by throwing. Says whether that changed anything.
fn cut_behind(function: &mut Refined, end: u64) -> bool {
    let graph = &mut function.graph;
    let Some(block) = graph.block_of(end - 1) else {
        return false;
    };
    let old = graph.blocks.insert(block, end);
    let edges = graph.edges.len();
    graph
        .edges
        .retain(|edge| edge.from != block || edge.thrown_at == Some(end));
    let left = graph.leaving.remove(&block);
    let returned = function.returning.remove(&block);
    function.jumps_out.retain(|(from, _)| *from != block);
    old != Some(end) || edges != graph.edges.len() || left || returned
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bbmap::graph::{Edge, Graph};

    /// A function that consists of one call, ending at `entry + 5`, and a return behind it.
    fn caller(entry: u64, callee: Option<u64>) -> (u64, Refined) {
        let mut refined = one_block(entry, 6);
        refined.calls.insert(entry + 5, callee);
        refined.returning.insert(entry);
        (entry, refined)
    }

    fn one_block(entry: u64, size: u64) -> Refined {
        let graph = Graph {
            entry,
            blocks: [(entry, entry + size)].into(),
            ..Graph::default()
        };
        Refined {
            graph,
            ..Refined::default()
        }
    }

    #[test]
    fn it_spreads_to_callers() {
        let exit = (0x50, one_block(0x50, 2));
        let chain = [
            caller(0x10, Some(0x20)),
            caller(0x20, Some(0x50)),
            caller(0x30, None),
            exit,
        ];
        let mut functions = BTreeMap::from(chain);
        let cut = cut_calls_that_never_return(&mut functions);
        assert_eq!(cut, BTreeSet::from([0x15, 0x25]));
        assert_eq!(functions[&0x10].graph.blocks[&0x10], 0x15);
        assert_eq!(functions[&0x30].graph.blocks[&0x30], 0x36);
    }

    #[test]
    fn a_tail_call_returns_as_its_callee_does() {
        let tail = |entry, target| {
            let mut refined = one_block(entry, 5);
            refined.jumps_out.push((entry, target));
            (entry, refined)
        };
        let exit = (0x50, one_block(0x50, 2));
        let calls = [caller(0x10, Some(0x20)), caller(0x30, Some(0x40))];
        let jumps = [tail(0x20, Some(0x50)), tail(0x40, Some(0x999)), exit];
        let mut functions: BTreeMap<_, _> = calls.into_iter().chain(jumps).collect();
        assert_eq!(
            cut_calls_that_never_return(&mut functions),
            BTreeSet::from([0x15])
        );
    }

    #[test]
    fn throwing_is_still_possible() {
        let (entry, mut refined) = caller(0x10, Some(0x50));
        refined.graph.blocks.insert(0x20, 0x21);
        refined.graph.edges.insert(Edge {
            from: entry,
            to: 0x20,
            thrown_at: Some(0x15),
        });
        let mut functions = BTreeMap::from([(entry, refined), (0x50, one_block(0x50, 2))]);
        cut_calls_that_never_return(&mut functions);
        assert_eq!(functions[&entry].graph.edges.len(), 1);
        assert!(functions[&entry].graph.blocks.contains_key(&0x20));
    }
}
