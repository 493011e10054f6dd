//! Witnesses: the papers' examples, placement against the optimum, distribution against executions.

mod brute;
mod distribution;
mod graphs;
mod papers;
mod placement;
mod printed;
