//! Finds the file to which a program's debug information was moved.
//!
//! Source: GDB's manual, *Debugging Information in Separate Files*, which all distributions follow:
//! by build id in `DIRECTORY/.build-id/ab/cdef….debug`; by the name and CRC-32 that `.gnu_debuglink`
//! states, beside the program, in `.debug` beside it, and in `DIRECTORY/path/of/the/program`.
//! `DIRECTORY` is `/usr/lib/debug`. Nothing is fetched from anywhere.
//!
//! Debug information of another build would be plausible and wrong, so a file is taken only if it is
//! proven to be of this one: its build id is the program's, and what is found by a link has the stated
//! checksum (which is all there is to go by where the program has no build id).

use crate::Warning;
use crate::dwarf::Sections;
use crate::identity::hexadecimal;
use object::LittleEndian;
use object::elf::{FileHeader64, NT_GNU_BUILD_ID};
use object::read::elf::{FileHeader, NoteIterator, ProgramHeader, SectionHeader};
use object::read::{ReadCache, ReadRef};
use std::ffi::{CStr, OsStr};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const ENDIAN: LittleEndian = LittleEndian;

/// Names directories to search instead of `/usr/lib/debug`, with colons in between.
pub const DIRECTORIES_VARIABLE: &str = "TOMO_DEBUG_DIR";

/// Directories that hold debug files of installed programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directories(pub Vec<PathBuf>);

impl Directories {
    /// Those that [`DIRECTORIES_VARIABLE`] names, or the usual one.
    #[must_use]
    pub fn from_environment() -> Self {
        match std::env::var_os(DIRECTORIES_VARIABLE) {
            Some(named) => Self(std::env::split_paths(&named).collect()),
            None => Self(vec![PathBuf::from("/usr/lib/debug")]),
        }
    }
}

/// A file with the debug information of a program.
#[derive(Clone, Debug)]
pub struct DebugFile {
    /// Where it is.
    pub path: PathBuf,
    /// Its bytes.
    pub data: Vec<u8>,
}

impl DebugFile {
    /// Its debug sections.
    #[must_use]
    pub fn sections(&self) -> Sections<'_> {
        Sections::read_at(&self.data, &self.path)
    }
}

/// What came of the search.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// The file, if there is one.
    pub file: Option<DebugFile>,
    /// Files that have the right name and are not of this build.
    pub warnings: Vec<Warning>,
    /// Where it was looked for in vain.
    pub missed: Vec<PathBuf>,
}

/// Looks for the debug file of the program at `program`, whose bytes are `data`.
#[must_use]
pub fn find(program: &Path, data: &[u8], directories: &Directories) -> Found {
    find_for(program, data, directories)
}

/// Whether there is a debug file of the program at `program`, of which no more is read than it takes to tell.
pub(crate) fn exists(program: &Path, directories: &Directories) -> bool {
    let Ok(file) = File::open(program) else {
        return false;
    };
    let read = ReadCache::new(file);
    find_for(program, &read, directories).file.is_some()
}

fn find_for<'data>(program: &Path, data: impl ReadRef<'data>, directories: &Directories) -> Found {
    let build_id = build_id(data);
    let link = link(data);
    let mut found = Found::default();
    let by_id = by_build_id(build_id.unwrap_or_default(), directories);
    let by_link = link
        .map(|link| by_link(program, link.name, directories))
        .unwrap_or_default();
    let checked = by_id.into_iter().map(|path| (path, None));
    let checked = checked.chain(
        by_link
            .into_iter()
            .map(|path| (path, link.map(|it| it.crc))),
    );
    for (path, crc) in checked {
        let Some(data) = read(&path) else {
            found.missed.push(path);
            continue;
        };
        match mismatch(&data[..], build_id, crc) {
            None => {
                found.file = Some(DebugFile { path, data });
                break;
            }
            Some(what) => {
                found
                    .warnings
                    .push(Warning::new(path.display().to_string(), what));
            }
        }
    }
    found
}

/// Reads a regular file; what cannot be read is not there.
fn read(path: &Path) -> Option<Vec<u8>> {
    path.metadata().ok().filter(std::fs::Metadata::is_file)?;
    std::fs::read(path).ok()
}

/// Why a file does not belong to the program.
fn mismatch(data: &[u8], expected: Option<&[u8]>, crc: Option<u32>) -> Option<&'static str> {
    if expected.is_some() && build_id(data) != expected {
        return Some("debug file of another build (its build id differs), not used");
    }
    match crc {
        Some(crc) if crc32(data) != crc => {
            Some("not the debug file that the program's .gnu_debuglink means (checksum), not used")
        }
        _ => None,
    }
}

