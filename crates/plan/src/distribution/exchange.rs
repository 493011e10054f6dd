//! What a climb finds by looking: which of a variant's sets could be exchanged for others at a profit.
//! Late in a climb hardly one drawn move in 10^5 is good; a look at one variant costs as much as some
//! thousand drawn moves and finds most of what an exchange of one set can gain there.
//!
//! What each set gains or loses is known without trying it (see `objective.rs`; with P placements and m
//! placeable sets, a set of length l that is used k times adds l · |m · k − P| to m · BALANCE): exactly
//! for one set that comes where another goes, to within 2 l of m · l where P changes. Not known is how
//! much of what a set needs the other one's going takes away, and what several that come in need
//! together. So these are suggestions, and each is tried like any move.
//!
//! O(units of all placeable sets) a look at a variant.

use std::cmp::Reverse;

use super::SetId;
use super::objective::{FRACTION, Weights};
use super::state::State;

/// How finely sets are told apart by what they would cost.
const STEPS: usize = 64;
/// How many sets are remembered of those that would cost the same.
const DEPTH: usize = 4;

/// A set that could come into a variant.
#[derive(Clone, Copy, Debug)]
struct Offer {
    set: SetId,
    /// What its missing probes cost.
    cost: u64,
    /// By how much the numerator of the climb's cost would fall.
    gain: i128,
}

/// What could come into one variant, best first within each step of costs.
#[derive(Clone, Debug)]
pub(super) struct Offers {
    steps: [Vec<Offer>; STEPS],
    /// The largest cost that can be afforded.
    most: u64,
}

impl Offers {
    /// A look at one variant.
    pub(super) fn look(state: &State<'_>, weights: &Weights, variant: usize) -> Self {
        let placed = state.placed(variant);
        let rooms = placed.iter().map(|&set| state.freed(variant, set).1);
        let most = state.left(variant) + rooms.max().unwrap_or(0);
        let mut offers = Self {
            steps: [const { Vec::new() }; STEPS],
            most,
        };
        let losses = placed.iter().map(|&set| {
            let shared = state.length(set) - state.freed(variant, set).0;
            change(state, weights, set, shared, -1)
        });
        let least = losses.min().unwrap_or(0).min(0);
        for &set in &state.placeable {
            // Shared with others as far as could be it gains the most.
            if -change(state, weights, set, state.length(set), 1) <= least {
                continue;
            }
            if let Some((missing, cost)) = state.missing(variant, set, most)
                && (missing > 0 || !placed.contains(&set))
            {
                let gain = -change(state, weights, set, state.length(set) - missing, 1);
                if gain > least {
                    offers.add(Offer { set, cost, gain });
                }
            }
        }
        offers
    }

    fn step(&self, cost: u64) -> usize {
        let step = u128::from(cost) * (STEPS as u128 - 1) / u128::from(self.most.max(1));
        step as usize
    }

    fn add(&mut self, offer: Offer) {
        let step = self.step(offer.cost);
        let best = &mut self.steps[step];
        let place = best.partition_point(|other| other.gain >= offer.gain);
        if place < DEPTH {
            best.truncate(DEPTH - 1);
            best.insert(place, offer);
        }
    }

    /// What to try when `set` goes, or with nothing to go.
    pub(super) fn instead_of(
        &self,
        state: &State<'_>,
        weights: &Weights,
        variant: usize,
        set: Option<SetId>,
    ) -> impl Iterator<Item = Order> + use<> {
        let (freed, room) = set.map_or((0, 0), |set| state.freed(variant, set));
        let room = room + state.left(variant);
        let loss = set.map_or(0, |set| {
            change(state, weights, set, state.length(set) - freed, -1)
        });
        let steps = self.steps[..=self.step(room.min(self.most))].iter();
        let fitting = steps.flatten().filter(|offer| offer.cost <= room);
        let (mut one, mut many) = (Vec::new(), Vec::new());
        one.extend(fitting.clone().filter(|offer| offer.gain > loss));
        one.sort_unstable_by_key(|offer: &&Offer| (Reverse(offer.gain), offer.set));
        many.extend(fitting.filter(|offer| offer.gain > 0));
        many.sort_unstable_by_key(|offer: &&Offer| {
            let worth = offer.gain / i128::from(offer.cost.max(1));
            (offer.cost > 0, Reverse(worth), offer.set)
        });
        let is_sole = many.len() <= 1 && !one.is_empty();
        let pays = promised(&many, room) > loss && !is_sole;
        let sets = |offers: Vec<&Offer>| offers.iter().map(|offer| offer.set).collect();
        let one = (!one.is_empty()).then(|| Order {
            sets: sets(one),
            most: 1,
        });
        let many = pays.then(|| Order {
            sets: sets(many),
            most: usize::MAX,
        });
        one.into_iter().chain(many)
    }
}

