//! The tables of suites, of all programs, and of languages.

use super::PROFILES;
use super::asking::{Came, WAYS};
use super::languages::{self, Spoken};
use super::programs::{Asked, Way};
use super::results::Results;

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

const HEADING: &str = "\
| program | version | language | tests | passed | other | unsteady | differ when covered | blocks | % probed | % ran |
|---|---|---|--:|--:|--:|--:|---|--:|--:|--:|
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
    let [probed, ran] = shares(covered);
    Some(format!(
        "| {} | {} | {} | {tests} | {passed} | {} | {} | {} | {} | {probed:.1} | {ran:.1} |\n",
        row.name,
        row.version,
        row.written_in,
        tests - passed,
        row.unsteady.len(),
        said(&covered.differ),
        covered.blocks,
    ))
}

/// How many of a hundred blocks have a probe or follow from one, and how many ran.
fn shares(covered: &Covered) -> [f64; 2] {
    let share = |part: u64| 100.0 * part as f64 / covered.blocks.max(1) as f64;
    [share(covered.blocks - covered.unknown), share(covered.ran)]
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

/// The table of suites that were covered: the rows that were made now, those of other suites as they are in the table
/// `before`, in the order of `names`.
pub(super) fn suites(before: &str, rows: &[Row], names: &[&str]) -> String {
    let mut table = HEADING.to_owned();
    for name in names {
        let row = rows.iter().find(|row| row.name == *name);
        let kept = || Some(format!("{}\n", kept(before, name)?));
        table += &row.and_then(covered).or_else(kept).unwrap_or_default();
    }
    table
}

/// The table of suites below commands whose probes stay, in the same way.
pub(super) fn profiles(before: &str, rows: &[Row], names: &[&str]) -> String {
    let mut table = format!(
        "| program | {} |\n|---|{}\n",
        PROFILES.join(" | "),
        "---|".repeat(PROFILES.len())
    );
    for name in names {
        let kept = kept(before, name);
        let row = rows.iter().find(|row| row.name == *name);
        let made = match row {
            Some(row) => profiled(row, kept),
            None => kept.map(|line| format!("{line}\n")),
        };
        table += &made.unwrap_or_default();
    }
    table
}

/// The table of languages, made of what it was before and of those that spoke.
pub(super) fn languages(before: &str, spoken: &[Spoken]) -> String {
    let ways = WAYS.map(|way| format!("`{}`", way.join(" "))).join(" | ");
    let mut table = format!(
        "| language | program | blocks | % probed | % ran | {ways} |\n|---|---|--:|--:|--:|{}\n",
        "---|".repeat(WAYS.len())
    );
    for name in languages::names() {
        let start = format!("| {name} |");
        let mut kept = before.lines().filter(|line| line.starts_with(&start));
        let row = spoken.iter().find(|spoken| spoken.name == name);
        let row = row.map(language).or(kept.next().map(str::to_owned));
        table.extend(row.map(|row| row + "\n"));
    }
    table
}

fn language(spoken: &Spoken) -> String {
    let [probed, ran] = shares(&spoken.covered);
    let came = spoken.came.iter().zip(WAYS).map(|(came, way)| match came {
        Came::Same => "same",
        Came::Refused => "refused",
        Came::Differs if way == [spoken.breaks] => "differs, as is known",
        Came::Differs => "**differs**",
    });
    let came: Vec<&str> = came.collect();
    format!(
        "| {} | {} | {} | {probed:.1} | {ran:.1} | {} |",
        spoken.name,
        spoken.program,
        spoken.covered.blocks,
        came.join(" | ")
    )
}

/// The line of this suite in a part of the page as it was.
fn kept<'p>(part: &'p str, name: &str) -> Option<&'p str> {
    let start = format!("| {name} | ");
    part.lines().find(|line| line.starts_with(&start))
}

#[cfg(test)]
mod tests {
    use super::{Covered, HEADING, Row, covered, languages, profiles, suites};
    use crate::compat::asking::Came;
    use crate::compat::languages::Spoken;
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
        let first = suites("", &[row("z", &[]), row("x", &[])], &names);
        let expected = [line(&row("x", &[])), line(&row("z", &[]))].concat();
        assert_eq!(first, format!("{HEADING}{expected}"));
        let second = suites(&first, &[row("z", &["a"])], &names);
        let changed = line(&row("z", &["a"]));
        assert_eq!(second, first.replace(&line(&row("z", &[])), &changed));
    }

    #[test]
    fn what_other_commands_brought_stays() {
        let names = ["x", "y"];
        let profiled = |command, differ: &[&str]| Row {
            covered: None,
            profiled: vec![(command, differ.iter().map(|&name| name.into()).collect())],
            ..row("y", &[])
        };
        let first = profiles("", &[row("x", &[]), profiled("paths", &["a", "b"])], &names);
        assert!(first.ends_with("| y | – | a, b | – | – | – |\n"), "{first}");
        let second = profiles(&first, &[profiled("count", &[])], &names);
        let expected = "| y | none | a, b | – | – | – |\n";
        assert!(second.ends_with(expected), "{second}");
        let table = suites("", &[row("x", &[])], &names);
        assert_eq!(suites(&table, &[profiled("count", &[])], &names), table);
        assert!(!profiled("paths", &["a"]).same());
    }

    #[test]
    fn a_language_is_the_same_in_each_way_or_not() {
        let mut spoken = Spoken {
            name: "Go",
            program: "x".into(),
            covered: row("x", &[]).covered.expect("covered"),
            came: [Came::Same; 7],
            breaks: "count",
        };
        assert!(spoken.same());
        spoken.came[6] = Came::Refused;
        spoken.came[2] = Came::Differs;
        assert!(spoken.same());
        spoken.came[1] = Came::Differs;
        assert!(!spoken.same());
        // Rows of others stay, in the order of all.
        let table = languages("| Ada | a |\n| Go | old |\n| Tcl | t |\n", &[spoken]);
        let came = "same | **differs** | differs, as is known | same | same | same | refused";
        let expected =
            format!("| Ada | a |\n| Go | x | 200 | 99.0 | 25.0 | {came} |\n| Tcl | t |\n");
        assert!(table.ends_with(&expected), "{table}");
    }
}
