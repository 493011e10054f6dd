//! Where functions were called whose bodies were put in place of the call.
//!
//! DWARF 5 §3.3.8.2: an entry of an inlined body says where the call stood. The rows of the body state the body's
//! lines; the line of the call often has no row of its own, and is a line with code all the same, which ran if the
//! body was entered. Where that is says §2.18: at the entry address, or else at the base address (§2.17), which is
//! the start of the body, or of the first of its ranges. Linear in the unit; of ranges only the first is read.

use super::sections::Slice;
use super::subprogram::address;
use super::unit::{Broken, Context, OpenUnit, Value, read_abbreviation};
use gimli::{Abbreviation, EntriesRaw};

/// A call.
pub(super) struct Call {
    /// Where the body is entered.
    pub(super) address: u64,
    /// The file of the call, as the unit's line program numbers it.
    pub(super) file: u64,
    /// Its line.
    pub(super) line: u64,
}

/// Passes on the calls of a unit, up to the first entry that cannot be read.
pub(super) fn calls<'a>(
    context: &Context<'a>,
    open: &OpenUnit<'a>,
    mut pass: impl FnMut(Call),
) -> Result<(), Broken> {
    let unit = &open.unit;
    let mut entries = unit.header.entries_raw(&unit.abbreviations, None)?;
    while !entries.is_empty() {
        let Some(abbreviation) = read_abbreviation(&mut entries)? else {
            continue;
        };
        if abbreviation.tag() == gimli::DW_TAG_inlined_subroutine {
            let body = Body::read(&mut entries, abbreviation)?;
            body.call(context, open)?.map(&mut pass);
        } else {
            entries.skip_attributes(abbreviation.attributes())?;
        }
    }
    Ok(())
}

/// What is stated of a body.
#[derive(Default)]
struct Body<'a> {
    low: Option<Value<'a>>,
    ranges: Option<Value<'a>>,
    entry: Option<Value<'a>>,
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
                gimli::DW_AT_low_pc => body.low = Some(value),
                gimli::DW_AT_ranges => body.ranges = Some(value),
                gimli::DW_AT_entry_pc => body.entry = Some(value),
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

    /// The call, if the place and the entry are known.
    fn call(&self, context: &Context<'a>, open: &OpenUnit<'a>) -> Result<Option<Call>, Broken> {
        let (Some(file), Some(line)) = (self.file, self.line) else {
            return Ok(None);
        };
        let entered = self.entered(context, open)?;
        Ok(entered.map(|address| Call {
            address,
            file,
            line,
        }))
    }

    fn entered(&self, context: &Context<'a>, open: &OpenUnit<'a>) -> Result<Option<u64>, Broken> {
        let (dwarf, unit) = (&context.dwarf, &open.unit);
        if let Some(entry) = address(dwarf, unit, self.entry)? {
            return Ok(Some(entry));
        }
        let mut base = address(dwarf, unit, self.low)?;
        if let (None, Some(ranges)) = (base, self.ranges)
            && let Some(mut ranges) = dwarf.attr_ranges(unit, ranges)?
        {
            base = ranges.next()?.map(|range| range.begin);
        }
        // An entry that is no address is as far from there.
        let offset = self.entry.and_then(|entry| entry.udata_value());
        Ok(base.and_then(|base| base.checked_add(offset.unwrap_or(0))))
    }
}
