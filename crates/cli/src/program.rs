//! `tomo program`: the builds that a collector knows.

mod counted;

use std::ffi::OsString;
use std::fs;
use std::io::{Write as _, stdout};

use anyhow::{Context as _, Result, bail};
use clap::{Args, Subcommand};
use tomo_export::locate;
use tomo_export::predicates::Sites;
use tomo_isolate::terrain;
use tomo_launch::{Chosen, How, Observed, Target, masters};
use tomo_program::{Cache, Graphs, Model, Request, load};
use tomo_protocol::{Client, Name, NewModule, Plan, Program, Units, paths};
use tomo_weave::Asked;
use tomo_wire::plan::PlanView;
use tomo_wire::predicates::Predicates;

pub(crate) use counted::{add_chains, add_paths};

use crate::bar::Bar;
use crate::observe::{Store, What};
use crate::remote::Remote;
use crate::saying;

/// Tell a collector of the builds of a program.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,

    #[command(flatten)]
    remote: Remote,
}

#[derive(Subcommand)]
enum Command {
    Add(Add),
    List(List),
}

/// Register builds: their models, their files (for source lines), and where probes go.
///
/// A build that the collector knows is not sent again. `tomo campaign new` does this by itself for the
/// program that it is given.
#[derive(Args)]
struct Add {
    #[command(flatten)]
    what: What,

    /// The programs.
    #[arg(required = true, value_name = "PROGRAM")]
    programs: Vec<OsString>,
}

/// List the builds.
#[derive(Args)]
struct List {
    /// As JSON.
    #[arg(long)]
    json: bool,
}

/// Does what the arguments ask for.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let client = arguments.remote.client()?;
    match &arguments.command {
        Command::Add(add) => {
            for program in &add.programs {
                for module in add_program(&client, program, &add.what, false)? {
                    writeln!(stdout(), "{} plan {}", module.stem, module.plan)?;
                }
            }
            Ok(())
        }
        Command::List(list) => {
            let programs: Vec<Program> = client.get(paths::PROGRAMS)?;
            if list.json {
                writeln!(stdout(), "{}", serde_json::to_string_pretty(&programs)?)?;
                return Ok(());
            }
            for program in programs {
                let Program {
                    name,
                    functions,
                    stem,
                    ..
                } = program;
                let name = saying::name(&name);
                writeln!(stdout(), "{name:<24} {functions:>8} functions  {stem}")?;
            }
            Ok(())
        }
    }
}

/// Sees to it that the collector knows the modules of a program that are to be observed, and their
/// plans; gives what a campaign asks for.
pub(crate) fn add_program(
    client: &Client,
    program: &OsString,
    what: &What,
    clusters: bool,
) -> Result<Vec<NewModule>> {
    let target = Target::find(program, std::env::var_os("PATH").as_deref())?;
    say_what_runs(&target);
    let store = Store::open()?;
    let observed = what.modules(&target)?;
    let bar = Bar::new();
    let how = what.how();
    if how.stays {
        bail!("instances of a fleet dispose of what was hit; --disposal none is for single runs");
    }
    let made = masters(observed.iter().map(|one| (one, how)), &store.images, &bar)?;
    let known: Vec<Program> = client.get(paths::PROGRAMS)?;
    let mut modules = Vec::new();
    for (module, master) in observed.iter().zip(&made) {
        let path = module.path.display();
        let model = model_of(module, &store, &bar).with_context(|| path.to_string())?;
        if !known.iter().any(|one| one.stem == module.stem) {
            upload(client, module, &model).with_context(|| path.to_string())?;
        }
        let bytes = fs::read(master.plan_path()).with_context(|| path.to_string())?;
        let name = Name(master.plan());
        let _: Plan = client.put_bytes(&paths::of_plan(name), &bytes)?;
        let graphs = model.graphs()?;
        let sets = if clusters {
            by_function(&bytes, &graphs)?
        } else {
            Vec::new()
        };
        modules.push(new_module(module, name, how, sets));
    }
    bar.finish();
    Ok(modules)
}

/// Says it where another program than the one that was named is observed.
fn say_what_runs(target: &Target) {
    let (named, runs) = (target.command.display(), target.executable.display());
    if target.command != target.executable {
        say!("tomo: {named} is a script; what is observed is {runs}");
    }
}

/// The executable of a program into which an agent can be loaded.
fn executable(program: &OsString) -> Result<Observed> {
    let target = Target::find_dynamic(program, std::env::var_os("PATH").as_deref())?;
    say_what_runs(&target);
    Ok(Observed::of(&Chosen::executable(&target))?)
}

/// The executable of a program, and the file of all its predicates.
fn predicates_of(
    program: &OsString,
    store: &Store,
    bar: &Bar,
) -> Result<(Observed, Name, Vec<u8>)> {
    let module = executable(program)?;
    let (carried, file) = store.images.marking(&module, Asked::All, bar)?;
    Ok((module, Name(carried.plan), fs::read(file)?))
}

