//! Texts that several files share: those of the file that `dwz -m` makes, which `.gnu_debugaltlink` names.
//!
//! Source: the manual of dwz; the section has a path, absolute or beside the file that has the section, its end, and the
//! build id of the shared file. Debian's debug files are such. Entries that are shared are not read, only texts.

use super::sections::named;
use crate::Warning;
use crate::debug_file::build_id;
use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

const LINK: &str = ".gnu_debugaltlink";

/// The shared texts of the file at `path` whose bytes are `elf`; none where it shares none.
pub(super) fn texts(elf: &[u8], path: &Path) -> Result<Vec<u8>, Warning> {
    let ([link], _) = named(elf, [LINK]);
    let Ok(name) = CStr::from_bytes_until_nul(&link) else {
        return Ok(Vec::new());
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
    let ([texts], _) = named(&data, [".debug_str"]);
    Ok(texts.into_owned())
}
