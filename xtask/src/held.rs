//! `held`: all that is said of a program held against single steps, as the tests do with theirs.

use crate::house;
use anyhow::{Context, Result, ensure};
use std::path::PathBuf;

/// Hold what is said of a program against single steps.
///
/// Its model, coverage in six ways, counts, paths, chains and predicates of one run without input, on its first thread. A step
/// takes some 20 µs, and the program is stepped for each of these, so choose a short run.
#[derive(clap::Args)]
pub(crate) struct Held {
    /// A dynamically linked program
    program: PathBuf,
    /// Its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// The tests that hold something against single steps.
const TESTS: [&str; 5] = ["truth", "counted", "followed", "chained", "predicated"];

impl Held {
    pub(crate) fn run(self) -> Result<()> {
        let program = std::path::absolute(&self.program)?;
        let program = program.to_str().context("the path is not UTF-8")?;
        let lines = [&[program.to_owned()], self.arguments.as_slice()].concat();
        ensure!(
            lines.iter().all(|line| !line.contains('\n')),
            "no argument can have a line's end in it"
        );
        let mut command = house::cargo(&["test", "--quiet", "--package", "tomo-testkit"])?;
        command.arg("--no-fail-fast");
        for test in TESTS {
            command.args(["--test", test]);
        }
        command.args(["--", "for_the_named_program", "--ignored", "--nocapture"]);
        command.env("TOMO_HELD", lines.join("\n"));
        house::run(&mut command)
    }
}
