//! What Go's linker states of functions: its table of them (`.gopclntab`), which the runtime needs to grow and to scan stacks, and
//! so no program is without, stripped or not.
//!
//! Sources: runtime/symtab.go (`pcHeader`, `moduledata`, `functab`), runtime/runtime2.go (`_func`) and internal/abi/symtab.go of
//! Go 1.18 to 1.27, which differ in the places of some fields. Tables of older Go are not read: they do not say which
//! functions are assembly.
//!
//! A function that a compiler wrote is entered at its start; behind its calls; and, where it has `defer`, once a panic has been
//! recovered from, at its call of `deferreturn`, whatever was called when the panic began (runtime/panic.go, `recovery`):
//! for the graph that is a landing pad of all calls. What is written in assembly is entered where the runtime likes, and not told of.

mod lines;

use crate::elf::Binary;
use crate::unwind::{CallSite, ExceptionTable, UnwindEntry};
use crate::{Address, Range};

/// Where the table of functions is, if Go's linker was the last: another one puts it among what the loader relocates.
const SECTION: &str = ".gopclntab";
/// Places that are taken for its beginning at most.
const MOST_PLACES: usize = 16;

/// What is stated of functions, by address.
#[derive(Default)]
pub(crate) struct Stated<'data> {
    /// Those that Go's compiler wrote, as unwind tables would state them.
    pub(crate) entries: Vec<UnwindEntry>,
    /// What all of them are called.
    pub(crate) names: Vec<(Address, &'data str)>,
}

impl Stated<'_> {
    /// What the function that starts there is called.
    pub(crate) fn name(&self, start: Address) -> Option<&str> {
        let found = self.names.binary_search_by_key(&start, |(at, _)| *at);
        found.ok().map(|index| self.names[index].1)
    }
}

/// What the table states; nothing where there is none, or one that is not understood.
pub(crate) fn read<'data>(binary: &Binary<'data>) -> Stated<'data> {
    let table = Table::find(binary);
    let mut stated = table
        .and_then(|table| table.functions())
        .unwrap_or_default();
    let is_code = |entry: &UnwindEntry| binary.is_code(entry.range.start());
    stated.entries.retain(is_code);
    stated
}

/// Whether Go's linker was at work: it leaves its name in the data, where `go version` finds it; before Go 1.13 only
/// its table of functions says so.
#[must_use]
pub fn is_in(binary: &Binary<'_>) -> bool {
    const NAME: &[u8] = b"\xff Go buildinf:";
    const ALIGNMENT: u64 = 16;
    let is_named = binary.data_regions().any(|region| {
        let ahead = region.range.start().0.wrapping_neg() % ALIGNMENT;
        let aligned = region.bytes.get(ahead as usize..).unwrap_or_default();
        let mut places = aligned.chunks_exact(ALIGNMENT as usize);
        places.any(|place| place.starts_with(NAME))
    });
    is_named || binary.mapped_section(SECTION).is_some()
}

/// Where the table may begin, with what is there: at its section, else wherever its first bytes are.
fn places<'data>(binary: &Binary<'data>) -> impl Iterator<Item = (Address, &'data [u8])> {
    let section = binary.mapped_section(SECTION);
    let regions = binary.data_regions().filter(move |_| section.is_none());
    let begun = regions.flat_map(|region| {
        let ahead = region.range.start().0.wrapping_neg() % 8;
        let places = (ahead as usize..region.bytes.len()).step_by(8);
        places.filter_map(|at| {
            let bytes = region.bytes.get(at..)?;
            flags(bytes)?;
            Some((region.range.start().checked_add(at as u64)?, bytes))
        })
    });
    section.into_iter().chain(begun)
}

/// Where in the descriptions of a table that begins so a function's flags are; nothing if none does.
fn flags(bytes: &[u8]) -> Option<usize> {
    // Behind the magic number: two zeros, the least size of an instruction, that of a pointer.
    match (word(bytes, 0)?, bytes.get(4..8)?) {
        // Go 1.18 and 1.19.
        (0xffff_fff0, [0, 0, 1, 8]) => Some(37),
        // Since Go 1.20 a function's first line is stated before them.
        (0xffff_fff1, [0, 0, 1, 8]) => Some(41),
        _ => None,
    }
}

/// The table.
#[derive(Clone, Debug)]
pub(crate) struct Table<'data> {
    bytes: &'data [u8],
    /// Where the functions' offsets are counted from.
    text: u64,
    /// Functions.
    count: usize,
    /// Where the list of them begins.
    list: usize,
    /// Where their names are.
    names: usize,
    /// Where in a function's description its flags are.
    flags: usize,
}

