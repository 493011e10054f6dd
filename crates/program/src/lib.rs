//! What a program is: from an unmodified ELF file to a model of its functions,
//! control-flow graphs, sites and source lines.

mod address;
mod cfg;
pub mod elf;
pub mod unwind;
mod warning;

pub use address::{Address, Range};
pub use cfg::*;
pub use elf::Binary;
pub use warning::Warning;
