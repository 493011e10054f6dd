//! Source files, as far as they are here.

use std::io::Read as _;
use std::path::Path;
use std::time::SystemTime;

use tomo_program::open_regular;

use crate::folder::plain;

/// Longer files are no source.
const LONGEST: u64 = 64 << 20;

/// What is in a source file; else why it cannot be read, in words.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let file = open_regular(path).map_err(|error| plain(&error))?;
    let read = file.take(LONGEST + 1).read_to_end(&mut bytes);
    read.map_err(|error| plain(&error))?;
    match bytes.len() as u64 > LONGEST {
        true => Err("it is too long".into()),
        false => Ok(bytes),
    }
}

/// When a file was written, if that is known.
pub(crate) fn written(path: &Path) -> Option<SystemTime> {
    path.metadata().and_then(|found| found.modified()).ok()
}
