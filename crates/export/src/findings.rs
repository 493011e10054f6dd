//! The marks of a module's plans read into what is known of each of its units, by the units' numbers
//! in the model.
//!
//! Functions are read by themselves, in parallel ([`tomo_profile::units`]). Inference needs a graph
//! that shows all ways in and all edges: an *exact* function that no other one jumps into the middle
//! of. In all others only the probes themselves are believed. A plan of functions is one of entry
//! blocks: a function was entered exactly if the first byte of its entry block ran.
//!
//! Where control may stop is what plans are made for (`Ending::AtStops`): behind calls. Runs that are
//! known to have been cut are read as such. O(m log n) in the size of each function.

use rayon::prelude::*;
use tomo_profile::coverage::Mark;
use tomo_profile::merge::Finding;
use tomo_profile::records::RecordError;
use tomo_profile::units::{Findings as OfFunction, Marked, believe, infer};
use tomo_program::{
    ANALYSIS_VERSION, Address, BlockId, BlockView, EdgeView, FunctionView, Graphs, Model,
    ModelError, Reason, Status,
};
use tomo_wire::plan::{Entry, Level, PlanView, Tactic};

use crate::{Group, Located};

/// What is known of all units of a module.
#[derive(Clone, Debug)]
pub struct Findings {
    /// By block.
    pub blocks: Vec<Finding>,
    /// By edge.
    pub edges: Vec<Finding>,
    /// By function: whether it was entered.
    pub functions: Vec<Finding>,
    /// The finest level that was asked for.
    pub level: Level,
    /// Functions whose marks no execution of the model leaves.
    pub contradictions: usize,
    /// Whether any process was observed. As long as none was, nothing is known.
    pub observed: bool,
    /// Whether runs carried a part of the probes each, so that what is unknown may be what none has carried yet.
    pub by_parts: bool,
    /// Where functions start that run before anything can be armed.
    early: Vec<Address>,
}

