//! What a record says, read without the parts that nothing was ever written to.
//!
//! A record has a byte for each probe of the program, of which a variant's runs store few. Where the file system
//! tells what of a file was written, the rest is not read: that would fill the page cache with zeros.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use nix::errno::Errno;
use nix::sys::statfs::{EXT4_SUPER_MAGIC, TMPFS_MAGIC, XFS_SUPER_MAGIC, fstatfs};
use nix::unistd::{Whence, lseek};
use tomo_program::open_regular;
use tomo_wire::record::{Live, MARKS, Record};

use crate::private;
use crate::variant::{VariantError, io_at};

/// What a record says.
#[derive(Clone, Debug)]
pub struct Seen {
    /// What the agent counted.
    pub live: Live,
    /// The probes that were hit, ascending.
    pub hits: Vec<u32>,
}

impl Seen {
    /// What the record at `path` says, while it is written or afterwards.
    ///
    /// # Errors
    /// Where it cannot be read, belongs to somebody else, or is none.
    pub fn read(path: &Path) -> Result<Self, VariantError> {
        let file = private::open(path, false).map_err(io_at(path))?;
        let (header, live) = head(&file, path)?;
        let hits = hits(&file, header.probes.get(), knows_holes(&file));
        Ok(Self {
            live,
            hits: hits.map_err(io_at(path))?,
        })
    }
}

/// What the agent counted in the record at `path`, whoever it belongs to. Marks are not looked at.
///
/// # Errors
/// Where it cannot be read, or is none.
pub fn read_live(path: &Path) -> Result<Live, VariantError> {
    let file = open_regular(path).map_err(io_at(path))?;
    Ok(head(&file, path)?.1)
}

/// What stands before the marks.
fn head(file: &File, path: &Path) -> Result<(Record, Live), VariantError> {
    let mut head = [0; MARKS as usize];
    let length = file.metadata().map_err(io_at(path))?.len();
    file.read_exact_at(&mut head, 0).map_err(io_at(path))?;
    let read = Record::read(&head, length).and_then(|record| Ok((record, Live::read(&head)?)));
    read.map_err(|refusal| VariantError::Damaged(path.to_path_buf(), refusal))
}

/// Bytes that are read at once.
const CHUNK: usize = 1 << 14;

/// The probes that were hit, of so many.
fn hits(file: &File, probes: u32, knows_holes: bool) -> io::Result<Vec<u32>> {
    let mut hits = Vec::new();
    let mut chunk = [0; CHUNK];
    let end = MARKS + u64::from(probes);
    let mut at = MARKS;
    while at < end {
        if knows_holes {
            match written(file, at)? {
                Some(next) if next < end => at = next,
                _ => break,
            }
        }
        let length = CHUNK.min((end - at) as usize);
        let marks = &mut chunk[..length];
        file.read_exact_at(marks, at)?;
        let first = (at - MARKS) as u32;
        hits.extend(marked(marks).map(|probe| first + probe));
        at += length as u64;
    }
    Ok(hits)
}

/// Where from `at` on something was written next, if anything was.
fn written(file: &File, at: u64) -> io::Result<Option<u64>> {
    let offset = nix::libc::off_t::try_from(at).map_err(io::Error::other)?;
    match lseek(file, offset, Whence::SeekData) {
        Ok(next) => Ok(Some(next as u64)),
        Err(Errno::ENXIO) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Whether the file system tells what was written also where that was by way of a mapping and is not on the disk yet.
/// Not all do.
fn knows_holes(file: &File) -> bool {
    let kinds = [EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, TMPFS_MAGIC];
    fstatfs(file).is_ok_and(|found| kinds.contains(&found.filesystem_type()))
}

/// The probes that were hit. Few are, of many: most lines are passed over whole.
fn marked(marks: &[u8]) -> impl Iterator<Item = u32> {
    const LINE: usize = 64;
    let lines = (0..).step_by(LINE).zip(marks.chunks(LINE));
    let hit = lines.filter(|(_, line)| line.iter().fold(0, |all, mark| all | mark) != 0);
    let each = hit.flat_map(|(first, line)| (first..).zip(line));
    each.filter(|(_, mark)| **mark != 0).map(|(probe, _)| probe)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;
    use proptest::sample::Index;

    use super::*;

    #[test]
    fn probes_that_were_hit_are_found_wherever_they_are() {
        for length in [0, 1, 63, 64, 65, 200] {
            assert_eq!(marked(&vec![0; length]).count(), 0);
            for hit in 0..length {
                let mut marks = vec![0; length];
                marks[hit] = 1;
                assert!(marked(&marks).eq([hit as u32]), "{hit} of {length}");
            }
            assert!(marked(&vec![1; length]).eq(0..length as u32));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Before any of it is on the disk, and after.
        #[test]
        fn what_was_stored_is_read_and_nothing_else(
            probes in 1_u32..3_000_000,
            stored in prop::collection::vec(any::<Index>(), 0..40),
        ) {
            let folder = tempfile::tempdir().expect("a folder");
            let file = private::create(&folder.path().join("record")).expect("made");
            private::allocate(&file, MARKS + u64::from(probes)).expect("room");
            let stored: BTreeSet<u32> = stored
                .iter()
                .map(|index| index.index(probes as usize) as u32)
                .collect();
            for probe in &stored {
                let stored = file.write_all_at(&[1], MARKS + u64::from(*probe));
                stored.expect("stored");
            }
            let expected: Vec<u32> = stored.into_iter().collect();
            for on_disk in [false, true] {
                if on_disk {
                    file.sync_all().expect("on the disk");
                }
                for knows in [knows_holes(&file), false] {
                    prop_assert_eq!(&hits(&file, probes, knows).expect("read"), &expected);
                }
            }
        }
    }
}
