//! Where probes go: the placement algorithms of the literature. Graphs in, plans out; no ELF, no
//! input or output, nothing random but by a given seed.
//!
//! [`counting`] finds the cheapest counters, [`coverage`] the fewest one-shot probes, [`paths`] numbers
//! acyclic paths, all of them or some; [`predicates`] leaves out what others imply, and [`search`]
//! explores the rest step by step; [`witnesses`] are for tracing. [`distribution`] shares probes
//! out over variants, [`chains`] gives it its events, and [`disposal`] simulates taking probes away.

#![forbid(unsafe_code)]

pub mod chains;
pub mod counting;
pub mod coverage;
pub mod disposal;
pub mod distribution;
pub mod paths;
pub mod predicates;
pub mod random;
pub mod search;
pub mod witnesses;
