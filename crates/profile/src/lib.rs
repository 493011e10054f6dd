//! What the data of probes mean: from reports to what happened. Pure, like the placement that it
//! answers to (`tomo-plan`).
//!
//! [`records`] are read and [`merge`]d; [`units`] and [`coverage`] say what ran, [`counts`] how often,
//! [`chains`] by which calls, [`paths`] along which paths, and [`reconstruction`] in which order
//! ([`tracing`] does so for real programs); [`scores`] say what foretells
//! failure, [`award`] what a distribution of probes shows.

#![forbid(unsafe_code)]

pub mod award;
pub mod chains;
pub mod counts;
pub mod coverage;
pub mod merge;
pub mod paths;
pub mod reconstruction;
pub mod records;
pub mod scores;
pub mod tracing;
pub mod units;
