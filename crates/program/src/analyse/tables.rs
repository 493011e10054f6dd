//! From solutions to targets: reading jump tables, measuring those that no compare bounds, and
//! telling indirect tail calls from jumps that stay unknown.
//!
//! An indirect jump can only go where some address was materialised: in an instruction, in an
//! 8-byte word, or in a table of offsets whose base an instruction materialises. So where a
//! function has no label whose address is taken and no table that some jump has not already
//! claimed, a jump through a pointer leaves the function.

mod rest;

use rustc_hash::FxHashSet;

use super::code::Pos;
use super::explore::Exit;
use super::landmarks::Landmarks;
use super::slice::guard::Interval;
use super::slice::search::{LARGEST_TABLE, Memory, Mode, Slicer, Solution};
use super::slice::value::{Atom, Linear, low_mask, sign_extend};
use super::state::{BlockRef, Resolved, State};
use crate::{Address, Resolution};

/// First and last entry of tables.
type Spans = Vec<(Address, Address)>;

/// What examining one indirect jump gave.
#[derive(Clone)]
pub(crate) struct Finding {
    /// The end of its block.
    pub(crate) end: Pos,
    /// What is known of it.
    pub(crate) resolved: Resolved,
    /// Where tables surely begin that the jump reads: the others may begin in front of that or behind.
    pub(crate) begins: Vec<Address>,
    /// Words in front of measured tables, where the index may be negative and would lead into the function.
    in_front: Vec<Address>,
}

impl Finding {
    fn of(end: Pos, resolved: Resolved) -> Self {
        let (begins, in_front) = (Vec::new(), Vec::new());
        Self {
            end,
            resolved,
            begins,
            in_front,
        }
    }

    /// Where the tables that the jump reads begin.
    pub(crate) fn first_entries(&self) -> impl Iterator<Item = Address> {
        self.resolved.tables.iter().map(|table| table.0)
    }
}

/// Examines all indirect jumps of a function.
///
/// `memory` holds the slices that earlier examinations made.
pub(crate) fn examine(
    state: &State<'_>,
    owner: u32,
    landmarks: &Landmarks,
    memory: Memory,
) -> (Vec<Finding>, Memory) {
    let slicer = Slicer::new(state, owner, memory);
    let (words, bases) = (FxHashSet::default(), Vec::new());
    let mut reader = Reader {
        state,
        owner,
        landmarks,
        slicer,
        words,
        bases,
        starts: FxHashSet::default(),
        begins: Vec::new(),
        in_front: Vec::new(),
    };
    let findings = reader.examine();
    (findings, reader.slicer.memory)
}

/// What a table says of one index.
enum Entry {
    /// The jump leads to this instruction.
    Leads(Pos),
    /// Nowhere: compilers let the entries for values that cannot occur point behind the function.
    Impossible,
    /// It leads to code, though to none of this function.
    Elsewhere {
        /// Whether a fragment starts there; otherwise nothing is known of the place.
        is_known: bool,
    },
    /// It is no entry.
    Nowhere,
}

/// How far a table is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reading {
    /// As far as the guard says: every entry must lead to something.
    Strict,
    /// Until something else begins.
    Measure {
        /// Whether a guard allows more entries.
        is_bounded: bool,
    },
}

impl Reading {
    /// Whether a table may end in front of what would lead to code elsewhere, where `is_known` says
    /// whether anything else does. What nothing else names could be a function that only tables
    /// know; and where a guard allows the entry, so could any function.
    fn may_end(self, is_known: bool) -> bool {
        is_known && self == Self::Measure { is_bounded: false }
    }
}

/// By how many entries a displacement is followed that may have been moved by the lowest index.
const MOST_BIAS: i64 = 256;

struct Reader<'s, 'a> {
    state: &'s State<'a>,
    owner: u32,
    landmarks: &'s Landmarks,
    slicer: Slicer<'s, 'a>,
    /// 8-byte words that tables of this function consist of.
    words: FxHashSet<Address>,
    /// Inner addresses that instructions materialise: tables of offsets may count from there.
    bases: Vec<Pos>,
    /// Addresses that instructions materialise and at which a table of offsets may begin. One inside of what is measured
    /// ends that, also where the jump that reads it cannot be solved, perhaps since the other was read too far.
    starts: FxHashSet<Address>,
    /// What [`Finding::begins`] and [`Finding::in_front`] will be of the jump at hand.
    begins: Vec<Address>,
    in_front: Vec<Address>,
}

