//! From what path probes recorded to the paths that ran, and how often.
//!
//! Sources: BL96, §3.4 (the path of a number, by the ways with the largest values that still fit);
//! SPP §3 (of selected paths only). A table maps numbers to counts; it comes as pairs, from an
//! array or a hash table alike. Tables of several runs may be merged by adding up.
//!
//! Everything that was recorded is accounted for: a number that is no path's is an error for a plan of all
//! paths, and counts as others' for a selection.

mod decoder;
mod stretches;
mod tables;

pub use decoder::Decoder;
pub use tables::{PathCount, Selected, TableError, all_counts, frequencies, selected_counts};
