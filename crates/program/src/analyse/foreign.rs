//! Whether compilers of another kind wrote some of the code.
//!
//! What the ABI's compilers write has an unwind entry for each function; a few start-up functions have none, and what
//! people write in assembly. Compilers of their own kind write none, and enter their code at places that only their own tables
//! state: V8 that in Node.js, which it copies besides; GHC that of programs in Haskell; Go's assembly, whose goroutines return
//! to the middle of a function that has not begun. So where such a compiler was at work, code without an entry is not
//! relied upon. Of what Go's compiler wrote its own table is as good as entries ([`crate::go`]).

use crate::elf::Binary;
use crate::go;
use crate::unwind::Unwind;

use super::code::{Code, Pos};
use super::padding;

/// Whether code that has no unwind entry may be a foreign compiler's: Go's programs say that they are; others are told by
/// so much code without entries, in a file where as much has some.
pub(crate) fn is_in(binary: &Binary<'_>, code: &Code<'_>, unwind: &Unwind) -> bool {
    const MUCH: u64 = 16 << 10;
    go::is_in(binary) || stated(unwind) > MUCH && unstated(code, unwind) > MUCH
}

/// How many bytes of code have an unwind entry.
fn stated(unwind: &Unwind) -> u64 {
    let entries = unwind.functions.iter();
    entries.map(|entry| entry.range.size()).sum()
}

/// How many bytes of code have none, in gaps that are more than filling or a start-up function.
fn unstated(code: &Code<'_>, unwind: &Unwind) -> u64 {
    const LONG: u32 = 256;
    let entries = unwind.functions.iter();
    let covered = entries.filter_map(|entry| {
        let start = code.pos(entry.range.start())?;
        Some((start, start.plus(u32::try_from(entry.range.size()).ok()?)))
    });
    let mut covered: Vec<(Pos, Pos)> = covered.chain(code.stub_ranges()).collect();
    covered.sort_unstable();
    let mut bytes = 0;
    for (mut at, end) in code.regions() {
        let first = covered.partition_point(|range| range.1 <= at);
        let inside = covered[first..].iter().take_while(|range| range.0 < end);
        for &(from, to) in inside.chain(&[(end, end)]) {
            if from > at && from.since(at) >= LONG && !padding::is_padding(code.bytes(at, from)) {
                bytes += u64::from(from.since(at));
            }
            at = at.max(to);
        }
    }
    bytes
}
