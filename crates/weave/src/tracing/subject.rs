//! A function that may be traced: its graph, its code, and how its blocks end.

use std::collections::HashMap;

use tomo_graph::{EdgeId, FlowArc, FlowGraph, NodeId, Weight};
use tomo_plan::counting::Frequencies;
use tomo_plan::witnesses::{Loose, Place};
use tomo_program::{Address, EdgeKind, FunctionView, Resolution, ReturnsAgain, Status};

use super::rounds::{self, Loops, Round};
use super::{Collect, Kind, Tracing, breakpoints};
use crate::place::Surroundings;
use crate::staying::action::What;
use crate::staying::code::{Code, Wants};
use crate::staying::live::Liveness;
use crate::staying::region::{Passage, Region};
use crate::staying::whole::MovedBlocks;

/// How a block ends, as far as control leaves the function there.
#[derive(Clone, Debug, Default)]
pub(super) struct End {
    pub(super) calls: bool,
    /// Where a call leads that leads to the callee's own region if there is one.
    pub(super) callee: Option<Address>,
    /// Whether that may come back a second time.
    pub(super) twice: bool,
    /// The block behind the call.
    pub(super) behind: Option<usize>,
    pub(super) returns: bool,
    /// By a jump whose target is not known, not code of a function, or the loader's to choose.
    pub(super) leaves: bool,
    /// By jumps to other functions.
    pub(super) tail: Vec<Address>,
    /// Where it lands if what it calls throws.
    pub(super) pads: Vec<usize>,
}

/// A way within the function.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub(super) from: usize,
    pub(super) to: usize,
    /// Why; `None` for two reasons at once.
    pub(super) kind: Option<EdgeKind>,
    address: Address,
    pub(super) frequency: u64,
}

impl Edge {
    pub(super) fn is_taken(&self) -> bool {
        self.kind == Some(EdgeKind::Taken)
    }

    /// Whether it leads from a call to what is behind.
    pub(super) fn is_behind(&self) -> bool {
        self.kind == Some(EdgeKind::CallFallthrough)
    }

    /// Whether control passes by the address of its target, also from a block that is moved.
    pub(super) fn is_by_address(&self) -> bool {
        let direct = [
            EdgeKind::Fallthrough,
            EdgeKind::Taken,
            EdgeKind::NotTaken,
            EdgeKind::Jump,
        ];
        self.kind.is_some_and(|kind| !direct.contains(&kind))
    }
}

/// The function.
pub(super) struct Subject<'f> {
    pub(super) function: FunctionView<'f>,
    pub(super) codes: Vec<Code<'f>>,
    pub(super) moved: MovedBlocks,
    pub(super) graph: FlowGraph,
    /// But for those that only whole rounds of counted loops pass.
    pub(super) edges: Vec<Edge>,
    pub(super) loops: Loops,
    pub(super) ends: Vec<End>,
    /// How often each block runs.
    frequencies: Vec<u64>,
    /// Blocks at which other functions jump into this one.
    foreign: Vec<usize>,
    collect: Collect,
}

