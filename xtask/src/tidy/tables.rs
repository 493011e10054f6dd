//! The tables of `PAPERS.md` and `SAFETY.md` keep their word: every file that a row names exists,
//! and every test that it names is a function of that name somewhere in the house. A column is one
//! of tests when its heading says "test" or "oracle"; names there stand in backticks, with or
//! without the path of their module.

use super::Finding;
use super::documents::{self, backticked};
use super::files::File;
use super::{tokens, unsafety};
use std::collections::HashSet;
use std::path::Path;

const PAGES: [&str; 2] = ["PAPERS.md", unsafety::PAGE];

pub(super) fn check(root: &Path, files: &[File]) -> Vec<Finding> {
    let functions = functions(files);
    let pages = files
        .iter()
        .filter(|file| PAGES.contains(&file.path.as_str()));
    pages
        .flat_map(|page| check_page(root, page, &functions))
        .collect()
}

fn check_page(root: &Path, page: &File, functions: &HashSet<String>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for row in rows(&page.text) {
        if row.cells.iter().any(|cell| cell.text.is_empty()) {
            findings.push(Finding::new(
                "table",
                &page.path,
                row.line,
                "a row with an empty cell",
            ));
        }
        for cell in row.cells.iter().filter(|cell| cell.is_of_tests) {
            for name in backticked(cell.text).filter(|name| is_function_name(name)) {
                if !functions.contains(last_part(name)) {
                    let what = format!("there is no function {name}");
                    findings.push(Finding::new("table", &page.path, row.line, what));
                }
            }
            if cell.heading.contains("test") && !names_something(root, cell.text) {
                let what = "a row that names no test";
                findings.push(Finding::new("table", &page.path, row.line, what));
            }
        }
    }
    findings
}

/// What stands in backticks in the rows of a page's tables.
pub(super) fn quoted(text: &str) -> Vec<String> {
    let rows = rows(text);
    let cells = rows.iter().flat_map(|row| &row.cells);
    cells
        .flat_map(|cell| backticked(cell.text))
        .map(str::to_owned)
        .collect()
}

struct Row<'text> {
    line: usize,
    cells: Vec<Cell<'text>>,
}

struct Cell<'text> {
    heading: String,
    is_of_tests: bool,
    text: &'text str,
}

/// The rows below each table's head.
fn rows(text: &str) -> Vec<Row<'_>> {
    let mut rows = Vec::new();
    let mut headings: Vec<String> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let Some(cells) = cells(line) else {
            headings.clear();
            continue;
        };
        if headings.is_empty() {
            headings = cells.iter().map(|cell| cell.to_lowercase()).collect();
        } else if !cells
            .iter()
            .all(|cell| cell.chars().all(|c| "-:".contains(c)))
        {
            rows.push(Row {
                line: index + 1,
                cells: under(&headings, &cells),
            });
        }
    }
    rows
}

fn cells(line: &str) -> Option<Vec<&str>> {
    let inner = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    Some(inner.split('|').map(str::trim).collect())
}

fn under<'text>(headings: &[String], cells: &[&'text str]) -> Vec<Cell<'text>> {
    let pairs = headings.iter().zip(cells);
    pairs
        .map(|(heading, text)| Cell {
            heading: heading.clone(),
            is_of_tests: is_of_tests(heading),
            text,
        })
        .collect()
}

fn is_of_tests(heading: &str) -> bool {
    heading.contains("test") || heading.contains("oracle")
}

fn names_something(root: &Path, text: &str) -> bool {
    backticked(text).any(|name| is_function_name(name) || documents::exists(root, name))
}

fn is_function_name(name: &str) -> bool {
    let part = last_part(name);
    let starts = part.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
    let separated = !name.contains('/') && !name.contains('.');
    starts && separated && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn last_part(name: &str) -> &str {
    name.rsplit("::").next().unwrap_or(name)
}

fn functions(files: &[File]) -> HashSet<String> {
    let sources = files
        .iter()
        .filter(|file| file.is_rust() && !file.is_fixture());
    sources.flat_map(|file| functions_of(&file.text)).collect()
}

/// Every name behind `fn`, and so also those that stand inside macros such as `proptest!`.
fn functions_of(text: &str) -> Vec<String> {
    let tokens = tokens::read(text).unwrap_or_default();
    let declared = tokens.windows(2).filter(|pair| pair[0].is_word("fn"));
    declared
        .filter_map(|pair| pair[1].word().map(str::to_owned))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{check, quoted};
    use crate::tidy::files::File;
    use std::path::Path;

    const HEAD: &str = "Words | not | a table\n\n| what | where | test |\n|:--|---|---|\n";

    fn lines(row: &str) -> Vec<usize> {
        let page = File::new("PAPERS.md", &format!("{HEAD}{row}\n"));
        let source = File::new(
            "a.rs",
            "//! D.\nproptest! { #[test] fn it_holds(x in 0..9) {} }\n",
        );
        let findings = check(Path::new("/"), &[page, source]);
        findings.into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn rows_name_tests_that_exist() {
        assert_eq!(lines("| a | `a.rs` | `it_holds` |"), [0; 0]);
        assert_eq!(
            lines("| a | `a.rs` | `tests::it_holds` and `it_holds` |"),
            [0; 0]
        );
        assert_eq!(lines("| a | `a.rs` | `tests::it_does_not` |"), [5]);
    }

    #[test]
    fn rows_are_whole() {
        assert_eq!(lines("| a | `a.rs` | someday |"), [5]);
        assert_eq!(lines("| a |  | `it_holds` |"), [5]);
    }

    #[test]
    fn only_rows_are_quoted() {
        let text = format!("`x`\n{HEAD}| `a.rs` | b | `c` and `d` |\n\n`y`\n");
        assert_eq!(quoted(&text), ["a.rs", "c", "d"]);
    }
}
