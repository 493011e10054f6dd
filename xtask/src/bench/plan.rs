//! `bench plan`: how long the planning library takes, held against what is promised of it. Runs all
//! benches of the pure crates; each prints one JSON object a line, with a promise where there is one.
//! A promise that is not kept is marked in the table and is an error; a remark stands in parentheses.

use super::promise::Promise;
use super::rows::{read, verdict};
use crate::house;
use crate::page;
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::fmt::Write;
use std::path::Path;

const PAGE: &str = "docs/BENCH.md";
const CRATES: [(&str, &str); 2] = [
    ("tomo-plan", "crates/plan"),
    ("tomo-profile", "crates/profile"),
];

/// What has to be measured, with a promise: the bench and what its line begins with. A bench that
/// falls silent keeps no promise.
const PROMISED: [(&str, &str); 16] = [
    ("distribution", "hill climb Balanced: 5,000 events"),
    ("distribution", "hill climb Packed: 5,000 events"),
    ("distribution", "hill climb Balanced-Packed: 5,000 events"),
    ("distribution", "hill climb Balanced: 100,000 events"),
    ("distribution", "hill climb Packed: 100,000 events"),
    ("distribution", "hill climb Balanced-Packed: 100,000 events"),
    ("distribution", "peak memory of all: 100,000 events"),
    ("library", "numbering and witness placement"),
    ("paths", "paths decoded a second, function by function"),
    ("paths", "paths decoded a second, in turn"),
    ("reconstruction", "reconstruction, "),
    ("isolation", "the step that takes in 9 sites of 10"),
    ("isolation", "a step from the start"),
    (
        "isolation",
        "the step that takes in 9 sites of 10, backward",
    ),
    ("isolation", "a step behind that, backward"),
    ("isolation", "a step from a crash, backward"),
];

/// How long the planning library takes, held against its promises.
///
/// Runs the benches of tomo-plan and tomo-profile, one after the other, and rewrites the table in
/// docs/BENCH.md. Fails if a promise is not kept.
#[derive(clap::Args)]
pub(crate) struct Plan {
    /// Run only the bench of this name
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Print the table, but leave the page alone
    #[arg(long)]
    no_write: bool,
}

/// One measurement, as a bench prints it.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Measured {
    bench: String,
    what: String,
    value: f64,
    unit: String,
    promise: Option<String>,
}

impl Measured {
    /// Whether something is promised of it.
    pub(super) fn is_promised(&self) -> bool {
        self.promise.as_ref().is_some_and(|said| !said.is_empty())
    }
}

impl Plan {
    pub(crate) fn run(self) -> Result<()> {
        let mut rows = Vec::new();
        for (package, folder) in CRATES {
            for name in benches(&house::root()?.join(folder).join("benches"))? {
                if self.only.as_ref().is_none_or(|only| *only == name) {
                    rows.append(&mut measure(package, &name)?);
                }
            }
        }
        if rows.is_empty() {
            bail!("there is no such bench");
        }
        let (table, broken) = table(&rows)?;
        println!("{table}");
        if self.only.is_none()
            && let Some((bench, what)) = silent(&rows).first()
        {
            bail!("the bench {bench} no longer measures what is promised: {what}");
        }
        if !self.no_write && self.only.is_none() {
            page::rewrite(&house::root()?.join(PAGE), "bench plan", &table)?;
        }
        if broken > 0 {
            bail!(verdict(broken));
        }
        Ok(())
    }
}

/// The benches in a folder, by name.
fn benches(folder: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    let entries = std::fs::read_dir(folder);
    for entry in entries.with_context(|| format!("cannot list {}", folder.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "rs") {
            names.extend(
                path.file_stem()
                    .map(|name| name.to_string_lossy().into_owned()),
            );
        }
    }
    names.sort();
    Ok(names)
}

/// What a bench of a package measures.
pub(super) fn measure(package: &str, name: &str) -> Result<Vec<Measured>> {
    eprintln!("measuring {package} {name}");
    let mut command = house::cargo(&["bench", "-q", "-p", package, "--bench", name])?;
    let rows = read(&house::output(&mut command)?)?;
    if rows.is_empty() {
        bail!("the bench {name} of {package} printed no measurement");
    }
    Ok(rows)
}

