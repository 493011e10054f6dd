//! A module ready for its predicates to be woven, together with the file and the model that it is made of.

use tomo_program::{AnalyseError, Binary, Loaded};
use tomo_weave::{PredicateWeaver, Wanted, WeaveError, WovenPredicates};
use tomo_wire::{FileStamp, ModuleId};

use crate::{ImageError, Observed};

self_cell::self_cell!(
    /// A module's file with its model, and what the file says.
    struct Parsed {
        owner: (Vec<u8>, Loaded),
        #[covariant]
        dependent: Binary,
    }
);

self_cell::self_cell!(
    /// That, and what weaves it.
    struct Woven {
        owner: Parsed,
        #[covariant]
        dependent: PredicateWeaver,
    }
);

/// A module ready to be woven.
pub(super) struct Ready {
    woven: Woven,
    /// Whether an `int3` may be met in it.
    traps: bool,
}

impl Ready {
    pub(super) fn of(loaded: (Vec<u8>, Loaded), module: &Observed) -> Result<Self, ImageError> {
        let (path, traps) = (&module.path, !module.bears_no_traps(&loaded.0));
        let parsed = Parsed::try_new(loaded, |(bytes, _)| {
            let binary = Binary::parse(bytes).map_err(AnalyseError::from);
            binary.map_err(|error| ImageError::Binary(path.clone(), error))
        })?;
        let woven = Woven::try_new(parsed, |parsed| {
            let (bytes, loaded) = parsed.borrow_owner();
            let weaver = PredicateWeaver::of(parsed.borrow_dependent(), bytes, &loaded.model);
            weaver.map_err(|error| ImageError::Weave(path.clone(), error))
        })?;
        Ok(Self { woven, traps })
    }

    /// See [`PredicateWeaver::weave`].
    pub(super) fn weave(
        &self,
        which: (ModuleId, FileStamp),
        slab: u32,
        wanted: &Wanted,
    ) -> Result<WovenPredicates, WeaveError> {
        let place = (None, slab, self.traps);
        self.woven.borrow_dependent().weave(which, place, wanted)
    }
}
