//! Images of programs that are traced, and what a run's threads record into.

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use tomo_program::Progress;
use tomo_weave::{
    Breakpoints, Collect, Kind, Strategy, Tracing, WEAVE_VERSION, breakpoints, weave_traces,
};
use tomo_wire::checksum;
use tomo_wire::counting::{Contents, Slabs};
use tomo_wire::tracing::{ChartView, SLAB, SLOTS, SLOTS_AT};

use crate::images::{Baked, is_unchanged, read_header};
use crate::{FolderError, ImageError, Images, Observed, RunFolder, Weighed, private};

/// How a program is traced.
pub struct HowTraced {
    /// In how many runs.
    pub runs: u32,
    /// How many witnesses on ways a run may have.
    pub limit: Option<u32>,
    /// How witnesses are distributed over the runs.
    pub strategy: Strategy,
    /// Where they may be.
    pub kind: Kind,
    /// How often things ran before.
    pub weighed: Weighed,
    /// Names of the functions that are traced; all if there is none.
    pub functions: Vec<String>,
}

impl HowTraced {
    fn tracing(&self, collect: Collect) -> Tracing<'_> {
        Tracing {
            collect,
            runs: self.runs,
            limit: self.limit,
            strategy: self.strategy,
            kind: self.kind,
            weights: &self.weighed.weights,
            functions: &self.functions,
        }
    }

    /// What names images that are made so.
    fn name(&self) -> String {
        let named = format!("{:?}", self.functions);
        format!(
            "{}-{:?}-{:?}-{}-{:x}-{:x}",
            self.runs,
            self.strategy,
            self.kind,
            self.limit.unwrap_or(0),
            self.weighed.name,
            checksum(named.as_bytes())
        )
        .to_lowercase()
    }
}

/// The images of one program, one for each run.
#[derive(Clone, Debug)]
pub struct TraceImages {
    baked: Vec<Baked>,
}

impl TraceImages {
    /// How many runs it takes.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.baked.len()
    }
}

impl Images {
    /// The images in which `module` is traced, baked if they are not there.
    ///
    /// # Errors
    /// Where it has none.
    pub fn traces(
        &self,
        module: &Observed,
        how: &HowTraced,
        progress: &dyn Progress,
    ) -> Result<TraceImages, ImageError> {
        let name = format!(
            "{}-trace-v{WEAVE_VERSION}.{}-{}",
            module.cached_as(),
            tomo_program::ANALYSIS_VERSION,
            how.name()
        );
        let file = |kind: &str| self.folder().join(format!("{name}.{kind}"));
        let chart = file("chart");
        let image = |run: u32| file(&format!("{run}.image"));
        if let Some(baked) = known(module, &chart, image) {
            return Ok(TraceImages { baked });
        }
        let tracing = how.tracing(Collect::Detour);
        let (id, stamp) = (module.id, module.stamp);
        let woven = self.woven(module, progress, |binary, bytes, model| {
            weave_traces(binary, bytes, model, id, stamp, None, &tracing)
        })?;
        let write = |path: &Path, bytes: &[u8]| {
            private::install(path, &[bytes]).map_err(|error| ImageError::Io(path.into(), error))
        };
        write(&chart, &woven.chart)?;
        let mut baked = Vec::new();
        for (run, (bytes, header)) in (0..).zip(woven.images) {
            write(&image(run), &bytes)?;
            baked.push(Baked {
                image: image(run),
                plan: chart.clone(),
                disposals: PathBuf::new(),
                header,
            });
        }
        Ok(TraceImages { baked })
    }
}

impl Images {
    /// The breakpoints with which `module` is traced.
    ///
    /// # Errors
    /// Where it has none.
    pub fn breakpoints(
        &self,
        module: &Observed,
        how: &HowTraced,
        progress: &dyn Progress,
    ) -> Result<Breakpoints, ImageError> {
        let tracing = how.tracing(Collect::Breakpoint);
        self.woven(module, progress, |binary, bytes, model| {
            breakpoints(binary, bytes, model, module.id, &tracing)
        })
    }
}

/// The images that are there, if they are sound and belong to the chart.
fn known(module: &Observed, chart: &Path, image: impl Fn(u32) -> PathBuf) -> Option<Vec<Baked>> {
    let bytes = fs::read(chart).ok()?;
    let view = ChartView::read(&bytes).ok()?;
    let baked = (0..view.header.profiles.get()).map(|run| {
        let header = read_header(&image(run))?;
        let same = header.plan.get() == view.name() && header.module == module.id;
        let same = same && (header.stamp == module.stamp || is_unchanged(&header, &module.path));
        same.then(|| Baked {
            image: image(run),
            plan: chart.into(),
            disposals: PathBuf::new(),
            header,
        })
    });
    baked.collect()
}

impl RunFolder {
    /// Sees to it that `module` is traced in this run, the one with this number.
    ///
    /// # Errors
    /// Where the folder cannot be written, or there is no such run.
    pub fn trace(
        &mut self,
        module: &Observed,
        images: &TraceImages,
        run: usize,
    ) -> Result<(), FolderError> {
        let nothing = std::io::Error::other("there is no such run");
        let baked = images.baked.get(run);
        let baked = baked.ok_or_else(|| FolderError::Io(self.path().into(), nothing))?;
        self.add(module, baked, "chart")?;
        self.make_tracks()
    }

    /// Puts a chart into the folder of a run in which `module` is traced from outside.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn chart(&self, module: &Observed, chart: &[u8]) -> Result<(), FolderError> {
        let path = self.path().join(format!("{}.chart", module.stem));
        private::replace(&path, &[chart]).map_err(|error| FolderError::Io(path.clone(), error))
    }

    /// Makes the file of tracks.
    fn make_tracks(&mut self) -> Result<(), FolderError> {
        let path = self.path().join(TRACKS);
        let make = || -> std::io::Result<()> {
            let header = Slabs::of(SLAB, Contents::Tracks)
                .ok_or_else(|| std::io::Error::other("no slab"))?;
            let file = private::create(&path)?;
            private::allocate(&file, Slabs::head())?;
            file.write_all_at(header.as_bytes(), 0)?;
            file.write_all_at(&SLOTS.to_le_bytes(), SLOTS_AT)
        };
        make().map_err(|error| FolderError::Io(path.clone(), error))?;
        self.set_slabs(path);
        Ok(())
    }
}

/// Lets all programs that are started from now on lie at the same addresses in each run.
///
/// # Errors
/// Where the system does not let it.
pub fn keep_addresses() -> std::io::Result<()> {
    use nix::sys::personality::{self, Persona};
    let now = personality::get()?;
    personality::set(now | Persona::ADDR_NO_RANDOMIZE)?;
    Ok(())
}

/// The file of a run's tracks.
pub const TRACKS: &str = "tracks";
