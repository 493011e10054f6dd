//! Chains of calls: which functions are observed, and the tree that each thread makes of its calls.
//!
//! The *functions* of a module are a file beside its image: a header, then one [`Row`] a function, by number. Its
//! checksum names it, in images and records as that of a plan does.
//!
//! The *tree* of a thread lies in its slab (`counting.rs` says what slabs are): a head, then nodes. A node stands for
//! a chain of calls, that of its parent and one more: the function, and how it was entered. One chain is
//! active at most once in a thread, so the activations that are under way are the nodes from [`NOW`] up to the
//! root.
//!
//! | part of the head | where | what |
//! |---|---|---|
//! | now | [`NOW`] | the node of the innermost activation |
//! | top | [`TOP`] | where the next node will be |
//! | end | [`END`] | where the last must end |
//! | self | [`SELF`] | where the slab is in memory |
//! | routines | [`ENTER`] … | where in memory the agent does what is not done in passing |
//!
//! All that is said of where something is in a slab is counted in bytes from its start.
//!
//! In the image, the code that enters a function has the function's *name* in front of it, [`NAME`] bytes: where it
//! starts, in bytes from where the module's text does. So whoever follows the jumps from there knows that it is observed.

use core::mem::size_of;

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use crate::door::{Header, Preamble, Refusal, part, rows};
use crate::{ModuleId, checksum};

/// Where in a slab the node of the innermost activation is named.
pub const NOW: u32 = 0;
/// Where it says where the next node will be.
pub const TOP: u32 = 8;
/// Where it says where nodes must end.
pub const END: u32 = 12;
/// Where it says where in memory it is.
pub const SELF: u32 = 16;
/// Where the address of the routine is that enters a function.
pub const ENTER: u32 = 24;
/// Of that which leaves one.
pub const LEAVE: u32 = 32;
/// Of that which arrives in one by no return.
pub const LAND: u32 = 40;
/// Of that which jumps to who knows where.
pub const JUMP: u32 = 48;

/// The root: no activation.
pub const ROOT: u32 = NODE;
/// Stands for all chains for which there was no room.
pub const LOST: u32 = 2 * NODE;
/// The first of all others.
pub const FIRST: u32 = 3 * NODE;

/// No function.
pub const NONE: u32 = u32::MAX;
/// The bit of what a function announces that says that it is a tail call, and of the number of a function that
/// enters that it is a leaf.
pub const MARK: u32 = 1 << 31;

/// Bytes of the name of a function, in front of the code that enters it.
pub const NAME: usize = 4;

/// How many children a node knows by the way they were entered.
pub const WAYS: usize = 32;
/// Which bits of a return address choose among them, exclusive-or those of [`way_of`] the function: what is called
/// from one place is told apart, too.
pub const WAY_BITS: u8 = 4 * (WAYS as u8 - 1);

/// What a function adds to the choice of a way.
#[must_use]
pub const fn way_of(function: u32) -> u8 {
    // Fibonacci hashing.
    (function.wrapping_mul(0x9e37_79b1) >> 24) as u8 & WAY_BITS
}

/// A node.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Node {
    /// Where the return address of its activation is on the stack.
    pub slot: U64,
    /// That return address, as it was last.
    pub back: U64,
    /// How often it was entered.
    pub count: U64,
    /// The number of the function.
    pub function: U32,
    /// The node that is the innermost again when the function has returned.
    pub after: U32,
    /// The chain that was entered from.
    pub parent: U32,
    /// By what it was entered; see [`Way`]. In bytes from the start of the module's text.
    pub site: U32,
    /// The child that came last.
    pub child: U32,
    /// The child of the parent that came before.
    pub sibling: U32,
    /// What its activation calls, as far as that is announced: where that is to return to, or the jump with [`MARK`].
    pub out: U32,
    /// See [`Way`].
    pub way: U32,
    /// How far below its slot those of its calls lie; 0 if its function announces calls.
    pub depth: U32,
    reserved: U32,
    /// The child that was entered last for each choice of [`WAY_BITS`].
    pub ways: [U32; WAYS],
}

/// Bytes of a node.
pub const NODE: u32 = size_of::<Node>() as u32;

/// Where in a node its parts are.
pub mod field {
    use super::Node;
    use core::mem::offset_of;

    macro_rules! fields {
        ($($name:ident: $field:ident)*) => {
            $(
                #[doc = concat!("Where `", stringify!($field), "` is.")]
                pub const $name: u8 = offset_of!(Node, $field) as u8;
            )*
        };
    }

    fields! {
        SLOT: slot
        BACK: back
        COUNT: count
        FUNCTION: function
        AFTER: after
        PARENT: parent
        SITE: site
        CHILD: child
        SIBLING: sibling
        OUT: out
        WAY: way
        DEPTH: depth
        WAYS: ways
    }
}

