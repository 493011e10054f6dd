//! The study's page: tables and what is to be said of them, from results alone.

mod tables;

use std::fmt::Write as _;

use super::results::{Results, Studied};
use super::{IsolationError, plots};
use crate::sheet::Sheet;
use crate::table::{Table, percent};

/// Everything that the study gives to read: file names and contents. The page is `isolation.md`.
///
/// # Errors
/// Where the results cannot be put as JSON.
pub fn render(results: &Results) -> Result<Vec<(String, String)>, IsolationError> {
    let mut sheet = Sheet::new(opening(results));
    for (title, words, tables) in [
        (
            "Programs and faults",
            PROGRAMS,
            vec![tables::programs(results), tables::variants(results)],
        ),
        (
            "Until the best predictor is found",
            FOUND,
            vec![tables::shares(results), tables::steps(results)],
        ),
        ("Overhead", OVERHEAD, vec![tables::overhead(results)]),
        ("Sampling", SAMPLING, vec![tables::sampling(results)]),
        ("Several faults", SEVERAL, vec![tables::several(results)]),
        ("HOLMES", HOLMES, vec![tables::walks(results)]),
    ] {
        sheet.section(title, words);
        sheet.tables(&tables);
        if title.starts_with("Until") {
            for figure in plots::all(results) {
                let named = (figure.file.as_str(), figure.words.as_str());
                sheet.plot(named, &figure.plot, &figure.words);
            }
        }
    }
    Ok(sheet.close("isolation", results)?)
}

const PROGRAMS: &str = "Programs are built from the sources that packages carry; their faults are patches in \
    `tests/subjects/`, which says how each shows. A case is a success if the variant prints and ends as the program \
    without a fault does. *Near*: it shows where it is. Complete monitoring has all sites armed at once; *best* is the \
    highest Importance by it, and so many predicates are as good.";

const FOUND: &str = "Sites that a search had seen when a predictor was among them that is as good, over all cases, as the \
    best of complete monitoring, in percent of all that can be observed; each step runs 500 cases at most, half of \
    which fail if there are enough. Of what is left to chance five trials are made. Searches go forward; backward from \
    where runs crash, if they do (the paper also goes backward from the statement that prints the first wrong byte, which \
    is not told here). *Ochiai* is not the paper's: F(p) / √(NumF (F(p) + S(p))), of all runs. *Surveyed*: before the search, the same cases run once with a probe at each function's entry, which vanishes when it is hit; \
    that a function was entered is a predicate from which the search may go on. Entries are no sites of predicates, and do not \
    count as such here. The digits of the paper's Figure 4 and Table 2 are lost in our copy.";

const OVERHEAD: &str = "What whole processes take with probes, over what they take without: these cases run some \
    milliseconds, so that most of it is what a process pays for being armed at all, of which docs/BENCH.md tells more \
    on longer runs. *Adaptive* is a real search by ttest, mean of its steps, of the first variant of each program; *as \
    rehearsed* says that each of its steps watched as many sites as that of the search on complete data. The digits of \
    the paper's Table 3 are lost in our copy; sampling is not built here, so that its cost is not measured.";

const SAMPLING: &str = "One observation in a hundred, or in a thousand, is seen, by chance; drawn three times from how \
    often each predicate was true in each run. *Found*: draws in which what comes first is as good, by complete \
    data, as the best. *Reached*: its Importance by complete data, over the best.";

const SEVERAL: &str = "The first fault of a program that crashes and the first that does not, both at once: one search \
    for all failures, and one for those of each, which are told by how runs end (ABI §5.4, where exif's runs are told \
    by where they crash). Sites and steps until the best predictor of each had been seen, by ttest.";

const HOLMES: &str = "Function by function, from where runs crash, or from what always runs: next are the functions \
    that call, or are called by, those with weak predictors (Importance from 0.5 to 0.75), with all their sites. Here, too, \
    such a search ends where there are none.";

fn opening(results: &Results) -> String {
    let studied = &results.studied;
    let mut text = format!(
        "# Adaptive bug isolation, on native programs\n\nAfter Arumuga Nainar, Liblit, *Adaptive Bug Isolation* (ABI); \
         numbers of tables and figures are those of the paper. Measured on a machine with {} processors, in {:.0} \
         seconds.\n\n",
        results.processors, results.seconds
    );
    for way in ["ttest", "ochiai", "ochiai surveyed"] {
        let found = studied.iter().filter(|one| tables::found(one, way));
        let (found, all) = (found.count(), studied.len());
        let mean = mean(studied.iter().filter_map(|one| tables::share(one, way)));
        let _ = write!(
            text,
            "By {way}, forward, the search comes to a predictor as good as the best of complete monitoring in {found} of \
             {all} variants ({} %; promised: 95 %: {}), having seen {} % of the sites on average (promised: 10 %: {}).\n\n",
            percent(Some(found as f64 / all.max(1) as f64)),
            kept(found as f64 >= 0.95 * all as f64),
            percent(mean),
            kept(mean.is_some_and(|mean| mean <= 0.10)),
        );
    }
    let surveyed = |one| tables::share_with_entries(one, "ochiai surveyed");
    let _ = write!(
        text,
        "A survey observes the entry of each function, once, by probes that vanish. Where these count as sites, all of \
         them seen before the search begins, that is {} % by *ochiai surveyed*.\n\n",
        percent(mean(studied.iter().filter_map(surveyed))),
    );
    for one in &results.refused {
        let _ = write!(
            text,
            "Not studied: {} {}: {}.\n\n",
            one.subject, one.variant, one.why
        );
    }
    text
}

fn kept(is_kept: bool) -> &'static str {
    match is_kept {
        true => "kept",
        false => "**not kept**",
    }
}

/// The mean, of anything.
pub(super) fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Programs, in order, with their variants.
pub(super) fn by_program(results: &Results) -> Vec<(&str, Vec<&Studied>)> {
    let mut programs: Vec<(&str, Vec<&Studied>)> = Vec::new();
    for one in &results.studied {
        match programs.last_mut() {
            Some((name, variants)) if *name == one.subject => variants.push(one),
            _ => programs.push((&one.subject, vec![one])),
        }
    }
    programs
}

/// A table with these columns.
pub(super) fn table(file: &str, title: &str, columns: &[&str]) -> Table {
    Table::new(file, title, "", columns)
}
