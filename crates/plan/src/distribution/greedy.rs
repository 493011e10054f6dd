//! A distribution with a proven share of the optimum, beyond PDT.
//!
//! **Value.** Each set has a weight; a variant that has probes for all its units gains it. Sets
//! observed again gain nothing, or half as much each time ([`Repeats`]). The value of a distribution
//! is a monotone submodular function of its variants: what one more variant gains falls as others
//! join.
//!
//! **Algorithm.** Variant after variant, the best one that can be found for what the sets are
//! still worth (Nemhauser, Wolsey, Fisher, *An Analysis of Approximations for Maximizing Submodular
//! Set Functions*, Math. Programming 14, 1978). One variant is packed by weight per cost of
//! the probes that are still missing, or starts with the heaviest set if that alone weighs more (after
//! Khuller, Moss, Naor, *The Budgeted Maximum Coverage Problem*, IPL 70, 1999).
//!
//! **Share.** Let Δ be the most sets that one unit is in. [`Greedy`] has at least 1/(2Δ + 3) of the
//! value of the best distribution:
//!
//! 1. *One variant has a share α = ½ (1 − e^(−1/Δ)).* Let O be the best variant's sets, h the bound, S
//!    what is packed. Each unit of O is missing in at most Δ of its sets, so the sets of O lack
//!    probes of Δh together, and weigh w(O) − w(S) at least; one of them, then, has a weight per
//!    missing cost of (w(O) − w(S)) / Δh, and so has the one that is taken. Until the first set that does
//!    not fit, and with it, more than h is spent, so that
//!    w(S) + w(that set) ≥ (1 − e^(−h/Δh)) w(O); the packing or the heaviest set has half of that. If
//!    every set fits, the packing is the best.
//! 2. *n variants have a share 1 − (1 − α/n)^n ≥ 1 − e^(−α).* By submodularity the n variants of
//!    the best distribution gain together what is missing to its value, so one of them a n-th of it,
//!    and the next variant α of that.
//! 3. 1 − e^(−x) ≥ x/(1 + x) twice gives α ≥ 1/(2Δ + 2), and the share 1/(2Δ + 3).
//!
//! **Why it depends on Δ.** With sets of two units and one variant this is *densest k-subgraph*, for which
//! no constant share is known, and none can be had in polynomial time if the exponential time hypothesis
//! holds (Manurangsi, STOC 2017). On a given instance the share is far better; [`Greedy::upper`]
//! proves how good it is at least.
//!
//! O(variants · (sets + Σ over probes placed of their sets) · log) time, O(units of all sets) memory.

use super::bound::{count_variants, placeable};
use super::sets::Holders;
use super::upper::{Item, upper_bound};
use super::{Bound, Distribution, DistributionError, SetId, UnitSets, Variant};
use std::collections::BinaryHeap;

/// What a set is worth when it is observed by another variant as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Repeats {
    /// Nothing. Once all is observed, variants stay empty.
    Worthless,
    /// Half of what it was worth before, rounded down.
    Halved,
    /// So much less that sets that nothing observes yet come first, and from then on half. Takes weights of [`Repeats::FIRST`] a unit.
    Later,
}

impl Repeats {
    /// What a unit weighs that nothing observes yet.
    pub const FIRST: u64 = 1 << 28;
    /// By how many bits less it weighs afterwards. In sets of fewer than 2^12 units that is a weight below the least first one.
    const LESS: u32 = 12;

    /// What a set of this weight is worth the first time, the second and so on.
    pub(super) fn worth(self, weight: u64) -> impl Iterator<Item = u64> {
        let next = move |&weight: &u64| Some(self.after(weight)).filter(|&weight| weight > 0);
        std::iter::successors(Some(weight).filter(|&weight| weight > 0), next)
    }

    fn after(self, weight: u64) -> u64 {
        match self {
            Self::Worthless => 0,
            Self::Later if weight >= Self::FIRST => weight >> Self::LESS,
            Self::Halved | Self::Later => weight / 2,
        }
    }
}

/// A greedy distribution, and what is proven of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Greedy {
    /// The distribution.
    pub distribution: Distribution,
    /// What it gains.
    pub value: u128,
    /// No distribution gains more than this.
    pub upper: u128,
    /// Δ: the most placeable sets that one unit is in.
    pub degree: u64,
}

impl Greedy {
    /// No distribution gains more than this many times as much, whatever the weights: 2Δ + 3.
    #[must_use]
    pub fn factor(&self) -> u64 {
        self.degree.saturating_mul(2).saturating_add(3)
    }

    /// The share of the optimum that is proven for this distribution, from 0 to 1: the larger of
    /// value / upper and 1 / factor.
    #[must_use]
    pub fn proven_share(&self) -> f64 {
        let by_upper = if self.upper == 0 {
            1.0
        } else {
            self.value as f64 / self.upper as f64
        };
        by_upper.max(1.0 / self.factor() as f64)
    }
}

/// Distributes by value, greedily.
///
/// # Errors
/// [`DistributionError::NoVariants`] and the like, [`DistributionError::Mismatch`],
/// [`DistributionError::Overflow`] if the weights do not add up in 64 bits.
pub fn greedy(
    sets: &UnitSets,
    weights: &[u64],
    bound: &Bound,
    variants: usize,
    repeats: Repeats,
) -> Result<Greedy, DistributionError> {
    let upper = upper_bound(sets, weights, bound, variants, repeats)?;
    let packer = Packer::new(sets, bound)?;
    let mut worth = weights.to_vec();
    let mut value = 0;
    let distributed = (0..count_variants(variants)?).map(|_| {
        let variant = packer.pack(&worth);
        for &set in variant.sets() {
            let worth = &mut worth[set.index()];
            value += u128::from(*worth);
            *worth = repeats.after(*worth);
        }
        variant
    });
    Ok(Greedy {
        distribution: Distribution::new(distributed.collect()),
        value,
        upper,
        degree: packer.degree(),
    })
}

