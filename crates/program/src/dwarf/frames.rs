//! Whose code an address is: the function's that has it, and of those whose bodies were put there in place of a call.
//!
//! DWARF 5 §3.3.8.2. What is asked for is a few addresses of one file, not all of a program; `addr2line` finds the units
//! that have them. It does not promise to be linear whatever the sections contain, as all else here does: ask it of files of
//! programs that ran, and of nobody else's.

use super::sections::{Sections, Slice};
use addr2line::Context;

/// A function that an address belongs to, and where in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// Linkage name, else name.
    pub function: Option<String>,
    /// The source file, and the line in it: of the address, or of the call whose place the frame before has.
    pub line: Option<(String, u32)>,
}

/// For each address, the functions that it belongs to: innermost first, last the one that has the code. None where nothing
/// is stated, or cannot be read.
#[must_use]
pub fn frames(sections: &Sections<'_>, addresses: &[u64]) -> Vec<Vec<Frame>> {
    let context = Context::from_dwarf(sections.dwarf()).ok();
    let at = |address: &u64| {
        let mut found = Vec::new();
        let _ = context.as_ref().map(|all| add(all, *address, &mut found));
        found
    };
    addresses.iter().map(at).collect()
}

/// Adds what is stated of an address, up to the first that cannot be read.
fn add<'a>(
    context: &Context<Slice<'a>>,
    address: u64,
    found: &mut Vec<Frame>,
) -> Result<(), addr2line::gimli::Error> {
    let mut frames = context.find_frames(address).skip_all_loads()?;
    while let Some(frame) = frames.next()? {
        let name = frame.function.as_ref();
        let name = name.and_then(|name| Some(name.raw_name().ok()?.into_owned()));
        let line = frame.location.as_ref();
        let line = line.and_then(|at| Some((at.file?.to_owned(), at.line?)));
        found.push(Frame {
            function: name,
            line,
        });
    }
    Ok(())
}
