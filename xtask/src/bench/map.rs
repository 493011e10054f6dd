//! `bench map`: how fast, how large and how complete the models of real programs are, as a table
//! of one row a program, the growth of both costs with size, and the reasons for what is not
//! exact. Seconds are medians over several runs without a cache, and likewise with one.

use super::measure::{self, Measured};
use super::{growth, programs};
use crate::house;
use crate::page;
use anyhow::{Context, Result};
use serde_json::Value;
use std::fmt::Write;
use std::path::Path;

const PAGE: &str = "docs/BENCH.md";

/// Above this many seconds a run, three runs are enough.
const LONG: f64 = 10.0;

/// How fast, how large and how complete the models of real programs are.
///
/// Runs `tomo map --format json` on programs of this machine and rewrites the table in
/// docs/BENCH.md. Programs that are not installed are named and left out.
#[derive(clap::Args)]
pub(crate) struct Map {
    /// How often to run each program; programs over ten seconds are run three times at most
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Measure only programs whose name contains this
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Print the table, but leave the page alone
    #[arg(long)]
    no_write: bool,
}

/// What is known of one program.
struct Row {
    name: String,
    file_bytes: f64,
    text_bytes: f64,
    text_bytes_exact: f64,
    functions: f64,
    functions_exact: f64,
    blocks: f64,
    reasons: Vec<(String, u64)>,
    seconds: f64,
    peak_bytes: f64,
    cached_seconds: f64,
}

impl Map {
    pub(crate) fn run(self) -> Result<()> {
        let tomo = house::build_tomo()?;
        let (mut rows, mut absent) = (Vec::new(), Vec::new());
        for program in programs::all(&tomo)? {
            if self
                .only
                .as_ref()
                .is_some_and(|only| !program.name.contains(only))
            {
                continue;
            }
            let Some(path) = program.path else {
                eprintln!("not installed, left out: {}", program.name);
                absent.push(program.name);
                continue;
            };
            eprintln!("measuring {} ({})", program.name, path.display());
            let row = self.measure(&tomo, program.name, &path);
            rows.push(row.with_context(|| format!("cannot measure {}", path.display()))?);
        }
        rows.sort_by(|a, b| a.text_bytes.total_cmp(&b.text_bytes));
        let report = report(&rows, &absent)?;
        println!("{report}");
        if self.no_write || self.only.is_some() {
            return Ok(());
        }
        page::rewrite(&house::root()?.join(PAGE), "bench map", &report)
    }

    fn measure(&self, tomo: &Path, name: String, program: &Path) -> Result<Row> {
        let cache = tempfile::tempdir()?;
        let fresh = self.repeat(|| measure::map(tomo, program, cache.path(), false))?;
        measure::map(tomo, program, cache.path(), true)?; // fills the cache
        let cached = self.repeat(|| measure::map(tomo, program, cache.path(), true))?;
        Row::new(name, &fresh, &cached)
    }

    fn repeat(&self, run: impl Fn() -> Result<Measured>) -> Result<Vec<Measured>> {
        let mut all = vec![run()?];
        let runs = if all[0].seconds > LONG {
            self.runs.min(3)
        } else {
            self.runs
        };
        for _ in 1..runs {
            all.push(run()?);
        }
        Ok(all)
    }
}

impl Row {
    fn new(name: String, fresh: &[Measured], cached: &[Measured]) -> Result<Self> {
        let printed = &fresh[0].printed;
        let number = |pointer: &str| number(printed, pointer);
        let reasons = printed["reasons"].as_object().into_iter().flatten();
        Ok(Self {
            name,
            file_bytes: number("/file_bytes")?,
            text_bytes: number("/text_bytes")?,
            text_bytes_exact: number("/text_bytes_exact")?,
            functions: number("/functions/total")?,
            functions_exact: number("/functions/exact")?,
            blocks: number("/blocks")?,
            reasons: reasons
                .map(|(why, n)| (why.clone(), n.as_u64().unwrap_or(0)))
                .collect(),
            seconds: median(fresh, |run| run.seconds)?,
            peak_bytes: median(fresh, |run| run.peak_bytes)?,
            cached_seconds: median(cached, |run| run.seconds)?,
        })
    }

    fn line(&self) -> String {
        let text_mb = self.text_bytes / 1e6;
        format!(
            "| {} | {:.2} | {:.2} | {:.0} | {:.2} | {:.2} | {:.3} | {:.3} | {:.0} | {:.0} | {:.1} |\n",
            self.name,
            self.file_bytes / 1e6,
            text_mb,
            self.functions,
            percent(self.functions_exact, self.functions),
            percent(self.text_bytes_exact, self.text_bytes),
            self.seconds,
            self.seconds / text_mb,
            self.peak_bytes / 1e6,
            self.peak_bytes / self.blocks,
            self.cached_seconds * 1e3,
        )
    }
}

