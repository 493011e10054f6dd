//! What follows from the call graph: which functions return, which may end the run, which may be
//! entered more than once, which are recursive. All are least solutions of monotone equations,
//! found by work lists; strongly connected components after Tarjan 1972, by `tomo_graph`.

use tomo_graph::{Components, EdgeId, FlowGraph, Graph, GraphError, NodeId, WithExit, Without};

use super::{Call, Function, FunctionId, calls_in};

/// What is known of one function.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    pub(super) returns: bool,
    pub(super) halts: bool,
    pub(super) again: bool,
    /// The component of the call graph.
    pub(super) component: u32,
    /// Whether that component holds a cycle.
    pub(super) cyclic: bool,
}

pub(super) fn of(functions: &[Function], main: FunctionId) -> Result<Vec<Facts>, GraphError> {
    let callers = callers(functions);
    let returns = returns(functions, &callers);
    let live: Vec<Vec<bool>> = functions.iter().map(|each| live(each, &returns)).collect();
    let halts = halts(functions, &callers, &returns, &live);
    let components = call_components(functions, main)?;
    let mut facts: Vec<Facts> = (0..functions.len())
        .map(|at| {
            let component = components.of_node(NodeId(at as u32));
            Facts {
                returns: returns[at],
                halts: halts[at],
                again: components.is_cyclic(component),
                component: component.0,
                cyclic: components.is_cyclic(component),
            }
        })
        .collect();
    spread_again(functions, &live, main, &mut facts);
    Ok(facts)
}

/// Per function, who calls it, once per call.
fn callers(functions: &[Function]) -> Vec<Vec<u32>> {
    let mut callers = vec![Vec::new(); functions.len()];
    for (id, function) in (0u32..).zip(functions) {
        for target in function.calls.iter().flat_map(|call| &call.targets) {
            callers[target.index()].push(id);
        }
    }
    callers
}

fn passes(function: &Function, node: NodeId, returns: &[bool]) -> bool {
    let back = |call: &Call| call.targets.iter().any(|to| returns[to.index()]);
    calls_in(function, node).iter().all(back)
}

/// Per node, whether control gets there.
fn live(function: &Function, returns: &[bool]) -> Vec<bool> {
    let mut live = vec![false; function.graph.node_count()];
    let mut work = vec![function.graph.entry()];
    live[function.graph.entry().index()] = true;
    while let Some(node) = work.pop() {
        if !passes(function, node, returns) {
            continue;
        }
        for next in function.graph.successors(node) {
            if !std::mem::replace(&mut live[next.index()], true) {
                work.push(next);
            }
        }
    }
    live
}

fn returns(functions: &[Function], callers: &[Vec<u32>]) -> Vec<bool> {
    let mut returns = vec![false; functions.len()];
    let mut work: Vec<u32> = (0..functions.len() as u32).collect();
    while let Some(at) = work.pop() {
        let function = &functions[at as usize];
        if returns[at as usize] {
            continue;
        }
        let live = live(function, &returns);
        let leaves = |node: &NodeId| {
            live[node.index()]
                && function.graph.is_exit(*node)
                && !function.halts.contains(node)
                && passes(function, *node, &returns)
        };
        if function.graph.nodes().any(|node| leaves(&node)) {
            returns[at as usize] = true;
            work.extend(&callers[at as usize]);
        }
    }
    returns
}

/// The function's graph without what lies behind calls that never come back.
pub(super) fn without_dead_calls<'f>(
    function: &'f Function,
    returns: &'f [bool],
) -> Without<'f, FlowGraph, impl Fn(EdgeId) -> bool + 'f> {
    let blocked = move |edge| !passes(function, function.graph.source(edge), returns);
    Without::edges(&function.graph, blocked)
}

/// Whether a run may end in the function itself: at a halt, in an endless region, or in a call
/// that never comes back.
fn halts_itself(function: &Function, returns: &[bool], live: &[bool]) -> bool {
    let is_live = |node: &NodeId| live[node.index()];
    function.halts.iter().any(is_live)
        || function
            .calls
            .iter()
            .any(|call| is_live(&call.node) && !passes(function, call.node, returns))
        || WithExit::of(&without_dead_calls(function, returns))
            .endless()
            .iter()
            .any(is_live)
}

fn halts(
    functions: &[Function],
    callers: &[Vec<u32>],
    returns: &[bool],
    live: &[Vec<bool>],
) -> Vec<bool> {
    let mut halts: Vec<bool> = functions
        .iter()
        .zip(live)
        .map(|(function, live)| halts_itself(function, returns, live))
        .collect();
    let mut work: Vec<u32> = (0..functions.len() as u32)
        .filter(|&at| halts[at as usize])
        .collect();
    while let Some(at) = work.pop() {
        for &caller in &callers[at as usize] {
            let caller_at = caller as usize;
            let calls = functions[caller_at].calls.iter().any(|call| {
                live[caller_at][call.node.index()] && call.targets.contains(&FunctionId(at))
            });
            if calls && !std::mem::replace(&mut halts[caller_at], true) {
                work.push(caller);
            }
        }
    }
    halts
}

fn call_components(functions: &[Function], main: FunctionId) -> Result<Components, GraphError> {
    let calls = (0u32..).zip(functions).flat_map(|(from, function)| {
        let targets = function.calls.iter().flat_map(|call| &call.targets);
        targets.map(move |to| (NodeId(from), NodeId(to.0)))
    });
    let graph = FlowGraph::new(functions.len(), NodeId(main.0), calls)?;
    Ok(Components::of(&graph))
}

/// A function is entered again if it is called twice, from a cycle, or by one that is.
fn spread_again(functions: &[Function], live: &[Vec<bool>], main: FunctionId, facts: &mut [Facts]) {
    let mut entries = vec![0u32; functions.len()];
    entries[main.index()] = 1;
    for (function, live) in functions.iter().zip(live) {
        let cycles = Components::of(&function.graph);
        for call in function.calls.iter().filter(|each| live[each.node.index()]) {
            for target in &call.targets {
                entries[target.index()] += 1;
                facts[target.index()].again |= cycles.is_cyclic(cycles.of_node(call.node));
            }
        }
    }
    for (facts, entries) in facts.iter_mut().zip(&entries) {
        facts.again |= *entries > 1;
    }
    let mut work: Vec<usize> = (0..facts.len()).filter(|&at| facts[at].again).collect();
    while let Some(at) = work.pop() {
        let calls = functions[at].calls.iter().flat_map(|call| &call.targets);
        for target in calls {
            if !std::mem::replace(&mut facts[target.index()].again, true) {
                work.push(target.index());
            }
        }
    }
}
