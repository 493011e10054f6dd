//! Where functions may start and end: the evidence of symbols, unwind tables, debug information,
//! and, while traversal goes on, of calls and pointers.
//!
//! A [`Fragment`] is a run of bytes from one such start up to its own end or the next start. A
//! function is one fragment, or several when the compiler split it ([`super::parts`]).

use rayon::prelude::*;

use super::code::{Code, Pos};
use super::explore::{Bits, Explored, RawBlock};
use super::names;
use crate::dwarf::{DebugFunction, DebugInfo, ResultKind};
use crate::elf::{Symbol, SymbolKind};
use crate::go::Stated;
use crate::unwind::{ExceptionTable, Unwind, UnwindEntry};
use crate::{Address, Reason};

/// What says that a fragment starts where it does.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Evidence {
    /// A function symbol that does not name a split-off part.
    pub(crate) symbol: bool,
    /// A symbol that names a split-off part.
    pub(crate) part_symbol: bool,
    /// An unwind entry that starts like a function (the frame of the caller is untouched).
    pub(crate) entry_frame: bool,
    /// An unwind entry that starts in the middle of a frame.
    pub(crate) inner_frame: bool,
    /// Debug information.
    pub(crate) debug: bool,
    /// The loader or kernel enters here: entry point, constructors, destructors.
    pub(crate) initial: bool,
    /// A call in proven code leads here.
    pub(crate) called: bool,
    /// A jump from another fragment, of proven code, leads here.
    pub(crate) jumped: bool,
    /// A symbol without a type, which may as well name data.
    pub(crate) label: bool,
    /// Some instruction holds its address.
    pub(crate) pointed: bool,
    /// Code that is not proven to be code calls it or jumps here.
    pub(crate) guessed: bool,
}

impl Evidence {
    /// Whether there is code for certain. What only a pointer or a label leads to may be data, and what such code
    /// leads to may be anything.
    pub(crate) fn is_proven(self) -> bool {
        self.symbol
            || self.part_symbol
            || self.entry_frame
            || self.inner_frame
            || self.debug
            || self.initial
            || self.called
            || self.jumped
    }

    /// Whether all that `other` says is known.
    pub(crate) fn has(self, other: Self) -> bool {
        let mut both = self;
        both.merge(other);
        both == self
    }

    /// Adds what `other` says.
    pub(crate) fn merge(&mut self, other: Self) {
        self.symbol |= other.symbol;
        self.part_symbol |= other.part_symbol;
        self.entry_frame |= other.entry_frame;
        self.inner_frame |= other.inner_frame;
        self.debug |= other.debug;
        self.initial |= other.initial;
        self.called |= other.called;
        self.jumped |= other.jumped;
        self.label |= other.label;
        self.pointed |= other.pointed;
        self.guessed |= other.guessed;
    }

    /// Whether something says that control comes here by a call, with the return address on top of the
    /// stack.
    pub(crate) fn is_callable(self) -> bool {
        self.is_named() || self.called || self.pointed || self.guessed
    }

    /// Whether something says that a function starts here, be it that nothing is known to call it.
    pub(crate) fn is_named(self) -> bool {
        self.symbol || self.label || self.entry_frame || self.debug || self.initial
    }

    /// Whether it is a part of another function for certain, and nothing says that one starts here.
    pub(crate) fn is_part(self) -> bool {
        (self.part_symbol || self.inner_frame) && !self.is_callable()
    }

    /// Whether only jumps lead here, so that it may be a part of another function.
    pub(crate) fn may_be_part(self) -> bool {
        !self.symbol
            && !self.label
            && !self.initial
            && !self.called
            && !self.pointed
            && !self.guessed
            && !self.debug
            && (self.part_symbol || self.inner_frame || self.jumped)
    }
}

