//! The cheapest witnesses of a small function, proven.
//!
//! Breaking diamonds and cycles at minimum cost is a minimum hitting set whose sets are too many to
//! list (DPT §3.2: NP-complete). Branch and bound finds them as it goes: where two ways clash, one
//! of the places to [blame](super::blame) must become a witness; each is tried in turn, cheapest
//! first, and forbidden to the tries after it. The bound adds the cheapest place of each of several
//! clashes that have none in common. Exponential; a limit on tries makes it give up.

use tomo_graph::Weight;

use super::blame::Blame;
use super::first::{Clash, Firsts};
use super::flow::Flow;
use super::place::cost;

/// Replaces `witness`, which must be realizable, by the cheapest set if it is found within `tries`.
/// True if `witness` is proven to be cheapest.
pub(super) fn improve(
    flow: &Flow,
    weights: &[Weight],
    witness: &mut Vec<bool>,
    tries: u64,
) -> bool {
    let mut search = Search {
        flow,
        weights,
        firsts: Firsts::new(flow),
        blame: Blame::new(flow),
        chosen: vec![false; flow.places()],
        banned: vec![false; flow.places()],
        best_cost: cost(weights, witness),
        best: std::mem::take(witness),
        tries,
    };
    let complete = search.descend(0);
    *witness = search.best;
    complete
}

struct Search<'f> {
    flow: &'f Flow,
    weights: &'f [Weight],
    firsts: Firsts<'f>,
    blame: Blame<'f>,
    chosen: Vec<bool>,
    banned: Vec<bool>,
    best: Vec<bool>,
    best_cost: u64,
    tries: u64,
}

impl Search<'_> {
    /// Looks for something cheaper than the best that contains what is chosen. Each level
    /// chooses one more place. False if the tries are used up.
    fn descend(&mut self, cost: u64) -> bool {
        if self.tries == 0 {
            return false;
        }
        self.tries -= 1;
        let Some(clash) = clash(self.flow, &mut self.firsts, &self.chosen) else {
            if cost < self.best_cost {
                self.best_cost = cost;
                self.best.clone_from(&self.chosen);
            }
            return true;
        };
        if cost.saturating_add(self.bound()) >= self.best_cost {
            return true;
        }
        let mut places = self.choices(&clash, &self.chosen.clone());
        places.sort_unstable();
        let mut complete = true;
        for &(weight, place) in &places {
            self.chosen[place as usize] = true;
            complete &= self.descend(cost.saturating_add(weight));
            self.chosen[place as usize] = false;
            self.banned[place as usize] = true;
        }
        for (_, place) in places {
            self.banned[place as usize] = false;
        }
        complete
    }

    /// The places that may resolve a clash, with what they cost.
    fn choices(&mut self, clash: &Clash, witness: &[bool]) -> Vec<(u64, u32)> {
        let places = self.blame.places(clash, &|place| witness[place as usize]);
        let allowed = |place: u32| match self.weights[place as usize] {
            Weight::Finite(weight) if !self.banned[place as usize] => Some((weight, place)),
            _ => None,
        };
        places.into_iter().filter_map(allowed).collect()
    }

    /// What must still be paid at least; `u64::MAX` if a clash cannot be resolved any more.
    fn bound(&mut self) -> u64 {
        let mut witness = self.chosen.clone();
        let mut bound = 0u64;
        while let Some(clash) = clash(self.flow, &mut self.firsts, &witness) {
            let is_witness = |place: u32| witness[place as usize];
            let places = self.blame.places(&clash, &is_witness);
            let Some(&(weight, _)) = self.choices(&clash, &witness).iter().min() else {
                return u64::MAX;
            };
            bound = bound.saturating_add(weight);
            for place in places {
                witness[place as usize] = true;
            }
        }
        bound
    }
}

fn clash(flow: &Flow, firsts: &mut Firsts<'_>, witness: &[bool]) -> Option<Clash> {
    let is_witness = |place: u32| witness[place as usize];
    let mut forks = flow.fork_states().iter();
    forks.find_map(|&fork| firsts.clash(fork, &is_witness, |_| true))
}
