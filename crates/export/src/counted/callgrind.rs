//! Callgrind's profile format, which KCachegrind opens: <https://valgrind.org/docs/manual/cl-format.html>.
//!
//! Two events: how often blocks ran, and how many instructions that makes. Both are of the function itself;
//! what its callees cost is not in it, since who called how often from where is not known of indirect calls.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::pprof::executed;
use super::{Counted, Written};

/// Writes the profile of a run of `command`.
///
/// # Errors
/// Where `out` cannot be written, the model is damaged, or a number is larger than 64 bits hold.
pub fn write(out: &mut dyn Write, counted: &Counted, command: &str) -> io::Result<()> {
    let graphs = counted.graphs().map_err(io::Error::other)?;
    writeln!(out, "# callgrind format\nversion: 1\ncreator: tomograph")?;
    writeln!(out, "cmd: {}", command.replace(['\n', '\r'], " "))?;
    writeln!(out, "positions: line\nevents: Ir Blocks\n")?;
    writeln!(out, "ob={}", counted.located.path.display())?;
    for function in counted.functions(&graphs) {
        write_function(out, counted, &function)?;
    }
    Ok(())
}

fn write_function(
    out: &mut dyn Write,
    counted: &Counted,
    function: &Written<'_, '_>,
) -> io::Result<()> {
    let mut files: BTreeMap<&str, BTreeMap<u32, (u64, u64)>> = BTreeMap::new();
    for (block, count) in function.view.blocks().zip(&function.counts.blocks) {
        let Some(count) = count.filter(|count| *count > 0) else {
            continue;
        };
        let place = counted.start(block);
        let file = place.map_or("???", |place| counted.file(place));
        let line = place.map_or(0, |place| place.line);
        let costs = files.entry(file).or_default().entry(line).or_default();
        let too_many = || io::Error::other("more instructions were executed than 64 bits count");
        let executed = executed(count, block.instructions())?;
        costs.0 = costs.0.checked_add(executed).ok_or_else(too_many)?;
        costs.1 = costs.1.checked_add(count).ok_or_else(too_many)?;
    }
    if files.is_empty() {
        return Ok(());
    }
    let own = function.place.map_or("???", |place| counted.file(place));
    writeln!(
        out,
        "fl={own}\nfn={}",
        function.view.title().replace(['\n', '\r'], "?")
    )?;
    for (file, lines) in files {
        // A part of the function that comes from elsewhere: inlined.
        let kind = if file == own { "fe" } else { "fi" };
        writeln!(out, "{kind}={file}")?;
        for (line, (instructions, blocks)) in lines {
            writeln!(out, "{line} {instructions} {blocks}")?;
        }
    }
    writeln!(out)
}
