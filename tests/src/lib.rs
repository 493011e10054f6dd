//! The test kit: oracles and real programs against which Tomograph is tested.

pub mod corpus;
