//! The model of a program, in the form in which it is kept, loaded and walked.
//!
//! There is one form only: a flat sequence of little-endian bytes. [`Model::build`] packs functions
//! into it, a file holds just these bytes, [`Model::open`] maps the file, and the views of
//! [`Graphs`] read the bytes where they lie. Nothing is parsed, so loading costs what checking
//! costs.
//!
//! ```text
//! header    magic "TOMOMODL", format version, analysis version, length, key, fingerprint, hash of
//!           the file, per section offset, length and checksum (xxh3), checksum of the header
//! sections  summary · warnings · imports · functions · names · ranges · ranges by address · spans
//!           · blocks · edges · exits · calls · indirect jumps · files · lines
//! ```
//!
//! Functions are numbered by entry, blocks function by function and within one by address, edges
//! and calls by block: a number is a position in a section, and stays the same for one build of a
//! program as long as [`ANALYSIS_VERSION`] does.
//!
//! Three checks stand between bytes from outside and a view, each done once: of the header and the
//! summary when the model is opened (microseconds, however large it is), of the checksums of the
//! sections of the graphs by [`Model::graphs`], and there too of what the views rely on. What a
//! view cannot rely on it looks up with a bounds check and finds nothing: a file whose checksums
//! are right and whose contents are not gives wrong answers, never a panic and never an endless
//! walk.

mod build;
mod find;
mod flow;
mod format;
mod graphs;
mod path_graph;
mod predecessors;
mod records;
mod returns_again;
mod sites;
mod strings;
mod summary;
mod views;

use std::fs::File;
use std::path::Path;
use std::sync::OnceLock;

use crate::mapping::Mapping;
use crate::{Facts, Function};

pub use find::Search;
pub use format::{ANALYSIS_VERSION, FORMAT_VERSION, ModelError};
pub use graphs::{Graphs, Named};
pub use path_graph::{PathEdge, PathGraph, Severed};
pub use predecessors::Predecessors;
pub use returns_again::ReturnsAgain;
pub use sites::{CallView, IndirectJumpView};
pub use strings::Strings;
pub use summary::Summary;
pub use views::{BlockView, EdgeView, FunctionView, SourcePosition, Target};

pub(crate) use format::LONGEST_BUILD_ID;
use format::{Layout, Section};

/// A dense number of a unit, by address order; see the module's text.
macro_rules! dense_ids {
    ($($(#[$doc:meta])* $name:ident),*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// The number as an index.
            #[must_use]
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    )*};
}

dense_ids! {
    /// A function of the program.
    FunctionId,
    /// A block of the program.
    BlockId,
    /// An edge of the program.
    EdgeId,
    /// A call instruction of the program.
    CallId
}

/// Bytes that somebody owns, or that are mapped from a file.
#[derive(Debug)]
enum Bytes {
    Owned(Vec<u8>),
    Mapped(Mapping),
}

impl Bytes {
    fn get(&self) -> &[u8] {
        match self {
            Self::Owned(bytes) => bytes,
            Self::Mapped(mapping) => mapping.bytes(),
        }
    }
}

/// The model of one program.
#[derive(Debug)]
pub struct Model {
    bytes: Bytes,
    layout: Layout,
    summary: Summary,
    checked: OnceLock<Result<(), ModelError>>,
}

impl Model {
    /// Packs what the analysis found. The functions are given up one by one as they are packed, so
    /// that hardly more memory is needed than the model itself has.
    #[must_use]
    pub fn build(functions: Vec<Function>, facts: Facts) -> Self {
        let (bytes, layout, summary) = build::pack(functions, facts);
        Self {
            bytes: Bytes::Owned(bytes),
            layout,
            summary,
            checked: OnceLock::from(Ok(())),
        }
    }

    /// Maps the model in the file at `path`; checks its header and its summary.
    ///
    /// # Errors
    /// Where the file cannot be read, is no model, is of another version, or is damaged.
    pub fn open(path: &Path) -> Result<Self, ModelError> {
        Self::from_file(&File::open(path)?)
    }

    /// The same for an open file.
    ///
    /// # Errors
    /// As for [`Model::open`].
    pub fn from_file(file: &File) -> Result<Self, ModelError> {
        if !file.metadata()?.is_file() {
            return Err(ModelError::NoModel);
        }
        Self::check(Bytes::Mapped(Mapping::of(file)?))
    }

    /// Takes `bytes` for a model; checks its header and its summary.
    ///
    /// # Errors
    /// Where they are no model, of another version, or damaged.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, ModelError> {
        Self::check(Bytes::Owned(bytes))
    }

    fn check(bytes: Bytes) -> Result<Self, ModelError> {
        let layout = Layout::read(bytes.get())?;
        let summary = Summary::from_section(layout.verified(bytes.get(), Section::Summary)?)?;
        Ok(Self {
            bytes,
            layout,
            summary,
            checked: OnceLock::new(),
        })
    }

    /// The model as it is kept in a file.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get()
    }

    /// Counts and facts about the whole program.
    #[must_use]
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// The program's build id.
    #[must_use]
    pub fn build_id(&self) -> Option<&[u8]> {
        self.layout.build_id(self.bytes.get())
    }

    /// Hash of the program's headers (see [`crate::Identity`]).
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        self.layout.fingerprint
    }

    /// The hash (xxh3, 128 bits) of the whole file that it is the model of.
    #[must_use]
    pub fn content(&self) -> u128 {
        self.layout.content
    }

    /// What the analysis could not read or found strange.
    ///
    /// # Errors
    /// Where this part of the model is damaged.
    pub fn warnings(&self) -> Result<Strings<'_>, ModelError> {
        self.strings(Section::Warnings)
    }

    /// Names of the imported symbols.
    ///
    /// # Errors
    /// Where this part of the model is damaged.
    pub fn imports(&self) -> Result<Strings<'_>, ModelError> {
        self.strings(Section::Imports)
    }

    fn strings(&self, section: Section) -> Result<Strings<'_>, ModelError> {
        Strings::read(self.layout.verified(self.bytes.get(), section)?, section)
    }

    /// The functions with their graphs. The first call checks all of it, about a millisecond for
    /// ten megabytes.
    ///
    /// # Errors
    /// Where the model is damaged.
    pub fn graphs(&self) -> Result<Graphs<'_>, ModelError> {
        self.checked.get_or_init(|| self.verify()).clone()?;
        Graphs::read(&self.layout, self.bytes.get())
    }

    /// Checks everything.
    ///
    /// # Errors
    /// Where the model is damaged.
    pub fn verify(&self) -> Result<(), ModelError> {
        self.layout.verify(self.bytes.get())?;
        self.warnings()?;
        Graphs::read(&self.layout, self.bytes.get())?.check()
    }
}
