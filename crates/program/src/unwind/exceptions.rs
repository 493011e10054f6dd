//! The language-specific data area (LSDA): call sites and their landing pads.
//!
//! Its form is described by the Itanium C++ ABI's "Exception Handling Tables" and fixed by what
//! the personality routines of libgcc, libc++abi and Rust's library read:
//!
//! ```text
//! LPStart encoding, [LPStart], TType encoding, [TType offset],
//! call site encoding, table length, { start, length, landing pad, action }*
//! ```
//!
//! Call sites are relative to the function part's start, landing pads to LPStart (omitted: the same
//! start). A landing pad of 0 means none in all three routines, whether LPStart is given or not.
//!
//! Where clang makes sections of basic blocks, each part has an LSDA, but all of them state a table
//! that reaches to the end of the last one (the routines stop early, so nobody noticed), and a call site may reach into
//! the next part. A table therefore also ends where another LSDA begins; or, since linkers drop the unwind entries of empty parts
//! and with these what says where their LSDAs begin, where it makes no sense any more. Such tables are known by stating LPStart.

use gimli::{DwEhPe, EndianSlice, LittleEndian, Reader as _, constants as pe};
use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};

use super::frames::{Frame, Frames};
use super::{CallSite, ExceptionTable, UnwindEntry};
use crate::{Address, Binary, Range, Warning};

type Slice<'data> = EndianSlice<'data, LittleEndian>;

/// How many frames one task reads at least.
const CHUNK: usize = 1024;

/// An LSDA's header.
struct Header<'data> {
    landing_pads: Address,
    /// Whether it may be that of a part, whose table may go on where it has ended.
    is_part: bool,
    encoding: DwEhPe,
    table: Slice<'data>,
}

/// Reads the exception tables of all frames.
///
/// Frames may be made to share one large table; the tables of all frames together may have as many
/// bytes as the file and no more.
pub(crate) fn add(
    binary: &Binary<'_>,
    frames: Frames,
    warnings: &mut Vec<Warning>,
) -> Vec<UnwindEntry> {
    let mut left = binary.file_size();
    let headers: Vec<_> = frames
        .list
        .iter()
        .map(|frame| {
            let lsda = frame.lsda?;
            let header = lsda.ok().and_then(|address| {
                header(binary, frame.range, address, limit(&frames.tables, address))
            });
            let header = header.filter(|header| header.table.len() <= left);
            left -= header.as_ref().map_or(0, |header| header.table.len());
            Some(header)
        })
        .collect();
    let read = frames.list.into_par_iter().zip(headers).with_min_len(CHUNK);
    let functions: Vec<_> = read
        .map(|(frame, header)| with_exceptions(binary, frame, header))
        .collect();
    let mut broken = functions
        .iter()
        .filter(|entry| entry.exceptions == ExceptionTable::Broken);
    if let Some(first) = broken.next() {
        let start = first.range.start();
        let what = format!(
            "{} functions whose table cannot be read; the first starts at {start}",
            broken.count() + 1
        );
        warnings.push(Warning::new(".gcc_except_table", what));
    }
    functions
}

fn with_exceptions(
    binary: &Binary<'_>,
    frame: Frame,
    header: Option<Option<Header<'_>>>,
) -> UnwindEntry {
    let sites = header.map(|header| call_sites(binary, frame.range, &header?));
    let exceptions = match &sites {
        None => ExceptionTable::None,
        Some(None) => ExceptionTable::Broken,
        Some(Some(_)) => ExceptionTable::Read,
    };
    UnwindEntry {
        asynchronous: false,
        range: frame.range,
        entry_frame: frame.entry_frame,
        signal_frame: frame.signal_frame,
        call_sites: sites.flatten().unwrap_or_default(),
        exceptions,
    }
}

/// Where the next LSDA begins.
fn limit(starts: &[Address], lsda: Address) -> Option<Address> {
    starts
        .get(starts.partition_point(|&start| start <= lsda))
        .copied()
}

