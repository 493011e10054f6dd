//! The frame description entries of .eh_frame.
//!
//! `gimli` decodes each entry, but the walk from one to the next is done here: by the length
//! each of them states, so that a broken one costs only itself. Entries follow upon each other
//! without overlap and common information entries (CIE) are read once, which bounds the time for
//! any input by its length.

use gimli::{
    BaseAddresses, CfaRule, CommonInformationEntry, EhFrame, EhFrameOffset, EndianSlice,
    FrameDescriptionEntry, LittleEndian, Pointer, RegisterRule, UnwindContext, UnwindSection,
    X86_64,
};
use rayon::iter::ParallelIterator;
use rayon::slice::ParallelSlice;
use rustc_hash::FxHashMap;

use super::{Extent, Table};
use crate::{Address, Binary, Range, Warning};

type Slice<'data> = EndianSlice<'data, LittleEndian>;
type Cies<'data> = FxHashMap<usize, CommonInformationEntry<Slice<'data>>>;

/// How many entries one task reads.
const CHUNK: usize = 4096;

/// No real CIE is longer; one that is would be interpreted again for each of its FDEs.
const LONGEST_CIE: usize = 1024;

/// A function by its FDE.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    pub(crate) range: Range,
    pub(crate) entry_frame: bool,
    pub(crate) signal_frame: bool,
    /// The address of its LSDA, `Err` where the pointer to it cannot be followed.
    pub(crate) lsda: Option<Result<Address, ()>>,
}

/// Why there is no frame for an entry.
#[derive(Clone, Copy)]
enum Lack {
    /// It covers nothing; where its LSDA is.
    Empty(Option<Address>),
    /// It cannot be decoded.
    Broken(usize),
    /// It starts where there is no code.
    NoCode(usize),
}

/// All frames, and where LSDAs are.
pub(crate) struct Frames {
    /// By (start, end), each once.
    pub(crate) list: Vec<Frame>,
    /// By address, each once; also those of entries that cover nothing.
    pub(crate) tables: Vec<Address>,
}

/// Reads all frames.
pub(crate) fn read(
    binary: &Binary<'_>,
    table: &Table<'_>,
    bases: &BaseAddresses,
    warnings: &mut Vec<Warning>,
) -> Frames {
    let entries = walk(table, warnings);
    let mut section = EhFrame::new(table.bytes, LittleEndian);
    section.set_address_size(8);
    let cies = read_cies(&section, bases, &entries.cies, warnings);
    let reader = Reader {
        binary,
        section,
        bases,
        cies,
    };
    let chunks: Vec<_> = entries
        .fdes
        .par_chunks(CHUNK)
        .map(|offsets| reader.read(offsets))
        .collect();
    let mut list = Vec::with_capacity(entries.fdes.len());
    let mut tables = Vec::new();
    let (mut broken, mut no_code) = (Count::default(), Count::default());
    for result in chunks.into_iter().flatten() {
        match result {
            Ok(frame) => {
                tables.extend(frame.lsda.and_then(Result::ok));
                list.push(frame);
            }
            Err(Lack::Empty(table)) => tables.extend(table),
            Err(Lack::Broken(offset)) => broken.add(offset),
            Err(Lack::NoCode(offset)) => no_code.add(offset),
        }
    }
    broken.warn("entries (FDE) cannot be decoded", warnings);
    no_code.warn(
        "entries (FDE) describe addresses that are not code",
        warnings,
    );
    if !list.is_sorted_by_key(|frame| (frame.range.start(), frame.range.end())) {
        list.sort_by_key(|frame| (frame.range.start(), frame.range.end()));
    }
    list.dedup_by_key(|frame| frame.range);
    tables.sort_unstable();
    tables.dedup();
    Frames { list, tables }
}

/// How many entries something is wrong with, and the first of them.
#[derive(Default)]
struct Count {
    number: usize,
    first: usize,
}

impl Count {
    fn add(&mut self, offset: usize) {
        if self.number == 0 {
            self.first = offset;
        }
        self.number += 1;
    }

    fn warn(&self, what: &str, warnings: &mut Vec<Warning>) {
        if self.number > 0 {
            let what = format!("{} {what}; this is the first", self.number);
            warnings.push(Warning::at(".eh_frame", self.first as u64, what));
        }
    }
}

/// Offsets of the entries.
#[derive(Default)]
struct Entries {
    cies: Vec<usize>,
    fdes: Vec<usize>,
}

/// Follows the lengths from entry to entry.
fn walk(table: &Table<'_>, warnings: &mut Vec<Warning>) -> Entries {
    let mut entries = Entries::default();
    let last = match table.extent {
        Extent::LastEntry(last) => last,
        Extent::Section | Extent::Terminator => table.bytes.len().saturating_sub(1),
    };
    let mut at = 0;
    while at <= last && at < table.bytes.len() {
        let Some((header, is_cie, end)) = entry(table.bytes, at) else {
            let what = "an entry's length leads out of the section; the rest is left out";
            warnings.push(Warning::at(".eh_frame", at as u64, what));
            break;
        };
        if end == at + header {
            // A terminator. Some start-up files put one into the middle.
            if matches!(table.extent, Extent::Terminator) {
                break;
            }
        } else if is_cie {
            entries.cies.push(at);
        } else {
            entries.fdes.push(at);
        }
        at = end;
    }
    entries
}

