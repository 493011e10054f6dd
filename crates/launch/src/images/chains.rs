//! Images that note chains of calls.

use std::collections::BTreeSet;
use std::path::PathBuf;

use tomo_program::Progress;
use tomo_weave::weave_chains;

use super::{Baked, ImageError, Images};
use crate::Observed;
use crate::variant::Carried;

impl Images {
    /// The image in which the chains of calls of `module` are noted: of all its functions, or of those with these
    /// entries.
    pub(crate) fn chains(
        &self,
        module: &Observed,
        of: Option<&BTreeSet<u64>>,
        progress: &dyn Progress,
    ) -> Result<Baked, ImageError> {
        let name = match of {
            None => "chains".into(),
            Some(of) => {
                let bytes = of.iter().flat_map(|entry| entry.to_le_bytes());
                let bytes: Vec<u8> = bytes.collect();
                format!("chains-of{:x}", tomo_wire::checksum(&bytes))
            }
        };
        let is_wanted = |entry: u64| of.is_none_or(|of| of.contains(&entry));
        self.staying(
            module,
            &name,
            "functions",
            progress,
            |binary, bytes, model| {
                let (id, stamp) = (module.id, module.stamp);
                let woven = weave_chains(binary, bytes, model, id, stamp, None, &is_wanted)?;
                Ok((woven.image, woven.functions, woven.header))
            },
        )
    }

    /// The same for many runs to share, with slabs of `memory` bytes; and the file of the functions that are observed.
    ///
    /// # Errors
    /// Where there is none.
    pub fn noting(
        &self,
        module: &Observed,
        of: Option<&BTreeSet<u64>>,
        memory: u32,
        progress: &dyn Progress,
    ) -> Result<(Carried, PathBuf), ImageError> {
        let baked = self.chains(module, of, progress)?;
        let carried = Carried::baked(&baked, module).with_chains(memory);
        Ok((carried, baked.plan))
    }
}
