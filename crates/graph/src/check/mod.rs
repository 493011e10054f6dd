//! Oracles.
