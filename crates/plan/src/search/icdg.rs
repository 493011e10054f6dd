//! The interprocedural control dependence graph, and the sites in it.
//!
//! Source: ABI §4.1 (an interprocedural CDG handles calls), on Ferrante, Ottenstein, Warren, TOPLAS
//! 9(3), 1987. A block depends on the edges that decide about it; what always runs when its routine
//! is called depends on whatever its callers' blocks depend on. Kept implicitly, as in the graph
//! crate: per branch predicate the two ends of a path of the post-dominator tree. Building takes
//! O(m log n) in all and some sixty bytes a block.

use std::collections::HashMap;

use super::vicinity::path;
use tomo_graph::{DepthFirst, FlowGraph, Graph, NodeId, PostDominators};

/// A site, counted from zero: routine by routine, block by block, branches before values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SiteId(pub u32);

/// A predicate, counted from zero, site by site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PredicateId(pub u32);

/// A function as the search sees it.
#[derive(Clone, Debug)]
pub struct Routine {
    /// Its blocks. Each with several ways on (leaving the routine is one) is a branch site with a
    /// predicate per edge, by edge number, and one more for leaving.
    pub graph: FlowGraph,
    /// Which blocks call which routine. Of an indirect call: all that it may call.
    pub calls: Vec<(NodeId, u32)>,
    /// Blocks in which a value is looked at, and into how many predicates that is split.
    pub values: Vec<(NodeId, u32)>,
    /// Whether it is run from outside: the program's entry, an exported function.
    pub root: bool,
}

/// Why there is no such graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IcdgError {
    /// Routine `routine` names a block that it does not have.
    #[error("routine {routine} has no block {node:?}")]
    NoSuchBlock {
        /// The routine.
        routine: u32,
        /// The block.
        node: NodeId,
    },
    /// Routine `routine` calls one that there is not.
    #[error("routine {routine} calls {callee}, which there is not")]
    NoSuchRoutine {
        /// The routine.
        routine: u32,
        /// What it calls.
        callee: u32,
    },
    /// More blocks, sites or predicates than numbers.
    #[error("more than {} blocks or predicates", u32::MAX)]
    TooLarge,
}

/// What is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SiteKind {
    /// Which way control goes.
    Branch,
    /// A value.
    Value,
}

pub(super) const NONE: u32 = u32::MAX;

/// A block of any routine, counted over all.
pub(super) type Block = u32;

/// The blocks that depend on a predicate: from `to` up to, but without, `stop`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path {
    pub(super) to: Block,
    pub(super) stop: Block,
}

/// Lists of numbers, one per row.
#[derive(Debug, Default)]
pub(super) struct Rows {
    starts: Vec<u32>,
    items: Vec<u32>,
}

impl Rows {
    /// Sorts pairs of row and item by row.
    fn new(rows: usize, pairs: impl Iterator<Item = (u32, u32)> + Clone) -> Self {
        let mut starts = vec![0u32; rows + 1];
        pairs
            .clone()
            .for_each(|(row, _)| starts[row as usize + 1] += 1);
        for row in 0..rows {
            starts[row + 1] += starts[row];
        }
        let mut cursors = starts.clone();
        let mut items = vec![0; starts[rows] as usize];
        for (row, item) in pairs {
            items[cursors[row as usize] as usize] = item;
            cursors[row as usize] += 1;
        }
        Self { starts, items }
    }

    pub(super) fn of(&self, row: u32) -> &[u32] {
        &self.items[self.starts[row as usize] as usize..self.starts[row as usize + 1] as usize]
    }
}

/// The graph.
#[derive(Debug, Default)]
pub struct Icdg {
    /// Per routine its first block, and one more.
    pub(super) first_block: Vec<u32>,
    pub(super) roots: Vec<u32>,
    /// Per block: its immediate post-dominator, and whether its routine always runs it.
    pub(super) parent: Vec<Block>,
    pub(super) always: Vec<bool>,
    /// Where endless regions are entered: what follows without alternative, although the virtual exit
    /// makes it look decided. By block.
    pub(super) endless: HashMap<Block, Path>,
    /// Per block: whether it calls anything or stands in `endless`.
    pub(super) leads_on: Vec<bool>,
    /// Per block: what it calls. Per routine: the blocks that call it.
    pub(super) callees: Rows,
    pub(super) callers: Rows,
    /// Per site: its block, its kind, its first predicate (and one more). Per block: its first site.
    pub(super) site_block: Vec<Block>,
    site_kind: Vec<SiteKind>,
    first_predicate: Vec<u32>,
    first_site: Vec<u32>,
    /// Per predicate: its site; what depends on it, if it is a branch that decides anything.
    pub(super) predicate_site: Vec<u32>,
    pub(super) decides: Vec<Path>,
}

