//! Source files, as far as they are here.

use std::fs;
use std::path::Path;

use crate::folder::plain;

/// Longer files are no source.
const LONGEST: u64 = 64 << 20;

/// What is in a source file; else why it cannot be read, in words.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, String> {
    let metadata = fs::metadata(path).map_err(|error| plain(&error))?;
    if !metadata.is_file() {
        return Err("it is no file".into());
    }
    if metadata.len() > LONGEST {
        return Err("it is too long".into());
    }
    fs::read(path).map_err(|error| plain(&error))
}