/// Takes back what was measured of tables that may begin before the place where an index of zero leads: where the word in front of
/// it would lead into the function too, and belongs to no table whose end is proven.
fn take_back_what_may_begin_earlier(findings: &mut [Finding]) {
    let all = findings.iter().map(|finding| &finding.resolved);
    let proven = all.filter(|one| one.resolution == Resolution::GuardedTable);
    let proven: Spans = proven.flat_map(|one| one.tables.iter().copied()).collect();
    let is_known = |word: &Address| {
        proven
            .iter()
            .any(|(first, last)| first <= word && word <= last)
    };
    let may_begin_earlier = |finding: &&mut Finding| !finding.in_front.iter().all(is_known);
    for finding in findings.iter_mut().filter(may_begin_earlier) {
        *finding = Finding::of(finding.end, Resolved::not());
    }
}

/// Adds a table. What the same expression reads is one table, of which another way to the jump only allows other entries.
fn add_table<'s>(
    tables: &mut Vec<(&'s Linear, (Address, Address))>,
    target: &'s Linear,
    (first, last): (Address, Address),
) {
    match tables.iter_mut().find(|known| known.0 == target) {
        Some((_, known)) => *known = (known.0.min(first), known.1.max(last)),
        None => tables.push((target, (first, last))),
    }
}

impl Reader<'_, '_> {
    fn examine(&mut self) -> Vec<Finding> {
        let state = self.state;
        let ends = |jump: &BlockRef| state.block(*jump).end;
        let is_given_up = |jump: &BlockRef| self.landmarks.is_given_up(ends(jump));
        let (given_up, jumps): (Vec<_>, Vec<_>) = self.jumps().into_iter().partition(is_given_up);
        let unresolved = given_up.iter();
        let unresolved = unresolved.map(|jump| Finding::of(ends(jump), Resolved::not()));
        if jumps.is_empty() {
            return unresolved.collect();
        }
        let constants = self.constants();
        // Most indirect jumps are tail calls of functions that have no table to read.
        self.bases = self.inner_labels_in_code();
        let has_tables = constants
            .iter()
            .any(|&constant| self.may_be_table(constant));
        let plain = constants.iter().filter(|one| has_tables && !one.indexed);
        let plain = plain.map(|constant| constant.address);
        self.starts = plain.filter(|&at| self.may_be_offsets(at, at)).collect();
        let sliced = jumps.iter().filter(|_| has_tables);
        let mut findings: Vec<Finding> = sliced.filter_map(|&jump| self.read_table(jump)).collect();
        take_back_what_may_begin_earlier(&mut findings);
        let read: FxHashSet<Pos> = findings.iter().map(|finding| finding.end).collect();
        let open: Vec<BlockRef> = jumps
            .into_iter()
            .filter(|&jump| !read.contains(&state.block(jump).end))
            .collect();
        if !open.is_empty() {
            let tables = findings.iter().flat_map(|finding| &finding.resolved.tables);
            let claimed: FxHashSet<Address> = tables.map(|table| table.0).collect();
            let rest = self.without_table(&constants, &claimed);
            for jump in open {
                let resolved = if self.is_pointer(jump, rest.resolution) {
                    rest.clone()
                } else {
                    Resolved::not()
                };
                findings.push(Finding::of(state.block(jump).end, resolved));
            }
        }
        findings.extend(unresolved);
        findings
    }

    /// Whether the jump leads to a pointer as it was found, so that it is one of the labels or leaves
    /// the function. An entry of an indexed table is such a pointer too, but the words of a table that
    /// another jump reads are no labels: then it could be one of those.
    fn is_pointer(&mut self, jump: BlockRef, otherwise: Resolution) -> bool {
        let entries_are_known = match otherwise {
            Resolution::Labels => true,
            Resolution::TailCall => !self.reads_labels(),
            _ => return false,
        };
        self.slicer.solve(jump, Mode::Pointer).is_some()
            || entries_are_known && self.slicer.solve(jump, Mode::Entry).is_some()
    }

    /// Whether a table that a jump of the function reads holds labels of it.
    fn reads_labels(&self) -> bool {
        self.state.fragments_of(self.owner).any(|part| {
            let own = &self.state.fragments[part as usize];
            let mut words = self.landmarks.labels_in(own.start, own.end).iter();
            words.any(|label| self.words.contains(&label.1))
        })
    }

    fn jumps(&self) -> Vec<BlockRef> {
        let fragments = self.state.fragments_of(self.owner);
        let blocks = fragments.flat_map(|fragment| self.state.reached_in(fragment));
        let jumps = blocks.filter(|(_, block)| block.exit == Exit::JumpIndirect);
        jumps.map(|(at, _)| at).collect()
    }