impl Icdg {
    /// The graph of a program.
    pub fn of(routines: &[Routine]) -> Result<Self, IcdgError> {
        check(routines)?;
        let mut icdg = Self::default();
        icdg.first_block.push(0);
        for (number, routine) in (0..).zip(routines) {
            if routine.root {
                icdg.roots.push(number);
            }
            icdg.add(routine);
            let end = icdg.parent.len() as u32;
            icdg.first_block.push(end);
        }
        icdg.first_site.push(icdg.site_block.len() as u32);
        icdg.first_predicate.push(icdg.predicate_site.len() as u32);
        icdg.link(routines);
        Ok(icdg)
    }

    fn add(&mut self, routine: &Routine) {
        let graph = &routine.graph;
        let base = self.parent.len() as u32;
        let post = PostDominators::of(graph);
        let walk = DepthFirst::of(graph);
        let mut values: Vec<_> = routine.values.clone();
        values.sort_by_key(|&(node, _)| node);
        let mut values = values.into_iter().peekable();
        let global = |node: Option<NodeId>| node.map_or(NONE, |node| base + node.0);
        for node in graph.nodes() {
            self.parent.push(global(post.immediate(node)));
            let always = walk.is_reachable(node) && post.post_dominates(node, graph.entry());
            self.always.push(always);
            self.first_site.push(self.site_block.len() as u32);
            let ways = graph.out_edges(node).count() + usize::from(graph.is_exit(node));
            self.only_way(graph, node, base);
            if ways > 1 {
                self.site(base + node.0, SiteKind::Branch);
                let stop = global(post.immediate(node));
                for next in graph.successors(node) {
                    // Where control comes in any case nothing is decided; nor out of reach.
                    let to = match walk.is_reachable(node) && base + next.0 != stop {
                        true => base + next.0,
                        false => NONE,
                    };
                    self.predicate(Path { to, stop });
                }
                if graph.is_exit(node) {
                    self.predicate(Path {
                        to: NONE,
                        stop: NONE,
                    });
                }
            }
            while let Some((_, predicates)) = values.next_if(|&(at, _)| at == node) {
                self.site(base + node.0, SiteKind::Value);
                for _ in 0..predicates {
                    self.predicate(Path {
                        to: NONE,
                        stop: NONE,
                    });
                }
            }
        }
    }

    fn only_way(&mut self, graph: &FlowGraph, node: NodeId, base: u32) {
        let mut ways = graph.successors(node);
        let stop = self.parent[(base + node.0) as usize];
        if let (Some(next), None, false) = (ways.next(), ways.next(), graph.is_exit(node))
            && base + next.0 != stop
        {
            let to = base + next.0;
            self.endless.insert(base + node.0, Path { to, stop });
        }
    }

    fn site(&mut self, block: Block, kind: SiteKind) {
        self.site_block.push(block);
        self.site_kind.push(kind);
        self.first_predicate.push(self.predicate_site.len() as u32);
    }

    fn predicate(&mut self, decides: Path) {
        self.predicate_site.push(self.site_block.len() as u32 - 1);
        self.decides.push(decides);
    }

    fn link(&mut self, routines: &[Routine]) {
        let bases = self.first_block.clone();
        let calls = routines.iter().zip(&bases).flat_map(|(routine, &base)| {
            let calls = routine.calls.iter();
            calls.map(move |&(node, callee)| (base + node.0, callee))
        });
        self.callees = Rows::new(self.parent.len(), calls.clone());
        let back = calls.map(|(block, callee)| (callee, block));
        self.callers = Rows::new(routines.len(), back);
        self.leads_on = (0..self.parent.len() as u32)
            .map(|block| !self.callees.of(block).is_empty() || self.endless.contains_key(&block))
            .collect();
    }

    /// How many sites there are.
    #[must_use]
    pub fn site_count(&self) -> usize {
        self.site_block.len()
    }

    /// How many predicates there are.
    #[must_use]
    pub fn predicate_count(&self) -> usize {
        self.predicate_site.len()
    }

    /// Where a site is: its routine and block.
    #[must_use]
    pub fn place(&self, site: SiteId) -> (u32, NodeId) {
        let block = self.site_block[site.0 as usize];
        let routine = self.routine_of(block);
        (routine, NodeId(block - self.first_block[routine as usize]))
    }

    /// What is looked at.
    #[must_use]
    pub fn kind(&self, site: SiteId) -> SiteKind {
        self.site_kind[site.0 as usize]
    }

