//! Benches that measure whole processes in several ways, as ratios of CPU time, and hold some of these against what is
//! promised. A promise that is not kept is marked in the table and is an error.

use super::promise::Promise;
use super::rows::{read, verdict};
use crate::house;
use crate::page;
use anyhow::{Result, bail};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::fmt::Write;

const PAGE: &str = "docs/BENCH.md";

/// One way to run one case, as the bench prints it.
#[derive(Clone, Debug, Deserialize)]
struct Measured {
    case: String,
    way: String,
    base: String,
    cpu_ms: f64,
    ratio: f64,
    more_ms: f64,
    value: f64,
    unit: String,
    promise: Option<String>,
    /// Modules that were not armed, as they should have been.
    unarmed: usize,
}

/// Runs the bench of this name over the cases whose names contain `only`, and rewrites its part of the page, if it `writes`: rows of
/// cases that were not measured stay.
pub(super) fn bench(name: &str, only: Option<&str>, writes: bool) -> Result<()> {
    bench_as(name, only, writes, table)
}

/// The same for a bench with rows and a table of its own; `table` gives it and how many promises are broken.
pub(super) fn bench_as<Row: DeserializeOwned>(
    name: &str,
    only: Option<&str>,
    writes: bool,
    table: impl Fn(&[Row]) -> Result<(String, usize)>,
) -> Result<()> {
    let tomo = house::build_tomo()?;
    let bench = ["bench", "-q", "-p", "tomo-testkit", "--bench", name, "--"];
    let mut command = house::cargo(&bench)?;
    command.env("TOMO", tomo).args(only);
    let rows: Vec<Row> = read(&house::output(&mut command)?)?;
    if rows.is_empty() {
        bail!("there is no such case");
    }
    let (table, broken) = table(&rows)?;
    println!("{table}");
    if writes {
        let made = |before: &str| match only {
            Some(_) => merged(before, &table),
            None => table.clone(),
        };
        page::remake(&house::root()?.join(PAGE), &format!("bench {name}"), made)?;
    }
    if broken > 0 {
        bail!(verdict(broken));
    }
    Ok(())
}

/// The table `before`, with the rows of those cases anew that `now` has, each where its case stood, or below where none did.
fn merged(before: &str, now: &str) -> String {
    let case = |line: &str| {
        let cells = line.strip_prefix("| ")?;
        Some(cells.split_once(" | ")?.0.to_owned())
    };
    let anew: Vec<(Option<String>, &str)> = now.lines().map(|line| (case(line), line)).collect();
    let mut lines: Vec<&str> = Vec::new();
    let mut last = None;
    let is_row = |line: &&str| line.starts_with('|');
    for line in before.lines().filter(is_row) {
        let name = case(line).filter(|name| name != "case");
        let rows = anew.iter().filter(|(of, _)| of.is_some() && *of == name);
        let rows: Vec<&str> = rows.map(|(_, row)| *row).collect();
        match rows.is_empty() {
            true => lines.push(line),
            false if last != name => lines.extend(rows),
            false => {}
        }
        last = name;
    }
    let stood: Vec<Option<String>> = before.lines().map(case).collect();
    let added = anew
        .iter()
        .filter(|(of, row)| is_row(row) && !stood.contains(of));
    lines.extend(added.map(|(_, row)| *row));
    let kept = lines.join("\n");
    let broken = kept.matches("**not kept**").count() + kept.matches("not armed**").count();
    format!("\n{}\n\n{}\n", kept.trim(), verdict(broken))
}

/// The table, and how many promises are broken.
fn table(rows: &[Measured]) -> Result<(String, usize)> {
    let mut table = String::from(
        "\n| case | way | CPU ms | ratio | ms more | promised |\n|---|---|--:|--:|--:|---|\n",
    );
    let mut broken = 0;
    for row in rows {
        let said = row.promise.as_deref().unwrap_or_default();
        let promise = Promise::read(said, &row.unit)?;
        let promised = match promise {
            Some(_) if row.unarmed > 0 => {
                broken += 1;
                format!("**{} modules were not armed**: {said}", row.unarmed)
            }
            Some(promise) if !promise.is_kept(row.value) => {
                broken += 1;
                format!("**not kept**: {said}")
            }
            _ => said.to_owned(),
        };
        let against = match row.base.as_str() {
            base if base == row.way => "–".into(),
            "alone" => format!("{:.3}", row.ratio),
            base => format!("{:.3} of {base}", row.ratio),
        };
        writeln!(
            table,
            "| {} | {} | {:.2} | {against} | {:.2} | {promised} |",
            row.case, row.way, row.cpu_ms, row.more_ms
        )?;
    }
    writeln!(table, "\n{}", verdict(broken))?;
    Ok((table, broken))
}

