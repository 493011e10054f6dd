//! The page with the tables of suites, and of all programs.

use super::PROFILES;
use super::programs::Asked;
use super::results::Results;
use anyhow::{Context as _, Result};
use std::path::Path;

/// What a pool has seen of a suite's programs.
pub(super) struct Covered {
    /// Tests that differed when covered, and not otherwise.
    pub(super) differ: Vec<String>,
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
    /// What came of it when it was covered.
    pub(super) covered: Option<Covered>,
    /// By command: tests that differed when it observed, and not otherwise.
    pub(super) profiled: Vec<(&'static str, Vec<String>)>,
}

impl Row {
    /// Whether the suite said the same whenever it was observed.
    pub(super) fn same(&self) -> bool {
        let covered = self.covered.iter().map(|covered| &covered.differ);
        let profiled = self.profiled.iter().map(|(_, differ)| differ);
        covered.chain(profiled).all(Vec::is_empty)
    }
}

/// One way of observing all programs.
pub(super) struct Way {
    /// Its words on a command line.
    pub(super) name: String,
    pub(super) runs: usize,
    /// Those of programs that cannot be observed so, which is said.
    pub(super) refused: usize,
    /// Questions whose answers differ, or of which `tomo` says that the program was not observed.
    pub(super) differ: Vec<String>,
}

const INTRODUCTION: &str = "\
# Compatibility

Made by `cargo xtask compat`: real programs' own test suites, run alone and run with all blocks of the
programs under test probed (`tomo env --pool`), first with a fresh pool, then with the pool that this
left behind. Every single test has to end as it does alone. Sources are those of Debian 12, compiled
here with the compilers' usual `-O2`. *Passed* and *other* count the suite run alone; what fails there fails
for reasons of its own (it dislikes running as root, or wants something that is not installed).
*Unsteady* tests differ between two runs alone, and are not compared. *Probed* is the share of blocks
that have a probe or follow from one; *ran* the share of all blocks that the suite has run. Three reads of
bash's suite that race against a tenth of a millisecond are given more time.

";

const HEADING: &str = "\
| program | version | language | tests | passed | other | unsteady | differ when covered | blocks | % probed | % ran |
|---|---|---|--:|--:|--:|--:|---|--:|--:|--:|
";

const PROFILED: &str = "
The same suites below the commands whose probes stay, in all code of the first program that a suite names
(`tomo count --module PROGRAM -- make check`, which observes each process that runs it): tests that
end otherwise than alone.

";

const PROGRAMS: &str = "
Made by `cargo xtask compat --programs`: the programs in `/usr/bin` of this machine as they are shipped, up to 12 MB,
those that raise privileges left out, each asked for `--version` and for `--help`: alone, twice, and observed. Runs whose output
or exit code is another one *differ*, unless the program answers so alone, too, asked thirty times more; and those of which
`tomo` says that the program was not observed. *Refused* are static programs, which only a trace observes.

";

/// The table of all programs.
pub(super) fn asked(asked: &Asked) -> String {
    let mut table = format!(
        "{} programs; {} questions, of which {} were not answered alike twice alone and are not compared.\n\n\
         | observed by | runs | refused | differ |\n|---|--:|--:|---|\n",
        asked.programs,
        asked.answered + asked.unsteady,
        asked.unsteady,
    );
    for Way {
        name,
        runs,
        refused,
        differ,
    } in &asked.ways
    {
        table += &format!(
            "| `tomo {name}` | {runs} | {refused} | {} |\n",
            said(differ)
        );
    }
    table
}

/// Writes the table of all programs on the page, on which all else stays.
pub(super) fn write_asked(path: &Path, all: &Asked) -> Result<()> {
    let before = std::fs::read_to_string(path).unwrap_or_default();
    let suites = before
        .split_once(PROGRAMS)
        .map_or(before.as_str(), |(suites, _)| suites);
    let page = format!("{suites}{PROGRAMS}{}", asked(all));
    std::fs::write(path, page).with_context(|| format!("cannot write {}", path.display()))
}

/// The tables, as they stand on the page.
pub(super) fn tables(rows: &[Row]) -> String {
    let names: Vec<&str> = rows.iter().map(|row| row.name).collect();
    page("", rows, &names).replacen(INTRODUCTION, "", 1)
}

/// What is said of tests that differ.
fn said(differ: &[String]) -> String {
    match differ {
        [] => "none".to_owned(),
        names => names.join(", "),
    }
}

fn covered(row: &Row) -> Option<String> {
    let (tests, passed) = (row.results.len(), row.results.count("PASS"));
    let covered = row.covered.as_ref()?;
    let share = |part: u64| 100.0 * part as f64 / covered.blocks.max(1) as f64;
    Some(format!(
        "| {} | {} | {} | {tests} | {passed} | {} | {} | {} | {} | {:.1} | {:.1} |\n",
        row.name,
        row.version,
        row.written_in,
        tests - passed,
        row.unsteady.len(),
        said(&covered.differ),
        covered.blocks,
        share(covered.blocks - covered.unknown),
        share(covered.ran),
    ))
}

/// What was profiled now, or `before`.
fn profiled(row: &Row, before: Option<&str>) -> Option<String> {
    let before = before.unwrap_or_default().trim_matches(['|', ' ']);
    let before: Vec<&str> = before.split(" | ").skip(1).collect();
    let cell = |at: usize, command: &str| {
        let now = row.profiled.iter().find(|(name, _)| *name == command);
        let now = now.map(|(_, differ)| said(differ));
        now.or_else(|| Some((*before.get(at)?).to_owned()))
    };
    let cells = PROFILES.iter().enumerate().map(|(at, name)| cell(at, name));
    let cells: Vec<Option<String>> = cells.collect();
    cells.iter().any(Option::is_some).then(|| {
        let cells = cells
            .into_iter()
            .map(|cell| cell.unwrap_or_else(|| "–".to_owned()));
        let cells: Vec<String> = cells.collect();
        format!("| {} | {} |\n", row.name, cells.join(" | "))
    })
}

/// Writes the page: the rows that were made now, those of other suites as they are there, in the order of
/// `names`.
pub(super) fn write(path: &Path, rows: &[Row], names: &[&str]) -> Result<()> {
    let before = std::fs::read_to_string(path).unwrap_or_default();
    let page = page(&before, rows, names);
    std::fs::write(path, page).with_context(|| format!("cannot write {}", path.display()))
}

fn page(before: &str, rows: &[Row], names: &[&str]) -> String {
    let profiles = format!(
        "| program | {} |\n|---|{}\n",
        PROFILES.join(" | "),
        "---|".repeat(PROFILES.len())
    );
    let (before, programs) = match before.split_once(PROGRAMS) {
        Some((before, table)) => (before, format!("{PROGRAMS}{table}")),
        None => (before, String::new()),
    };
    let (upper, lower) = before.split_once(PROFILED).unwrap_or((before, ""));
    let row = |name: &str| rows.iter().find(|row| row.name == name);
    let mut page = format!("{INTRODUCTION}{HEADING}");
    for name in names {
        let made = row(name).and_then(covered);
        page += &made
            .or_else(|| Some(format!("{}\n", kept(upper, name)?)))
            .unwrap_or_default();
    }
    page += PROFILED;
    page += &profiles;
    for name in names {
        let before = kept(lower, name);
        let made = match row(name) {
            Some(row) => profiled(row, before),
            None => before.map(|line| format!("{line}\n")),
        };
        page += &made.unwrap_or_default();
    }
    page + &programs
}

/// The line of this suite in a part of the page as it was.
fn kept<'p>(part: &'p str, name: &str) -> Option<&'p str> {
    let start = format!("| {name} | ");
    part.lines().find(|line| line.starts_with(&start))
}

