//! `bench truth`: models, coverage and profiles held against single steps, as the tests do, with tables of what
//! was looked at.

use super::rows::read;
use crate::house;
use crate::page;
use anyhow::{Result, bail};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;
use std::fmt::Write;

const PAGE: &str = "docs/BENCH.md";

/// Models, coverage and profiles held against single steps.
///
/// Runs the tests of tests/tests/truth.rs, and those of counts, paths, chains and predicates with the large programs
/// that they leave out otherwise, and rewrites the tables in docs/BENCH.md. Fails where anything is wrong. Takes half
/// an hour.
#[derive(clap::Args)]
pub(crate) struct Truth {
    /// Look at every build of the large programs, too, and have their images checked, which takes an hour: a step takes
    /// some 20 µs
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

/// How many things of a kind were right in one build.
#[derive(Debug, Deserialize)]
struct Held {
    kind: String,
    build: String,
    agreed: u64,
}

/// What profiles are held against single steps, and by which tests.
const KINDS: [(&str, &str); 4] = [
    ("counts", "counted"),
    ("paths", "followed"),
    ("chains", "chained"),
    ("predicates", "predicated"),
];

impl Truth {
    pub(crate) fn run(self) -> Result<()> {
        if self.all {
            let mut command = house::cargo(&["test", "-q", "-p", "tomo-weave", "--test", "it"])?;
            house::run(command.args(["--", "--ignored", "--skip", "for_the_named_program"]))?;
        }
        let mut judged: Vec<Judged> = self.printed(&["truth"], "_true")?;
        if judged.is_empty() {
            bail!("no program was looked at");
        }
        judged.sort_by(|a, b| a.build.cmp(&b.build));
        let models = table(&judged)?;
        println!("{models}");
        let tests = KINDS.map(|(_, test)| test);
        let profiles = held(&self.printed(&tests, "_of_")?)?;
        println!("{profiles}");
        if !self.no_write && self.only.is_none() {
            let path = house::root()?.join(PAGE);
            page::rewrite(&path, "bench truth", &models)?;
            page::rewrite(&path, "bench truth profiles", &profiles)?;
        }
        Ok(())
    }

    /// What these tests print, those of large programs with them, whose names contain `name` if nothing else is asked for.
    fn printed<Row: DeserializeOwned>(&self, tests: &[&str], name: &str) -> Result<Vec<Row>> {
        let mut command = house::cargo(&["test", "-q", "-p", "tomo-testkit"])?;
        for test in tests {
            command.args(["--test", test]);
        }
        let name = self.only.as_deref().unwrap_or(name);
        command.args(["--", name, "--nocapture", "--include-ignored"]);
        if self.all {
            command.env("TOMO_TRUTH_ALL", "1");
        }
        read(&house::output(&mut command)?)
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

/// A row for each build, with how many things of each kind were right.
fn held(all: &[Held]) -> Result<String> {
    let builds: BTreeSet<&str> = all.iter().map(|held| held.build.as_str()).collect();
    let mut table =
        String::from("\n| build | counts | paths | chains | predicates |\n|---|--:|--:|--:|--:|\n");
    for build in builds {
        write!(table, "| {build} |")?;
        for (kind, _) in KINDS {
            let of_kind = |held: &&Held| held.build == build && held.kind == kind;
            match all.iter().find(of_kind) {
                Some(held) => write!(table, " {} |", held.agreed)?,
                None => write!(table, " |")?,
            }
        }
        writeln!(table)?;
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::{held, read, table};

    #[test]
    fn what_was_right_of_a_build_is_a_row() {
        let printed = r#"{"kind":"paths","build":"a","agreed":3}
{"kind":"counts","build":"b","agreed":4}
"#;
        let table = held(&read(printed).unwrap()).unwrap();
        assert!(
            table.contains("\n| a | | 3 | | |\n| b | 4 | | | |\n"),
            "{table}"
        );
    }

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
