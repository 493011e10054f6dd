//! Any bytes as debug information, in an ELF file or as bare sections: no panic, no endless loop, no
//! memory out of proportion, and every promise of `dwarf::functions`, `dwarf::lines` and `dwarf::block_lines` kept.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/program/tests/dwarf/check.rs"]
mod check;

fuzz_target!(|data: &[u8]| check::any(data));
