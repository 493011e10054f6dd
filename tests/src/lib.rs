//! The test kit: oracles and real programs against which Tomograph is tested.

pub mod bbmap;
pub mod clock;
pub mod corpus;
pub mod coverage;
pub mod graphs;
pub mod held;
pub mod inlined;
pub mod paths;
pub mod places;
pub mod processor;
pub mod steps;
pub mod tomo;
pub mod truth;
