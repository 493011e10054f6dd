//! The chart of what is traced: blocks, ways and witnesses as reconstruction reads them.

use tomo_graph::{EdgeId, NodeId};
use tomo_plan::witnesses::{FunctionId, Place};
use tomo_wire::ModuleId;
use tomo_wire::checksum;
use tomo_wire::tracing::{Block, ChartView, Function, NONE, Value, Way, block, way};
use zerocopy::IntoBytes as _;
use zerocopy::little_endian::U64;

use super::subject::{End, Subject};
use super::{Collect, Traced, is_closed, rounds};
use crate::place::Surroundings;
use crate::staying::action::What;
use crate::staying::code::Wants;
use crate::staying::witness::Word;

/// A chart's parts.
#[derive(Debug, Default)]
pub(crate) struct Drawn {
    pub(super) functions: Vec<Function>,
    pub(super) blocks: Vec<Block>,
    ways: Vec<Way>,
    witnesses: Vec<U64>,
    untraced: Vec<U64>,
    values: Vec<Value>,
    /// What is told of each function's counted loops.
    pub(super) told: Vec<Vec<Told>>,
}

/// A way on which a register is recorded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Told {
    /// By which run.
    pub(super) run: u32,
    /// Which way: a position among the edges.
    edge: usize,
    register: u8,
    witness: u32,
}

impl Told {
    /// Adds it to what is wanted in blocks: first of all, before anything could change the register.
    pub(super) fn want(&self, subject: &Subject<'_>, wants: &mut [Wants]) {
        let edge = &subject.edges[self.edge];
        let wants = &mut wants[edge.from];
        let there = match rounds::branch(edge) {
            Some(true) => &mut wants.taken,
            Some(false) => &mut wants.not_taken,
            None => &mut wants.last,
        };
        there.insert(
            0,
            What::Witness(Word::WithValue(self.witness, self.register)),
        );
    }
}

impl Drawn {
    /// The file of it, and what names it.
    pub(crate) fn file(
        &self,
        module: (ModuleId, u64),
        analysis: u32,
        profiles: u32,
    ) -> (Vec<u8>, u64) {
        let body = [
            self.functions.as_bytes(),
            self.blocks.as_bytes(),
            self.ways.as_bytes(),
            self.witnesses.as_bytes(),
            self.untraced.as_bytes(),
            self.values.as_bytes(),
        ]
        .concat();
        let parts = (
            &self.functions[..],
            &self.blocks[..],
            &self.ways[..],
            &self.witnesses[..],
            &self.untraced[..],
            &self.values[..],
        );
        let header = ChartView::seal(module, analysis, profiles, parts, checksum(&body));
        let name = checksum(header.as_bytes());
        ([header.as_bytes(), &body].concat(), name)
    }
}

/// The chart of `traced`.
pub(super) fn draw(traced: &Traced<'_>, around: &Surroundings<'_>) -> Drawn {
    let witnesses = traced.distribution.sites().len() as u32;
    let mask = |witness: u32| {
        let profiles = traced
            .distribution
            .profiles_of(tomo_plan::witnesses::WitnessId(witness));
        let runs = profiles.iter().map(|profile| profile + traced.first_run);
        U64::new(runs.fold(0, |mask, run| mask | 1 << run))
    };
    let mut drawn = Drawn {
        witnesses: (0..witnesses).map(mask).collect(),
        untraced: traced
            .untraced
            .iter()
            .map(|entry| (*entry).into())
            .collect(),
        ..Drawn::default()
    };
    let mut first = 0;
    let firsts: Vec<u32> = traced
        .subjects
        .iter()
        .map(|subject| {
            first += subject.codes.len() as u32;
            first - subject.codes.len() as u32
        })
        .collect();
    for (at, subject) in traced.subjects.iter().enumerate() {
        let (first, count) = (firsts[at], subject.codes.len() as u32);
        let entry = first + subject.entry_block() as u32;
        drawn.functions.push(Function::of(first, count, entry));
        let drawing = Drawing {
            traced,
            subject,
            id: FunctionId(at as u32),
            firsts: &firsts,
            first,
        };
        drawing.rounds(&mut drawn);
        let arrivals = traced.arrivals(around, subject);
        for n in 0..subject.codes.len() {
            let arrives = arrivals.binary_search(&n).is_ok();
            drawing.block(n, arrives, &mut drawn);
        }
    }
    drawn
}

struct Drawing<'d, 'f> {
    traced: &'d Traced<'f>,
    subject: &'d Subject<'f>,
    id: FunctionId,
    firsts: &'d [u32],
    first: u32,
}