const _: () = assert!(size_of::<Node>() == 192 && field::WAYS == 64);

/// How a node's function was entered; what its site is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
pub enum Way {
    /// Not at all: the root, and what was never finished.
    None = 0,
    /// From a call in the module: where that returns to.
    Call = 1,
    /// By a jump that leaves the function of the parent: where that is, with [`MARK`].
    Tail = 2,
    /// From outside of the module: where what called outside returns to; 0 if that is unknown.
    Outside = 3,
    /// As the handler of a signal: nothing.
    Signal = 4,
}

impl Way {
    /// By its number.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Self> {
        [Self::Call, Self::Tail, Self::Outside, Self::Signal]
            .into_iter()
            .find(|way| *way as u32 == number)
    }
}

/// A function that is observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Row {
    /// Its entry, as the module states it.
    pub entry: U64,
    /// 1 where it calls nothing, so that no chain goes on from it; else 0.
    pub leaf: U32,
    /// How far below its return address those of its calls lie; 0 if it announces calls.
    pub depth: U32,
}

impl Row {
    /// The function that starts there.
    #[must_use]
    pub fn of(entry: u64, leaf: bool, depth: u32) -> Self {
        Self {
            entry: entry.into(),
            leaf: u32::from(leaf).into(),
            depth: depth.into(),
        }
    }
}

/// The header of a file of functions.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Functions {
    preamble: Preamble,
    /// The module that is observed.
    pub module: ModuleId,
    /// Where its text starts, from which sites are counted; as it states it.
    pub origin: U64,
    /// Version of the analysis that the functions come from.
    pub analysis: U32,
    /// How many functions.
    pub count: U32,
    /// Checksum of the rows.
    pub rows_checksum: U64,
}

impl Header for Functions {
    const MAGIC: [u8; 8] = *b"TOMOCHN\n";
    const VERSION: u32 = 1;

    fn preamble(&mut self) -> &mut Preamble {
        &mut self.preamble
    }
}

impl Functions {
    /// The header of these functions.
    #[must_use]
    pub fn of(module: ModuleId, origin: u64, analysis: u32, rows: &[Row]) -> Self {
        let mut header = Self {
            module,
            origin: origin.into(),
            analysis: analysis.into(),
            count: (rows.len() as u32).into(),
            rows_checksum: checksum(rows.as_bytes()).into(),
            ..Self::new_zeroed()
        };
        header.seal();
        header
    }

    /// What names the functions in images and records.
    #[must_use]
    pub fn name(&self) -> u64 {
        checksum(IntoBytes::as_bytes(self))
    }

    /// Its bytes as they are written to a file, before those of the rows.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        IntoBytes::as_bytes(self)
    }

    /// The functions in `file`, by number.
    ///
    /// # Errors
    /// Where they are none, of another version, cut short or damaged.
    pub fn read(file: &[u8]) -> Result<(Self, &[Row]), Refusal> {
        let header = <Self as Header>::open(file)?;
        let rows = rows::<Self, Row>(file, header.count, header.rows_checksum)?;
        Ok((header, rows))
    }
}

/// The nodes in a slab, of which `slab` is as much as has any; the root is the first. A node that was never
/// finished has no [`Way`]. There are none in that of a thread that had not begun when the program ended.
///
/// # Errors
/// Where it is cut short.
pub fn nodes(slab: &[u8]) -> Result<&[Node], Refusal> {
    if slab.is_empty() {
        return Ok(&[]);
    }
    let top = used(slab)?;
    if top == 0 {
        return Ok(&[]);
    }
    let length = u64::from(top).saturating_sub(ROOT.into()) / u64::from(NODE) * u64::from(NODE);
    let bytes = part(slab, ROOT.into(), length)?;
    <[Node]>::ref_from_bytes(bytes).map_err(|_| Refusal::Inconsistent)
}

/// How many bytes of a slab that starts with `head` are used; 0 where no thread had it.
///
/// # Errors
/// Where it is cut short.
pub fn used(head: &[u8]) -> Result<u32, Refusal> {
    let number = |at: u32| {
        let bytes = part(head, at.into(), 4)?;
        let value = U32::read_from_bytes(bytes).map_err(|_| Refusal::Inconsistent)?;
        Ok(value.get())
    };
    Ok(number(TOP)?.min(number(END)?))
}

/// Which node of [`nodes`] is at `offset`.
#[must_use]
pub fn number_of(offset: u32) -> Option<usize> {
    let offset = offset.checked_sub(ROOT)?;
    offset
        .is_multiple_of(NODE)
        .then_some((offset / NODE) as usize)
}

#[cfg(test)]
mod tests {
    use super::nodes;

    #[test]
    fn a_thread_that_had_not_begun_has_no_calls() {
        assert_eq!(nodes(&[]).map(<[_]>::len), Ok(0));
        assert!(nodes(&[1]).is_err());
    }
}
