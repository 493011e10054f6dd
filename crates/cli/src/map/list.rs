//! All functions, one a line, for people.

use std::io::{self, Write};

use rayon::prelude::*;
use tomo_program::Graphs;

/// Writes a line for each function: address, size, blocks, how much is known, name.
pub(crate) fn write(out: &mut dyn Write, graphs: &Graphs<'_>) -> io::Result<()> {
    writeln!(
        out,
        "{:>18} {:>9} {:>7} {:<8} NAME",
        "ADDRESS", "BYTES", "BLOCKS", "STATUS"
    )?;
    // Names take longest to make: on all processors, a batch at a time.
    let functions: Vec<_> = graphs.functions().collect();
    for batch in functions.chunks(4096) {
        let lines: Vec<String> = batch
            .par_iter()
            .map(|f| {
                let (entry, status) = (format!("{:#x}", f.entry()), f.status().name());
                let title = printable(&f.title());
                format!(
                    "{entry:>18} {:>9} {:>7} {status:<8} {title}\n",
                    f.size(),
                    f.block_count()
                )
            })
            .collect();
        lines
            .iter()
            .try_for_each(|line| out.write_all(line.as_bytes()))?;
    }
    Ok(())
}

/// `name` without what a terminal would obey: names come from outside.
pub(crate) fn printable(name: &str) -> String {
    name.chars()
        .flat_map(|c| {
            if c.is_control() {
                c.escape_debug().collect()
            } else {
                vec![c]
            }
        })
        .collect()
}