/// A run of code with one start.
#[derive(Default, Debug)]
pub(crate) struct Fragment {
    /// Its first byte.
    pub(crate) start: Pos,
    /// The byte behind it.
    pub(crate) end: Pos,
    /// Whether a table states its end; otherwise only the next start bounds it.
    pub(crate) sized: bool,
    /// Why it is one.
    pub(crate) evidence: Evidence,
    /// Index of the symbol that names it.
    pub(crate) symbol: Option<u32>,
    /// Index of the debug information on it.
    pub(crate) debug: Option<u32>,
    /// Indices of unwind entries that cover it.
    pub(crate) unwind: (u32, u32),
    /// Declared never to return.
    pub(crate) declared_noreturn: bool,
    /// Starts of blocks that only others know of: landing pads, jump tables, jumps from elsewhere.
    pub(crate) roots: Vec<Pos>,
    /// Where jump tables of its function lead, the most certain first.
    pub(crate) targets: Vec<Pos>,
    /// Those of the roots that other functions jump to.
    pub(crate) jumped_into: Vec<Pos>,
    /// Addresses inside of it that other fragments materialise.
    pub(crate) held: Vec<Pos>,
    /// Its blocks, by start.
    pub(crate) blocks: Vec<RawBlock>,
    /// Where it leads outside of itself, but for calls and tables.
    pub(crate) leaving: Vec<Pos>,
    /// Which of its bytes start an instruction.
    pub(crate) starts: Bits,
    /// Code addresses that it materialises.
    pub(crate) taken: Vec<Pos>,
    /// The worst that traversal met.
    pub(crate) fault: Option<Reason>,
    /// Whether its stack pointer is made to point at what is at a fixed place.
    pub(crate) stack_leads_aside: bool,
    /// Whether exceptions may land where nobody knows.
    pub(crate) has_broken_exceptions: bool,
    /// Whether it has an indirect jump.
    pub(crate) indirect: bool,
    /// Whether its first block takes away what lies on top of the stack when it is entered.
    pub(crate) pops_caller: bool,
}

impl Fragment {
    /// Adds a root; whether that is news.
    pub(crate) fn add_root(&mut self, root: Pos) -> bool {
        add(&mut self.roots, root)
    }

    /// Adds an address that another fragment materialises; whether a block begins there from now on.
    pub(crate) fn add_held(&mut self, held: Pos) -> bool {
        let is_news = add(&mut self.held, held);
        is_news && self.starts.get(held.since(self.start)) && self.add_root(held)
    }

    /// Whether nobody states that `pos` is a byte of its, nor was it come upon.
    pub(crate) fn hides(&self, pos: Pos) -> bool {
        !self.sized && self.block_with(pos).is_none()
    }

    /// Takes over what traversal found.
    pub(crate) fn absorb(&mut self, explored: Explored) {
        self.blocks = explored.blocks;
        self.leaving = explored.leaving;
        self.starts = explored.starts;
        self.taken = explored.taken;
        self.fault = explored.fault;
        self.stack_leads_aside = explored.stack_leads_aside;
        self.indirect = explored.indirect;
    }

    /// Whether a function starts here that takes its return address away.
    pub(crate) fn drops_return_address(&self) -> bool {
        self.pops_caller && self.evidence.is_callable()
    }

    /// Index of the block that starts at `pos`.
    pub(crate) fn block_at(&self, pos: Pos) -> Option<usize> {
        self.blocks
            .binary_search_by_key(&pos, |block| block.start)
            .ok()
    }

    /// Index of the block that holds `pos`.
    pub(crate) fn block_with(&self, pos: Pos) -> Option<usize> {
        let after = self.blocks.partition_point(|block| block.start <= pos);
        after
            .checked_sub(1)
            .filter(|&index| pos < self.blocks[index].end)
    }
}

/// Adds to a list that is in order; whether that is news.
fn add(list: &mut Vec<Pos>, new: Pos) -> bool {
    match list.binary_search(&new) {
        Ok(_) => false,
        Err(at) => {
            list.insert(at, new);
            true
        }
    }
}

/// A start with the evidence for it.
#[derive(Clone, Copy)]
struct Start {
    at: Pos,
    end: Option<Pos>,
    evidence: Evidence,
    symbol: Option<u32>,
    debug: Option<u32>,
}

/// All that the file's tables say of where fragments are.
pub(crate) struct Tables<'a> {
    /// Symbols and everything else in the ELF file.
    pub(crate) code: &'a Code<'a>,
    /// Unwind entries.
    pub(crate) unwind: &'a Unwind,
    /// Debug information.
    pub(crate) debug: &'a DebugInfo,
    /// What Go's linker states.
    pub(crate) go: &'a Stated<'a>,
    /// Whether code is there that no compiler of the ABI's wrote.
    pub(crate) has_foreign: bool,
    /// Sequences that the kernel may have begin anew, and starts of their abort handlers, in order and apart.
    pub(crate) restartable: Vec<(Pos, Pos)>,
}

