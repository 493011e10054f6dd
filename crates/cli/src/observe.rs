//! What `tomo cover` and `tomo env` have in common: what to observe, and how it is prepared.

use std::collections::HashSet;
use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, bail};
use clap::{Args, ValueEnum};
use tomo_export::words::{grouped, some_of};
use tomo_launch::{Choice, Chosen, Forks, Found, How, Images, Observed, Target, is_path, modules};
use tomo_program::{Cache, is_static};
use tomo_weave::Placement;
use tomo_wire::plan::Level;

/// What to observe, and where probes go.
#[derive(Args)]
pub(crate) struct What {
    /// What to observe: which functions were entered, which blocks ran, or blocks and the edges
    /// between them (for branches).
    #[arg(long, value_enum, default_value_t = LevelName::Block)]
    level: LevelName,

    /// Where probes go: to all units, or only to those from which the others follow, which costs less.
    /// The result is the same, with two exceptions, where less is known: blocks in which a child
    /// crashed; and programs in which no probe may trap (static ones, Go, the C library), since that
    /// leaves fewer places to choose from.
    #[arg(long, value_enum, default_value_t = PlacementName::All)]
    placement: PlacementName,

    /// What becomes of a probe that was hit: `local`, it removes itself; `none`, it stays wherever that
    /// can be, which is what instrumentation without disposal pays. For studies; the result is the same.
    #[arg(long, value_enum, default_value_t = DisposalName::Local)]
    disposal: DisposalName,

    /// Observe the modules whose file names contain NAME instead of the executable and the
    /// libraries that come with it; `all` observes every module that is loaded at the start. A NAME
    /// with a slash is the path of a module, or of a folder with modules in it or below it, also of those
    /// that the program loads later (dlopen), and of programs that it starts. What is built only while the
    /// command runs is not observed, which is said: build first. May be given several times.
    #[arg(long, value_name = "NAME|PATH|all")]
    module: Vec<String>,
}

/// Whose records there are.
#[derive(Args)]
pub(crate) struct Whose {
    /// Whether all processes of a run share one record, or each that is forked or executed has its own,
    /// of what it does from then on. `tomo report --processes` lists these. They cost each process a
    /// copy of the text.
    #[arg(long, value_enum, value_name = "RECORDS", default_value_t = ForksName::Shared)]
    fork: ForksName,
}

