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
    let unit = &open.unit;
    let size = unit.header.address_size();
    let section = &context.dwarf.debug_line;
    let program = section.program(offset, size, unit.comp_dir, unit.name)?;
    let header = program.header();
    let mut machine = Machine::new(header, addresses);
    let mut instructions = header.instructions();
    while let Some(instruction) = instructions.next_instruction(header)? {
        machine.execute(header, instruction);
    }
    let files = machine.merger.files.iter();
    // Files that the program itself defines (DWARF 4 and before; nobody does) have no path.
    let files = files
        .map(|&file| path(context, unit, header, file).unwrap_or_default())
        .collect();
    Ok(Covered {
        files,
        runs: machine.merger.runs,
    })
}

/// The registers that matter. All arithmetic wraps: nonsense leads to addresses nobody asked for.
struct Machine<'q> {
    address: u64,
    operation: u64,
    row: Row,
    /// The linker threw away what the current rows are about, and gave it this address.
    is_gone: bool,
    tombstone: u64,
    merger: Merger<'q>,
}

/// Where a row says the code comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Row {
    file: u64,
    line: u64,
}

const START: Row = Row { file: 1, line: 1 };

impl<'q> Machine<'q> {
    fn new(header: &LineProgramHeader<Slice<'_>>, addresses: &'q [Address]) -> Self {
        let bits = u32::from(header.address_size().clamp(1, 8)) * 8;
        let tombstone = (u64::MAX >> (64 - bits)) - 1;
        let merger = Merger::new(addresses);
        // A sequence that sets no address starts at 0, where nothing is.
        Self {
            address: 0,
            operation: 0,
            row: START,
            is_gone: true,
            tombstone,
            merger,
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
            self.merger.forget();
        }
    }

    fn emit(&mut self) {
        if !self.is_gone {
            self.merger.row(self.address, Some(self.row));
        }
    }

    fn end(&mut self) {
        if !self.is_gone {
            self.merger.row(self.address, None);
        }
        self.merger.forget();
        (self.address, self.operation, self.row, self.is_gone) = (0, 0, START, true);
    }
}

/// Merges rows, which mostly ascend, against addresses, which do.
struct Merger<'q> {
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
    fn new(addresses: &'q [Address]) -> Self {
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

    /// Takes a row, or the end of a sequence, at `address`.
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

/// How many of the sorted `addresses` are before `address`: doubling steps, then a binary search, as
/// it is mostly none or one.
fn leading(addresses: &[Address], address: u64) -> usize {
    let mut bound = 1;
    while bound <= addresses.len() && addresses[bound - 1].0 < address {
        bound *= 2;
    }
    let (low, high) = (bound / 2, addresses.len().min(bound));
    low + addresses[low..high].partition_point(|it| it.0 < address)
}
