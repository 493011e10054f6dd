//! The model: what goes in comes out, what is damaged is refused, what is cached is found.

#[path = "../model_check/mod.rs"]
mod model_check;
#[path = "../model_check/sample.rs"]
mod sample;

mod arbitrary;
mod cache;
mod hostile;
mod load;
mod round_trip;
mod views;
