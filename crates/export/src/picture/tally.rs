//! Counting what ran.

use std::ops::Add;

use tomo_profile::merge::Finding;
use tomo_program::path_of;

/// How many of some things ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Ran.
    pub ran: u64,
    /// Did not run.
    pub missed: u64,
    /// May have run.
    pub unknown: u64,
}

impl Tally {
    /// Counts one more.
    pub fn count(&mut self, finding: Finding) {
        match finding.ran() {
            Some(true) => self.ran += 1,
            Some(false) => self.missed += 1,
            None => self.unknown += 1,
        }
    }

    /// Those of which it is known.
    #[must_use]
    pub fn known(&self) -> u64 {
        self.ran + self.missed
    }

    /// The share that ran of those of which it is known, from 0 to 1; of nothing it is all.
    #[must_use]
    pub fn share(&self) -> f64 {
        match self.known() {
            0 => 1.0,
            known => self.ran as f64 / known as f64,
        }
    }
}

impl FromIterator<Finding> for Tally {
    fn from_iter<I: IntoIterator<Item = Finding>>(findings: I) -> Self {
        let mut tally = Self::default();
        findings
            .into_iter()
            .for_each(|finding| tally.count(finding));
        tally
    }
}

impl Add for Tally {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            ran: self.ran + other.ran,
            missed: self.missed + other.missed,
            unknown: self.unknown + other.unknown,
        }
    }
}

/// How many things of each sort ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Source lines.
    pub lines: Tally,
    /// Sides of conditional branches.
    pub branches: Tally,
    /// Functions.
    pub functions: Tally,
    /// Blocks.
    pub blocks: Tally,
}

impl Totals {
    /// What is known where only functions were asked for.
    pub(super) fn of_functions(self) -> Self {
        Self {
            functions: self.functions,
            ..Self::default()
        }
    }
}

impl Add for Totals {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            lines: self.lines + other.lines,
            branches: self.branches + other.branches,
            functions: self.functions + other.functions,
            blocks: self.blocks + other.blocks,
        }
    }
}

/// Something with a name and totals: a row of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// A folder, a file or a function.
    pub name: String,
    /// How much of it ran.
    pub totals: Totals,
}

/// What is shown to people of a path: what is no UTF-8 in it as U+FFFD.
pub(crate) fn shown(path: &str) -> String {
    path_of(path).to_string_lossy().into_owned()
}

impl super::Picture {
    /// The folders, each with its files: `("src", [("main.c", …)])`, both by name.
    #[must_use]
    pub fn folders(&self) -> Vec<(Row, Vec<Row>)> {
        let mut folders: Vec<(Row, Vec<Row>)> = Vec::new();
        let mut last = None;
        for file in &self.files {
            let (folder, name) = match file.path.rsplit_once('/') {
                Some(("", name)) => ("/", name),
                Some(parts) => parts,
                None => (".", file.path.as_str()),
            };
            // Names for people may be the same where paths are no UTF-8 and differ.
            if last.replace(folder) != Some(folder) {
                let totals = Totals::default();
                let name = shown(folder);
                folders.push((Row { name, totals }, Vec::new()));
            }
            if let Some((row, files)) = folders.last_mut() {
                row.totals = row.totals + file.totals;
                files.push(Row {
                    name: shown(name),
                    totals: file.totals,
                });
            }
        }
        folders
    }
}
