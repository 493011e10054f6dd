//! What is done at a point of what is executed elsewhere, between the program's instructions.
//!
//! An action changes no register and no flag that anybody looks at, nothing in memory but the slab of its thread (and what is below the
//! red zone), and control goes on behind it.

use super::frame::Slot;
use super::increment;
use super::live::Set;
use super::path::{self, PathEnd, PathOp};
use crate::trampoline::Writer;

/// Something that is done at a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Action {
    pub(crate) what: What,
    /// What is looked at afterwards.
    pub(crate) live: Set,
    /// Where the return address is, if that is known.
    pub(crate) slot: Option<Slot>,
}

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// One is added to the counter of this number.
    Count(u32),
    /// Something is done to the path of the activation: only where it is known where the return address is.
    Path(PathOp),
}

impl Action {
    /// Appends its code, where counters start `slab` bytes into the slab of a thread.
    pub(crate) fn write(self, writer: &mut Writer, slab: u32) {
        match self.what {
            What::Count(counter) => {
                let offset = slab.wrapping_add(8u32.wrapping_mul(counter));
                increment::write(writer, offset, self.live);
            }
            What::Path(op) => {
                if let Some(slot) = self.slot {
                    path::write(writer, &op, slot, self.live, slab);
                }
            }
        }
    }
}

impl What {
    /// What it costs where `live` is looked at afterwards, in halves of what a plain increment does.
    pub(crate) fn cost(&self, live: Set) -> u64 {
        match self {
            Self::Count(_) => increment::cost(live),
            Self::Path(op) => path::cost(op, live),
        }
    }

    /// Whether it must be known where the return address is.
    pub(crate) fn needs_slot(&self) -> bool {
        matches!(self, Self::Path(_))
    }

    /// The same of a function whose counters are numbered from `first` on.
    pub(crate) fn renumbered(self, first: u32) -> Self {
        match self {
            Self::Count(counter) => Self::Count(first + counter),
            Self::Path(PathOp::End(end)) => Self::Path(PathOp::End(PathEnd {
                first: first + end.first,
                ..end
            })),
            Self::Path(op) => Self::Path(op),
        }
    }
}
