//! All `DW_TAG_subprogram` entries of a unit, as stated, references not yet followed.
//!
//! DWARF 5 §3.3. The whole tree is walked: subprograms stand in units, namespaces, types, blocks and
//! in each other.

use super::results::{Stated, Types};
use super::sections::Slice;
use super::troubles::Troubles;
use super::unit::{
    Broken, Context, OpenUnit, Unit, UnitHeader, Value, offset_of, read_abbreviation,
};
use crate::{Address, Range};
use gimli::{Abbreviation, AttributeValue, DebugInfoOffset, EntriesRaw};
use rayon::prelude::*;

/// One `DW_TAG_subprogram`: a declaration, a definition, or an instance of one.
pub(super) struct Subprogram<'a> {
    /// Where it stands in `.debug_info`.
    pub(super) offset: DebugInfoOffset,
    /// The entry whose attributes it also has: abstract origin or specification.
    pub(super) origin: Option<DebugInfoOffset>,
    pub(super) name: Option<&'a [u8]>,
    pub(super) linkage_name: Option<&'a [u8]>,
    pub(super) result: Stated,
    pub(super) noreturn: bool,
    pub(super) is_external: bool,
    /// Whether it stands in nothing but namespaces, so that without a linkage name its name is one.
    pub(super) is_global: bool,
    pub(super) entry: Option<Address>,
    pub(super) ranges: Vec<Range>,
}

/// What a unit says about functions.
#[derive(Default)]
pub(super) struct UnitFunctions<'a> {
    /// By offset.
    pub(super) subprograms: Vec<Subprogram<'a>>,
    /// Whether a subprogram without a type returns nothing, or may just have lost it (as with line
    /// tables only, or in assembly).
    pub(super) states_results: bool,
}

/// Reads all units, in parallel. What cannot be read is empty.
pub(super) fn read_units<'a>(
    context: &Context<'a>,
    troubles: &mut Troubles,
) -> Vec<UnitFunctions<'a>> {
    let read = |&header: &UnitHeader<'a>| read_unit(context, header);
    let all: Vec<_> = context.headers.par_iter().map(read).collect();
    let mut units = Vec::with_capacity(all.len());
    for (result, header) in all.into_iter().zip(&context.headers) {
        let mut add = |what, detail: &dyn std::fmt::Display| {
            troubles.add(".debug_info", offset_of(header) as u64, what, detail);
        };
        let walk = result.unwrap_or_else(|error| {
            add("unit cannot be read", &error);
            Reading::default()
        });
        if walk.is_split {
            add(
                "functions of this unit are in a .dwo file, which is not read",
                &"",
            );
        }
        if let Some(error) = walk.broken_ranges {
            add(
                "address ranges of a function in this unit cannot be read",
                &error,
            );
        }
        units.push(walk.functions);
    }
    units
}

/// What came of reading a unit.
#[derive(Default)]
struct Reading<'a> {
    functions: UnitFunctions<'a>,
    is_split: bool,
    broken_ranges: Option<Broken>,
}

fn read_unit<'a>(context: &Context<'a>, header: UnitHeader<'a>) -> Result<Reading<'a>, Broken> {
    let open = context.open(header)?;
    let mut walk = Walk {
        context,
        open: &open,
        types: Types::new(context, &open),
        range_budget: header.length_including_self(),
        scope: 0,
        reading: Reading {
            is_split: open.is_split,
            ..Reading::default()
        },
    };
    walk.run()?;
    let mut reading = walk.reading;
    reading.functions.states_results &= open.language.is_none_or(has_stated_results);
    Ok(reading)
}

/// Whether a language's subprograms state what they return.
fn has_stated_results(language: gimli::DwLang) -> bool {
    // Go passes results as parameters; assembly has no types, however much else is in the unit.
    const ASSEMBLY: gimli::DwLang = gimli::DwLang(0x31);
    !matches!(
        language,
        gimli::DW_LANG_Go | gimli::DW_LANG_Mips_Assembler | ASSEMBLY
    )
}

struct Walk<'u, 'a> {
    context: &'u Context<'a>,
    open: &'u OpenUnit<'a>,
    types: Types<'u, 'a>,
    /// How many entries of range lists may still be read. Subprograms that share one long list
    /// would otherwise cost its length each.
    range_budget: usize,
    /// The depth of entries that stand in nothing but namespaces.
    scope: isize,
    reading: Reading<'a>,
}

