//! Addresses of a module's code put into words: the function, and the line where the source is known.
//!
//! Names are those of symbols, lines those of debug information; no model is needed, so that
//! libraries that a program merely uses are not analysed for it.

use std::path::Path;

use tomo_program::debug_file::{self, Directories};
use tomo_program::dwarf::{Sections, block_lines};
use tomo_program::elf::SymbolKind;
use tomo_program::{Address, Binary, Range, demangle};

use crate::predicates::Line;

/// Where an address is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The function's name, if a symbol covers the address.
    pub function: Option<String>,
    /// The line.
    pub line: Option<Line>,
}

/// Where each of these stated addresses of the file at `path` is; nothing of any where the file cannot be read, or is
/// another build than that of `build_id`.
#[must_use]
pub fn places(path: &Path, build_id: &[u8], addresses: &[u64]) -> Vec<Place> {
    let mut places = vec![Place::default(); addresses.len()];
    let Ok(bytes) = std::fs::read(path) else {
        return places;
    };
    let Ok(binary) = Binary::parse(&bytes) else {
        return places;
    };
    if binary.build_id().unwrap_or_default() != build_id {
        return places;
    }
    let debug = match Sections::read(&bytes).is_empty() {
        true => debug_file::find(path, &bytes, &Directories::from_environment()).file,
        false => None,
    };
    name(&binary, addresses, &mut places);
    let sections = match &debug {
        Some(file) => file.sections(),
        None => Sections::read(&bytes),
    };
    let mut sorted: Vec<u64> = addresses.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let one = |address: &u64| Range::new(Address(*address), Address(address.wrapping_add(1)));
    let ranges: Vec<Range> = sorted.iter().filter_map(one).collect();
    if ranges.len() != sorted.len() {
        return places;
    }
    let lines = block_lines(&sections, &ranges);
    for (address, place) in addresses.iter().zip(&mut places) {
        let position = sorted.binary_search(address).ok();
        let position = position.and_then(|at| *lines.first.get(at)?);
        place.line = position.and_then(|position| {
            Some(Line {
                file: lines.files.get(position.file as usize)?.clone(),
                line: position.line,
            })
        });
    }
    places
}

/// Fills in the names of functions.
fn name(binary: &Binary<'_>, addresses: &[u64], places: &mut [Place]) {
    let mut functions: Vec<(u64, u64, &str)> = binary
        .symbols()
        .iter()
        .filter(|symbol| matches!(symbol.kind, SymbolKind::Function))
        .map(|symbol| (symbol.address.0, symbol.size, symbol.name))
        .collect();
    functions.sort_unstable();
    for (address, place) in addresses.iter().zip(places) {
        let behind = functions.partition_point(|(start, ..)| start <= address);
        let before = functions.get(..behind).unwrap_or_default();
        let mut near = before.iter().rev().take(16);
        let found = near.find(|(start, size, _)| address.wrapping_sub(*start) < *size);
        place.function = found.map(|(_, _, name)| {
            let name = name.split('@').next().unwrap_or(name);
            demangle(name).unwrap_or_else(|| name.to_owned())
        });
    }
}
