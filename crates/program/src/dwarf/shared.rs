//! Texts that several files share: those of the file that `dwz -m` makes, which `.gnu_debugaltlink` names.
//!
//! Source: the manual of dwz; the section has a path, absolute or beside the file that has the section, its end, and the
//! build id of the shared file. Debian's debug files are such. Entries that are shared are not read, only texts; but that there are
//! some is told.

use super::sections::named;
use crate::Warning;
use crate::debug_file::build_id;
use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

const LINK: &str = ".gnu_debugaltlink";

/// What a file shares with others.
#[derive(Default)]
pub(super) struct Shared {
    /// Its `.debug_str`.
    pub(super) texts: Vec<u8>,
    /// The shared file, if it has entries, too.
    pub(super) entries: Option<PathBuf>,
}

/// What the file at `path` whose bytes are `elf` shares with others; nothing where it names no such file.
pub(super) fn of(elf: &[u8], path: &Path) -> Result<Shared, Warning> {
    let ([link], _) = named(elf, [LINK]);
    let Ok(name) = CStr::from_bytes_until_nul(&link) else {
        return Ok(Shared::default());
    };
    let expected = link.get(name.count_bytes() + 1..);
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let shared = path.with_file_name(OsStr::from_bytes(name.to_bytes()));
    let trouble = |what: &str| Warning::new(LINK, format!("{} {what}", shared.display()));
    let data = match shared.metadata() {
        Ok(metadata) if metadata.is_file() => std::fs::read(&shared).ok(),
        _ => None,
    };
    let data = data.ok_or_else(|| trouble("was not found: names that are in it are missing"))?;
    if build_id(&data[..]) != expected {
        return Err(trouble(
            "is of another build (its build id differs), not used",
        ));
    }
    let ([texts, entries], _) = named(&data, [".debug_str", ".debug_info"]);
    let has_entries = !entries.is_empty();
    Ok(Shared {
        texts: texts.into_owned(),
        entries: has_entries.then_some(shared),
    })
}
