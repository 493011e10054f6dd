//! A second opinion on flow graphs: the compiler's.
//!
//! LLVM writes, if asked, where each machine basic block of each function lies and which blocks can
//! follow it (`.llvm_bb_addr_map`), without changing a byte of the code. Here that map is read
//! ([`decode`], [`program`]), brought to the grain of instructions ([`refine`], [`returns`]), and
//! compared with what `tomo map --format jsonl` prints ([`model`], [`compare`]), after both have been
//! brought to one normal form ([`graph`]).
//!
//! # What is the same on both sides, and why that hides nothing
//!
//! - *Calls end no block*, and a block is joined to the one behind it where it is its only way out and
//!   that one's only way in. Both sides pass through the same function.
//! - *Two or three terminators in one machine block* (`jne`, `jp` for a floating-point comparison; `ja`,
//!   `je`): LLVM's block is split behind each by decoding the bytes that the map gives it. Blurring
//!   the model's instead would hide a branch that is wrong inside one. The stated successors must
//!   come out even with the decoded ones, or there is an [`refine::Oddity`].
//! - *Empty machine blocks* are contracted into what physically follows. An empty block without
//!   successors is LLVM's `unreachable`: a call in front of it does not return; a jump to it is a jump
//!   to what lies there, and if that is the end of the function, no edge at all. Jump tables have such
//!   entries, for impossible values; they may be the address of the next function.
//! - *Alignment* that control runs over belongs to the block before; alignment behind a jump to nobody.
//!   A block starts at its first instruction that does something.
//! - *Landing pads*: the call that throws is the last one of its machine block, which is split behind it,
//!   so that the edge must leave from the right call. Calls that LLVM knows not to throw, but which lie
//!   between two that do, are covered by their entry in the exception table; [`compare`] sets these
//!   edges of a model aside where the map explains them.
//! - *Calls that never return though the caller's compiler did not know* ([`returns`]): proven from the
//!   map of the callee, or told by a trap behind the call; there a model may go on or not.
//! - *Blocks that the entry does not reach* by the map's own successors are dropped from the map, not
//!   from the model: a model that reaches them is wrong.
//! - *Tail calls* are no edges, but a block with a conditional one has a way out and is not joined. A
//!   jump to the function's own entry is an edge: LLVM makes loops of such calls.
//!
//! # What was found
//!
//! In lua, sqlite, bzip2, zstd, C++ and Rust programs by clang 19 and rustc 1.95 at -O0, -O2 and -O3 no
//! map contradicts its bytes: each stated successor is one by the decoded instructions, and each
//! decoded one is stated. Only behind an indirect jump, where decoding cannot tell, a map may state
//! too much: all entries of a table for a copy of the dispatch whose index is a constant. So what
//! differs is to be sought in the model first.
//!
//! # Sections
//!
//! GNU ld, gold and lld keep and join the sections, and final addresses stand in them, because the
//! address field is relocated while linking. The sections are linked to their functions
//! (`SHF_LINK_ORDER`) and in the same group: `--gc-sections` and the choice among several copies of an
//! inline function drop both together. lld's identical-code folding keeps one record.

pub mod compare;
pub mod decode;
pub mod graph;
pub mod model;
pub mod program;
pub mod refine;
pub mod returns;
