//! `bench trace`: what exact traces cost, how much room they take and how fast they are merged, held against what is
//! promised.

use super::promise::Promise;
use super::ratios;
use super::rows::verdict;
use anyhow::Result;
use serde::Deserialize;
use std::fmt::Write;

/// What exact traces cost, held against their promises.
///
/// Runs lua, sqlite, bzip2 and, if it is installed, ripgrep alone and under `tomo trace`, in turn, and rewrites the
/// table in docs/BENCH.md. Takes some minutes on a machine that does nothing else. Fails if a promise is not kept.
#[derive(clap::Args)]
pub(crate) struct Trace {
    /// Measure only cases whose name contains this
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Print the table, but leave the page alone
    #[arg(long)]
    no_write: bool,
}

/// One figure, as the bench prints it.
#[derive(Clone, Debug, Deserialize)]
struct Measured {
    case: String,
    what: String,
    value: f64,
    unit: String,
    promise: Option<String>,
}

impl Trace {
    pub(crate) fn run(self) -> Result<()> {
        ratios::bench_as("trace", self.only.as_deref(), !self.no_write, table)
    }
}

/// The table, and how many promises are broken.
fn table(rows: &[Measured]) -> Result<(String, usize)> {
    let mut table = String::from("\n| case | what | measured | promised |\n|---|---|--:|---|\n");
    let mut broken = 0;
    for row in rows {
        let said = row.promise.as_deref().unwrap_or_default();
        let promised = match Promise::read(said, &row.unit)? {
            Some(promise) if !promise.is_kept(row.value) => {
                broken += 1;
                format!("**not kept**: {said}")
            }
            _ => said.to_owned(),
        };
        let value = match row.value {
            many if many >= 1000.0 => format!("{many:.0}"),
            few => format!("{few:.2}"),
        };
        writeln!(
            table,
            "| {} | {} | {value} {} | {promised} |",
            row.case, row.what, row.unit
        )?;
    }
    writeln!(table, "\n{}", verdict(broken))?;
    Ok((table, broken))
}

#[cfg(test)]
mod tests {
    use super::super::rows::read;
    use super::table;

    const PRINTED: &str = r#"
{"case":"lua","what":"whole","value":2.5,"unit":"times","promise":"at most 2.0"}
{"case":"lua","what":"merged","value":20000000.0,"unit":"blocks a second","promise":"over ten million"}
{"case":"lua","what":"blocks","value":5.0,"unit":"blocks","promise":null}
"#;

    #[test]
    fn promises_are_held_against_figures() {
        let (table, broken) = table(&read(PRINTED).unwrap()).unwrap();
        assert_eq!(broken, 1, "{table}");
        assert!(table.contains("| lua | whole | 2.50 times | **not kept**: at most 2.0 |"));
        assert!(table.contains("| lua | merged | 20000000 blocks a second | over ten million |"));
        assert!(table.contains("| lua | blocks | 5.00 blocks |  |"));
    }
}