/// Sets that promise a profit, in the order in which to place those that fit; perhaps none.
#[derive(Clone, Debug)]
pub(super) struct Order {
    pub(super) sets: Vec<SetId>,
    /// How many of them at most.
    pub(super) most: usize,
}

/// What those of the offers gain that fit into `room` one after the other.
fn promised(offers: &[&Offer], room: u64) -> i128 {
    let mut left = room;
    let fitting = offers.iter().filter(|offer| {
        let fits = offer.cost <= left;
        left -= if fits { offer.cost } else { 0 };
        fits
    });
    fitting.map(|offer| offer.gain).sum()
}

/// By how much the numerator of the cost rises when a set, `shared` of whose units serve others in
/// the variant too, is used once more (`by` = 1) or once less (−1).
fn change(state: &State<'_>, weights: &Weights, set: SetId, shared: u64, by: i128) -> i128 {
    let (sets, uses) = (state.placeable.len() as i128, i128::from(state.uses()));
    let (length, times) = (i128::from(state.length(set)), i128::from(state.times(set)));
    let away = |times: i128| (sets * times - uses).abs();
    let balance = length * (away(times + by) - away(times)) + by * state.rise();
    let unused = length * (i128::from(times + by == 0) - i128::from(times == 0));
    let packing = -by * i128::from(shared);
    let [alpha, beta, gamma] = weights.thousandths().map(i128::from);
    (alpha * balance + beta * packing * sets + gamma * unused * sets) * FRACTION.cast_signed()
}

#[cfg(test)]
mod tests {
    use super::super::objective::Packing;
    use super::super::{Bound, SetId, UnitId, UnitSets};
    use super::{Offers, change};
    use crate::distribution::state::State;
    use crate::distribution::{Climb, Weights};
    use crate::random::Random;

    fn sets(random: &mut Random) -> UnitSets {
        let set = |random: &mut Random| -> Vec<UnitId> {
            let length = 1 + random.below(4);
            (0..length)
                .map(|_| UnitId(random.below(14) as u32))
                .collect()
        };
        let all: Vec<_> = (0..12).map(|_| set(random)).collect();
        UnitSets::new(14, all).unwrap()
    }

    fn cost(state: &State<'_>, weights: &Weights) -> i128 {
        let parts = state.parts(Packing::Meant);
        let cost = parts.weighted(weights, state.placeable.len());
        cost.numerator.cast_signed()
    }

    /// What an exchange changes is what was computed, for all pairs of sets that share no unit.
    #[test]
    fn exchanges_change_the_cost_by_what_is_computed() {
        let mut random = Random::new(11);
        let mut exchanged = 0;
        for round in 0..300 {
            let sets = sets(&mut random);
            let bound = Bound::probes(7);
            let mut state = State::new(&sets, &bound, 3).unwrap();
            state.fill_randomly(&mut random);
            let all = [Climb::BALANCED, Climb::PACKED, Climb::BALANCED_PACKED];
            let weights = all[round % 3].weights;
            for gone in state.placed(0).to_vec() {
                for come in state.placeable.clone() {
                    let shared = |unit: &UnitId| sets.units(gone).contains(unit);
                    let there = state.placed(0).contains(&come);
                    if there || sets.units(come).iter().any(shared) {
                        continue;
                    }
                    let before = cost(&state, &weights);
                    let freed = state.freed(0, gone).0;
                    let missing = state.missing(0, come, 99).unwrap().0;
                    let computed = change(&state, &weights, gone, state.length(gone) - freed, -1)
                        + change(&state, &weights, come, state.length(come) - missing, 1);
                    let at =
                        |state: &State<'_>, set| state.placed(0).iter().position(|&s| s == set);
                    let place = at(&state, gone).unwrap();
                    state.take(0, place);
                    if state.place(0, come) {
                        exchanged += 1;
                        assert_eq!(cost(&state, &weights) - before, computed);
                        let place = at(&state, come).unwrap();
                        state.take(0, place);
                    }
                    assert!(state.place(0, gone));
                }
            }
        }
        assert!(exchanged > 1000, "{exchanged}");
    }

    /// The one set that can come is suggested for the one that should go.
    #[test]
    fn a_profit_is_suggested() {
        let units = |units: &[u32]| units.iter().map(|&unit| UnitId(unit)).collect::<Vec<_>>();
        let all = [units(&[0]), units(&[1, 2]), units(&[3, 4, 5])];
        let sets = UnitSets::new(6, all).unwrap();
        let mut state = State::new(&sets, &Bound::probes(2), 1).unwrap();
        assert!(state.place(0, SetId(0)));
        let weights = Climb::BALANCED.weights;
        let offers = Offers::look(&state, &weights, 0);
        let instead = |set| offers.instead_of(&state, &weights, 0, set);
        let orders: Vec<_> = instead(Some(SetId(0))).collect();
        assert_eq!(orders.len(), 1);
        assert_eq!((&*orders[0].sets, orders[0].most), (&[SetId(1)][..], 1));
        assert_eq!(instead(None).count(), 0);
    }
}
