//! Pages point only at what exists: relative links, and words in backticks that look like paths
//! of the repository. A path counts from the root, from the page's folder, or from a folder that
//! the page names (`crates/graph/src/`, with the slash at its end). Code blocks are left alone, and so are patterns (`*`, `<name>`, `$HOME`).

use super::Finding;
use super::files::File;
use std::path::Path;

/// Endings that make a backticked word a path, whatever stands before.
const ENDINGS: [&str; 5] = [".md", ".rs", ".toml", ".c", ".h"];

pub(super) fn check(root: &Path, page: &File) -> Vec<Finding> {
    let folders = folders(root, page);
    let mut findings = Vec::new();
    for (line, text) in prose(&page.text) {
        let paths = backticked(text).filter(|word| is_path(root, word));
        for path in paths.chain(links(text)) {
            if !folders
                .iter()
                .any(|folder| exists(&root.join(folder), path))
            {
                let what = format!("points at {path}, which does not exist");
                findings.push(Finding::new("path", &page.path, line, what));
            }
        }
    }
    findings
}

/// Whether this path, with or without a line, an item or a heading, leads somewhere.
pub(super) fn exists(folder: &Path, path: &str) -> bool {
    let path = path.split(['#', ':']).next().unwrap_or(path);
    !path.is_empty() && folder.join(path).exists()
}

/// The folders from which the paths of a page count.
fn folders<'page>(root: &Path, page: &'page File) -> Vec<&'page str> {
    let own = page.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let words = prose(&page.text).flat_map(|(_, text)| backticked(text));
    let named = words.filter(|word| word.ends_with('/') && is_path(root, word));
    ["", own].into_iter().chain(named).collect()
}

/// What stands in backticks on a line.
pub(super) fn backticked(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// The lines outside code blocks, counted from 1.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_code = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let fence = line.trim_start().starts_with("```");
        in_code ^= fence;
        (!in_code && !fence).then_some((index + 1, line))
    })
}

/// The targets of a line's links that stay inside the repository.
fn links(line: &str) -> impl Iterator<Item = &str> {
    let targets = line
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next());
    targets.filter(|target| !target.starts_with('#') && !target.contains("://"))
}

fn is_path(root: &Path, word: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:".contains(c);
    if !word.chars().all(plain) || word.starts_with('/') || word.contains("://") {
        return false;
    }
    let bare = word.split(':').next().unwrap_or(word);
    let named = ENDINGS
        .iter()
        .any(|ending| bare.len() > ending.len() && bare.ends_with(ending));
    named
        || bare
            .split_once('/')
            .is_some_and(|(first, _)| is_ours(root, first))
}

/// Whether a folder at the top is part of the house. What is built there is not.
fn is_ours(root: &Path, folder: &str) -> bool {
    !folder.is_empty() && folder != "target" && root.join(folder).is_dir()
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::files::File;

    /// Checks a page in a folder that holds `a/b.rs` and `docs/c.md`.
    fn broken(text: &str) -> Vec<String> {
        let root = tempfile::tempdir().unwrap();
        for folder in ["a", "docs"] {
            std::fs::create_dir(root.path().join(folder)).unwrap();
        }
        for file in ["a/b.rs", "docs/c.md"] {
            std::fs::write(root.path().join(file), "").unwrap();
        }
        let findings = check(root.path(), &File::new("docs/page.md", text));
        findings
            .into_iter()
            .map(|finding| finding.to_string())
            .collect()
    }

    #[test]
    fn what_exists_passes() {
        let text = "`a/b.rs`, `a/b.rs:12`, `a/b.rs::item`, `docs/c.md`, `c.md`, `a/`,\n\
                    [c](c.md#part), [out](https://example.org/x.md), [here](#part)\n";
        assert_eq!(broken(text), [""; 0]);
    }

    #[test]
    fn paths_count_from_folders_that_the_page_names() {
        assert_eq!(broken("`b.rs`\n").len(), 1);
        assert_eq!(broken("Files are in `a/`.\n`b.rs`\n"), [""; 0]);
    }

    #[test]
    fn what_is_no_path_passes() {
        let text = "`a/*.rs`, `$HOME/x.rs`, `and/or`, `/usr/bin/bash`, `.c`, `target/x.c/y`\n\
                    ```\n`a/missing.rs`\n```\n";
        assert_eq!(broken(text), [""; 0]);
    }

    #[test]
    fn what_does_not_exist_is_flagged() {
        let text = "fine\n`a/gone`\n`gone.rs`\n[gone](../gone.txt)\n";
        let lines: Vec<_> = broken(text)
            .iter()
            .map(|line| line[..14].to_owned())
            .collect();
        assert_eq!(
            lines,
            ["docs/page.md:2", "docs/page.md:3", "docs/page.md:4"]
        );
    }
}
