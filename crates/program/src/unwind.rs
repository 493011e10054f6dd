//! Unwind tables: where functions are, which of them begin there, and to where exceptions and
//! panics make control pass.
//!
//! Sources: the Linux Standard Base, "Exception Frames" (.eh_frame, .eh_frame_hdr); the DWARF 5
//! standard §6.4 for call frame instructions; the Itanium C++ ABI, "Exception Handling Tables", for
//! the language-specific data area (LSDA) as gcc, clang and rustc write it. `gimli` decodes the
//! first two.
//!
//! Every unwindable function has an entry, with or without symbols; compilers make one for nearly
//! all code of x86-64. Time and memory are linear in the sizes of the tables (plus sorting);
//! entries are read in parallel. A broken entry or exception table costs only itself.

mod exceptions;
mod frames;

use gimli::{BaseAddresses, EhFrameHdr, LittleEndian};

use crate::{Address, Binary, Range, Warning};

/// All functions that can be unwound.
#[derive(Clone, Debug, Default)]
pub struct Unwind {
    /// By start, then end; none is empty, none twice. They may overlap in odd files.
    pub functions: Vec<UnwindEntry>,
    /// What could not be read.
    pub warnings: Vec<Warning>,
}

impl Unwind {
    /// Adds what another table states.
    pub(crate) fn add(&mut self, entries: Vec<UnwindEntry>) {
        self.functions.extend(entries);
        let place = |entry: &UnwindEntry| (entry.range.start(), entry.range.end());
        self.functions.sort_by_key(place);
        self.functions.dedup_by_key(|entry| place(entry));
    }
}

/// One frame description entry (FDE): a function, or a part that was split off one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnwindEntry {
    /// Its addresses; the start is code.
    pub range: Range,
    /// Whether the frame at its start is that of a function just called: the canonical frame
    /// address is rsp+8 and no register is saved. Otherwise it is a split-off part, entered by
    /// jumps (or something like the lazy PLT).
    pub entry_frame: bool,
    /// Whether the kernel enters it to return from a signal handler.
    pub signal_frame: bool,
    /// Where exceptions that pass its instructions land; only those that land somewhere, by
    /// address.
    pub call_sites: Vec<CallSite>,
    /// Whether each of its instructions may raise one, and not its calls alone: Go's that fault do.
    pub asynchronous: bool,
    /// Whether `call_sites` can be relied upon.
    pub exceptions: ExceptionTable,
}

/// Instructions from which exceptions go to a landing pad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallSite {
    /// The instructions; the call is one of them.
    pub range: Range,
    /// Where control goes on, possibly in another part of the function.
    pub landing_pad: Option<Address>,
    /// Whether it has actions (it may catch); otherwise it only cleans up.
    pub catches: bool,
}

/// How much is known of a function's exception table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExceptionTable {
    /// It has none.
    None,
    /// It was read.
    Read,
    /// It has one that could not be read: landing pads may be missing.
    Broken,
}

/// How far a table reaches.
#[derive(Clone, Copy)]
enum Extent {
    /// To the end of its bytes. Terminators in the middle do not end it.
    Section,
    /// To the entry at this offset, the last one that .eh_frame_hdr knows of.
    LastEntry(usize),
    /// To the first terminator.
    Terminator,
}

/// Where .eh_frame is and what it holds.
struct Table<'data> {
    bytes: &'data [u8],
    address: Address,
    extent: Extent,
}

/// Reads .eh_frame and the exception tables it refers to.
#[must_use]
pub fn read(binary: &Binary<'_>) -> Unwind {
    let mut warnings = Vec::new();
    let Some(table) = find(binary, &mut warnings) else {
        warnings.push(Warning::new(".eh_frame", "there are no unwind tables"));
        return Unwind {
            functions: Vec::new(),
            warnings,
        };
    };
    let bases = bases(binary, table.address);
    let frames = frames::read(binary, &table, &bases, &mut warnings);
    let functions = exceptions::add(binary, frames, &mut warnings);
    Unwind {
        functions,
        warnings,
    }
}

/// The table that the unwinder uses: the one PT_GNU_EH_FRAME leads to, else the section's.
fn find<'data>(binary: &Binary<'data>, warnings: &mut Vec<Warning>) -> Option<Table<'data>> {
    let section = binary
        .mapped_section(".eh_frame")
        .map(|(address, bytes)| Table {
            bytes,
            address,
            extent: Extent::Section,
        });
    let Some(header) = binary.eh_frame_hdr() else {
        return section;
    };
    let found = through_header(binary, header);
    match (section, found) {
        (Some(section), Some(found)) if section.address == found.address => Some(section),
        (section, None) => {
            let what = "eh_frame_ptr leads nowhere; the section .eh_frame is used if there is one";
            warnings.push(Warning::new(".eh_frame_hdr", what));
            section
        }
        (_, found) => found,
    }
}

/// The table that .eh_frame_hdr points to; its own search table says where the last entry is.
fn through_header<'data>(
    binary: &Binary<'data>,
    (address, bytes): (Address, &[u8]),
) -> Option<Table<'data>> {
    let bases = BaseAddresses::default().set_eh_frame_hdr(address.0);
    let header = EhFrameHdr::new(bytes, LittleEndian).parse(&bases, 8).ok()?;
    let start = header.eh_frame_ptr().direct().ok()?;
    let bytes = binary.data_at(Address(start))?;
    let last = header.table().and_then(|table| {
        let entries = table.iter(&bases).map_while(Result::ok);
        entries
            .filter_map(|(_, entry)| entry.direct().ok()?.checked_sub(start))
            .max()
    });
    let last = last.and_then(|last| usize::try_from(last).ok());
    let last = last.filter(|&last| last < bytes.len());
    let extent = last.map_or(Extent::Terminator, Extent::LastEntry);
    Some(Table {
        bytes,
        address: Address(start),
        extent,
    })
}

/// What relative pointers in the tables are relative to.
fn bases(binary: &Binary<'_>, eh_frame: Address) -> BaseAddresses {
    let mut bases = BaseAddresses::default().set_eh_frame(eh_frame.0);
    if let Some((text, _)) = binary.mapped_section(".text") {
        bases = bases.set_text(text.0);
    }
    if let Some(got) = binary.global_offset_table() {
        bases = bases.set_got(got.0);
    }
    bases
}