const HEAD: &str = "\
| program | file MB | text MB | functions | % exact | % text exact | s | s per MB text | peak MB | bytes a block | cached ms |
|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|
";

fn report(rows: &[Row], absent: &[String]) -> Result<String> {
    let mut report = format!("\n{HEAD}");
    report.extend(rows.iter().map(Row::line));
    writeln!(report, "\n{}", growth(rows))?;
    if !absent.is_empty() {
        writeln!(
            report,
            "\nNot installed, so not measured: {}.",
            absent.join(", ")
        )?;
    }
    writeln!(
        report,
        "\nFunctions that are not exact, by reason:\n\n| program | reasons |\n|---|---|"
    )?;
    for row in rows {
        writeln!(report, "| {} | {} |", row.name, reasons(&row.reasons))?;
    }
    Ok(report)
}

/// How both costs grow with the size of the text.
fn growth(rows: &[Row]) -> String {
    let over = |cost: fn(&Row) -> f64| {
        let points: Vec<_> = rows.iter().map(|row| (row.text_bytes, cost(row))).collect();
        growth::exponent(&points).map_or_else(|| "unknown".into(), |k| format!("text^{k:.2}"))
    };
    let (seconds, peak) = (over(|row| row.seconds), over(|row| row.peak_bytes));
    format!(
        "Growth over these programs: seconds as {seconds}, peak memory as {peak} (1 is linear)."
    )
}

fn reasons(counts: &[(String, u64)]) -> String {
    let mut counts: Vec<_> = counts.iter().filter(|(_, count)| *count > 0).collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let listed: Vec<_> = counts
        .iter()
        .map(|(why, count)| format!("{why} {count}"))
        .collect();
    if listed.is_empty() {
        "none".into()
    } else {
        listed.join(", ")
    }
}

fn number(document: &Value, pointer: &str) -> Result<f64> {
    let found = document.pointer(pointer).and_then(Value::as_f64);
    found.with_context(|| format!("tomo map printed no number {pointer}"))
}

fn median(runs: &[Measured], of: fn(&Measured) -> f64) -> Result<f64> {
    growth::median(runs.iter().map(of).collect()).context("nothing was run")
}

fn percent(part: f64, whole: f64) -> f64 {
    if whole > 0.0 {
        100.0 * part / whole
    } else {
        100.0
    }
}

#[cfg(test)]
mod tests {
    use super::{Measured, Row, report};
    use serde_json::json;

    fn measured(seconds: f64, text_bytes: u64) -> Measured {
        let printed = json!({
            "file_bytes": 2 * text_bytes, "text_bytes": text_bytes, "text_bytes_exact": text_bytes / 2,
            "functions": { "total": 200, "exact": 150 }, "blocks": 1000,
            "reasons": { "few": 10, "many": 40, "never": 0 },
        });
        Measured {
            seconds,
            peak_bytes: 8e6,
            printed,
        }
    }

    fn row(name: &str, text_bytes: u64, seconds: f64) -> Row {
        let fresh = [9.0, seconds, 0.0].map(|seconds| measured(seconds, text_bytes));
        Row::new(name.into(), &fresh, &[measured(0.002, text_bytes)]).unwrap()
    }

    #[test]
    fn a_report_has_a_row_a_program_and_the_growth_of_both() {
        let rows = [row("small", 1_000_000, 0.5), row("large", 4_000_000, 2.0)];
        let report = report(&rows, &["gone".into()]).unwrap();
        let small =
            "| small | 2.00 | 1.00 | 200 | 75.00 | 50.00 | 0.500 | 0.500 | 8 | 8000 | 2.0 |\n";
        assert!(report.contains(small), "{report}");
        assert!(
            report.contains("seconds as text^1.00, peak memory as text^0.00"),
            "{report}"
        );
        assert!(report.contains("not measured: gone."), "{report}");
        assert!(report.contains("| large | many 40, few 10 |"), "{report}");
    }

    #[test]
    fn a_summary_without_its_numbers_is_refused() {
        let mut broken = measured(1.0, 1);
        broken.printed["functions"] = json!({});
        let error = Row::new("x".into(), &[broken], &[]).err().unwrap();
        assert!(error.to_string().contains("/functions/total"), "{error}");
    }
}
