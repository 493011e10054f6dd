//! What is done at a point of what is executed elsewhere, between the program's instructions.
//!
//! An action changes no register and no flag that anybody looks at, nothing in memory but the slab of its thread (and what is below the
//! red zone), and control goes on behind it.

use tomo_program::Address;

use super::chain::{Apart, Step};
use super::increment;
use super::live::Set;
use crate::trampoline::{Spot, Writer};

/// Something that is done at a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Action {
    pub(crate) what: What,
    /// What is looked at afterwards.
    pub(crate) live: Set,
}

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// One is added to the counter of this number.
    Count(u32),
    /// What chains of calls need.
    Chain(Step),
}

impl Action {
    /// Appends its code, where counters start `slab` bytes into the slab of a thread; gives what of it is to lie apart.
    /// `spot` tells where addresses of the module lie, `inner` where pieces are behind what is done on entering them.
    pub(crate) fn write(
        self,
        writer: &mut Writer,
        slab: u32,
        spot: impl Fn(Address) -> Spot,
        inner: impl Fn(Address) -> Spot,
    ) -> Option<Apart> {
        match self.what {
            What::Count(counter) => increment::write(writer, slab + 8 * counter, self.live),
            What::Chain(step) => return step.write(writer, self.live, spot, inner),
        }
        None
    }
}

impl What {
    /// The same of a function whose counters are numbered from `first` on.
    pub(crate) fn renumbered(self, first: u32) -> Self {
        match self {
            Self::Count(counter) => Self::Count(first + counter),
            Self::Chain(step) => Self::Chain(step),
        }
    }
}
