//! Sentences and numbers that every view for people shares.

use crate::{Located, Module, Picture, Tally};
use std::path::{Path, PathBuf};
use tomo_program::Warning;
use tomo_wire::plan::Level;

/// With a comma after every three digits: `1,234,567`.
#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `one` or `many` behind the number.
#[must_use]
pub fn counted(number: u64, one: &str, many: &str) -> String {
    format!(
        "{} {}",
        grouped(number),
        if number == 1 { one } else { many }
    )
}

/// A line for each of these that there are: how many, and what is said of one, or of several.
#[must_use]
pub fn notes<'t>(counts: impl IntoIterator<Item = (u64, &'t str, &'t str)>) -> String {
    let there = counts.into_iter().filter(|(count, ..)| *count > 0);
    there
        .map(|(count, one, many)| counted(count, one, many) + "\n")
        .collect()
}

/// The share that `part` is of `whole`: `98.5 %`. Only all is `100 %`, only nothing is `0 %`.
#[must_use]
pub fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "–".into();
    }
    match part {
        0 => "0 %".into(),
        _ if part == whole => "100 %".into(),
        _ => {
            let percent = (part as f64 * 100.0 / whole as f64).clamp(0.1, 99.9);
            format!("{percent:.1} %")
        }
    }
}

impl Tally {
    /// The share that ran of those of which it is known.
    #[must_use]
    pub fn percent(&self) -> String {
        percent(self.ran, self.known())
    }

    /// How many ran, of how many of which it is known: `12/34`.
    #[must_use]
    pub fn fraction(&self) -> String {
        match self.known() {
            0 => "–".into(),
            known => format!("{}/{}", grouped(self.ran), grouped(known)),
        }
    }
}

/// What these are called, as far as a line has room for them.
#[must_use]
pub fn some_of<T>(all: &[T], name: impl Fn(&T) -> String) -> String {
    /// So many are named.
    const MOST: usize = 4;
    // One name is no longer than "1 other".
    let shown = if all.len() == MOST + 1 {
        MOST + 1
    } else {
        MOST
    };
    let mut names: Vec<String> = all.iter().take(shown).map(name).collect();
    if all.len() > shown {
        names.push(format!("{} others", all.len() - shown));
    }
    match names.split_last() {
        Some((last, before)) if !before.is_empty() => format!("{} and {last}", before.join(", ")),
        _ => names.concat(),
    }
}

/// The level's name.
#[must_use]
pub fn level_name(level: Level) -> &'static str {
    match level {
        Level::Function => "function",
        Level::Block => "block",
        Level::Edge => "edge",
    }
}

/// Said where no figure of what could not be observed is other than zero.
const WHOLE: &str = "All that was asked for could be observed";

/// Said where nothing was inferred of some marks.
const LOOSE: &str = "Of forked processes without those that they come from, and of records that change while they are read, \
                     only what probes saw is believed.";

impl Module {
    /// What could not be observed, what was inferred, and what is not known of the source: sentences.
    #[must_use]
    pub fn remarks(&self) -> Vec<String> {
        let whole = || format!("{WHOLE}.");
        let mut remarks = vec![self.not_observed().unwrap_or_else(whole)];
        remarks.extend(self.other_remarks());
        remarks
    }

    /// The same without what could not be observed.
    fn other_remarks(&self) -> Vec<String> {
        let mut remarks = Vec::from_iter(self.inferred());
        if !self.findings.observed {
            remarks.push("No process was observed, so nothing is known.".into());
        }
        if !self.has_lines {
            remarks.push(without_lines(self.located.missed()));
        }
        remarks.extend(self.located.lacking());
        remarks.extend(unread(self.located.lines().warnings()));
        if self.findings.loose {
            remarks.push(LOOSE.into());
        }
        if self.findings.contradictions > 0 {
            let count = counted(self.findings.contradictions as u64, "function", "functions");
            remarks.push(format!(
                "The marks of {count} fit no execution; of those only what probes saw is believed."
            ));
        }
        remarks
    }

