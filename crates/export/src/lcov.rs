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

use crate::{Branch, File, Line, Picture, Tally};

/// Writes the tracefile.
///
/// # Errors
/// Where `out` cannot be written.
pub fn write(out: &mut dyn Write, picture: &Picture) -> io::Result<()> {
    for file in &picture.files {
        write_name(out, &file.place)?;
        write_functions(out, file)?;
        write_branches(out, file)?;
        write_lines(out, &picture.lines_of(file))?;
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
fn one_line(text: &str) -> String {
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
    for (name, (line, _)) in &functions {
        writeln!(out, "FN:{line},{name}")?;
    }
    for (name, (_, ran)) in &functions {
        writeln!(out, "FNDA:{},{name}", u8::from(*ran))?;
    }
    let ran = functions.values().filter(|(_, ran)| *ran).count();
    writeln!(out, "FNF:{}\nFNH:{ran}", functions.len())
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

fn write_lines(out: &mut dyn Write, lines: &[Line]) -> io::Result<()> {
    for line in lines {
        if let Some(ran) = line.finding.ran() {
            writeln!(out, "DA:{},{}", line.number, u8::from(ran))?;
        }
    }
    let lines: Tally = lines.iter().map(|line| line.finding).collect();
    writeln!(out, "LF:{}\nLH:{}", lines.known(), lines.ran)
}
