//! What a probe of `tomo cover` costs, taken apart: arming, a first hit, and memory.
//!
//! Each figure is a difference of whole processes, each run in turn with the other: what is armed and what is not,
//! what meets probes and what finds them gone. So nothing is left out that the system does for it, page faults included.
//!
//! Prints one JSON object a line. Run by `cargo xtask bench cover`. `TOMO` names the command, if it is not to be that
//! of the tests.

mod memory;
#[path = "../cover/pools.rs"]
mod pools;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Result, ensure};
use pools::Contents;
use serde_json::json;
use tomo_testkit::corpus::{Compiler, Level, Recipe, Source, build, compiled};
use tomo_testkit::processor::{median, seconds};
use tomo_wire::environment::ROSTER;
use tomo_wire::record::RecordView;

/// How often each difference is taken.
const ROUNDS: usize = 300;

fn main() -> Result<()> {
    let folder = pools::in_memory()?;
    for (name, source) in [("lua", Source::Lua), ("sqlite", Source::Sqlite)] {
        let program = build(&Recipe::new(source, Compiler::Gcc, Level::O2))?.program;
        let pooled = Pooled::bake(&program, folder.path(), name)?;
        arming(name, &pooled, folder.path())?;
        memory::of_files(name, &pooled)?;
    }
    memory::of_processes(folder.path())?;
    let common = ["-O2", "-g", "-fno-ipa-icf"];
    let long = compiled(
        "gcc",
        "once.c",
        &[&common[..], &["-falign-functions=16"]].concat(),
    )?;
    let short = ["-DSHORT", "-fno-align-functions"];
    let short = compiled("gcc", "once.c", &[&common[..], &short].concat())?;
    first_hit("detour", &Pooled::bake(&long, folder.path(), "long")?)?;
    first_hit("trap", &Pooled::bake(&short, folder.path(), "short")?)
}

/// A program and the pool that arms it.
struct Pooled {
    program: PathBuf,
    pool: PathBuf,
    environment: BTreeMap<String, String>,
}

impl Pooled {
    fn bake(program: &Path, folder: &Path, name: &str) -> Result<Self> {
        let pool = folder.join(name);
        let cache = folder.join("cache");
        Ok(Self {
            environment: pools::bake(&pools::command()?, &cache, &pool, program)?,
            program: program.into(),
            pool,
        })
    }

    /// The program, armed, with nothing to read and nobody to read it.
    fn armed(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.envs(&self.environment);
        command
    }
}

/// Prints a figure.
fn print(case: &str, what: &str, (value, unit): (f64, &str), promise: Option<&str>) {
    let line = json!({
        "bench": "probe", "case": case, "what": what, "value": value, "unit": unit, "promise": promise,
    });
    println!("{line}");
}

/// What it takes to arm a program: with the agent and a roster, beyond the agent alone. Its probes are gone before, and it has
/// nothing to do.
fn arming(name: &str, pooled: &Pooled, folder: &Path) -> Result<()> {
    let empty = folder.join("empty");
    fs::write(&empty, "")?;
    let run = |armed: bool| {
        let mut command = pooled.armed();
        if !armed {
            command.env_remove(ROSTER);
        }
        seconds(command.arg(&empty))
    };
    run(true)?;
    let mut more = Vec::new();
    for round in 0..ROUNDS {
        // Each is the first one every other time.
        let first = run(round % 2 == 0)?;
        let second = run(round % 2 != 0)?;
        more.push(match round % 2 {
            0 => first - second,
            _ => second - first,
        });
    }
    let unarmed = Contents::of(&pooled.pool)?.unarmed()?;
    ensure!(unarmed == 0, "{name} was not armed");
    let figure = (1e6 * median(more), "µs");
    print(name, "arming, all probes gone", figure, Some("< 100 µs"));
    Ok(())
}

/// What a first hit takes: a run that meets each probe, beyond one that finds all of them gone.
fn first_hit(tactic: &str, pooled: &Pooled) -> Result<()> {
    let fresh = Contents::of(&pooled.pool)?;
    let mut more = Vec::new();
    for _ in 0..ROUNDS {
        fresh.put_back()?;
        let cold = seconds(&mut pooled.armed())?;
        more.push(cold - seconds(&mut pooled.armed())?);
    }
    let (mut hits, mut traps) = (0, 0);
    for record in Contents::of(&pooled.pool)?.all("record") {
        let view = RecordView::read(record)?;
        hits += view.marks.iter().filter(|mark| **mark != 0).count() as u64;
        traps += view.live.traps.get();
    }
    let expected = match tactic {
        "trap" => traps,
        _ => hits - traps,
    };
    ensure!(
        100 * expected > 99 * hits,
        "{traps} of {hits} hits are traps"
    );
    let figure = (1e9 * median(more) / hits as f64, "ns");
    let promise = (tactic == "detour").then_some("< 150 ns");
    let what = format!("a first hit, by a {tactic}");
    print("functions of one block", &what, figure, promise);
    Ok(())
}
