//! Folded stacks: a line a chain, its functions separated by semicolons, then how often it was called. What
//! flame graph tools read (Gregg, *The Flame Graph*, CACM 59(6), 2016). Chains that differ in call sites
//! alone are one line.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::Stacks;

/// Writes the chains.
///
/// # Errors
/// Those of `to`.
pub fn write(to: &mut impl Write, stacks: &Stacks) -> io::Result<()> {
    let mut lines: BTreeMap<String, u64> = BTreeMap::new();
    for stack in &stacks.stacks {
        let names = stack.frames.iter().map(|frame| {
            let name = stacks.names.get(frame.name as usize);
            name.map_or_else(String::new, |name| name.replace([';', '\n'], ","))
        });
        let names: Vec<String> = names.collect();
        *lines.entry(names.join(";")).or_default() += stack.calls;
    }
    for (line, calls) in lines {
        writeln!(to, "{line} {calls}")?;
    }
    Ok(())
}