/// The fragments that the tables state, by start, disjoint.
pub(crate) fn stated(tables: &Tables<'_>) -> Vec<Fragment> {
    let mut starts = Vec::new();
    symbol_starts(tables.code, &mut starts);
    unwind_starts(tables, &mut starts);
    debug_starts(tables, &mut starts);
    let initial = Evidence {
        initial: true,
        ..Evidence::default()
    };
    starts.extend(
        tables
            .code
            .binary
            .initial_functions()
            .into_iter()
            .filter_map(|address| {
                Some(Start {
                    at: tables.code.pos(address)?,
                    end: None,
                    evidence: initial,
                    symbol: None,
                    debug: None,
                })
            }),
    );
    starts.retain(|start| !tables.code.is_stub(start.at));
    untyped_starts(tables.code, &mut starts);
    let mut fragments = join(tables, starts);
    fragments
        .par_iter_mut()
        .with_min_len(1024)
        .for_each(|fragment| describe(tables, fragment));
    fragments
}

fn symbol_starts(code: &Code<'_>, starts: &mut Vec<Start>) {
    for (index, symbol) in code.binary.symbols().iter().enumerate() {
        if symbol.kind == SymbolKind::IndirectFunction || names::names_code(symbol) {
            starts.extend(symbol_start(code, index, symbol));
        }
    }
}

fn symbol_start(code: &Code<'_>, index: usize, symbol: &Symbol<'_>) -> Option<Start> {
    let at = code.pos(symbol.address)?;
    let is_part = names::is_split_part(symbol.name);
    Some(Start {
        at,
        end: u32::try_from(symbol.size)
            .ok()
            .filter(|&size| size > 0)
            .map(|size| at.plus(size)),
        evidence: Evidence {
            symbol: !is_part,
            part_symbol: is_part,
            ..Evidence::default()
        },
        symbol: u32::try_from(index).ok(),
        debug: None,
    })
}

/// Labels of hand-written assembly start a fragment only where nothing else covers them.
fn untyped_starts(code: &Code<'_>, starts: &mut Vec<Start>) {
    starts.sort_by_key(|start| start.at);
    let covered = merged_extents(starts);
    for (index, symbol) in code.binary.symbols().iter().enumerate() {
        if symbol.kind != SymbolKind::Untyped
            || names::names_code(symbol)
            || symbol.name.starts_with('$')
            || symbol.name.starts_with(".L")
        {
            continue;
        }
        let Some(mut start) = symbol_start(code, index, symbol) else {
            continue;
        };
        start.evidence = Evidence {
            label: true,
            ..Evidence::default()
        };
        let after = covered.partition_point(|range| range.0 <= start.at);
        if after
            .checked_sub(1)
            .is_none_or(|at| covered[at].1 <= start.at)
            && !code.is_stub(start.at)
        {
            starts.push(start);
        }
    }
}

fn merged_extents(starts: &[Start]) -> Vec<(Pos, Pos)> {
    let mut merged: Vec<(Pos, Pos)> = Vec::new();
    for start in starts {
        let end = start.end.unwrap_or_else(|| start.at.plus(1));
        match merged.last_mut() {
            Some(last) if start.at <= last.1 => last.1 = last.1.max(end),
            _ => merged.push((start.at, end)),
        }
    }
    merged
}

fn unwind_starts(tables: &Tables<'_>, starts: &mut Vec<Start>) {
    for entry in &tables.unwind.functions {
        let Some(at) = tables.code.pos(entry.range.start()) else {
            continue;
        };
        let evidence = Evidence {
            entry_frame: entry.entry_frame,
            inner_frame: !entry.entry_frame,
            ..Evidence::default()
        };
        let size = u32::try_from(entry.range.size()).unwrap_or(u32::MAX);
        starts.push(Start {
            at,
            end: Some(at.plus(size)),
            evidence,
            symbol: None,
            debug: None,
        });
    }
}

/// Where function symbols stand, by address: of whole functions, and of parts that were split off.
struct SymbolPlaces {
    whole: Vec<Address>,
    parts: Vec<Address>,
}

