//! Names of source files: how DWARF puts them together, and numbers for them.
//!
//! DWARF 5 §6.2.4 (`include_directories`, `file_names`; the directory 0 is that of the compilation),
//! and version 4 of the same section, where files and directories count from 1.

use super::sections::{Sections, Slice};
use super::troubles::Troubles;
use super::unit::{Context, Unit};
use crate::text_of_bytes;
use gimli::{LineProgramHeader, SectionId};
use rustc_hash::FxHashMap;

/// Longer paths are taken for garbage: the kernel's limit.
const LONGEST_PATH: usize = 4096;

/// The path of a file of a line program, by its number there, as text that loses nothing.
pub(super) fn path<'a>(
    context: &Context<'a>,
    unit: &Unit<'a>,
    header: &LineProgramHeader<Slice<'a>>,
    file: u64,
) -> Option<String> {
    let text = |value| context.text(unit, value).map(|text| text.slice());
    let file = header.file(file)?;
    let name = text(file.path_name())?;
    let directory = file.directory(header).and_then(text).unwrap_or_default();
    let base = unit.comp_dir.map_or(&[][..], |base| base.slice());
    let mut path = Vec::new();
    // The directory of the compilation is not relative to itself, even if it is relative.
    for part in [if directory == base { &[] } else { base }, directory, name] {
        join(&mut path, part);
    }
    (path.len() <= LONGEST_PATH).then(|| text_of_bytes(&path))
}

/// Appends `part` to a path, which it replaces if it is absolute.
fn join(path: &mut Vec<u8>, part: &[u8]) {
    if part.is_empty() {
        return;
    }
    if part[0] == b'/' {
        path.clear();
    } else if path.last().is_some_and(|&last| last != b'/') {
        path.push(b'/');
    }
    path.extend_from_slice(part);
}

/// All files of the program, each once.
pub(super) struct Files {
    numbers: FxHashMap<String, u32>,
    /// Many entries may refer to one long directory; what they may come to has a bound.
    budget: usize,
    left_out: usize,
}

impl Files {
    /// What a path may come to without the sections having the bytes for it.
    const FREE: usize = 256;

    pub(super) fn new(sections: &Sections<'_>) -> Self {
        let ids = [
            SectionId::DebugLine,
            SectionId::DebugLineStr,
            SectionId::DebugStr,
        ];
        let budget = ids
            .iter()
            .map(|&id| sections.get(id).len())
            .sum::<usize>()
            .saturating_mul(4);
        Self {
            numbers: FxHashMap::default(),
            budget,
            left_out: 0,
        }
    }

    /// The number of a path; `None` if it has no name or there are too many long ones.
    pub(super) fn number(&mut self, path: &str) -> Option<u32> {
        if path.is_empty() {
            return None;
        }
        if let Some(&number) = self.numbers.get(path) {
            return Some(number);
        }
        let Some(rest) = self
            .budget
            .checked_sub(path.len().saturating_sub(Self::FREE))
        else {
            self.left_out += 1;
            return None;
        };
        self.budget = rest;
        let number = u32::try_from(self.numbers.len()).ok()?;
        self.numbers.insert(path.to_owned(), number);
        Some(number)
    }

    /// All paths, by number.
    pub(super) fn finish(self, troubles: &mut Troubles) -> Vec<String> {
        if self.left_out > 0 {
            let what = "the paths of all files together are impossibly long, some are left out";
            troubles.add(".debug_line", 0, what, &self.left_out);
        }
        let mut paths: Vec<(u32, String)> = self.numbers.into_iter().map(|(p, n)| (n, p)).collect();
        paths.sort_unstable();
        paths.into_iter().map(|(_, path)| path).collect()
    }
}