    /// What could not be observed, if anything.
    fn not_observed(&self) -> Option<String> {
        let unobserved = &self.unobserved;
        let mut parts = vec![("functions", unobserved.functions)];
        if self.findings.level > Level::Function {
            parts.push(("blocks", unobserved.blocks));
            parts.push(("bytes of text", unobserved.bytes));
        }
        if self.findings.level == Level::Edge {
            let sides = self
                .functions
                .iter()
                .map(|function| function.totals.branches);
            let sides = sides.fold(Tally::default(), |all, more| all + more);
            let all = sides.known() + sides.unknown;
            parts.push(("sides of branches", (sides.unknown, all)));
        }
        let parts = parts.into_iter().filter(|(_, (part, _))| *part > 0);
        let parts = parts.map(|(what, (part, whole))| {
            let (count, all) = (grouped(part), grouped(whole));
            format!("{count} of {all} {what} ({})", percent(part, whole))
        });
        let parts: Vec<String> = parts.collect();
        let parts = parts.join(", ");
        match (parts.as_str(), self.findings.by_parts) {
            ("", _) => None,
            (_, false) => Some(format!("Could not be observed: {parts}.")),
            (_, true) => Some(format!(
                "Not known: {parts}; no run has carried their probes so far, or they cannot be observed."
            )),
        }
    }

    fn inferred(&self) -> Option<String> {
        let (what, whole) = match self.findings.level {
            Level::Function => ("functions", self.unobserved.functions.1),
            _ => ("blocks", self.unobserved.blocks.1),
        };
        let count = self.unobserved.inferred;
        let share = percent(count, whole);
        (count > 0).then(|| {
            format!(
                "Inferred from others: {} of {} {what} ({share}).",
                grouped(count),
                grouped(whole)
            )
        })
    }
}

/// Said of a module without line tables whose debug file was looked for in these places, of which the first will do.
fn without_lines(missed: &[PathBuf]) -> String {
    format!("It has {}: shown by function.", no_lines(missed))
}

/// What a module has whose debug file was looked for in these places.
pub(crate) fn no_lines(missed: &[PathBuf]) -> String {
    let place = missed.first().map_or_else(String::new, |place| {
        format!(", and there is no {}", place.display())
    });
    format!("no line tables{place}")
}

/// Said of debug information that cannot be read.
fn unread(troubles: &[Warning]) -> Option<String> {
    let first = troubles.first()?;
    let more = match troubles.len() - 1 {
        0 => String::new(),
        more => format!(
            " and {}",
            counted(more as u64, "other place", "other places")
        ),
    };
    Some(format!(
        "Not all of its debug information can be read, so lines or functions may be missing: {first}{more}."
    ))
}

impl Located {
    /// What other files have of its debug information that is not known: sentences.
    pub(crate) fn lacking(&self) -> Vec<String> {
        let apart = self.apart().missing().map(apart);
        apart
            .into_iter()
            .chain(self.lines().unread().map(shared))
            .collect()
    }
}

/// Said where debug information goes on in a file that several programs share.
fn shared(file: &Path) -> String {
    format!(
        "Of {}, in which dwz put what its debug information shares with others, only texts are read: functions, and where \
         calls were inlined, may be missing.",
        file.display()
    )
}

/// Said where files with debug information of so many units, of so many that have one, are missing.
fn apart((missing, all, first): (usize, usize, &Path)) -> String {
    let units = counted(all as u64, "unit", "units");
    format!(
        "The .dwo files of {} of {units} were not found, first of all {}: where calls were inlined is not known \
         there, so lines may be missing, or count as not run, that have such calls.",
        grouped(missing as u64),
        first.display()
    )
}