impl SymbolPlaces {
    fn of(code: &Code<'_>) -> Self {
        let symbols = code.binary.symbols().iter();
        let functions = symbols.filter(|symbol| names::names_code(symbol));
        let (parts, whole): (Vec<_>, Vec<_>) =
            functions.partition(|symbol| names::is_split_part(symbol.name));
        let places = |symbols: Vec<&Symbol<'_>>| {
            let mut places: Vec<_> = symbols.iter().map(|symbol| symbol.address).collect();
            places.sort_unstable();
            places
        };
        Self {
            whole: places(whole),
            parts: places(parts),
        }
    }

    /// Where the function is entered. Where debug information does not say so, it is taken to be at the first of its ranges; LLVM lists
    /// that of a part that was split off before it, which the symbols tell.
    fn entry(&self, function: &DebugFunction) -> Address {
        if function.ranges.len() < 2 || self.parts.binary_search(&function.entry).is_err() {
            return function.entry;
        }
        let mut starts = function.ranges.iter().map(|range| range.start());
        let whole = starts.find(|start| self.whole.binary_search(start).is_ok());
        whole.unwrap_or(function.entry)
    }
}

fn debug_starts(tables: &Tables<'_>, starts: &mut Vec<Start>) {
    if tables.debug.functions.is_empty() {
        return;
    }
    let symbols = SymbolPlaces::of(tables.code);
    for (index, function) in tables.debug.functions.iter().enumerate() {
        let entry = symbols.entry(function);
        for range in &function.ranges {
            let Some(at) = tables.code.pos(range.start()) else {
                continue;
            };
            let is_entry = range.start() == entry;
            let size = u32::try_from(range.size()).unwrap_or(u32::MAX);
            starts.push(Start {
                at,
                end: Some(at.plus(size)),
                evidence: Evidence {
                    debug: is_entry,
                    inner_frame: !is_entry,
                    ..Evidence::default()
                },
                symbol: None,
                debug: if is_entry {
                    u32::try_from(index).ok()
                } else {
                    None
                },
            });
        }
    }
}

/// One fragment a start, cut where the next one begins.
fn join(tables: &Tables<'_>, mut starts: Vec<Start>) -> Vec<Fragment> {
    // Names: sized before unsized (the reader orders symbols so), first come, first served.
    starts.sort_by_key(|start| start.at);
    let mut fragments: Vec<Fragment> = Vec::new();
    for start in starts {
        if fragments.last().is_none_or(|last| last.start != start.at) {
            fragments.push(Fragment {
                start: start.at,
                end: start.at,
                ..Fragment::default()
            });
        }
        let Some(last) = fragments.last_mut() else {
            continue;
        };
        last.evidence.merge(start.evidence);
        last.symbol = last.symbol.or(start.symbol);
        last.debug = last.debug.or(start.debug);
        if let Some(end) = start.end {
            last.end = last.end.max(end);
            last.sized = true;
        }
    }
    set_ends(tables.code, &mut fragments);
    fragments
}

/// Ends every fragment at its stated end, the next start, the next PLT stub or the end of its
/// region, whichever comes first.
fn set_ends(code: &Code<'_>, fragments: &mut [Fragment]) {
    for index in 0..fragments.len() {
        let next = fragments
            .get(index + 1)
            .map_or(Pos(u32::MAX), |next| next.start);
        let fragment = &mut fragments[index];
        let limit = code
            .region_end(fragment.start)
            .min(next)
            .min(code.next_stub(fragment.start));
        fragment.end = if fragment.sized {
            fragment.end.min(limit)
        } else {
            limit
        };
    }
}

/// Attaches to a fragment what unwind tables and debug information say of it.
fn describe(tables: &Tables<'_>, fragment: &mut Fragment) {
    let (code, entries) = (tables.code, &tables.unwind.functions);
    let (from, to) = (code.address(fragment.start), code.address(fragment.end));
    let mut first = entries.partition_point(|entry| entry.range.start() <= from);
    if first > 0 && entries[first - 1].range.end() > from {
        first -= 1;
    }
    let last = first + entries[first..].partition_point(|entry| entry.range.start() < to);
    fragment.unwind = (
        u32::try_from(first).unwrap_or(0),
        u32::try_from(last).unwrap_or(0),
    );
    let is_broken = |entry: &UnwindEntry| entry.exceptions == ExceptionTable::Broken;
    fragment.has_broken_exceptions = entries[first..last].iter().any(is_broken);
    let symbol = fragment
        .symbol
        .and_then(|index| code.binary.symbols().get(index as usize));
    let by_name = symbol.is_some_and(|symbol| names::own_never_returns(symbol.name));
    let debug = fragment
        .debug
        .and_then(|index| tables.debug.functions.get(index as usize));
    fragment.declared_noreturn =
        by_name || debug.is_some_and(|function| function.prototype.noreturn);
}

