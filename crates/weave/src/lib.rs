//! A plan made into machine code: the patched text of a module, the trampolines that its detours
//! lead to, and the tables that say what each probe observes.
//!
//! A probe is one-shot (DIS §3): its trampoline *marks, restores, re-executes*. It stores 1 into
//! the probe's mark, puts back the bytes of the module through a second, writable mapping of the
//! text, and jumps to where it came from. No instruction is moved, no register and no flag is
//! changed, so calls, branches and return addresses inside a window do not matter.
//!
//! From the model to the image, file by file:
//!
//! | step | file |
//! |---|---|
//! | what is mapped: whole pages of executable segments | `text.rs` |
//! | where blocks start and where control arrives | `spots.rs` |
//! | all that is read of a module before it is planned | `ground.rs` |
//! | who keeps something where `gs` leads | `segment.rs` |
//! | a block decoded: where in it a probe may stand | `block.rs` |
//! | filling that never runs and may be covered | `padding.rs` |
//! | which units get probes, and which are known from others | `choose.rs` |
//! | which window each unit gets, none in the way of another | `place.rs`, `hops.rs`, `settle.rs` |
//! | the ways to probe, each with its argument | `tactics/` |
//! | which counters a function gets | `counting.rs` |
//! | which functions have their paths counted, and how | `pathing.rs`, `paths.rs` |
//! | which predicates there are, and what observes each | `predicates.rs`, `predicates/` |
//! | which functions are traced, and with which witnesses | `tracing.rs`, `tracing/` |
//! | what a function does for chains of calls | `chains.rs` |
//! | what is executed elsewhere, and what is done there | `staying/` |
//! | machine code of trampolines | `trampoline.rs` |
//! | one file of it all | `image.rs` |
//! | how each probe is taken away from outside | `disposal.rs` |
//! | an independent proof that the file is harmless | `check.rs` |

#![forbid(unsafe_code)]

mod block;
mod chains;
mod check;
mod choose;
mod counting;
mod counts;
mod disposal;
mod error;
mod ground;
mod hops;
mod image;
mod origins;
mod padding;
mod pathing;
mod paths;
mod place;
mod predicates;
mod segment;
mod settle;
mod spots;
mod staying;
mod tactics;
mod text;
mod tracing;
mod trampoline;
mod window;

pub use check::{
    Checked, CountersChecked, Files, Flaw, PathsChecked, PredicatesChecked, check, check_chains,
    check_counters, check_paths, check_predicates, check_traces,
};
pub use counting::Weights;
pub use counts::{Counts, Refusal};
pub use disposal::dispose;
pub use error::WeaveError;
pub use pathing::{Ask, NamedPath, PathEnds, PathsOf};
pub use paths::{WovenPaths, weave_paths};
pub use predicates::{Asked, PredicateWeaver, Wanted, WovenPredicates};
pub use tomo_plan::witnesses::Strategy;
pub use tracing::breakpoints::Breakpoint;
pub use tracing::{Collect, Kind, Tracing};

use ground::{Elsewhere, Ground};
use staying::region::Regions;
use tomo_program::{ANALYSIS_VERSION, Binary, Model};
use tomo_wire::chains::Functions;
use tomo_wire::counting::{Counters, Row};
use tomo_wire::image::Image;
use tomo_wire::plan::Level;
use tomo_wire::{FileStamp, ModuleId};
use zerocopy::IntoBytes as _;

/// Raised whenever the same module and plan would be woven otherwise, so that no older image is
/// taken for a new one.
pub const WEAVE_VERSION: u32 = 36;

/// Which units get probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Placement {
    /// All that can have one.
    All,
    /// As few, and as cheap ones, as tell of all of them whether they ran, in runs in which
    /// control stops only at exits, calls and in loops (`tomo_plan::coverage`).
    Reduced,
}

impl Placement {
    /// What people call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Reduced => "reduced",
        }
    }
}

/// Whether the module in the file `bytes` has the text that this image was made of.
#[must_use]
pub fn is_text_of(bytes: &[u8], image: &Image) -> bool {
    text::Text::read(bytes).is_ok_and(|text| text.is_of(image))
}

/// What to observe and how.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// What is observed.
    pub level: Level,
    /// Which units get probes.
    pub placement: Placement,
    /// From the first region's start to the trampolines, where the default does not do: below
    /// what the loader may put anywhere, another distance for each module; 1.75 GB above what it may not.
    pub distance: Option<i64>,
    /// Whether an `int3` may be met in the module. Not in one that blocks all signals by system calls of
    /// its own, as C libraries do, or whose stacks have no room for a signal's frame: the system ends a process that meets one then.
    pub traps: bool,
    /// Whether probes are to stay when they have been hit, where that can be.
    pub stays: bool,
}

