//! What happened, in the formats that people know: from folders of records to a [`Picture`], and from
//! that to lcov, Cobertura, JSON, drcov and HTML.
//!
//! | step | file |
//! |---|---|
//! | records found, read and merged | `folder.rs` |
//! | the file of each module found, its model loaded | `module.rs` |
//! | marks read into what is known of each unit | `findings.rs` |
//! | units put beside source lines | `picture/` |
//! | lines left out that the source marks | `marked.rs` |
//! | addresses in words | `located.rs` |
//! | predicates beside the source | `predicates.rs` |
//! | views of the picture | the other files |
//!
//! Linear in records, units and rows of line tables, plus sorting; on all processors.

#![forbid(unsafe_code)]

pub mod chains;
pub mod cobertura;
pub mod counted;
mod counts;
pub mod drcov;
mod findings;
mod folder;
mod followed;
pub mod html;
pub mod json;
pub mod lcov;
mod lines;
mod located;
mod marked;
pub mod markup;
mod merged;
mod module;
mod path_counts;
mod paths;
mod picture;
pub mod predicates;
mod protobuf;
mod source;
pub mod traced;
pub mod words;

pub use counts::{
    Counts, Extent, FunctionCounts, Recorded, TooMany, counts, frequencies, merge as merge_counts,
};
pub use findings::{Findings, UnitError};
pub use folder::{Collected, Group, Refused, collect, single_processes};
pub use followed::{Followed, paths_document, write_paths_table};
pub use located::{Place, places};
pub use merged::{MergeError, write_merged};
pub use module::{Located, ModuleError, locate};
pub use path_counts::{
    FunctionPaths, NotAlike, PathBreak, PathCounts, PathEnd, PathName, RanPath,
    merge as merge_paths, numbers_counted, path_counts, path_names,
};
pub use paths::{BadPattern, Paths};
pub use picture::{
    Branch, Brief, Copies, File, Function, LeftOut, Line, Module, Observed, Picture, Row, Tally,
    Totals, Unobserved,
};