/// Landing pads that the exception tables state, with the code from which they are entered.
pub(crate) fn landing_pads(tables: &Tables<'_>) -> impl Iterator<Item = Pos> {
    tables
        .unwind
        .functions
        .iter()
        .flat_map(|entry| &entry.call_sites)
        .filter_map(|site| tables.code.pos(site.landing_pad?))
}

/// Whether debug information says that the function entered at `fragment` returns nothing.
pub(crate) fn returns_void(debug: &DebugInfo, fragment: &Fragment) -> bool {
    let function = fragment
        .debug
        .and_then(|index| debug.functions.get(index as usize));
    function.is_some_and(|function| function.prototype.result == ResultKind::Void)
}

/// Whether debug information says that the imported function called `name` returns nothing.
pub(crate) fn import_returns_void(debug: &DebugInfo, name: &str) -> bool {
    debug
        .external
        .get(name)
        .is_some_and(|prototype| prototype.result == ResultKind::Void)
}

/// The fragment that holds `pos`, in a list ordered by start.
pub(crate) fn find(fragments: &[Fragment], pos: Pos) -> Option<usize> {
    let after = fragments.partition_point(|fragment| fragment.start <= pos);
    after
        .checked_sub(1)
        .filter(|&index| pos < fragments[index].end)
}

/// Puts new fragments into the list, cutting those that hold their starts; the starts of all whose
/// extent or evidence is new.
pub(crate) fn insert(
    tables: &Tables<'_>,
    fragments: &mut Vec<Fragment>,
    starts: &[(Pos, Evidence)],
) -> Vec<Pos> {
    let mut changed = Vec::new();
    let mut added: Vec<Fragment> = Vec::new();
    for &(at, evidence) in starts {
        let mut new = Fragment {
            start: at,
            end: at,
            evidence,
            ..Fragment::default()
        };
        let old = find(fragments, at).map(|index| &mut fragments[index]);
        // Starts ascend, so among the new ones only the last can hold this one.
        let recent = added.last_mut().filter(|last| at < last.end);
        let holder = old.into_iter().chain(recent);
        if let Some(holder) = holder.max_by_key(|holder| holder.start) {
            changed.push(holder.start);
            new.end = holder.end;
            new.sized = holder.sized;
            let split = |list: &mut Vec<Pos>| {
                let first = list.partition_point(|&inside| inside < at);
                list.split_off(first)
            };
            new.roots = split(&mut holder.roots);
            new.held = split(&mut holder.held);
        }
        changed.push(at);
        added.push(new);
    }
    fragments.append(&mut added);
    fragments.sort_by_key(|fragment| fragment.start);
    set_ends(tables.code, fragments);
    for start in &changed {
        if let Some(index) = find(fragments, *start) {
            describe(tables, &mut fragments[index]);
        }
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Range;
    use crate::dwarf::Prototype;

    /// Where a function is entered whose ranges begin at these addresses, of which the first is taken for its entry.
    fn entered(starts: &[u64]) -> u64 {
        let symbols = SymbolPlaces {
            whole: vec![Address(0x100), Address(0x200)],
            parts: vec![Address(0x300), Address(0x400)],
        };
        let range = |start: &u64| Range::new(Address(*start), Address(start + 0x10));
        let function = DebugFunction {
            entry: Address(starts[0]),
            ranges: starts.iter().filter_map(range).collect(),
            name: None,
            prototype: Prototype::default(),
        };
        symbols.entry(&function).0
    }

    #[test]
    fn a_part_that_is_listed_first_is_no_entry() {
        assert_eq!(entered(&[0x300, 0x200]), 0x200);
        assert_eq!(entered(&[0x300, 0x400, 0x100]), 0x100);
        assert_eq!(entered(&[0x200, 0x300]), 0x200);
        assert_eq!(entered(&[0x300]), 0x300, "a function of that name");
        assert_eq!(entered(&[0x300, 0x500]), 0x300, "nothing says where else");
        assert_eq!(entered(&[0x500, 0x200]), 0x500, "no symbol says otherwise");
    }
}
