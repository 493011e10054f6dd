//! Why a module cannot be armed at all.

use tomo_program::ModelError;

/// Why no image was made.
#[derive(Debug, thiserror::Error)]
pub enum WeaveError {
    /// The program headers cannot be read.
    #[error("its program headers cannot be read: {0}")]
    Headers(&'static str),
    /// Nothing in it is executable.
    #[error("it has no executable segment")]
    NoText,
    /// It has more executable segments than an image has room for.
    #[error("it has {0} executable segments; at most {most} can be armed", most = tomo_wire::image::MOST_REGIONS)]
    TooManySegments(usize),
    /// Its text may change while it runs.
    #[error("its executable segment at {address:#x} is writable")]
    WritableText {
        /// Where the segment starts, as the module states it.
        address: u64,
    },
    /// The loader writes relocations into its text.
    #[error("the loader changes its text (DT_TEXTREL)")]
    RelocatedText,
    /// A segment is not laid out so that its pages are those of the file.
    #[error("its executable segment at {address:#x} {what}")]
    Layout {
        /// Where the segment starts, as the module states it.
        address: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// Text, trampolines, marks and alias do not fit into the reach of a jump.
    #[error("its text and what is needed to arm it are larger than a jump reaches")]
    TooLarge,
    /// The distance that was asked for is no multiple of a page, or too far or too near.
    #[error("trampolines cannot lie {0} bytes from the text")]
    Distance(i64),
    /// What belongs to a thread would be among its own data.
    #[error(
        "its instruction at {0:#x} works with the segment register gs, by which the probes of this command find what they write"
    )]
    OwnSegment(u64),
    /// Code of it would be executed elsewhere than its runtime knows it to be.
    #[error(
        "its code is Go's, whose runtime knows by the place of an instruction what to do: probes that vanish cover it (`tomo cover`), and none may stay, which would execute code elsewhere"
    )]
    StatedPlaces,
    /// A path was asked for that is none.
    #[error("path {path} of those asked for in {function} is none of its paths")]
    NoSuchPath {
        /// The function.
        function: String,
        /// Which path, counted from 0 in the order of paths.
        path: usize,
    },
    /// A function was asked for that there is not.
    #[error("it has no function {0}")]
    NoSuchFunction(String),
    /// Of none of the functions that were asked for, or of none at all, enough is known to trace it.
    #[error("too little is known of {} to trace {}", if .0.is_empty() { "its functions".into() } else { .0.join(", ") }, if .0.len() == 1 { "it" } else { "them" })]
    NothingTraced(Vec<String>),
    /// A run may have fewer witnesses than tell the ways of one branch apart.
    #[error(
        "one run must have {needs} witnesses, by which a branch of {function} is told: allow as many (--limit, which is {bound}), or trace other functions (--function)"
    )]
    BoundTooSmall {
        /// The function.
        function: String,
        /// How many at least.
        needs: usize,
        /// How many a run may have.
        bound: u32,
    },
    /// Witnesses cannot be shared among runs, for this reason.
    #[error("its witnesses cannot be distributed: {0}")]
    NotDistributed(String),
    /// The model is damaged.
    #[error("its model cannot be used: {0}")]
    Model(#[from] ModelError),
}