#[cfg(test)]
mod tests {
    use super::{Measured, merged, read, table};

    #[test]
    fn rows_of_other_cases_stay_and_new_ones_follow() {
        let row = |case: &str, way: &str, value: &str| format!("| {case} | {way} | {value} |\n");
        let head = "| case | way | promised |\n|---|---|---|\n";
        let broken = "**not kept**: at most 1";
        let before = [
            row("a", "alone", "1"),
            row("a", "cold", broken),
            row("b", "alone", "1"),
            row("b", "cold", broken),
        ];
        let before = format!("\n{head}{}\n2 promises are not kept.\n", before.concat());
        let now = [row("a", "alone", "3"), row("a", "cold", "2")].concat();
        let after = merged(&before, &format!("\n{head}{now}\nAll promises are kept.\n"));
        let rest = [row("b", "alone", "1"), row("b", "cold", broken)].concat();
        assert_eq!(
            after,
            format!("\n{head}{now}{rest}\n1 promise is not kept.\n")
        );
        let new = [row("c", "alone", "4"), row("c", "cold", broken)].concat();
        let after = merged(&after, &format!("\n{head}{new}\n1 promise is not kept.\n"));
        assert_eq!(
            after,
            format!("\n{head}{now}{rest}{new}\n2 promises are not kept.\n")
        );
    }

    const PRINTED: &str = r#"
a line for people
{"bench":"cover","case":"lua","way":"alone","base":"alone","cpu_ms":1.0,"ratio":1.0,"more_ms":0.0,"rounds":3,"value":1.0,"unit":"","promise":null,"unarmed":0}
{"bench":"cover","case":"lua","way":"cold","base":"alone","cpu_ms":1.4,"ratio":1.4,"more_ms":0.4,"rounds":3,"value":1.4,"unit":"","promise":"at most 1.35","unarmed":0}
{"bench":"cover","case":"lua","way":"tomo cover","base":"alone","cpu_ms":1.9,"ratio":1.9,"more_ms":0.9,"rounds":3,"value":0.9,"unit":"ms more","promise":"at most 1 ms more","unarmed":0}
{"bench":"cover","case":"large","way":"warm","base":"alone","cpu_ms":9.0,"ratio":1.0,"more_ms":0.0,"rounds":3,"value":1.0,"unit":"","promise":"at most 1.03","unarmed":2}
{"bench":"cover","case":"lua","way":"clang's","base":"clang alone","cpu_ms":1.1,"ratio":1.1,"more_ms":0.1,"rounds":3,"value":1.1,"unit":"","promise":null,"unarmed":0}
"#;

    #[test]
    fn promises_are_held_against_ratios_and_milliseconds() {
        let (table, broken) = table(&read(PRINTED).unwrap()).unwrap();
        assert_eq!(broken, 2, "{table}");
        for line in [
            "| lua | alone | 1.00 | – | 0.00 |  |\n",
            "| lua | cold | 1.40 | 1.400 | 0.40 | **not kept**: at most 1.35 |\n",
            "| lua | tomo cover | 1.90 | 1.900 | 0.90 | at most 1 ms more |\n",
            "| lua | clang's | 1.10 | 1.100 of clang alone | 0.10 |  |\n",
            "| large | warm | 9.00 | 1.000 | 0.00 | **2 modules were not armed**: at most 1.03 |\n",
            "\n2 promises are not kept.\n",
        ] {
            assert!(table.contains(line), "{line}{table}");
        }
    }

    #[test]
    fn what_is_no_measurement_is_refused() {
        assert!(read::<Measured>("{\"case\":1}").is_err());
    }
}
