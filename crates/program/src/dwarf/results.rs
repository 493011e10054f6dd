//! Whether a type that a function states as its result is one: `void` hides behind names and
//! qualifiers, and Rust's `!` is a base type.

use super::unit::{Broken, Context, OpenUnit, Unit, Value, read_abbreviation};
use gimli::{AttributeValue, DebugInfoOffset, UnitOffset};
use rustc_hash::FxHashMap;

/// No sane type has more names for another than this.
const MOST_STEPS: usize = 32;

/// What a function's `DW_AT_type` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stated {
    /// There is none.
    Nothing,
    /// A type without values, by another name.
    Void,
    /// Something.
    Value,
    /// Rust's `!`: it does not return.
    Never,
    /// A type that stands for one not yet known (`auto`), or one that cannot be read.
    Unclear,
    /// A type in another unit.
    Elsewhere(DebugInfoOffset),
}

/// The types of one unit, as far as asked for.
pub(super) struct Types<'u, 'a> {
    open: &'u OpenUnit<'a>,
    context: &'u Context<'a>,
    known: FxHashMap<UnitOffset, Stated>,
}

impl<'u, 'a> Types<'u, 'a> {
    pub(super) fn new(context: &'u Context<'a>, open: &'u OpenUnit<'a>) -> Self {
        Self {
            open,
            context,
            known: FxHashMap::default(),
        }
    }

    /// What a `DW_AT_type` of this value says.
    pub(super) fn stated(&mut self, value: Value<'a>) -> Stated {
        match value {
            AttributeValue::UnitRef(offset) => self.at(offset),
            AttributeValue::DebugInfoRef(offset) => {
                match offset.to_unit_offset(&self.open.unit.header) {
                    Some(offset) => self.at(offset),
                    None => Stated::Elsewhere(offset),
                }
            }
            // A type in a type unit has members or enumerators; one in a file of dwz's, unknown.
            AttributeValue::DebugTypesRef(_) => Stated::Value,
            _ => Stated::Unclear,
        }
    }

    /// What the type at `offset` is.
    pub(super) fn at(&mut self, offset: UnitOffset) -> Stated {
        if let Some(&known) = self.known.get(&offset) {
            return known;
        }
        let stated = self.follow(offset);
        self.known.insert(offset, stated);
        stated
    }

    fn follow(&self, mut offset: UnitOffset) -> Stated {
        for _ in 0..MOST_STEPS {
            match self.step(offset) {
                Ok(Step::Is(stated)) => return stated,
                Ok(Step::Names(next)) => offset = next,
                Err(_) => return Stated::Unclear,
            }
        }
        Stated::Unclear
    }

    fn step(&self, offset: UnitOffset) -> Result<Step, Broken> {
        let unit = &self.open.unit;
        let mut entries = unit.header.entries_raw(&unit.abbreviations, Some(offset))?;
        let Some(abbreviation) = read_abbreviation(&mut entries)? else {
            return Ok(Step::Is(Stated::Unclear));
        };
        let mut name: &[u8] = &[];
        let mut named = None;
        for &specification in abbreviation.attributes() {
            let attribute = entries.read_attribute(specification)?;
            match attribute.name() {
                gimli::DW_AT_type => named = Some(attribute.value()),
                gimli::DW_AT_name => {
                    let text = self.context.text(unit, attribute.value());
                    name = text.map_or(&[], |text| text.slice());
                }
                _ => {}
            }
        }
        Ok(match abbreviation.tag() {
            gimli::DW_TAG_typedef
            | gimli::DW_TAG_const_type
            | gimli::DW_TAG_volatile_type
            | gimli::DW_TAG_atomic_type => Self::next(unit, named),
            gimli::DW_TAG_base_type if name == b"!" => Step::Is(Stated::Never),
            gimli::DW_TAG_unspecified_type => Step::Is(unspecified(name)),
            _ => Step::Is(Stated::Value),
        })
    }

    fn next(unit: &Unit<'a>, value: Option<Value<'a>>) -> Step {
        match value {
            None => Step::Is(Stated::Void),
            Some(AttributeValue::UnitRef(offset)) => Step::Names(offset),
            Some(AttributeValue::DebugInfoRef(offset)) => match offset.to_unit_offset(&unit.header)
            {
                Some(offset) => Step::Names(offset),
                None => Step::Is(Stated::Elsewhere(offset)),
            },
            Some(AttributeValue::DebugTypesRef(_)) => Step::Is(Stated::Value),
            Some(_) => Step::Is(Stated::Unclear),
        }
    }
}

/// What a type without a description is, by its name.
fn unspecified(name: &[u8]) -> Stated {
    match name {
        b"void" => Stated::Void,
        b"auto" | b"decltype(auto)" | b"" => Stated::Unclear,
        _ => Stated::Value,
    }
}

enum Step {
    Is(Stated),
    Names(UnitOffset),
}
