//! Files by names that anybody may have given to something else: opening a pipe waits for whoever writes into it, and some
//! devices have no end.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

/// Opens the regular file at `path`.
///
/// # Errors
/// Where it cannot be opened, or is something else, which is not opened.
pub fn open_regular(path: &Path) -> io::Result<File> {
    match fs::metadata(path)?.is_file() {
        true => File::open(path),
        false => Err(io::Error::other("it is no file")),
    }
}

/// The content of the regular file at `path`.
///
/// # Errors
/// As for [`open_regular`].
pub fn read_regular(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}
