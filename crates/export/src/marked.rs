//! Lines that the source itself asks to be left out of coverage, by the marks of lcov and gcovr.
//!
//! | mark | leaves out |
//! |---|---|
//! | `LCOV_EXCL_LINE` | the line that it is in |
//! | `LCOV_EXCL_START`, `LCOV_EXCL_STOP` | from the line of the first on, up to that of the second; without a second to the end |
//! | `LCOV_EXCL_BR_LINE`, `LCOV_EXCL_BR_START`, `LCOV_EXCL_BR_STOP` | the branches of the same lines |
//!
//! They may begin with `GCOV` or `GCOVR` instead. Sources: geninfo(1), "Exclusion
//! markers"; gcovr's manual, "Exclusion Markers". Linear in the text.

use memchr::memmem;

/// How marks begin.
const STYLES: [&[u8]; 3] = [b"LCOV", b"GCOV", b"GCOVR"];
/// What all of them have behind that.
const EXCLUDED: &[u8] = b"_EXCL_";

/// What the marks of a source file leave out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marked {
    lines: Regions,
    branches: Regions,
}

/// Lines from a first to a second, which is not one of them; none begins where another does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Regions {
    all: Vec<(u32, u32)>,
    /// Whether the last one has no end so far.
    is_open: bool,
}

impl Regions {
    /// Whether this line is in one.
    fn have(&self, line: u32) -> bool {
        let before = self.all.partition_point(|(first, _)| *first <= line);
        let last = self.all[..before].last();
        last.is_some_and(|(_, end)| line < *end)
    }

    fn take(&mut self, mark: Mark, line: u32) {
        match mark {
            Mark::Line if !self.is_open => self.begin(line, line + 1),
            Mark::Start if !self.is_open => {
                self.begin(line, u32::MAX);
                self.is_open = true;
            }
            Mark::Stop if self.is_open => {
                if let Some((first, end)) = self.all.last_mut() {
                    *end = line.max(*first + 1);
                }
                self.is_open = false;
            }
            // In a region that is left out anyway, or in none.
            _ => {}
        }
    }

    /// A line may begin one that goes on behind it, once it is in one by itself.
    fn begin(&mut self, line: u32, end: u32) {
        match self.all.last_mut().filter(|last| last.0 == line) {
            Some(last) => last.1 = last.1.max(end),
            None => self.all.push((line, end)),
        }
    }
}

#[derive(Clone, Copy)]
enum Mark {
    Line,
    Start,
    Stop,
}

impl Marked {
    /// What the marks in this source leave out.
    pub(crate) fn of(source: &[u8]) -> Self {
        let mut marked = Self::default();
        let (mut line, mut seen) = (1, 0);
        for at in memmem::find_iter(source, EXCLUDED) {
            line += memchr::memchr_iter(b'\n', &source[seen..at]).count() as u32;
            seen = at;
            if !STYLES.contains(&word_before(&source[..at])) {
                continue;
            }
            let mark = word_at(&source[at + EXCLUDED.len()..]);
            let (regions, mark) = match mark.strip_prefix(b"BR_") {
                Some(mark) => (&mut marked.branches, mark),
                None => (&mut marked.lines, mark),
            };
            let mark = match mark {
                b"LINE" => Mark::Line,
                b"START" => Mark::Start,
                b"STOP" => Mark::Stop,
                _ => continue,
            };
            regions.take(mark, line);
        }
        marked
    }

    /// Whether something is left out up to the end, as nothing stops it.
    pub(crate) fn is_open(&self) -> bool {
        self.lines.is_open || self.branches.is_open
    }

    /// Whether this line is left out.
    pub(crate) fn has_line(&self, line: u32) -> bool {
        self.lines.have(line)
    }

    /// Whether branches of this line are.
    pub(crate) fn has_branches(&self, line: u32) -> bool {
        self.branches.have(line) || self.has_line(line)
    }
}

fn is_letter(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || *byte == b'_'
}

/// Letters that words of interest have at most, and one more: a text may be one word.
const LONGEST: usize = "BR_START".len() + 1;

/// The word that `text` begins with, as far as it is of interest.
fn word_at(text: &[u8]) -> &[u8] {
    let text = &text[..text.len().min(LONGEST)];
    let end = text.iter().position(|byte| !is_letter(byte));
    &text[..end.unwrap_or(text.len())]
}

