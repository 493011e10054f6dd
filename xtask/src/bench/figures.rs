//! Tables of figures, a line each, some of which are held against what is promised.

use super::promise::Promise;
use super::rows::verdict;
use anyhow::Result;
use serde::Deserialize;
use std::fmt::Write;

/// One figure, as a bench prints it.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Figure {
    case: String,
    what: String,
    value: f64,
    unit: String,
    promise: Option<String>,
}

/// The table, and how many promises are broken.
pub(super) fn table(rows: &[Figure]) -> Result<(String, usize)> {
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
