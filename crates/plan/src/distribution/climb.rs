//! The hill climb for balanced and packed distributions of events and of clusters (PDT §4.3,
//! Algorithm 2, Table 1).
//!
//! From a random distribution on, each move takes a random number of sets from a random variant and
//! fills it again with random ones; a move that does not lower the cost is undone. It ends at a cost of
//! zero, or frozen: after so many bad moves in succession.
//!
//! Where Algorithm 2 leaves room or errs:
//! - As printed, bad moves are counted and never forgotten; the text says *consecutive* ones, and so
//!   it is here: a good move starts the count afresh.
//! - *while not h_bound* is printed, but with sets of several units the bound may not be met
//!   exactly. A variant is refilled until nothing is left of the bound or [`MISSES`] sets drawn in
//!   succession are already there or do not fit.
//! - How many sets to take is a random number, from one to how many the text leaves open: to all if
//!   [`Climb::most_taken`] is `None`, which is slow and bad, because a large move that is good
//!   late in a climb is a rarity. Over 5,000 events, 36 variants and 450 probes, from Table 1's
//!   Balanced: to all, 52 million moves to a cost of 16,340; to 4, 37 million to 13,876; one at a time,
//!   19 million to 13,590, each of them cheaper. So Table 1 is climbed one at a time here.
//! - Drawing finds the last good moves slowly, and over many sets and variants comes to no end: over
//!   100,000 events and 1,000 variants one move in 20,000 is still good after 200 million. So every
//!   [`Climb::look_after`] drawn moves the climb *looks*, at each variant in turn: see `exchange.rs`.
//!   What ends it is still that so many drawn moves in succession are bad. `None` is Algorithm 2 alone.
//! - A random start is far from anything good. From a [`greedy`](super::greedy) one
//!   ([`Climber::from`]) the climb over 100,000 events ends in less than a minute, at a third of the
//!   cost at which one from a random start still is after 80 s.
//!
//! **A drawn move costs what it touches**: O(units of the sets taken and drawn), whatever the number of
//! sets, of units and of variants (O(variants) more with PACKING as printed). Memory is O(variants ·
//! units).

use super::exchange::{Offers, Order};
use super::objective::{Cost, Packing, Parts, Weights};
use super::state::State;
use super::{Bound, Distribution, DistributionError, SetId, UnitSets};
use crate::random::Random;

/// FROZEN of PDT's Table 1: bad moves in succession that end the climb.
pub const FROZEN: u64 = 500_000;

/// How many sets that are drawn in vain end the filling of a variant.
const MISSES: u32 = 8;

/// What to climb for, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Climb {
    /// α, β and γ.
    pub weights: Weights,
    /// Which PACKING.
    pub packing: Packing,
    /// Bad moves in succession that end the climb.
    pub frozen: u64,
    /// The most sets that one move takes away; `None` for as many as the variant has.
    pub most_taken: Option<usize>,
    /// After how many drawn moves to look at all variants; `None` for never.
    pub look_after: Option<u64>,
}

impl Climb {
    /// Balanced-Events and Balanced-Clusters.
    pub const BALANCED: Self = Self::table_1(Weights::BALANCED);
    /// Packed-Events and Packed-Clusters.
    pub const PACKED: Self = Self::table_1(Weights::PACKED);
    /// Balanced-Packed-Events and Balanced-Packed-Clusters.
    pub const BALANCED_PACKED: Self = Self::table_1(Weights::BALANCED_PACKED);

    const fn table_1(weights: Weights) -> Self {
        Self {
            weights,
            packing: Packing::Meant,
            frozen: FROZEN,
            most_taken: Some(1),
            look_after: Some(FROZEN / 2),
        }
    }
}

/// Where a climb ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Climbed {
    /// The distribution.
    pub distribution: Distribution,
    /// Its cost.
    pub cost: Cost,
    /// How many moves were tried.
    pub moves: u64,
    /// How many of them were good.
    pub good_moves: u64,
}