impl<'f> Subject<'f> {
    /// `None` where too little is known of the function. Loops that can be are counted if `counts`.
    pub(super) fn of(
        around: &Surroundings<'f>,
        live: &Liveness<'_>,
        function: &FunctionView<'f>,
        (tracing, counts): (&Tracing<'_>, bool),
    ) -> Option<Self> {
        if function.status() != Status::Exact {
            return None;
        }
        let counting = function.counting_graph()?;
        let frequencies = match tracing.weights.get(&function.id()) {
            Some(measured) => measured.clone(),
            None => Frequencies::estimate(&counting),
        };
        let codes = function
            .blocks()
            .map(|block| Code::of(around, live, &block));
        let codes: Vec<Code<'f>> = codes.collect::<Option<_>>()?;
        let mut ends = ends(function, &codes)?;
        let edges = edges(function, &codes, &frequencies, &mut ends)?;
        let leaves = |end: &End| end.returns || end.leaves || !end.tail.is_empty();
        let exits = (0u32..).zip(&ends).filter(|(_, end)| leaves(end));
        let entry = function.position_of(function.entry_block()?.id())?;
        let moved = MovedBlocks::of(around, function, &codes);
        let foreign = |block: &usize| around.ways.foreign.has(codes[*block].start());
        let foreign: Vec<usize> = (0..codes.len()).filter(foreign).collect();
        let (edges, loops) = match counts {
            true => {
                let pads = ends.iter().flat_map(|end| &end.pads);
                let arrivals: Vec<usize> = pads.chain(&foreign).copied().chain([entry]).collect();
                let ground = rounds::Ground {
                    codes: &codes,
                    edges: &edges,
                    ends: &ends,
                    moved: &moved,
                    arrivals: &arrivals,
                };
                let rounds = ground.rounds();
                Loops::of(edges, rounds)
            }
            false => (edges, Loops::default()),
        };
        let graph = FlowGraph::new(
            codes.len(),
            NodeId(entry as u32),
            edges
                .iter()
                .enumerate()
                .map(|(at, edge)| (node(edge.from), node(loops.target(at, edge)))),
        );
        let graph = graph
            .ok()?
            .with_exits(exits.map(|(at, _)| NodeId(at)))
            .ok()?;
        let frequency = |block: usize| frequencies.of(FlowArc::Edge(EdgeId(block as u32)));
        let subject = Self {
            function: *function,
            moved,
            frequencies: (0..codes.len()).map(frequency).collect(),
            foreign,
            graph,
            edges,
            loops,
            ends,
            codes,
            collect: tracing.collect,
        };
        subject.has_one_way_out().then_some(subject)
    }

    /// Whether it is clear, for each block, where control goes that leaves the function there.
    fn has_one_way_out(&self) -> bool {
        self.ends.iter().all(|end| {
            let ways = usize::from(end.returns) + usize::from(end.leaves) + end.tail.len();
            ways <= 1 && !(end.calls && ways > 0)
        })
    }

    pub(super) fn entry(&self) -> Address {
        self.function.entry()
    }

    /// The number of the block in which it is entered.
    pub(super) fn entry_block(&self) -> usize {
        tomo_graph::Graph::entry(&self.graph).index()
    }

    /// Where its blocks start, by number.
    pub(super) fn starts(&self) -> impl Iterator<Item = (usize, Address)> {
        self.codes.iter().map(Code::start).enumerate()
    }

    /// The function as its witnesses see it.
    pub(super) fn loose(&self) -> (FlowGraph, Loose) {
        let calls = self.ends.iter().enumerate().filter(|(_, end)| end.calls);
        let pads = self.ends.iter().flat_map(|end| &end.pads);
        let mut landings: Vec<NodeId> = pads.chain(&self.foreign).map(|at| node(*at)).collect();
        landings.sort_unstable();
        landings.dedup();
        let loose = Loose {
            cuts: calls.map(|(at, _)| node(at)).collect(),
            landings,
        };
        (self.graph.clone(), loose)
    }

    /// What a witness costs at this place.
    pub(super) fn weight(&self, place: Place, kind: Kind) -> Weight {
        let finite = |frequency: u64, cost: u64| Weight::Finite(frequency.saturating_mul(cost));
        if self.collect == Collect::Breakpoint {
            return self.weight_of_breakpoint(place, kind);
        }
        if self.loops.has(place) {
            return Weight::Infinite;
        }
        match place {
            Place::Node(at) if kind != Kind::Edge && self.moved.has(at.index()) => {
                let cost = self.codes[at.index()].cost_of_word();
                finite(self.frequencies[at.index()], cost)
            }
            Place::Edge(at) if kind != Kind::Node => {
                let edge = &self.edges[at.index()];
                let code = &self.codes[edge.from];
                let cost = match edge.kind {
                    Some(EdgeKind::Taken) => code.cost_of_word_on(true, edge.address),
                    Some(EdgeKind::NotTaken) => code.cost_of_word_on(false, edge.address),
                    _ => None,
                };
                let cost = cost.filter(|_| self.moved.has(edge.from));
                cost.map_or(Weight::Infinite, |cost| finite(edge.frequency, cost))
            }
            _ => Weight::Infinite,
        }
    }

    /// What it costs to count the rounds of a loop.
    pub(super) fn weight_of_values(&self, round: &Round) -> u64 {
        let each = round.doors.iter().map(|door| {
            let edge = &self.edges[door.way];
            let cost = self.codes[edge.from].cost_of_value(rounds::branch(edge), round.register);
            edge.frequency.saturating_mul(cost)
        });
        each.fold(0, u64::saturating_add)
    }

    /// What a breakpoint costs: how often it is met. At a branch it is met whichever way that goes.
    fn weight_of_breakpoint(&self, place: Place, kind: Kind) -> Weight {
        match place {
            Place::Node(at)
                if kind != Kind::Edge && breakpoints::may_be_at(&self.codes[at.index()], 0) =>
            {
                Weight::Finite(self.frequencies[at.index()])
            }
            Place::Edge(at) if kind != Kind::Node => {
                let edge = &self.edges[at.index()];
                let branches = matches!(edge.kind, Some(EdgeKind::Taken | EdgeKind::NotTaken));
                match branches && self.codes[edge.from].has_branch() {
                    true => Weight::Finite(self.frequencies[edge.from]),
                    false => Weight::Infinite,
                }
            }
            _ => Weight::Infinite,
        }
    }

    /// Where it leads to other functions directly, and how often.
    pub(super) fn called(&self) -> impl Iterator<Item = (Address, u64)> {
        let ends = self.ends.iter().zip(&self.frequencies);
        ends.flat_map(|(end, &times)| {
            let callee = end.callee.filter(|_| end.calls);
            let away = end.tail.iter().copied().chain(callee);
            away.map(move |to| (to, times))
        })
    }

    /// What it costs to record who arrives at a block: how often it ran, but for those who came there directly, from
    /// within or by `calls`.
    pub(super) fn weight_of_arrivals(&self, block: usize, calls: &HashMap<Address, u64>) -> u64 {
        let code = &self.codes[block];
        let times = self.frequencies[block];
        if self.collect == Collect::Breakpoint {
            return times;
        }
        let inside = self.edges.iter().filter(|edge| edge.to == block);
        let directly = inside
            .filter(|edge| !edge.is_by_address())
            .map(|edge| edge.frequency)
            .chain(calls.get(&code.start()).copied());
        let directly = directly.fold(0, u64::saturating_add);
        let times = times.saturating_sub(directly);
        times.saturating_mul(code.cost_of_word())
    }

    /// The blocks at which control arrives from code that is not traced, or perhaps so; what `is_closed` says of a
    /// call is whether it comes back from a traced function.
    pub(super) fn arrivals(
        &self,
        around: &Surroundings<'_>,
        is_closed: impl Fn(&End) -> bool,
    ) -> Vec<usize> {
        debug_assert!(
            self.foreign
                .iter()
                .all(|at| around.ways.outer.has(self.codes[*at].start()))
        );
        let mut arrivals = vec![self.entry_block()];
        arrivals.extend(&self.foreign);
        for end in &self.ends {
            arrivals.extend(&end.pads);
            if end.calls && !is_closed(end) {
                arrivals.extend(end.behind);
            }
        }
        arrivals.sort_unstable();
        arrivals.dedup();
        arrivals
    }

    /// Whether who arrives at a block can be seen.
    pub(super) fn is_seen_arriving(&self, block: usize) -> bool {
        match self.collect {
            Collect::Detour => self.moved.has(block) && self.moved.entrance(block).is_some(),
            Collect::Breakpoint => breakpoints::may_be_at(&self.codes[block], 0),
        }
    }

    /// All of it that is moved, doing what is wanted in blocks and on arriving.
    pub(super) fn region(
        &self,
        wants: &[Wants],
        arrival: impl Fn(usize) -> Option<What>,
    ) -> Region {
        let mut region = Region::default();
        for (at, code) in self.codes.iter().enumerate() {
            if !self.moved.has(at) {
                continue;
            }
            region.pieces.push(code.whole(&wants[at]));
            if let Some(entrance) = self.moved.entrance(at) {
                region.entrances.push(entrance);
                region.passages.extend(arrival(at).map(|what| Passage {
                    from: code.start(),
                    to: code.start(),
                    actions: vec![code.arrival(what)],
                }));
            }
        }
        region
    }
}

fn node(at: usize) -> NodeId {
    NodeId(at as u32)
}

/// How the blocks end, but for the ways.
fn ends(function: &FunctionView<'_>, codes: &[Code<'_>]) -> Option<Vec<End>> {
    let mut ends = vec![End::default(); codes.len()];
    for (end, code) in ends.iter_mut().zip(codes) {
        end.calls = code.keeps_call();
        end.callee = code.call().map(|call| call.callee);
        end.returns = code.returns();
    }
    for call in function.calls() {
        let end = &mut ends[function.position_of(call.block())?];
        // A child with memory of its own takes nothing away from what is traced here.
        end.twice = call
            .returns_again()
            .is_some_and(|how| how != ReturnsAgain::Copied);
    }
    for jump in function.indirect_jumps() {
        let end = &mut ends[function.position_of(jump.block())?];
        match jump.resolution() {
            Resolution::TailCall => end.leaves = true,
            open if open.is_open() => return None,
            _ => {}
        }
    }
    Some(ends)
}

