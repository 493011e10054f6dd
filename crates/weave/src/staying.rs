//! Probes that stay: what they displace is executed elsewhere.
//!
//! | what | file |
//! |---|---|
//! | instructions that mean the same at another place | `staying/moved.rs` |
//! | what a probe may change because nobody looks at it | `staying/live.rs` |
//! | adding one to a counter | `staying/increment.rs` |
//! | where an activation's return address is | `staying/frame.rs` |
//! | the register of a path, and its end | `staying/path.rs` |
//! | telling a result by its sign | `staying/class.rs` |
//! | what is done between the program's instructions | `staying/action.rs` |
//! | how deep the stack is at calls | `staying/depth.rs` |
//! | a step in the tree of calls | `staying/chain.rs` |
//! | many blocks executed elsewhere, with actions between their instructions | `staying/region.rs` |
//! | two cases of a result, told apart by flags | `staying/split.rs` |
//! | a block as a place for actions | `staying/code.rs` |
//! | which blocks of a function are executed elsewhere as a whole | `staying/whole.rs` |

pub(crate) mod action;
pub(crate) mod chain;
pub(crate) mod class;
pub(crate) mod code;
pub(crate) mod depth;
pub(crate) mod frame;
pub(crate) mod increment;
pub(crate) mod live;
pub(crate) mod moved;
pub(crate) mod path;
pub(crate) mod region;
pub(crate) mod split;
pub(crate) mod whole;
pub(crate) mod witness;