/// Reads up to the call site table, which ends at `limit` if it does not end before.
fn header<'data>(
    binary: &Binary<'data>,
    range: Range,
    lsda: Address,
    limit: Option<Address>,
) -> Option<Header<'data>> {
    let all = EndianSlice::new(binary.data_at(lsda)?, LittleEndian);
    let mut input = all;
    let start_encoding = DwEhPe(input.read_u8().ok()?);
    let landing_pads = if start_encoding == pe::DW_EH_PE_omit {
        range.start()
    } else {
        let here = lsda.wrapping_add((all.len() - input.len()) as u64);
        pointer(binary, start_encoding, here, range.start(), &mut input)?
    };
    let type_encoding = DwEhPe(input.read_u8().ok()?);
    if type_encoding != pe::DW_EH_PE_omit {
        input.read_uleb128().ok()?;
    }
    let encoding = DwEhPe(input.read_u8().ok()?);
    let length = usize::try_from(input.read_uleb128().ok()?).ok()?;
    let mut table = input.split(length).ok()?;
    let table_at = lsda.wrapping_add((all.len() - length - input.len()) as u64);
    let most = limit.and_then(|limit| usize::try_from(limit.0.saturating_sub(table_at.0)).ok());
    if let Some(most) = most.filter(|&most| most < length) {
        table.truncate(most).ok()?;
    }
    Some(Header {
        landing_pads,
        is_part: start_encoding != pe::DW_EH_PE_omit,
        encoding,
        table,
    })
}

/// A pointer as LPStart may be written.
fn pointer(
    binary: &Binary<'_>,
    encoding: DwEhPe,
    here: Address,
    function: Address,
    input: &mut Slice<'_>,
) -> Option<Address> {
    let base = match encoding.application() {
        pe::DW_EH_PE_absptr => Address(0),
        pe::DW_EH_PE_pcrel => here,
        pe::DW_EH_PE_funcrel => function,
        _ => return None,
    };
    let address = base.wrapping_add(number(encoding, input)?);
    if !encoding.is_indirect() {
        return Some(address);
    }
    let stored = || {
        let bytes = binary.data_at(address)?.first_chunk()?;
        Some(Address(u64::from_le_bytes(*bytes)))
    };
    binary.pointer_in_slot(address).or_else(stored)
}

/// A number as the encoding's lower half says.
fn number(encoding: DwEhPe, input: &mut Slice<'_>) -> Option<u64> {
    match encoding.format() {
        pe::DW_EH_PE_absptr | pe::DW_EH_PE_udata8 | pe::DW_EH_PE_sdata8 => input.read_u64().ok(),
        pe::DW_EH_PE_uleb128 => input.read_uleb128().ok(),
        pe::DW_EH_PE_sleb128 => input.read_sleb128().ok().map(i64::cast_unsigned),
        pe::DW_EH_PE_udata2 => input.read_u16().ok().map(u64::from),
        pe::DW_EH_PE_udata4 => input.read_u32().ok().map(u64::from),
        pe::DW_EH_PE_sdata2 => input.read_i16().ok().map(|n| i64::from(n).cast_unsigned()),
        pe::DW_EH_PE_sdata4 => input.read_i32().ok().map(|n| i64::from(n).cast_unsigned()),
        _ => None,
    }
}

/// The call sites with a landing pad, by address; `None` when one of them makes no sense, since
/// the whole table is then not what it seems.
fn call_sites(binary: &Binary<'_>, range: Range, header: &Header<'_>) -> Option<Vec<CallSite>> {
    let mut sites = Vec::new();
    let (mut table, mut behind) = (header.table, range.start());
    while !is_padding(table.slice()) {
        let site = call_site(binary, range, header, &mut table);
        let site = site.filter(|site| !header.is_part || site.range.start() >= behind);
        let Some(site) = site else {
            if header.is_part {
                break;
            }
            return None;
        };
        behind = site.range.end();
        if site.landing_pad.is_some() {
            sites.push(site);
        }
    }
    if !sites.is_sorted() {
        sites.sort_unstable();
    }
    Some(sites)
}

/// The next call site of the table, if it makes sense.
fn call_site(
    binary: &Binary<'_>,
    range: Range,
    header: &Header<'_>,
    table: &mut Slice<'_>,
) -> Option<CallSite> {
    let start = number(header.encoding, table)?;
    let length = number(header.encoding, table)?;
    let landing_pad = number(header.encoding, table)?;
    let action = table.read_uleb128().ok()?;
    let mut site = Range::sized(range.start().checked_add(start)?, length)?;
    if header.is_part {
        site = Range::new(site.start(), site.end().min(range.end()))?;
    }
    let landing_pad = (landing_pad != 0).then(|| header.landing_pads.wrapping_add(landing_pad));
    let is_code = landing_pad.is_none_or(|pad| binary.is_code(pad));
    (is_code && site.end() <= range.end()).then_some(CallSite {
        range: site,
        landing_pad,
        catches: action != 0,
    })
}

/// Whether nothing is left but what aligns the LSDA behind: a call site has at least four bytes.
fn is_padding(rest: &[u8]) -> bool {
    rest.len() < 4 && rest.iter().all(|&byte| byte == 0)
}