type Entries<'u, 'a> = EntriesRaw<'u, Slice<'a>>;

impl<'u, 'a> Walk<'u, 'a> {
    fn run(&mut self) -> Result<(), Broken> {
        let unit = &self.open.unit;
        let mut entries = unit.header.entries_raw(&unit.abbreviations, None)?;
        while !entries.is_empty() {
            let offset = entries.next_offset();
            let depth = entries.next_depth();
            let Some(abbreviation) = read_abbreviation(&mut entries)? else {
                self.scope = self.scope.min(entries.next_depth());
                continue;
            };
            if abbreviation.tag() == gimli::DW_TAG_subprogram {
                let offset = DebugInfoOffset(offset_of(&unit.header).saturating_add(offset.0));
                self.subprogram(&mut entries, abbreviation, offset, depth)?;
                continue;
            }
            self.note(abbreviation, depth);
            entries.skip_attributes(abbreviation.attributes())?;
        }
        Ok(())
    }

    /// What an entry's tag tells about those after it.
    fn note(&mut self, abbreviation: &Abbreviation, depth: isize) {
        match abbreviation.tag() {
            gimli::DW_TAG_formal_parameter if !self.reading.functions.states_results => {
                self.reading.functions.states_results = has(abbreviation, gimli::DW_AT_type);
            }
            gimli::DW_TAG_compile_unit
            | gimli::DW_TAG_partial_unit
            | gimli::DW_TAG_type_unit
            | gimli::DW_TAG_namespace
            | gimli::DW_TAG_module
                if depth == self.scope && abbreviation.has_children() =>
            {
                self.scope += 1;
            }
            _ => {}
        }
    }

    fn subprogram(
        &mut self,
        entries: &mut Entries<'u, 'a>,
        abbreviation: &Abbreviation,
        offset: DebugInfoOffset,
        depth: isize,
    ) -> Result<(), Broken> {
        let mut subprogram = Subprogram::at(offset, depth == self.scope);
        let mut code = Code::default();
        let mut is_prototyped = false;
        let mut is_declaration = false;
        for &specification in abbreviation.attributes() {
            let attribute = entries.read_attribute(specification)?;
            match attribute.name() {
                gimli::DW_AT_prototyped => is_prototyped = true,
                gimli::DW_AT_declaration => is_declaration = true,
                gimli::DW_AT_type => {
                    subprogram.result = self.types.stated(attribute.value());
                    self.reading.functions.states_results = true;
                }
                gimli::DW_AT_low_pc => code.low = Some(attribute.value()),
                gimli::DW_AT_high_pc => code.high = Some(attribute.value()),
                gimli::DW_AT_ranges => code.list = Some(attribute.value()),
                gimli::DW_AT_entry_pc => code.entry = Some(attribute.value()),
                name => subprogram.take(self.context, &self.open.unit, name, &attribute),
            }
        }
        // clang marks even the declarations that it keeps for line tables only.
        self.reading.functions.states_results |= is_prototyped && !is_declaration;
        if let Err(error) = self.place(&mut subprogram, code) {
            self.reading.broken_ranges.get_or_insert(error);
        }
        self.reading.functions.subprograms.push(subprogram);
        Ok(())
    }

    /// Finds the bytes of a subprogram, if it has any (DWARF 5 §2.17, §2.18).
    fn place(&mut self, subprogram: &mut Subprogram<'a>, code: Code<'a>) -> Result<(), Broken> {
        let dwarf = &self.context.dwarf;
        let unit = &self.open.unit;
        let ranges = code.ranges(dwarf, unit, &mut self.range_budget)?;
        let Some(first) = ranges.first() else {
            return Ok(());
        };
        let entry = match code.entry {
            Some(value) => match address(dwarf, unit, Some(value))? {
                Some(entry) => Some(Address(entry)),
                None => value
                    .udata_value()
                    .and_then(|offset| first.start().checked_add(offset)),
            },
            None => None,
        };
        subprogram.entry = Some(entry.unwrap_or(first.start()));
        subprogram.ranges = ranges;
        Ok(())
    }
}

