//! The program as the search sees it: functions as routines, sites and predicates by both their numbers.

use std::collections::HashMap;

use tomo_export::predicates::{Site, Sites};
use tomo_graph::{FlowGraph, Graph as _, NodeId};
use tomo_plan::search::{Icdg, IcdgError, PredicateId, Routine, SiteId, SiteKind};
use tomo_program::{EdgeKind, FunctionView, Graphs};
use tomo_wire::predicates::{Kind, Told};

/// The graph, and which of its sites are which.
#[derive(Debug)]
pub(crate) struct Map {
    pub(crate) icdg: Icdg,
    /// By site of the graph: its number among the module's, if it can be observed.
    site_of: Vec<Option<usize>>,
    /// By predicate of the graph: its row.
    row_of: Vec<Option<usize>>,
    /// By number among the module's sites: the graph's.
    back: HashMap<usize, SiteId>,
    /// By number among the module's sites: the entry of its function.
    entries: HashMap<usize, u64>,
    /// By routine of the graph: its entry.
    begins: Vec<u64>,
}

impl Map {
    /// The map of a module with these sites.
    pub(crate) fn of(graphs: &Graphs<'_>, sites: &Sites) -> Result<Self, IcdgError> {
        let functions: Vec<FunctionView<'_>> = graphs.functions().collect();
        let by_block = by_block(sites);
        let routines = routines(graphs, &functions, sites);
        let icdg = Icdg::of(&routines)?;
        let mut map = Self {
            site_of: vec![None; icdg.site_count()],
            row_of: vec![None; icdg.predicate_count()],
            back: HashMap::new(),
            entries: HashMap::new(),
            begins: functions
                .iter()
                .map(|function| function.entry().0)
                .collect(),
            icdg,
        };
        for (number, function) in (0u32..).zip(&functions) {
            for (node, block) in (0u32..).zip(function.blocks()) {
                let nodes = routines[number as usize].graph.node_count();
                let at: Vec<SiteId> = match (node as usize) < nodes {
                    true => map.icdg.sites_at(number, NodeId(node)).collect(),
                    false => Vec::new(),
                };
                for site in at {
                    let kind = match map.icdg.kind(site) {
                        SiteKind::Branch => Kind::Branch,
                        SiteKind::Value => Kind::Result,
                    };
                    if let Some(&found) = by_block.get(&(block.address().0, kind)) {
                        map.add(function, node, site, (found, &sites.sites[found]));
                    }
                }
            }
        }
        Ok(map)
    }

    fn add(
        &mut self,
        function: &FunctionView<'_>,
        node: u32,
        id: SiteId,
        (number, site): (usize, &Site),
    ) {
        let cases: Vec<usize> = match site.kind {
            Kind::Result => vec![0, 1, 2],
            Kind::Branch => ways(function, node),
        };
        let predicates: Vec<PredicateId> = self.icdg.predicates(id).collect();
        for (predicate, case) in predicates.iter().zip(&cases) {
            self.row_of[predicate.0 as usize] = Some(site.first + case);
        }
        let observable = |told: &Told| matches!(told, Told::Itself | Told::BySite);
        if predicates.len() == cases.len() && site.told.iter().all(observable) {
            self.site_of[id.0 as usize] = Some(number);
            self.back.insert(number, id);
            self.entries.insert(number, function.entry().0);
        }
    }

    /// The module's site that this is, if it can be observed.
    pub(crate) fn site(&self, site: SiteId) -> Option<usize> {
        self.site_of.get(site.0 as usize).copied().flatten()
    }

    /// The graph's site that this is.
    pub(crate) fn id(&self, site: usize) -> Option<SiteId> {
        self.back.get(&site).copied()
    }

    /// The entry of the function that a site of the module is in, if it can be observed.
    pub(crate) fn entry(&self, site: usize) -> Option<u64> {
        self.entries.get(&site).copied()
    }