impl Options {
    /// Everything of `level` observed by probes of its own.
    #[must_use]
    pub fn of(level: Level) -> Self {
        Self {
            level,
            placement: Placement::All,
            distance: None,
            traps: true,
            stays: false,
        }
    }
}

/// An armed image with its plan.
#[derive(Debug)]
pub struct Woven {
    /// The image file.
    pub image: Vec<u8>,
    /// The plan file.
    pub plan: Vec<u8>,
    /// The file of how each probe is disposed of.
    pub disposals: Vec<u8>,
    /// The image's header.
    pub header: Image,
    /// How many units each tactic got.
    pub counts: Counts,
}

/// Makes the image and the plan for the module in the file `bytes`, of which `binary` and `model` tell.
/// Linear but for a sort of the windows, on all processors.
///
/// # Errors
/// Where the module cannot be armed, whatever the plan.
pub fn weave(
    binary: &Binary<'_>,
    bytes: &[u8],
    model: &Model,
    module: ModuleId,
    stamp: FileStamp,
    options: &Options,
) -> Result<Woven, WeaveError> {
    if options.stays {
        ground::may_stay(binary)?;
    }
    let ground = Ground::of(binary, bytes, model)?;
    let (text, around) = (&ground.text, ground.around());
    let place::Placed { mut units, gaps } = place::units(&around, &ground.graphs, options);
    let probes = settle::settle(&mut units, &gaps, &[], options.traps);
    let plan = image::plan(&units, probes, module, options.level, ANALYSIS_VERSION);
    let mut counts = Counts::default();
    for unit in &units {
        counts.add(unit.window.tactic, unit.refusal);
    }
    let weaving = image::Weaving {
        text,
        units: &units[..probes],
        regions: &Regions::default(),
        module,
        stamp,
        plan: plan.name,
        fixed: !binary.is_position_independent(),
        distance: options.distance,
        slab: None,
        shadowed: false,
        probes,
        counters: 0,
    };
    let (image, header) = weaving.image()?;
    let rows = disposal::rows(text, weaving.units).ok_or(WeaveError::TooLarge)?;
    Ok(Woven {
        image,
        plan: plan.bytes,
        disposals: disposal::file(module, weaving.plan, &rows),
        header,
        counts,
    })
}

/// Counters of a module, made into machine code.
#[derive(Debug)]
pub struct WovenCounters {
    /// The image file.
    pub image: Vec<u8>,
    /// The file of the counters (`tomo_wire::counting`).
    pub counters: Vec<u8>,
    /// The image's header.
    pub header: Image,
    /// Entries of the functions that are not counted, since too little is known of them.
    pub uncounted: Vec<u64>,
}

/// Makes the image of a module in which counters tell how often every edge and block runs, those being chosen
/// that run least by `weights` or by estimate. They start `slab` bytes into the slab of each thread. Linear but for a sort and what planning takes.
///
/// # Errors
/// Where the module cannot be armed, whatever the plan.
pub fn weave_counters(
    binary: &Binary<'_>,
    bytes: &[u8],
    model: &Model,
    module: ModuleId,
    stamp: FileStamp,
    (distance, slab): (Option<i64>, u32),
    weights: &Weights,
) -> Result<WovenCounters, WeaveError> {
    let ground = Ground::of(binary, bytes, model)?;
    let counting::Counting {
        regions,
        calls,
        counters,
        uncounted,
    } = counting::all(&ground.around(), &ground.graphs, weights);
    let rows: Vec<Row> = counters
        .iter()
        .map(|counter| Row {
            from: counter.from.into(),
            to: counter.to.into(),
        })
        .collect();
    let file = Counters::of(
        (module, ground.text.origin()),
        ANALYSIS_VERSION,
        slab,
        &rows,
    );
    let elsewhere = Elsewhere {
        units: Vec::new(),
        regions,
        calls,
        slab: Some(slab),
        shadowed: false,
        probes: rows.len(),
        counters: rows.len(),
    };
    let (image, header) = ground.image((module, stamp), distance, file.name(), elsewhere)?;
    Ok(WovenCounters {
        image,
        counters: [file.as_bytes(), rows.as_bytes()].concat(),
        header,
        uncounted,
    })
}

