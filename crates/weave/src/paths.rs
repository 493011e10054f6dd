//! Counters of paths, made into an image and a file that says what they count.

use tomo_program::{ANALYSIS_VERSION, Binary, FunctionView, Model};
use tomo_wire::image::Image;
use tomo_wire::paths::{Function, Left, Mark, Paths, Rows};
use tomo_wire::{FileStamp, ModuleId};
use zerocopy::IntoBytes as _;

use crate::WeaveError;
use crate::ground::{Elsewhere, Ground};
use crate::pathing::{self, Planned};
use crate::staying::region::{Call, Region};

/// The paths of a module, made into machine code.
#[derive(Debug)]
pub struct WovenPaths {
    /// The image file.
    pub image: Vec<u8>,
    /// The file of the paths (`tomo_wire::paths`).
    pub paths: Vec<u8>,
    /// The image's header.
    pub header: Image,
}

/// All functions put together.
#[derive(Default)]
struct Joined {
    functions: Vec<Function>,
    marks: Vec<Mark>,
    left: Vec<Left>,
    counters: u32,
    regions: Vec<Region>,
    calls: Vec<Call>,
}

impl Joined {
    fn add(&mut self, mut plan: Planned) {
        self.functions.push(Function {
            entry: plan.entry.into(),
            first: self.counters.into(),
            numbers: plan.numbers.into(),
            mark: (self.marks.len() as u32).into(),
            marks: (plan.marks.len() as u32).into(),
        });
        plan.region.renumber(self.counters);
        self.counters += 1 + plan.numbers;
        self.marks.extend(plan.marks);
        self.regions.push(plan.region);
        self.calls.extend(plan.calls);
    }
}

/// Makes the image of a module in which counters tell how often every acyclic path of the functions that are chosen
/// runs. They start `slab` bytes into the slab of each thread, which has a shadow of its stacks.
///
/// # Errors
/// Where the module cannot be armed, whatever the plan.
pub fn weave_paths(
    binary: &Binary<'_>,
    bytes: &[u8],
    model: &Model,
    module: ModuleId,
    stamp: FileStamp,
    (distance, slab): (Option<i64>, u32),
    is_chosen: &(dyn Fn(&FunctionView<'_>) -> bool + Sync),
) -> Result<WovenPaths, WeaveError> {
    let ground = Ground::of(binary, bytes, model)?;
    let mut joined = Joined::default();
    for (entry, plan) in pathing::all(&ground.around(), &ground.graphs, is_chosen) {
        match plan {
            Ok(plan) => joined.add(plan),
            Err(reason) => joined.left.push(Left::of(entry, reason)),
        }
    }
    let rows = Rows {
        functions: &joined.functions,
        marks: &joined.marks,
        left: &joined.left,
    };
    let file = Paths::of(module, ANALYSIS_VERSION, slab, joined.counters, &rows);
    let elsewhere = Elsewhere {
        regions: joined.regions,
        calls: joined.calls,
        slab: Some(slab),
        shadowed: true,
        probes: rows.functions.len(),
        counters: joined.counters as usize,
    };
    let (image, header) = ground.image((module, stamp), distance, file.name(), elsewhere)?;
    Ok(WovenPaths {
        image,
        paths: [
            file.as_bytes(),
            rows.functions.as_bytes(),
            rows.marks.as_bytes(),
            rows.left.as_bytes(),
        ]
        .concat(),
        header,
    })
}
