//! Call-site sensitive call chains: the events of PDT's study, and clusters by root.
//!
//! Source: Diep, Cohen, Elbaum, *Probe Distribution Techniques to Profile Events in Deployed
//! Software*, ISSRE 2006 (PDT), §5.1 (*Call chains*) and §5.2 (clusters: a root and all methods
//! reachable from it). A chain is a traversal of the call graph from a root to a leaf, whose edges are
//! labelled with the site of the call; back edges are not taken.
//!
//! - **Back edges** are the retreating edges of a depth-first walk from the chain's own root, callees in
//!   the order of the graph. With one walk for all roots, a root in the middle of a cycle would lose
//!   chains because another root came first. A call of a function by itself is one of them.
//! - **A leaf** is a function that calls no other. One whose calls are all back edges ends chains too:
//!   PDT does not say so, but they would be chains without an end, and their calls unobserved.
//! - **Chains are enumerated lazily**, since their number explodes: [`Chains::iter`] walks depth first
//!   and needs memory for one chain. They are counted without being enumerated, in O(functions +
//!   calls), and a number beyond 64 bits is *too many*, never a small one.
//!
//! **Units.** A call's site is a unit, and each function's entry is one ([`CallGraph::site_unit`],
//! [`CallGraph::entry_unit`]). A chain is observed by its root's entry and by its sites; where a site has
//! several callees (an indirect call), by the callee's entry as well, or chains would be confused.

use crate::distribution::UnitId;
use std::collections::HashMap;
use thiserror::Error;
use tomo_graph::PathCount;

/// A function of a call graph, counted from zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FunctionId(pub u32);

impl FunctionId {
    /// The position in a table with one row per function.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// One call: an edge of the call graph. A site with several callees has several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Call {
    /// Who calls.
    pub caller: FunctionId,
    /// Where, in a numbering of all call sites of the program.
    pub site: u32,
    /// Who is called.
    pub callee: FunctionId,
}

/// What is not a call graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ChainsError {
    /// A call or a root names a function that is not there.
    #[error("function {} is named, but there are {functions} functions", .function.0)]
    NoSuchFunction {
        /// What is named.
        function: FunctionId,
        /// How many functions there are.
        functions: usize,
    },
    /// A site has two callers.
    #[error("site {site} is in function {} and in function {}", .callers[0].0, .callers[1].0)]
    TwoCallers {
        /// The site.
        site: u32,
        /// Two of its callers.
        callers: [FunctionId; 2],
    },
    /// More functions and sites than 32 bits can number.
    #[error("more functions and sites than 32 bits can number")]
    TooLarge,
}

/// Who calls whom, and where.
#[derive(Clone, Debug)]
pub struct CallGraph {
    /// By caller, in the order in which they were given.
    calls: Vec<Call>,
    /// Per function where its calls begin, and the end of the last.
    starts: Vec<u32>,
    /// Per call, whether its site has other callees.
    is_shared: Vec<bool>,
    sites: u32,
}

impl CallGraph {
    /// The graph of these calls between functions `0..functions`. A call that is given twice
    /// is kept once.
    ///
    /// # Errors
    /// [`ChainsError`].
    pub fn new(
        functions: usize,
        calls: impl IntoIterator<Item = Call>,
    ) -> Result<Self, ChainsError> {
        let mut calls: Vec<Call> = calls.into_iter().collect();
        let mut seen = std::collections::HashSet::new();
        calls.retain(|call| seen.insert(*call));
        let exists = |function| check_function(functions, function);
        calls
            .iter()
            .try_for_each(|call| exists(call.caller).and(exists(call.callee)))?;
        calls.sort_by_key(|call| call.caller); // stable
        let sites = calls
            .iter()
            .map(|call| u64::from(call.site) + 1)
            .max()
            .unwrap_or(0);
        u32::try_from(sites + functions as u64).map_err(|_| ChainsError::TooLarge)?;
        u32::try_from(calls.len()).map_err(|_| ChainsError::TooLarge)?;
        let mut starts = vec![0_u32; functions + 1];
        calls
            .iter()
            .for_each(|call| starts[call.caller.index() + 1] += 1);
        (0..functions).for_each(|at| starts[at + 1] += starts[at]);
        Ok(Self {
            is_shared: shared_sites(&calls)?,
            calls,
            starts,
            sites: sites as u32,
        })
    }

