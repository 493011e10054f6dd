//! `tomo demo`: a whole fleet on this machine, for a minute.
//!
//! The program is `tomo map`, a real one, at work on real input: programs and libraries of this machine. All that
//! is written lies in a temporary folder, the collector is a part of this process, and what it starts is
//! waited for; so nothing stays behind.

mod fleet;
mod server;
mod words;
mod work;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::Args;
use tomo_instance::{Measured, calibrate};
use tomo_launch::{Chosen, How, Images, Observed, Target, masters};
use tomo_protocol::{Bound, Calibration, Cost, Name};
use tomo_weave::Placement;
use tomo_wire::plan::Level;

use fleet::Fleet;
use words::Lines;
use work::Work;

use crate::program::new_module;

/// Show what this is about: a fleet of instances of a real program, each carrying a few probes, and the one
/// profile that they make together.
///
/// Starts a collector on this machine, measures what probes cost `tomo map`, shares them out over
/// instances so that each stays below the bound, runs all of them on programs of this machine, and holds the
/// merged profile against what full instrumentation sees. Takes a minute or two, and leaves nothing behind.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Instances of the program.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=200))]
    instances: u32,

    /// How often each of them runs.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: u32,

    /// What probes may cost one instance, as a share of its run time.
    #[arg(long, value_name = "SHARE", default_value = "1%", value_parser = crate::calibrate::share)]
    overhead: f64,
}

/// How often each number of probes is measured: as few as give an interval of 95 %.
const ROUNDS: u32 = 6;

/// All of it.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let lines = Lines::new();
    let folder = tempfile::tempdir().context("making a temporary folder")?;
    let cache = folder.path().join("cache");
    let tomo = std::env::current_exe()?;
    let target = Target::find_dynamic(tomo.as_os_str(), None)?;
    let module = Observed::of(&Chosen::executable(&target))?;
    let work = work::find(&tomo)?;
    lines.say(&format!(
        "The program: tomo map. Its work: {} files of this machine, such as {}.",
        work.len(),
        work[0].file.display()
    ))?;

    lines.step("Finding the places for probes, and proving them safe")?;
    let how = How {
        level: Level::Block,
        placement: Placement::All,
        stays: false,
    };
    let images = Images::in_cache(&cache)?;
    let master = masters([(&module, how)], &images, &())?;
    let master = master.first().context("no module")?;
    lines.say(&format!("{} blocks can be observed.", master.probes()))?;

    let middle = &work[work.len() / 2];
    let calibration = measure(&lines, &target, &module, how, (&cache, middle))?;
    let probes = bound(&lines, &calibration, arguments.overhead)?;

    let server = server::start(&folder.path().join("collector"))?;
    lines.say(&format!("A collector listens at {}.", server.url()))?;
    let observed = new_module(&module, Name(master.plan()), how, Vec::new());
    let fleet = Fleet {
        server: &server,
        module: observed,
        folder: folder.path().to_path_buf(),
        cache,
        tomo,
        work: &work,
        lines: &lines,
    };
    fleet.register(&module, master)?;
    let campaign = fleet.campaign("the fleet", Bound::Probes(probes), arguments.instances)?;
    let full = fleet.campaign("full instrumentation", Bound::None, 1)?;

    lines.step(&format!(
        "Running {} instances, {} times each",
        arguments.instances, arguments.runs
    ))?;
    let begun = std::time::Instant::now();
    fleet.run(&campaign, arguments.instances, arguments.runs)?;
    let took = begun.elapsed();
    lines.step("Running the same with all probes, to know what there was to see")?;
    fleet.run(&full, 1, work.len() as u32)?;

    let seen = fleet.profile(&campaign)?;
    let truth = fleet.profile(&full)?;
    let status = fleet.status(&campaign)?;
    words::result(&lines, &seen, &truth, &status, took)?;
    let alone = fleet.alone(&campaign, arguments.instances, arguments.runs);
    words::instances(&lines, &status, &alone, &work)?;
    server.end();
    Ok(())
}

/// Measures what probes cost the program at one piece of its work.
fn measure(
    lines: &Lines,
    target: &Target,
    module: &Observed,
    how: How,
    (cache, work): (&Path, &Work),
) -> Result<Calibration> {
    lines.step("Measuring what probes cost (PDT §5.2)")?;
    let measured = Measured {
        target,
        name: target.executable.as_os_str(),
        arguments: &work.arguments(),
        modules: std::slice::from_ref(module),
        how,
        rounds: ROUNDS,
    };
    Ok(calibrate(&measured, cache, &|done, all| {
        lines.progress(done, all);
    })?)
}

/// How many probes an instance may carry: by the upper end of the interval if the machine is quiet enough, else as many
/// as cannot be told from the bound. Never more than a quarter of them, so that there is something
/// to put together.
fn bound(lines: &Lines, calibration: &Calibration, share: f64) -> Result<u64> {
    let percent = 100.0 * share;
    for cost in &calibration.points {
        let Cost {
            probes,
            share,
            low,
            high,
        } = cost;
        let [share, low, high] = [share, low, high].map(|share| 100.0 * share);
        lines.say(&format!(
            "{probes:>8} probes cost {share:>6.2} %  ({low:.2} to {high:.2} %)"
        ))?;
    }
    let plans: Name = calibration.plans;
    let all = calibration.points.last().map_or(1, |cost| cost.probes);
    let quarter = all / 4;
    let (probes, how) = match calibration.probes(plans, share) {
        Ok((probes, _)) => (probes, "keep it, with the confidence of the measurement"),
        Err(_) => {
            let points = calibration.points.iter().rev();
            let indistinct = points.map(|cost| (cost.probes, cost.low));
            let most = indistinct.filter(|&(probes, low)| probes <= quarter && low <= share);
            let most = most.map(|(probes, _)| probes).next();
            (
                most.unwrap_or(1),
                "cannot be told from it on a machine as noisy as this",
            )
        }
    };
    lines.say(&format!("The bound is {percent} %: {probes} probes {how}."))?;
    if probes > quarter {
        lines.say(&format!(
            "Each instance gets {quarter}, a quarter, so that there is something to put together."
        ))?;
    }
    Ok(u64::from(probes.min(quarter).max(1)))
}

/// A folder of one instance.
fn state(folder: &Path, campaign: &str, number: u32) -> PathBuf {
    folder.join(format!("{campaign}-{number}"))
}
