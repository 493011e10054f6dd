//! Units of `.debug_info`: their headers, abbreviations, root entries, and the texts they refer to.
//!
//! DWARF 5 §3.1 (unit entries), §7.5 (format). An abbreviation table is parsed once however many units
//! share it, and ends at the latest where the next table that a unit names starts, so that parsing all
//! of them is linear in the section.

use super::sections::{Sections, Slice};
use super::troubles::Troubles;
use gimli::{
    Abbreviation, Abbreviations, AttributeValue, DebugAbbrev, DebugInfoOffset, DebugLineOffset,
    DwLang, EntriesRaw, Error, LittleEndian, Section, UnitOffset, UnitType,
};
use rustc_hash::FxHashMap;
use std::ffi::CStr;
use std::sync::{Arc, OnceLock};

pub(super) type Unit<'a> = gimli::Unit<Slice<'a>>;
pub(super) type UnitHeader<'a> = gimli::UnitHeader<Slice<'a>>;
pub(super) type Value<'a> = AttributeValue<Slice<'a>>;

/// Longer texts are taken for garbage.
const LONGEST_TEXT: usize = 1 << 16;
/// Compilers give an entry some twenty attributes at most.
const MOST_ATTRIBUTES: usize = 128;

/// All that is needed to read units.
pub(super) struct Context<'a> {
    pub(super) dwarf: gimli::Dwarf<Slice<'a>>,
    /// By offset.
    pub(super) headers: Vec<UnitHeader<'a>>,
    tables: FxHashMap<usize, Table<'a>>,
}

/// An abbreviation table, parsed when it is first needed.
struct Table<'a> {
    bytes: Slice<'a>,
    parsed: OnceLock<Result<Arc<Abbreviations>, Error>>,
}

/// A unit whose root entry has been read.
pub(super) struct OpenUnit<'a> {
    pub(super) unit: Unit<'a>,
    /// Where its line program is.
    pub(super) line_program: Option<DebugLineOffset>,
    pub(super) language: Option<DwLang>,
    /// Whether most of it is in a `.dwo` file.
    pub(super) is_split: bool,
    /// What that file is called.
    pub(super) apart: Option<Slice<'a>>,
    /// Whether it is what a compiler made of one source: no unit of types, nor a part that others share.
    pub(super) is_whole: bool,
    /// Whether GCC wrote it, or GNU as.
    pub(super) is_gnu: bool,
    /// Whether the compiler says that it did not optimise.
    pub(super) is_plain: bool,
}

/// Whether the flags that GCC says it was given, of which some always are, have it not optimise: the last counts.
fn is_plain(producer: &[u8]) -> bool {
    let mut flags = producer
        .split(|byte| *byte == b' ')
        .filter(|it| it.starts_with(b"-"));
    let any = flags.clone().next().is_some();
    any && flags
        .rfind(|it| it.starts_with(b"-O"))
        .is_none_or(|it| it == b"-O0")
}

impl<'a> Context<'a> {
    pub(super) fn new(sections: &'a Sections<'_>, troubles: &mut Troubles) -> Self {
        Self::of(sections.dwarf(), troubles)
    }

    /// The same of sections that are put together from several files.
    pub(super) fn of(dwarf: gimli::Dwarf<Slice<'a>>, troubles: &mut Troubles) -> Self {
        let headers = headers(&dwarf, troubles);
        let tables = tables(dwarf.debug_abbrev.reader().slice(), &headers);
        Self {
            dwarf,
            headers,
            tables,
        }
    }

    fn abbreviations(&self, header: &UnitHeader<'a>) -> Result<Arc<Abbreviations>, Error> {
        let offset = header.debug_abbrev_offset().0;
        let table = self
            .tables
            .get(&offset)
            .ok_or(Error::OffsetOutOfBounds(offset as u64))?;
        let parse = || DebugAbbrev::from(table.bytes).abbreviations(gimli::DebugAbbrevOffset(0));
        table.parsed.get_or_init(|| parse().map(Arc::new)).clone()
    }

