//! What the file adds to a program to which its debug information was moved: names of functions, and lines.
//!
//! Nothing else, since such a file may be installed at one time and not at another, here and not there, and a program's
//! functions and blocks are the same wherever it is observed and whoever reads what was observed.

use rustc_hash::FxHashMap;

use super::names::names_code;
use crate::debug_file::DebugFile;
use crate::dwarf;
use crate::elf::{Symbol, SymbolKind, symbols_of};
use crate::{Address, Facts, Function};

/// Names what has no name, and says where all of it comes from.
pub(super) fn describe(file: &DebugFile, functions: &mut [Function], facts: &mut Facts) {
    let sections = file.sections();
    let debug = dwarf::functions(&sections);
    let symbols = symbols_of(&file.data);
    let names_function =
        |it: &&Symbol<'_>| it.kind == SymbolKind::IndirectFunction || names_code(it);
    let of_code = symbols.iter().filter(names_function);
    let of_code = of_code.map(|symbol| (symbol.address, symbol.name));
    let mut names: FxHashMap<Address, &str> = FxHashMap::default();
    let stated = debug.functions.iter();
    let stated = stated.filter_map(|it| Some((it.entry, it.name.as_deref()?)));
    for (entry, name) in of_code.chain(stated) {
        names.entry(entry).or_insert(name);
    }
    for function in functions.iter_mut().filter(|it| it.name.is_none()) {
        function.name = names.get(&function.entry).map(|&name| name.to_owned());
    }
    facts.lines = super::lines(&sections, &debug, functions);
    let warnings = debug.warnings.iter().map(ToString::to_string);
    facts.warnings.extend(warnings);
}
