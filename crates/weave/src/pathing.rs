//! Which functions have their paths counted, and what is done where for it (BL96, `tomo_plan::paths`).
//!
//! Where a path ends, beside retreating edges and exits, is decided by what can be told apart at run time:
//!
//! | edge | what happens to the path | why |
//! |---|---|---|
//! | into a landing pad | it is cut | the call did not come back, and many calls share a pad |
//! | behind a call that may come back again (`setjmp`) | it ends at the call | what was run since is in the register |
//! | into a block that stays at its place, if something were to be done there | it ends in front of it | there is no room; behind it another starts |
//! | one of many that arrive from elsewhere at a block (computed goto) | it ends in front of it | the way they came is not known there |
//! | one that [`split`] breaks | it ends with it | more paths than counters |
//!
//! Where only some paths are asked for (SPP), probes tell these from all others and count no others (`asked.rs`).
//!
//! Registers are set late: as long as only one sum leads to a node it is not even kept, which is more than BL96 §3.3
//! asks for (a path that is the only one is counted at a constant); and they are set again rather than added
//! to where such a node meets others. Counts stay at the ends, as whatever is called before may not come back.

use std::collections::HashSet;

use iced_x86::InstructionInfoFactory;
use rayon::prelude::*;
use tomo_graph::{EdgeId, FlowArc, Graph as _, NodeId, Weight};
use tomo_plan::counting::Frequencies;
use tomo_plan::paths::split::split;
use tomo_plan::paths::{DagArc, Increments, Numbering, PathDag, Way};
use tomo_program::{
    BlockView, EdgeKind, EdgeView, FunctionView, Graphs, PathEdge, PathGraph, Status,
};
use tomo_wire::paths::{Asked, Mark, MarkKind, Reason};

use crate::place::Surroundings;
use crate::staying::action::What;
use crate::staying::code::{Code, Wants};
use crate::staying::frame::frames;
use crate::staying::live::Liveness;
use crate::staying::path::{PathEnd, PathOp, UNUSED, tag};
use crate::staying::region::{Call, Region};
use crate::staying::whole::MovedBlocks;

mod asked;
mod cuts;
mod ops;

pub use asked::{Ask, NamedPath, PathEnds, PathsOf};
use cuts::Cuts;
use ops::{Ops, ops};

/// A function has no more numbers of paths than that.
const MOST_NUMBERS: u64 = 1 << 16;
/// All functions together have about as many counters at most.
const BUDGET: u64 = 1 << 19;
/// What cannot be split so far may have so many.
const MOST_UNSPLIT: u64 = 1 << 18;
/// A function is not split further.
const LEAST_NUMBERS: u64 = 1 << 6;

/// The paths of a function, planned.
#[derive(Debug)]
pub(crate) struct Planned {
    pub(crate) entry: u64,
    pub(crate) numbers: u32,
    pub(crate) marks: Vec<Mark>,
    /// Which paths are asked for.
    pub(crate) asked: Asked,
    /// Whether only these are told apart.
    pub(crate) selective: bool,
    /// Numbers that name paths, ascending.
    pub(crate) named: Vec<u32>,
    /// Which of the paths that are asked for is none of the function's.
    pub(crate) stranger: Option<usize>,
    /// What is executed elsewhere, where the function's counters are counted from 0.
    pub(crate) region: Region,
    pub(crate) calls: Vec<Call>,
}