/// A function, and what its description begins with.
struct Described<'data> {
    start: Address,
    size: u32,
    about: &'data [u8],
}

/// In a description: where the name is.
const NAME: usize = 4;
/// In a description: where the call of `deferreturn` is, from the function's start; 0 if there is none.
const DEFER_RETURN: usize = 12;
/// A flag: what is written in assembly, and what writes the stack pointer.
const ASSEMBLY: u8 = 4;
const WRITES_STACK_POINTER: u8 = 2;

impl<'data> Table<'data> {
    /// That of a program, if there is one that is understood.
    pub(crate) fn find(binary: &Binary<'data>) -> Option<Self> {
        let mut places = places(binary).take(MOST_PLACES);
        places.find_map(|at| Self::read(binary, at))
    }

    fn read(binary: &Binary<'data>, (at, bytes): (Address, &'data [u8])) -> Option<Self> {
        let mut table = Self {
            bytes,
            text: 0,
            count: usize::try_from(long(bytes, 8)?).ok()?,
            list: usize::try_from(long(bytes, 64)?).ok()?,
            names: usize::try_from(long(bytes, 32)?).ok()?,
            flags: flags(bytes)?,
        };
        let mut texts = descriptions(binary, at).filter_map(|at| table.text_by(binary, at));
        table.text = texts.next()?;
        Some(table)
    }

    /// The start of the text by this description of the module, if what else it says of the text is what the list says.
    fn text_by(&self, binary: &Binary<'_>, module: Address) -> Option<u64> {
        const LEAST: u64 = 160;
        const END: u64 = 168;
        const TEXT: u64 = 176;
        let [least, end, text] = [LEAST, END, TEXT].map(|field| {
            let slot = Address(module.0.checked_add(field)?);
            pointer(binary, slot)
        });
        let text = text?;
        let list = self.bytes.get(self.list..)?;
        let [first, last] = [word(list, 0)?, word(list, self.count.checked_mul(8)?)?];
        let is_so = |stated: Option<u64>, offset: u32| stated == text.checked_add(offset.into());
        // Whatever the table says of how long functions are, together they are no longer than the file.
        let fits = last.checked_sub(first)? as usize <= binary.file_size();
        (fits && is_so(least, first) && is_so(end, last)).then_some(text)
    }

    /// All functions; nothing where the list is not in order.
    fn functions(&self) -> Option<Stated<'data>> {
        let mut found = Stated::default();
        // No name is part of another, so all of them are no longer than what they are in.
        let mut room = self.bytes.len();
        for index in 0..self.count {
            let Described { start, size, about } = self.described(index)?;
            let name = self.name(word(about, NAME)?, &mut room);
            found.names.extend(name.map(|name| (start, name)));
            if about.get(self.flags)? & (ASSEMBLY | WRITES_STACK_POINTER) != 0 {
                continue;
            }
            let range = Range::sized(start, size.into());
            let Some(range) = range.filter(|range| range.size() > 0) else {
                continue;
            };
            let pad = word(about, DEFER_RETURN)?;
            let pad = Some(pad).filter(|pad| *pad != 0 && *pad < size);
            found.entries.push(entry(range, pad));
        }
        Some(found)
    }

    /// The function with this number. In the list each is stated with the place of its description; behind the last is the end
    /// of the text.
    fn described(&self, index: usize) -> Option<Described<'data>> {
        let list = self.bytes.get(self.list..)?;
        let at = index.checked_mul(8)?;
        let (start, end) = (word(list, at)?, word(list, at.checked_add(8)?)?);
        let about = list.get(word(list, at + 4)? as usize..)?;
        (word(about, 0)? == start).then_some(Described {
            start: Address(self.text.checked_add(start.into())?),
            size: end.checked_sub(start)?,
            about,
        })
    }

    /// The name at this distance from the first, for which there is `room`.
    fn name(&self, at: u32, room: &mut usize) -> Option<&'data str> {
        let bytes = self.bytes.get(self.names.checked_add(at as usize)?..)?;
        let bytes = bytes.get(..*room).unwrap_or(bytes);
        let length = bytes.iter().position(|byte| *byte == 0);
        *room = room.saturating_sub(length.unwrap_or(bytes.len()));
        let name = std::str::from_utf8(&bytes[..length?]).ok()?;
        Some(name).filter(|name| !name.is_empty())
    }
}

