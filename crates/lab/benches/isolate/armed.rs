//! Programs in which the plans of a search are armed: what it takes to have a new plan, and what whole processes take
//! with it.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use tomo_export::predicates::Id;
use tomo_isolate::{Case, Cases, Options, Score, Session, StepMade, Success, Towards, Watch, Way};
use tomo_launch::{Agent, Arming, Carried, Chosen, Images, Observed, Target, equip, new_folder};
use tomo_profile::scores::Heuristic;
use tomo_testkit::corpus::{Compiler, Level, Recipe, Source, build};
use tomo_weave::Asked;
use tomo_wire::predicates::Kind;

use crate::{Failure, median, print};

const SCRIPT: &str = "local t, s = {}, 0
for i = 1, 20000000 do local k = i % 1000; t[k] = (t[k] or 0) + i % 7; if k == 3 then s = s + #tostring(i) end end
print(s)
";
const QUERIES: &str = "CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, c REAL);
WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 500000) INSERT INTO t SELECT x, 'row ' || x, x * 0.5 FROM n;
CREATE INDEX i ON t(b);
SELECT count(*), sum(c), max(length(b)) FROM t WHERE b LIKE '%7%';
UPDATE t SET c = c + 1 WHERE a % 3 = 0;
SELECT count(DISTINCT b) FROM t;
";

/// Plans of a search that are measured, and steps from which they are taken.
const PLANS: usize = 6;
const STEPS: usize = 60;
/// Runs with and without a plan, by turns.
const ROUNDS: usize = 5;

/// The predicates of a plan.
type Plan = HashSet<(Kind, u64, u8)>;

struct Silent;

impl Watch for Silent {
    fn note(&mut self, _: &str) {}
    fn step(&mut self, _: usize, _: &StepMade, _: usize, _: usize) {}
}

/// A program at work.
struct Work {
    name: &'static str,
    program: PathBuf,
    arguments: Vec<String>,
    input: Option<PathBuf>,
}

pub(crate) fn programs() -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    let path = folder.path();
    let built = |source| -> Result<PathBuf, Failure> {
        Ok(build(&Recipe::new(source, Compiler::Gcc, Level::O2))?.program)
    };
    let file = |name: &str, text: &str| -> Result<PathBuf, Failure> {
        fs::write(path.join(name), text)?;
        Ok(path.join(name))
    };
    let text: String = (0..150_000u32)
        .map(|line| {
            format!(
                "{line} served /part/{}/of/{}\n",
                line * 7919 % 251,
                line % 7
            )
        })
        .collect();
    let work = |name, source, argument: String, input| -> Result<Work, Failure> {
        Ok(Work {
            name,
            program: built(source)?,
            arguments: vec![argument],
            input,
        })
    };
    let script = file("long.lua", SCRIPT)?.display().to_string();
    let queries = file("long.sql", QUERIES)?.display().to_string();
    let log = file("log", &text)?;
    let mut all = Vec::new();
    for work in [
        work("lua", Source::Lua, script, None)?,
        work("sqlite", Source::Sqlite, queries, None)?,
        work("bzip2", Source::Bzip2, "-c".into(), Some(log))?,
    ] {
        all.push(program(&work, &path.join(work.name))?);
    }
    let mean = all.iter().sum::<f64>() / all.len() as f64;
    print(
        "whole processes while a search runs: all, mean",
        mean,
        "",
        "< 1.01",
    );
    Ok(())
}

/// Measures one; gives what whole processes take with its plans, over what they take without.
fn program(work: &Work, folder: &Path) -> Result<f64, Failure> {
    fs::create_dir(folder)?;
    let cache = folder.join("cache");
    let agent = Agent::in_cache(&cache)?;
    let plans = plans(work, folder, &cache, &agent)?;
    let target = Target::find_dynamic(work.program.as_os_str(), None)?;
    let module = Observed::of(&Chosen::executable(&target))?;
    let markings = Images::in_cache(&cache)?.apart(folder)?.markings(&module);
    let mut made = Vec::new();
    let mut ratios = Vec::new();
    for (number, plan) in plans.into_iter().enumerate() {
        let run = folder.join(format!("run-{number}"));
        new_folder(&run)?;
        let begin = Instant::now();
        let (carried, _) = markings.of(Asked::Some(plan))?;
        let roster = equip(&run, [0; 16], std::slice::from_ref(&carried))?;
        made.push(1e3 * begin.elapsed().as_secs_f64());
        ratios.extend(ratio(work, &agent, &roster, &carried, &run)?);
    }
    let name = work.name;
    print(
        &format!("arming a new plan: {name}"),
        median(made),
        "ms",
        "< 10 ms",
    );
    let ratio = median(ratios);
    print(
        &format!("whole processes while a search runs: {name}"),
        ratio,
        "",
        "",
    );
    Ok(ratio)
}

