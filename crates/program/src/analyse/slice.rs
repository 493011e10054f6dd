//! Backward slices of indirect jumps: what the target of a jump is computed from.

pub(crate) mod effect;
pub(crate) mod guard;
mod kept;
mod path;
pub(crate) mod search;
pub(crate) mod value;