/// The word that `text` ends with, as far as it is of interest.
fn word_before(text: &[u8]) -> &[u8] {
    let text = &text[text.len().saturating_sub(LONGEST)..];
    let start = text.iter().rposition(|byte| !is_letter(byte));
    &text[start.map_or(0, |start| start + 1)..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The lines that are left out, and those of which the branches are.
    fn left_out(source: &str) -> (Vec<u32>, Vec<u32>) {
        let marked = Marked::of(source.as_bytes());
        let lines = 1..=source.lines().count() as u32 + 1;
        let has_line = lines.clone().filter(|line| marked.has_line(*line));
        let has_branches = lines.clone().filter(|line| marked.has_branches(*line));
        (has_line.collect(), has_branches.collect())
    }

    #[test]
    fn marks_do_what_they_do_for_lcov_and_gcovr() {
        for (source, lines) in [
            ("a\nb // LCOV_EXCL_LINE\nc", vec![2]),
            (
                "a // GCOVR_EXCL_START\nb\nc // GCOVR_EXCL_STOP\nd",
                vec![1, 2],
            ),
            (
                "/* GCOV_EXCL_LINE */\n\n// LCOV_EXCL_LINE: never\n",
                vec![1, 3],
            ),
            ("a\n// LCOV_EXCL_START\nb", vec![2, 3, 4]),
            (
                "// LCOV_EXCL_START\n// GCOV_EXCL_STOP\n// LCOV_EXCL_STOP\nd",
                vec![1],
            ),
            (
                "// LCOV_EXCL_START\n// LCOV_EXCL_START\n// LCOV_EXCL_STOP\nd",
                vec![1, 2],
            ),
            (
                "LCOV_EXCL_LINES XLCOV_EXCL_LINE lcov_excl_line LCOV_EXCL_",
                vec![],
            ),
            ("// LCOV_EXCL_STOP LCOV_EXCL_LINE\nb", vec![1]),
            ("/* LCOV_EXCL_START */ a /* LCOV_EXCL_STOP */\nb", vec![1]),
            (
                "a // LCOV_EXCL_LINE LCOV_EXCL_START\nb\n// LCOV_EXCL_STOP",
                vec![1, 2],
            ),
            (
                "// LCOV_EXCL_START LCOV_EXCL_STOP LCOV_EXCL_LINE\nb",
                vec![1],
            ),
        ] {
            let (found, branches) = left_out(source);
            assert_eq!(found, lines, "{source}");
            assert_eq!(branches, lines, "{source}");
        }
    }

    #[test]
    fn branches_are_left_out_by_marks_of_their_own() {
        let source = "a // LCOV_EXCL_BR_LINE\nb // LCOV_EXCL_BR_START\nc // LCOV_EXCL_LINE\nd // LCOV_EXCL_BR_STOP\n";
        assert_eq!(left_out(source), (vec![3], vec![1, 2, 3]));
    }

    /// Within a second, not a day.
    #[test]
    fn a_text_of_one_word_is_read_once() {
        let source = "_EXCL_".repeat(1 << 20);
        assert_eq!(Marked::of(source.as_bytes()), Marked::default());
        assert!(Marked::of(b"// LCOV_EXCL_BR_START").is_open());
    }

    proptest! {
        /// Against lines that are read one after the other, as the manuals say it.
        #[test]
        fn regions_are_those_of_the_definition(marks in prop::collection::vec(0..7_usize, 0..40)) {
            let texts = [
                "", "LCOV_EXCL_LINE", "LCOV_EXCL_START", "LCOV_EXCL_STOP",
                "GCOVR_EXCL_START", "GCOVR_EXCL_STOP", "LCOV_EXCL_BR_LINE",
            ];
            let source: Vec<&str> = marks.iter().map(|mark| texts[*mark]).collect();
            let (mut is_open, mut expected) = (false, Vec::new());
            for (line, text) in (1..).zip(&source) {
                is_open = (is_open || text.ends_with("_START")) && !text.ends_with("_STOP");
                if is_open || *text == "LCOV_EXCL_LINE" {
                    expected.push(line);
                }
            }
            let mut found = left_out(&source.join("\n")).0;
            found.retain(|line| *line as usize <= source.len());
            prop_assert_eq!(found, expected);
        }
    }
}
