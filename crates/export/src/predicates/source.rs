//! The source itself, where it is there.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use tomo_program::path_of;

/// A line of a source file.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Line {
    /// The file, as debug information states it.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
}

impl Line {
    /// The file's name without its folder, and the line.
    #[must_use]
    pub fn short(&self) -> String {
        let name = self.file.rsplit('/').next().unwrap_or_default();
        format!("{name}:{}", self.line)
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// Source files, read when they are first asked for.
#[derive(Debug, Default)]
pub struct Sources {
    files: HashMap<String, Option<Text>>,
}

/// A file's text.
#[derive(Debug)]
struct Text {
    bytes: Vec<u8>,
    /// Where its lines end.
    ends: Vec<usize>,
}

impl Text {
    fn read(file: &str) -> Option<Self> {
        let bytes = std::fs::read(path_of(file)).ok()?;
        let mut ends: Vec<usize> = memchr::memchr_iter(b'\n', &bytes).collect();
        if bytes.last().is_some_and(|last| *last != b'\n') {
            ends.push(bytes.len());
        }
        Some(Self { bytes, ends })
    }

    /// A line, from 1.
    fn line(&self, line: u32) -> Option<Cow<'_, str>> {
        let at = (line as usize).checked_sub(1)?;
        let end = *self.ends.get(at)?;
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before] + 1);
        let line = self.bytes.get(start..end)?;
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        Some(String::from_utf8_lossy(line))
    }
}

impl Sources {
    fn file(&mut self, file: &str) -> Option<&Text> {
        if !self.files.contains_key(file) {
            self.files.insert(file.to_owned(), Text::read(file));
        }
        self.files.get(file)?.as_ref()
    }

    /// A line of a file, from 1, if it is there.
    pub fn line(&mut self, file: &str, line: u32) -> Option<Cow<'_, str>> {
        self.file(file)?.line(line)
    }

    /// A line's text without the space around it, if the file is there.
    pub fn text(&mut self, line: &Line) -> Option<String> {
        let text = self.line(&line.file, line.line)?;
        Some(text.trim().to_owned())
    }

    /// The lines from `before` lines before to as many behind, with their numbers.
    pub fn around(&mut self, line: &Line, before: u32) -> Vec<(u32, String)> {
        let first = line.line.saturating_sub(before).max(1);
        let Some(text) = self.file(&line.file) else {
            return Vec::new();
        };
        let last = line.line.saturating_add(before);
        let near = (first..=last).map_while(|at| Some((at, text.line(at)?.into_owned())));
        near.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{Line, Sources};

    /// Lines are those of the standard library.
    #[test]
    fn lines_are_lines() {
        let folder = tempfile::tempdir().expect("a folder");
        for (number, text) in ["", "a", "a\n", "\n\nb\r\nc", "a\r\n\r\nd\n"]
            .iter()
            .enumerate()
        {
            let path = folder.path().join(number.to_string());
            std::fs::write(&path, text).expect("written");
            let file = path.display().to_string();
            let mut sources = Sources::default();
            for (at, line) in (1..).zip(text.lines()) {
                assert_eq!(sources.line(&file, at).as_deref(), Some(line), "{text:?}");
            }
            let behind = text.lines().count() as u32 + 1;
            assert_eq!(sources.line(&file, behind), None, "{text:?}");
            assert_eq!(sources.line(&file, 0), None);
        }
        assert_eq!(
            sources_around(&folder.path().join("4")),
            [(1, "a"), (2, ""), (3, "d")].map(|(at, text)| (at, text.to_owned()))
        );
        let file = folder.path().join("none").display().to_string();
        assert_eq!(Sources::default().text(&Line { file, line: 1 }), None);
    }

    fn sources_around(path: &std::path::Path) -> Vec<(u32, String)> {
        let file = path.display().to_string();
        Sources::default().around(&Line { file, line: 2 }, 5)
    }
}
