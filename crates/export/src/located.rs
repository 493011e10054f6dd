//! Addresses of a module's code put into words: the function, and the line where the source is known.
//!
//! Names are those of symbols, lines those of debug information; no model is needed, so that
//! libraries that a program merely uses are not analysed for it.

use std::path::Path;

use tomo_program::debug_file::{self, Directories};
use tomo_program::dwarf::{Frame, Sections, frames};
use tomo_program::elf::SymbolKind;
use tomo_program::{Binary, demangle, read_regular};

use crate::predicates::Line;

/// Where an address is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The function's name, if debug information states it or a symbol covers the address.
    pub function: Option<String>,
    /// The line.
    pub line: Option<Line>,
    /// Whether the function's code was put into that of the next place, in place of a call.
    pub is_inlined: bool,
}

/// Where each of these stated addresses of the file at `path` is: at least one place each, the functions that were inlined
/// there before the one that has the code. Nothing is said of any where the file cannot be read, or is another build than
/// that of `build_id`.
#[must_use]
pub fn places(path: &Path, build_id: &[u8], addresses: &[u64]) -> Vec<Vec<Place>> {
    let known = read_regular(path).ok();
    let known = known.and_then(|bytes| known_places(path, &bytes, build_id, addresses));
    known.unwrap_or_else(|| vec![vec![Place::default()]; addresses.len()])
}

fn known_places(
    path: &Path,
    bytes: &[u8],
    build_id: &[u8],
    addresses: &[u64],
) -> Option<Vec<Vec<Place>>> {
    let binary = Binary::parse(bytes).ok()?;
    if binary.build_id().unwrap_or_default() != build_id {
        return None;
    }
    let own = Sections::read(bytes);
    let debug = match own.is_empty() {
        true => debug_file::find(path, bytes, &Directories::from_environment()).file,
        false => None,
    };
    let sections = debug.as_ref().map_or(own, |file| file.sections());
    let named = frames(&sections, addresses)
        .into_iter()
        .zip(names(&binary, addresses));
    Some(
        named
            .map(|(frames, symbol)| placed(frames, symbol))
            .collect(),
    )
}

/// The places of an address that belongs to these functions, of which the last has the code, and this symbol.
fn placed(mut frames: Vec<Frame>, symbol: Option<&str>) -> Vec<Place> {
    let has_code = frames.pop().unwrap_or_default();
    let place = |frame: Frame, symbol: Option<&str>| Place {
        function: symbol.or(frame.function.as_deref()).map(spelled),
        line: frame.line.map(|(file, line)| Line { file, line }),
        is_inlined: true,
    };
    let inlined = frames.into_iter().map(|frame| place(frame, None));
    let mut places: Vec<Place> = inlined.collect();
    places.push(Place {
        is_inlined: false,
        ..place(has_code, symbol)
    });
    places
}

/// A function's name as people write it.
fn spelled(name: &str) -> String {
    let name = name.split('@').next().unwrap_or(name);
    demangle(name).unwrap_or_else(|| name.to_owned())
}

/// The symbols of functions that cover the addresses.
fn names<'b>(binary: &'b Binary<'_>, addresses: &[u64]) -> Vec<Option<&'b str>> {
    let mut functions: Vec<(u64, u64, &str)> = binary
        .symbols()
        .iter()
        .filter(|symbol| matches!(symbol.kind, SymbolKind::Function))
        .map(|symbol| (symbol.address.0, symbol.size, symbol.name))
        .collect();
    functions.sort_unstable();
    let covering = |address: &u64| {
        let behind = functions.partition_point(|(start, ..)| start <= address);
        let before = functions.get(..behind).unwrap_or_default();
        let mut near = before.iter().rev().take(16);
        let found = near.find(|(start, size, _)| address.wrapping_sub(*start) < *size);
        found.map(|(_, _, name)| *name)
    };
    addresses.iter().map(covering).collect()
}