impl Picture {
    /// What is said of each module, each sentence behind the module's path. Of which nothing is to be said but that all of
    /// it could be observed are counted, where they are several.
    #[must_use]
    pub fn remarks(&self) -> Vec<String> {
        let is_whole = |module: &&Module| module.not_observed().is_none();
        let whole = self.modules.iter().filter(is_whole).count();
        let mut remarks = self.of_modules(|module| match is_whole(&module) && whole > 1 {
            true => module.other_remarks(),
            false => module.remarks(),
        });
        if whole > 1 {
            remarks.push(format!("{WHOLE} in {} modules.", grouped(whole as u64)));
        }
        remarks.extend(self.unseen_modules());
        remarks.extend(self.marked());
        remarks
    }

    /// The same without what is as it should be: what is to be said elsewhere of formats that have no place for it.
    #[must_use]
    pub fn reservations(&self) -> Vec<String> {
        let mut remarks = self.of_modules(|module| {
            let mut remarks = Vec::from_iter(module.not_observed());
            remarks.extend(module.other_remarks());
            remarks
        });
        remarks.extend(self.unseen_modules());
        remarks.extend(self.marked());
        remarks
    }

    /// Said of lines that the source leaves out.
    fn marked(&self) -> Option<String> {
        let left_out = self.left_out?;
        let lines = counted(left_out.lines, "line", "lines");
        let files = counted(left_out.files, "file", "files");
        let mut words = match left_out.lines {
            0 => "No line with code is left out as the source marks it".to_owned(),
            _ => format!("Left out as the source marks it: {lines} in {files}"),
        };
        for (count, why) in [
            (
                left_out.newer,
                "was written after the program, so marks may stand at other lines",
            ),
            (
                left_out.open,
                "has a START without a STOP, so all behind it is left out",
            ),
            (left_out.unread, "cannot be read, so no mark in it is known"),
        ] {
            if count > 0 {
                let files = counted(count, "file", "files");
                words += &format!("; the source of {files} {why}");
            }
        }
        Some(words + ".")
    }

    /// Said of modules that are left out.
    fn unseen_modules(&self) -> Option<String> {
        let count = counted(self.unseen.len() as u64, "more module", "more modules");
        let names = some_of(&self.unseen, |path| path.display().to_string());
        let what =
            format!("No process was observed in {count}, so nothing is known there: {names}.");
        (!self.unseen.is_empty()).then_some(what)
    }

    /// What is said of each module, behind its path.
    fn of_modules(&self, said: impl Fn(&Module) -> Vec<String>) -> Vec<String> {
        let of = |module: &Module| {
            let path = module.path().display().to_string();
            let remarks = said(module).into_iter();
            let remarks = remarks.map(move |remark| format!("{path}: {remark}"));
            remarks.collect::<Vec<_>>()
        };
        self.modules.iter().flat_map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_information_that_is_missing_is_named_with_its_place() {
        let plain = "It has no line tables: shown by function.";
        assert_eq!(without_lines(&[]), plain);
        let places = [PathBuf::from("/d/a.debug"), PathBuf::from("/p/a.debug")];
        let named = "It has no line tables, and there is no /d/a.debug: shown by function.";
        assert_eq!(without_lines(&places), named);
        let said = apart((2, 1_000, Path::new("/b/x.dwo")));
        let begin = "The .dwo files of 2 of 1,000 units were not found, first of all /b/x.dwo: ";
        assert!(said.starts_with(begin), "{said}");
    }

    #[test]
    fn only_all_is_a_hundred_percent() {
        let shown = [
            (0, 0),
            (0, 7),
            (7, 7),
            (1, 100_000),
            (99_999, 100_000),
            (1, 3),
        ];
        let shown = shown.map(|(part, whole)| percent(part, whole));
        assert_eq!(shown, ["–", "0 %", "100 %", "0.1 %", "99.9 %", "33.3 %"]);
        assert_eq!(grouped(1_234_567), "1,234,567");
    }
}
