//! Whether compilers of another kind wrote some of the code.
//!
//! What the ABI's compilers write has an unwind entry for each function; a few start-up functions have none, and what
//! people write in assembly. Compilers of their own kind write none, and enter their code at places that only their own tables
//! state: V8 that in Node.js, which it copies besides; GHC that of programs in Haskell; Go, whose goroutines return
//! to the middle of a function that has not begun. So where such a compiler was at work, code without an entry is not
//! relied upon.

use crate::elf::Binary;
use crate::unwind::Unwind;

use super::code::{Code, Pos};
use super::padding;

/// Whether code that has no unwind entry may be a foreign compiler's: Go's programs say that they are; others are told by
/// so much code without entries, in a file where as much has some.
pub(crate) fn is_in(binary: &Binary<'_>, code: &Code<'_>, unwind: &Unwind) -> bool {
    const MUCH: u64 = 16 << 10;
    is_by_go(binary) || stated(unwind) > MUCH && unstated(code, unwind) > MUCH
}

/// Whether Go's linker was at work: it leaves its name in the data, where `go version` finds it; before Go 1.13 only
/// its table of functions says so.
fn is_by_go(binary: &Binary<'_>) -> bool {
    const NAME: &[u8] = b"\xff Go buildinf:";
    const ALIGNMENT: u64 = 16;
    let is_named = binary.data_regions().any(|region| {
        let ahead = region.range.start().0.wrapping_neg() % ALIGNMENT;
        let aligned = region.bytes.get(ahead as usize..).unwrap_or_default();
        let mut places = aligned.chunks_exact(ALIGNMENT as usize);
        places.any(|place| place.starts_with(NAME))
    });
    is_named || binary.mapped_section(".gopclntab").is_some()
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