#[cfg(test)]
mod tests {
    use super::{
        Covered, HEADING, INTRODUCTION, PROFILED, PROGRAMS, Row, asked, covered, page, write_asked,
    };
    use crate::compat::results::Results;

    fn row(name: &'static str, differ: &[&str]) -> Row {
        Row {
            name,
            version: "1.0".into(),
            written_in: "C",
            results: Results::read("PASS: a\nFAIL: b\n"),
            unsteady: Vec::new(),
            covered: Some(Covered {
                differ: differ.iter().map(|name| (*name).to_owned()).collect(),
                ran: 50,
                blocks: 200,
                unknown: 2,
            }),
            profiled: Vec::new(),
        }
    }

    fn line(row: &Row) -> String {
        covered(row).unwrap_or_default()
    }

    #[test]
    fn a_row_says_what_differs() {
        let same = "| x | 1.0 | C | 2 | 1 | 1 | 0 | none | 200 | 99.0 | 25.0 |\n";
        assert_eq!(line(&row("x", &[])), same);
        assert!(line(&row("x", &["a", "b"])).contains("| a, b |"));
        assert!(row("x", &[]).same() && !row("x", &["a"]).same());
    }

    #[test]
    fn rows_of_other_suites_stay() {
        let names = ["x", "y", "z"];
        let first = page("", &[row("z", &[]), row("x", &[])], &names);
        let expected = [line(&row("x", &[])), line(&row("z", &[]))].concat();
        let start = format!("{INTRODUCTION}{HEADING}{expected}{PROFILED}");
        assert!(first.starts_with(&start), "{first}");
        let second = page(&first, &[row("z", &["a"])], &names);
        let changed = line(&row("z", &["a"]));
        assert_eq!(second, first.replace(&line(&row("z", &[])), &changed));
    }

    #[test]
    fn the_table_of_programs_and_those_of_suites_leave_each_other_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("page");
        let suites = page("", &[row("x", &[])], &["x"]);
        std::fs::write(&path, &suites).expect("written");
        let mut all = crate::compat::programs::Asked::nothing();
        for programs in [1, 2] {
            all.programs = programs;
            write_asked(&path, &all).expect("written");
        }
        let both = std::fs::read_to_string(&path).expect("read");
        assert_eq!(both, format!("{suites}{PROGRAMS}{}", asked(&all)));
        assert!(both.contains("\n2 programs; 0 questions"), "{both}");
        let (before, after) = (line(&row("x", &[])), line(&row("x", &["a"])));
        let again = page(&both, &[row("x", &["a"])], &["x"]);
        assert_eq!(again, both.replace(&before, &after));
    }

    #[test]
    fn what_other_commands_brought_stays() {
        let names = ["x", "y"];
        let profiled = |command, differ: &[&str]| Row {
            covered: None,
            profiled: vec![(command, differ.iter().map(|&name| name.into()).collect())],
            ..row("y", &[])
        };
        let first = page("", &[row("x", &[]), profiled("paths", &["a", "b"])], &names);
        assert!(first.ends_with("| y | – | a, b | – | – | – |\n"), "{first}");
        let second = page(&first, &[profiled("count", &[])], &names);
        assert!(
            second.ends_with("| y | none | a, b | – | – | – |\n"),
            "{second}"
        );
        assert!(second.contains(&line(&row("x", &[]))));
        assert!(!profiled("paths", &["a"]).same());
    }
}