/// Where a debug file may be by its build id.
fn by_build_id(build_id: &[u8], directories: &Directories) -> Vec<PathBuf> {
    let [first, rest @ ..] = build_id else {
        return Vec::new();
    };
    if rest.is_empty() {
        return Vec::new();
    }
    let name = format!(".build-id/{first:02x}/{}.debug", hexadecimal(rest));
    directories
        .0
        .iter()
        .map(|directory| directory.join(&name))
        .collect()
}

/// Where a debug file may be by its name.
fn by_link(program: &Path, name: &OsStr, directories: &Directories) -> Vec<PathBuf> {
    let Ok(program) = program.canonicalize() else {
        return Vec::new();
    };
    let Some(home) = program.parent() else {
        return Vec::new();
    };
    let mut paths = vec![home.join(name), home.join(".debug").join(name)];
    if let Ok(below) = home.strip_prefix("/") {
        paths.extend(directories.0.iter().map(|it| it.join(below).join(name)));
    }
    paths
}

/// What `.gnu_debuglink` states.
#[derive(Clone, Copy)]
struct Link<'data> {
    name: &'data OsStr,
    crc: u32,
}

/// A file's `.gnu_debuglink`: a name, its end, padding to four bytes, and a CRC-32.
fn link<'data>(data: impl ReadRef<'data>) -> Option<Link<'data>> {
    let header = FileHeader64::<LittleEndian>::parse(data).ok()?;
    let sections = header.sections(ENDIAN, data).ok()?;
    let (_, section) = sections.section_by_name(ENDIAN, b".gnu_debuglink")?;
    let contents = section.data(ENDIAN, data).ok()?;
    let name = CStr::from_bytes_until_nul(contents).ok()?.to_bytes();
    let crc = contents
        .get((name.len() + 1).next_multiple_of(4)..)?
        .first_chunk()?;
    // It has no directories by definition; a name that has some is not to lead anywhere else.
    let is_plain = !name.is_empty() && !name.contains(&b'/') && name != b"." && name != b"..";
    is_plain.then(|| Link {
        name: OsStr::from_bytes(name),
        crc: u32::from_le_bytes(*crc),
    })
}

/// A file's build id, from its note sections, else its note segments.
pub(crate) fn build_id<'data>(data: impl ReadRef<'data>) -> Option<&'data [u8]> {
    let header = FileHeader64::<LittleEndian>::parse(data).ok()?;
    let sections = header.sections(ENDIAN, data).ok();
    let sections = sections.iter().flat_map(|table| table.iter());
    let mut of_sections = sections.filter_map(|it| it.notes(ENDIAN, data).ok().flatten());
    of_sections.find_map(build_id_note).or_else(|| {
        let segments = header.program_headers(ENDIAN, data).ok()?.iter();
        let mut of_segments = segments.filter_map(|it| it.notes(ENDIAN, data).ok().flatten());
        of_segments.find_map(build_id_note)
    })
}

fn build_id_note<'data>(
    mut notes: NoteIterator<'data, FileHeader64<LittleEndian>>,
) -> Option<&'data [u8]> {
    while let Ok(Some(note)) = notes.next() {
        if note.name() == b"GNU" && note.n_type(ENDIAN) == NT_GNU_BUILD_ID {
            return Some(note.desc()).filter(|id| !id.is_empty());
        }
    }
    None
}

/// The CRC-32 of ISO 3309 (that of zlib and `.gnu_debuglink`), a byte at a time.
fn crc32(data: &[u8]) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0; 256];
        let mut byte = 0;
        while byte < 256 {
            let mut crc = byte as u32;
            let mut bit = 0;
            while bit < 8 {
                crc = if crc & 1 == 0 {
                    crc >> 1
                } else {
                    0xedb8_8320 ^ (crc >> 1)
                };
                bit += 1;
            }
            table[byte] = crc;
            byte += 1;
        }
        table
    };
    !data.iter().fold(!0, |crc, &byte| {
        TABLE[((crc ^ u32::from(byte)) & 0xff) as usize] ^ (crc >> 8)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_the_standard_one() {
        assert_eq!(crc32(b""), 0);
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn no_build_id_leads_nowhere() {
        let directories = Directories(vec![PathBuf::from("/d")]);
        assert!(by_build_id(&[], &directories).is_empty());
        assert!(by_build_id(&[1], &directories).is_empty());
        let expected = vec![PathBuf::from("/d/.build-id/01/0aff.debug")];
        assert_eq!(by_build_id(&[1, 10, 255], &directories), expected);
    }
}