    /// The predicates of a site.
    pub fn predicates(&self, site: SiteId) -> impl Iterator<Item = PredicateId> + use<> {
        let at = site.0 as usize;
        (self.first_predicate[at]..self.first_predicate[at + 1]).map(PredicateId)
    }

    /// The predicate that says that a routine was entered. It is of no site, and numbered behind all that are.
    #[must_use]
    pub fn entry(&self, routine: u32) -> PredicateId {
        PredicateId(self.predicate_count() as u32 + routine)
    }

    /// The routine of which a predicate says that it was entered, if it says that.
    #[must_use]
    pub fn entered(&self, predicate: PredicateId) -> Option<u32> {
        let routine = predicate.0.checked_sub(self.predicate_count() as u32)?;
        (routine < self.routine_count()).then_some(routine)
    }

    /// The site of a predicate.
    ///
    /// # Panics
    /// Where it is of none.
    #[must_use]
    pub fn site_of(&self, predicate: PredicateId) -> SiteId {
        SiteId(self.predicate_site[predicate.0 as usize])
    }

    /// Of each site that is `wanted` the predicates that decide whether it is come to: those of its routine on which its
    /// block depends, and the routine's entry where its block always runs. O(control dependences).
    #[must_use]
    pub fn deciders(&self, wanted: impl Fn(SiteId) -> bool) -> HashMap<SiteId, Vec<PredicateId>> {
        let mut deciders: HashMap<SiteId, Vec<PredicateId>> = HashMap::new();
        let mut add = |blocks: &mut dyn Iterator<Item = Block>, predicate| {
            for site in blocks.flat_map(|block| self.sites_of(block)) {
                if wanted(site) {
                    deciders.entry(site).or_default().push(predicate);
                }
            }
        };
        for (number, ends) in (0..).zip(&self.decides) {
            add(&mut path(self, *ends), PredicateId(number));
        }
        for routine in 0..self.routine_count() {
            add(&mut self.always_of(routine), self.entry(routine));
        }
        deciders
    }

    /// How many sites a routine always runs, without those of the routines that it calls.
    #[must_use]
    pub fn always_sites(&self, routine: u32) -> u32 {
        let blocks = self.always_of(routine);
        blocks
            .map(|block| self.sites_of(block).count() as u32)
            .sum()
    }

    /// The sites of a block.
    pub fn sites_at(&self, routine: u32, node: NodeId) -> impl Iterator<Item = SiteId> + use<> {
        self.sites_of(self.first_block[routine as usize] + node.0)
    }

    pub(super) fn sites_of(&self, block: Block) -> impl Iterator<Item = SiteId> + use<> {
        let at = block as usize;
        (self.first_site[at]..self.first_site[at + 1]).map(SiteId)
    }

    /// How many routines there are.
    #[must_use]
    pub fn routine_count(&self) -> u32 {
        self.first_block.len() as u32 - 1
    }

    pub(super) fn routine_of(&self, block: Block) -> u32 {
        self.first_block.partition_point(|&first| first <= block) as u32 - 1
    }

    /// The blocks of a routine.
    pub(super) fn blocks_of(&self, routine: u32) -> std::ops::Range<Block> {
        self.first_block[routine as usize]..self.first_block[routine as usize + 1]
    }

    /// The blocks that a routine always runs.
    pub(super) fn always_of(&self, routine: u32) -> impl Iterator<Item = Block> + Clone {
        let blocks = self.blocks_of(routine);
        blocks.filter(|&block| self.always[block as usize])
    }
}

/// That all that is named exists, and that there are numbers for everything.
fn check(routines: &[Routine]) -> Result<(), IcdgError> {
    let (mut blocks, mut predicates) = (0u64, 0u64);
    for (number, routine) in (0..).zip(routines) {
        let named = routine.calls.iter().chain(&routine.values);
        if let Some(&(node, _)) = named
            .clone()
            .find(|(node, _)| node.index() >= routine.graph.node_count())
        {
            return Err(IcdgError::NoSuchBlock {
                routine: number,
                node,
            });
        }
        if let Some(&(_, callee)) = routine
            .calls
            .iter()
            .find(|&&(_, callee)| callee as usize >= routines.len())
        {
            return Err(IcdgError::NoSuchRoutine {
                routine: number,
                callee,
            });
        }
        blocks += routine.graph.node_count() as u64;
        predicates += (routine.graph.edge_count() + routine.graph.node_count()) as u64;
        predicates += routine
            .values
            .iter()
            .map(|&(_, k)| u64::from(k))
            .sum::<u64>();
    }
    match blocks.max(predicates) < u64::from(NONE) {
        true => Ok(()),
        false => Err(IcdgError::TooLarge),
    }
}
