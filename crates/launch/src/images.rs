//! Armed images: out of the cache, or baked.
//!
//! The cache holds for each module, level and placement three files, image, plan and disposals, that are never
//! changed. Runs get copies of the image (its text changes as probes vanish) and links of the plan.

mod chains;
mod paths;
mod predicates;

pub use paths::ChosenPaths;
pub use predicates::Markings;

use std::cell::LazyCell;
use std::fs;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use tomo_program::{
    AnalyseError, Binary, Cache, LoadError, Loaded, Model, Progress, Request, load,
};
use tomo_weave::{Options, Placement, WEAVE_VERSION, WeaveError, Weights, weave, weave_counters};
use tomo_wire::chains::Functions;
use tomo_wire::counting::Counters;
use tomo_wire::image::Image;
use tomo_wire::paths::Paths;
use tomo_wire::plan::{Level, Plan};

use crate::Observed;
use crate::private::{self, NotPrivate};
use crate::room::Room;

/// Where baked images are kept.
#[derive(Clone, Debug)]
pub struct Images {
    folder: PathBuf,
    models: Cache,
}

/// Why a module has no image.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// Others could change images there.
    #[error(transparent)]
    NotPrivate(#[from] NotPrivate),
    /// A file cannot be read or written.
    #[error("{path}: {1}", path = .0.display())]
    Io(PathBuf, io::Error),
    /// The module cannot be analysed.
    #[error("{path}: {1}", path = .0.display())]
    Model(PathBuf, LoadError),
    /// The module's bytes cannot be read as a program.
    #[error("{path}: {1}", path = .0.display())]
    Binary(PathBuf, AnalyseError),
    /// The module cannot be armed.
    #[error("{path}: {1}", path = .0.display())]
    Weave(PathBuf, WeaveError),
}

/// What is probed, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct How {
    /// Functions, blocks or edges.
    pub level: Level,
    /// All of them, or those from which the others follow.
    pub placement: Placement,
    /// Whether probes stay when they have been hit, where that can be.
    pub stays: bool,
}

/// By what counters are chosen.
pub struct Weighed {
    /// Names the weights; 0 where there are none.
    pub(crate) name: u64,
    /// How often the arcs of functions ran in an earlier run.
    pub(crate) weights: LazyCell<Weights, Box<dyn FnOnce() -> Weights>>,
}

impl Weighed {
    /// The weights that `find` finds, which is asked only where no image is there that they name.
    pub fn by(name: u64, find: impl FnOnce() -> Weights + 'static) -> Self {
        Self {
            name,
            weights: LazyCell::new(Box::new(find)),
        }
    }

    /// Whether there are any.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.name != 0
    }
}

impl Default for Weighed {
    fn default() -> Self {
        Self::by(0, Weights::default)
    }
}

/// An image and its plan in the cache.
#[derive(Clone, Debug)]
pub(crate) struct Baked {
    pub(crate) image: PathBuf,
    pub(crate) plan: PathBuf,
    /// How each of its probes is taken away; written with the two others, and looked at by those who do.
    pub(crate) disposals: PathBuf,
    pub(crate) header: Image,
}

/// The bytes of an image with probes that stay, those of the file of what it observes, and the image's header.
type Staying = (Vec<u8>, Vec<u8>, Image);

impl Images {
    /// The images in the folder `cache`, made of the models there.
    ///
    /// # Errors
    /// Where the folder cannot be made, or others could change what is in it.
    pub fn in_cache(cache: &Path) -> Result<Self, ImageError> {
        Ok(Self {
            folder: private::folder(&cache.join("images"))?,
            models: Cache::at(cache),
        })
    }

    /// The image of `module` that finds room beside the program's others, baked if it is not there.
    pub(crate) fn get(
        &self,
        module: &Observed,
        how: How,
        room: &mut Room,
        progress: &dyn Progress,
    ) -> Result<Baked, ImageError> {
        let mut baked = self.get_at(module, how, None, progress)?;
        let Some(placed) = module.placed else {
            return Ok(baked);
        };
        let is_there = |distance| {
            let name = Self::name(module, how, Some(distance));
            self.folder.join(format!("{name}.image")).exists()
        };
        let distance = room.distance(placed, &baked.header, is_there);
        if distance != baked.header.distance.get()
            && let Ok(other) = self.get_at(module, how, Some(distance), progress)
        {
            baked = other;
        }
        room.take(placed, &baked.header);
        Ok(baked)
    }