impl Whose {
    pub(crate) fn forks(&self) -> Forks {
        match self.fork {
            ForksName::Shared => Forks::Shared,
            ForksName::Separate => Forks::Separate,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ForksName {
    Shared,
    Separate,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LevelName {
    Function,
    Block,
    Edge,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PlacementName {
    All,
    Reduced,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DisposalName {
    Local,
    None,
}

impl What {
    pub(crate) fn how(&self) -> How {
        How {
            level: match self.level {
                LevelName::Function => Level::Function,
                LevelName::Block => Level::Block,
                LevelName::Edge => Level::Edge,
            },
            placement: match self.placement {
                PlacementName::All => Placement::All,
                PlacementName::Reduced => Placement::Reduced,
            },
            stays: self.disposal == DisposalName::None,
        }
    }

    fn choice(&self) -> Choice {
        if self.module.is_empty() {
            Choice::Own
        } else {
            Choice::Named(self.module.clone())
        }
    }

    /// The files and folders that are named.
    pub(crate) fn places(&self) -> impl Iterator<Item = PathBuf> {
        let paths = self.module.iter().map(PathBuf::from);
        paths.filter(|path| is_path(path))
    }

    /// The modules of `target` that are to be observed.
    pub(crate) fn modules(&self, target: &Target) -> Result<Vec<Observed>> {
        let found = found(target, &self.choice())?;
        let each = found.chosen.iter();
        let observed =
            each.map(|one| Observed::of(one).with_context(|| one.path.display().to_string()));
        Ok(each_once(observed.collect::<Result<_>>()?))
    }
}

/// Of files that are the same module the first: what all of them do is in one record. Of those without a build id an image is taken
/// for that of one file alone.
fn each_once(mut modules: Vec<Observed>) -> Vec<Observed> {
    let mut known = HashSet::new();
    modules.retain(|module| {
        let is_new = known.insert(module.stem.clone());
        if !is_new && module.id.build_id().is_none() {
            let path = module.path.display();
            say!(
                "tomo: {path}: is a copy of another module, without a build id, and is not observed"
            );
        }
        is_new
    });
    modules
}

fn found(target: &Target, choice: &Choice) -> Result<Found> {
    let mut found = modules(target, choice).context("asking the loader")?;
    leave_out_static(&mut found)?;
    if let Some(name) = found.missing.first() {
        if is_path(name.as_ref()) {
            std::fs::metadata(name).with_context(|| name.clone())?;
            bail!("{name}: is neither a program nor a shared library, and no folder with any");
        }
        let program = target.executable.display();
        bail!("{program} loads no module called {name:?} at its start; give its path");
    }
    Ok(found)
}

/// Leaves out the static programs that `found` has besides what is started here, and says so: nobody arms them where others start them.
fn leave_out_static(found: &mut Found) -> Result<()> {
    let chosen = std::mem::take(&mut found.chosen).into_iter();
    let is_out_of_reach = |one: &Chosen| one.late && is_static_program(&one.path);
    let (out_of_reach, chosen): (Vec<_>, Vec<_>) = chosen.partition(is_out_of_reach);
    found.chosen = chosen;
    let [first, others @ ..] = out_of_reach.as_slice() else {
        return Ok(());
    };
    let path = first.path.display();
    let (and_others, they) = match others.len() {
        0 => (String::new(), "it"),
        1 => (", as is 1 other".into(), "them"),
        others => (
            format!(", as are {} others", grouped(others as u64)),
            "them",
        ),
    };
    let words = format!(
        "{path}: is statically linked{and_others}, and observed only where tomo itself starts {they}"
    );
    if found.chosen.is_empty() {
        bail!(words);
    }
    say!("tomo: {words}");
    Ok(())
}

fn is_static_program(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| is_static(&file))
}

/// Which module to observe, where it is one alone.
#[derive(Args)]
pub(crate) struct OneModule {
    /// Observe the library whose file name contains NAME instead of the executable. A NAME with a
    /// slash is the path of a module, also of one that the program loads later (dlopen).
    #[arg(long, value_name = "NAME|PATH")]
    module: Option<String>,
}

impl OneModule {
    /// Whether it is the executable.
    pub(crate) fn is_executable(&self) -> bool {
        self.module.is_none()
    }

    /// The module of `target` that is to be observed.
    pub(crate) fn of(&self, target: &Target) -> Result<Observed> {
        let Some(name) = &self.module else {
            return Ok(Observed::of(&Chosen::executable(target))?);
        };
        let found = found(target, &Choice::Named(vec![name.clone()]))?;
        let [one] = found.chosen.as_slice() else {
            let paths = some_of(&found.chosen, |one| one.path.display().to_string());
            bail!("{name:?} names several modules: {paths}; give the path of one");
        };
        Observed::of(one).with_context(|| one.path.display().to_string())
    }
}

/// The libraries that come with the executable of `target`; none where the loader does not tell.
pub(crate) fn companions(target: &Target) -> Vec<PathBuf> {
    let found = modules(target, &Choice::Own).unwrap_or_default();
    let libraries = found.chosen.into_iter().skip(1);
    libraries.map(|one| one.path).collect()
}

/// Where models are kept, if anywhere.
pub(crate) fn models() -> Option<Cache> {
    Cache::from_environment(|name| std::env::var_os(name))
}

/// Where models, images and the agent are kept.
pub(crate) struct Store {
    pub(crate) folder: PathBuf,
    pub(crate) images: Images,
}

impl Store {
    pub(crate) fn open() -> Result<Self> {
        let cache = models().context("there is no cache directory: set TOMO_CACHE_DIR")?;
        let folder = cache.directory().to_path_buf();
        let images = Images::in_cache(&folder)
            .map_err(|error| anyhow!("{error}; TOMO_CACHE_DIR names another folder"))?;

        Ok(Self { folder, images })
    }
}
