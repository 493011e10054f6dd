//! lcov's tracefile with counts, as geninfo(1) describes it. What is not known has no record.

use std::collections::BTreeMap;
use std::io::{self, Write};

use tomo_program::path_of;

use super::Counted;
use crate::lcov::{one_line, write_entered, write_lines, write_name};

/// Writes the tracefile.
///
/// # Errors
/// Where `out` cannot be written, or the model is damaged.
pub fn write(out: &mut dyn Write, counted: &Counted) -> io::Result<()> {
    let graphs = counted.graphs().map_err(io::Error::other)?;
    let mut functions: BTreeMap<&str, Vec<(u32, String, u64)>> = BTreeMap::new();
    for function in counted.functions(&graphs) {
        if let (Some(place), Some(times)) = (function.place, function.counts.activations) {
            let view = &function.view;
            let name = view.name().map_or_else(|| view.title(), str::to_owned);
            let file = functions.entry(counted.file(place)).or_default();
            file.push((place.line, one_line(&name), times));
        }
    }
    for (path, lines) in counted.line_counts().map_err(io::Error::other)? {
        write_name(out, &path_of(path))?;
        let here = functions.get(path).map_or(&[][..], Vec::as_slice);
        let here = here.iter();
        write_entered(
            out,
            here.map(|(line, name, times)| (*line, &**name, *times)),
        )?;
        let known = lines.iter();
        write_lines(
            out,
            known.filter_map(|(line, times)| Some((*line, (*times)?))),
        )?;
        writeln!(out, "end_of_record")?;
    }
    Ok(())
}