/// A climb under way.
///
/// ```
/// use tomo_plan::distribution::{Bound, Climb, Climber, UnitId, UnitSets};
///
/// let events = [vec![UnitId(0), UnitId(1)], vec![UnitId(1), UnitId(2)], vec![UnitId(3)]];
/// let events = UnitSets::new(4, events)?;
/// let climb = Climb { frozen: 1000, ..Climb::BALANCED };
/// let climbed = Climber::new(&events, &Bound::probes(3), 2, climb, 1)?.run();
/// // Three events, four places for them in pairs: none is left out.
/// let times = climbed.distribution.times_placed(&events);
/// assert!(times.iter().all(|&times| times > 0));
/// # Ok::<(), tomo_plan::distribution::DistributionError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Climber<'a> {
    climb: Climb,
    state: State<'a>,
    random: Random,
    numerator: u128,
    moves: u64,
    good_moves: u64,
    bad_in_succession: u64,
    taken: Vec<SetId>,
    /// Drawn moves since the last look.
    unlooked: u64,
    /// How many moves were good when a look last found nothing.
    seen_all_at: Option<u64>,
}

impl<'a> Climber<'a> {
    /// Starts from a random distribution.
    ///
    /// # Errors
    /// [`DistributionError::NoVariants`] and the like, [`DistributionError::Mismatch`].
    pub fn new(
        sets: &'a UnitSets,
        bound: &Bound,
        variants: usize,
        climb: Climb,
        seed: u64,
    ) -> Result<Self, DistributionError> {
        let mut random = Random::new(seed);
        let mut state = State::new(sets, bound, variants)?;
        state.fill_randomly(&mut random);
        Ok(Self::at(state, climb, random))
    }

    /// Starts from what a distribution has placed, a [`greedy`](super::greedy) one for instance; sets
    /// that do not fit there are left out. From a good start less remains to be found.
    ///
    /// # Errors
    /// As [`new`](Self::new), and [`DistributionError::NoSuchSet`].
    pub fn from(
        start: &Distribution,
        sets: &'a UnitSets,
        bound: &Bound,
        climb: Climb,
        seed: u64,
    ) -> Result<Self, DistributionError> {
        let mut state = State::new(sets, bound, start.variants().len())?;
        for (number, variant) in start.variants().iter().enumerate() {
            for &set in variant.sets() {
                if set.index() >= sets.len() {
                    return Err(DistributionError::NoSuchSet(set));
                }
                if state.is_placeable(set) {
                    state.place(number, set);
                }
            }
        }
        Ok(Self::at(state, climb, Random::new(seed)))
    }

    fn at(state: State<'a>, climb: Climb, random: Random) -> Self {
        let mut climber = Self {
            climb,
            state,
            random,
            numerator: 0,
            moves: 0,
            good_moves: 0,
            bad_in_succession: 0,
            taken: Vec::new(),
            unlooked: 0,
            seen_all_at: None,
        };
        climber.numerator = climber.cost().numerator;
        climber
    }

    /// Tries one drawn move. Returns whether it was good, and so is kept.
    pub fn step(&mut self) -> bool {
        let variant = self.random.below(self.state.variants());
        self.unlooked += 1;
        self.take_some(variant);
        let kept = self.state.placed(variant).len();
        self.refill(variant);
        let is_good = self.judge(variant, kept);
        self.bad_in_succession = if is_good {
            0
        } else {
            self.bad_in_succession + 1
        };
        is_good
    }

    /// Looks at each variant for exchanges of one set, and makes those that are good. Returns how many
    /// were.
    pub fn look(&mut self) -> u64 {
        let before = self.good_moves;
        for variant in 0..self.state.variants() {
            self.look_at(variant);
        }
        self.unlooked = 0;
        if self.good_moves == before {
            self.seen_all_at = Some(before);
        } else {
            self.bad_in_succession = 0;
        }
        self.good_moves - before
    }

