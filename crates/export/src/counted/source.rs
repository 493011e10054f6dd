//! The source with a count before each line, as gcov shows it: `-` where there is no code, `#####` where it
//! did not run, and `?` where it is not known.

use std::io::{self, Write};

use tomo_program::path_of;

use super::Counted;
use crate::source;

/// Writes all files of which a line ran, one after the other; those that cannot be read by name only.
///
/// # Errors
/// Where `out` cannot be written, or the model is damaged.
pub fn write(out: &mut dyn Write, counted: &Counted) -> io::Result<()> {
    for (path, lines) in counted.line_counts().map_err(io::Error::other)? {
        if lines.values().all(|count| *count == Some(0)) {
            continue;
        }
        let place = path_of(path);
        let path = place.display();
        let bytes = match source::read(&place) {
            Ok(bytes) => bytes,
            Err(why) => {
                writeln!(out, "{:>12}:{:>5}:Source:{path} ({why})", "-", 0)?;
                for (line, count) in &lines {
                    writeln!(out, "{:>12}:{line:>5}:", shown(Some(*count)))?;
                }
                continue;
            }
        };
        writeln!(out, "{:>12}:{:>5}:Source:{path}", "-", 0)?;
        let mut behind = 1;
        for (number, text) in (1u32..).zip(String::from_utf8_lossy(&bytes).lines()) {
            let count = lines.get(&number).copied();
            writeln!(out, "{:>12}:{number:>5}:{text}", shown(count))?;
            behind = number + 1;
        }
        // Of a source that has become shorter.
        for (line, count) in lines.range(behind..) {
            writeln!(out, "{:>12}:{line:>5}:", shown(Some(*count)))?;
        }
    }
    Ok(())
}

fn shown(count: Option<super::LineCount>) -> String {
    match count {
        None => "-".into(),
        Some(None) => "?".into(),
        Some(Some(0)) => "#####".into(),
        Some(Some(count)) => count.to_string(),
    }
}
