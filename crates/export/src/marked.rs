//! Lines that the source itself asks to be left out of coverage, by the marks of lcov and gcovr.
//!
//! | mark | leaves out |
//! |---|---|
//! | `LCOV_EXCL_LINE` | the line that it is in |
//! | `LCOV_EXCL_START`, `LCOV_EXCL_STOP` | from the line of the first on, up to that of the second; without a second to the end |
//! | `LCOV_EXCL_BR_LINE`, `LCOV_EXCL_BR_START`, `LCOV_EXCL_BR_STOP` | the branches of the same lines |
//!
//! They may begin with `GCOV` or `GCOVR` instead; what one of them starts another does not stop. Sources: geninfo(1), "Exclusion
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
    /// The style of the last one, as long as it has no end.
    open: Option<usize>,
}

impl Regions {
    /// Whether this line is in one.
    fn have(&self, line: u32) -> bool {
        let before = self.all.partition_point(|(first, _)| *first <= line);
        let last = self.all[..before].last();
        last.is_some_and(|(_, end)| line < *end)
    }

    fn take(&mut self, mark: Mark, style: usize, line: u32) {
        match (mark, self.open) {
            (Mark::Line, None) => self.begin(line, line + 1),
            (Mark::Start, None) => {
                self.begin(line, u32::MAX);
                self.open = Some(style);
            }
            (Mark::Stop, Some(open)) if open == style => {
                if let Some((first, end)) = self.all.last_mut() {
                    *end = line.max(*first + 1);
                }
                self.open = None;
            }
            // In a region that is left out anyway, or of another style.
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
            let style = STYLES
                .iter()
                .position(|style| word_before(&source[..at]) == *style);
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
            if let Some(style) = style {
                regions.take(mark, style, line);
            }
        }
        marked
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

/// The word that `text` begins with.
fn word_at(text: &[u8]) -> &[u8] {
    let end = text.iter().position(|byte| !is_letter(byte));
    &text[..end.unwrap_or(text.len())]
}

/// The word that `text` ends with.
fn word_before(text: &[u8]) -> &[u8] {
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
                vec![1, 2],
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

    proptest! {
        /// Against lines that are read one after the other, as the manuals say it.
        #[test]
        fn regions_are_those_of_the_definition(marks in prop::collection::vec(0..7_usize, 0..40)) {
            let texts = [
                "", "LCOV_EXCL_LINE", "LCOV_EXCL_START", "LCOV_EXCL_STOP",
                "GCOVR_EXCL_START", "GCOVR_EXCL_STOP", "LCOV_EXCL_BR_LINE",
            ];
            let source: Vec<&str> = marks.iter().map(|mark| texts[*mark]).collect();
            let (mut open, mut expected) = (None, Vec::new());
            for (line, text) in (1..).zip(&source) {
                let style = text.split('_').next();
                if open.is_none() && text.ends_with("_START") {
                    open = style;
                } else if open == style && text.ends_with("_STOP") {
                    open = None;
                }
                if open.is_some() || *text == "LCOV_EXCL_LINE" {
                    expected.push(line);
                }
            }
            let mut found = left_out(&source.join("\n")).0;
            found.retain(|line| *line as usize <= source.len());
            prop_assert_eq!(found, expected);
        }
    }
}