/// Where the module may be described (`moduledata`): whatever begins with the address of its table.
fn descriptions(binary: &Binary<'_>, table: Address) -> impl Iterator<Item = Address> {
    let relocated = binary.pointer_slots().iter();
    let relocated = relocated.filter(move |(_, target)| *target == table);
    let as_stated = binary.data_regions().flat_map(move |region| {
        let words = (0..region.bytes.len()).step_by(8);
        let holds = words.filter(move |at| long(region.bytes, *at) == Some(table.0));
        holds.filter_map(|at| region.range.start().checked_add(at as u64))
    });
    relocated.map(|(slot, _)| *slot).chain(as_stated)
}

/// What is in a slot once the loader is done.
fn pointer(binary: &Binary<'_>, slot: Address) -> Option<u64> {
    match binary.pointer_in_slot(slot) {
        Some(target) => Some(target.0),
        None => long(binary.data_at(slot)?, 0),
    }
}

/// A function in which a recovered panic goes on at this distance from its start.
fn entry(range: Range, pad: Option<u32>) -> UnwindEntry {
    let site = pad.map(|pad| CallSite {
        range,
        landing_pad: range.start().0.checked_add(pad.into()).map(Address),
        catches: true,
    });
    UnwindEntry {
        range,
        entry_frame: true,
        signal_frame: false,
        call_sites: site.into_iter().collect(),
        asynchronous: true,
        exceptions: match pad {
            Some(_) => ExceptionTable::Read,
            None => ExceptionTable::None,
        },
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(8)?)?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::{Table, flags};
    use crate::{Address, Range};

    /// A function: its size, its flags, and where its call of `deferreturn` is.
    type Function = (u32, u8, u32);

    /// A table of these functions, with this magic number.
    fn table(magic: u32, functions: &[Function]) -> Vec<u8> {
        let names = 72;
        let mut bytes = magic.to_le_bytes().to_vec();
        bytes.extend([0, 0, 1, 8]);
        let fields = [
            functions.len(),
            0,
            0,
            names,
            0,
            0,
            0,
            names + 2 * functions.len(),
        ];
        bytes.extend(
            fields
                .iter()
                .flat_map(|field| (*field as u64).to_le_bytes()),
        );
        for index in 0..functions.len() {
            bytes.extend([b'a' + index as u8, 0]);
        }
        let (mut list, mut about) = (Vec::new(), Vec::new());
        let mut start = 0_u32;
        for (index, (size, flags, pad)) in functions.iter().enumerate() {
            let place = 8 * functions.len() + 4 + about.len();
            list.extend([start, place as u32]);
            // From the start to the line where the function starts, which Go states since 1.20.
            let mut words = vec![start, 2 * index as u32, 0, *pad, 0, 0, 0, 0, 0];
            words.extend((magic == 0xffff_fff1).then_some(9));
            about.extend(words.iter().flat_map(|word| word.to_le_bytes()));
            about.extend([0, *flags, 0, 0]);
            start += size;
        }
        list.push(start);
        bytes.extend(list.iter().flat_map(|word| word.to_le_bytes()));
        bytes.extend(about);
        bytes
    }

    fn read(bytes: &[u8]) -> Option<Vec<(Range, Option<Address>)>> {
        let table = Table {
            bytes,
            text: 0x1000,
            count: super::long(bytes, 8)? as usize,
            list: super::long(bytes, 64)? as usize,
            names: super::long(bytes, 32)? as usize,
            flags: flags(bytes)?,
        };
        let stated = table.functions()?;
        let names: Vec<&str> = stated.names.iter().map(|(_, name)| *name).collect();
        assert_eq!(names, ["a", "b", "c", "d"]);
        let pad = |sites: &[super::CallSite]| sites.first().and_then(|site| site.landing_pad);
        let entries = stated.entries.iter();
        Some(
            entries
                .map(|one| (one.range, pad(&one.call_sites)))
                .collect(),
        )
    }

    #[test]
    fn tables_of_both_forms_say_the_same() {
        // One of assembly, one with `defer`, an empty one.
        let functions = [(16, 4, 0), (32, 0, 7), (0, 0, 0), (16, 1, 0)];
        let range = |start, size| Range::sized(Address(start), size).expect("a range");
        for magic in [0xffff_fff0, 0xffff_fff1] {
            let bytes = table(magic, &functions);
            let expected = [
                (range(0x1010, 32), Some(Address(0x1017))),
                (range(0x1030, 16), None),
            ];
            assert_eq!(read(&bytes).as_deref(), Some(&expected[..]));
            // Nobody looks at what is behind the last flags.
            for length in 0..bytes.len() - 2 {
                assert_eq!(read(&bytes[..length]), None, "cut after {length} bytes");
            }
        }
        assert_eq!(flags(&table(0xffff_fffa, &functions)), None, "Go 1.16");
    }
}
