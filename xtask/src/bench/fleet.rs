//! `bench fleet`: what it costs to be an instance of a fleet, held against what is promised: from the second
//! instance on, nothing that could be told from noise.

use super::ratios;
use super::rows::verdict;
use anyhow::Result;
use serde::Deserialize;
use std::fmt::Write;

/// What it costs to be an instance of a fleet under a bound of 1 %.
///
/// Runs lua, sqlite, python3, git and clang alone and as instances of a collector on this machine, in turn, and
/// rewrites the table in docs/BENCH.md. Takes a quarter of an hour on a machine that does nothing else. Fails
/// if the promise is not kept.
#[derive(clap::Args)]
pub(crate) struct Fleet {
    /// Measure only cases whose name contains this
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Print the table, but leave the page alone
    #[arg(long)]
    no_write: bool,
}

/// One way to run one case, as the bench prints it.
#[derive(Clone, Debug, Deserialize)]
struct Measured {
    case: String,
    way: String,
    probes: u64,
    cpu_ms: f64,
    ratio: f64,
    low: f64,
    high: f64,
    prepare_ms: f64,
}

impl Fleet {
    pub(crate) fn run(self) -> Result<()> {
        ratios::bench_as("fleet", self.only.as_deref(), !self.no_write, table)
    }
}

/// What is promised: the interval of the ratio reaches down to what the noise reaches up to.
fn is_kept(row: &Measured, noise: Option<&Measured>) -> bool {
    let up_to = noise.map_or(1.0, |noise| noise.high.max(1.0));
    row.low <= up_to
}

/// The table, and how many promises are broken.
fn table(rows: &[Measured]) -> Result<(String, usize)> {
    let mut table = String::from(
        "\n| case | way | probes | CPU ms | ratio | interval | promised |\n|---|---|--:|--:|--:|---|---|\n",
    );
    let mut broken = 0;
    for row in rows {
        let is_noise = |other: &&Measured| other.case == row.case && other.way.contains("noise");
        let noise = rows.iter().find(is_noise);
        let promised = match row.way.starts_with("second") {
            true if is_kept(row, noise) => "not measurable",
            true => {
                broken += 1;
                "**not kept**: not measurable"
            }
            false => "",
        };
        let interval = match row.way.as_str() {
            "alone" => format!("preparing once: {:.0} ms", row.prepare_ms),
            _ => format!("{:.3} to {:.3}", row.low, row.high),
        };
        writeln!(
            table,
            "| {} | {} | {} | {:.2} | {:.3} | {interval} | {promised} |",
            row.case, row.way, row.probes, row.cpu_ms, row.ratio
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
{"case":"lua","way":"alone","probes":9,"rounds":15,"cpu_ms":1000,"ratio":1,"low":1,"high":1,"prepare_ms":50}
{"case":"lua","way":"alone again: the noise","probes":9,"rounds":15,"cpu_ms":1001,"ratio":1.001,"low":0.995,"high":1.004,"prepare_ms":50}
{"case":"lua","way":"first instance, first run","probes":9,"rounds":15,"cpu_ms":1010,"ratio":1.01,"low":1.008,"high":1.02,"prepare_ms":50}
{"case":"lua","way":"second instance, first run","probes":9,"rounds":15,"cpu_ms":1003,"ratio":1.003,"low":1.002,"high":1.008,"prepare_ms":50}
{"case":"lua","way":"second instance, later runs","probes":9,"rounds":15,"cpu_ms":1010,"ratio":1.01,"low":1.006,"high":1.02,"prepare_ms":50}
"#;

    #[test]
    fn what_cannot_be_told_from_noise_keeps_the_promise() {
        let (table, broken) = table(&read(PRINTED).unwrap()).unwrap();
        assert_eq!(broken, 1, "{table}");
        for line in [
            "| lua | alone | 9 | 1000.00 | 1.000 | preparing once: 50 ms |  |\n",
            "| lua | second instance, first run | 9 | 1003.00 | 1.003 | 1.002 to 1.008 | not measurable |\n",
            "| lua | second instance, later runs | 9 | 1010.00 | 1.010 | 1.006 to 1.020 | **not kept**: not measurable |\n",
        ] {
            assert!(table.contains(line), "{line}{table}");
        }
    }
}
