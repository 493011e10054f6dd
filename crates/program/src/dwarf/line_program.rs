//! Runs one line program against the addresses asked for.
//!
//! DWARF 5 §6.2.2 (state machine), §6.2.5 (instructions). `gimli` decodes the instructions; the
//! registers are kept here, because only four of them are needed, and because a broken program must
//! not overflow them.

use super::paths::path;
use super::sections::Slice;
use super::unit::{Broken, Context, OpenUnit};
use crate::Address;
use gimli::{DebugLineOffset, LineInstruction, LineProgramHeader};
use rustc_hash::FxHashMap;

/// What a line program says about the addresses asked for.
#[derive(Default)]
pub(super) struct Covered {
    /// Paths of the files that are mentioned.
    pub(super) files: Vec<String>,
    /// In the order of the program.
    pub(super) runs: Vec<Run>,
}

/// Addresses asked for that one row covers.
pub(super) struct Run {
    /// Index of the first address.
    pub(super) first: u32,
    /// Index behind the last address.
    pub(super) end: u32,
    /// Index into [`Covered::files`].
    pub(super) file: u32,
    /// Line number, from 1.
    pub(super) line: u32,
}

/// Runs the line program at `offset` against sorted addresses.
pub(super) fn run<'a>(
    context: &Context<'a>,
    open: &OpenUnit<'a>,
    offset: DebugLineOffset,
    addresses: &[Address],
) -> Result<Covered, Broken> {
    let merger = Merger::new(addresses);
    let (merger, paths) = drive(context, open, offset, merger)?;
    Ok(merger.finish(&paths))
}

/// What takes the rows of a line program, in its order.
pub(super) trait Sink {
    /// A row, or the end of a sequence, at `address`.
    fn row(&mut self, address: u64, row: Option<Row>);
    /// What follows is a sequence of its own.
    fn forget(&mut self);
}

/// Gives the rows of the line program at `offset` to `sink`; and gives back what names its files.
pub(super) fn drive<'a, S: Sink>(
    context: &Context<'a>,
    open: &OpenUnit<'a>,
    offset: DebugLineOffset,
    sink: S,
) -> Result<(S, impl Fn(u64) -> String), Broken> {
    let unit = &open.unit;
    let size = unit.header.address_size();
    let section = &context.dwarf.debug_line;
    let program = section.program(offset, size, unit.comp_dir, unit.name)?;
    let header = program.header();
    let mut machine = Machine::new(header, sink);
    let mut instructions = header.instructions();
    while let Some(instruction) = instructions.next_instruction(header)? {
        machine.execute(header, instruction);
    }
    // Files that the program itself defines (DWARF 4 and before; nobody does) have no path.
    let paths = move |file| path(context, unit, program.header(), file).unwrap_or_default();
    Ok((machine.sink, paths))
}

/// The registers that matter. All arithmetic wraps: nonsense leads to addresses nobody asked for.
struct Machine<S> {
    address: u64,
    operation: u64,
    row: Row,
    /// What a sequence starts with.
    start: Row,
    /// The linker threw away what the current rows are about, and gave it this address.
    is_gone: bool,
    tombstone: u64,
    sink: S,
}

/// Where a row says the code comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Row {
    /// The file's number in the program.
    pub(super) file: u64,
    /// 0 where there is none.
    pub(super) line: u64,
    /// Whether a statement is recommended to begin here.
    pub(super) is_statement: bool,
}

impl<S: Sink> Machine<S> {
    fn new(header: &LineProgramHeader<Slice<'_>>, sink: S) -> Self {
        let bits = u32::from(header.address_size().clamp(1, 8)) * 8;
        let tombstone = (u64::MAX >> (64 - bits)) - 1;
        let start = Row {
            file: 1,
            line: 1,
            is_statement: header.default_is_stmt(),
        };
        // A sequence that sets no address starts at 0, where nothing is.
        Self {
            address: 0,
            operation: 0,
            row: start,
            start,
            is_gone: true,
            tombstone,
            sink,
        }
    }

    fn execute(
        &mut self,
        header: &LineProgramHeader<Slice<'_>>,
        instruction: LineInstruction<Slice<'_>>,
    ) {
        match instruction {
            LineInstruction::Special(opcode) => {
                let advance = self.special(header, opcode);
                let line = i64::from(header.line_base()) + i64::from(advance);
                self.row.line = self.row.line.wrapping_add_signed(line);
                self.emit();
            }
            LineInstruction::Copy => self.emit(),
            LineInstruction::AdvancePc(operations) => self.advance(header, operations),
            LineInstruction::AdvanceLine(by) => {
                self.row.line = self.row.line.wrapping_add_signed(by);
            }
            LineInstruction::SetFile(file) => self.row.file = file,
            LineInstruction::NegateStatement => self.row.is_statement ^= true,
            LineInstruction::ConstAddPc => {
                self.special(header, u8::MAX);
            }
            LineInstruction::FixedAddPc(bytes) => {
                self.address = self.address.wrapping_add(u64::from(bytes));
                self.operation = 0;
            }
            LineInstruction::SetAddress(address) => self.set_address(address),
            LineInstruction::EndSequence => self.end(),
            _ => {}
        }
    }

