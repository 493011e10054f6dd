//! A small program with one of everything, as the analysis could find it.

#[path = "../../../program/tests/model_check/sample.rs"]
mod shared;

pub(crate) use shared::{facts, functions};
