//! The exact trace of each thread, from the tracks that it left in one run or in several.
//!
//! Source: DPT §4.3, Figure 8, on our criterion (`tomo_plan::witnesses`), as in [`crate::reconstruction`]; but of real
//! programs. There calls are not known to come back, callbacks, unwinders, long jumps and signal handlers come
//! out of code that nobody traces, and a run ends anywhere. So
//!
//! - what happens in a function between two calls is told by the next events *of that function*, which by the
//!   criterion for loose functions needs no belief about calls;
//! - how often a loop that a register counts went round is told by what was in the register before and behind it;
//! - who goes on after code that is not traced is told by *arrivals*, all of which the first run records.
//!
//! The thread is run along: every event that is passed must be the next one of each run that holds it, so what
//! comes out agrees with all of them, and what does not fit ends the trace and is named.
//!
//! | part | file |
//! |---|---|
//! | the chart as tables, and what tells ways apart | this |
//! | the events of one thread in one run | `tracing/lane.rs` |
//! | the thread run along | `tracing/walk.rs` |
//! | who waits on its stack | `tracing/waiting.rs` |
//! | what may not have happened | `tracing/held.rs` |
//! | how that ends | `tracing/ended.rs` |

mod ended;
mod held;
mod lane;
mod waiting;
mod walk;

use tomo_graph::{EdgeId, FlowGraph, NodeId};
use tomo_plan::witnesses::{
    Criterion, Distribution, Ends, FunctionId, Loose, Place, Program, WitnessId,
};
use tomo_wire::tracing::{Block, ChartView, NONE, Way, block, way};

use crate::reconstruction::Decider;

pub use ended::{Divergence, Ended};
pub use lane::{Lane, Thread};
pub use walk::{Cut, Sink, walk};

/// Why a chart cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AtlasError {
    /// Its functions are no graphs.
    #[error("the chart's functions are no graphs")]
    Malformed,
    /// Its witnesses do not tell what happens.
    #[error("the chart's witnesses do not tell what happens: {0}")]
    Undecided(tomo_plan::witnesses::Undecided),
}

/// What is known of a program that was traced.
#[derive(Debug)]
pub struct Atlas<'c> {
    /// The chart.
    pub chart: ChartView<'c>,
    deciders: Vec<Option<Decider>>,
    /// Per block its function.
    functions: Vec<u32>,
    /// Where blocks start and end, and which they are, ascending.
    places: Vec<(u64, u64, u32)>,
    /// Per number of a chart's witness, its function, or the block that it says is arrived at.
    witnesses: Vec<Witness>,
    profiles: usize,
}

/// Ways that witnesses do not tell apart.
const OUTER: u32 = way::TAIL | way::PAD | way::WHOLE_ROUND;

/// What a number in a track means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Witness {
    /// A way or node of this function.
    Own { function: u32 },
    /// An arrival at this block.
    Arrival { block: u32, with_stack: bool },
    /// A way of this function, with what was in a register.
    Value { function: u32 },
    /// Nothing.
    Unknown,
}

impl<'c> Atlas<'c> {
    /// Prepares the tables. O(program).
    ///
    /// # Errors
    /// Where the chart contradicts itself.
    pub fn of(chart: ChartView<'c>) -> Result<Self, AtlasError> {
        let mut functions = vec![0; chart.blocks.len()];
        for (number, function) in (0u32..).zip(chart.functions) {
            let first = function.first.get() as usize;
            functions[first..first + function.blocks.get() as usize].fill(number);
        }
        let blocks = (0u32..).zip(chart.blocks).map(|(number, block)| {
            let start = block.address.get();
            (start, start.wrapping_add(block.size.get().into()), number)
        });
        let mut places: Vec<_> = blocks.collect();
        places.sort_unstable();
        let mut atlas = Self {
            chart,
            deciders: Vec::new(),
            functions,
            places,
            witnesses: vec![Witness::Unknown; chart.witnesses.len()],
            profiles: chart.header.profiles.get() as usize,
        };
        let sites = atlas.name_witnesses();
        atlas.deciders(&sites)?;
        Ok(atlas)
    }

    /// How many runs belong together.
    #[must_use]
    pub fn profiles(&self) -> usize {
        self.profiles
    }

    /// The number of the function that a block is part of.
    #[must_use]
    pub fn function_of(&self, block: u32) -> u32 {
        self.functions[block as usize]
    }

    /// The block of which an instruction is at this address; and whether it is not its first one.
    fn block_at(&self, address: u64) -> Option<(u32, bool)> {
        let behind = self.places.partition_point(|(start, ..)| *start <= address);
        let (start, end, block) = *self.places.get(behind.checked_sub(1)?)?;
        (address < end).then_some((block, start < address))
    }