    /// What the image is called whose trampolines are at this distance; at its own if none is named.
    fn name(module: &Observed, how: How, distance: Option<i64>) -> String {
        format!(
            "{}-{}-{}{}-v{WEAVE_VERSION}.{}{}",
            module.cached_as(),
            how.level.name(),
            how.placement.name(),
            if how.stays { "-stays" } else { "" },
            tomo_program::ANALYSIS_VERSION,
            distance.map_or_else(String::new, |distance| format!("-at{distance}"))
        )
    }

    /// The image whose trampolines are at this distance; at its own if none is named.
    pub(crate) fn get_at(
        &self,
        module: &Observed,
        how: How,
        distance: Option<i64>,
        progress: &dyn Progress,
    ) -> Result<Baked, ImageError> {
        let name = Self::name(module, how, distance);
        let image = self.folder.join(format!("{name}.image"));
        let plan = self.folder.join(format!("{name}.plan"));
        let disposals = self.folder.join(format!("{name}.disposals"));
        if let Some(header) = read_pair(&image, &plan)
            && header.module == module.id
            && (header.stamp == module.stamp || is_unchanged(&header, &module.path))
        {
            return Ok(Baked {
                image,
                plan,
                disposals,
                header,
            });
        }
        let woven = self.bake(module, how, distance, progress)?;
        let io = |path: &Path| {
            let path = path.to_path_buf();
            move |error| ImageError::Io(path, error)
        };
        private::install(&disposals, &[&woven.disposals]).map_err(io(&disposals))?;
        private::install(&plan, &[&woven.plan]).map_err(io(&plan))?;
        private::install(&image, &[&woven.image]).map_err(io(&image))?;
        let header = read_pair(&image, &plan);
        let raced = || ImageError::Io(image.clone(), io::Error::other("another tomo replaces it"));
        header.ok_or_else(raced).map(|header| Baked {
            image: image.clone(),
            plan,
            disposals,
            header,
        })
    }

    /// The image in which `module` is counted, its counters `slab` bytes into each slab.
    pub(crate) fn counters(
        &self,
        module: &Observed,
        slab: u32,
        weighed: &Weighed,
        progress: &dyn Progress,
    ) -> Result<Baked, ImageError> {
        let name = format!("count-at{slab}-by{:x}", weighed.name);
        self.staying(module, &name, "counters", progress, |of, bytes, model| {
            let (id, stamp) = (module.id, module.stamp);
            let weights = &weighed.weights;
            let woven = weave_counters(of, bytes, model, id, stamp, (None, slab), weights)?;
            Ok((woven.image, woven.counters, woven.header))
        })
    }