/// What is promised and not measured.
fn silent(rows: &[Measured]) -> Vec<(&'static str, &'static str)> {
    let is_held = |(bench, what): &(&str, &str)| {
        let same = |row: &&Measured| row.bench == *bench && row.what.starts_with(what);
        let mut lines = rows.iter().filter(same);
        lines.any(Measured::is_promised)
    };
    PROMISED
        .into_iter()
        .filter(|promised| !is_held(promised))
        .collect()
}

/// The table, and how many promises are broken.
pub(super) fn table(rows: &[Measured]) -> Result<(String, usize)> {
    let mut table = String::from("\n| bench | what | measured | promised |\n|---|---|--:|---|\n");
    let mut broken = 0;
    for row in rows {
        let said = row.promise.as_deref().unwrap_or_default().replace('|', "/");
        let promised = match Promise::read(&said, &row.unit)? {
            Some(promise) if !promise.is_kept(row.value) => {
                broken += 1;
                format!("**not kept**: {said}")
            }
            Some(_) => said,
            None if said.is_empty() => said,
            None => format!("({said})"),
        };
        let measured = format!("{} {}", figure(row.value), row.unit);
        writeln!(
            table,
            "| {} | {} | {} | {promised} |",
            row.bench,
            row.what.replace('|', "/"),
            measured.trim_end()
        )?;
    }
    writeln!(table, "\n{}", verdict(broken))?;
    Ok((table, broken))
}

/// A number as people read it: whole ones with thousands apart, others to three figures.
fn figure(value: f64) -> String {
    if value.abs() >= 1000.0 || value == value.trunc() {
        return thousands(value);
    }
    let before = value.abs().log10().floor().max(-9.0) as i32;
    let decimals = (2 - before).max(0) as usize;
    format!("{value:.decimals$}")
}

fn thousands(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut grouped = String::from(if value < 0.0 { "-" } else { "" });
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::{Measured, PROMISED, figure, read, silent, table};

    const PRINTED: &str = r#"
a line for people
{"bench":"a","what":"climb | all","value":3.14159,"unit":"s","promise":"< 10 s"}
{"bench":"a","what":"moves","value":18747533,"unit":"","promise":null}
{"bench":"b","what":"paths","value":999999.4,"unit":"paths/s","promise":"> 1,000,000 paths/s"}
{"bench":"b","what":"share","value":0.51,"unit":"","promise":""}
"#;

    #[test]
    fn promises_are_held_against_what_was_measured() {
        let (table, broken) = table(&read(PRINTED).unwrap()).unwrap();
        assert_eq!(broken, 1);
        assert!(
            table.contains("| a | climb / all | 3.14 s | < 10 s |\n"),
            "{table}"
        );
        assert!(table.contains("| a | moves | 18,747,533 |  |\n"), "{table}");
        let broken = "| b | paths | 999,999 paths/s | **not kept**: > 1,000,000 paths/s |\n";
        assert!(table.contains(broken), "{table}");
        assert!(table.contains("| b | share | 0.510 |  |\n"), "{table}");
        assert!(table.ends_with("\n1 promise is not kept.\n"), "{table}");
    }

    #[test]
    fn a_bench_that_falls_silent_is_noticed() {
        let line = |(bench, what): &(&str, &str), promise: &str| {
            format!(
                r#"{{"bench":"{bench}","what":"{what} and more","value":1,"unit":"s","promise":{promise}}}"#
            )
        };
        let lines = |promise| Vec::from_iter(PROMISED.iter().map(|each| line(each, promise)));
        let all = lines("\"< 5 s\"");
        assert_eq!(silent(&read(&all.join("\n")).unwrap()), []);
        assert_eq!(silent(&read(&all[1..].join("\n")).unwrap()), [PROMISED[0]]);
        assert_eq!(silent(&read(&lines("null").join("\n")).unwrap()), PROMISED);
    }

    #[test]
    fn what_is_no_measurement_is_refused_and_a_promise_without_a_number() {
        assert!(read::<Measured>("{\"bench\":1}").is_err());
        let vague = r#"{"bench":"a","what":"b","value":1,"unit":"s","promise":"< soon"}"#;
        assert!(table(&read(vague).unwrap()).is_err());
    }

    #[test]
    fn figures_have_three_digits_or_are_whole() {
        let figures = [
            0.0,
            0.001_234_5,
            0.5,
            12.345,
            123.456,
            1234.56,
            7.0,
            -2500.0,
        ]
        .map(figure);
        assert_eq!(
            figures,
            [
                "0", "0.00123", "0.500", "12.3", "123", "1,235", "7", "-2,500"
            ]
        );
    }
}
