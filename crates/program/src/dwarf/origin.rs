//! Which functions bodies are of that were put in place of calls: what they are called, and where they are declared.
//!
//! DWARF 5 §3.3.8.2: the entry of such a body refers to the function's abstract instance (§3.3.8.1), which is in the same
//! unit, or in another one where units were compiled together, and may itself complete a declaration (§2.13.2). Each is
//! read once. Linear in the unit that has the bodies, and in the line programs' headers of those that it refers to.

use super::paths::path;
use super::sections::Slice;
use super::subprogram::reference;
use super::unit::{Context, OpenUnit, Value, offset_of};
use gimli::{DebugInfoOffset, LineProgramHeader};
use rustc_hash::FxHashMap;

/// A function leads by so many entries to its declaration, at most.
const LONGEST_CHAIN: usize = 8;
/// Longer names are taken for garbage.
const LONGEST_NAME: usize = 1 << 13;

/// A function.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Declared {
    /// Its linkage name, else its name.
    pub(super) name: String,
    /// The path of its source file.
    pub(super) file: String,
    pub(super) line: u32,
}

/// The functions that the bodies of one unit are of.
pub(super) struct Origins<'u, 'a> {
    context: &'u Context<'a>,
    open: &'u OpenUnit<'a>,
    /// By where their entries are; what is not stated of them is `None`.
    known: FxHashMap<DebugInfoOffset, Option<u32>>,
    functions: Vec<Declared>,
    /// Other units, by number, and the headers of line programs, by where units start.
    others: FxHashMap<usize, Option<OpenUnit<'a>>>,
    headers: FxHashMap<usize, Option<LineProgramHeader<Slice<'a>>>>,
}

/// What entries say, of which the first counts.
#[derive(Default)]
struct Said {
    name: Option<String>,
    linkage_name: Option<String>,
    /// The file's path and the line, where both are stated.
    place: Option<(String, u32)>,
    next: Option<DebugInfoOffset>,
}

impl<'u, 'a> Origins<'u, 'a> {
    pub(super) fn new(context: &'u Context<'a>, open: &'u OpenUnit<'a>) -> Self {
        Self {
            context,
            open,
            known: FxHashMap::default(),
            functions: Vec::new(),
            others: FxHashMap::default(),
            headers: FxHashMap::default(),
        }
    }

    /// The number of the function whose abstract instance this refers to.
    pub(super) fn number(&mut self, origin: Value<'a>) -> Option<u32> {
        let at = reference(&self.open.unit, origin)?;
        if let Some(known) = self.known.get(&at) {
            return *known;
        }
        let number = self.declared(at).and_then(|function| {
            self.functions.push(function);
            u32::try_from(self.functions.len() - 1).ok()
        });
        self.known.insert(at, number);
        number
    }

    /// All of them, by number.
    pub(super) fn into_functions(self) -> Vec<Declared> {
        self.functions
    }

    fn declared(&mut self, at: DebugInfoOffset) -> Option<Declared> {
        let mut said = Said {
            next: Some(at),
            ..Said::default()
        };
        for _ in 0..LONGEST_CHAIN {
            let Some(at) = said.next.take() else {
                break;
            };
            self.read(at, &mut said)?;
        }
        let (file, line) = said.place?;
        let name = said.linkage_name.or(said.name)?;
        Some(Declared { name, file, line })
    }

    /// Adds what the entry at `at` says.
    fn read(&mut self, at: DebugInfoOffset, said: &mut Said) -> Option<()> {
        let own = offset_of(&self.open.unit.header);
        let (number, within) = self.context.unit_of(at)?;
        let header = self.context.headers[number];
        if offset_of(&header) == own {
            return add(self.context, self.open, within, &mut self.headers, said);
        }
        let context = self.context;
        let open = || context.open(header).ok();
        let open = self.others.entry(number).or_insert_with(open).as_ref()?;
        add(context, open, within, &mut self.headers, said)
    }
}

fn add<'a>(
    context: &Context<'a>,
    open: &OpenUnit<'a>,
    at: gimli::UnitOffset,
    headers: &mut FxHashMap<usize, Option<LineProgramHeader<Slice<'a>>>>,
    said: &mut Said,
) -> Option<()> {
    let unit = &open.unit;
    let entry = unit.header.entry(&unit.abbreviations, at).ok()?;
    let text = |value| {
        let text = context.text(unit, value)?;
        let text = String::from_utf8_lossy(text.slice());
        (text.len() <= LONGEST_NAME).then(|| text.into_owned())
    };
    let (mut file, mut line) = (None, None);
    for attribute in entry.attrs() {
        let value = attribute.value();
        match attribute.name() {
            gimli::DW_AT_name if said.name.is_none() => said.name = text(value),
            gimli::DW_AT_linkage_name | gimli::DW_AT_MIPS_linkage_name
                if said.linkage_name.is_none() =>
            {
                said.linkage_name = text(value);
            }
            gimli::DW_AT_decl_file => {
                file = match value {
                    Value::FileIndex(file) => Some(file),
                    other => other.udata_value(),
                }
            }
            gimli::DW_AT_decl_line => line = value.udata_value(),
            gimli::DW_AT_abstract_origin | gimli::DW_AT_specification => {
                said.next = reference(unit, value);
            }
            _ => {}
        }
    }
    if let (None, Some(file), Some(line)) = (&said.place, file, line) {
        let header = headers
            .entry(offset_of(&unit.header))
            .or_insert_with(|| header(context, open));
        let path = path(context, unit, header.as_ref()?, file)?;
        said.place = Some((path, u32::try_from(line).ok().filter(|line| *line > 0)?));
    }
    Some(())
}

fn header<'a>(context: &Context<'a>, open: &OpenUnit<'a>) -> Option<LineProgramHeader<Slice<'a>>> {
    let unit = &open.unit;
    let size = unit.header.address_size();
    let section = &context.dwarf.debug_line;
    let program = section.program(open.line_program?, size, unit.comp_dir, unit.name);
    Some(program.ok()?.header().clone())
}