/// For each function its paths, or why it is left out.
pub(crate) fn all<'a>(
    around: &Surroundings<'_>,
    graphs: &Graphs<'_>,
    ask: &(dyn for<'v> Fn(&FunctionView<'v>) -> Ask<'a> + Sync),
) -> Vec<(u64, Result<Planned, Reason>)> {
    let live = Liveness::of(around.text, graphs);
    let functions: Vec<_> = graphs.functions().collect();
    let plan = |function: &FunctionView<'_>, most: u64| match ask(function) {
        Ask::Nothing => Err(Reason::NotChosen),
        ask => Planner::of(around, &live, function)?.plan(most, ask),
    };
    let each = functions
        .par_iter()
        .map(|function| plan(function, MOST_NUMBERS));
    let mut plans: Vec<_> = each.collect();
    let most = affordable(plans.iter().flatten().map(|plan| u64::from(plan.numbers)));
    let pairs = plans.par_iter_mut().zip(&functions);
    pairs.for_each(|(planned, function)| {
        if planned
            .as_ref()
            .is_ok_and(|plan| u64::from(plan.numbers) > most)
        {
            *planned = plan(function, most);
        }
    });
    let entries = functions.iter().map(|function| function.entry().0);
    entries.zip(plans).collect()
}

/// How many numbers a function may have so that all that have so many fit.
fn affordable(numbers: impl Iterator<Item = u64> + Clone) -> u64 {
    let mut most = MOST_NUMBERS;
    while most > LEAST_NUMBERS && numbers.clone().map(|each| each.min(most)).sum::<u64>() > BUDGET {
        most /= 2;
    }
    most
}

/// The paths of a function.
struct Drawn {
    cuts: Cuts,
    paths: PathGraph,
    /// Edges that paths end with, beside retreating ones.
    broken: HashSet<EdgeId>,
    dag: PathDag,
    numbering: Numbering,
    /// Per way of `dag`, how often it runs.
    weights: Vec<Weight>,
    /// Per block, whether no path ends there though the graph does.
    dead: Vec<bool>,
}

/// What counts the paths of a function.
struct Counters<'c> {
    /// What each way adds.
    increments: Increments,
    /// Sums that are counted are below this.
    numbers: u64,
    /// Whether paths that end by a way are counted.
    counts: &'c dyn Fn(&DagArc) -> bool,
    /// Whether paths are counted where they start.
    starts: bool,
}

struct Planner<'f> {
    function: FunctionView<'f>,
    blocks: Vec<Code<'f>>,
    moved: MovedBlocks,
}

/// Where something is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Entering(usize),
    Start(usize),
    End(usize),
    Taken(usize),
    NotTaken(usize),
}

/// Why paths cannot be planned as they were asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    /// Something cannot be done because this block stays where it is.
    Place(usize),
    /// They cannot be planned at all.
    Reason(Reason),
}

impl From<Reason> for Trouble {
    fn from(reason: Reason) -> Self {
        Self::Reason(reason)
    }
}

impl<'f> Planner<'f> {
    fn of(
        around: &Surroundings<'f>,
        live: &Liveness<'_>,
        function: &FunctionView<'f>,
    ) -> Result<Self, Reason> {
        let mut jumps = function.indirect_jumps();
        // Behind a jump that may leave nobody knows whether another path of the function begins.
        if function.status() != Status::Exact || jumps.any(|jump| jump.resolution().is_open()) {
            return Err(Reason::NotExact);
        }
        let foreign = &around.ways.foreign;
        if function.blocks().any(|block| foreign.has(block.address())) {
            return Err(Reason::Entered);
        }
        let blocks = function
            .blocks()
            .map(|block| Code::of(around, live, &block));
        let mut blocks: Vec<Code<'f>> = blocks.collect::<Option<_>>().ok_or(Reason::NotExact)?;
        let mut factory = InstructionInfoFactory::new();
        let frames = frames(function, &blocks);
        for (code, frame) in blocks.iter_mut().zip(&frames) {
            if let Some(frame) = frame {
                code.find_slots(frame, &mut factory);
            }
        }
        Ok(Self {
            function: *function,
            moved: MovedBlocks::of(around, function, &blocks),
            blocks,
        })
    }