/// Why a group of records says nothing about a model.
#[derive(Debug, thiserror::Error)]
pub enum UnitError {
    /// The plan was made by another analysis.
    #[error(
        "observed by another version of tomo (analysis {found}, this is {ANALYSIS_VERSION}): observe it anew"
    )]
    Analysis {
        /// The version that the plan names.
        found: u32,
    },
    /// The plan names what the model does not have.
    #[error("its plan has a unit at {0} that the module has not")]
    Stranger(Address),
    /// The model is damaged.
    #[error("its model {0}")]
    Model(#[from] ModelError),
    /// The plan is damaged.
    #[error(transparent)]
    Record(#[from] RecordError),
}

impl Findings {
    /// What no run at all says about a module: nothing.
    #[must_use]
    pub fn none(located: &Located) -> Self {
        let of = |count: u64| vec![Finding::Unknown; usize::try_from(count).unwrap_or(0)];
        let summary = located.model.summary();
        Self {
            blocks: of(summary.blocks),
            edges: of(summary.edges),
            functions: of(summary.functions),
            level: Level::Function,
            contradictions: 0,
            observed: false,
            by_parts: false,
            early: located.resolvers(),
        }
    }

    /// Adds what the records of a group say.
    ///
    /// # Errors
    /// Where the group's plan does not fit the model.
    pub fn add(&mut self, model: &Model, group: &Group) -> Result<(), UnitError> {
        let plan = PlanView::read(&group.plan).map_err(RecordError::Plan)?;
        let found = plan.header.analysis.get();
        if found != ANALYSIS_VERSION {
            return Err(UnitError::Analysis { found });
        }
        self.level = self.level.max(plan.level);
        self.by_parts |= group.by_parts;
        if group.is_unseen() {
            return Ok(());
        }
        self.begin();
        let graphs = model.graphs()?;
        let mut marks = Marks::none(self);
        for (index, unit) in plan.units.iter().enumerate() {
            let hit = group.marks.hits.get(index).copied();
            marks.set(&graphs, plan.level, unit, hit)?;
        }
        marks.doubt(&graphs, &self.early);
        marks.doubt_what_may_be_entered_within(&graphs);
        match group.by_parts {
            false => self.read(&graphs, &marks, group.kind.cut, None),
            true => self.read(&graphs, &marks.hits(), true, Some(&marks)),
        }
        Ok(())
    }

    /// Once a process was observed, what nobody saw run did not run.
    fn begin(&mut self) {
        if !std::mem::replace(&mut self.observed, true) {
            for findings in [&mut self.functions, &mut self.blocks, &mut self.edges] {
                findings.fill(Finding::default());
            }
        }
    }

    /// Infers from `marks`; units that are silent in `silence`, if that is given, and of which nothing
    /// follows, have not been seen to run.
    fn read(&mut self, graphs: &Graphs<'_>, marks: &Marks, cut: bool, silence: Option<&Marks>) {
        let functions: Vec<_> = graphs.functions().collect();
        let entered = graphs.entered_within();
        let read: Vec<_> = functions
            .par_iter()
            .map(|function| {
                let entered_within = entered.contains(&function.id());
                let found = Reader::of(*function, marks, cut).read(entered_within);
                match silence {
                    Some(silence) => found.silenced(&Reader::of(*function, silence, cut)),
                    None => found,
                }
            })
            .collect();
        let (mut block, mut edge) = (0, 0);
        for (index, found) in read.into_iter().enumerate() {
            block += join(&mut self.blocks[block..], &found.blocks);
            edge += join(&mut self.edges[edge..], &found.edges);
            self.functions[index] = self.functions[index].or(found.entered);
            self.contradictions += usize::from(!found.fits);
        }
    }
}

/// Adds findings to the first ones of `all`; says how many there were.
fn join(all: &mut [Finding], more: &[Finding]) -> usize {
    for (mine, theirs) in all.iter_mut().zip(more) {
        *mine = mine.or(*theirs);
    }
    more.len().min(all.len())
}

/// What the probes of one plan say, by unit.
struct Marks {
    blocks: Vec<Mark>,
    edges: Vec<Mark>,
}

impl Marks {
    fn none(findings: &Findings) -> Self {
        Self {
            blocks: vec![Mark::None; findings.blocks.len()],
            edges: vec![Mark::None; findings.edges.len()],
        }
    }

    /// The hits alone. Where each run carried a part of the probes, one that was not hit does not say
    /// that no run passed it; that the dominators of a hit ran is true all the same.
    fn hits(&self) -> Self {
        Self {
            blocks: self.blocks.iter().map(heard).collect(),
            edges: self.edges.iter().map(heard).collect(),
        }
    }

    /// Of functions that start at `early`, that run before anything is armed, hits alone say something.
    fn doubt(&mut self, graphs: &Graphs<'_>, early: &[Address]) {
        let functions = early.iter();
        for function in functions.filter_map(|&start| graphs.function_starting_at(start)) {
            let blocks = function.blocks().map(|block| block.id().index());
            blocks.for_each(|block| self.blocks[block] = heard(&self.blocks[block]));
            let edges = function.edges().map(|edge| edge.id.index());
            edges.for_each(|edge| self.edges[edge] = heard(&self.edges[edge]));
        }
    }

    /// Control may come into the middle of blocks of functions of which not all is known: by a jump of theirs that led who knows
    /// where, or from elsewhere. That such a block was not seen to start does not say that none of it ran.
    fn doubt_what_may_be_entered_within(&mut self, graphs: &Graphs<'_>) {
        for function in graphs.functions() {
            let Status::Partial(reason) = function.status() else {
                continue;
            };
            let from_elsewhere = matches!(
                reason,
                Reason::HeldLabel | Reason::OrphanedPart | Reason::EnteredInsideInstruction
            );
            let is_hit = |block: BlockView<'_>| self.blocks[block.id().index()] == Mark::Hit;
            if !from_elsewhere && !function.blocks().any(is_hit) {
                continue;
            }
            // What is no more than its first instruction cannot be entered behind that.
            for block in function.blocks().filter(|block| block.instructions() > 1) {
                let mark = &mut self.blocks[block.id().index()];
                *mark = heard(mark);
            }
        }
    }

    /// Notes what the probe of a unit saw; units without one are left as they are.
    fn set(
        &mut self,
        graphs: &Graphs<'_>,
        level: Level,
        unit: &Entry,
        hit: Option<bool>,
    ) -> Result<(), UnitError> {
        let from = Address(unit.from.get());
        let block = graphs.block_at(from).filter(|it| it.address() == from);
        let probe = Tactic::from_number(unit.tactic.get()).is_some_and(Tactic::is_probe);
        let Some(block) = block else {
            // A function of which not even the entry block is known has no probe.
            let known = !probe && graphs.function_starting_at(from).is_some();
            return known.then_some(()).ok_or(UnitError::Stranger(from));
        };
        let mark = match hit.filter(|_| probe) {
            None => return Ok(()),
            Some(false) => Mark::Silent,
            Some(true) => Mark::Hit,
        };
        if unit.is_edge.get() == 0 || level != Level::Edge {
            self.blocks[block.id().index()] = mark;
            return Ok(());
        }
        let to = Address(unit.to.get());
        let mut edges = block.successors().filter(|edge| edge.address == to);
        match (edges.next(), edges.next()) {
            (Some(edge), None) => self.edges[edge.id.index()] = mark,
            // Parallel edges look the same in a plan; what it says is of both together.
            (Some(_), Some(_)) => {}
            (None, _) => return Err(UnitError::Stranger(to)),
        }
        Ok(())
    }
}

/// A mark, if it is a hit.
fn heard(mark: &Mark) -> Mark {
    match mark {
        Mark::Hit => Mark::Hit,
        Mark::Silent | Mark::None => Mark::None,
    }
}

/// What is known of one function.
struct Found {
    blocks: Vec<Finding>,
    edges: Vec<Finding>,
    entered: Finding,
    fits: bool,
}

impl Found {
    /// What was looked at, was silent, and does not follow from hits: not seen to run; nor was an edge of
    /// which one end was not.
    fn silenced(mut self, reader: &Reader<'_, '_>) -> Self {
        let quiet = |finding: &mut Finding, mark: &Mark| {
            if *finding == Finding::Unknown && *mark == Mark::Silent {
                *finding = Finding::NotRun;
            }
        };
        let blocks = self.blocks.iter_mut().zip(reader.blocks);
        blocks.for_each(|(finding, mark)| quiet(finding, mark));
        let edges = self.edges.iter_mut().zip(&reader.edge_marks);
        edges.for_each(|(finding, mark)| quiet(finding, mark));
        let missed = |block: BlockId| {
            let finding = self.blocks.get(block.index().wrapping_sub(reader.first));
            finding.is_some_and(|it| it.ran() == Some(false))
        };
        for (finding, edge) in self.edges.iter_mut().zip(&reader.edges) {
            let target = edge.block().filter(|_| reader.is_inner(edge));
            if *finding == Finding::Unknown && (missed(edge.from) || target.is_some_and(missed)) {
                *finding = Finding::NotRunInferred;
            }
        }
        let entry = reader.function.entry_block();
        let entry = entry.and_then(|entry| self.blocks.get(reader.position(entry)));
        if let (Finding::Unknown, Some(Finding::NotRun)) = (self.entered, entry) {
            self.entered = Finding::NotRun;
        }
        self
    }
}

struct Reader<'g, 'm> {
    function: FunctionView<'g>,
    cut: bool,
    /// Number of the first block.
    first: usize,
    blocks: &'m [Mark],
    edges: Vec<EdgeView>,
    edge_marks: Vec<Mark>,
}

impl<'g, 'm> Reader<'g, 'm> {
    fn of(function: FunctionView<'g>, marks: &'m Marks, cut: bool) -> Self {
        let first = function
            .blocks()
            .next()
            .map_or(0, |block| block.id().index());
        let blocks = marks.blocks.get(first..first + function.block_count());
        let edges: Vec<_> = function.edges().collect();
        let mark = |edge: &EdgeView| marks.edges.get(edge.id.index()).copied();
        Self {
            function,
            cut,
            first,
            blocks: blocks.unwrap_or_default(),
            edge_marks: edges
                .iter()
                .map(|edge| mark(edge).unwrap_or(Mark::None))
                .collect(),
            edges,
        }
    }

    fn read(&self, entered_within: bool) -> Found {
        let is_exact = self.function.status() == Status::Exact && !entered_within;
        let entry = self.function.entry_block().map(|it| self.position(it));
        if self
            .edge_marks
            .iter()
            .chain(self.blocks)
            .all(|mark| *mark == Mark::None)
        {
            return self.all(Finding::Unknown, Finding::Unknown);
        }
        // Most functions of most programs: the entry did not run, so nothing did.
        let silent = entry.is_some_and(|entry| self.blocks.get(entry) == Some(&Mark::Silent));
        let hit = self
            .edge_marks
            .iter()
            .chain(self.blocks)
            .any(|mark| *mark == Mark::Hit);
        if is_exact && silent && !hit {
            return self.all(Finding::NotRunInferred, Finding::NotRun);
        }
        let found = match is_exact {
            true => self.infer(),
            false => self.believe(),
        };
        self.with_all_edges(found, entry, entered_within)
    }

    fn position(&self, block: BlockView<'_>) -> usize {
        block.id().index().wrapping_sub(self.first)
    }

    /// Units without a probe are `inferred`, those with one that was not hit are `silent`.
    fn all(&self, inferred: Finding, silent: Finding) -> Found {
        let finding = |mark: &Mark| match mark {
            Mark::Silent => silent,
            _ => inferred,
        };
        let blocks: Vec<_> = self.blocks.iter().map(finding).collect();
        let entry = self.function.entry_block().map(|it| self.position(it));
        Found {
            entered: entry
                .and_then(|entry| blocks.get(entry).copied())
                .unwrap_or(Finding::Unknown),
            edges: self.edge_marks.iter().map(finding).collect(),
            blocks,
            fits: true,
        }
    }

    /// The marks of the edges that stay inside.
    fn inner_marks(&self) -> Vec<Mark> {
        let all = self.edges.iter().zip(&self.edge_marks);
        all.filter(|(edge, _)| self.is_inner(edge))
            .map(|(_, mark)| *mark)
            .collect()
    }

    /// Whether an edge is one of the function's graph; the same rule as
    /// [`FunctionView::flow_graph`] has.
    fn is_inner(&self, edge: &EdgeView) -> bool {
        edge.block()
            .is_some_and(|block| self.function.position_of(block).is_some())
    }

    fn infer(&self) -> OfFunction {
        let Some(graph) = self.function.flow_graph() else {
            return self.believe();
        };
        let mut stops = vec![false; self.blocks.len()];
        for block in self.function.may_stop_behind() {
            let block = block.index().wrapping_sub(self.first);
            if let Some(stop) = stops.get_mut(block) {
                *stop = true;
            }
        }
        let edges = self.inner_marks();
        let marked = Marked {
            blocks: self.blocks,
            edges: &edges,
        };
        infer(&graph, |block| stops[block], self.cut, marked)
    }

    fn believe(&self) -> OfFunction {
        let edges = self.inner_marks();
        let inner = self.edges.iter().filter(|edge| self.is_inner(edge));
        let node = |block| self.function.node(block);
        let ends = inner.filter_map(|edge| Some((node(edge.from)?, node(edge.block()?)?)));
        let marked = Marked {
            blocks: self.blocks,
            edges: &edges,
        };
        believe(ends, marked)
    }

    /// Puts the edges that leave the function among the others.
    fn with_all_edges(
        &self,
        found: OfFunction,
        entry: Option<usize>,
        entered_within: bool,
    ) -> Found {
        let mut inner = found.edges.into_iter();
        let outer = |edge: &EdgeView, mark: Mark| match mark {
            Mark::Hit => Finding::Ran,
            Mark::Silent => Finding::NotRun,
            Mark::None => {
                let from = edge.from.index().wrapping_sub(self.first);
                match found.blocks.get(from).copied() {
                    Some(Finding::NotRun) => Finding::NotRunInferred,
                    Some(finding) if finding.ran() == Some(false) => finding,
                    _ => Finding::Unknown,
                }
            }
        };
        let all = self.edges.iter().zip(&self.edge_marks);
        let edges = all.map(|(edge, &mark)| match self.is_inner(edge) {
            true => inner.next().unwrap_or(Finding::Unknown),
            false => outer(edge, mark),
        });
        let edges = edges.collect();
        let entered = entry.and_then(|entry| found.blocks.get(entry).copied());
        let some_ran = found.blocks.iter().any(|block| block.ran() == Some(true));
        Found {
            entered: match entered.unwrap_or(Finding::Unknown) {
                // Its code ran, so somebody entered it, unless others jump into its middle.
                Finding::Unknown if some_ran && !entered_within => Finding::RanInferred,
                known => known,
            },
            edges,
            fits: found.fits,
            blocks: found.blocks,
        }
    }
}