    /// Reads a unit's root entry.
    pub(super) fn open(&self, header: UnitHeader<'a>) -> Result<OpenUnit<'a>, Broken> {
        let abbreviations = self.abbreviations(&header)?;
        let mut open = OpenUnit::bare(header, abbreviations, self.dwarf.file_type);
        let mut attributes = Vec::new();
        let mut entries = header.entries_raw(&open.unit.abbreviations, None)?;
        let root = read_abbreviation(&mut entries)?.ok_or(Error::MissingUnitDie)?;
        let whole = [gimli::DW_TAG_compile_unit, gimli::DW_TAG_skeleton_unit];
        open.is_whole = whole.contains(&root.tag());
        entries.read_attributes(root.attributes(), &mut attributes)?;
        for attribute in &attributes {
            open.take_base(attribute.name(), attribute.value());
        }
        // What refers to tables, only once the tables' bases are known.
        for attribute in &attributes {
            let value = attribute.value();
            match attribute.name() {
                gimli::DW_AT_comp_dir => open.unit.comp_dir = self.text(&open.unit, value),
                gimli::DW_AT_name => open.unit.name = self.text(&open.unit, value),
                gimli::DW_AT_producer => {
                    let producer = self.text(&open.unit, value);
                    let producer = producer.as_ref().map_or(&[][..], |it| it.slice());
                    open.is_gnu = producer.starts_with(b"GNU ");
                    open.is_plain = open.is_gnu && is_plain(producer);
                }
                gimli::DW_AT_dwo_name | gimli::DW_AT_GNU_dwo_name => {
                    open.apart = self.text(&open.unit, value);
                }
                gimli::DW_AT_low_pc => {
                    open.unit.low_pc = self.dwarf.attr_address(&open.unit, value)?.unwrap_or(0);
                }
                _ => {}
            }
        }
        Ok(open)
    }

    /// The text that an attribute states or refers to; `None` where there is none of a sane length.
    pub(super) fn text(&self, unit: &Unit<'a>, value: Value<'a>) -> Option<Slice<'a>> {
        let (section, offset) = match value {
            AttributeValue::String(text) => return Some(text),
            AttributeValue::DebugStrRef(offset) => (self.dwarf.debug_str.reader(), offset.0),
            AttributeValue::DebugStrRefSup(offset) => {
                (self.dwarf.sup()?.debug_str.reader(), offset.0)
            }
            AttributeValue::DebugLineStrRef(offset) => {
                (self.dwarf.debug_line_str.reader(), offset.0)
            }
            AttributeValue::DebugStrOffsetsIndex(index) => {
                let offset = self.dwarf.string_offset(unit, index).ok()?;
                (self.dwarf.debug_str.reader(), offset.0)
            }
            _ => return None,
        };
        let rest = section.slice().get(offset..)?;
        let rest = &rest[..rest.len().min(LONGEST_TEXT)];
        let text = CStr::from_bytes_until_nul(rest).ok()?;
        Some(Slice::new(text.to_bytes(), LittleEndian))
    }

    /// The unit, by its index, that has the entry at `offset`, and where it is in there.
    pub(super) fn unit_of(&self, offset: DebugInfoOffset) -> Option<(usize, UnitOffset)> {
        let after = self
            .headers
            .partition_point(|header| offset_of(header) <= offset.0);
        let index = after.checked_sub(1)?;
        Some((index, offset.to_unit_offset(&self.headers[index])?))
    }
}

impl<'a> OpenUnit<'a> {
    fn bare(
        header: UnitHeader<'a>,
        abbreviations: Arc<Abbreviations>,
        file: gimli::DwarfFileType,
    ) -> Self {
        let encoding = header.encoding();
        let dwo_id = match header.type_() {
            UnitType::Skeleton(id) | UnitType::SplitCompilation(id) => Some(id),
            _ => None,
        };
        let unit = Unit {
            header,
            abbreviations,
            name: None,
            comp_dir: None,
            low_pc: 0,
            str_offsets_base: gimli::DebugStrOffsetsBase::default_for_encoding_and_file(
                encoding, file,
            ),
            addr_base: gimli::DebugAddrBase(0),
            loclists_base: gimli::DebugLocListsBase(0),
            rnglists_base: gimli::DebugRngListsBase::default_for_encoding_and_file(encoding, file),
            line_program: None,
            dwo_id,
        };
        let is_split = matches!(header.type_(), UnitType::Skeleton(_));
        Self {
            unit,
            line_program: None,
            language: None,
            is_split,
            apart: None,
            is_whole: false,
            is_gnu: false,
            is_plain: false,
        }
    }

