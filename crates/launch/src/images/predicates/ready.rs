//! A module ready for its predicates to be woven, together with the file and the model that it is made of.

use std::path::Path;

use tomo_program::{AnalyseError, Binary, Loaded};
use tomo_weave::{PredicateWeaver, Wanted, WeaveError, WovenPredicates};
use tomo_wire::{FileStamp, ModuleId};

use crate::ImageError;

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
pub(super) struct Ready(Woven);

impl Ready {
    pub(super) fn of(loaded: (Vec<u8>, Loaded), path: &Path) -> Result<Self, ImageError> {
        let parsed = Parsed::try_new(loaded, |(bytes, _)| {
            let binary = Binary::parse(bytes).map_err(AnalyseError::from);
            binary.map_err(|error| ImageError::Binary(path.to_path_buf(), error))
        })?;
        let woven = Woven::try_new(parsed, |parsed| {
            let (bytes, loaded) = parsed.borrow_owner();
            let weaver = PredicateWeaver::of(parsed.borrow_dependent(), bytes, &loaded.model);
            weaver.map_err(|error| ImageError::Weave(path.to_path_buf(), error))
        })?;
        Ok(Self(woven))
    }

    /// The module's file.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0.borrow_owner().borrow_owner().0
    }

    /// See [`PredicateWeaver::weave`].
    pub(super) fn weave(
        &self,
        which: (ModuleId, FileStamp),
        place: (Option<i64>, u32, bool),
        wanted: &Wanted,
    ) -> Result<WovenPredicates, WeaveError> {
        self.0.borrow_dependent().weave(which, place, wanted)
    }
}
