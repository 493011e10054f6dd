//! The control-flow graph of one function as the analysis finds it, before it is packed into the
//! model file.
//!
//! Blocks end at every control transfer, calls included: what follows a call runs only if the
//! callee returns, and a unit must mean "its first byte ran, therefore all of it did, up to a
//! signal". Whoever wants the compilers' blocks joins along [`EdgeKind::CallFallthrough`].

use zerocopy::{Immutable, KnownLayout, TryFromBytes};

use crate::{Address, Range};

/// How much is known of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// Every way in, every instruction and every successor is known.
    Exact,
    /// What is known is true, but something more may exist.
    Partial(Reason),
    /// Nothing but the entry is to be relied upon.
    Opaque(Reason),
}

/// Why a function is not exact.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, TryFromBytes, KnownLayout, Immutable,
)]
#[repr(u8)]
pub enum Reason {
    /// An indirect jump whose targets could not be proven.
    UnresolvedIndirectJump = 1,
    /// Bytes that are no instruction are reached.
    InvalidInstruction = 2,
    /// Two ways of decoding overlap.
    OverlappingInstructions = 3,
    /// Control runs over the end of the function's known bytes.
    RunsOffTheEnd = 4,
    /// Another function jumps into the middle of an instruction of this one.
    EnteredInsideInstruction = 5,
    /// The exception tables could not be read, so landing pads may be missing.
    BrokenExceptionTable = 6,
    /// Code that manipulates its own return address, far transfers and the like.
    UnusualControlTransfer = 7,
    /// Bytes that nothing known reaches, in a function whose jump tables have no guarding compare.
    UnreachedBytes = 8,
    /// A jump leads to an address that is no code of this file.
    JumpOutsideText = 9,
    /// The symbol has no bytes in any executable section.
    NoBytes = 10,
    /// It has no unwind entry, among much code that has none: a compiler of another kind wrote it, who may enter it anywhere.
    Foreign = 11,
    /// A restartable sequence is in it, which the kernel has begin anew by where its instructions are, or the abort handler of one.
    Restartable = 12,
    /// Nothing says that it is code but a pointer, a label without a type, or what is not known to be code either: it may be data.
    MaybeData = 13,
    /// An instruction holds an address inside of it, and no jump is known that leads there.
    HeldLabel = 14,
    /// It jumps to where a word behind it says, which nobody can have written: it is made to be copied to where there is one.
    Template = 15,
    /// It is a part that was split off from a function that is not known, which may enter it anywhere; or such a part may be of it.
    OrphanedPart = 16,
}

impl Reason {
    /// How much it forbids, beside what every reason does: of several that are true, the one that forbids most has to be said.
    pub(crate) fn forbids(self) -> u8 {
        match self {
            // Everything: code comes back elsewhere, or runs elsewhere.
            Self::UnusualControlTransfer | Self::Template => 3,
            // Every probe.
            Self::OverlappingInstructions => 2,
            // Every probe but traps.
            Self::EnteredInsideInstruction => 1,
            _ => 0,
        }
    }
}

/// A maximal run of instructions with one way in, at the start, and one way out, at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its bytes.
    pub range: Range,
    /// How many instructions it has, at least one.
    pub instructions: u32,
    /// Whether it ends in a system call that may come back in two processes, or never.
    pub forks_or_ends: bool,
}

/// Why control may pass along an edge.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, TryFromBytes, KnownLayout, Immutable,
)]
#[repr(u8)]
pub enum EdgeKind {
    /// Into the next block, because something jumps there.
    Fallthrough = 0,
    /// A conditional branch that is taken.
    Taken = 1,
    /// A conditional branch that is not taken.
    NotTaken = 2,
    /// A direct unconditional jump.
    Jump = 3,
    /// One entry of a jump table.
    JumpTable = 4,
    /// A label whose address is taken and which an indirect jump may reach (computed goto).
    ComputedGoto = 5,
    /// From a call to the instruction behind it, when the callee returns.
    CallFallthrough = 6,
    /// From a call to the landing pad that the unwinder enters when the callee throws or panics.
    LandingPad = 7,
    /// A jump to another function: its frame replaces ours.
    TailCall = 8,
    /// A jump into the middle of another function.
    JumpInto = 9,
}

impl EdgeKind {
    /// Whether the edge leads to a block of the same function.
    #[must_use]
    pub fn is_intraprocedural(self) -> bool {
        !matches!(self, Self::TailCall | Self::JumpInto)
    }
}

/// One way out of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Edge {
    /// Index of the block it leaves, in [`Function::blocks`].
    pub from: u32,
    /// Where it leads: the start of a block.
    pub to: Address,
    /// Why.
    pub kind: EdgeKind,
}

/// Whom a call calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Callee {
    /// A function of this program, by its entry (through the PLT or not).
    Function(Address),
    /// An index into [`crate::Binary::imports`] (through the PLT, or through a GOT slot).
    Import(u32),
    /// Known only at run time.
    Indirect,
}

/// A call instruction. Its block ends with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Index of the block that it ends.
    pub block: u32,
    /// Where the call instruction starts.
    pub address: Address,
    /// Whom it calls.
    pub callee: Callee,
    /// Whether the callee can come back (and control continues behind the call).
    pub returns: bool,
    /// Whether debug information says that the result is void.
    pub void: bool,
}

/// What is known of an indirect jump.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, TryFromBytes, KnownLayout, Immutable)]
#[repr(u8)]
pub enum Resolution {
    /// A jump table whose bounds a compare or mask proves.
    GuardedTable = 1,
    /// A jump table without a compare (all other values are impossible by the compiler's
    /// knowledge), its extent proven by what surrounds it.
    MeasuredTable = 2,
    /// A pointer as it was found: it leads to one of the labels of the function whose address is taken, or leaves the function.
    Labels = 3,
    /// Leaves the function: its target cannot be inside.
    TailCall = 4,
    /// Unknown.
    Unresolved = 5,
}

/// A jump through a register or memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndirectJump {
    /// Index of the block that it ends.
    pub block: u32,
    /// Where the jump instruction starts.
    pub address: Address,
    /// What is known of its targets.
    pub resolution: Resolution,
    /// The import it jumps to, where it is a tail call through a GOT slot.
    pub import: Option<u32>,
}

/// One function with its control-flow graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its entry.
    pub entry: Address,
    /// Its bytes: the part with the entry first, then split-off (cold) parts by address.
    pub ranges: Vec<Range>,
    /// Mangled name, where a symbol or debug information gives one.
    pub name: Option<String>,
    /// How much is known.
    pub status: Status,
    /// Whether control can come back from it by a return or a tail call.
    pub returns: bool,
    /// Whether it keeps where it returns to, and the stack pointer there: control may come back more than once.
    pub returns_again: bool,
    /// Its blocks, by address.
    pub blocks: Vec<Block>,
    /// Its edges, by (from, to, kind), without duplicates.
    pub edges: Vec<Edge>,
    /// Its calls, by address.
    pub calls: Vec<Call>,
    /// Its indirect jumps, by address.
    pub indirect_jumps: Vec<IndirectJump>,
    /// How many of its blocks end in a conditional branch.
    pub branches: u32,
}