    /// The targets of a jump through a table, if it is one.
    fn read_table(&mut self, jump: BlockRef) -> Option<Finding> {
        let end = self.state.block(jump).end;
        let guarded = if self.landmarks.loose.contains(&end) {
            None
        } else {
            self.slicer.solve(jump, Mode::Guarded)
        };
        let is_bounded = guarded.is_some();
        self.in_front.clear();
        self.begins.clear();
        let guarded = guarded.and_then(|solutions| self.read(&solutions, Reading::Strict));
        let (resolution, targets, tables) = match guarded {
            Some((targets, tables)) => (Resolution::GuardedTable, targets, tables),
            None => {
                let solutions = self.slicer.solve(jump, Mode::Scaled)?;
                let reading = Reading::Measure { is_bounded };
                self.begins.clear();
                let (targets, tables) = self.read(&solutions, reading)?;
                (Resolution::MeasuredTable, targets, tables)
            }
        };
        Some(Finding {
            end,
            resolved: Resolved {
                resolution,
                targets,
                tables,
            },
            begins: std::mem::take(&mut self.begins),
            in_front: std::mem::take(&mut self.in_front),
        })
    }

    /// All targets of all solutions. Words that lead to the function's entry and nowhere else in it are the beginning of a table of
    /// functions.
    fn read(&mut self, solutions: &[Solution], reading: Reading) -> Option<(Vec<Pos>, Spans)> {
        let (mut targets, mut tables) = (Vec::new(), Vec::new());
        for solution in solutions {
            let mut own = Spans::new();
            self.read_one(solution, reading, &mut targets, &mut own)?;
            own.into_iter()
                .for_each(|span| add_table(&mut tables, &solution.target, span));
        }
        let tables = tables.into_iter().map(|(_, span)| span).collect();
        let mut seen = FxHashSet::default();
        targets.retain(|target| seen.insert(*target));
        let entry = self.state.fragments[self.owner as usize].start;
        let is_pointer = |solution: &Solution| !self.is_offset(&solution.target);
        let are_functions = targets == [entry] && solutions.iter().all(is_pointer);
        (!targets.is_empty() && !are_functions).then_some((targets, tables))
    }

    fn read_one(
        &mut self,
        solution: &Solution,
        reading: Reading,
        targets: &mut Vec<Pos>,
        tables: &mut Spans,
    ) -> Option<()> {
        let Some(index) = solution.index else {
            return match self.target(&solution.target, 0) {
                Entry::Leads(target) => {
                    targets.push(target);
                    Some(())
                }
                Entry::Impossible => Some(()),
                Entry::Nowhere | Entry::Elsewhere { .. } => None,
            };
        };
        let strict = reading == Reading::Strict;
        let zero = self.first_index(&solution.target, index.low);
        let low = if strict { index.low } else { zero };
        let start = self.start_of_table(&solution.target, zero);
        if !strict && solution.may_be_negative && start.is_none() {
            let in_front = low.wrapping_sub(1) & low_mask(64);
            if let Entry::Leads(_) = self.target(&solution.target, in_front) {
                let word = self.table_word(&solution.target, in_front);
                self.in_front.extend(word);
            }
        }
        let word = self.table_word(&solution.target, low);
        let first = word.map(|word| start.map_or(word, |start| start.min(word)));
        tables.extend(first.zip(word));
        let indices = Interval { low, ..index };
        let read = self.read_entries(&solution.target, indices, reading, targets, tables)?;
        if start.is_some() {
            self.begins.extend(start);
        } else if strict || !self.is_offset(&solution.target) {
            self.begins.extend(word);
        } else {
            let behind = low.wrapping_add(u64::try_from(read).ok()?);
            self.read_behind(&solution.target, behind, targets);
        }
        Some(())
    }

    /// Reads the entries for these indices, as far as the table goes; how many those are.
    fn read_entries(
        &mut self,
        target: &Linear,
        indices: Interval,
        reading: Reading,
        targets: &mut Vec<Pos>,
        tables: &mut Spans,
    ) -> Option<u128> {
        let strict = reading == Reading::Strict;
        let most = indices.count.min(LARGEST_TABLE);
        for step in 0..most {
            let value = indices.low.wrapping_add(u64::try_from(step).ok()?) & low_mask(64);
            let word = self.table_word(target, value);
            let cap = tables
                .last()
                .and_then(|table| self.landmarks.caps.get(&table.0));
            if !strict && step > 0 && cap.is_some_and(|cap| word > Some(*cap)) {
                return Some(step);
            }
            if !strict && step > 0 && word.is_some_and(|word| self.ends_before(target, word)) {
                return Some(step);
            }
            match self.target(target, value) {
                Entry::Leads(target) => targets.push(target),
                Entry::Impossible => {}
                Entry::Nowhere | Entry::Elsewhere { .. } if strict || step == 0 => return None,
                Entry::Nowhere => return Some(step),
                Entry::Elsewhere { is_known } => return reading.may_end(is_known).then_some(step),
            }
            self.words.extend(word);
            if let (Some(table), Some(word)) = (tables.last_mut(), word) {
                table.1 = word;
            }
        }
        Some(most)
    }

