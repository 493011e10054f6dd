//! Where functions were called whose bodies were put in place of the call, and where those with code of their own are entered.
//!
//! DWARF 5 §3.3.8.2: an entry of an inlined body says where the call stood. The rows of the body state the body's
//! lines; the line of the call often has no row of its own, and is a line with code all the same, which ran if the
//! body was entered. Where that is says §2.18: at the entry address, or else at the base address (§2.17), which is
//! the start of the body, or of the first of its ranges. Compilers do not always say where, LLVM not
//! before version 20: whether a body ran is told by all blocks that begin in it. Linear in the unit.

use super::origin::{Bearer, Found, Origins};
use super::sections::Slice;
use super::subprogram::{Code, address};
use super::unit::{Broken, Context, OpenUnit, Value, offset_of, read_abbreviation};
use crate::Range;
use gimli::{Abbreviation, DebugInfoOffset, EntriesRaw};

/// Entries of lists of ranges that are read for each byte of a unit, at most.
const RANGES: usize = 4;

/// A call.
pub(super) struct Call {
    /// Where the body is entered.
    pub(super) address: u64,
    /// Whether that is stated.
    pub(super) is_stated: bool,
    /// Where its code is.
    pub(super) ranges: Vec<Range>,
    /// The file of the call, as the unit's line program numbers it, and its line.
    pub(super) place: Option<(u64, u64)>,
    /// Which of the unit's [functions](entered) was called, if it is stated.
    pub(super) function: Option<u32>,
}

/// A function with code of its own.
pub(super) struct Own {
    /// Where it is entered.
    pub(super) address: u64,
    /// Which of the unit's [functions](entered) it is.
    pub(super) function: u32,
}

/// Where a function is entered.
pub(super) enum Entry {
    Call(Call),
    Own(Own),
}

/// Passes on where the functions of a unit are entered, up to the first entry that cannot be read, and calls of which only the code is
/// not known; gives back the functions.
pub(super) fn entered(
    bearer: &Bearer<'_, '_>,
    pass: impl FnMut(Entry),
) -> (Found, Result<(), Broken>) {
    let mut origins = Origins::new(bearer);
    let read = read(bearer, &mut origins, pass);
    (origins.finish(), read)
}

fn read<'a>(
    bearer: &Bearer<'_, 'a>,
    origins: &mut Origins<'_, 'a>,
    mut pass: impl FnMut(Entry),
) -> Result<(), Broken> {
    let (context, open) = (bearer.context, bearer.open);
    let unit = &open.unit;
    let mut entries = unit.header.entries_raw(&unit.abbreviations, None)?;
    let mut budget = unit.header.length_including_self().saturating_mul(RANGES);
    let mut all_known = Ok(());
    while !entries.is_empty() {
        let at = entries.next_offset();
        let Some(abbreviation) = read_abbreviation(&mut entries)? else {
            continue;
        };
        if abbreviation.tag() == gimli::DW_TAG_inlined_subroutine {
            let body = Body::read(&mut entries, abbreviation)?;
            let ranges = body.code.ranges(&context.dwarf, unit, &mut budget);
            let ranges = ranges.unwrap_or_else(|error| {
                all_known = Err(error);
                Vec::new()
            });
            let call = body.call(context, open, origins, ranges)?;
            call.map(Entry::Call).map(&mut pass);
        } else if abbreviation.tag() == gimli::DW_TAG_subprogram {
            let body = Body::read(&mut entries, abbreviation)?;
            let at = DebugInfoOffset(offset_of(&unit.header).saturating_add(at.0));
            let own = body.entered(context, open)?.and_then(|address| {
                let function = origins.number_at(at)?;
                Some(Own { address, function })
            });
            own.map(Entry::Own).map(&mut pass);
        } else {
            entries.skip_attributes(abbreviation.attributes())?;
        }
    }
    all_known
}

/// What is stated of a body.
#[derive(Default)]
struct Body<'a> {
    code: Code<'a>,
    origin: Option<Value<'a>>,
    file: Option<u64>,
    line: Option<u64>,
}

impl<'a> Body<'a> {
    fn read(
        entries: &mut EntriesRaw<'_, Slice<'a>>,
        abbreviation: &Abbreviation,
    ) -> Result<Self, Broken> {
        let mut body = Self::default();
        for &specification in abbreviation.attributes() {
            let attribute = entries.read_attribute(specification)?;
            let value = attribute.value();
            match attribute.name() {
                gimli::DW_AT_low_pc => body.code.low = Some(value),
                gimli::DW_AT_high_pc => body.code.high = Some(value),
                gimli::DW_AT_ranges => body.code.list = Some(value),
                gimli::DW_AT_entry_pc => body.code.entry = Some(value),
                gimli::DW_AT_abstract_origin => body.origin = Some(value),
                gimli::DW_AT_call_line => body.line = value.udata_value(),
                gimli::DW_AT_call_file => {
                    body.file = match value {
                        Value::FileIndex(file) => Some(file),
                        other => other.udata_value(),
                    }
                }
                _ => {}
            }
        }
        Ok(body)
    }

    /// The call, if the entry is known.
    fn call(
        &self,
        context: &Context<'a>,
        open: &OpenUnit<'a>,
        origins: &mut Origins<'_, 'a>,
        ranges: Vec<Range>,
    ) -> Result<Option<Call>, Broken> {
        let entered = self.entered(context, open)?;
        Ok(entered.map(|address| Call {
            address,
            is_stated: self.code.entry.is_some(),
            ranges,
            place: self.file.zip(self.line),
            function: self.origin.and_then(|origin| origins.number(origin)),
        }))
    }

    fn entered(&self, context: &Context<'a>, open: &OpenUnit<'a>) -> Result<Option<u64>, Broken> {
        let (dwarf, unit) = (&context.dwarf, &open.unit);
        if let Some(entry) = address(dwarf, unit, self.code.entry)? {
            return Ok(Some(entry));
        }
        let mut base = address(dwarf, unit, self.code.low)?;
        if let (None, Some(ranges)) = (base, self.code.list)
            && let Some(mut ranges) = dwarf.attr_ranges(unit, ranges)?
        {
            base = ranges.next()?.map(|range| range.begin);
        }
        // An entry that is no address is as far from there.
        let offset = self.code.entry.and_then(|entry| entry.udata_value());
        Ok(base.and_then(|base| base.checked_add(offset.unwrap_or(0))))
    }
}
