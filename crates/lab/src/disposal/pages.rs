//! Tables and the page that holds them, from results alone: Markdown for people, CSV for others.

pub(super) mod collective;
pub(super) mod local;

use std::fmt::Write as _;

use super::{Results, StudyError, plots};
use crate::sheet::Sheet;
pub(super) use crate::table::{Table, count, number, percent};

/// Everything that a study gives to read: file names and contents. The page is `disposal.md`.
///
/// # Errors
/// Where the results cannot be put as JSON.
pub fn render(results: &Results) -> Result<Vec<(String, String)>, StudyError> {
    let mut sheet = Sheet::new(opening(results));
    let sections = [local::section(results), collective::section(results)];
    let mut figures = plots::all(results);
    for section in sections {
        sheet.section(section.title, &section.text);
        sheet.tables(&section.tables);
        let (own, rest) = figures
            .into_iter()
            .partition(|figure| figure.section == section.title);
        figures = rest;
        for figure in own {
            let called = (figure.file.as_str(), figure.plot.title.as_str());
            sheet.plot(called, &figure.plot, &figure.words);
        }
    }
    Ok(sheet.close("disposal", results)?)
}

/// A part of the page.
pub(super) struct Section {
    pub(super) title: &'static str,
    pub(super) text: String,
    pub(super) tables: Vec<Table>,
}

fn opening(results: &Results) -> String {
    let noise = results.timed.iter().filter_map(|timed| timed.noise());
    let noise = super::numbers::median(noise);
    let mut page = String::from("# Disposable instrumentation, on native programs\n\n");
    let _ = write!(
        page,
        "After Chilakamarri, Elbaum, *Leveraging Disposable Instrumentation to Reduce Coverage Collection \
         Overhead* (DIS); numbers of tables and figures are those of the paper. Measured on a machine \
         with {} processors, in {:.0} seconds. Two equal ways to run a program came out {} % apart (median): \
         smaller differences say nothing.\n\n",
        results.processors,
        results.seconds,
        percent(noise)
    );
    if results.faults.is_empty() {
        page.push_str(
            "Every run printed what the program prints, and was observed where it should be.\n\n",
        );
    } else {
        let _ = write!(page, "**{} things went wrong:**\n\n", results.faults.len());
        for fault in results.faults.iter().take(20) {
            let _ = writeln!(page, "- {fault}");
        }
        page.push('\n');
    }
    page
}
