//! What a program is: from an unmodified ELF file to a model of its functions,
//! control-flow graphs, sites and source lines.

mod address;
mod analyse;
mod cache;
mod cfg;
mod contents;
pub mod debug_file;
pub mod dwarf;
pub mod elf;
mod facts;
pub mod go;
mod identity;
mod load;
mod lossless;
mod mapping;
mod model;
mod names;
mod needed;
mod patch;
mod progress;
mod regular;
mod resources;
mod sure;
pub mod unwind;
mod warning;
mod words;

pub use address::{Address, Range};
pub use analyse::{AnalyseError, analyse, analyse_file};
pub use cache::{CLOSED, Cache, CacheError, PASSABLE, make_folder};
pub use cfg::*;
pub use elf::Binary;
pub use facts::Facts;
pub use identity::{Headers, Identity, Key, hexadecimal};
pub use load::{Analysis, LoadError, Loaded, Request, load, load_with};
pub use lossless::{path_of, text_of, text_of_bytes};
pub use model::*;
pub use names::{demangle, is_called, is_thunk, source_name, without_marks, without_parameters};
pub use needed::{Needed, is_static, is_static_in};
pub use patch::{DETOUR_BYTES, FETCH_BYTES, Patchability, first_instruction_sizes, patchability};
pub use progress::Progress;
pub use regular::{open_regular, read_regular};
pub use resources::peak_memory_bytes;
pub use warning::Warning;
