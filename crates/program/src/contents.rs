//! What the bytes of files hash to, remembered: to hash all those of a large one takes longer than everything else that is done
//! with a model at hand.
//!
//! A file is taken for unchanged as git takes those of its index: same device, inode, length, and
//! times of change of content and of inode. As there, what was changed a moment before it was looked
//! at might change again without another time showing, so it is not remembered ("racy git").

use std::fs::{self, Metadata};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use xxhash_rust::xxh3::xxh3_64;

use crate::cache;

/// How long a file must have been left alone. Times of files may be as coarse as two seconds.
const SETTLED: Duration = Duration::from_secs(4);

/// What tells that a file has not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    device: u64,
    inode: u64,
    length: u64,
    /// Nanoseconds since 1970.
    modified: i128,
    changed: i128,
}

impl Stamp {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        let nanoseconds =
            |seconds: i64, rest: i64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            length: metadata.len(),
            modified: nanoseconds(metadata.mtime(), metadata.mtime_nsec()),
            changed: nanoseconds(metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    fn is_settled(&self, now: SystemTime) -> bool {
        let now = now
            .duration_since(SystemTime::UNIX_EPOCH)
            .map(|now| now - SETTLED);
        now.is_ok_and(|latest| {
            let latest = latest.as_nanos().cast_signed();
            self.modified < latest && self.changed < latest
        })
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for number in [self.device, self.inode, self.length] {
            bytes.extend(number.to_le_bytes());
        }
        for time in [self.modified, self.changed] {
            bytes.extend(time.to_le_bytes());
        }
        bytes
    }

    fn path(&self, folder: &Path) -> PathBuf {
        folder.join(format!("{:016x}", xxh3_64(&self.bytes())))
    }

    /// What is written: the hash, and a checksum of it and of the stamp.
    fn entry(&self, content: u128) -> Vec<u8> {
        let mut entry = content.to_le_bytes().to_vec();
        let sum = xxh3_64(&[self.bytes(), entry.clone()].concat());
        entry.extend(sum.to_le_bytes());
        entry
    }
}

/// The hash of the file of which `stamp` is, if `folder` has it.
pub(crate) fn recall(folder: &Path, stamp: &Stamp) -> Option<u128> {
    let entry = fs::read(stamp.path(folder)).ok()?;
    let content = u128::from_le_bytes(*entry.first_chunk()?);
    (entry == stamp.entry(content)).then_some(content)
}

/// Remembers in `folder` that the file of which `stamp` is hashes to `content`.
///
/// # Errors
/// Where that cannot be written.
pub(crate) fn remember(folder: &Path, stamp: &Stamp, content: u128) -> io::Result<()> {
    if !stamp.is_settled(SystemTime::now()) {
        return Ok(());
    }
    cache::make_folder(folder, cache::CLOSED)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(&stamp.entry(content))?;
    file.persist(stamp.path(folder))
        .map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{SETTLED, Stamp, recall, remember};
    use std::fs;
    use std::time::{Duration, SystemTime};

    const OLD: Stamp = Stamp {
        device: 1,
        inode: 2,
        length: 3,
        modified: 4,
        changed: 5,
    };

    #[test]
    fn what_did_not_change_is_remembered() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(recall(folder.path(), &OLD), None);
        remember(folder.path(), &OLD, 7).unwrap();
        assert_eq!(recall(folder.path(), &OLD), Some(7));
        for other in [
            Stamp { device: 9, ..OLD },
            Stamp { inode: 9, ..OLD },
            Stamp { length: 9, ..OLD },
            Stamp { modified: 9, ..OLD },
            Stamp { changed: 9, ..OLD },
        ] {
            assert_eq!(recall(folder.path(), &other), None, "{other:?}");
        }
    }

    #[test]
    fn a_file_that_has_just_changed_is_not_remembered() {
        let folder = tempfile::tempdir().unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        let young = Stamp::of(&file.as_file().metadata().unwrap());
        remember(folder.path(), &young, 7).unwrap();
        assert_eq!(recall(folder.path(), &young), None);
        assert!(!young.is_settled(SystemTime::now()));
        assert!(young.is_settled(SystemTime::now() + SETTLED + Duration::from_secs(1)));
    }

    #[test]
    fn no_changed_byte_of_an_entry_is_believed() {
        let folder = tempfile::tempdir().unwrap();
        remember(folder.path(), &OLD, 7).unwrap();
        let path = OLD.path(folder.path());
        let sound = fs::read(&path).unwrap();
        for at in 0..sound.len() {
            let mut spoiled = sound.clone();
            spoiled[at] ^= 1;
            fs::write(&path, &spoiled).unwrap();
            assert_eq!(recall(folder.path(), &OLD), None, "byte {at}");
            fs::write(&path, &sound[..at]).unwrap();
            assert_eq!(recall(folder.path(), &OLD), None, "cut at {at}");
        }
    }
}
