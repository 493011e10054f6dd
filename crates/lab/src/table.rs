//! Tables of words and numbers, as Markdown for people and CSV for others.

use std::fmt::Write as _;

/// A table of words and numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Table {
    /// What its file is called.
    pub(crate) file: String,
    /// What it shows.
    pub(crate) title: String,
    /// What has to be known to read it.
    pub(crate) note: String,
    /// Heads of columns; those that begin with `#` are numbers.
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(file: &str, title: &str, note: &str, columns: &[&str]) -> Self {
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

    pub(crate) fn markdown(&self) -> String {
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

    pub(crate) fn csv(&self) -> String {
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
pub(crate) fn percent(share: Option<f64>) -> String {
    share.map_or_else(String::new, |share| format!("{:.1}", 100.0 * share))
}

/// A number with four digits that count.
pub(crate) fn number(value: Option<f64>) -> String {
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
pub(crate) fn count(value: u64) -> String {
    let digits = value.to_string();
    let groups = digits.as_bytes().rchunks(3).rev();
    let groups: Vec<&str> = groups
        .filter_map(|group| std::str::from_utf8(group).ok())
        .collect();
    groups.join(",")
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
