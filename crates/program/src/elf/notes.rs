//! The build id: NT_GNU_BUILD_ID among the notes that the loader maps. What is noted in a section alone (by Go's linker) is not
//! known when the program runs.

use object::elf;
use object::endian::LittleEndian as LE;
use object::read::ReadRef;

use super::segments::Segments;

/// How many note segments are looked through.
const MOST_TABLES: usize = 64;

/// The build id, when the file has one.
pub(crate) fn build_id<'data>(
    data: &'data [u8],
    segments: &Segments<'data>,
) -> Option<&'data [u8]> {
    let tables = segments.of_type(elf::PT_NOTE).map(|(_, header)| {
        (
            header.p_offset.get(LE),
            header.p_filesz.get(LE),
            header.p_align.get(LE),
        )
    });
    let mut tables = tables.take(MOST_TABLES);
    tables.find_map(|(offset, size, align)| find_in(data.read_bytes_at(offset, size).ok()?, align))
}

/// Looks through one table of notes, whose parts are padded to `align`.
fn find_in(mut notes: &[u8], align: u64) -> Option<&[u8]> {
    let align = if align == 8 { 8 } else { 4 };
    loop {
        let header = notes.read_at::<elf::NoteHeader64<LE>>(0).ok()?;
        let name_start = size_of::<elf::NoteHeader64<LE>>();
        let name_end = name_start.checked_add(header.n_namesz.get(LE) as usize)?;
        let start = name_end.checked_next_multiple_of(align)?;
        let end = start.checked_add(header.n_descsz.get(LE) as usize)?;
        let is_id = header.n_type.get(LE) == elf::NT_GNU_BUILD_ID;
        if is_id && notes.get(name_start..name_end)? == b"GNU\0" {
            return notes.get(start..end).filter(|id| !id.is_empty());
        }
        notes = notes.get(end.checked_next_multiple_of(align)?..)?;
    }
}
