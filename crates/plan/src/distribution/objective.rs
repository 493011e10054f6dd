//! What the hill climb minimises: cost(D) = α · BALANCE + β · PACKING + γ · ALLUSED (PDT §4.3).
//!
//! - BALANCE = Σ over sets of length · |times used − average times used|.
//! - ALLUSED = Σ of the lengths of sets that are in no variant.
//! - PACKING of the text: variants in which few probes serve several sets cost more. With ov_i, the
//!   placements that variant i saves because its sets share units (the sum of their lengths less
//!   its probes), and L, what a variant with all sets would save, it is Σ over variants of L − ov_i.
//!
//! **PACKING as printed does the opposite**, see `printed.rs` beside. Turning its fraction round,
//! Σ (Max − ov_i), would not do either: a distribution without any overlap would then be perfect, and
//! so would one become whose best variant gets worse. L is fixed, and no variant can save more, so
//! that the sum falls with every placement saved and with nothing else.
//!
//! Sets that exceed the bound all alone count in none of the three, since nothing could be done
//! about them; PDT would never reach a cost of zero with such a set.
//!
//! All three are integers: BALANCE times the number of placeable sets, PACKING times 2^20 (the
//! printed fractions need it), the weights in thousandths. So sums do not depend on their order, and
//! two costs are equal or not, with no tolerance. [`Cost::value`] is PDT's number.

use super::DistributionError;

/// What PACKING is scaled by.
pub(super) const FRACTION: u128 = 1 << 20;

/// α, β and γ, in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weights {
    balance: u32,
    packing: u32,
    all_used: u32,
}

impl Weights {
    /// Table 1 of PDT, row Balanced.
    pub const BALANCED: Self = Self::table(500, 0, 500);
    /// Table 1 of PDT, row Packed.
    pub const PACKED: Self = Self::table(0, 500, 500);
    /// Table 1 of PDT, row Balanced-Packed.
    pub const BALANCED_PACKED: Self = Self::table(400, 200, 400);

    const fn table(balance: u32, packing: u32, all_used: u32) -> Self {
        Self {
            balance,
            packing,
            all_used,
        }
    }

    /// α, β and γ.
    pub(super) fn thousandths(&self) -> [u32; 3] {
        [self.balance, self.packing, self.all_used]
    }

    /// α, β and γ in thousandths.
    ///
    /// # Errors
    /// [`DistributionError::Weight`] for one above 1,000.
    pub fn new(balance: u32, packing: u32, all_used: u32) -> Result<Self, DistributionError> {
        let weights = [balance, packing, all_used];
        match weights.into_iter().find(|&weight| weight > 1000) {
            Some(weight) => Err(DistributionError::Weight(weight)),
            None => Ok(Self::table(balance, packing, all_used)),
        }
    }
}

/// Which PACKING.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Packing {
    /// What the text says: more overlap costs less.
    Meant,
    /// What is printed, for study (feature `lab`): a variant far from the largest overlap costs
    /// less.
    #[cfg(feature = "lab")]
    Printed,
}

/// The three parts of the cost, each scaled to an integer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// BALANCE, times the number of placeable sets.
    pub balance: u128,
    /// PACKING, times 2^20, its fractions rounded down.
    pub packing: u128,
    /// ALLUSED.
    pub all_used: u128,
}

impl Parts {
    /// Their weighted sum, given the number of placeable sets.
    ///
    /// No overflow: with less than 2^32 sets and units in them, and at most 2^24 variants, each
    /// summand is below 2^119.
    #[must_use]
    pub fn weighted(&self, weights: &Weights, placeable: usize) -> Cost {
        let sets = placeable.max(1) as u128;
        let balance = u128::from(weights.balance) * self.balance * FRACTION;
        let packing = u128::from(weights.packing) * self.packing * sets;
        let all_used = u128::from(weights.all_used) * self.all_used * sets * FRACTION;
        Cost {
            numerator: balance + packing + all_used,
            denominator: 1000 * sets * FRACTION,
        }
    }
}

/// The cost of a distribution, an exact fraction. Costs of the same sets under the same bound have
/// the same denominator, and are compared by numerator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// The numerator.
    pub numerator: u128,
    /// The denominator, never zero.
    pub denominator: u128,
}

impl Cost {
    /// The number that PDT writes cost(D).
    #[must_use]
    pub fn value(&self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }
}

#[cfg(test)]
mod tests {
    use super::{DistributionError, FRACTION, Parts, Weights};

    #[test]
    fn the_weighted_sum_is_that_of_the_paper() {
        let parts = Parts {
            balance: 7 * 10, // BALANCE 10 over 7 sets
            packing: 5 * FRACTION,
            all_used: 3,
        };
        let value = |weights| parts.weighted(&weights, 7).value();
        assert_eq!(value(Weights::BALANCED), 6.5);
        assert_eq!(value(Weights::PACKED), 4.0);
        assert_eq!(
            value(Weights::BALANCED_PACKED),
            0.4 * 10.0 + 0.2 * 5.0 + 0.4 * 3.0
        );
    }

    #[test]
    fn weights_above_one_are_refused() {
        assert!(Weights::new(1000, 0, 1000).is_ok());
        assert_eq!(
            Weights::new(0, 1001, 0),
            Err(DistributionError::Weight(1001))
        );
    }

    #[test]
    fn the_largest_parts_do_not_overflow() {
        let (sets, length, variants) = (1_u128 << 32, 1_u128 << 32, 1_u128 << 24);
        let parts = Parts {
            balance: length * sets * variants,
            packing: variants * length * FRACTION,
            all_used: length,
        };
        let weights = Weights::new(1000, 1000, 1000).unwrap();
        assert!(parts.weighted(&weights, sets as usize).numerator < 1 << 121);
    }
}
