//! Which functions bodies are of that were put in place of calls: what they are called, and where they are declared.
//!
//! DWARF 5 §3.3.8.2: the entry of such a body refers to the function's abstract instance (§3.3.8.1), which is in the same
//! unit, or in another one where units were compiled together, and may itself complete a declaration (§2.13.2). Each is
//! read once a unit that has bodies of it; other units are opened once, and the headers of their line programs, which name their
//! files, read once. Linear in the sections.

use super::lines::Program;
use super::paths::path;
use super::sections::Slice;
use super::subprogram::reference;
use super::unit::{Context, OpenUnit, Value, offset_of, read_abbreviation};
use gimli::{DebugInfoOffset, LineProgramHeader, UnitOffset};
use rustc_hash::FxHashMap;
use std::sync::OnceLock;

/// A function leads by so many entries to its declaration, at most.
const LONGEST_CHAIN: usize = 8;
/// Longer names are taken for garbage.
const LONGEST_NAME: usize = 1 << 13;

/// Bytes of names that there may be for each byte of a unit, and at least for a unit.
const ROOM: usize = 64;
const LEAST_ROOM: usize = 1 << 16;

/// A function.
pub(super) struct Declared {
    /// Its linkage name, else its name.
    pub(super) name: String,
    /// The path of its source file.
    pub(super) file: String,
    pub(super) line: u32,
}

/// Units that others refer to, opened when that is first needed.
pub(super) struct Others<'p, 'a> {
    pub(super) context: &'p Context<'a>,
    /// By offset.
    programs: &'p [Program<'a>],
    units: Vec<OnceLock<Option<OpenUnit<'a>>>>,
    /// Of the programs.
    headers: Vec<OnceLock<Option<LineProgramHeader<Slice<'a>>>>>,
}

impl<'p, 'a> Others<'p, 'a> {
    pub(super) fn new(context: &'p Context<'a>, programs: &'p [Program<'a>]) -> Self {
        Self {
            context,
            programs,
            units: context.headers.iter().map(|_| OnceLock::new()).collect(),
            headers: programs.iter().map(|_| OnceLock::new()).collect(),
        }
    }

    /// The unit with this number.
    fn unit(&self, number: usize) -> Option<&OpenUnit<'a>> {
        let open = || self.context.open(*self.context.headers.get(number)?).ok();
        self.units.get(number)?.get_or_init(open).as_ref()
    }

    /// The path of a file, as a unit numbers it.
    fn path(&self, open: &OpenUnit<'a>, file: u64) -> Option<String> {
        let offset = open.line_program?.0;
        let at = self
            .programs
            .binary_search_by_key(&offset, |it| it.offset.0);
        let program = self.programs.get(at.ok()?)?;
        let unit = &program.open.unit;
        let read = || {
            let size = unit.header.address_size();
            let section = &self.context.dwarf.debug_line;
            let program = section.program(program.offset, size, unit.comp_dir, unit.name);
            Some(program.ok()?.header().clone())
        };
        let header = self.headers.get(at.ok()?)?.get_or_init(read).as_ref()?;
        path(self.context, unit, header, file)
    }
}

/// One unit that has bodies.
pub(super) struct Bearer<'u, 'a> {
    pub(super) context: &'u Context<'a>,
    pub(super) open: &'u OpenUnit<'a>,
    /// The path of a file, as the unit numbers it.
    pub(super) path: &'u dyn Fn(u64) -> String,
    /// Other units of the same file; none where it has no others.
    pub(super) others: Option<&'u Others<'u, 'a>>,
}

/// The functions that the bodies of one unit are of.
pub(super) struct Origins<'u, 'a> {
    bearer: &'u Bearer<'u, 'a>,
    /// By where their entries are; what is not stated of them is `None`.
    known: FxHashMap<DebugInfoOffset, Option<u32>>,
    found: Found,
    /// How many bytes of names there may still be. Short entries may all refer to one long text.
    room: usize,
}

/// What came of it.
#[derive(Default)]
pub(super) struct Found {
    /// By number.
    pub(super) functions: Vec<Declared>,
    /// Those for whose names there was no room.
    pub(super) left_out: usize,
    /// Bytes of the unit.
    pub(super) size: usize,
}

