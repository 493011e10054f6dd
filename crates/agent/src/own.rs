//! What a process has of its own where processes are kept separate: a record, and a copy of an image's
//! text of which nobody else disposes anything.

use core::ffi::CStr;

use tomo_wire::image::Image;
use tomo_wire::record::{ENDING, Field, Record, live_offset};

use crate::door;
use crate::names::Name;
use crate::system::{self, Access, EXISTS, Errno, File};
use crate::told;

/// Processes of one run that had the same number, at most.
const MOST: u32 = 64;

/// A record.
pub(crate) struct Own {
    pub(crate) file: File,
    /// Whether this process had it before it executed this program.
    pub(crate) continued: bool,
}

/// The texts of `image`, whose file is `bytes`, in a file of their own, at the same places.
pub(crate) fn text(image: &Image, bytes: &[u8]) -> Result<File, Errno> {
    let file = system::memory_file(c"tomo:text")?;
    for region in image.regions() {
        let start = region.offset.get() as usize;
        let text = bytes.get(start..).unwrap_or(&[]);
        let text = text.get(..region.length.get() as usize).unwrap_or(&[]);
        file.write_at(text, start as u64)?;
    }
    Ok(file)
}

/// Where a process began that is to have a record.
#[derive(Clone, Copy)]
pub(crate) enum Began {
    /// At the start of its program.
    AtItsStart,
    /// Where its parent forked it.
    Forked,
}

/// This process's own record, beside the one at `shared` that has this header: made, or the one that it
/// has already.
pub(crate) fn record(shared: &CStr, header: &Record, began: Began) -> Result<Own, Errno> {
    let (process, identity) = (system::process(), identity());
    for number in 1..=MOST {
        let mut name = Name::new();
        let path = path_of(&mut name, shared, process, number).ok_or(TOO_LONG)?;
        let (file, continued) = match system::create(path) {
            Ok(file) => {
                let filled = fill(&file, header.of_process(process), identity, began);
                filled.inspect_err(|_| system::remove(path))?;
                (file, false)
            }
            Err(EXISTS) => match mine(path, header, process, identity) {
                Some(file) => (file, true),
                None => continue,
            },
            Err(errno) => return Err(errno),
        };
        return Ok(Own { file, continued });
    }
    Err(EXISTS)
}

/// The kernel's word for a name that is too long.
const TOO_LONG: Errno = Errno(36);

/// `STEM.record` for this process: `STEM.PROCESS.record`, and from the second of that number on
/// `STEM.PROCESS-NUMBER.record`.
fn path_of<'n>(
    name: &'n mut Name<4096>,
    shared: &CStr,
    process: u32,
    number: u32,
) -> Option<&'n CStr> {
    let shared = shared.to_bytes();
    name.push(shared.strip_suffix(ENDING.as_bytes()).unwrap_or(shared))?;
    name.push(b".")?;
    name.push_number(process)?;
    if number > 1 {
        name.push(b"-")?;
        name.push_number(number)?;
    }
    name.push(ENDING.as_bytes())?;
    name.ended()
}

/// Writes a record without marks, with room for all of them.
fn fill(file: &File, header: Record, identity: Option<u64>, began: Began) -> Result<(), Errno> {
    file.allocate(0, header.length())?;
    let forked = u64::from(matches!(began, Began::Forked));
    let fields = [
        (Field::Identity, identity.unwrap_or(0)),
        (Field::Forked, forked),
    ];
    for (field, value) in fields {
        file.write_at(&value.to_le_bytes(), live_offset(field))?;
    }
    file.write_at(&header.sealed(), 0)
}

/// The record at `path` if this very process made it, before it executed the program that runs now.
fn mine(path: &CStr, header: &Record, process: u32, identity: Option<u64>) -> Option<File> {
    let (file, status) = door::open_private(path, Access::ReadWrite).ok()?;
    let mut head = [0; size_of::<Record>()];
    file.read_at(&mut head, 0).ok()?;
    let found = Record::read(&head, status.length.try_into().ok()?).ok()?;
    let mut stated = [0; 8];
    file.read_at(&mut stated, live_offset(Field::Identity))
        .ok()?;
    let same = found.module == header.module
        && found.plan == header.plan
        && found.run == header.run
        && found.process.get() == process;
    (same && identity == Some(u64::from_le_bytes(stated))).then_some(file)
}

/// What tells this process from all others that have its number, earlier or in another namespace; `None` where the system does not say.
pub(crate) fn identity() -> Option<u64> {
    Some(system::namespace()? << 32 | started()? & u64::from(u32::MAX))
}

/// When this process was started, in the system's ticks since it runs.
fn started() -> Option<u64> {
    /// Fields between the command, which may hold anything, and the start.
    const BETWEEN: usize = 19;
    let mut buffer = [0; 1024];
    let text = told::read(c"/proc/self/stat", &mut buffer)?;
    let end = text.iter().rposition(|byte| *byte == b')')?;
    let fields = text.get(end.checked_add(2)?..)?;
    told::number(fields.split(|byte| *byte == b' ').nth(BETWEEN)?)
}
