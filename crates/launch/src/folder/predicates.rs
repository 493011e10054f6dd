//! Runs of which predicates are observed.

use tomo_program::Progress;
use tomo_weave::Wanted;

use super::{FolderError, RunFolder};
use crate::{Images, Observed};

impl RunFolder {
    /// Sees to it that the `wanted` predicates of `module` are observed in this run; bakes its image if need be.
    ///
    /// # Errors
    /// As for [`Self::arm`].
    pub fn observe_predicates(
        &mut self,
        module: &Observed,
        images: &Images,
        wanted: &Wanted,
        progress: &dyn Progress,
    ) -> Result<(), FolderError> {
        let baked = images.predicates(module, self.slab, wanted, progress)?;
        self.slab = baked.header.slab_end.get().max(self.slab);
        self.add(module, &baked, "predicates")
    }
}
