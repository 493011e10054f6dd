//! The page with the table of suites.

use super::results::Results;
use anyhow::{Context as _, Result};
use std::path::Path;

/// What a pool has seen of a suite's programs.
pub(super) struct Covered {
    pub(super) ran: u64,
    pub(super) blocks: u64,
    /// Blocks of which nothing can be said.
    pub(super) unknown: u64,
}

/// One suite.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) version: String,
    pub(super) written_in: &'static str,
    pub(super) results: Results,
    /// Tests that differed between two runs alone.
    pub(super) unsteady: Vec<String>,
    /// Tests that differed when covered, and not otherwise.
    pub(super) differ: Vec<String>,
    pub(super) covered: Covered,
}

impl Row {
    /// Whether the suite said the same when covered.
    pub(super) fn same(&self) -> bool {
        self.differ.is_empty()
    }
}

const INTRODUCTION: &str = "\
# Compatibility

Made by `cargo xtask compat`: real programs' own test suites, run alone and run with all blocks of the
programs under test probed (`tomo env --pool`), first with a fresh pool, then with the pool that this
left behind. Every single test has to end as it does alone. Sources are those of Debian 12, compiled
here with the compilers' usual `-O2`. *Passed* and *other* count the suite run alone; what fails there fails
for reasons of its own (it dislikes running as root, or wants something that is not installed).
*Unsteady* tests differ between two runs alone, and are not compared. *Probed* is the share of blocks
that have a probe or follow from one; *ran* the share of all blocks that the suite has run.

";

const HEADING: &str = "\
| program | version | language | tests | passed | other | unsteady | differ when covered | blocks | % probed | % ran |
|---|---|---|--:|--:|--:|--:|---|--:|--:|--:|
";

/// The table, as it stands on the page.
pub(super) fn table(rows: &[Row]) -> String {
    let lines = rows.iter().map(line);
    lines.fold(HEADING.to_owned(), |table, line| table + &line)
}

fn line(row: &Row) -> String {
    let (tests, passed) = (row.results.len(), row.results.count("PASS"));
    let covered = &row.covered;
    let share = |part: u64| 100.0 * part as f64 / covered.blocks.max(1) as f64;
    let differ = match row.differ.as_slice() {
        [] => "none".to_owned(),
        names => names.join(", "),
    };
    format!(
        "| {} | {} | {} | {tests} | {passed} | {} | {} | {differ} | {} | {:.1} | {:.1} |\n",
        row.name,
        row.version,
        row.written_in,
        tests - passed,
        row.unsteady.len(),
        covered.blocks,
        share(covered.blocks - covered.unknown),
        share(covered.ran),
    )
}

/// Writes the page: the rows that were made now, those of other suites as they are there, in the order of
/// `names`.
pub(super) fn write(path: &Path, rows: &[Row], names: &[&str]) -> Result<()> {
    let before = std::fs::read_to_string(path).unwrap_or_default();
    let page = page(&before, rows, names);
    std::fs::write(path, page).with_context(|| format!("cannot write {}", path.display()))
}

fn page(before: &str, rows: &[Row], names: &[&str]) -> String {
    let mut page = format!("{INTRODUCTION}{HEADING}");
    for name in names {
        let start = format!("| {name} | ");
        if let Some(row) = rows.iter().find(|row| row.name == *name) {
            page.push_str(&line(row));
        } else if let Some(kept) = before.lines().find(|line| line.starts_with(&start)) {
            page.push_str(kept);
            page.push('\n');
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::{Covered, HEADING, INTRODUCTION, Row, line, page};
    use crate::compat::results::Results;

    fn row(name: &'static str, differ: &[&str]) -> Row {
        Row {
            name,
            version: "1.0".into(),
            written_in: "C",
            results: Results::read("PASS: a\nFAIL: b\n"),
            unsteady: Vec::new(),
            differ: differ.iter().map(|name| (*name).to_owned()).collect(),
            covered: Covered {
                ran: 50,
                blocks: 200,
                unknown: 2,
            },
        }
    }

    #[test]
    fn a_row_says_what_differs() {
        let same = "| x | 1.0 | C | 2 | 1 | 1 | 0 | none | 200 | 99.0 | 25.0 |\n";
        assert_eq!(line(&row("x", &[])), same);
        assert!(line(&row("x", &["a", "b"])).contains("| a, b |"));
    }

    #[test]
    fn rows_of_other_suites_stay() {
        let names = ["x", "y", "z"];
        let first = page("", &[row("z", &[]), row("x", &[])], &names);
        let expected = [line(&row("x", &[])), line(&row("z", &[]))].concat();
        assert_eq!(first, format!("{INTRODUCTION}{HEADING}{expected}"));
        let second = page(&first, &[row("z", &["a"])], &names);
        assert!(second.starts_with(&format!("{INTRODUCTION}{HEADING}{}", line(&row("x", &[])))));
        assert!(second.ends_with(&line(&row("z", &["a"]))));
    }
}
