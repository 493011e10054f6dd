//! What DPT prints, to the letter, for studies only: none of it may be used to trace a program.
//! Each file says what is wrong with it, and the tests show it.

pub mod figure_11;
pub mod figure_7;
pub mod theorem_1;
pub mod theorem_2;
