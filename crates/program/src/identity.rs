//! Which program a file is, told from as few of its bytes as possible.
//!
//! A program is known by its build id. Yet its model depends on more: a stripped twin has the same
//! build id and other symbols, a truncated copy has the same headers. So what names a cached model is
//! the build id together with a *fingerprint*: a hash of the file's length, its ELF header, its program headers
//! and its section headers. To read these and the notes, a few kilobytes are read, however large the file
//! is. A program without a build id is known by a hash of all its bytes instead.
//!
//! Who names build ids by hand, or changes a program in place, has several programs of one identity. So a model also says which
//! bytes it was made of, and is one of a file only if they hash alike; what a file hashes to the cache remembers for as long as
//! it does not change.

use std::fmt::Write as _;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use xxhash_rust::xxh3::{Xxh3Default, xxh3_128};

use crate::model::LONGEST_BUILD_ID;

/// What a program is known by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    /// What the linker wrote.
    BuildId(Vec<u8>),
    /// Hash (xxh3, 128 bits) of the whole file.
    Content(u128),
}

/// Which program a file is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// What it is known by.
    pub key: Key,
    /// Hash (xxh3, 64 bits) of the file's length and headers.
    pub fingerprint: u64,
}

impl Identity {
    /// A name for files that belong to it.
    #[must_use]
    pub fn file_stem(&self) -> String {
        let mut stem = match &self.key {
            Key::BuildId(id) => hexadecimal(id),
            Key::Content(hash) => format!("{hash:032x}"),
        };
        let _ = write!(stem, "-{:016x}", self.fingerprint);
        stem
    }
}

/// `bytes` as people write build ids.
#[must_use]
pub fn hexadecimal(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
}

/// What the headers of an ELF file tell of its identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Headers {
    fingerprint: u64,
    build_id: Option<Vec<u8>>,
    is_loaded: bool,
}

/// Bytes of a table of headers, and of one segment of notes, that are read at most.
const LARGEST_TABLE: u64 = 16 << 20;
const LARGEST_NOTES: u64 = 64 << 10;
/// Notes that are looked at at most.
const MOST_NOTES: usize = 64;

impl Headers {
    /// Reads the headers of `file`, which has `length` bytes; `None` where they are not those of a
    /// 64-bit little-endian ELF file, or lie outside.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn read(file: &File, length: u64) -> io::Result<Option<Self>> {
        let Some(header) = read_at(file, 0, 64)? else {
            return Ok(None);
        };
        if header[..6] != *b"\x7fELF\x02\x01" {
            return Ok(None);
        }
        let Some(segments) = Table::segments(&header).read(file)? else {
            return Ok(None);
        };
        // The system starts programs whose sections are not where the header says.
        let sections = Table::sections(&header).read(file)?.unwrap_or_default();
        let mut hash = Xxh3Default::new();
        hash.update(&length.to_le_bytes());
        for part in [&header, &segments, &sections] {
            hash.update(part);
        }
        let build_id = find_build_id(file, &segments)?;
        Ok(Some(Self {
            fingerprint: hash.digest(),
            build_id,
            is_loaded: [[2, 0], [3, 0]].contains(&[header[16], header[17]]),
        }))
    }

    /// Whether the file is one that runs or is loaded: a program or a shared object (`ET_EXEC`, `ET_DYN`).
    #[must_use]
    pub fn is_loaded(&self) -> bool {
        self.is_loaded
    }

    /// The identity, if the headers suffice to tell it.
    #[must_use]
    pub fn identity(&self) -> Option<Identity> {
        let key = Key::BuildId(self.build_id.clone()?);
        Some(Identity {
            key,
            fingerprint: self.fingerprint,
        })
    }

    /// The identity, told with the help of all bytes of the file.
    #[must_use]
    pub fn identity_of(&self, bytes: &[u8]) -> Identity {
        self.identity()
            .unwrap_or_else(|| self.identity_by(content(bytes)))
    }

    /// The identity of a file all of whose bytes hash to `content`.
    pub(crate) fn identity_by(&self, content: u128) -> Identity {
        self.identity().unwrap_or(Identity {
            key: Key::Content(content),
            fingerprint: self.fingerprint,
        })
    }
}

/// What all bytes of a file hash to.
pub(crate) fn content(bytes: &[u8]) -> u128 {
    xxh3_128(bytes)
}

