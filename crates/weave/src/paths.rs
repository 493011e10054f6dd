//! Counters of paths, made into an image and a file that says what they count.

use tomo_program::{ANALYSIS_VERSION, Address, Binary, FunctionView, Model};
use tomo_wire::image::Image;
use tomo_wire::paths::{Asked, Function, Left, Mark, Paths, Rows};
use tomo_wire::{FileStamp, ModuleId};
use zerocopy::IntoBytes as _;
use zerocopy::little_endian::U32;

use crate::WeaveError;
use crate::ground::{Elsewhere, Ground};
use crate::pathing::{self, Ask, Planned};
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
    named: Vec<U32>,
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
            asked: (plan.asked as u32).into(),
            selective: u32::from(plan.selective).into(),
            named: (self.named.len() as u32).into(),
            names: (plan.named.len() as u32).into(),
        });
        self.named
            .extend(plan.named.iter().map(|one| U32::new(*one)));
        plan.region.renumber(self.counters);
        self.counters += 1 + plan.numbers;
        self.marks.extend(plan.marks);
        self.regions.push(plan.region);
        self.calls.extend(plan.calls);
    }
}

/// Makes the image of a module in which counters tell how often those acyclic paths of its functions run that are
/// asked for. They start `slab` bytes into the slab of each thread, which has a shadow of its stacks.
///
/// # Errors
/// Where the module cannot be armed, whatever the plan; where a path is asked for that its function does not have.
pub fn weave_paths<'a>(
    binary: &Binary<'_>,
    bytes: &[u8],
    model: &Model,
    module: ModuleId,
    stamp: FileStamp,
    (distance, slab): (Option<i64>, u32),
    ask: &(dyn for<'v> Fn(&FunctionView<'v>) -> Ask<'a> + Sync),
) -> Result<WovenPaths, WeaveError> {
    let ground = Ground::of(binary, bytes, model)?;
    let mut joined = Joined::default();
    for (entry, plan) in pathing::all(&ground.around(), &ground.graphs, ask) {
        match plan {
            Ok(Planned {
                asked: Asked::Named,
                stranger: Some(path),
                ..
            }) => return Err(no_such_path(&ground, entry, path)),
            Ok(plan) => joined.add(plan),
            Err(reason) => joined.left.push(Left::of(entry, reason)),
        }
    }
    let rows = Rows {
        functions: &joined.functions,
        marks: &joined.marks,
        left: &joined.left,
        named: &joined.named,
    };
    let file = Paths::of(module, ANALYSIS_VERSION, slab, joined.counters, &rows);
    let elsewhere = Elsewhere {
        units: Vec::new(),
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
            rows.named.as_bytes(),
        ]
        .concat(),
        header,
    })
}

fn no_such_path(ground: &Ground<'_>, entry: u64, path: usize) -> WeaveError {
    let function = ground.graphs.function_starting_at(Address(entry));
    WeaveError::NoSuchPath {
        function: function.map_or_else(|| format!("{entry:#x}"), |one| one.title()),
        path,
    }
}
