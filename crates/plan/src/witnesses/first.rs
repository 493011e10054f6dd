//! First witnesses: what a view may record next when a branch takes one of its ways (DPT §3.2, the
//! *witness-set*; there for edges, here for nodes and edges alike), and branches of which two ways
//! share one.
//!
//! A walk over the moves that record nothing, from the way in question. O(states + moves) for one
//! way; memory is reused over all.

use super::flow::{Flow, Move, NO_PLACE};
use tomo_graph::NodeId;

/// Two ways on from a branch after which a view may record the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clash {
    /// The node.
    pub node: NodeId,
    /// The two ways, as positions among its edges; the last may be that of leaving.
    pub ways: (u32, u32),
    /// The number of the place that both may be followed by, or the number of places for the end.
    pub shared: u32,
}

/// Computes first witnesses in a [`Flow`], one set after the other in the same memory.
#[derive(Debug)]
pub struct Firsts<'f> {
    flow: &'f Flow,
    /// Per state: the walk that last met it.
    met: Vec<u32>,
    walk: u32,
    work: Vec<u32>,
    /// Per place, and last for the end: the branch that last met it, and by which way.
    follows: Vec<(u32, u32)>,
    branch: u32,
    steps: u64,
}

impl<'f> Firsts<'f> {
    /// For walks in `flow`.
    #[must_use]
    pub fn new(flow: &'f Flow) -> Self {
        Self {
            flow,
            met: vec![0; flow.states()],
            walk: 0,
            work: Vec::new(),
            follows: vec![(0, 0); flow.places() + 1],
            branch: 0,
            steps: 0,
        }
    }

    /// The first witnesses of way `way` at `node`, ascending, as numbers of places; the number of
    /// places stands for the end. Empty if there is no such way.
    pub fn of(&mut self, node: NodeId, way: u32, is_witness: impl Fn(u32) -> bool) -> Vec<u32> {
        let moves = self
            .flow
            .choice_of(node)
            .map(|state| self.flow.moves(state));
        let mut set = Vec::new();
        if let Some(&first) = moves.and_then(|moves| moves.get(way as usize)) {
            self.visit(first, &is_witness, |place| set.push(place));
        }
        set.sort_unstable();
        set.dedup();
        set
    }

    /// Two ways on from `node` that `is_witness` does not tell apart, if there are any.
    pub fn clash_at(&mut self, node: NodeId, is_witness: impl Fn(u32) -> bool) -> Option<Clash> {
        let fork = self.flow.choice_of(node)?;
        self.clash(fork, &is_witness, |_| true)
    }

    /// Whether `is_witness` does not tell these two ways apart.
    pub fn clash_between(
        &mut self,
        node: NodeId,
        ways: (u32, u32),
        is_witness: impl Fn(u32) -> bool,
    ) -> Option<Clash> {
        let fork = self.flow.choice_of(node)?;
        self.clash(fork, &is_witness, |way| way == ways.0 || way == ways.1)
    }

    /// How many moves have been looked at so far.
    pub(crate) fn steps(&self) -> u64 {
        self.steps
    }

    pub(crate) fn clash(
        &mut self,
        fork: u32,
        is_witness: &impl Fn(u32) -> bool,
        regards: impl Fn(u32) -> bool,
    ) -> Option<Clash> {
        let flow = self.flow;
        self.branch += 1;
        let branch = self.branch;
        let mut follows = std::mem::take(&mut self.follows);
        let mut found = None;
        for (way, &first) in (0..).zip(flow.moves(fork)) {
            if !regards(way) {
                continue;
            }
            self.visit(first, is_witness, |shared| {
                let slot = &mut follows[shared as usize];
                if slot.0 == branch && slot.1 != way && found.is_none() {
                    found = Some((slot.1, way, shared));
                }
                *slot = (branch, way);
            });
            if found.is_some() {
                break;
            }
        }
        self.follows = follows;
        found.map(|(one, other, shared)| Clash {
            node: flow.node_of(fork),
            ways: (one, other),
            shared,
        })
    }

    fn visit(
        &mut self,
        first: Move,
        is_witness: &impl Fn(u32) -> bool,
        mut record: impl FnMut(u32),
    ) {
        self.walk += 1;
        self.take(first, is_witness, &mut record);
        while let Some(state) = self.work.pop() {
            let flow = self.flow;
            for &step in flow.moves(state) {
                self.take(step, is_witness, &mut record);
            }
        }
    }

    fn take(
        &mut self,
        step: Move,
        is_witness: &impl Fn(u32) -> bool,
        record: &mut impl FnMut(u32),
    ) {
        self.steps += 1;
        if step.place != NO_PLACE && is_witness(step.place) {
            return record(step.place);
        }
        let met = &mut self.met[step.to as usize];
        if std::mem::replace(met, self.walk) == self.walk {
            return;
        }
        let entered = self.flow.entering(step.to);
        if step.to == self.flow.end() {
            record(self.flow.end_place());
        } else if entered != NO_PLACE && is_witness(entered) {
            record(entered);
        } else {
            self.work.push(step.to);
        }
    }
}
