//! Probes that stay: what they displace is executed elsewhere.
//!
//! | what | file |
//! |---|---|
//! | instructions that mean the same at another place | `staying/moved.rs` |
//! | what a probe may change because nobody looks at it | `staying/live.rs` |
//! | adding one to a counter | `staying/increment.rs` |
//! | many blocks executed elsewhere, with counters between their instructions | `staying/region.rs` |

pub(crate) mod increment;
pub(crate) mod live;
pub(crate) mod moved;
pub(crate) mod region;