    /// How many functions there are.
    #[must_use]
    pub fn function_count(&self) -> usize {
        self.starts.len() - 1
    }

    /// How many units there are: sites first, then entries of functions.
    #[must_use]
    pub fn unit_count(&self) -> usize {
        self.sites as usize + self.function_count()
    }

    /// The unit that observes a call site.
    #[must_use]
    pub fn site_unit(&self, site: u32) -> UnitId {
        UnitId(site)
    }

    /// The unit that observes the entry of a function.
    #[must_use]
    pub fn entry_unit(&self, function: FunctionId) -> UnitId {
        UnitId(self.sites + function.0)
    }

    /// The calls of a function.
    #[must_use]
    pub fn calls(&self, caller: FunctionId) -> &[Call] {
        &self.calls[self.range(caller)]
    }

    fn range(&self, caller: FunctionId) -> std::ops::Range<usize> {
        self.starts[caller.index()] as usize..self.starts[caller.index() + 1] as usize
    }

    /// The chains from a root.
    ///
    /// # Errors
    /// [`ChainsError::NoSuchFunction`].
    pub fn chains(&self, root: FunctionId) -> Result<Chains<'_>, ChainsError> {
        check_function(self.function_count(), root)?;
        Ok(Chains::of(self, root))
    }

    /// The units of all functions that a root reaches: its entry, all sites in them, and the entries
    /// of the callees of sites with several. Ascending. It holds the units of every chain of the root.
    ///
    /// # Errors
    /// [`ChainsError::NoSuchFunction`].
    pub fn cluster(&self, root: FunctionId) -> Result<Vec<UnitId>, ChainsError> {
        let reached = self.reached(root)?.into_iter();
        let calls = reached.flat_map(|function| self.range(function));
        let mut units = vec![self.entry_unit(root)];
        units.extend(calls.flat_map(|at| self.units_of(at)));
        units.sort_unstable();
        units.dedup();
        Ok(units)
    }

    /// The functions that a root reaches, itself included. Ascending.
    ///
    /// # Errors
    /// [`ChainsError::NoSuchFunction`].
    pub fn reached(&self, root: FunctionId) -> Result<Vec<FunctionId>, ChainsError> {
        check_function(self.function_count(), root)?;
        let mut is_reached = vec![false; self.function_count()];
        is_reached[root.index()] = true;
        let mut open = vec![root];
        while let Some(function) = open.pop() {
            for call in self.calls(function) {
                if !std::mem::replace(&mut is_reached[call.callee.index()], true) {
                    open.push(call.callee);
                }
            }
        }
        let reached = (0..).zip(is_reached).filter(|(_, is_reached)| *is_reached);
        Ok(reached.map(|(at, _)| FunctionId(at)).collect())
    }

    /// What observes one call, in the order in which it runs.
    fn units_of(&self, call: usize) -> impl Iterator<Item = UnitId> + use<> {
        let Call { site, callee, .. } = self.calls[call];
        let entry = self.is_shared[call].then(|| self.entry_unit(callee));
        std::iter::once(self.site_unit(site)).chain(entry)
    }
}

fn check_function(functions: usize, function: FunctionId) -> Result<(), ChainsError> {
    let is_there = function.index() < functions;
    is_there.then_some(()).ok_or(ChainsError::NoSuchFunction {
        function,
        functions,
    })
}

/// Per call, whether its site has other callees.
fn shared_sites(calls: &[Call]) -> Result<Vec<bool>, ChainsError> {
    let mut sites: HashMap<u32, (FunctionId, u32)> = HashMap::new();
    for call in calls {
        let (caller, callees) = sites.entry(call.site).or_insert((call.caller, 0));
        *callees += 1;
        if *caller != call.caller {
            return Err(ChainsError::TwoCallers {
                site: call.site,
                callers: [*caller, call.caller],
            });
        }
    }
    Ok(calls.iter().map(|call| sites[&call.site].1 > 1).collect())
}

/// The chains from one root.
#[derive(Clone, Debug)]
pub struct Chains<'g> {
    graph: &'g CallGraph,
    root: FunctionId,
    /// Per call, whether a chain may take it: it is reached and not a back edge.
    is_forward: Vec<bool>,
    count: PathCount,
}

impl<'g> Chains<'g> {
    fn of(graph: &'g CallGraph, root: FunctionId) -> Self {
        let mut walk = Walk::new(graph);
        walk.from(root);
        Self {
            graph,
            root,
            count: walk.counts[root.index()],
            is_forward: walk.is_forward,
        }
    }