    /// Whatever else the words behind may lead to, where nothing says that the table begins at an index of zero: what was read may
    /// be padding in front of it. Only known instructions count, since the function is not exact where there are others.
    fn read_behind(&self, target: &Linear, first: u64, targets: &mut Vec<Pos>) {
        let mut in_vain = 0;
        for step in 0..LARGEST_TABLE as u64 {
            let lead = match self.target(target, first.wrapping_add(step) & low_mask(64)) {
                Entry::Leads(pos) => Some(pos).filter(|pos| self.is_known_instruction(*pos)),
                _ => None,
            };
            targets.extend(lead);
            in_vain = if lead.is_some() { 0 } else { in_vain + 1 };
            if in_vain == MOST_BIAS {
                break;
            }
        }
    }

    /// Whether the table that `target` reads ends before this word, since another one begins there, as far as is known.
    fn ends_before(&mut self, target: &Linear, word: Address) -> bool {
        let begins = self.landmarks.tables.contains(&word);
        begins && !self.is_read_from(target, word) || self.starts.contains(&word)
    }

    /// Whether another jump reads the same table as `target`, as its index counts from the same place, and its guard allows only what
    /// begins at this word: no other table begins there.
    fn is_read_from(&mut self, target: &Linear, word: Address) -> bool {
        self.jumps().into_iter().any(|jump| {
            let end = self.state.block(jump).end;
            if self.landmarks.loose.contains(&end) {
                return false;
            }
            let guarded = self.slicer.solve(jump, Mode::Guarded);
            guarded.into_iter().flatten().any(|other| {
                let first = other.index.map_or(0, |index| index.low);
                let at = |target: &Linear, index| self.table_word(target, index);
                at(&other.target, 0) == at(target, 0) && at(&other.target, first) == Some(word)
            })
        })
    }

    /// Where the jump leads for an index.
    fn target(&self, value: &Linear, index: u64) -> Entry {
        let Some(address) = self.evaluate(value, index).map(Address) else {
            return Entry::Nowhere;
        };
        let pos = self.state.tables.code.pos(address);
        let own = pos.filter(|pos| self.is_own_instruction(*pos));
        // Where every block is a part of its own, one may begin where another one ends.
        if self.is_own_end(address) && !own.is_some_and(|pos| self.is_part(pos)) {
            return Entry::Impossible;
        }
        let Some(pos) = pos else {
            return Entry::Nowhere;
        };
        if own.is_some() || self.is_offset(value) && self.is_function(pos) {
            return Entry::Leads(pos);
        }
        match self.state.find(pos) {
            Some(index) if self.state.fragments[index].start == pos => {
                Entry::Elsewhere { is_known: true }
            }
            None if !self.is_filling(pos) => Entry::Elsewhere { is_known: false },
            _ => Entry::Nowhere,
        }
    }

    /// Whether what is at `pos`, outside of all fragments, is no code that anything could lead to.
    fn is_filling(&self, pos: Pos) -> bool {
        let code = self.state.tables.code;
        let rest = code.bytes(pos, code.region_end(pos));
        code.is_stub(pos) || super::padding::starts_with_padding(rest)
    }

    /// The index of the table's first entry, as far as is known, where `low` is the first that the jump is known to use. Where a `switch`
    /// begins with 7, compilers need not subtract that: they count from seven words in front of the table, where others lie.
    fn first_index(&self, target: &Linear, low: u64) -> u64 {
        let biased = |by: i64| low.wrapping_add(by.cast_unsigned()) & low_mask(64);
        let mut biases = (0..=MOST_BIAS).chain(-MOST_BIAS..0).map(biased);
        let first = biases.find(|&index| self.start_of_table(target, index).is_some());
        first.unwrap_or(low)
    }

