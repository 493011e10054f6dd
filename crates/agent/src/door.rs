//! The door: files are opened here, and refused when somebody else could have written them. An
//! image is code; a roster says which image. Whoever may write them commands the program.

use core::ffi::CStr;

use crate::system::{self, Access, Errno, File, Status};

/// Why a file was not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Closed {
    /// The system said no.
    Errno(Errno),
    /// It belongs to another user, others may write it, or it is no plain file.
    NotPrivate,
}

const TYPE: u32 = 0o170_000;
const REGULAR: u32 = 0o100_000;
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// Opens a file that belongs to this user alone.
pub(crate) fn open_private(path: &CStr, access: Access) -> Result<(File, Status), Closed> {
    // What the launcher hands over without a name in the file system is a magic link below /proc,
    // which only the kernel can make; every other link is refused.
    let follow = path.to_bytes().starts_with(b"/proc/");
    let file = system::open(path, access, follow).map_err(Closed::Errno)?;
    let status = file.status().map_err(Closed::Errno)?;
    let private = status.mode & TYPE == REGULAR
        && status.mode & WRITABLE_BY_OTHERS == 0
        && status.user == system::effective_user();
    if private {
        Ok((file, status))
    } else {
        Err(Closed::NotPrivate)
    }
}

/// Whether nobody else could put a file beside the one at `path`, or another one in its place. Where
/// the kernel makes the files (below /proc) nobody can.
pub(crate) fn is_in_private_folder(path: &CStr) -> bool {
    if path.to_bytes().starts_with(b"/proc/") {
        return true;
    }
    let mut buffer = [0; 4096];
    let folder = beside(path, c".", &mut buffer);
    let status = folder.and_then(|folder| system::status(folder).ok());
    status.is_some_and(|status| {
        status.mode & WRITABLE_BY_OTHERS == 0 && status.user == system::effective_user()
    })
}

/// `name` below the folder of `base`, or `name` itself where it is absolute; `None` where that is
/// too long. The bytes end with a zero.
pub(crate) fn beside<'b>(base: &CStr, name: &CStr, buffer: &'b mut [u8; 4096]) -> Option<&'b CStr> {
    let name = name.to_bytes_with_nul();
    let base = base.to_bytes();
    let folder = if name.first() == Some(&b'/') {
        &[]
    } else {
        let end = base
            .iter()
            .rposition(|byte| *byte == b'/')
            .map_or(0, |at| at + 1);
        base.get(..end)?
    };
    let length = folder.len().checked_add(name.len())?;
    let target = buffer.get_mut(..length)?;
    for (to, from) in target.iter_mut().zip(folder.iter().chain(name)) {
        *to = *from;
    }
    CStr::from_bytes_with_nul(buffer.get(..length)?).ok()
}