    /// The plan with no more than so many numbers of paths. Blocks that stay at their place and in which something would
    /// have to be done are not followed.
    fn plan(&self, most: u64, ask: Ask<'_>) -> Result<Planned, Reason> {
        let mut followed = vec![true; self.blocks.len()];
        if let Some(ends) = ask.ends() {
            for (followed, code) in followed.iter_mut().zip(&self.blocks) {
                *followed = !ends.unfollowed.contains(&code.start().0);
            }
        }
        loop {
            match self.attempt(most, &followed, ask) {
                Ok(planned) => return Ok(planned),
                Err(Trouble::Reason(reason)) => return Err(reason),
                Err(Trouble::Place(block)) => {
                    let is_new = !self.moved.has(block) && std::mem::take(&mut followed[block]);
                    if !is_new {
                        return Err(Reason::NoPlace);
                    }
                }
            }
        }
    }

    fn attempt(&self, most: u64, followed: &[bool], ask: Ask<'_>) -> Result<Planned, Trouble> {
        let drawn = self.draw(most, followed, ask)?;
        let values = drawn.numbering.values();
        let counters = Counters {
            increments: Increments::of(&drawn.dag, values, &drawn.weights),
            numbers: drawn.numbering.total(),
            counts: &|_| true,
            starts: true,
        };
        let all = self.planned(&drawn, &counters)?;
        match ask {
            Ask::Some(paths) => Ok(self.select(&drawn, paths, all)?),
            _ => Ok(all),
        }
    }

    /// The function's paths.
    fn draw(&self, most: u64, followed: &[bool], ask: Ask<'_>) -> Result<Drawn, Trouble> {
        let cuts = Cuts::of(&self.function, followed);
        let is_followed = |block| {
            let position = self.function.position_of(block);
            position.is_some_and(|position| followed[position])
        };
        let severed = |edge: &EdgeView| cuts.severed(edge);
        let paths = self.function.path_graph(severed, is_followed);
        let paths = paths.ok_or(Reason::NotExact)?;
        if paths.edges.is_empty() {
            return Err(Reason::NoPlace.into());
        }
        let frequencies = Frequencies::estimate(&paths.graph);
        let weight = |arc: FlowArc| match self.place(&paths, arc) {
            Some(_) => Weight::Finite(frequencies.of(arc)),
            None => Weight::Infinite,
        };
        let broken = match ask.ends() {
            Some(ends) => self.given(&paths, ends),
            None => self.breaks(&paths, most, weight)?,
        };
        let dag = PathDag::broken(&paths.graph, |edge| broken.contains(&edge));
        let numbering = Numbering::of(&dag).map_err(|_| Reason::TooMany)?;
        if numbering.total() > most.max(MOST_UNSPLIT) {
            return Err(Reason::TooMany.into());
        }
        Ok(Drawn {
            weights: self.weights(&dag, &weight),
            dead: self.dead(&cuts),
            cuts,
            paths,
            broken,
            dag,
            numbering,
        })
    }

    /// The plan whose counters are these.
    fn planned(&self, drawn: &Drawn, counters: &Counters<'_>) -> Result<Planned, Trouble> {
        let ops = ops(&drawn.dag, counters.increments.all(), |arc| {
            let dead = matches!(arc.way, Way::Exit(node) if drawn.dead[node.index()]);
            !dead && (counters.counts)(arc)
        });
        let numbers = u32::try_from(counters.numbers).map_err(|_| Reason::TooMany)?;
        let wanting = Wanting::new(self, drawn, numbers);
        let wants = wanting.all(&ops, counters.starts)?;
        Ok(Planned {
            entry: self.function.entry().0,
            numbers,
            marks: self.marks(drawn),
            asked: Asked::All,
            selective: false,
            named: Vec::new(),
            stranger: None,
            region: self.region(&wants)?,
            calls: self.blocks.iter().filter_map(Code::call).collect(),
        })
    }

