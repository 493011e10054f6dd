//! Which places could tell two ways apart that clash: those on one shortest path of each way up to
//! what they share, without it. Any set of witnesses that contains the present one and tells the
//! two apart holds one of them: else both paths still record nothing, and end where the same
//! follows. The sets are what a minimum-cost placement must *hit* (see [`exact`](super::exact)).
//! O(states + moves).

use std::collections::VecDeque;

use super::first::Clash;
use super::flow::{Flow, Move, NO_PLACE};

/// How a walk met a state.
#[derive(Clone, Copy, Debug)]
struct Met {
    walk: u32,
    from: u32,
    place: u32,
}

/// Where the first move of a walk comes from: the walk may pass the branch itself again.
const NOWHERE: u32 = u32::MAX;

/// Finds paths to what clashes, one after the other in the same memory.
#[derive(Debug)]
pub(super) struct Blame<'f> {
    flow: &'f Flow,
    met: Vec<Met>,
    walk: u32,
    work: VecDeque<u32>,
}

impl<'f> Blame<'f> {
    pub(super) fn new(flow: &'f Flow) -> Self {
        let unmet = Met {
            walk: 0,
            from: 0,
            place: NO_PLACE,
        };
        Self {
            flow,
            met: vec![unmet; flow.states()],
            walk: 0,
            work: VecDeque::new(),
        }
    }

    /// The places that could tell the two ways of `clash` apart, ascending.
    pub(super) fn places(&mut self, clash: &Clash, is_witness: &impl Fn(u32) -> bool) -> Vec<u32> {
        let mut places = Vec::new();
        if let Some(fork) = self.flow.choice_of(clash.node) {
            for way in [clash.ways.0, clash.ways.1] {
                let first = self.flow.moves(fork)[way as usize];
                self.path(first, clash.shared, is_witness, &mut places);
            }
        }
        places.sort_unstable();
        places.dedup();
        places
    }

    fn path(
        &mut self,
        first: Move,
        goal: u32,
        is_witness: &impl Fn(u32) -> bool,
        places: &mut Vec<u32>,
    ) {
        self.walk += 1;
        self.work.clear();
        let mut last = self.take(NOWHERE, first, goal, is_witness);
        while let (None, Some(state)) = (last, self.work.pop_front()) {
            let flow = self.flow;
            last = flow
                .moves(state)
                .iter()
                .find_map(|&step| self.take(state, step, goal, is_witness));
        }
        let Some((mut state, tail)) = last else {
            return;
        };
        places.extend(tail);
        while state != NOWHERE {
            let Met { from, place, .. } = self.met[state as usize];
            let passed = [place, self.flow.entering(state)];
            places.extend(passed.into_iter().filter(|&place| place != NO_PLACE));
            state = from;
        }
    }

    /// Takes a move; gives the state it came from, and what it still passed, if it meets the goal.
    fn take(
        &mut self,
        from: u32,
        step: Move,
        goal: u32,
        is_witness: &impl Fn(u32) -> bool,
    ) -> Option<(u32, Option<u32>)> {
        let flow = self.flow;
        if step.place == goal && goal != NO_PLACE {
            return Some((from, None));
        }
        if step.place != NO_PLACE && is_witness(step.place) {
            return None;
        }
        let entered = flow.entering(step.to);
        let ends = step.to == flow.end() && goal == flow.end_place();
        if ends || entered == goal {
            return Some((from, (step.place != NO_PLACE).then_some(step.place)));
        }
        let met = &mut self.met[step.to as usize];
        let blocked = entered != NO_PLACE && is_witness(entered);
        if !blocked && met.walk != self.walk && step.to != flow.end() {
            *met = Met {
                walk: self.walk,
                from,
                place: step.place,
            };
            self.work.push_back(step.to);
        }
        None
    }
}