    /// The root.
    #[must_use]
    pub fn root(&self) -> FunctionId {
        self.root
    }

    /// How many there are; at least one.
    #[must_use]
    pub fn count(&self) -> PathCount {
        self.count
    }

    /// All chains, one after the other, callees in the order of the graph. Each is the list of its
    /// calls; a root that calls nothing has one chain without calls.
    pub fn iter(&self) -> impl Iterator<Item = Vec<Call>> + '_ {
        let calls =
            move |chain: Vec<usize>| chain.into_iter().map(|at| self.graph.calls[at]).collect();
        Enumeration::new(self).map(calls)
    }

    /// All chains as the units that observe them, in the order in which these run: events.
    pub fn events(&self) -> impl Iterator<Item = Vec<UnitId>> + '_ {
        let root = self.graph.entry_unit(self.root);
        Enumeration::new(self).map(move |chain| {
            let calls = chain.into_iter().flat_map(|at| self.graph.units_of(at));
            std::iter::once(root).chain(calls).collect()
        })
    }

    fn next_forward(&self, function: FunctionId, from: usize) -> Option<usize> {
        let range = self.graph.range(function);
        (from.max(range.start)..range.end).find(|&at| self.is_forward[at])
    }
}

/// A depth-first walk that counts chains on its way back.
struct Walk<'g> {
    graph: &'g CallGraph,
    state: Vec<State>,
    is_forward: Vec<bool>,
    counts: Vec<PathCount>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    Open,
    Done,
}

impl<'g> Walk<'g> {
    fn new(graph: &'g CallGraph) -> Self {
        Self {
            graph,
            state: vec![State::New; graph.function_count()],
            is_forward: vec![false; graph.calls.len()],
            counts: vec![PathCount::Exact(0); graph.function_count()],
        }
    }

    fn from(&mut self, root: FunctionId) {
        let mut stack = vec![(root, self.graph.range(root))];
        self.state[root.index()] = State::Open;
        while let Some((function, calls)) = stack.last_mut() {
            let Some(at) = calls.next() else {
                let done = *function;
                self.finish(done);
                stack.pop();
                continue;
            };
            let callee = self.graph.calls[at].callee;
            self.is_forward[at] = self.state[callee.index()] != State::Open;
            if self.state[callee.index()] == State::New {
                self.state[callee.index()] = State::Open;
                stack.push((callee, self.graph.range(callee)));
            }
        }
    }

    /// All that the function calls, but by back edges, is done.
    fn finish(&mut self, function: FunctionId) {
        self.state[function.index()] = State::Done;
        let forward = self.graph.range(function).filter(|&at| self.is_forward[at]);
        let counts = forward.map(|at| self.counts[self.graph.calls[at].callee.index()]);
        let sum = counts.reduce(plus);
        self.counts[function.index()] = sum.unwrap_or(PathCount::Exact(1));
    }
}

fn plus(a: PathCount, b: PathCount) -> PathCount {
    let sum = a.exact().zip(b.exact()).and_then(|(a, b)| a.checked_add(b));
    sum.map_or(PathCount::TooMany, PathCount::Exact)
}

/// Chains as indices of calls, in lexical order.
struct Enumeration<'c> {
    chains: &'c Chains<'c>,
    chain: Vec<usize>,
    is_over: bool,
}

impl<'c> Enumeration<'c> {
    fn new(chains: &'c Chains<'c>) -> Self {
        let mut first = Self {
            chains,
            chain: Vec::new(),
            is_over: false,
        };
        first.descend(chains.root);
        first
    }

    /// Goes on to a leaf, by the first call of each function.
    fn descend(&mut self, mut function: FunctionId) {
        while let Some(at) = self.chains.next_forward(function, 0) {
            self.chain.push(at);
            function = self.chains.graph.calls[at].callee;
        }
    }

    fn advance(&mut self) {
        while let Some(last) = self.chain.pop() {
            let caller = self.chains.graph.calls[last].caller;
            if let Some(at) = self.chains.next_forward(caller, last + 1) {
                self.chain.push(at);
                self.descend(self.chains.graph.calls[at].callee);
                return;
            }
        }
        self.is_over = true;
    }
}

impl Iterator for Enumeration<'_> {
    type Item = Vec<usize>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let chain = self.chain.clone();
        self.advance();
        Some(chain)
    }
}
