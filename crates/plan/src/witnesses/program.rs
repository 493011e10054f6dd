//! A whole program as tracing sees it: functions with their graphs, who calls whom where, and
//! where a run may end (DPT §3.1, the ICFG).
//!
//! Calls happen in a node, in order, between entering it and leaving it; a call with several
//! targets is a branch like any other. Return edges are implied. A node at which control leaves
//! (see [`Graph::is_exit`]) returns to the caller, or ends the whole run if it is listed in
//! [`Function::halts`]. A tail call is a call in a node that leaves.
//!
//! Not told here: long jumps, exceptions that pass a frame, several threads. A run in which such a
//! thing happens is reconstructed up to there.

mod facts;

use tomo_graph::{EdgeId, FlowGraph, Graph, NodeId};

/// A function of a [`Program`], counted from zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FunctionId(pub u32);

impl FunctionId {
    /// The position in a table with one row per function.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The node in which it happens.
    pub node: NodeId,
    /// What may be called, at least one function.
    pub targets: Vec<FunctionId>,
}

/// A function.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its control flow.
    pub graph: FlowGraph,
    /// Its calls; those in one node happen in this order.
    pub calls: Vec<Call>,
    /// Nodes at which leaving ends the run.
    pub halts: Vec<NodeId>,
}

impl Function {
    /// A function that calls nothing and ends by returning.
    #[must_use]
    pub fn leaf(graph: FlowGraph) -> Self {
        Self {
            graph,
            calls: Vec::new(),
            halts: Vec::new(),
        }
    }
}

/// Why functions are no program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProgramError {
    /// A function that there is not, as the main one or called.
    #[error("there is no function {0:?}")]
    NoSuchFunction(FunctionId),
    /// A call or a halt in a node that there is not.
    #[error("function {0:?} has no node {1:?}")]
    NoSuchNode(FunctionId, NodeId),
    /// A call of nothing.
    #[error("function {0:?} has a call without targets in {1:?}")]
    NoTargets(FunctionId, NodeId),
    /// More nodes or edges than can be numbered.
    #[error("more nodes, edges or functions than 32 bits can number")]
    TooLarge,
}

/// Functions, and what follows from how they call each other.
#[derive(Clone, Debug)]
pub struct Program {
    functions: Vec<Function>,
    main: FunctionId,
    facts: Vec<facts::Facts>,
    /// Where nothing is believed of calls, by function; empty where calls are known.
    loose: Vec<Loose>,
}

/// A function of which nothing is known but its own graph: whoever may enter it, again and again, also while it is
/// active, and what it calls may come back or not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loose {
    /// Nodes at whose end control is given away: to what is called, and perhaps for good.
    pub cuts: Vec<NodeId>,
    /// Nodes at which control may arrive from elsewhere, besides the entry and behind cuts: landing pads.
    pub landings: Vec<NodeId>,
}

impl Program {
    /// The program of `functions` that begins with `main`. O(functions + nodes + edges + calls),
    /// but once per function that turns out to return for each of its callers.
    pub fn new(mut functions: Vec<Function>, main: FunctionId) -> Result<Self, ProgramError> {
        if main.index() >= functions.len() {
            return Err(ProgramError::NoSuchFunction(main));
        }
        for (id, function) in (0..).map(FunctionId).zip(&functions) {
            check(id, function, functions.len())?;
        }
        let size = |each: &Function| each.graph.node_count() + each.graph.edge_count();
        if functions.iter().map(size).sum::<usize>() > u32::MAX as usize / 2 {
            return Err(ProgramError::TooLarge);
        }
        for function in &mut functions {
            function.calls.sort_by_key(|call| call.node);
            for call in &mut function.calls {
                call.targets.sort_unstable();
                call.targets.dedup();
            }
        }
        let facts = facts::of(&functions, main).map_err(|_| ProgramError::TooLarge)?;
        Ok(Self {
            functions,
            main,
            facts,
            loose: Vec::new(),
        })
    }