    /// What is broken, so that the paths have no more than so many numbers.
    fn breaks(
        &self,
        paths: &PathGraph,
        most: u64,
        weight: impl Fn(FlowArc) -> Weight,
    ) -> Result<HashSet<EdgeId>, Reason> {
        let total = |broken: &HashSet<EdgeId>| {
            let dag = PathDag::broken(&paths.graph, |edge| broken.contains(&edge));
            Numbering::of(&dag).map_or(u64::MAX, |numbering| numbering.total())
        };
        let weight = |arc: FlowArc| match arc {
            // No path could end with an edge from outside.
            FlowArc::Edge(edge) if matches!(paths.edges[edge.index()], PathEdge::Enter(_)) => {
                Weight::Infinite
            }
            arc => weight(arc),
        };
        let mut best = HashSet::new();
        let mut least = total(&best);
        let mut piece = most;
        while least > most && piece > 0 {
            // As many start at a block as cannot be broken.
            let Ok(split) = split(&paths.graph, piece, weight) else {
                break;
            };
            let broken = split.into_iter().collect();
            let numbers = total(&broken);
            if numbers < least {
                (best, least) = (broken, numbers);
            }
            piece /= 2;
        }
        match least <= most.max(MOST_UNSPLIT) {
            true => Ok(best),
            false => Err(Reason::TooMany),
        }
    }

    /// How often each way runs.
    fn weights(&self, dag: &PathDag, weight: &impl Fn(FlowArc) -> Weight) -> Vec<Weight> {
        let weights = dag.arcs().iter().map(|arc| match arc.way {
            // Starts and ends do something whatever is added there.
            Way::Start(_) | Way::Break(..) | Way::Exit(_) => Weight::Finite(0),
            Way::Edge(edge) => weight(FlowArc::Edge(edge)),
        });
        weights.collect()
    }

    /// Blocks at which the graph ends and no path does, since control does not come back from there.
    fn dead(&self, cuts: &Cuts) -> Vec<bool> {
        let runs_out =
            |edge: &EdgeView| matches!(edge.kind, EdgeKind::TailCall | EdgeKind::JumpInto);
        let leaves = |(code, block): (&Code, BlockView<'_>)| {
            // What else a call leads to is where it lands if something is thrown, and is not seen from here.
            let mut edges = block.successors().filter(runs_out);
            let runs_out =
                edges.any(|edge| !code.keeps_call() || edge.address == block.range().end());
            code.leaves_function() || runs_out
        };
        let leave = self.blocks.iter().zip(self.function.blocks()).map(leaves);
        let dead = leave
            .enumerate()
            .map(|(block, leaves)| !cuts.ends_at(block) && !leaves);
        dead.chain([true]).collect()
    }

    /// Where something can be done on an arc of the graph.
    fn place(&self, paths: &PathGraph, arc: FlowArc) -> Option<Place> {
        let FlowArc::Edge(edge) = arc else {
            return None;
        };
        let to = paths.graph.target(edge);
        let block = to.index();
        let (is_moved, ways_in) = (self.moved.has(block), paths.graph.in_edges(to).count());
        let arrives = || {
            let all_moved = paths
                .graph
                .in_edges(to)
                .all(|hop| hop.node == paths.outside() || self.moved.has(hop.node.index()));
            (is_moved && all_moved).then_some(Place::Entering(block))
        };
        let own = match paths.edges[edge.index()] {
            _ if ways_in == 1 && is_moved => return Some(Place::Start(block)),
            PathEdge::Enter(_) => return arrives(),
            PathEdge::Own(own) => own,
        };
        let from = paths.graph.source(edge).index();
        match own.kind {
            EdgeKind::Fallthrough | EdgeKind::Jump => {
                self.moved.has(from).then_some(Place::End(from))
            }
            EdgeKind::Taken | EdgeKind::NotTaken => {
                self.moved.has(from).then(|| self.way(from, &own))
            }
            _ => arrives(),
        }
    }