/// Whether a jump that is known to lead `to` another function does so by a stub of the linker's: the loader may put another
/// function of that name there.
fn jumps_by_stub(code: &Code<'_>, to: Address) -> bool {
    code.last_instruction().is_some_and(|last| {
        let is_direct = last.is_jcc_short_or_near() || last.is_jmp_short_or_near();
        is_direct && ![last.near_branch_target(), last.next_ip()].contains(&to.0)
    })
}

/// The ways within the function; others are noted at the blocks' ends.
fn edges(
    function: &FunctionView<'_>,
    codes: &[Code<'_>],
    frequencies: &Frequencies,
    ends: &mut [End],
) -> Option<Vec<Edge>> {
    let mut edges: Vec<Edge> = Vec::new();
    let mut number = ends.len() as u32;
    for edge in function.edges() {
        let from = function.position_of(edge.from)?;
        let Some(to) = edge.block() else {
            let end = &mut ends[from];
            if jumps_by_stub(&codes[from], edge.address) {
                end.leaves = true;
            } else if !end.tail.contains(&edge.address) {
                end.tail.push(edge.address);
            }
            continue;
        };
        let to = function.position_of(to)?;
        let frequency = frequencies.of(FlowArc::Edge(EdgeId(number)));
        number += 1;
        match edge.kind {
            EdgeKind::LandingPad => ends[from].pads.push(to),
            kind => {
                if kind == EdgeKind::CallFallthrough {
                    ends[from].behind = Some(to);
                }
                let same = edges
                    .iter_mut()
                    .rev()
                    .take_while(|other| other.from == from);
                match same.into_iter().find(|other| other.to == to) {
                    Some(other) => {
                        other.kind = other.kind.filter(|known| *known == kind);
                        other.frequency = other.frequency.saturating_add(frequency);
                    }
                    None => edges.push(Edge {
                        from,
                        to,
                        kind: Some(kind),
                        address: edge.address,
                        frequency,
                    }),
                }
            }
        }
    }
    Some(edges)
}