    fn take_base(&mut self, name: gimli::DwAt, value: Value<'a>) {
        match value {
            AttributeValue::DebugLineRef(offset) => self.line_program = Some(offset),
            AttributeValue::Language(language) => self.language = Some(language),
            AttributeValue::DebugStrOffsetsBase(base) => self.unit.str_offsets_base = base,
            AttributeValue::DebugAddrBase(base) => self.unit.addr_base = base,
            AttributeValue::DebugRngListsBase(base) => self.unit.rnglists_base = base,
            AttributeValue::DwoId(id) => self.unit.dwo_id = Some(id),
            _ => {}
        }
        self.is_split |= matches!(name, gimli::DW_AT_dwo_name | gimli::DW_AT_GNU_dwo_name);
    }
}

/// Why a unit, a line program or a list cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Broken {
    /// It is not what the specification says.
    #[error("{0}")]
    Format(#[from] Error),
    /// It is, but so big that it must be an attack.
    #[error("{0}")]
    Excess(&'static str),
}

/// Reads the abbreviation of the next entry; `None` at the end of a list of children.
///
/// An attribute may take no bytes, so without a limit an entry of one byte could have any number.
pub(super) fn read_abbreviation<'u>(
    entries: &mut EntriesRaw<'u, Slice<'_>>,
) -> Result<Option<&'u Abbreviation>, Broken> {
    match entries.read_abbreviation()? {
        Some(it) if it.attributes().len() > MOST_ATTRIBUTES => {
            Err(Broken::Excess("an entry has too many attributes"))
        }
        abbreviation => Ok(abbreviation),
    }
}

/// Where a unit starts in `.debug_info`.
pub(super) fn offset_of(header: &UnitHeader<'_>) -> usize {
    header.debug_info_offset().map_or(0, |offset| offset.0)
}

fn headers<'a>(dwarf: &gimli::Dwarf<Slice<'a>>, troubles: &mut Troubles) -> Vec<UnitHeader<'a>> {
    let mut headers: Vec<UnitHeader<'a>> = Vec::new();
    let mut units = dwarf.units();
    loop {
        match units.next() {
            Ok(Some(header)) => headers.push(header),
            Ok(None) => return headers,
            Err(error) => {
                let end = |last: &UnitHeader<'_>| offset_of(last) + last.length_including_self();
                let offset = headers.last().map_or(0, end);
                let what = "unit header cannot be read, nor what follows it";
                troubles.add(".debug_info", offset as u64, what, &error);
                return headers;
            }
        }
    }
}

fn tables<'a>(section: &'a [u8], headers: &[UnitHeader<'_>]) -> FxHashMap<usize, Table<'a>> {
    let mut starts: Vec<usize> = headers
        .iter()
        .map(|it| it.debug_abbrev_offset().0)
        .collect();
    starts.sort_unstable();
    starts.dedup();
    let ends = starts.iter().skip(1).copied().chain([section.len()]);
    let table = |(&start, end): (&usize, usize)| {
        let bytes = section.get(start..end.min(section.len()))?;
        let bytes = Slice::new(bytes, LittleEndian);
        Some((
            start,
            Table {
                bytes,
                parsed: OnceLock::new(),
            },
        ))
    };
    starts.iter().zip(ends).filter_map(table).collect()
}

#[cfg(test)]
mod tests {
    use super::is_plain;

    #[test]
    fn who_does_not_optimise_is_known_by_its_flags() {
        for (producer, expected) in [
            ("GNU C17 12.2.0 -mtune=generic -g -O0 -fPIC", true),
            ("GNU C++17 12.2.0 -mtune=generic -g", true),
            ("GNU C17 12.2.0 -g -O2 -O0", true),
            ("GNU C17 12.2.0 -g -O0 -O2", false),
            ("GNU C17 12.2.0 -g -Og", false),
            ("GNU C17 12.2.0 -O", false),
            ("GNU AS 2.40", false),
            ("GNU C17 12.2.0", false),
            ("", false),
        ] {
            assert_eq!(is_plain(producer.as_bytes()), expected, "{producer}");
        }
    }
}
