//! `bench truth`: models and coverage held against single steps, as the tests do, with a table of what
//! was looked at.

use super::page;
use super::rows::read;
use crate::{house, packages};
use anyhow::{Result, bail};
use serde::Deserialize;
use std::fmt::Write;

const PAGE: &str = "docs/BENCH.md";

/// Models and coverage held against single steps.
///
/// Runs the tests of tests/tests/truth.rs and rewrites the table in docs/BENCH.md. Fails where anything is
/// wrong. Takes some minutes.
#[derive(clap::Args)]
pub(crate) struct Truth {
    /// Look at every build of the large programs, too, which takes an hour: a step takes some 20 µs
    #[arg(long)]
    all: bool,
    /// Look only at programs whose test's name contains this
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Print the table, but leave the page alone
    #[arg(long)]
    no_write: bool,
}

/// What was looked at in one build.
#[derive(Debug, Deserialize)]
struct Judged {
    build: String,
    steps: u64,
    functions: u64,
    passages: u64,
    passed_over: u64,
}

impl Truth {
    pub(crate) fn run(self) -> Result<()> {
        packages::ensure(false)?;
        let name = self.only.as_deref().unwrap_or("_true");
        let test = ["test", "-q", "-p", "tomo-testkit", "--test", "truth", "--"];
        let mut command = house::cargo(&test)?;
        command.args([name, "--nocapture"]);
        if self.all {
            command.env("TOMO_TRUTH_ALL", "1");
        }
        let mut judged: Vec<Judged> = read(&house::output(&mut command)?)?;
        if judged.is_empty() {
            bail!("no program was looked at");
        }
        judged.sort_by(|a, b| a.build.cmp(&b.build));
        let table = table(&judged)?;
        println!("{table}");
        if !self.no_write && self.only.is_none() {
            page::rewrite(&house::root()?.join(PAGE), "bench truth", &table)?;
        }
        Ok(())
    }
}

/// A row for each build.
fn table(judged: &[Judged]) -> Result<String> {
    let mut table = String::from(
        "\n| build | steps | exact functions entered | different passages | of other functions |\n|---|--:|--:|--:|--:|\n",
    );
    for row in judged {
        writeln!(
            table,
            "| {} | {} | {} | {} | {} |",
            row.build, row.steps, row.functions, row.passages, row.passed_over
        )?;
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::{read, table};

    #[test]
    fn a_build_is_a_row() {
        let printed = r#"
running 1 test
{"build":"a","steps":9,"functions":2,"passages":7,"passed_over":1}
"#;
        let table = table(&read(printed).unwrap()).unwrap();
        assert!(table.contains("\n| a | 9 | 2 | 7 | 1 |\n"), "{table}");
    }
}
