//! Tables and the page that holds them, from results alone: Markdown for people, CSV for others.

pub(super) mod collective;
pub(super) mod local;

use std::fmt::Write as _;

use super::{Results, StudyError, plots};

/// A table of words and numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Table {
    /// What its file is called.
    pub(super) file: String,
    /// What it shows.
    pub(super) title: String,
    /// What has to be known to read it.
    pub(super) note: String,
    /// Heads of columns; those that begin with `#` are numbers.
    pub(super) columns: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
}

impl Table {
    pub(super) fn new(file: &str, title: &str, note: &str, columns: &[&str]) -> Self {
        Self {
            file: file.into(),
            title: title.into(),
            note: note.into(),
            columns: columns.iter().map(|&column| column.to_owned()).collect(),
            rows: Vec::new(),
        }
    }

    fn heads(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|head| head.trim_start_matches('#'))
    }

    fn markdown(&self) -> String {
        let mut text = format!("**{}**\n\n", self.title);
        let line = |cells: &mut dyn Iterator<Item = &str>| {
            let cells: Vec<&str> = cells.collect();
            format!("| {} |\n", cells.join(" | "))
        };
        text.push_str(&line(&mut self.heads()));
        let kind = |column: &String| {
            if column.starts_with('#') {
                "--:"
            } else {
                "---"
            }
        };
        let kinds: Vec<&str> = self.columns.iter().map(kind).collect();
        let _ = writeln!(text, "|{}|", kinds.join("|"));
        for row in &self.rows {
            text.push_str(&line(&mut row.iter().map(String::as_str)));
        }
        if !self.note.is_empty() {
            let _ = write!(text, "\n{}\n", self.note);
        }
        text
    }

    fn csv(&self) -> String {
        let quoted = |cell: &str| match cell.contains([',', '"', '\n']) {
            true => format!("\"{}\"", cell.replace('"', "\"\"")),
            false => cell.to_owned(),
        };
        let heads: Vec<String> = self.heads().map(quoted).collect();
        let mut text = heads.join(",") + "\n";
        for row in &self.rows {
            let cells: Vec<String> = row.iter().map(|cell| quoted(cell)).collect();
            text.push_str(&(cells.join(",") + "\n"));
        }
        text
    }
}

/// A share as percent, with one digit; nothing where there is none.
pub(super) fn percent(share: Option<f64>) -> String {
    share.map_or_else(String::new, |share| format!("{:.1}", 100.0 * share))
}

/// A number with four digits that count.
pub(super) fn number(value: Option<f64>) -> String {
    let Some(value) = value else {
        return String::new();
    };
    let digits = match value.abs() {
        size if size == 0.0 || size >= 1000.0 => 0,
        size => (3 - size.log10().floor() as i32).clamp(0, 9) as usize,
    };
    format!("{value:.digits$}")
}

/// A count with its thousands set apart.
pub(super) fn count(value: u64) -> String {
    let digits = value.to_string();
    let groups = digits.as_bytes().rchunks(3).rev();
    let groups: Vec<&str> = groups
        .filter_map(|group| std::str::from_utf8(group).ok())
        .collect();
    groups.join(",")
}

/// Everything that a study gives to read: file names and contents. The page is `disposal.md`.
///
/// # Errors
/// Where the results cannot be put as JSON.
pub fn render(results: &Results) -> Result<Vec<(String, String)>, StudyError> {
    let mut files = Vec::new();
    let mut page = opening(results);
    let sections = [local::section(results), collective::section(results)];
    let mut figures = plots::all(results);
    for section in sections {
        let _ = write!(page, "## {}\n\n{}\n\n", section.title, section.text);
        for part in section.tables {
            let _ = writeln!(page, "{}", part.markdown());
            files.push((format!("{}.csv", part.file), part.csv()));
        }
        let (own, rest) = figures
            .into_iter()
            .partition(|figure| figure.section == section.title);
        figures = rest;
        for figure in own {
            let plots::Figure {
                file, plot, words, ..
            } = figure;
            let _ = writeln!(page, "![{}]({file}.svg)\n\n{words}\n", plot.title);
            files.push((format!("{file}.svg"), plot.render()));
        }
    }
    files.push(("disposal.md".into(), page));
    files.push((
        "results.json".into(),
        serde_json::to_string_pretty(results)? + "\n",
    ));
    Ok(files)
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

#[cfg(test)]
mod tests {
    use super::{Table, count, number, percent};

    #[test]
    fn a_table_in_both_forms() {
        let mut table = Table::new("t", "T", "n", &["a", "#b"]);
        table.rows.push(vec!["x, y".into(), "1".into()]);
        assert_eq!(
            table.markdown(),
            "**T**\n\n| a | b |\n|---|--:|\n| x, y | 1 |\n\nn\n"
        );
        assert_eq!(table.csv(), "a,b\n\"x, y\",1\n");
    }

    #[test]
    fn numbers_have_the_digits_that_count() {
        let numbers = [0.0, 0.001_234_5, 12.345, 1234.5].map(|value| number(Some(value)));
        assert_eq!(numbers, ["0", "0.001234", "12.35", "1234"]);
        assert_eq!(percent(Some(0.1234)), "12.3");
        assert_eq!(
            [0, 999, 1000, 1_234_567].map(count),
            ["0", "999", "1,000", "1,234,567"]
        );
    }
}
