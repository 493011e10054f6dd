//! What is done at a point of what is executed elsewhere, between the program's instructions.
//!
//! An action changes no register and no flag that anybody looks at, nothing in memory but marks and the slab of its thread (and
//! what is below the red zone), and control goes on behind it.

use tomo_program::Address;
use tomo_wire::image::MOST_REGIONS;

use super::chain::{Apart, Step};
use super::frame::Slot;
use super::live::Set;
use super::path::{self, PathEnd, PathOp};
use super::split::Split;
use super::witness::{self, Word};
use super::{class, increment};
use crate::tactics::held;
use crate::trampoline::{Spot, Writer};
use crate::window::JUMP_BYTES;

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
    /// The mark of this number is set.
    Mark(u32),
    /// That is done, and then never again.
    Once(Once),
    /// The mark of the unit of this number is set, as the unit would; units are numbered last.
    Also(u32),
    /// What is in `rax` is told by its sign.
    Class(class::Class),
    /// Two cases of a result are told apart by the flags.
    Split(Split),
    /// A word is appended to the track of the thread.
    Witness(Word),
    /// What chains of calls need.
    Chain(Step),
}

/// A mark that is set once: then the window that led there is restored behind a hold (`tactics/held.rs`). It is the one
/// entrance to what is executed elsewhere there, and nothing else is told on the way from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Once {
    pub(crate) mark: u32,
    /// The mark that must be set already for the window to be restored, if there is one: that of the other way. All status
    /// flags change then.
    pub(crate) other: Option<u32>,
    /// Where the window starts; it is fetched at once.
    pub(crate) window: Address,
    /// The module's bytes there.
    pub(crate) original: [u8; JUMP_BYTES as usize],
}

/// Where actions record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sinks {
    /// How many bytes into the slab of a thread the first counter is.
    pub(crate) slab: u32,
    /// Where the first mark is.
    pub(crate) marks: Spot,
    /// Where each region's text starts, as the module states it, and where it can be written. One may start at 0.
    pub(crate) aliases: [Option<(Address, Spot)>; MOST_REGIONS],
}

impl Sinks {
    /// Where nothing is recorded yet: no instruction's length depends on it.
    pub(crate) const NOWHERE: Self = Self {
        slab: 0,
        marks: Spot(0),
        aliases: [None; MOST_REGIONS],
    };

    pub(crate) fn counter(self, number: u32) -> u32 {
        self.slab + 8 * number
    }

    pub(crate) fn mark(self, number: u32) -> Spot {
        self.marks.plus(number.into())
    }

    /// Where what is at `address` can be written.
    fn alias(self, address: Address) -> Spot {
        let known = self.aliases.into_iter().flatten();
        let before = known.filter(|(start, _)| *start <= address);
        let found = before.max_by_key(|(start, _)| *start);
        let (start, alias) = found.unwrap_or((address, Spot(0)));
        alias.plus((address.0 - start.0) as i64)
    }
}

impl Action {
    /// What needs nothing else to be known.
    pub(crate) fn of(what: What, live: Set) -> Self {
        Self {
            what,
            live,
            slot: None,
        }
    }

    /// Appends its code; gives what of it is to lie apart. `spot` tells where addresses of the module lie,
    /// `inner` where pieces are behind what is done on entering them.
    pub(crate) fn write(
        self,
        writer: &mut Writer,
        sinks: Sinks,
        spot: impl Fn(Address) -> Spot,
        inner: impl Fn(Address) -> Spot,
    ) -> Option<Apart> {
        match self.what {
            What::Count(counter) => increment::write(writer, sinks.counter(counter), self.live),
            What::Mark(mark) | What::Also(mark) => writer.store_byte(sinks.mark(mark), 1),
            What::Once(once) => {
                writer.store_byte(sinks.mark(once.mark), 1);
                let open = once.other.map(|other| {
                    writer.is_byte_zero(sinks.mark(other));
                    writer.short_ahead(0x74) // je
                });
                held::restore(writer, sinks.alias(once.window), once.original);
                if let Some(open) = open {
                    writer.land_short(open);
                }
            }
            What::Class(class) => class.write(writer, sinks, self.live),
            What::Split(split) => split.write(writer, sinks),
            What::Path(op) => {
                if let Some(slot) = self.slot {
                    path::write(writer, &op, slot, self.live, sinks.slab);
                }
            }
            What::Witness(word) => witness::write(writer, word, self.live),
            What::Chain(step) => return step.write(writer, self.live, spot, inner),
        }
        None
    }
}

impl What {
    /// What it costs where `live` is looked at afterwards, in halves of what a plain increment does.
    pub(crate) fn cost(&self, live: Set) -> u64 {
        match self {
            Self::Count(_) => increment::cost(live),
            Self::Path(op) => path::cost(op, live),
            Self::Mark(_) | Self::Once(_) | Self::Also(_) => 2,
            Self::Class(_) => 8,
            Self::Split(_) => 4,
            Self::Witness(word) => witness::cost(*word, live),
            Self::Chain(_) => 8,
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
            Self::Mark(mark) => Self::Mark(first + mark),
            Self::Once(once) => Self::Once(Once {
                mark: first + once.mark,
                other: once.other.map(|other| first + other),
                ..once
            }),
            Self::Class(class) => Self::Class(class::Class {
                first: first + class.first,
                ..class
            }),
            Self::Split(split) => Self::Split(Split {
                first: first + split.first,
                ..split
            }),
            Self::Witness(_) | Self::Also(_) => self,
            Self::Chain(step) => Self::Chain(step),
        }
    }
}
