//! What is read of a module before anything is planned for it, and what is the same of all images whose probes stay.

use tomo_program::{Address, Binary, Graphs, Model, go};
use tomo_wire::image::Image;
use tomo_wire::{FileStamp, ModuleId};

use crate::image::Weaving;
use crate::place::{Surroundings, Unit};
use crate::spots::Ways;
use crate::staying::region::{Call, Region, Regions};
use crate::text::Text;
use crate::{WeaveError, segment};

/// A module as it is.
pub(crate) struct Ground<'a> {
    pub(crate) text: Text,
    pub(crate) graphs: Graphs<'a>,
    binary: &'a Binary<'a>,
    ways: Ways,
}

/// What is executed elsewhere with probes that stay, and the probes beside it that vanish.
pub(crate) struct Elsewhere {
    /// Those that vanish, by window; theirs are the first marks.
    pub(crate) units: Vec<Unit>,
    pub(crate) regions: Vec<Region>,
    pub(crate) calls: Vec<Call>,
    /// How many bytes into the slab of a thread what they record starts, if that is where it is.
    pub(crate) slab: Option<u32>,
    /// Whether a shadow of the stacks is behind the slab.
    pub(crate) shadowed: bool,
    /// Marks, or what is observed.
    pub(crate) probes: usize,
    /// Counters of 64 bits in each slab.
    pub(crate) counters: usize,
}

/// Refuses a module in which no probe may stay, nor a breakpoint: Go's runtime takes an instruction for what is at its place.
pub(crate) fn may_stay(binary: &Binary<'_>) -> Result<(), WeaveError> {
    match go::is_in(binary) {
        true => Err(WeaveError::StatedPlaces),
        false => Ok(()),
    }
}

impl<'a> Ground<'a> {
    /// The module in the file `bytes`, of which `binary` and `model` tell.
    pub(crate) fn of(
        binary: &'a Binary<'a>,
        bytes: &[u8],
        model: &'a Model,
    ) -> Result<Self, WeaveError> {
        let text = Text::read(bytes)?;
        let graphs = model.graphs()?;
        Ok(Self {
            ways: Ways::of(&text, binary, &graphs),
            text,
            graphs,
            binary,
        })
    }

    pub(crate) fn around(&self) -> Surroundings<'_> {
        Surroundings {
            text: &self.text,
            binary: self.binary,
            ways: &self.ways,
        }
    }

    /// The image of this module in which `elsewhere` observes what the plan of this name says.
    pub(crate) fn image(
        &self,
        (module, stamp): (ModuleId, FileStamp),
        distance: Option<i64>,
        plan: u64,
        elsewhere: Elsewhere,
    ) -> Result<(Vec<u8>, Image), WeaveError> {
        let Elsewhere {
            units,
            regions,
            calls,
            ..
        } = elsewhere;
        may_stay(self.binary)?;
        if elsewhere.slab.is_some()
            && let Some(Address(first)) = segment::first_use(&self.text, &self.graphs)
        {
            return Err(WeaveError::OwnSegment(first));
        }
        let weaving = Weaving {
            text: &self.text,
            units: &units,
            regions: &Regions::new(regions, calls, &self.text),
            module,
            stamp,
            plan,
            fixed: !self.binary.is_position_independent(),
            distance,
            slab: elsewhere.slab,
            shadowed: elsewhere.shadowed,
            probes: elsewhere.probes,
            counters: elsewhere.counters,
        };
        weaving.image()
    }
}
