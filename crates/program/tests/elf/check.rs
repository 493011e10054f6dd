//! What must hold for any bytes whatever: the one check that unit tests, property tests and the
//! fuzz targets drive.
//!
//! Each function reads the bytes as a program and asserts all that the documentation of
//! `Binary` and `Unwind` promises. A panic is a bug, in the reader or in the promise.

use tomo_program::elf::{Binary, PltTarget, Region};
use tomo_program::unwind::{self, ExceptionTable, Unwind};
use tomo_program::{Address, Warning};

/// Names that some part of the analysis asks for, and one that does not exist.
const SECTIONS: [&str; 6] = [
    ".text",
    ".debug_info",
    ".debug_line",
    ".eh_frame",
    ".comment",
    "?",
];

/// Reads `data` as a program and checks everything that the reader says of it.
pub(crate) fn elf(data: &[u8]) {
    match Binary::parse(data) {
        Ok(binary) => promises(&binary),
        Err(error) => one_line(&error.to_string()),
    }
}

/// Reads the unwind tables of `data`, if it is a program, and checks them.
pub(crate) fn unwind(data: &[u8]) {
    if let Ok(binary) = Binary::parse(data) {
        unwind_promises(&binary, &unwind::read(&binary));
    }
}

/// Errors and warnings are single lines.
fn one_line(text: &str) {
    assert!(!text.is_empty() && !text.contains('\n'), "{text:?}");
}

fn warnings_are_lines(warnings: &[Warning]) {
    // Places are names from the file and may hold anything; what we say of them may not.
    warnings.iter().for_each(|warning| one_line(&warning.what));
}

/// Everything that is promised of a parsed program.
pub(crate) fn promises(binary: &Binary<'_>) {
    let data: Vec<Region<'_>> = binary.data_regions().copied().collect();
    assert!(!binary.code().is_empty(), "a program without code");
    regions(binary, binary.code());
    regions(binary, &data);
    for region in binary.code() {
        assert!(binary.is_code(region.range.start()));
        assert_eq!(binary.code_at(region.range.start()), Some(region.bytes));
        let last = Address(region.range.end().0 - 1);
        assert_eq!(binary.code_at(last).map(<[u8]>::len), Some(1));
    }
    symbols(binary);
    slots(binary);
    plt(binary);
    assert!(
        binary
            .initial_functions()
            .iter()
            .all(|&function| binary.is_code(function))
    );
    assert!(binary.initial_functions().is_sorted_by(|a, b| a < b));
    for name in SECTIONS {
        if let Err(warning) = binary.try_section(name) {
            one_line(&warning.what);
        }
    }
    warnings_are_lines(binary.warnings());
}

/// Sorted, disjoint, not empty, as long as their addresses, and the same bytes by address.
fn regions(binary: &Binary<'_>, regions: &[Region<'_>]) {
    for region in regions {
        assert_eq!(region.range.size(), region.bytes.len() as u64);
        assert!(!region.range.is_empty());
        let mapped = binary
            .data_at(region.range.start())
            .expect("a region's bytes are mapped");
        assert_eq!(mapped.as_ptr(), region.bytes.as_ptr());
        assert!(mapped.len() >= region.bytes.len());
        if let Some(constant) = binary.constant_at(region.range.start()) {
            assert_eq!(mapped.as_ptr(), constant.as_ptr());
        }
    }
    assert!(regions.is_sorted_by(|a, b| a.range.end() <= b.range.start()));
}

fn symbols(binary: &Binary<'_>) {
    let key = |index: usize| {
        let symbol = &binary.symbols()[index];
        (symbol.address, std::cmp::Reverse(symbol.size), symbol.name)
    };
    assert!((1..binary.symbols().len()).all(|index| key(index - 1) < key(index)));
    assert!(
        binary
            .symbols()
            .iter()
            .all(|symbol| !symbol.name.is_empty())
    );
}

fn slots(binary: &Binary<'_>) {
    assert!(binary.pointer_slots().is_sorted_by(|a, b| a.0 < b.0));
    assert!(binary.resolver_slots().is_sorted_by(|a, b| a.0 < b.0));
    for &(slot, target) in binary.pointer_slots() {
        assert_eq!(binary.pointer_in_slot(slot), Some(target));
        if let Some(import) = binary.import_in_slot(slot) {
            assert!((import as usize) < binary.imports().len());
        }
    }
}

fn plt(binary: &Binary<'_>) {
    assert!(
        binary
            .plt()
            .is_sorted_by(|a, b| a.range.end() <= b.range.start())
    );
    for stub in binary.plt() {
        assert!(binary.is_code(stub.range.start()) && !stub.range.is_empty());
        assert_eq!(binary.plt_stub(stub.range.start()), Some(stub));
        if let PltTarget::Import(import) = stub.target {
            assert!((import as usize) < binary.imports().len());
        }
    }
}

/// Everything that is promised of unwind tables.
pub(crate) fn unwind_promises(binary: &Binary<'_>, unwind: &Unwind) {
    assert!(unwind.functions.is_sorted_by(|a, b| {
        (a.range.start(), a.range.end()) < (b.range.start(), b.range.end())
    }));
    for function in &unwind.functions {
        assert!(binary.is_code(function.range.start()) && !function.range.is_empty());
        assert!(function.call_sites.is_sorted());
        let read = function.exceptions == ExceptionTable::Read;
        assert!(read || function.call_sites.is_empty());
        for site in &function.call_sites {
            assert!(site.range.start() >= function.range.start());
            assert!(site.range.end() <= function.range.end());
            let pad = site
                .landing_pad
                .expect("only call sites with a landing pad are kept");
            assert!(binary.is_code(pad));
        }
    }
    warnings_are_lines(&unwind.warnings);
}
