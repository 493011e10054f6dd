//! lcov's tracefile, as geninfo(1) describes it: `genhtml`, `lcov` and most services read it.
//!
//! Hits are 0 or 1: what is recorded is that something ran, not how often. What could not be observed
//! has no record at all, as code that was not instrumented: readers take `-` for a side that was missed.
//! A branch in a block that did not run has `-` twice, as the format demands; genhtml from version 2 on takes it for an error, unless told
//! otherwise, if its line ran all the same, as lines of optimised code do. Where only functions were
//! observed the lines are those that they begin at. What was inferred is said elsewhere: comments are not part of the
//! format for all who read it (diff-cover).

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use tomo_profile::merge::Finding;

use crate::{Branch, File, Line, Picture};

/// Writes the tracefile.
///
/// # Errors
/// Where `out` cannot be written.
pub fn write(out: &mut dyn Write, picture: &Picture) -> io::Result<()> {
    for file in &picture.files {
        write_name(out, &file.place)?;
        write_functions(out, file)?;
        write_branches(out, file)?;
        let lines = picture.lines_of(file);
        let ran = |line: &Line| Some((line.number, line.finding.ran()?.into()));
        write_lines(out, lines.iter().filter_map(ran))?;
        writeln!(out, "end_of_record")?;
    }
    Ok(())
}

/// Begins the record of a file, whose name is written byte by byte.
pub(crate) fn write_name(out: &mut dyn Write, file: &Path) -> io::Result<()> {
    let mut name = file.as_os_str().as_bytes().to_vec();
    name.iter_mut()
        .filter(|byte| matches!(byte, b'\n' | b'\r'))
        .for_each(|byte| *byte = b'?');
    out.write_all(b"TN:\nSF:")?;
    out.write_all(&name)?;
    writeln!(out)
}

/// Names come from outside; a line break in one would be a record of its own.
pub(crate) fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], "?")
}

/// `FN` and `FNDA`. Functions of one name at several lines are one; but compilers do not name all that they put in place of calls
/// as linkers would, so that lambdas and the like share names.
fn write_functions(out: &mut dyn Write, file: &File) -> io::Result<()> {
    let mut functions: BTreeMap<String, (u32, bool)> = BTreeMap::new();
    for function in &file.functions {
        let Some(ran) = function.entered.ran() else {
            continue;
        };
        // genhtml from version 2 on has no place for a function without a line; of some there is none with code.
        if function.of.is_empty() && file.line(function.line).is_none() {
            continue;
        }
        let mut name = one_line(function.name.as_deref().unwrap_or(&function.title));
        let known = functions.get(&name);
        if function.of.is_empty() && known.is_some_and(|known| known.0 != function.line) {
            name = format!("{name}:{}", function.line);
        }
        let entry = functions.entry(name).or_insert((function.line, false));
        entry.0 = entry.0.min(function.line);
        entry.1 |= ran;
    }
    let all = functions.iter();
    let all = all.map(|(name, (line, ran))| (*line, name.as_str(), (*ran).into()));
    write_entered(out, all)
}

/// `FN` and `FNDA` of functions: the line, the name, and how often each was entered.
pub(crate) fn write_entered<'f>(
    out: &mut dyn Write,
    functions: impl Iterator<Item = (u32, &'f str, u64)> + Clone,
) -> io::Result<()> {
    for (line, name, _) in functions.clone() {
        writeln!(out, "FN:{line},{name}")?;
    }
    for (_, name, times) in functions.clone() {
        writeln!(out, "FNDA:{times},{name}")?;
    }
    let hit = functions.clone().filter(|(_, _, times)| *times > 0).count();
    writeln!(out, "FNF:{}\nFNH:{hit}", functions.count())
}

fn write_branches(out: &mut dyn Write, file: &File) -> io::Result<()> {
    let (mut found, mut hit) = (0, 0);
    for branches in file.branches.chunk_by(|one, next| one.line == next.line) {
        for (block, branch) in branches.iter().enumerate() {
            let sides = branch.sides().into_iter().enumerate();
            for (side, finding) in sides.filter(|(_, finding)| *finding != Finding::Unknown) {
                let taken = sign(branch, finding);
                writeln!(out, "BRDA:{},{block},{side},{taken}", branch.line)?;
                found += 1;
                hit += usize::from(taken == "1");
            }
        }
    }
    writeln!(out, "BRF:{found}\nBRH:{hit}")
}

fn sign(branch: &Branch, side: Finding) -> &'static str {
    match side.ran() {
        Some(true) => "1",
        Some(false) if branch.block.ran() == Some(true) => "0",
        _ => "-",
    }
}

/// `DA` of lines, with how often each ran.
pub(crate) fn write_lines(
    out: &mut dyn Write,
    lines: impl Iterator<Item = (u32, u64)> + Clone,
) -> io::Result<()> {
    for (line, times) in lines.clone() {
        writeln!(out, "DA:{line},{times}")?;
    }
    let hit = lines.clone().filter(|(_, times)| *times > 0).count();
    writeln!(out, "LF:{}\nLH:{hit}", lines.count())
}
