//! Images in which predicates are observed.

mod ready;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use tomo_program::Progress;
use tomo_weave::{Asked, WEAVE_VERSION, Wanted};
use tomo_wire::checksum;
use tomo_wire::image::Image;
use tomo_wire::predicates::{Predicates, Recorded};

use super::{Baked, ImageError, Images, is_unchanged, read_header};
use crate::Observed;
use crate::private;
use crate::variant::Carried;
use ready::Ready;

impl Images {
    /// The image of `module` in which the `wanted` predicates are observed, counters `slab` bytes into each slab.
    pub(crate) fn predicates(
        &self,
        module: &Observed,
        slab: u32,
        wanted: &Wanted,
        progress: &dyn Progress,
    ) -> Result<Baked, ImageError> {
        self.predicates_of(module, (slab, wanted), &OnceLock::new(), progress)
    }

    /// The same for a module that is made ready if it is not, where there is no such image.
    fn predicates_of(
        &self,
        module: &Observed,
        (slab, wanted): (u32, &Wanted),
        ready: &OnceLock<Ready>,
        progress: &dyn Progress,
    ) -> Result<Baked, ImageError> {
        let name = format!(
            "{}-predicates-v{WEAVE_VERSION}.{}-at{slab}-{}",
            module.cached_as(),
            tomo_program::ANALYSIS_VERSION,
            name_of(wanted)
        );
        let file = |kind: &str| self.folder.join(format!("{name}.{kind}"));
        let (image, predicates) = (file("image"), file("predicates"));
        let baked = |header| Baked {
            image: image.clone(),
            plan: predicates.clone(),
            disposals: PathBuf::new(),
            header,
        };
        if let Some(header) = read_both(&image, &predicates)
            && header.module == module.id
            && (header.stamp == module.stamp || is_unchanged(&header, &module.path))
        {
            return Ok(baked(header));
        }
        let ready = match ready.get() {
            Some(ready) => ready,
            None => {
                let made = Ready::of(self.load(module, progress)?, module)?;
                ready.get_or_init(|| made)
            }
        };
        let woven = ready.weave((module.id, module.stamp), slab, wanted);
        let woven = woven.map_err(|error| ImageError::Weave(module.path.clone(), error))?;
        let io = |path: &Path| {
            let path = path.to_path_buf();
            move |error: io::Error| ImageError::Io(path, error)
        };
        private::install(&predicates, &[&woven.predicates]).map_err(io(&predicates))?;
        private::install(&image, &[&woven.image]).map_err(io(&image))?;
        Ok(baked(woven.header))
    }

    /// The same, but that images are kept in another folder.
    ///
    /// # Errors
    /// As for [`Self::in_cache`].
    pub fn apart(&self, folder: &Path) -> Result<Self, ImageError> {
        Ok(Self {
            folder: private::folder(&folder.join("images"))?,
            models: self.models.clone(),
        })
    }

    /// The image of `module` in which it is marked which of the `asked` predicates were true, for many runs to share, and
    /// the file that says what its marks mean.
    ///
    /// # Errors
    /// Where there is none.
    pub fn marking(
        &self,
        module: &Observed,
        asked: Asked,
        progress: &dyn Progress,
    ) -> Result<(Carried, PathBuf), ImageError> {
        let recorded = Recorded::Marks;
        let baked = self.predicates(module, 0, &Wanted { asked, recorded }, progress)?;
        Ok(carried(&baked, module))
    }

    /// Marks of one selection after another of this module's predicates, whose images are kept here.
    #[must_use]
    pub fn markings(&self, module: &Observed) -> Markings {
        Markings {
            images: self.clone(),
            module: module.clone(),
            ready: OnceLock::new(),
        }
    }
}

/// Marks of one selection after another of a module's predicates: what they have in common is found once, when the first
/// is woven.
pub struct Markings {
    images: Images,
    module: Observed,
    ready: OnceLock<Ready>,
}

impl Markings {
    /// The image in which it is marked which of the `asked` predicates were true, as [`Images::marking`] has it.
    ///
    /// # Errors
    /// Where there is none.
    pub fn of(&self, asked: Asked) -> Result<(Carried, PathBuf), ImageError> {
        let recorded = Recorded::Marks;
        let (module, wanted) = (&self.module, Wanted { asked, recorded });
        let baked = self
            .images
            .predicates_of(module, (0, &wanted), &self.ready, &())?;
        Ok(carried(&baked, module))
    }
}

/// What runs carry of marks, and the file that says what they mean.
fn carried(baked: &Baked, module: &Observed) -> (Carried, PathBuf) {
    let carried = Carried {
        alone: true,
        ..Carried::baked(baked, module)
    };
    (carried, baked.plan.clone())
}

/// What names the wanted predicates.
fn name_of(wanted: &Wanted) -> String {
    let kind = match wanted.recorded {
        Recorded::Marks => "marks",
        Recorded::Counts => "counts",
    };
    match &wanted.asked {
        Asked::All => kind.into(),
        Asked::Some(some) => {
            let mut all: Vec<_> = some.iter().collect();
            all.sort();
            let bytes = all.iter().flat_map(|(kind, site, case)| {
                let words = [*kind as u8, *case].into_iter();
                words.chain(site.to_le_bytes())
            });
            let bytes: Vec<u8> = bytes.collect();
            format!("{kind}-{:016x}", checksum(&bytes))
        }
    }
}

/// The header of the image, if it is sound and belongs to the predicates.
fn read_both(image: &Path, predicates: &Path) -> Option<Image> {
    let header = read_header(image)?;
    let bytes = fs::read(predicates).ok()?;
    let (predicates, _) = Predicates::read(&bytes).ok()?;
    (predicates.name() == header.plan.get()).then_some(header)
}
