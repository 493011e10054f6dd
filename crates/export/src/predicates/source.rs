//! The source itself, where it is there.

use std::collections::HashMap;
use std::fmt;

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
    files: HashMap<String, Option<Vec<String>>>,
}

impl Sources {
    fn file(&mut self, file: &str) -> Option<&[String]> {
        let lines = self.files.entry(file.into()).or_insert_with(|| {
            let bytes = std::fs::read(file).ok()?;
            let text = String::from_utf8_lossy(&bytes).into_owned();
            Some(text.lines().map(str::to_owned).collect())
        });
        lines.as_deref()
    }

    /// A line's text without the space around it, if the file is there.
    pub fn text(&mut self, line: &Line) -> Option<&str> {
        let lines = self.file(&line.file)?;
        let at = (line.line as usize).checked_sub(1)?;
        Some(lines.get(at)?.trim())
    }

    /// The lines from `before` lines before to as many behind, with their numbers.
    pub fn around(&mut self, line: &Line, before: u32) -> Vec<(u32, String)> {
        let first = line.line.saturating_sub(before).max(1);
        let lines = self.file(&line.file).unwrap_or_default();
        let numbered = (1u32..).zip(lines);
        let near = numbered.filter(|(at, _)| (first..=line.line + before).contains(at));
        near.map(|(at, text)| (at, text.clone())).collect()
    }
}