/// What entries say, of which the first counts.
#[derive(Default)]
struct Said {
    name: Option<String>,
    linkage_name: Option<String>,
    /// The file's path.
    file: Option<String>,
    line: Option<u32>,
    next: Option<DebugInfoOffset>,
}

impl<'u, 'a> Origins<'u, 'a> {
    pub(super) fn new(bearer: &'u Bearer<'u, 'a>) -> Self {
        let unit = bearer.open.unit.header.length_including_self();
        Self {
            bearer,
            known: FxHashMap::default(),
            found: Found {
                size: unit,
                ..Found::default()
            },
            room: unit.saturating_mul(ROOM).saturating_add(LEAST_ROOM),
        }
    }

    /// The number of the function whose abstract instance this refers to.
    pub(super) fn number(&mut self, origin: Value<'a>) -> Option<u32> {
        self.number_at(reference(&self.bearer.open.unit, origin)?)
    }

    /// The number of the function of which there is an entry.
    pub(super) fn number_at(&mut self, at: DebugInfoOffset) -> Option<u32> {
        if let Some(known) = self.known.get(&at) {
            return *known;
        }
        let function = self.bearer.declared(at);
        let number = function.and_then(|function| self.add(function));
        self.known.insert(at, number);
        number
    }

    fn add(&mut self, function: Declared) -> Option<u32> {
        let size = function.name.len() + function.file.len();
        let Some(room) = self.room.checked_sub(size) else {
            self.found.left_out += 1;
            return None;
        };
        self.room = room;
        let functions = &mut self.found.functions;
        functions.push(function);
        u32::try_from(functions.len() - 1).ok()
    }

    pub(super) fn finish(self) -> Found {
        self.found
    }
}

impl<'a> Bearer<'_, 'a> {
    fn declared(&self, at: DebugInfoOffset) -> Option<Declared> {
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
        Some(Declared {
            name: said.linkage_name.or(said.name)?,
            file: said.file?,
            line: said.line?,
        })
    }

    /// Adds what the entry at `at` says.
    fn read(&self, at: DebugInfoOffset, said: &mut Said) -> Option<()> {
        let own = offset_of(&self.open.unit.header);
        let (number, within) = self.context.unit_of(at)?;
        if offset_of(self.context.headers.get(number)?) == own {
            let path = |file| Some((self.path)(file)).filter(|path| !path.is_empty());
            return said.add(self.context, self.open, within, path);
        }
        let others = self.others?;
        let open = others.unit(number)?;
        said.add(self.context, open, within, |file| others.path(open, file))
    }
}

impl Said {
    fn add<'a>(
        &mut self,
        context: &Context<'a>,
        open: &OpenUnit<'a>,
        at: UnitOffset,
        path: impl FnOnce(u64) -> Option<String>,
    ) -> Option<()> {
        let unit = &open.unit;
        let entries = unit.header.entries_raw(&unit.abbreviations, Some(at));
        let mut entries = entries.ok()?;
        let abbreviation = read_abbreviation(&mut entries).ok()??;
        let text = |value| {
            let text = context.text(unit, value)?;
            let text = String::from_utf8_lossy(text.slice());
            (text.len() <= LONGEST_NAME).then(|| text.into_owned())
        };
        let (mut file, mut line) = (None, None);
        for &specification in abbreviation.attributes() {
            let attribute = entries.read_attribute(specification).ok()?;
            let value = attribute.value();
            match attribute.name() {
                gimli::DW_AT_name if self.name.is_none() => self.name = text(value),
                gimli::DW_AT_linkage_name | gimli::DW_AT_MIPS_linkage_name
                    if self.linkage_name.is_none() =>
                {
                    self.linkage_name = text(value);
                }
                gimli::DW_AT_decl_file => {
                    file = match value {
                        Value::FileIndex(file) => Some(file),
                        other => other.udata_value(),
                    }
                }
                gimli::DW_AT_decl_line => line = value.udata_value(),
                gimli::DW_AT_abstract_origin | gimli::DW_AT_specification => {
                    self.next = reference(unit, value);
                }
                _ => {}
            }
        }
        // An entry that completes another one states what differs: of a member's definition the line, and no file if that is the same.
        if let (None, Some(file)) = (&self.file, file) {
            self.file = Some(path(file)?);
        }
        let line = line.and_then(|line| u32::try_from(line).ok());
        self.line = self.line.or(line.filter(|it| *it > 0));
        Some(())
    }
}