    /// Functions of which each is for itself: who calls whom is told by something else than witnesses (real
    /// programs have callbacks, long jumps, exceptions, signals). O(functions + nodes + edges).
    pub fn of_loose(functions: Vec<(FlowGraph, Loose)>) -> Result<Self, ProgramError> {
        for (id, (graph, loose)) in (0..).map(FunctionId).zip(&functions) {
            let mut named = loose.cuts.iter().chain(&loose.landings);
            if let Some(node) = named.find(|node| node.index() >= graph.node_count()) {
                return Err(ProgramError::NoSuchNode(id, *node));
            }
        }
        let (graphs, loose): (Vec<_>, Vec<_>) = functions.into_iter().unzip();
        let functions = graphs.into_iter().map(Function::leaf).collect();
        Ok(Self {
            loose,
            ..Self::new(functions, FunctionId(0))?
        })
    }

    /// What is around a function of which nothing is known but its own graph.
    pub(crate) fn loose(&self, id: FunctionId) -> Option<&Loose> {
        self.loose.get(id.index())
    }

    /// The functions by id.
    #[must_use]
    pub fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// All ids.
    pub fn ids(&self) -> impl Iterator<Item = FunctionId> + use<> {
        (0..self.functions.len() as u32).map(FunctionId)
    }

    /// One of the functions.
    #[must_use]
    pub fn function(&self, id: FunctionId) -> &Function {
        &self.functions[id.index()]
    }

    /// Where a run begins.
    #[must_use]
    pub fn main(&self) -> FunctionId {
        self.main
    }

    /// The calls in a node, in order.
    #[must_use]
    pub fn calls_in(&self, id: FunctionId, node: NodeId) -> &[Call] {
        calls_in(self.function(id), node)
    }

    /// Whether a call of the function can come back.
    #[must_use]
    pub fn returns(&self, id: FunctionId) -> bool {
        self.facts[id.index()].returns
    }

    /// Whether a run may end while the function, or what it calls, is active.
    #[must_use]
    pub fn may_halt(&self, id: FunctionId) -> bool {
        self.facts[id.index()].halts
    }

    /// Whether the function may be entered more than once in a run (DPT §4.2: it has several call
    /// sites, or is called in a cycle or from a function that may be entered more than once).
    #[must_use]
    pub fn entered_again(&self, id: FunctionId) -> bool {
        self.facts[id.index()].again
    }

    /// Whether a call of `callee` in `caller` may enter `caller` again before it returns.
    #[must_use]
    pub fn recursive(&self, caller: FunctionId, callee: FunctionId) -> bool {
        let (caller, callee) = (&self.facts[caller.index()], &self.facts[callee.index()]);
        caller.cyclic && caller.component == callee.component
    }

    /// Whether control can get past the calls in `node`.
    #[must_use]
    pub fn passes(&self, id: FunctionId, node: NodeId) -> bool {
        let comes_back = |call: &Call| call.targets.iter().any(|&target| self.returns(target));
        self.calls_in(id, node).iter().all(comes_back)
    }
}

fn calls_in(function: &Function, node: NodeId) -> &[Call] {
    let from = function.calls.partition_point(|call| call.node < node);
    let to = function.calls.partition_point(|call| call.node <= node);
    &function.calls[from..to]
}

fn check(id: FunctionId, function: &Function, functions: usize) -> Result<(), ProgramError> {
    let nodes = function.graph.node_count();
    let called = function.calls.iter().map(|call| call.node);
    if let Some(node) = called
        .chain(function.halts.iter().copied())
        .find(|node| node.index() >= nodes)
    {
        return Err(ProgramError::NoSuchNode(id, node));
    }
    for call in &function.calls {
        if call.targets.is_empty() {
            return Err(ProgramError::NoTargets(id, call.node));
        }
        if let Some(&target) = call.targets.iter().find(|to| to.index() >= functions) {
            return Err(ProgramError::NoSuchFunction(target));
        }
    }
    Ok(())
}

/// One block that ran, as traces list them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Step {
    /// The function.
    pub function: FunctionId,
    /// The block.
    pub node: NodeId,
    /// By which edge it was entered; `None` if by a call, or as the first of the run.
    pub by: Option<EdgeId>,
}