    /// The entry of the function that a routine of the graph is.
    pub(crate) fn begin(&self, routine: u32) -> Option<u64> {
        self.begins.get(routine as usize).copied()
    }

    /// The row of a predicate.
    pub(crate) fn row(&self, predicate: PredicateId) -> Option<usize> {
        self.row_of.get(predicate.0 as usize).copied().flatten()
    }

    /// The predicate of a row.
    pub(crate) fn predicate(&self, row: usize) -> Option<PredicateId> {
        let found = self.row_of.iter().position(|known| *known == Some(row));
        found.map(|at| PredicateId(at as u32))
    }
}

/// Sites by their blocks.
fn by_block(sites: &Sites) -> HashMap<(u64, Kind), usize> {
    let each = sites.sites.iter().enumerate();
    each.map(|(number, site)| {
        let block = match site.kind {
            Kind::Branch => site.block.0,
            Kind::Result => site.address.0,
        };
        ((block, site.kind), number)
    })
    .collect()
}

/// The functions as the search sees them.
pub(crate) fn routines(
    graphs: &Graphs<'_>,
    functions: &[FunctionView<'_>],
    sites: &Sites,
) -> Vec<Routine> {
    let by_block = by_block(sites);
    let each = functions.iter();
    let mut routines: Vec<Routine> = each
        .map(|function| routine(graphs, function, &by_block))
        .collect();
    name_roots(&mut routines);
    routines
}

/// The cases of the ways out of a block, in the order of the graph: those within, then that which leaves.
fn ways(function: &FunctionView<'_>, node: u32) -> Vec<usize> {
    let Some(block) = function.blocks().nth(node as usize) else {
        return Vec::new();
    };
    let case = |kind| usize::from(kind == EdgeKind::NotTaken);
    let inside = |edge: &tomo_program::EdgeView| {
        let node = edge.block().and_then(|block| function.node(block));
        node.is_some()
    };
    let (inner, outer): (Vec<_>, Vec<_>) = block.successors().partition(inside);
    let inner = inner.iter().map(|edge| case(edge.kind));
    inner
        .chain(outer.iter().take(1).map(|edge| case(edge.kind)))
        .collect()
}

fn routine(
    graphs: &Graphs<'_>,
    function: &FunctionView<'_>,
    by_block: &HashMap<(u64, Kind), usize>,
) -> Routine {
    let Some(graph) = function.flow_graph().or_else(nothing) else {
        unreachable!("a graph of one node is one")
    };
    let nodes = graph.node_count();
    let mut routine = Routine::new(graph);
    if function.block_count() != nodes {
        return routine;
    }
    let number = |function: FunctionView<'_>| function.id().index() as u32;
    for call in function.calls() {
        let callee = call.function().map(number);
        let node = function.node(call.block());
        routine.calls.extend(node.zip(callee));
    }
    for edge in function
        .edges()
        .filter(|edge| edge.kind == EdgeKind::TailCall)
    {
        let callee = graphs.function_starting_at(edge.address).map(number);
        routine.calls.extend(function.node(edge.from).zip(callee));
    }
    for (node, block) in (0..).zip(function.blocks()) {
        if by_block.contains_key(&(block.address().0, Kind::Result)) {
            routine.values.push((NodeId(node), 3));
        }
    }
    routine
}

/// A graph of one node.
fn nothing() -> Option<FlowGraph> {
    FlowGraph::new(1, NodeId(0), std::iter::empty()).ok()
}

/// Whom nobody calls is run from outside: the entry, what is exported, what is called by its address.
fn name_roots(routines: &mut [Routine]) {
    let mut is_called = vec![false; routines.len()];
    for (number, routine) in (0u32..).zip(routines.iter()) {
        for &(_, callee) in routine.calls.iter().filter(|(_, callee)| *callee != number) {
            if let Some(called) = is_called.get_mut(callee as usize) {
                *called = true;
            }
        }
    }
    for (routine, called) in routines.iter_mut().zip(is_called) {
        routine.root = !called;
    }
}
