//! Any bytes as an ELF file whose unwind and exception tables are read: no panic, no endless loop,
//! no memory out of proportion, and every promise of `Unwind` kept.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/program/tests/elf/check.rs"]
#[expect(dead_code, reason = "the other target drives the rest")]
mod check;

fuzz_target!(|data: &[u8]| check::unwind(data));
