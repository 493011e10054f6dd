//! `held`: all that is said of programs held against single steps, as the tests do with theirs.

mod choice;
mod random;

use crate::house;
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// Hold what is said of a program against single steps.
///
/// Its model, coverage in six ways, counts, paths, chains and predicates of one run without input, on its first thread; and its
/// images for coverage against the independent checker. A step takes some 20 µs, and the program is stepped for each of these, so
/// choose a short run.
///
/// With `--random`, programs that are made up instead, by numbers from this one on. Those that do not hold stay in
/// target/random.
#[derive(clap::Args)]
pub(crate) struct Held {
    /// A dynamically linked program
    #[arg(required_unless_present = "random")]
    program: Option<PathBuf>,
    /// Its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
    /// Make programs up, the first by this number
    #[arg(long, value_name = "SEED", conflicts_with = "program")]
    random: Option<u64>,
    /// How many are made up
    #[arg(long, value_name = "N", default_value_t = 1, requires = "random")]
    count: u64,
}

/// The tests that hold something against single steps, and last those that have images checked.
const TESTS: [&str; 6] = [
    "truth",
    "counted",
    "followed",
    "chained",
    "predicated",
    "it",
];

impl Held {
    pub(crate) fn run(self) -> Result<()> {
        let tests = tests()?;
        if let Some(seed) = self.random {
            return random(&tests, seed, self.count);
        }
        let program = self.program.context("no program")?;
        hold(&tests, &program, &self.arguments)
    }
}

/// The executables of the tests.
fn tests() -> Result<Vec<PathBuf>> {
    let mut command = house::cargo(&["test", "--quiet"])?;
    command.args(["--package", "tomo-testkit", "--package", "tomo-weave"]);
    command.args(["--no-run", "--message-format", "json"]);
    for test in TESTS {
        command.args(["--test", test]);
    }
    let printed = house::output(&mut command)?;
    let mut tests = Vec::new();
    for line in printed.lines() {
        let message: Value = serde_json::from_str(line)?;
        let name = message["target"]["name"].as_str().unwrap_or_default();
        if let (true, Some(file)) = (TESTS.contains(&name), message["executable"].as_str()) {
            tests.push(file.into());
        }
    }
    ensure!(tests.len() == TESTS.len(), "cargo built {tests:?} alone");
    Ok(tests)
}

/// Holds a run of `program` in all ways, also where one of them fails.
fn hold(tests: &[PathBuf], program: &Path, arguments: &[String]) -> Result<()> {
    let program = std::path::absolute(program)?;
    let program = program.to_str().context("the path is not UTF-8")?;
    let lines = [&[program.to_owned()], arguments].concat();
    ensure!(
        lines.iter().all(|line| !line.contains('\n')),
        "no argument can have a line's end in it"
    );
    let mut failed = 0;
    for test in tests {
        let mut command = house::command(test)?;
        command.args(["for_the_named_program", "--ignored", "--nocapture"]);
        command.env("TOMO_HELD", lines.join("\n"));
        if let Err(error) = house::run(&mut command) {
            eprintln!("{error:#}");
            failed += 1;
        }
    }
    ensure!(failed == 0, "{program}: {failed} of {} fail", tests.len());
    Ok(())
}

/// Makes programs up and holds each.
fn random(tests: &[PathBuf], first: u64, count: u64) -> Result<()> {
    let folder = house::target()?.join("random");
    fs::create_dir_all(&folder)?;
    let (mut wrong, mut refused) = (Vec::new(), Vec::new());
    for seed in first..first.saturating_add(count) {
        let made = random::program(seed);
        let source = folder.join(format!("{seed}.{}", if made.is_cpp { "cpp" } else { "c" }));
        let program = folder.join(seed.to_string());
        fs::write(&source, &made.text)?;
        let mut compile = house::command(made.tool)?;
        compile
            .args(&made.flags)
            .arg("-o")
            .arg(&program)
            .arg(&source);
        if let Err(error) = house::run(&mut compile) {
            eprintln!("{error:#}");
            refused.push(seed);
            continue;
        }
        match hold(tests, &program, &[]) {
            Ok(()) => {
                fs::remove_file(&source)?;
                fs::remove_file(&program)?;
            }
            Err(error) => {
                eprintln!("{error:#}");
                wrong.push(seed);
            }
        }
    }
    if !refused.is_empty() {
        eprintln!("compilers cannot build {refused:?}");
    }
    ensure!(
        count == 0 || (refused.len() as u64) < count,
        "nothing was built"
    );
    if !wrong.is_empty() {
        bail!("{} does not hold of {wrong:?}", folder.display());
    }
    Ok(())
}
