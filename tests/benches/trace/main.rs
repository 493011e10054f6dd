//! What exact traces cost: whole processes under `tomo trace`, by the clock and by the processor, as ratios to the same
//! program alone; how much room they take, how fast they are merged, and what the busiest of six runs records.
//!
//! Prints one JSON object a line. Run by `cargo xtask bench trace`; a word as argument chooses the cases whose names
//! contain it. `TOMO` names the command, if it is not to be that of the tests.

#[path = "../cover/cases.rs"]
mod cases;
#[path = "../cover/inputs.rs"]
mod inputs;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result};
use cases::Case;
use serde::Deserialize;
use serde_json::json;
use tomo_export::traced::Traced;
use tomo_program::Cache;
use tomo_testkit::corpus::{Compiler, Level, Recipe, Source, Workload, build};
use tomo_testkit::processor::{median, seconds};
use tomo_testkit::tomo;

/// How often times are measured.
const ROUNDS: usize = 5;

fn main() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let only = std::env::args()
        .nth(1)
        .filter(|name| !name.starts_with('-'));
    let command = match std::env::var_os("TOMO") {
        Some(command) => PathBuf::from(command),
        None => tomo::path()?.to_owned(),
    };
    let all = cases::all(folder.path(), cases::is_profiled)?;
    for (number, case) in all.iter().enumerate() {
        if only.as_ref().is_some_and(|only| !case.name.contains(only)) {
            continue;
        }
        let bench = Bench {
            command: &command,
            folder: folder.path().join(format!("case-{number}")),
        };
        fs::create_dir(&bench.folder)?;
        bench.times(case)?;
        if let Some(source) = case.source {
            bench.sizes(source)?;
        }
    }
    Ok(())
}

struct Bench<'b> {
    command: &'b Path,
    folder: PathBuf,
}

fn row(case: &str, what: &str, value: f64, unit: &str, promise: Option<&str>) {
    let line =
        json!({ "case": case, "what": what, "value": value, "unit": unit, "promise": promise });
    println!("{line}");
}

#[derive(Deserialize)]
struct Counted {
    functions: Vec<Function>,
}

#[derive(Deserialize)]
struct Function {
    name: String,
    blocks: Vec<Block>,
}

#[derive(Deserialize)]
struct Block {
    count: Option<u64>,
}

