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
//!
//! There is a second way in which a compiler says that a call does not return: it puts a trap behind
//! it, directly or by way of jumps. rustc does so behind every invocation whose callee's type is `!`,
//! and shares the trap between them (`call handle_error; jmp 1f; …; 1f: ud2`). Whether the model goes
//! on to the trap is a matter of taste, so such calls are cut as well. That could hide one thing only,
//! a trap that the program means to reach behind a call that does return.

use std::collections::{BTreeMap, BTreeSet};

use super::refine::Refined;

/// Cuts every call that cannot return, and drops the blocks that nothing reaches any more. Returns
/// the addresses behind the calls that were cut although the map continues there.
pub fn cut_calls_that_never_return(functions: &mut BTreeMap<u64, Refined>) -> BTreeSet<u64> {
    let mut cut = BTreeSet::new();
    let mut dead: BTreeSet<u64> = BTreeSet::new();
    for function in functions.values_mut() {
        function.graph.keep_reachable();
        cut.extend(&function.dead_code_behind);
        cut_calls(
            function,
            |function, end, _| goes_to_a_trap(function, end),
            &mut cut,
        );
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
            let is_dead = |target: Option<u64>| target.is_some_and(|target| dead.contains(&target));
            cut_calls(function, |_, _, target| is_dead(target), &mut cut);
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

/// Cuts the calls that `never` return, by the address behind them and their target.
fn cut_calls(
    function: &mut Refined,
    never: impl Fn(&Refined, u64, Option<u64>) -> bool,
    cut: &mut BTreeSet<u64>,
) {
    let calls = function.calls.iter();
    let ends = calls
        .filter(|&(&end, &target)| never(function, end, target))
        .map(|(&end, _)| end);
    for end in ends.collect::<Vec<_>>() {
        if cut_behind(function, end) {
            cut.insert(end);
        }
    }
    function.graph.keep_reachable();
}

/// Whether what lies behind a call leads, without a choice and another call, to a trap.
fn goes_to_a_trap(function: &Refined, end: u64) -> bool {
    let graph = &function.graph;
    let mut seen = BTreeSet::new();
    let mut at = end;
    let mut next = graph.block_of(end - 1);
    while let Some(block) = next.filter(|&block| seen.insert(block)) {
        let calls_again = graph
            .blocks
            .get(&block)
            .is_some_and(|&stop| at < stop && function.calls.range(at + 1..=stop).next().is_some());
        if calls_again || graph.leaving.contains(&block) {
            return false;
        }
        if function.trapping.contains(&block) {
            return true;
        }
        let mut out = graph
            .edges_from(block)
            .filter(|edge| edge.thrown_at.is_none());
        next = out
            .next()
            .map(|edge| edge.to)
            .filter(|_| out.next().is_none());
        at = next.unwrap_or(at);
    }
    false
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
    fn a_trap_behind_a_call_says_that_it_does_not_return() {
        let with_jump = |to_trap: bool| {
            let mut refined = one_block(0x10, 7);
            refined.calls.insert(0x15, None);
            refined.graph.blocks.insert(0x20, 0x22);
            refined.graph.edges.insert(Edge::plain(0x10, 0x20));
            let last = if to_trap {
                &mut refined.trapping
            } else {
                &mut refined.returning
            };
            last.insert(0x20);
            BTreeMap::from([(0x10, refined)])
        };
        let mut functions = with_jump(true);
        assert_eq!(
            cut_calls_that_never_return(&mut functions),
            BTreeSet::from([0x15])
        );
        assert_eq!(
            functions[&0x10].graph.blocks,
            BTreeMap::from([(0x10, 0x15)])
        );
        assert!(cut_calls_that_never_return(&mut with_jump(false)).is_empty());
    }

    #[test]
    fn a_trap_behind_a_choice_or_another_call_says_nothing() {
        let mut refined = one_block(0x10, 14);
        refined.calls.extend([(0x15, None), (0x1a, None)]);
        refined.trapping.insert(0x10);
        let mut functions = BTreeMap::from([(0x10, refined)]);
        assert_eq!(
            cut_calls_that_never_return(&mut functions),
            BTreeSet::from([0x1a])
        );
        let mut refined = one_block(0x10, 7);
        refined.calls.insert(0x15, None);
        refined.returning.insert(0x30);
        refined.trapping.insert(0x20);
        refined.graph.blocks.extend([(0x20, 0x22), (0x30, 0x31)]);
        refined
            .graph
            .edges
            .extend([Edge::plain(0x10, 0x20), Edge::plain(0x10, 0x30)]);
        let mut functions = BTreeMap::from([(0x10, refined)]);
        assert!(cut_calls_that_never_return(&mut functions).is_empty());
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
