//! How well a predicate foretells failure.
//!
//! Source: ABI §4.3, after Liblit, Naik, Zheng, Aiken, Jordan, *Scalable Statistical Bug Isolation*,
//! PLDI 2005, §3.1. All scores work on four numbers of runs per predicate ([`Tally`]) and on how many
//! runs failed; each opens with its formula in its own file. All are O(1).
//!
//! What is undefined in the source is defined here: a predicate that was never seen has the lowest
//! score of each kind, never a NaN, so scores are totally ordered and a search is reproducible.

mod hypothesis;
mod implied;
mod importance;
mod pick;
mod sequential;
mod tally;

pub use hypothesis::{mann_whitney, t_statistic, t_test};
pub use implied::recover;
pub use importance::{
    Interval, fail_count, importance, importance_interval, increase, max_importance, ochiai,
};
pub use pick::{Heuristic, best};
pub use sequential::{
    Decision, DoubleDichotomy, OddsTest, Sufficiency, SufficiencyRule, TestError,
};
pub use tally::{Outcome, Tallies, Tally};
