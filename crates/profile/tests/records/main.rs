//! Records and plans as files, cut and damaged; merging, and what is read of a function.

mod attack;
mod merging;
mod reading;
mod sample;
