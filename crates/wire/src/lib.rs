//! Every format that crosses a wall between the parts of Tomograph: written by one process, perhaps
//! of one version of `tomo`, and read by another.
//!
//! | format | written by | read by | what |
//! |---|---|---|---|
//! | [`image`] | weaving | the agent | a plan made into machine code for one module |
//! | [`moved`] | weaving | the agent, reports | where what an image executes elsewhere comes from |
//! | [`relocations`] | weaving | the agent | what of an image changes if it is put elsewhere |
//! | [`record`] | the agent, live | reports | what the probes of one image saw |
//! | [`plan`] | weaving | reports | what each probe observes, and what could not be observed |
//! | [`disposal`] | weaving | launching | how each probe of an image is taken away from outside |
//! | [`counting`] | weaving, the agent, live | reports | which counter counts what, and the slabs that hold them |
//! | [`paths`] | weaving | reports | which counter counts which path, and what happens to paths where |
//! | [`predicates`] | weaving | reports | which mark or counter tells of which predicate |
//! | [`tracing`] | weaving, the agent, live | reports | the chart of what is traced, and the tracks of threads |
//! | [`chains`] | weaving, the agent, live | reports | which functions are observed, and the trees of their calls |
//! | [`cuts`] | the agent, live | reports | where faults took threads out of the middle of a block |
//! | [`crash`] | launching, the agent, live | reports | where threads were when a fatal signal came |
//! | [`environment`] | launching, people | the agent, launching | names of variables |
//! | [`held`] | weaving | the agent | how trampolines end that restore behind a hold |
//! | [`roster`] | launching | the agent | which image arms which module, and where its record is |
//! | [`tally`] | instances of a fleet | themselves | which unit of a campaign each counter counts |
//! | [`report`] | instances of a fleet | the collector | what one run has hit so far |
//!
//! All numbers are little-endian, all headers have a magic number, a version, a length and a
//! checksum, and each is *checked at the door*: a reader gets its parts only after all of them
//! agree with the length of the file. Nothing here allocates, panics on hostile bytes, or needs the
//! standard library: the agent links this crate into other people's programs.

#![no_std]
#![forbid(unsafe_code)]

pub mod chains;
pub mod counting;
pub mod crash;
pub mod cuts;
pub mod disposal;
mod door;
pub mod environment;
pub mod held;
pub mod image;
mod module;
pub mod moved;
pub mod paths;
pub mod plan;
pub mod predicates;
pub mod record;
pub mod relocations;
pub mod report;
pub mod roster;
pub mod tally;
pub mod tracing;

pub use door::{Refusal, checksum, of_schema};
pub use module::{FileStamp, LONGEST_BUILD_ID, ModuleId};

/// Bytes of a page on x86-64; every part of a file that is mapped starts at a multiple of it.
pub const PAGE: u64 = 4096;

/// `bytes` rounded up to whole pages; `None` where that is more than 64 bits hold.
#[must_use]
pub fn pages(bytes: u64) -> Option<u64> {
    bytes.checked_next_multiple_of(PAGE)
}