impl<'a> Subprogram<'a> {
    fn at(offset: DebugInfoOffset, is_global: bool) -> Self {
        Self {
            offset,
            origin: None,
            name: None,
            linkage_name: None,
            result: Stated::Nothing,
            noreturn: false,
            is_external: false,
            is_global,
            entry: None,
            ranges: Vec::new(),
        }
    }

    fn take(
        &mut self,
        context: &Context<'a>,
        unit: &Unit<'a>,
        name: gimli::DwAt,
        attribute: &gimli::Attribute<Slice<'a>>,
    ) {
        let value = || attribute.value();
        let text = || {
            context
                .text(unit, attribute.value())
                .map(|text| text.slice())
        };
        match name {
            gimli::DW_AT_name => self.name = text(),
            gimli::DW_AT_linkage_name | gimli::DW_AT_MIPS_linkage_name => {
                self.linkage_name = text();
            }
            gimli::DW_AT_external => self.is_external = value() == AttributeValue::Flag(true),
            gimli::DW_AT_noreturn => self.noreturn = value() == AttributeValue::Flag(true),
            gimli::DW_AT_abstract_origin | gimli::DW_AT_specification => {
                // One that leads to another file leads nowhere, which is not the same as none.
                self.origin = reference(unit, value()).or(Some(NOWHERE));
            }
            _ => {}
        }
    }
}

/// What an entry says of its bytes.
#[derive(Default)]
pub(super) struct Code<'a> {
    pub(super) low: Option<Value<'a>>,
    pub(super) high: Option<Value<'a>>,
    pub(super) list: Option<Value<'a>>,
    pub(super) entry: Option<Value<'a>>,
}

impl<'a> Code<'a> {
    /// Where they are, if the linker has kept them. Entries that share one long list would cost its length each: `budget`
    /// says how many entries of lists may still be read.
    pub(super) fn ranges(
        &self,
        dwarf: &gimli::Dwarf<Slice<'a>>,
        unit: &Unit<'a>,
        budget: &mut usize,
    ) -> Result<Vec<Range>, Broken> {
        let mut ranges = Vec::new();
        if let Some(list) = self.list {
            let Some(mut list) = dwarf.attr_ranges(unit, list)? else {
                return Ok(ranges);
            };
            while let Some(raw) = list.next_raw()? {
                *budget = budget
                    .checked_sub(1)
                    .ok_or(Broken::Excess("too many range list entries"))?;
                if let Some(it) = list.convert_raw(raw)? {
                    ranges.extend(range(unit, it.begin, it.end));
                }
            }
        } else if let (Some(low), Some(high)) = (address(dwarf, unit, self.low)?, self.high) {
            let end = address(dwarf, unit, Some(high))?;
            let end = end.or_else(|| low.checked_add(high.udata_value()?));
            ranges.extend(range(unit, low, end.unwrap_or(low)));
        }
        Ok(ranges)
    }
}

fn has(abbreviation: &Abbreviation, name: gimli::DwAt) -> bool {
    abbreviation
        .attributes()
        .iter()
        .any(|attribute| attribute.name() == name)
}

/// No unit has an entry there.
const NOWHERE: DebugInfoOffset = DebugInfoOffset(usize::MAX);

pub(super) fn reference(unit: &Unit<'_>, value: Value<'_>) -> Option<DebugInfoOffset> {
    match value {
        AttributeValue::UnitRef(offset) => offset_of(&unit.header)
            .checked_add(offset.0)
            .map(DebugInfoOffset),
        AttributeValue::DebugInfoRef(offset) => Some(offset),
        _ => None,
    }
}

pub(super) fn address<'a>(
    dwarf: &gimli::Dwarf<Slice<'a>>,
    unit: &Unit<'a>,
    value: Option<Value<'a>>,
) -> Result<Option<u64>, Broken> {
    match value {
        Some(value) => Ok(dwarf.attr_address(unit, value)?),
        None => Ok(None),
    }
}

/// A range, unless it is empty or that of a function which the linker threw away: such addresses
/// become 0 (GNU ld) or the largest ones (lld).
fn range(unit: &Unit<'_>, start: u64, end: u64) -> Option<Range> {
    let is_gone = start == 0 || unit.header.is_tombstone_address(start);
    let range = Range::new(Address(start), Address(end))?;
    (!is_gone && !range.is_empty()).then_some(range)
}
