//! Any bytes as a model file, and any change of a sound one, with wrong checksums and with right ones: no
//! panic, no walk longer than the file, one-line errors.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tomo_program::Model;

#[path = "../../crates/program/tests/model_check/mod.rs"]
mod check;
#[path = "../../crates/program/tests/model_check/sample.rs"]
mod sample;

fuzz_target!(|data: &[u8]| {
    check::check(data);
    let mut changed = Model::build(sample::functions(), sample::facts())
        .as_bytes()
        .to_vec();
    for change in data.chunks_exact(3) {
        let at = usize::from(u16::from_le_bytes([change[0], change[1]])) % changed.len();
        changed[at] = change[2];
    }
    check::check(&changed);
});
