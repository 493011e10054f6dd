//! What cannot be distributed, and why.

use super::{SetId, UnitId};
use thiserror::Error;

/// Input that makes no sense. Sizes beyond what indices of four bytes hold are refused as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DistributionError {
    /// A set without units: it would be observed by any variant, whatever happens.
    #[error("set {} has no units", .0.0)]
    EmptySet(SetId),
    /// A set names a unit that is not there.
    #[error("set {} names unit {}, but there are {units} units", .set.0, .unit.0)]
    NoSuchUnit {
        /// The set.
        set: SetId,
        /// What it names.
        unit: UnitId,
        /// How many units there are.
        units: usize,
    },
    /// A distribution names a set that is not there.
    #[error("there is no set {}", .0.0)]
    NoSuchSet(SetId),
    /// More units, sets, or units in all sets together than fit into 32 bits.
    #[error("more units or sets than 32 bits can number")]
    TooLarge,
    /// No variants to distribute over.
    #[error("there are no variants to distribute probes over")]
    NoVariants,
    /// More than 2^24 variants.
    #[error("{0} variants are more than 2^24")]
    TooManyVariants(usize),
    /// A list that should have an entry per unit, or per set, has not.
    #[error("{found} {what} where {expected} are expected")]
    Mismatch {
        /// What the list holds.
        what: &'static str,
        /// How many there should be.
        expected: usize,
        /// How many there are.
        found: usize,
    },
    /// The costs of all units, or the weights of all sets, do not add up in 64 bits.
    #[error("the sum of all {0} exceeds 64 bits")]
    Overflow(&'static str),
    /// A weight of the objective above 1 (1,000 thousandths).
    #[error("{0} thousandths: the weights of the objective lie between 0 and 1,000")]
    Weight(u32),
}
