//! What the probes of one plan say of each unit.

use fixedbitset::FixedBitSet;
use tomo_profile::coverage::Mark;
use tomo_program::{Address, BlockView, FunctionView, Graphs, Reason, Status};
use tomo_wire::plan::{Entry, Level, PlanView, Tactic};

use super::UnitError;

/// The number of the probe that observes each unit, if one does.
pub(super) struct Probes {
    blocks: Vec<Option<usize>>,
    edges: Vec<Option<usize>>,
}

impl Probes {
    /// Those of a plan for a module of so many blocks and edges.
    pub(super) fn of(
        plan: &PlanView<'_>,
        graphs: &Graphs<'_>,
        (blocks, edges): (usize, usize),
    ) -> Result<Self, UnitError> {
        let mut probes = Self {
            blocks: vec![None; blocks],
            edges: vec![None; edges],
        };
        let all = plan.header.probes.get() as usize;
        for (index, unit) in plan.units.iter().enumerate() {
            let is_probe = Tactic::from_number(unit.tactic.get()).is_some_and(Tactic::is_probe);
            let probe = (is_probe && index < all).then_some(index);
            probes.set(graphs, plan.level, unit, probe)?;
        }
        Ok(probes)
    }

    /// Notes the probe of a unit; units without one are left as they are.
    fn set(
        &mut self,
        graphs: &Graphs<'_>,
        level: Level,
        unit: &Entry,
        probe: Option<usize>,
    ) -> Result<(), UnitError> {
        let from = Address(unit.from.get());
        let block = graphs.block_at(from).filter(|it| it.address() == from);
        let Some(block) = block else {
            // A function of which not even the entry block is known has no probe.
            let known = probe.is_none() && graphs.function_starting_at(from).is_some();
            return known.then_some(()).ok_or(UnitError::Stranger(from));
        };
        if probe.is_none() {
            return Ok(());
        }
        if unit.is_edge.get() == 0 || level != Level::Edge {
            self.blocks[block.id().index()] = probe;
            return Ok(());
        }
        let to = Address(unit.to.get());
        let mut edges = block.successors().filter(|edge| edge.address == to);
        match (edges.next(), edges.next()) {
            (Some(edge), None) => self.edges[edge.id.index()] = probe,
            // Parallel edges look the same in a plan; what it says is of both together.
            (Some(_), Some(_)) => {}
            (None, _) => return Err(UnitError::Stranger(to)),
        }
        Ok(())
    }

    /// The probes of a function's blocks, then those of its edges.
    pub(super) fn of_function(&self, function: FunctionView<'_>) -> Vec<Option<usize>> {
        let blocks = function
            .blocks()
            .map(|block| self.blocks[block.id().index()]);
        let edges = function.edges().map(|edge| self.edges[edge.id.index()]);
        blocks.chain(edges).collect()
    }

    /// What they say by these hits.
    pub(super) fn marks(&self, hits: &FixedBitSet) -> Marks {
        let all = |probes: &[Option<usize>]| probes.iter().map(|it| mark(*it, hits)).collect();
        Marks {
            blocks: all(&self.blocks),
            edges: all(&self.edges),
        }
    }
}

/// What a unit's probe says by these hits.
pub(super) fn mark(probe: Option<usize>, hits: &FixedBitSet) -> Mark {
    match probe.map(|probe| hits.contains(probe)) {
        None => Mark::None,
        Some(false) => Mark::Silent,
        Some(true) => Mark::Hit,
    }
}

/// What the probes of one plan say, by unit.
pub(super) struct Marks {
    pub(super) blocks: Vec<Mark>,
    pub(super) edges: Vec<Mark>,
}

impl Marks {
    /// The hits alone. Where each run carried a part of the probes, one that was not hit does not say
    /// that no run passed it; that the dominators of a hit ran is true all the same.
    pub(super) fn hits(&self) -> Self {
        Self {
            blocks: self.blocks.iter().map(heard).collect(),
            edges: self.edges.iter().map(heard).collect(),
        }
    }

    /// Of functions that start at `early`, that run before anything is armed, hits alone say something.
    pub(super) fn doubt(&mut self, graphs: &Graphs<'_>, early: &[Address]) {
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
    pub(super) fn doubt_what_may_be_entered_within(&mut self, graphs: &Graphs<'_>) {
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
}

/// A mark, if it is a hit.
fn heard(mark: &Mark) -> Mark {
    match mark {
        Mark::Hit => Mark::Hit,
        Mark::Silent | Mark::None => Mark::None,
    }
}
