//! A file mapped for reading: the one place of this crate that is `unsafe`.

use std::fs::File;
use std::io;

use memmap2::Mmap;

/// The bytes of a file, mapped.
#[derive(Debug)]
pub(crate) struct Mapping(Mmap);

impl Mapping {
    /// Maps all of `file`.
    ///
    /// # Errors
    /// Where the system refuses.
    pub(crate) fn of(file: &File) -> io::Result<Self> {
        #[expect(
            unsafe_code,
            reason = "mapping is how a hundred megabytes are loaded in a millisecond"
        )]
        // SAFETY: Nobody may change or shorten the file while it is mapped. Model files are written
        // under a temporary name, then renamed and never opened for writing again: who replaces one
        // makes a new file, and the mapping keeps the old one alive. They lie in a directory that
        // only its owner can enter, and a model that belongs to somebody else is not opened from
        // the cache. What an owner does to his own files by hand is left: bytes changed under us may be
        // seen differently before and after their checksum, and no view relies on an index without
        // a bounds check, but a file cut short ends the process with
        // SIGBUS, as it does any program whose own file is cut short while it runs.
        let map = unsafe { Mmap::map(file)? };
        Ok(Self(map))
    }

    /// The bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}
