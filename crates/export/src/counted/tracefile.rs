//! lcov's tracefile with counts, as geninfo(1) describes it. What is not known has no record.

use std::collections::BTreeMap;
use std::io::{self, Write};

use tomo_program::path_of;

use super::Counted;
use crate::lcov::write_name;

/// Writes the tracefile.
///
/// # Errors
/// Where `out` cannot be written, or the model is damaged.
pub fn write(out: &mut dyn Write, counted: &Counted) -> io::Result<()> {
    let graphs = counted.graphs().map_err(io::Error::other)?;
    let mut functions: BTreeMap<&str, Vec<(u32, String, u64)>> = BTreeMap::new();
    for function in counted.functions(&graphs) {
        if let (Some(place), Some(times)) = (function.place, function.counts.activations) {
            let name = function
                .view
                .name()
                .map_or_else(|| function.view.title(), str::to_owned);
            let name = name.replace(['\n', '\r'], "?");
            let file = functions.entry(counted.file(place)).or_default();
            file.push((place.line, name, times));
        }
    }
    for (path, lines) in counted.line_counts().map_err(io::Error::other)? {
        write_name(out, &path_of(path))?;
        let here = functions.get(path).map_or(&[][..], Vec::as_slice);
        for (line, name, _) in here {
            writeln!(out, "FN:{line},{name}")?;
        }
        for (_, name, times) in here {
            writeln!(out, "FNDA:{times},{name}")?;
        }
        let hit = here.iter().filter(|(_, _, times)| *times > 0).count();
        writeln!(out, "FNF:{}\nFNH:{hit}", here.len())?;
        let known = || {
            lines
                .iter()
                .filter_map(|(line, count)| Some((line, (*count)?)))
        };
        for (line, count) in known() {
            writeln!(out, "DA:{line},{count}")?;
        }
        let hit = known().filter(|(_, count)| *count > 0).count();
        writeln!(out, "LF:{}\nLH:{hit}\nend_of_record", known().count())?;
    }
    Ok(())
}
