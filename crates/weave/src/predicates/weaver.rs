//! Predicates made into machine code, selection after selection.

use tomo_program::{ANALYSIS_VERSION, Binary, Model};
use tomo_wire::image::Image;
use tomo_wire::predicates::{Predicates, Recorded, Sinks};
use tomo_wire::{FileStamp, ModuleId};
use zerocopy::IntoBytes as _;

use super::{Common, Wanted, all};
use crate::WeaveError;
use crate::ground::{Elsewhere, Ground};

/// Predicates of a module, made into machine code.
#[derive(Debug)]
pub struct WovenPredicates {
    /// The image file.
    pub image: Vec<u8>,
    /// The file of the predicates (`tomo_wire::predicates`).
    pub predicates: Vec<u8>,
    /// The image's header.
    pub header: Image,
}

/// Weaves selections of a module's predicates. What is the same for all of them, which is most of the work where few are
/// selected, is done once.
pub struct PredicateWeaver<'a> {
    ground: Ground<'a>,
    common: Common<'a>,
}

impl<'a> PredicateWeaver<'a> {
    /// That of the module in the file `bytes`, of which `binary` and `model` tell. Linear, on all processors.
    ///
    /// # Errors
    /// Where the module cannot be armed, whatever the plan.
    pub fn of(binary: &'a Binary<'a>, bytes: &[u8], model: &'a Model) -> Result<Self, WeaveError> {
        let ground = Ground::of(binary, bytes, model)?;
        Ok(Self {
            common: Common::of(&ground.around(), &ground.graphs),
            ground,
        })
    }

    /// Makes the image in which those predicates that are `wanted` are observed; counters start `slab` bytes into the slab
    /// of each thread. `traps`: whether an `int3` may be met in the module (see [`crate::Options`]). Linear but for a sort.
    ///
    /// # Errors
    /// Where the module cannot be armed, whatever the plan.
    pub fn weave(
        &self,
        (module, stamp): (ModuleId, FileStamp),
        (distance, slab, traps): (Option<i64>, u32, bool),
        wanted: &Wanted,
    ) -> Result<WovenPredicates, WeaveError> {
        let ground = &self.ground;
        let planned = all(
            &ground.around(),
            &ground.graphs,
            &self.common,
            wanted,
            traps,
        );
        let recorded = match wanted.recorded {
            Recorded::Marks => Sinks::Marks {
                all: planned.probes,
                vanish: planned.units.len() as u32,
            },
            Recorded::Counts => Sinks::Counters {
                all: planned.probes,
                at: slab,
            },
        };
        let file = Predicates::of(module, ANALYSIS_VERSION, recorded, &planned.rows);
        let elsewhere = Elsewhere {
            units: planned.units,
            regions: planned.regions,
            calls: planned.calls,
            slab: (wanted.recorded == Recorded::Counts).then_some(slab),
            shadowed: false,
            probes: planned.probes as usize,
            counters: planned.probes as usize,
        };
        let (image, header) = ground.image((module, stamp), distance, file.name(), elsewhere)?;
        Ok(WovenPredicates {
            image,
            predicates: [file.as_bytes(), planned.rows.as_bytes()].concat(),
            header,
        })
    }
}
