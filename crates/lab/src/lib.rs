//! The papers' studies, on real programs.
//!
//! | module | study |
//! |---|---|
//! | [`disposal`] | DIS: what coverage costs when probes stay, when each goes at its first hit, and when it goes for all instances at once |
//! | [`distribution`] | PDT: how much of what happens probes show that are distributed over instances, and what they report falsely |
//! | [`isolation`] | ABI: how much of a program must be watched until what predicts its failures is found |
//! | [`paths`] | SPP: how many probes it takes to tell some acyclic paths from all others, and what they cost |
//! | [`tracing`] | DPT: what it costs to put traces together from several runs |
//! | [`svg`] | plots: lines, points and boxes, for light and dark pages |

pub mod disposal;
pub mod distribution;
pub mod isolation;
pub mod paths;
mod sheet;
pub mod svg;
mod table;
pub mod tracing;