    /// The image of `module` with probes that stay, woven by `weave` if it is not there: the image's file and the
    /// file, of that `kind`, of what it observes.
    fn staying(
        &self,
        module: &Observed,
        name: &str,
        kind: &str,
        progress: &dyn Progress,
        weave: impl FnOnce(&Binary<'_>, &[u8], &Model) -> Result<Staying, WeaveError>,
    ) -> Result<Baked, ImageError> {
        let version = tomo_program::ANALYSIS_VERSION;
        let name = format!("{}-{name}-v{WEAVE_VERSION}.{version}", module.cached_as());
        let file = |kind: &str| self.folder.join(format!("{name}.{kind}"));
        let (image, observes) = (file("image"), file(kind));
        let baked = |header| Baked {
            image: image.clone(),
            plan: observes.clone(),
            disposals: PathBuf::new(),
            header,
        };
        if let Some(header) = read_staying(&image, &observes)
            && header.module == module.id
            && (header.stamp == module.stamp || is_unchanged(&header, &module.path))
        {
            return Ok(baked(header));
        }
        let (image_bytes, observed, header) = self.woven(module, progress, weave)?;
        let io = |path: &Path| {
            let path = path.to_path_buf();
            move |error| ImageError::Io(path, error)
        };
        private::install(&observes, &[&observed]).map_err(io(&observes))?;
        private::install(&image, &[&image_bytes]).map_err(io(&image))?;
        Ok(baked(header))
    }

    /// Where they are.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The model of a module.
    ///
    /// # Errors
    /// Where it cannot be analysed.
    pub fn model(&self, module: &Observed, progress: &dyn Progress) -> Result<Model, ImageError> {
        Ok(self.load(module, progress)?.1.model)
    }

    /// The module's file and its model.
    pub(crate) fn load(
        &self,
        module: &Observed,
        progress: &dyn Progress,
    ) -> Result<(Vec<u8>, Loaded), ImageError> {
        let path = &module.path;
        let bytes = fs::read(path).map_err(|error| ImageError::Io(path.clone(), error))?;
        let request = Request {
            path,
            cache: Some(&self.models),
            refresh: false,
            whole: true,
        };
        let loaded = load(&request, progress);
        let loaded = loaded.map_err(|error| ImageError::Model(path.clone(), error))?;
        Ok((bytes, loaded))
    }

    fn bake(
        &self,
        module: &Observed,
        how: How,
        distance: Option<i64>,
        progress: &dyn Progress,
    ) -> Result<tomo_weave::Woven, ImageError> {
        self.woven(module, progress, |binary, bytes, model| {
            let options = Options {
                level: how.level,
                placement: how.placement,
                distance,
                traps: !module.bears_no_traps(bytes),
                stays: how.stays,
            };
            weave(binary, bytes, model, module.id, module.stamp, &options)
        })
    }

    /// What `weave` makes of a module, of which it gets the binary, the file and the model.
    pub(crate) fn woven<T>(
        &self,
        module: &Observed,
        progress: &dyn Progress,
        weave: impl FnOnce(&Binary<'_>, &[u8], &Model) -> Result<T, WeaveError>,
    ) -> Result<T, ImageError> {
        let (bytes, loaded) = self.load(module, progress)?;
        let path = &module.path;
        let binary = Binary::parse(&bytes).map_err(AnalyseError::from);
        let binary = binary.map_err(|error| ImageError::Binary(path.clone(), error))?;
        let woven = weave(&binary, &bytes, &loaded.model);
        woven.map_err(|error| ImageError::Weave(path.clone(), error))
    }
}

/// The header of the image, if it is sound and belongs to the plan.
fn read_pair(image: &Path, plan: &Path) -> Option<Image> {
    let header = read_header(image)?;
    let file = private::open(plan, false).ok()?;
    let mut head = [0; size_of::<Plan>()];
    file.read_exact_at(&mut head, 0).ok()?;
    let plan = Plan::read(&head, file.metadata().ok()?.len()).ok()?;
    (plan.name() == header.plan.get()).then_some(header)
}

/// The header of the image, if it is sound and belongs to the counters, functions or paths in `observes`.
fn read_staying(image: &Path, observes: &Path) -> Option<Image> {
    let header = read_header(image)?;
    let bytes = fs::read(observes).ok()?;
    let counters = Counters::read(&bytes).map(|(counters, _)| counters.name());
    let functions = Functions::read(&bytes).map(|(functions, _)| functions.name());
    let paths = Paths::read(&bytes).map(|(paths, _)| paths.name());
    let name = counters.or(functions).or(paths).ok()?;
    (name == header.plan.get()).then_some(header)
}

pub(crate) fn read_header(image: &Path) -> Option<Image> {
    let file = private::open(image, false).ok()?;
    let mut head = [0; size_of::<Image>()];
    file.read_exact_at(&mut head, 0).ok()?;
    Image::read(&head, file.metadata().ok()?.len()).ok()
}

/// Whether the text of the module is still the one that the image was made of, though its file was
/// touched or copied.
pub(crate) fn is_unchanged(header: &Image, path: &Path) -> bool {
    let Ok(bytes) = fs::read(path) else {
        return false;
    };
    tomo_weave::is_text_of(&bytes, header)
}