    /// Advances the address as a special opcode does, and says by how much the line advances.
    fn special(&mut self, header: &LineProgramHeader<Slice<'_>>, opcode: u8) -> u8 {
        let adjusted = opcode.wrapping_sub(header.opcode_base());
        let range = header.line_range().max(1);
        self.advance(header, u64::from(adjusted / range));
        adjusted % range
    }

    fn advance(&mut self, header: &LineProgramHeader<Slice<'_>>, operations: u64) {
        let each = u64::from(header.maximum_operations_per_instruction().max(1));
        let operation = self.operation.wrapping_add(operations);
        let bytes = u64::from(header.minimum_instruction_length()).wrapping_mul(operation / each);
        self.address = self.address.wrapping_add(bytes);
        self.operation = operation % each;
    }

    fn set_address(&mut self, address: u64) {
        self.is_gone = address == 0 || address >= self.tombstone;
        self.address = address;
        self.operation = 0;
        if self.is_gone {
            self.sink.forget();
        }
    }

    fn emit(&mut self) {
        if !self.is_gone {
            self.sink.row(self.address, Some(self.row));
        }
    }

    fn end(&mut self) {
        if !self.is_gone {
            self.sink.row(self.address, None);
        }
        self.sink.forget();
        (self.address, self.operation, self.row, self.is_gone) = (0, 0, self.start, true);
    }
}

/// Merges rows, which mostly ascend, against addresses, which do.
pub(super) struct Merger<'q> {
    addresses: &'q [Address],
    /// The row whose end is not known yet, and its address.
    last: Option<(u64, Row)>,
    /// Index of the first address asked for that is not before that row.
    next: usize,
    runs: Vec<Run>,
    files: Vec<u64>,
    numbers: FxHashMap<u64, u32>,
}

impl<'q> Merger<'q> {
    pub(super) fn new(addresses: &'q [Address]) -> Self {
        let numbers = FxHashMap::default();
        Self {
            addresses,
            last: None,
            next: 0,
            runs: Vec::new(),
            files: Vec::new(),
            numbers,
        }
    }

    /// What was found, with the paths of files in place of their numbers.
    pub(super) fn finish(self, path: impl Fn(u64) -> String) -> Covered {
        Covered {
            files: self.files.into_iter().map(path).collect(),
            runs: self.runs,
        }
    }

    /// Says that `row` covers the addresses from `first` up to the next.
    fn cover(&mut self, first: usize, row: Row) {
        let line = u32::try_from(row.line).ok().filter(|&line| line != 0);
        let (Some(line), Ok(end)) = (line, u32::try_from(self.next)) else {
            return;
        };
        if first == self.next {
            return;
        }
        let file = *self.numbers.entry(row.file).or_insert_with(|| {
            self.files.push(row.file);
            self.files.len() as u32 - 1
        });
        let first = first as u32;
        match self.runs.last_mut() {
            Some(last) if (last.end, last.file, last.line) == (first, file, line) => last.end = end,
            _ => self.runs.push(Run {
                first,
                end,
                file,
                line,
            }),
        }
    }
}

impl Sink for Merger<'_> {
    fn row(&mut self, address: u64, row: Option<Row>) {
        match self.last {
            Some((before, last)) if before <= address => {
                let first = self.next;
                self.next = first + leading(&self.addresses[first..], address);
                self.cover(first, last);
            }
            // The first row of a sequence, or one that goes back, which is not allowed.
            _ => self.next = self.addresses.partition_point(|it| it.0 < address),
        }
        self.last = row.map(|row| (address, row));
    }

    fn forget(&mut self) {
        self.last = None;
    }
}

/// How many of the sorted `addresses` are before `address`: doubling steps, then a binary search, as
/// it is mostly none or one.
pub(super) fn leading(addresses: &[Address], address: u64) -> usize {
    let mut bound = 1;
    while bound <= addresses.len() && addresses[bound - 1].0 < address {
        bound *= 2;
    }
    let (low, high) = (bound / 2, addresses.len().min(bound));
    low + addresses[low..high].partition_point(|it| it.0 < address)
}