    /// What is in the way of doing something on an edge: a block at one of its ends that stays at its place, or one that
    /// leads to the same block.
    fn trouble(&self, paths: &PathGraph, edge: EdgeId) -> Trouble {
        let (from, to) = (paths.graph.source(edge), paths.graph.target(edge));
        let before = paths.graph.in_edges(to).map(|hop| hop.node);
        let stays = |node: &NodeId| *node != paths.outside() && !self.moved.has(node.index());
        let mut ends = [to, from].into_iter().chain(before);
        let found = ends.find(stays);
        found.map_or(Trouble::Reason(Reason::NoPlace), |node| {
            Trouble::Place(node.index())
        })
    }

    /// The way of a branch that an edge is.
    fn way(&self, from: usize, edge: &EdgeView) -> Place {
        match self.blocks[from].branches_to(edge.address) {
            // Both ways may lead there.
            Some(true) if edge.kind != EdgeKind::NotTaken => Place::Taken(from),
            Some(_) => Place::NotTaken(from),
            None => Place::End(from),
        }
    }

    fn marks(&self, drawn: &Drawn) -> Vec<Mark> {
        let Drawn { cuts, paths, .. } = drawn;
        let mut marks = Vec::new();
        let start = |block: usize| self.blocks[block].start().0;
        for edge in self.function.edges() {
            if let (Some(kind), Some(from)) =
                (cuts.kind(&edge), self.function.position_of(edge.from))
            {
                marks.push(Mark::of(kind, start(from), edge.key()));
            }
        }
        let own = (0..)
            .zip(&paths.edges)
            .filter(|(id, _)| drawn.broken.contains(&EdgeId(*id)));
        for (id, edge) in own {
            if let PathEdge::Own(edge) = edge {
                let from = paths.graph.source(EdgeId(id)).index();
                marks.push(Mark::of(MarkKind::Broken, start(from), edge.key()));
            }
        }
        for (block, (followed, dead)) in cuts.followed.iter().zip(&drawn.dead).enumerate() {
            let kind = match *followed {
                false => MarkKind::Unfollowed,
                true if *dead && paths.graph.is_exit(NodeId(block as u32)) => MarkKind::Dead,
                true => continue,
            };
            marks.push(Mark::of(kind, start(block), 0));
        }
        marks
    }

    /// What is executed elsewhere.
    fn region(&self, wants: &[Wants]) -> Result<Region, Trouble> {
        let mut region = Region::default();
        for (block, (code, wants)) in self.blocks.iter().zip(wants).enumerate() {
            if self.moved.has(block) {
                if !code.can(wants) {
                    return Err(Reason::NoFrame.into());
                }
                region.pieces.push(code.whole(wants));
                region.entrances.extend(self.moved.entrance(block));
            } else if *wants != Wants::default() {
                return Err(Trouble::Place(block));
            }
        }
        Ok(region)
    }
}

/// Puts together what is wanted in each block.
struct Wanting<'p, 'f> {
    planner: &'p Planner<'f>,
    drawn: &'p Drawn,
    numbers: u32,
    tag: u32,
    wants: Vec<Wants>,
}

impl<'p, 'f> Wanting<'p, 'f> {
    fn new(planner: &'p Planner<'f>, drawn: &'p Drawn, numbers: u32) -> Self {
        Self {
            wants: vec![Wants::default(); planner.blocks.len()],
            tag: tag(planner.function.entry().0),
            planner,
            drawn,
            numbers,
        }
    }