    /// Where the table begins, if it holds offsets from where this index, its first one, leads. Those of compilers begin where their
    /// offsets count from; where the first index is a negative one, so that another one leads there, it is added to the place of the load
    /// alone.
    fn start_of_table(&self, target: &Linear, first: u64) -> Option<Address> {
        let start = Address(target.constant);
        let is_one_offset = self.is_offset(target) && matches!(target.terms[..], [(_, 1)]);
        (is_one_offset && self.table_word(target, first) == Some(start)).then_some(start)
    }

    /// Whether the target is computed, rather than loaded as it is.
    fn is_offset(&self, value: &Linear) -> bool {
        !matches!(value.as_atom(), Some(Atom::Load { size: 8, .. }))
    }

    /// Whether a function other than this one is surely entered at `pos`.
    fn is_function(&self, pos: Pos) -> bool {
        self.state.find(pos).is_some_and(|index| {
            let fragment = &self.state.fragments[index];
            let evidence = fragment.evidence;
            fragment.start == pos && (evidence.symbol || evidence.entry_frame || evidence.called)
        })
    }

    /// Whether the address is that of the first byte behind a part of the function.
    fn is_own_end(&self, address: Address) -> bool {
        let state = self.state;
        state.fragments_of(self.owner).any(|part| {
            let fragment = &state.fragments[part as usize];
            fragment.sized && state.tables.code.address(fragment.end) == address
        })
    }

    /// Whether `pos` lies in what is a part of this function, or of one that is not known.
    fn is_part(&self, pos: Pos) -> bool {
        self.state.find(pos).is_some_and(|index| {
            let is_own = self.state.owner[index] == self.owner;
            is_own || self.state.fragments[index].evidence.is_part()
        })
    }

    /// Whether an instruction of this function may start at `pos`.
    fn is_own_instruction(&self, pos: Pos) -> bool {
        let state = self.state;
        let Some(index) = state.find(pos) else {
            return false;
        };
        let fragment = &state.fragments[index];
        if state.owner[index] != self.owner
            && !(fragment.evidence.may_be_part() && state.owner[index] as usize == index)
        {
            return false;
        }
        fragment.block_with(pos).is_none() || fragment.starts.get(pos.since(fragment.start))
    }

    /// Whether an instruction that control may reach starts at `pos`.
    fn is_known_instruction(&self, pos: Pos) -> bool {
        let index = self.state.find(pos);
        let fragment = index.map(|index| &self.state.fragments[index]);
        fragment.is_some_and(|fragment| {
            fragment.block_with(pos).is_some() && fragment.starts.get(pos.since(fragment.start))
        })
    }

    /// Where the table entry for an index lies.
    fn table_word(&self, value: &Linear, index: u64) -> Option<Address> {
        let mut found = None;
        value.any(&mut |atom| {
            if let Atom::Load { address, .. } = atom
                && address.any(&mut |inner| *inner == Atom::Index)
            {
                found = self.evaluate(address, index).map(Address);
            }
            found.is_some()
        });
        found
    }

    fn evaluate(&self, value: &Linear, index: u64) -> Option<u64> {
        let mut sum = value.constant;
        for (atom, factor) in &value.terms {
            sum = sum.wrapping_add(self.evaluate_atom(atom, index)?.wrapping_mul(*factor));
        }
        Some(sum)
    }

    fn evaluate_atom(&self, atom: &Atom, index: u64) -> Option<u64> {
        Some(match atom {
            Atom::Index => index,
            Atom::Zero(bits, inner) => self.evaluate(inner, index)? & low_mask(*bits),
            Atom::Sign(bits, inner) => sign_extend(self.evaluate(inner, index)?, *bits),
            Atom::And(inner, mask) => self.evaluate(inner, index)? & mask,
            Atom::Shift(inner, count) => self
                .evaluate(inner, index)?
                .checked_shr(u32::from(*count))?,
            Atom::Load { address, size, .. } => {
                self.load(Address(self.evaluate(address, index)?), *size)?
            }
            Atom::Register(_) | Atom::Opaque(_) => return None,
        })
    }

    /// What a load from memory that never changes gives at run time, as a stated address.
    fn load(&self, address: Address, size: u8) -> Option<u64> {
        let binary = self.state.tables.code.binary;
        let bytes = binary.constant_at(address)?.get(..usize::from(size))?;
        if size == 8 {
            if let Some(pointer) = binary.pointer_in_slot(address) {
                return Some(pointer.0);
            }
            if binary.import_in_slot(address).is_some() {
                return None;
            }
        }
        Some(
            bytes
                .iter()
                .rev()
                .fold(0, |number, byte| number << 8 | u64::from(*byte)),
        )
    }
}