/// Exactly `size` bytes from `offset`, if there are as many.
fn read_at(file: &File, offset: u64, size: u64) -> io::Result<Option<Vec<u8>>> {
    let Ok(size) = usize::try_from(size) else {
        return Ok(None);
    };
    let mut bytes = vec![0; size];
    match file.read_exact_at(&mut bytes, offset) {
        Ok(()) => Ok(Some(bytes)),
        // Offsets beyond what the system counts in are refused as invalid input.
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidInput
            ) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// The little-endian number of `size` bytes at `at`; 0 where there are none.
fn field(bytes: &[u8], at: usize, size: usize) -> u64 {
    let mut number = [0; 8];
    if let Some(found) = bytes.get(at..at + size) {
        number[..size].copy_from_slice(found);
    }
    u64::from_le_bytes(number)
}

/// A table of headers: where it starts, and how many bytes it has.
struct Table {
    offset: u64,
    size: u64,
}

impl Table {
    /// `e_phoff`, `e_phentsize`, `e_phnum`.
    fn segments(header: &[u8]) -> Self {
        Self {
            offset: field(header, 32, 8),
            size: field(header, 54, 2) * field(header, 56, 2),
        }
    }

    /// `e_shoff`, `e_shentsize`, `e_shnum`. A file with so many sections that section 0 has to count
    /// them is told by that section alone.
    fn sections(header: &[u8]) -> Self {
        let (offset, count) = (field(header, 40, 8), field(header, 60, 2));
        let counted_elsewhere = u64::from(offset != 0 && count == 0);
        Self {
            offset,
            size: field(header, 58, 2) * (count + counted_elsewhere),
        }
    }

    fn read(&self, file: &File) -> io::Result<Option<Vec<u8>>> {
        if self.size == 0 {
            return Ok(Some(Vec::new()));
        }
        if self.size > LARGEST_TABLE {
            Ok(None)
        } else {
            read_at(file, self.offset, self.size)
        }
    }
}

const PROGRAM_HEADER_BYTES: usize = 56;
const PT_NOTE: u64 = 4;

/// The build id in the note segments, where it is known by when the program runs. Go's linker notes one in a section that is in
/// none of them.
fn find_build_id(file: &File, segments: &[u8]) -> io::Result<Option<Vec<u8>>> {
    let notes = segments
        .chunks_exact(PROGRAM_HEADER_BYTES)
        .filter(|header| field(header, 0, 4) == PT_NOTE);
    let places = notes.map(|header| [8, 32, 48].map(|at| field(header, at, 8)));
    for [offset, size, alignment] in places.take(MOST_NOTES) {
        let Some(notes) = read_at(file, offset, size.min(LARGEST_NOTES))? else {
            continue;
        };
        if let Some(id) = build_id_in(&notes, if alignment == 8 { 8 } else { 4 }) {
            return Ok(Some(id.to_vec()));
        }
    }
    Ok(None)
}

/// The description of the note of type 3 (`NT_GNU_BUILD_ID`) of `GNU` among `notes`.
fn build_id_in(mut notes: &[u8], alignment: usize) -> Option<&[u8]> {
    while notes.len() >= 12 {
        let [name, description] = [0, 4].map(|at| field(notes, at, 4) as usize);
        let kind = field(notes, 8, 4);
        let start = 12 + name.next_multiple_of(alignment.min(4));
        let start = if alignment == 8 {
            start.next_multiple_of(8)
        } else {
            start
        };
        let content = notes.get(start..start.checked_add(description)?)?;
        if kind == 3 && notes.get(12..12 + name) == Some(b"GNU\0") {
            return Some(content).filter(|id| (1..=LONGEST_BUILD_ID).contains(&id.len()));
        }
        notes = notes.get(start + description.next_multiple_of(alignment)..)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(kind: u32, name: &[u8], content: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for number in [name.len() as u32, content.len() as u32, kind] {
            bytes.extend(number.to_le_bytes());
        }
        for part in [name, content] {
            bytes.extend(part);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        bytes
    }

    #[test]
    fn the_build_id_is_found_behind_other_notes() {
        let mut notes = note(1, b"GNU\0", &[0; 16]);
        notes.extend(note(3, b"Other\0", b"no"));
        notes.extend(note(3, b"GNU\0", b"\x12\x34\x56"));
        assert_eq!(build_id_in(&notes, 4), Some(&b"\x12\x34\x56"[..]));
        for end in 0..notes.len() - 4 {
            assert_eq!(build_id_in(&notes[..end], 4), None, "cut after {end} bytes");
        }
    }

    #[test]
    fn absurd_notes_are_no_build_id() {
        assert_eq!(build_id_in(&[0xff; 64], 4), None);
        assert_eq!(build_id_in(&[0; 64], 4), None);
        assert_eq!(build_id_in(&note(3, b"GNU\0", &[1; 65]), 4), None);
    }

    /// A program cut short keeps its headers, but is not the same.
    #[test]
    fn the_length_belongs_to_the_fingerprint() {
        let mut file = tempfile::tempfile().expect("a file");
        let mut header = [0; 64];
        header[..6].copy_from_slice(b"\x7fELF\x02\x01");
        io::Write::write_all(&mut file, &header).expect("written");
        let headers = |length| {
            Headers::read(&file, length)
                .expect("readable")
                .expect("headers")
        };
        assert_eq!(headers(64), headers(64));
        assert_ne!(headers(64), headers(65));
    }

    #[test]
    fn names_of_files() {
        let identity = Identity {
            key: Key::BuildId(vec![0xab, 1]),
            fingerprint: 255,
        };
        assert_eq!(identity.file_stem(), "ab01-00000000000000ff");
        let identity = Identity {
            key: Key::Content(1),
            fingerprint: 0,
        };
        assert_eq!(
            identity.file_stem(),
            "00000000000000000000000000000001-0000000000000000"
        );
    }
}