/// Refuses weights that are not one per set, or too large to be summed.
pub(super) fn check_weights(sets: &UnitSets, weights: &[u64]) -> Result<(), DistributionError> {
    if weights.len() != sets.len() {
        return Err(DistributionError::Mismatch {
            what: "weights",
            expected: sets.len(),
            found: weights.len(),
        });
    }
    let sum = weights
        .iter()
        .try_fold(0_u64, |sum, &weight| sum.checked_add(weight));
    sum.map(drop).ok_or(DistributionError::Overflow("weights"))
}

/// Packs single variants, with the share α of the best one.
#[derive(Clone, Debug)]
pub struct Packer<'a> {
    sets: &'a UnitSets,
    bound: &'a Bound,
    holders: Holders,
    placeable: Vec<SetId>,
    /// Per set its cost; `u64::MAX` if it cannot be placed.
    costs: Vec<u64>,
}

impl<'a> Packer<'a> {
    /// For these sets and this bound.
    ///
    /// # Errors
    /// [`DistributionError::Mismatch`].
    pub fn new(sets: &'a UnitSets, bound: &'a Bound) -> Result<Self, DistributionError> {
        let placeable = placeable(sets, bound)?;
        let mut costs = vec![u64::MAX; sets.len()];
        for &set in &placeable {
            costs[set.index()] = bound.cost_of(sets.units(set));
        }
        Ok(Self {
            sets,
            bound,
            holders: sets.holders(),
            placeable,
            costs,
        })
    }

    /// Δ: the most placeable sets that one unit is in.
    #[must_use]
    pub fn degree(&self) -> u64 {
        let mut degrees = vec![0; self.sets.unit_count()];
        for unit in self.placeable.iter().flat_map(|&set| self.sets.units(set)) {
            degrees[unit.index()] += 1;
        }
        degrees.into_iter().max().unwrap_or(0)
    }

    /// A variant of much weight. It has only sets that weigh something, and all of these that its
    /// probes observe. Panics if there is not one weight per set.
    #[must_use]
    pub fn pack(&self, weights: &[u64]) -> Variant {
        let weight = |set: SetId| weights[set.index()];
        let packed = Packing::new(self, weights, None).run();
        let sum: u128 = packed.iter().map(|&set| u128::from(weight(set))).sum();
        let heaviest = self
            .placeable
            .iter()
            .copied()
            .max_by_key(|&set| weight(set));
        match heaviest {
            Some(set) if u128::from(weight(set)) > sum => {
                Variant::of_sets(self.sets, Packing::new(self, weights, Some(set)).run())
            }
            _ => Variant::of_sets(self.sets, packed),
        }
    }
}

/// A set that could be next. Stale once other probes have made it cheaper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    item: Item,
    set: std::cmp::Reverse<SetId>,
}

/// One variant being packed.
struct Packing<'p> {
    packer: &'p Packer<'p>,
    weights: &'p [u64],
    /// Per set, what its missing probes cost.
    missing: Vec<u64>,
    has: Vec<bool>,
    left: u64,
    heap: BinaryHeap<Candidate>,
    packed: Vec<SetId>,
    is_packed: Vec<bool>,
}

impl<'p> Packing<'p> {
    fn new(packer: &'p Packer<'p>, weights: &'p [u64], first: Option<SetId>) -> Self {
        let mut packing = Self {
            packer,
            weights,
            missing: packer.costs.clone(),
            has: vec![false; packer.sets.unit_count()],
            left: packer.bound.limit(),
            heap: BinaryHeap::new(),
            packed: Vec::new(),
            is_packed: vec![false; packer.sets.len()],
        };
        let weighty = packer
            .placeable
            .iter()
            .filter(|set| weights[set.index()] > 0);
        packing.heap = weighty.map(|&set| packing.candidate(set)).collect();
        first.into_iter().for_each(|set| packing.take(set));
        packing
    }

    fn candidate(&self, set: SetId) -> Candidate {
        let (weight, charge) = (self.weights[set.index()], self.missing[set.index()]);
        Candidate {
            item: Item { weight, charge },
            set: std::cmp::Reverse(set),
        }
    }

    fn run(mut self) -> Vec<SetId> {
        while let Some(Candidate { item, set }) = self.heap.pop() {
            let set = set.0;
            let is_stale = self.is_packed[set.index()] || item.charge != self.missing[set.index()];
            // What does not fit comes back if other probes make it cheaper.
            if !is_stale && item.charge <= self.left {
                self.take(set);
            }
        }
        self.packed
    }

    fn take(&mut self, set: SetId) {
        self.is_packed[set.index()] = true;
        self.packed.push(set);
        for &unit in self.packer.sets.units(set) {
            if !std::mem::replace(&mut self.has[unit.index()], true) {
                self.probe(unit);
            }
        }
    }

    /// Every set with this unit lacks less.
    fn probe(&mut self, unit: super::UnitId) {
        let cost = self.packer.bound.cost(unit);
        self.left -= cost;
        for &set in self.packer.holders.of(unit) {
            let is_open = self.packer.costs[set.index()] != u64::MAX
                && self.weights[set.index()] > 0
                && !self.is_packed[set.index()];
            if is_open && cost > 0 {
                self.missing[set.index()] -= cost;
                self.heap.push(self.candidate(set));
            }
        }
    }
}