    /// Tries what a look at a variant suggests.
    fn look_at(&mut self, variant: usize) {
        let weights = self.climb.weights;
        let offers = Offers::look(&self.state, &weights, variant);
        let placed = self.state.placed(variant).to_vec();
        for set in placed.into_iter().map(Some).chain([None]) {
            let mut orders = offers.instead_of(&self.state, &weights, variant, set);
            while orders
                .next()
                .is_some_and(|order| !self.exchange(variant, set, &order))
            {}
        }
    }

    /// Tries a move that takes one set, or none, and places others. Returns whether it was good, and so
    /// is kept.
    fn exchange(&mut self, variant: usize, set: Option<SetId>, order: &Order) -> bool {
        self.taken.clear();
        if let Some(set) = set {
            let mut placed = self.state.placed(variant).iter();
            let at = placed.position(|&other| other == set);
            self.taken.extend(at.map(|at| self.state.take(variant, at)));
        }
        let kept = self.state.placed(variant).len();
        let mut come = 0;
        for &set in &order.sets {
            come += usize::from(come < order.most && self.state.place(variant, set));
        }
        self.judge(variant, kept)
    }

    /// Keeps the move that took sets from a variant and placed others behind the first `kept` if it
    /// lowers the cost, else undoes it. Returns whether it did.
    fn judge(&mut self, variant: usize, kept: usize) -> bool {
        self.moves += 1;
        let numerator = self.cost().numerator;
        let is_good = numerator < self.numerator;
        if is_good {
            self.numerator = numerator;
            self.good_moves += 1;
        } else {
            self.undo(variant, kept);
        }
        is_good
    }

    fn take_some(&mut self, variant: usize) {
        self.taken.clear();
        let placed = self.state.placed(variant).len();
        let most = self.climb.most_taken.unwrap_or(placed).min(placed);
        let count = if most > 0 {
            1 + self.random.below(most)
        } else {
            0
        };
        for left in (placed - count..placed).rev() {
            let position = self.random.below(left + 1);
            self.taken.push(self.state.take(variant, position));
        }
    }

    fn refill(&mut self, variant: usize) {
        let mut misses = 0;
        while misses < MISSES && !self.state.is_full(variant) {
            let drawn = self.random.below(self.state.placeable.len());
            let Some(&set) = self.state.placeable.get(drawn) else {
                return;
            };
            misses = if self.state.place(variant, set) {
                0
            } else {
                misses + 1
            };
        }
    }

    /// Takes away what was placed behind the first `kept`, and puts back what was taken.
    fn undo(&mut self, variant: usize, kept: usize) {
        for position in (kept..self.state.placed(variant).len()).rev() {
            self.state.take(variant, position);
        }
        for &set in &self.taken {
            self.state.place(variant, set);
        }
    }

    /// Moves on until the cost is zero or the climb frozen.
    #[must_use]
    pub fn run(mut self) -> Climbed {
        while self.numerator > 0 && self.bad_in_succession < self.climb.frozen {
            let due = self
                .climb
                .look_after
                .is_some_and(|after| self.unlooked >= after);
            if due && self.seen_all_at != Some(self.good_moves) {
                self.look();
            } else {
                self.step();
            }
        }
        Climbed {
            distribution: self.distribution(),
            cost: self.cost(),
            moves: self.moves,
            good_moves: self.good_moves,
        }
    }

    /// The parts of the cost as it stands.
    #[must_use]
    pub fn parts(&self) -> Parts {
        self.state.parts(self.climb.packing)
    }

    /// The cost as it stands.
    #[must_use]
    pub fn cost(&self) -> Cost {
        let parts = self.parts();
        parts.weighted(&self.climb.weights, self.state.placeable.len())
    }

    /// The distribution as it stands.
    #[must_use]
    pub fn distribution(&self) -> Distribution {
        self.state.distribution()
    }
}
