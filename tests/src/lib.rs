//! The test kit: oracles and real programs against which Tomograph is tested.

pub mod bbmap;
pub mod corpus;
pub mod steps;
pub mod tomo;
pub mod truth;