/// A module's witnesses, made into machine code: an image for each run.
#[derive(Debug)]
pub struct WovenTraces {
    /// The image file of each run, with its header.
    pub images: Vec<(Vec<u8>, Image)>,
    /// The file of the chart (`tomo_wire::tracing`).
    pub chart: Vec<u8>,
}

/// Makes the images of a module in which witnesses tell, all runs taken together, what each thread did block for
/// block.
///
/// # Errors
/// Where the module cannot be armed, whatever the plan.
pub fn weave_traces(
    binary: &Binary<'_>,
    bytes: &[u8],
    model: &Model,
    module: ModuleId,
    stamp: FileStamp,
    distance: Option<i64>,
    tracing: &Tracing<'_>,
) -> Result<WovenTraces, WeaveError> {
    let ground = Ground::of(binary, bytes, model)?;
    let traced = tracing::all(&ground.around(), &ground.graphs, tracing)?;
    let drawn = traced.chart(&ground.around());
    let (chart, name) = drawn.file(
        (module, ground.text.origin()),
        ANALYSIS_VERSION,
        traced.profiles(),
    );
    let images = (0..traced.profiles()).map(|profile| {
        let tracing::Elsewhere { regions, calls } = traced.elsewhere(&drawn, profile);
        let elsewhere = Elsewhere {
            units: Vec::new(),
            regions,
            calls,
            slab: Some(tomo_wire::tracing::SLAB as u32),
            shadowed: false,
            probes: 0,
            counters: 0,
        };
        ground.image((module, stamp), distance, name, elsewhere)
    });
    Ok(WovenTraces {
        images: images.collect::<Result<_, _>>()?,
        chart,
    })
}

/// A module's witnesses as breakpoints.
#[derive(Debug)]
pub struct Breakpoints {
    /// Those of each run, ascending.
    pub runs: Vec<Vec<Breakpoint>>,
    /// The file of the chart (`tomo_wire::tracing`).
    pub chart: Vec<u8>,
    /// Where the program starts, as the module states it.
    pub entry: u64,
    /// Where the module's first executable page is, as it states it.
    pub origin: u64,
}

/// The breakpoints that tell, all runs taken together, what each thread did block for block.
///
/// # Errors
/// Where the module cannot be read.
pub fn breakpoints(
    binary: &Binary<'_>,
    bytes: &[u8],
    model: &Model,
    module: ModuleId,
    tracing: &Tracing<'_>,
) -> Result<Breakpoints, WeaveError> {
    ground::may_stay(binary)?;
    let ground = Ground::of(binary, bytes, model)?;
    let traced = tracing::all(&ground.around(), &ground.graphs, tracing)?;
    let drawn = traced.chart(&ground.around());
    let (chart, _) = drawn.file(
        (module, ground.text.origin()),
        ANALYSIS_VERSION,
        traced.profiles(),
    );
    let runs = (0..traced.profiles()).map(|run| traced.breakpoints(&drawn, run));
    Ok(Breakpoints {
        runs: runs.collect(),
        chart,
        entry: binary.entry().map_or(0, |entry| entry.0),
        origin: ground.text.origin(),
    })
}

/// Chains of calls of a module, made into machine code.
#[derive(Debug)]
pub struct WovenChains {
    /// The image file.
    pub image: Vec<u8>,
    /// The file of the functions that are observed (`tomo_wire::chains`).
    pub functions: Vec<u8>,
    /// The image's header.
    pub header: Image,
}

/// Makes the image of a module whose functions, those with the `wanted` entries, note by which chains of calls they are
/// entered. Linear, on all processors.
///
/// # Errors
/// Where the module cannot be armed at all.
pub fn weave_chains(
    binary: &Binary<'_>,
    bytes: &[u8],
    model: &Model,
    module: ModuleId,
    stamp: FileStamp,
    distance: Option<i64>,
    wanted: &(dyn Fn(u64) -> bool + Sync),
) -> Result<WovenChains, WeaveError> {
    let ground = Ground::of(binary, bytes, model)?;
    let chains::Chains {
        rows,
        regions,
        calls,
    } = chains::all(&ground.around(), &ground.graphs, wanted);
    let file = Functions::of(module, ground.text.origin(), ANALYSIS_VERSION, &rows);
    let elsewhere = Elsewhere {
        units: Vec::new(),
        regions,
        calls,
        slab: Some(0),
        shadowed: false,
        probes: rows.len(),
        counters: rows.len(),
    };
    let (image, header) = ground.image((module, stamp), distance, file.name(), elsewhere)?;
    Ok(WovenChains {
        image,
        functions: [file.as_bytes(), rows.as_bytes()].concat(),
        header,
    })
}