/// Seconds with the plan over those without, round by round.
fn ratio(
    work: &Work,
    agent: &Agent,
    roster: &Path,
    carried: &Carried,
    run: &Path,
) -> Result<Vec<f64>, Failure> {
    let arming = Arming {
        agent,
        roster,
        outside: None,
    };
    let variables = arming.variables(|name| std::env::var_os(name));
    let mut ratios = Vec::new();
    for _ in 0..ROUNDS {
        let plain = seconds(work, &[])?;
        let armed = seconds(work, &variables)?;
        ratios.push(armed / plain);
    }
    let live = tomo_launch::read_live(&carried.record(run))?;
    match live.armed.get() > 0 {
        true => Ok(ratios),
        false => Err(format!("{} was not armed", work.name).into()),
    }
}

/// Processor seconds of a run.
fn seconds(work: &Work, variables: &[(&str, std::ffi::OsString)]) -> Result<f64, Failure> {
    let spent = || -> Result<f64, Failure> {
        let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
        Ok((usage.user_time() + usage.system_time()).num_microseconds() as f64 / 1e6)
    };
    let before = spent()?;
    let input = match &work.input {
        Some(path) => Stdio::from(fs::File::open(path)?),
        None => Stdio::null(),
    };
    let status = Command::new(&work.program)
        .args(&work.arguments)
        .envs(variables.iter().map(|(name, value)| (name, value)))
        .stdin(input)
        .stdout(Stdio::null())
        .status()?;
    match status.success() {
        true => Ok(spent()? - before),
        false => Err(format!("{} failed", work.name).into()),
    }
}

/// Plans of a search by ttest: some of its first steps.
fn plans(work: &Work, folder: &Path, cache: &Path, agent: &Agent) -> Result<Vec<Plan>, Failure> {
    let case = |success| Case {
        line: 1,
        arguments: work.arguments.iter().map(Into::into).collect(),
        input: work.input.clone(),
        success,
        timeout: 60,
    };
    let options = Options {
        command: vec![work.program.clone().into()],
        // The same twice, said to be right and to be wrong.
        cases: Cases {
            cases: vec![case(Success::Exit(0)), case(Success::Exit(1))],
            name: 0,
        },
        folder: folder.join("search"),
        cache: cache.into(),
        runs: 2,
        survey: false,
        jobs: 1,
        towards: Towards::Forward,
        score: Score::By(Heuristic::TTest),
        seed: 1,
        steps: 0,
        most: u32::MAX,
        start: Vec::new(),
        focus: Vec::new(),
        exclude: Vec::new(),
        paths: false,
    };
    let session = Session::open(options, agent.clone(), &mut Silent)?;
    let complete = session.complete()?;
    let stage = session.stage(&complete)?;
    let rehearsal = stage.rehearse(&Way {
        towards: Towards::Forward,
        score: Score::By(Heuristic::TTest),
        survey: false,
        runs: 2,
        seed: 1,
        to_the_end: true,
    });
    let steps = rehearsal.steps.len().min(STEPS);
    let mut plans = Vec::new();
    for number in 0..PLANS {
        let step = (number * steps / PLANS) as u32;
        let mut plan = Plan::new();
        for (row, watched) in rehearsal.watched.iter().enumerate() {
            if *watched == Some(step)
                && let Some((Id { kind, site, .. }, _)) = stage.known(row)
            {
                plan.extend(
                    Id {
                        kind,
                        site,
                        case: None,
                    }
                    .predicates(),
                );
            }
        }
        plans.push(plan);
    }
    Ok(plans)
}
