//! Folded stacks: a line a chain, its functions separated by semicolons, then how often it was called. What
//! flame graph tools read (Gregg, *The Flame Graph*, CACM 59(6), 2016). Chains that differ in call sites
//! alone are one line. Each is written as it comes: together they grow as the square of a recursion's depth.

use std::io::{self, Write};

use super::Stacks;

/// Writes the chains.
///
/// # Errors
/// Those of `to`.
pub fn write(to: &mut impl Write, stacks: &Stacks) -> io::Result<()> {
    let all = stacks.by_names();
    let name = |number: &u32| {
        let name = stacks.names.get(*number as usize);
        name.map_or_else(String::new, |name| name.replace([';', '\n'], ","))
    };
    let mut line = String::new();
    let mut waiting = vec![(0, String::new(), 0)];
    while let Some((at, called, before)) = waiting.pop() {
        line.truncate(before);
        if before > 0 {
            line.push(';');
        }
        line.push_str(&called);
        if all[at].own > 0 {
            writeln!(to, "{line} {}", all[at].own)?;
        }
        let callees = all[at]
            .callees
            .iter()
            .filter(|(_, callee)| all[**callee].all > 0);
        let mut callees: Vec<_> = callees
            .map(|(number, callee)| (name(number), *callee))
            .collect();
        callees.sort_unstable();
        waiting.extend(
            callees
                .into_iter()
                .rev()
                .map(|(name, callee)| (callee, name, line.len())),
        );
    }
    Ok(())
}
