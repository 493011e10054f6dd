//! Any bytes as a segment of a collector's log: used as far as they are whole, without a panic.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/collector/tests/it/segments/check.rs"]
mod check;

fuzz_target!(|data: &[u8]| check::check(data));
