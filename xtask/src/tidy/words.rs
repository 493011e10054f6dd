//! What no file may say: paths of one machine, open ends, references to a tracker that readers of
//! the repository do not have, and the marks of an unfinished merge. Compiled programs are not
//! committed either, and no file is without an end of its last line.

use super::Finding;
use super::files::File;

/// Written in halves, so that this file does not break its own rule.
const PATHS: [&str; 3] = [
    concat!("/wo", "rk/"),
    concat!("/tm", "p/"),
    concat!("/ro", "ot/"),
];
const OPEN_ENDS: [&str; 2] = [concat!("TO", "DO"), concat!("FIX", "ME")];
const MERGE: [&str; 2] = [concat!("<<<", "<<<< "), concat!(">>>", ">>>> ")];

pub(super) fn check(file: &File) -> Vec<Finding> {
    if ["Cargo.lock", "fuzz/Cargo.lock"].contains(&file.path.as_str()) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    if file.text.starts_with("\u{7f}ELF") {
        findings.push(Finding::new(
            "words",
            &file.path,
            0,
            "is a compiled program",
        ));
    }
    if !file.text.is_empty() && !file.text.ends_with('\n') {
        findings.push(Finding::new(
            "words",
            &file.path,
            0,
            "does not end its last line",
        ));
    }
    for (index, line) in file.text.lines().enumerate() {
        let faults = faults(line).into_iter();
        findings.extend(faults.map(|what| Finding::new("words", &file.path, index + 1, what)));
    }
    findings
}

fn faults(line: &str) -> Vec<String> {
    let mut faults = Vec::new();
    for path in PATHS.iter().filter(|path| names_path(line, path)) {
        faults.push(format!("names {path}, a path of one machine"));
    }
    for word in OPEN_ENDS.iter().filter(|word| has_word(line, word)) {
        faults.push(format!("leaves a {word}"));
    }
    if MERGE.iter().any(|mark| line.starts_with(mark)) {
        faults.push("holds the mark of an unfinished merge".into());
    }
    if names_issue(line) {
        faults.push("names a numbered issue, which readers do not have".into());
    }
    faults
}

/// Whether an absolute path starts so; a relative one may hold such a part.
fn names_path(line: &str, path: &str) -> bool {
    let before = |at: usize| line[..at].chars().next_back();
    let inside = |c: char| c.is_alphanumeric() || "_-.}>*~".contains(c);
    line.match_indices(path)
        .any(|(at, _)| !before(at).is_some_and(inside))
}

fn has_word(line: &str, word: &str) -> bool {
    line.split(|c: char| !c.is_alphanumeric())
        .any(|part| part == word)
}

fn names_issue(line: &str) -> bool {
    let words: Vec<_> = line.split_whitespace().collect();
    words.windows(2).any(|pair| {
        let number = pair[1].trim_start_matches('#');
        pair[0].eq_ignore_ascii_case("issue") && number.starts_with(|c: char| c.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use super::{MERGE, OPEN_ENDS, PATHS, check};
    use crate::tidy::files::File;

    fn faults(text: &str) -> usize {
        check(&File::new("a.rs", text)).len()
    }

    #[test]
    fn machine_paths_are_flagged() {
        for path in PATHS {
            assert_eq!(faults(&format!("see \"{path}x\"\n")), 1, "{path}");
            assert_eq!(faults(&format!("see crates{path}x\n")), 0, "{path}");
        }
    }

    #[test]
    fn open_ends_and_merge_marks_are_flagged() {
        assert_eq!(faults(&format!("// {}: later\n", OPEN_ENDS[0])), 1);
        assert_eq!(faults(&format!("// {}S\n", OPEN_ENDS[0])), 0);
        assert_eq!(faults(&format!("{}ours\n", MERGE[0])), 1);
    }

    #[test]
    fn issues_by_number_are_flagged() {
        assert_eq!(faults(&format!("as issue {} says\n", 3)), 1);
        assert_eq!(faults(&format!("as Issue #{}\n", 3)), 1);
        assert_eq!(faults("an issue of 3 pages\n"), 0);
    }

    #[test]
    fn programs_and_torn_ends_are_flagged() {
        assert_eq!(faults("\u{7f}ELF\n"), 1);
        assert_eq!(faults("no end"), 1);
        assert_eq!(faults(""), 0);
    }
}
