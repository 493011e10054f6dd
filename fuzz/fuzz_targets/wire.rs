//! Any bytes as image, plan, record, roster, reports and disposals, with wrong checksums and with right ones: no panic,
//! one-line errors, nothing outside of the file.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/wire/tests/doors/check.rs"]
mod check;
#[path = "../../crates/wire/tests/doors/reported.rs"]
mod reported;
#[path = "../../crates/wire/tests/doors/samples.rs"]
mod samples;

fuzz_target!(|data: &[u8]| {
    check::check(data);
    let sound = [
        samples::image(2, 9, -(1 << 28)).1,
        samples::plan(2),
        samples::record(100).1,
        samples::roster(2),
        reported::report(&[1, 2, 3]).1,
        reported::counted(&[1, 2, 3], &[4, 5, 6]),
        reported::chained(&[[0, 3, 0, 5, 1], [1, 1, 9, 6, 2]]),
        samples::disposals(9),
    ];
    for mut changed in sound {
        for change in data.chunks_exact(3) {
            let at = usize::from(u16::from_le_bytes([change[0], change[1]])) % changed.len();
            changed[at] = change[2];
        }
        check::check(&changed);
    }
});