impl Drawing<'_, '_> {
    /// Numbers what is told of the loops that are counted.
    fn rounds(&self, drawn: &mut Drawn) {
        let mut told = Vec::new();
        let runs = &self.traced.counted[self.id.index()];
        for (round, &run) in self.subject.loops.rounds.iter().zip(runs) {
            for door in &round.doors {
                let witness = drawn.witnesses.len() as u32;
                let head = self.first + round.blocks[0] as u32;
                let coming = Value::coming(witness, head, round.register, round.step);
                drawn.witnesses.push(U64::new(1 << run));
                drawn.values.push(match door.leaves {
                    false => coming.ahead_by(door.ahead),
                    true => coming.leaving().ahead_by(door.ahead),
                });
                told.push(Told {
                    run,
                    edge: door.way,
                    register: round.register,
                    witness,
                });
            }
        }
        drawn.told.push(told);
    }

    fn block(&self, n: usize, arrives: bool, drawn: &mut Drawn) {
        let code = &self.subject.codes[n];
        let end = &self.subject.ends[n];
        let arrival = match arrives {
            true => {
                drawn.witnesses.push(1.into());
                drawn.witnesses.len() as u32 - 1
            }
            false => NONE,
        };
        let callee = end.callee.filter(|_| end.calls).and_then(|callee| {
            let (at, n) = *self.traced.places.get(&callee)?;
            (self.traced.subjects[at].entry_block() == n).then(|| self.firsts[at] + n as u32)
        });
        drawn.blocks.push(Block {
            address: code.start().0.into(),
            size: (code.size() as u32).into(),
            flags: self.flags(n, end, callee.is_some()).into(),
            witness: self.witness(Place::Node(NodeId(n as u32))).into(),
            arrival: arrival.into(),
            callee: callee.unwrap_or(NONE).into(),
            ways: (drawn.ways.len() as u32).into(),
        });
        self.ways(n, end, drawn);
    }

    fn flags(&self, n: usize, end: &End, is_traced: bool) -> u32 {
        let Traced {
            subjects,
            places,
            open,
            ..
        } = self.traced;
        let mut flags = match (end.calls, is_traced) {
            (false, _) => 0,
            (true, false) => block::CALLS_AWAY,
            (true, true) if is_closed(end, subjects, places, open) => block::CALLS,
            (true, true) => block::CALLS_ON,
        };
        if is_traced && self.traced.collect == Collect::Breakpoint {
            flags |= block::CALLS_SEEN;
        }
        let is_traced = |to| places.contains_key(to);
        let ends = &self.subject.ends;
        let twice = |end: &End| end.twice && end.behind == Some(n);
        for (is, flag) in [
            (end.returns, block::RETURNS),
            (end.leaves || !end.tail.iter().all(is_traced), block::LEAVES),
            (n == self.subject.entry_block(), block::ENTRY),
            (ends.iter().any(twice), block::WITH_STACK),
            (ends.iter().any(|end| end.pads.contains(&n)), block::LANDING),
            (self.subject.loops.begins(n), block::HEAD),
        ] {
            if is {
                flags |= flag;
            }
        }
        flags
    }

    fn ways(&self, n: usize, end: &End, drawn: &mut Drawn) {
        let Drawn { ways, told, .. } = drawn;
        let told = told.last().map_or(&[][..], Vec::as_slice);
        // Only what is moved, and jumps there directly, leads from region to region.
        let is_moved = self.subject.moved.has(n)
            && !self.subject.codes[n].jumps_by_address()
            && self.traced.collect == Collect::Detour;
        let by_address = |is: bool| if is { way::BY_ADDRESS } else { 0 };
        for (number, edge) in self.subject.edges.iter().enumerate() {
            if edge.from != n {
                continue;
            }
            let behind = if edge.is_behind() { way::BEHIND } else { 0 };
            let round = match self.subject.loops.has_way(number) {
                true => way::ROUND,
                false => 0,
            };
            let flags = behind | round | by_address(edge.is_by_address() || !is_moved);
            let to = self.first + edge.to as u32;
            let witness = self.witness(Place::Edge(EdgeId(number as u32)));
            let value = told.iter().find(|told| told.edge == number);
            let value = value.map_or(NONE, |told| told.witness);
            ways.push(Way::of(to, flags, witness, value));
        }
        let closing = self.subject.loops.closing.iter();
        for edge in closing.filter(|edge| edge.from == n) {
            let to = self.first + edge.to as u32;
            ways.push(Way::of(to, way::ROUND | way::WHOLE_ROUND, NONE, NONE));
        }
        for to in &end.tail {
            if let Some(&(at, to)) = self.traced.places.get(to) {
                let to = self.firsts[at] + to as u32;
                ways.push(Way::of(to, way::TAIL | by_address(!is_moved), NONE, NONE));
            }
        }
        for pad in &end.pads {
            let flags = way::PAD | way::BY_ADDRESS;
            ways.push(Way::of(self.first + *pad as u32, flags, NONE, NONE));
        }
    }

    fn witness(&self, place: Place) -> u32 {
        let witness = self.traced.distribution.witness_at(self.id, place);
        witness.map_or(NONE, |witness| witness.0)
    }
}