/// The same for the predicates of the executable.
pub(crate) fn add_predicates(
    client: &Client,
    program: &OsString,
    clusters: bool,
) -> Result<NewModule> {
    let (store, bar) = (Store::open()?, Bar::new());
    let (module, name, bytes) = predicates_of(program, &store, &bar)?;
    let model = add_plan(client, (&module, name, &bytes), (&store, &bar))?;
    let (_, rows) = Predicates::read(&bytes).map_err(anyhow::Error::msg)?;
    let graphs = model.graphs()?;
    let mut sets = std::collections::BTreeMap::<_, Vec<u32>>::new();
    for (at, row) in (0..).zip(rows).filter(|_| clusters) {
        let block = graphs.block_at(tomo_program::Address(row.block.get()));
        let function = block.and_then(|block| block.function());
        let key = function.map_or(row.block.get(), |function| function.entry().0);
        sets.entry(key).or_default().push(at);
    }
    bar.finish();
    let clusters = sets.into_values().map(Units::of).collect();
    Ok(of_predicates(&module, name, clusters))
}

/// The same, with the program as a search sees it.
pub(crate) fn add_terrain(client: &Client, program: &OsString) -> Result<NewModule> {
    let (store, bar) = (Store::open()?, Bar::new());
    let (module, name, bytes) = predicates_of(program, &store, &bar)?;
    add_plan(client, (&module, name, &bytes), (&store, &bar))?;
    let cache = Cache::at(&store.folder);
    let located = locate(module.id, [module.path.as_path()], Some(&cache), &bar)?;
    let sites = Sites::read(&located, &bytes)?;
    let terrain = terrain(&located.model.graphs()?, &sites)?;
    let _: serde_json::Value = client.put_bytes(&paths::of_terrain(name), &terrain.to_bytes())?;
    bar.finish();
    Ok(of_predicates(&module, name, Vec::new()))
}

/// Sees to it that the collector knows a module and this plan of it; gives its model.
fn add_plan(
    client: &Client,
    (module, name, bytes): (&Observed, Name, &[u8]),
    (store, bar): (&Store, &Bar),
) -> Result<Model> {
    let path = || module.path.display().to_string();
    let known: Vec<Program> = client.get(paths::PROGRAMS)?;
    let model = model_of(module, store, bar).with_context(path)?;
    if !known.iter().any(|one| one.stem == module.stem) {
        upload(client, module, &model).with_context(path)?;
    }
    let _: Plan = client.put_bytes(&paths::of_plan(name), bytes)?;
    Ok(model)
}

fn of_predicates(module: &Observed, plan: Name, clusters: Vec<Units>) -> NewModule {
    NewModule {
        stem: module.stem.clone(),
        level: "predicate".into(),
        placement: "all".into(),
        plan,
        clusters,
        events: Vec::new(),
        only: None,
    }
}

/// What a campaign asks for that observes a module so.
pub(crate) fn new_module(
    module: &Observed,
    plan: Name,
    how: How,
    clusters: Vec<Units>,
) -> NewModule {
    let placement = match how.placement {
        tomo_weave::Placement::All => "all",
        tomo_weave::Placement::Reduced => "reduced",
    };
    NewModule {
        stem: module.stem.clone(),
        level: how.level.name().into(),
        placement: placement.into(),
        plan,
        clusters,
        events: Vec::new(),
        only: None,
    }
}

fn model_of(module: &Observed, store: &Store, bar: &Bar) -> Result<Model> {
    let cache = Cache::at(&store.folder);
    let request = Request {
        path: &module.path,
        cache: Some(&cache),
        refresh: false,
        whole: true,
    };
    Ok(load(&request, bar)?.model)
}

/// The description goes last: a build that is listed is whole.
fn upload(client: &Client, module: &Observed, model: &Model) -> Result<()> {
    let bytes = fs::read(&module.path)?;
    let name = module.path.file_name().unwrap_or_default();
    let program = Program {
        stem: module.stem.clone(),
        name: saying::name(&name.to_string_lossy()),
        build_id: module.id.build_id().map(tomo_program::hexadecimal),
        size: bytes.len() as u64,
        functions: model.graphs()?.functions().len() as u64,
        version: env!("CARGO_PKG_VERSION").into(),
    };
    let part = |path| paths::of_program(path, &module.stem);
    let _: serde_json::Value = client.put_bytes(&part(paths::MODEL), model.as_bytes())?;
    let _: serde_json::Value = client.put_bytes(&part(paths::FILE), &bytes)?;
    let _: Program = client.put(&part(paths::PROGRAM), &program)?;
    Ok(())
}

/// The probes of each function of a plan: PDT's clusters.
fn by_function(plan: &[u8], graphs: &Graphs<'_>) -> Result<Vec<Units>> {
    let view = PlanView::read(plan).map_err(anyhow::Error::msg)?;
    let probes = view.header.probes.get();
    let mut sets = std::collections::BTreeMap::<_, Vec<u32>>::new();
    for (probe, unit) in (0..probes).zip(view.units) {
        let from = tomo_program::Address(unit.from.get());
        let function = graphs.block_at(from).and_then(|block| block.function());
        // A probe whose function is unknown is a cluster of its own; its address tells it apart.
        let key = function.map_or(from.0, |function| function.entry().0);
        sets.entry(key).or_default().push(probe);
    }
    Ok(sets.into_values().map(Units::of).collect())
}
