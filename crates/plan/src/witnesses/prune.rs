//! Taking witnesses away again that are not needed, dearest first.
//!
//! A witness that goes can only make ways clash whose walks met it, so only branches from which it
//! is reached without recording are asked again. O(what those branches reach) a witness; a budget
//! of moves bounds the whole, and whatever is left when it is used up simply stays.

use super::first::Firsts;
use super::flow::{Flow, NO_PLACE};

/// Says whether what is asked of a branch (its state) is not fulfilled by these witnesses.
pub(super) type Fails<'a> = dyn FnMut(&mut Firsts<'_>, u32, &[bool]) -> bool + 'a;

/// Removes those of `order` from `witness` without which nothing fails that was fulfilled.
pub(super) fn prune(
    flow: &Flow,
    witness: &mut [bool],
    order: &[u32],
    budget: u64,
    fails: &mut Fails<'_>,
) {
    let before = Before::of(flow);
    let mut firsts = Firsts::new(flow);
    let mut region = Region::new(flow);
    for &place in order {
        if firsts.steps() + region.steps > budget {
            return;
        }
        witness[place as usize] = false;
        region.collect(flow, &before, place, witness);
        let needed = region
            .forks
            .iter()
            .any(|&fork| fails(&mut firsts, fork, witness));
        witness[place as usize] = needed;
    }
}

/// The moves into each state, and the state that each edge place leaves.
struct Before {
    starts: Vec<u32>,
    moves: Vec<(u32, u32)>,
    tails: Vec<u32>,
}

impl Before {
    fn of(flow: &Flow) -> Self {
        let mut starts = vec![0u32; flow.states() + 1];
        let mut tails = vec![NO_PLACE; flow.places()];
        for state in 0..flow.states() as u32 {
            for step in flow.moves(state) {
                starts[step.to as usize + 1] += 1;
                if step.place != NO_PLACE {
                    tails[step.place as usize] = state;
                }
            }
        }
        for state in 0..flow.states() {
            starts[state + 1] += starts[state];
        }
        let mut cursor = starts.clone();
        let mut moves = vec![(0, 0); starts[flow.states()] as usize];
        for state in 0..flow.states() as u32 {
            for step in flow.moves(state) {
                let slot = &mut cursor[step.to as usize];
                moves[*slot as usize] = (state, step.place);
                *slot += 1;
            }
        }
        Self {
            starts,
            moves,
            tails,
        }
    }

    fn of_state(&self, state: u32) -> &[(u32, u32)] {
        let at = state as usize;
        &self.moves[self.starts[at] as usize..self.starts[at + 1] as usize]
    }
}

/// The branches from which a place is reached without recording.
struct Region {
    met: Vec<u32>,
    walk: u32,
    work: Vec<u32>,
    forks: Vec<u32>,
    steps: u64,
}

impl Region {
    fn new(flow: &Flow) -> Self {
        Self {
            met: vec![0; flow.states()],
            walk: 0,
            work: Vec::new(),
            forks: Vec::new(),
            steps: 0,
        }
    }

    fn collect(&mut self, flow: &Flow, before: &Before, place: u32, witness: &[bool]) {
        self.walk += 1;
        self.forks.clear();
        let is_witness = |place: u32| place != NO_PLACE && witness[place as usize];
        match before.tails[place as usize] {
            NO_PLACE => self.enter(flow, before.of_state(place), &is_witness),
            tail => self.enter(flow, &[(tail, NO_PLACE)], &is_witness),
        }
        while let Some(state) = self.work.pop() {
            if !is_witness(flow.entering(state)) {
                self.enter(flow, before.of_state(state), &is_witness);
            }
        }
    }

    fn enter(&mut self, flow: &Flow, froms: &[(u32, u32)], is_witness: &impl Fn(u32) -> bool) {
        for &(from, place) in froms {
            self.steps += 1;
            let met = &mut self.met[from as usize];
            if is_witness(place) || std::mem::replace(met, self.walk) == self.walk {
                continue;
            }
            if flow.is_choice(from) && flow.moves(from).len() > 1 {
                self.forks.push(from);
            }
            self.work.push(from);
        }
    }
}