/// Size of the length field, whether it is a CIE, and where it ends, for the entry at `at`.
fn entry(bytes: &[u8], at: usize) -> Option<(usize, bool, usize)> {
    let rest = bytes.get(at..)?;
    let short = u32::from_le_bytes(*rest.first_chunk()?);
    let (header, length) = if short == u32::MAX {
        (12, u64::from_le_bytes(*rest.get(4..)?.first_chunk()?))
    } else {
        (4, short.into())
    };
    let end = at
        .checked_add(header)?
        .checked_add(usize::try_from(length).ok()?)?;
    let body = bytes.get(at + header..end)?;
    // In .eh_frame the identification has four bytes even after a long length.
    let is_cie = body.first_chunk::<4>().is_some_and(|id| *id == [0; 4]);
    Some((header, is_cie, end))
}

fn read_cies<'data>(
    section: &EhFrame<Slice<'data>>,
    bases: &BaseAddresses,
    offsets: &[usize],
    warnings: &mut Vec<Warning>,
) -> Cies<'data> {
    let mut cies = Cies::default();
    let mut broken = Count::default();
    for &offset in offsets {
        match section.cie_from_offset(bases, EhFrameOffset(offset)) {
            Ok(cie) if cie.entry_len() <= LONGEST_CIE => {
                cies.insert(offset, cie);
            }
            _ => broken.add(offset),
        }
    }
    broken.warn("common entries (CIE) cannot be decoded", warnings);
    cies
}

/// What all tasks share.
struct Reader<'read, 'data> {
    binary: &'read Binary<'data>,
    section: EhFrame<Slice<'read>>,
    bases: &'read BaseAddresses,
    cies: Cies<'read>,
}

impl Reader<'_, '_> {
    fn read(&self, offsets: &[usize]) -> Vec<Result<Frame, Lack>> {
        let mut context = UnwindContext::new();
        offsets
            .iter()
            .map(|&offset| self.frame(offset, &mut context))
            .collect()
    }

    fn frame(&self, offset: usize, context: &mut UnwindContext<usize>) -> Result<Frame, Lack> {
        let known_cie = |_: &_, _: &_, cie: EhFrameOffset| {
            self.cies
                .get(&cie.0)
                .cloned()
                .ok_or(gimli::Error::NoEntryAtGivenOffset(cie.0 as u64))
        };
        let fde = self
            .section
            .fde_from_offset(self.bases, EhFrameOffset(offset), known_cie)
            .map_err(|_| Lack::Broken(offset))?;
        let lsda = fde.lsda().and_then(|pointer| self.follow(pointer));
        if fde.len() == 0 {
            return Err(Lack::Empty(lsda.and_then(Result::ok)));
        }
        let start = Address(fde.initial_address());
        let range = Range::sized(start, fde.len()).ok_or(Lack::Broken(offset))?;
        if !self.binary.is_code(start) {
            return Err(Lack::NoCode(offset));
        }
        Ok(Frame {
            range,
            entry_frame: self.is_entry(&fde, context),
            signal_frame: fde.is_signal_trampoline(),
            lsda,
        })
    }

    /// Whether the frame before the first instruction is the one a call makes.
    fn is_entry(
        &self,
        fde: &FrameDescriptionEntry<Slice<'_>>,
        context: &mut UnwindContext<usize>,
    ) -> bool {
        let Ok(mut rows) = fde.rows(&self.section, self.bases, context) else {
            return false;
        };
        let Ok(Some(row)) = rows.next_row() else {
            return false;
        };
        let expected = CfaRule::RegisterAndOffset {
            register: X86_64::RSP,
            offset: 8,
        };
        let mut registers = row.registers();
        *row.cfa() == expected
            && registers.all(|&(register, ref rule)| match rule {
                RegisterRule::SameValue => true,
                // The outermost function's return address is undefined.
                RegisterRule::Undefined => register == X86_64::RA,
                RegisterRule::Offset(-8) => register == X86_64::RA,
                _ => false,
            })
    }

    /// Where the LSDA is; `None` for a null pointer.
    fn follow(&self, pointer: Pointer) -> Option<Result<Address, ()>> {
        match pointer {
            Pointer::Direct(0) | Pointer::Indirect(0) => None,
            Pointer::Direct(address) => Some(Ok(Address(address))),
            Pointer::Indirect(slot) => {
                let slot = Address(slot);
                let stored = || {
                    let bytes = self.binary.data_at(slot)?.first_chunk()?;
                    Some(Address(u64::from_le_bytes(*bytes)))
                };
                Some(self.binary.pointer_in_slot(slot).or_else(stored).ok_or(()))
            }
        }
    }
}