    fn all(mut self, ops: &Ops, starts: bool) -> Result<Vec<Wants>, Trouble> {
        let Drawn { paths, dag, .. } = self.drawn;
        for (edge, what) in (0..).zip(&paths.edges) {
            if let PathEdge::Enter(block) = what
                && starts
                && self.counts_start(*block)
            {
                self.put_on(EdgeId(edge), &[What::Count(0)])?;
            }
        }
        for id in dag.ids() {
            match dag.arc(id).way {
                Way::Start(_) => {}
                Way::Edge(edge) => {
                    let op = ops.on_way(id).map(|op| What::Path(self.tagged(op)));
                    self.put_on(edge, op.as_slice())?;
                }
                Way::Break(edge, next) => {
                    let start = dag.start_at(next).and_then(|start| ops.on_way(start));
                    let end = self.end(ops.at_end(id), start);
                    self.put_on(edge, &end)?;
                }
                Way::Exit(node) => {
                    let end = self.end(ops.at_end(id), None);
                    for place in self.ways_out(node.index()) {
                        self.put(place, &end);
                    }
                }
            }
        }
        Ok(self.wants)
    }

    /// Whether what starts in a block from outside is counted as started.
    fn counts_start(&self, block: usize) -> bool {
        let function = &self.planner.function;
        let is_entry = self.planner.blocks[block].start() == function.entry();
        let goes_on = |edge: EdgeView| {
            let here = edge.block().and_then(|to| function.position_of(to)) == Some(block);
            here && self.drawn.cuts.kind(&edge) == Some(MarkKind::GoesOn)
        };
        is_entry || !function.edges().any(goes_on)
    }

    fn tagged(&self, op: PathOp) -> PathOp {
        match op {
            PathOp::Set(sum) => PathOp::Set(self.tag.wrapping_add(sum)),
            op => op,
        }
    }

    /// What is done at the end of a path, behind which another may start.
    fn end(&self, end: Option<ops::End>, start: Option<PathOp>) -> Vec<What> {
        let set = start.map(|op| self.tagged(op));
        let next = match set {
            Some(PathOp::Set(value)) => value,
            _ => UNUSED,
        };
        match end {
            None => set.map(What::Path).into_iter().collect(),
            Some(ops::End::At(number)) => {
                let count = What::Count(1 + number);
                [count].into_iter().chain(set.map(What::Path)).collect()
            }
            Some(ops::End::Plus(add)) => vec![What::Path(PathOp::End(PathEnd {
                add: add.wrapping_sub(self.tag),
                first: 1,
                numbers: self.numbers,
                next,
            }))],
        }
    }

    /// Where control leaves the function from a block at which paths end.
    fn ways_out(&self, block: usize) -> Vec<Place> {
        let planner = self.planner;
        let view = planner.function.blocks().nth(block);
        let edges = view.into_iter().flat_map(|view| view.successors());
        let out = edges.filter(|edge| {
            let to = edge.block().and_then(|to| planner.function.position_of(to));
            !to.is_some_and(|to| self.drawn.cuts.followed[to])
        });
        let mut ways: Vec<Place> = out.map(|edge| planner.way(block, &edge)).collect();
        ways.dedup();
        match ways.is_empty() || self.drawn.cuts.ends_at(block) {
            true => vec![Place::End(block)],
            false => ways,
        }
    }

    fn put_on(&mut self, edge: EdgeId, what: &[What]) -> Result<(), Trouble> {
        if what.is_empty() {
            return Ok(());
        }
        let place = self.planner.place(&self.drawn.paths, FlowArc::Edge(edge));
        let place = place.ok_or_else(|| self.planner.trouble(&self.drawn.paths, edge))?;
        self.put(place, what);
        Ok(())
    }

    fn put(&mut self, place: Place, what: &[What]) {
        let (block, slot): (usize, fn(&mut Wants) -> &mut Vec<What>) = match place {
            Place::Entering(block) => (block, |wants| &mut wants.entering),
            Place::Start(block) => (block, |wants| &mut wants.start),
            Place::End(block) => (block, |wants| &mut wants.end),
            Place::Taken(block) => (block, |wants| &mut wants.taken),
            Place::NotTaken(block) => (block, |wants| &mut wants.not_taken),
        };
        slot(&mut self.wants[block]).extend_from_slice(what);
    }
}
