//! Windows that are in nobody's way.

use super::{Flaw, Found, at};

/// No two windows share a byte, and no quadword's word has a byte of another window.
pub(super) fn check_apart(windows: &[Found]) -> Result<(), Flaw> {
    for pair in windows.windows(2) {
        let [one, next] = pair else { continue };
        let end = one.start.0 + one.length;
        if end.max(one.start.0 + one.displaced) > next.start.0 {
            return Err(at(next.start, "two windows overlap"));
        }
        let into_word = one.word() == Some(next.first() / 8);
        let from_word = next.word() == Some((end - 1) / 8);
        if into_word || from_word {
            return Err(at(
                next.start,
                "a quadword's word has a byte of another window",
            ));
        }
    }
    Ok(())
}
