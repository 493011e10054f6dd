//! The papers' studies, on real programs.
//!
//! | module | study |
//! |---|---|
//! | [`disposal`] | DIS: what coverage costs when probes stay, when each goes at its first hit, and when it goes for all instances at once |
//! | [`isolation`] | ABI: how much of a program must be watched until what predicts its failures is found |
//! | [`svg`] | plots: lines, points and boxes, for light and dark pages |

pub mod disposal;
pub mod isolation;
pub mod svg;
mod table;