    fn block(&self, block: u32) -> &'c Block {
        &self.chart.blocks[block as usize]
    }

    /// The ways out of a block within its function that its witnesses tell apart, by their numbers among all of its ways.
    fn inner(&self, block: u32) -> impl Iterator<Item = (usize, &'c Way)> + use<'c> {
        let ways = self.chart.ways_of(block).iter().enumerate();
        ways.filter(|(_, way)| way.flags.get() & OUTER == 0)
    }

    /// Where a way leads, as witnesses see it: who comes into a loop that a register counts may be where its rounds begin before
    /// that is left.
    fn target(&self, way: &Way) -> u32 {
        let value = self.chart.value(way.value.get());
        match value.filter(|value| !value.leaves()) {
            Some(value) => value.head.get(),
            None => way.to.get(),
        }
    }

    /// How many words follow that with the number of a witness.
    fn following(&self, word: u32) -> usize {
        let witness = self.witnesses.get(word.wrapping_sub(1) as usize);
        match witness {
            Some(Witness::Arrival { with_stack, .. }) => usize::from(*with_stack),
            Some(Witness::Value { .. }) => 2,
            _ => 0,
        }
    }

    /// Notes what each witness means; gives the places of those on ways and nodes, with their numbers.
    fn name_witnesses(&mut self) -> Vec<(FunctionId, Place, u32)> {
        let mut sites = Vec::new();
        for (number, function) in (0u32..).zip(self.chart.functions) {
            let first = function.first.get();
            let mut edge = 0;
            for at in 0..function.blocks.get() {
                let row = self.block(first + at);
                let mut own = |place, witness: u32| {
                    if witness != NONE {
                        self.witnesses[witness as usize] = Witness::Own { function: number };
                        sites.push((FunctionId(number), place, witness));
                    }
                };
                own(Place::Node(NodeId(at)), row.witness.get());
                for way in self.chart.ways_of(first + at) {
                    if way.flags.get() & OUTER == 0 {
                        own(Place::Edge(EdgeId(edge)), way.witness.get());
                        edge += 1;
                    }
                }
                for way in self.chart.ways_of(first + at) {
                    if self.chart.value(way.value.get()).is_some() {
                        let value = Witness::Value { function: number };
                        self.witnesses[way.value.get() as usize] = value;
                    }
                }
                if row.arrival.get() != NONE {
                    self.witnesses[row.arrival.get() as usize] = Witness::Arrival {
                        block: first + at,
                        with_stack: row.flags.get() & block::WITH_STACK != 0,
                    };
                }
            }
        }
        sites.sort_unstable();
        sites
    }

    /// Finds out what tells ways apart.
    fn deciders(&mut self, sites: &[(FunctionId, Place, u32)]) -> Result<(), AtlasError> {
        let loose: Option<Vec<_>> = (0..self.chart.functions.len())
            .map(|number| self.loose(number))
            .collect();
        let program = loose.and_then(|loose| Program::of_loose(loose).ok());
        let program = match program {
            Some(program) => program,
            None if self.chart.functions.is_empty() => return Ok(()),
            None => return Err(AtlasError::Malformed),
        };
        let holds = |witness: u32, profile: usize| {
            self.chart.witnesses[witness as usize].get() >> profile & 1 != 0
        };
        let profile = |profile: usize| {
            let held = sites.iter().filter(|site| holds(site.2, profile));
            (profile as u32, held.map(|site| (site.0, site.1)).collect())
        };
        let profiles: Vec<(u32, Vec<(FunctionId, Place)>)> =
            (0..self.profiles).map(profile).collect();
        let distribution = Distribution::new(&profiles);
        // Heads name witnesses as tracks do.
        let number = |witness: WitnessId| {
            let (function, place) = distribution.sites()[witness.index()];
            let at = sites.binary_search_by_key(&(function, place), |site| (site.0, site.1));
            at.map_or(NONE, |at| sites[at].2)
        };
        let criterion = Criterion::of(&program, &distribution, Ends::Returns);
        let criterion = criterion.map_err(AtlasError::Undecided)?;
        self.deciders.resize_with(self.chart.blocks.len(), || None);
        for (id, function) in program.ids().zip(self.chart.functions) {
            for (node, decision) in criterion.forks(id) {
                let at = function.first.get() as usize + node.index();
                self.deciders[at] = Some(Decider::named(decision, number));
            }
        }
        Ok(())
    }

    fn loose(&self, number: usize) -> Option<(FlowGraph, Loose)> {
        let function = &self.chart.functions[number];
        let (first, count) = (function.first.get(), function.blocks.get());
        let node = |block: u32| NodeId(block.wrapping_sub(first));
        let (mut edges, mut exits, mut loose) = (Vec::new(), Vec::new(), Loose::default());
        for block in first..first + count {
            let flags = self.block(block).flags.get();
            let ways = self.chart.ways_of(block);
            let inner = self.inner(block);
            edges.extend(inner.map(|(_, way)| (node(block), node(self.target(way)))));
            let mut out = ways.iter().map(|way| way.flags.get());
            if flags & (block::RETURNS | block::LEAVES) != 0
                || out.any(|flags| flags & way::TAIL != 0)
            {
                exits.push(node(block));
            }
            if flags & (block::CALLS | block::CALLS_ON | block::CALLS_AWAY) != 0 {
                loose.cuts.push(node(block));
            }
            // Landing pads, and where other functions jump to.
            let arrives = self.block(block).arrival.get() != NONE;
            if arrives && flags & block::ENTRY == 0 {
                loose.landings.push(node(block));
            }
        }
        let entry = node(function.entry.get());
        let graph = FlowGraph::new(count as usize, entry, edges).ok()?;
        Some((graph.with_exits(exits).ok()?, loose))
    }
}