impl Bench<'_> {
    fn tomo(&self, words: &[&str], program: &Path, work: &Workload) -> Command {
        let mut command = Command::new(self.command);
        command
            .args(words)
            .arg("--")
            .arg(program)
            .args(&work.args)
            .env("TOMO_CACHE_DIR", self.folder.join("cache"))
            .current_dir(&self.folder);
        command
    }

    /// Runs it with this input; gives seconds by the clock and by the processor.
    fn spent(&self, mut command: Command, input: Option<&Path>) -> Result<(f64, f64)> {
        let input = match input {
            Some(path) => Stdio::from(File::open(path)?),
            None => Stdio::null(),
        };
        command
            .stdin(input)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let started = Instant::now();
        let processor = seconds(&mut command)?;
        Ok((started.elapsed().as_secs_f64(), processor))
    }

    /// What was counted, by function, the most first.
    fn counted(
        &self,
        program: &Path,
        work: &Workload,
        input: Option<&Path>,
    ) -> Result<Vec<(u64, String)>> {
        let words = [
            "count",
            "-o",
            "counts",
            "--format",
            "json",
            "--to",
            "counts.json",
        ];
        self.spent(self.tomo(&words, program, work), input)?;
        let text = fs::read(self.folder.join("counts.json"))?;
        let counted: Counted = serde_json::from_slice(&text)?;
        let functions = counted.functions.into_iter();
        let mut counts: Vec<(u64, String)> = functions
            .map(|one| {
                (
                    one.blocks
                        .iter()
                        .filter_map(|block| block.count)
                        .sum::<u64>(),
                    one.name,
                )
            })
            .filter(|(count, _)| *count > 0)
            .collect();
        counts.sort_unstable_by(|one, other| other.cmp(one));
        Ok(counts)
    }

    fn newest(&self, folder: &str) -> Result<PathBuf> {
        let found = fs::read_dir(self.folder.join(folder))?.flatten();
        let newest = found.max_by_key(|entry| entry.file_name());
        Ok(newest.context("it left nothing")?.path())
    }

    /// What whole traces and those of five functions cost.
    fn times(&self, case: &Case) -> Result<()> {
        let work = Workload {
            args: case.arguments.clone(),
            ..Workload::default()
        };
        let input = case.input.as_deref();
        let counted = self.counted(&case.program, &work, input)?;
        let counts = self.newest("counts")?.display().to_string();
        let five = |from: usize| -> Vec<&str> {
            let names = counted[from.min(counted.len().saturating_sub(5))..].iter();
            let names = names.take(5).map(|(_, name)| name.as_str());
            names.flat_map(|name| ["--function", name]).collect()
        };
        let whole = ["trace", "-o", "times"];
        let weighted = [&whole[..], &["--weights", &counts]].concat();
        let busiest = [&weighted[..], &five(0)].concat();
        let middle = [&weighted[..], &five(counted.len() / 2)].concat();
        let ways: [(&str, &[&str], Option<&str>); 4] = [
            ("whole, weights estimated", &whole, None),
            ("whole, weights counted", &weighted, Some("at most 2.0")),
            ("five functions, the busiest", &busiest, None),
            (
                "five functions, of middle rank",
                &middle,
                Some("at most 1.1"),
            ),
        ];
        let mut samples: Vec<Vec<(f64, f64)>> = ways.iter().map(|_| Vec::new()).collect();
        for round in 0..=ROUNDS {
            for ((_, words, _), samples) in ways.iter().zip(&mut samples) {
                // Right before each, since machines that are shared are fast now and slow then.
                let mut alone = Command::new(&case.program);
                alone.args(&work.args);
                let alone = self.spent(alone, input)?;
                let spent = self.spent(self.tomo(words, &case.program, &work), input)?;
                fs::remove_dir_all(self.folder.join("times"))?;
                // The first round fills caches, and bakes what is missing.
                if round > 0 {
                    samples.push((spent.0 / alone.0, spent.1 / alone.1));
                }
            }
        }
        for ((what, _, promise), samples) in ways.iter().zip(&samples) {
            let clock = median(samples.iter().map(|sample| sample.0));
            let processor = median(samples.iter().map(|sample| sample.1));
            row(case.name, what, clock, "times, by the clock", *promise);
            row(case.name, what, processor, "times, by the processor", None);
        }
        Ok(())
    }

    fn trace(
        &self,
        words: &[&str],
        program: &Path,
        work: &Workload,
        input: Option<&Path>,
    ) -> Result<Traced> {
        let words = [&["trace", "-o", "traces"][..], words].concat();
        self.spent(self.tomo(&words, program, work), input)?;
        let models = Cache::at(self.folder.join("cache"));
        Ok(Traced::read(
            &self.newest("traces")?,
            None,
            Some(&models),
            &(),
        )?)
    }

    /// Room, speed of merging, and shares, of work that is short enough to be held in memory.
    fn sizes(&self, source: Source) -> Result<()> {
        let built = build(&Recipe::new(source, Compiler::Gcc, Level::O2))?;
        let work = built.workloads.first().context("nothing to do")?;
        let path = self.folder.join("stdin");
        fs::write(&path, work.stdin.as_deref().unwrap_or_default())?;
        let (program, input, name) = (&built.program, Some(path.as_path()), &built.name);
        self.counted(program, work, input)?;
        let counts = self.newest("counts")?.display().to_string();
        let one = self.trace(&[], program, work, input)?;
        let (steps, _) = walked(&one)?;
        let bytes: u64 = one.runs.iter().map(|run| run.size).sum();
        row(name, "one run", steps as f64, "blocks", None);
        row(
            name,
            "one run",
            bytes as f64 * 8.0 / steps as f64,
            "bits a block",
            Some("at most 2"),
        );
        let six = self.trace(&["--runs", "6"], program, work, input)?;
        let (steps, elapsed) = walked(&six)?;
        let speed = steps as f64 / elapsed;
        row(
            name,
            "six runs merged",
            speed,
            "blocks a second",
            Some("over ten million"),
        );
        for weights in [None, Some(counts.as_str())] {
            let with = weights.map_or(vec![], |weights| vec!["--weights", weights]);
            let whole = self.trace(&with, program, work, input)?;
            let whole = busiest(&whole)?;
            for strategy in ["fine", "function", "optimized"] {
                let own = ["--runs", "6", "--strategy", strategy];
                let six = self.trace(&[&own[..], &with[..]].concat(), program, work, input)?;
                let kind = if weights.is_some() {
                    "counted"
                } else {
                    "estimated"
                };
                let what = format!("busiest of six runs, {strategy}, weights {kind}");
                let share = 100.0 * busiest(&six)? as f64 / whole as f64;
                let is_best = strategy == "optimized" && weights.is_some();
                row(
                    name,
                    &what,
                    share,
                    "% of one run's words",
                    is_best.then_some("at most 22"),
                );
            }
        }
        Ok(())
    }
}

/// How many blocks the threads of a trace passed, and in how many seconds that was found out.
fn walked(traced: &Traced) -> Result<(u64, f64)> {
    let atlas = traced.atlas()?;
    let threads = traced.threads(&atlas);
    let started = Instant::now();
    let mut steps = 0;
    for thread in &threads {
        let mut sink = |_: u32, _: u32| {};
        steps += traced.walk(&atlas, &threads, thread, &mut sink).steps;
    }
    Ok((steps, started.elapsed().as_secs_f64()))
}

/// How many words the busiest run recorded.
fn busiest(traced: &Traced) -> Result<usize> {
    let threads = traced.threads(&traced.atlas()?);
    let words = |number: usize| -> usize {
        threads
            .iter()
            .map(|thread| thread.runs[number].words.len())
            .sum()
    };
    Ok((0..traced.runs.len()).map(words).max().unwrap_or(0))
}
