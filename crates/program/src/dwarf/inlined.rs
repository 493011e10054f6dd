//! Where functions were called whose bodies were put in place of the call.
//!
//! DWARF 5 §3.3.8.2: an entry of an inlined body says where the call stood. The rows of the body state the body's
//! lines; the line of the call often has no row of its own, and is a line with code all the same, which ran if the
//! body was entered. Where that is says §2.18: at the entry address, or else at the base address (§2.17), which is
//! the start of the body, or of the first of its ranges. Compilers do not always say where, and
//! LLVM never does: whether a body ran is told by all blocks that begin in it. Linear in the unit.

use super::origin::{Bearer, Found, Origins};
use super::sections::Slice;
use super::subprogram::address;
use super::unit::{Broken, Context, OpenUnit, Value, read_abbreviation};
use crate::{Address, Range};
use gimli::{Abbreviation, EntriesRaw};

/// A call.
pub(super) struct Call {
    /// Where the body is entered.
    pub(super) address: u64,
    /// Where its code is.
    pub(super) ranges: Vec<Range>,
    /// The file of the call, as the unit's line program numbers it, and its line.
    pub(super) place: Option<(u64, u64)>,
    /// Which of the unit's [functions](calls) was called, if it is stated.
    pub(super) function: Option<u32>,
}

/// Passes on the calls of a unit, up to the first entry that cannot be read; gives back the functions that are called.
pub(super) fn calls(
    bearer: &Bearer<'_, '_>,
    pass: impl FnMut(Call),
) -> (Found, Result<(), Broken>) {
    let mut origins = Origins::new(bearer);
    let read = read(bearer, &mut origins, pass);
    (origins.finish(), read)
}

fn read<'a>(
    bearer: &Bearer<'_, 'a>,
    origins: &mut Origins<'_, 'a>,
    mut pass: impl FnMut(Call),
) -> Result<(), Broken> {
    let (context, open) = (bearer.context, bearer.open);
    let unit = &open.unit;
    let mut entries = unit.header.entries_raw(&unit.abbreviations, None)?;
    let mut budget = unit.header.length_including_self();
    while !entries.is_empty() {
        let Some(abbreviation) = read_abbreviation(&mut entries)? else {
            continue;
        };
        if abbreviation.tag() == gimli::DW_TAG_inlined_subroutine {
            let body = Body::read(&mut entries, abbreviation)?;
            body.call(context, open, origins, &mut budget)?
                .map(&mut pass);
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
    high: Option<Value<'a>>,
    ranges: Option<Value<'a>>,
    entry: Option<Value<'a>>,
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
                gimli::DW_AT_low_pc => body.low = Some(value),
                gimli::DW_AT_high_pc => body.high = Some(value),
                gimli::DW_AT_ranges => body.ranges = Some(value),
                gimli::DW_AT_entry_pc => body.entry = Some(value),
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
        budget: &mut usize,
    ) -> Result<Option<Call>, Broken> {
        let entered = self.entered(context, open)?;
        let ranges = self.all_ranges(context, open, budget)?;
        Ok(entered.map(|address| Call {
            address,
            ranges,
            place: self.file.zip(self.line),
            function: self.origin.and_then(|origin| origins.number(origin)),
        }))
    }

    /// All of its code. Bodies that share one long list of ranges would cost its length each: `budget` says how many
    /// may still be read.
    fn all_ranges(
        &self,
        context: &Context<'a>,
        open: &OpenUnit<'a>,
        budget: &mut usize,
    ) -> Result<Vec<Range>, Broken> {
        let (dwarf, unit) = (&context.dwarf, &open.unit);
        let mut all = Vec::new();
        if let Some(low) = address(dwarf, unit, self.low)?
            && let Some(high) = self.high
        {
            let end = address(dwarf, unit, Some(high))?;
            let end = end.or_else(|| low.checked_add(high.udata_value()?));
            all.extend(Range::new(Address(low), Address(end.unwrap_or(low))));
        }
        if let Some(ranges) = self.ranges
            && let Some(mut ranges) = dwarf.attr_ranges(unit, ranges)?
        {
            while let Some(range) = ranges.next()? {
                *budget = budget
                    .checked_sub(1)
                    .ok_or(Broken::Excess("too many range list entries"))?;
                all.extend(Range::new(Address(range.begin), Address(range.end)));
            }
        }
        Ok(all)
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
