//! Backward search for the value of an indirect jump's target.
//!
//! From the jump we walk backwards along every path (Weiser, *Program slicing*, ICSE 1981, on
//! machine code as in Cifuentes and Van Emmerik, *Recovery of jump table case statements from
//! binary code*, IWPC 1999), carrying the target as a [`Linear`] and what branches prove of values
//! as [`Guard`]s, and substituting what each instruction does. A path is solved when the target is a
//! function of one bounded index and of memory that never changes. The jump is solved when all
//! paths are: no pattern of instructions is matched, so it does not matter how a compiler
//! schedules, spills or biases.

use std::cell::RefCell;
use std::hash::{Hash as _, Hasher as _};
use std::rc::Rc;

use iced_x86::{ConditionCode, Decoder, DecoderOptions, Instruction};
use rustc_hash::{FxHashMap, FxHashSet, FxHasher};

use super::effect::{Effect, Effects, Flags, RBP, RSP, Store, operand};
use super::guard::{Guard, Interval, guard, negated};
use super::kept::kept;
use super::path::{Path, Uses, is_based_on};
use super::value::{Atom, Linear};
use crate::EdgeKind;
use crate::analyse::code::Pos;
use crate::analyse::explore::Exit;
use crate::analyse::state::{BlockRef, State};

/// Block visits after which a search for the table's base is given up.
const MOST_VISITS: usize = 20_000;
/// Block visits after which the search for a guard is given up: guards stand close to their jumps.
const MOST_GUARD_VISITS: usize = 64;
/// The same where a guard of the lower part of the index is found: what wrote the rest may stand further away.
const MOST_WIDTH_VISITS: usize = 512;
/// Different states at one block after which a search is given up.
const MOST_STATES: u32 = 8;
/// The same where a guard of the lower part of the index is found: other guards differ by the way.
const MOST_WIDTH_STATES: u32 = 64;
/// Conditional moves that matter, after which a search is given up: each makes two paths of one.
const MOST_FORKS: u32 = 256;
/// Predecessors of a block that it may share with others: so many cost more than to look for those.
const MANY: usize = 16;
/// An interval with more values than this bounds no table.
pub(crate) const LARGEST_TABLE: u128 = 1 << 16;

/// What one way to the jump makes of its target.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Solution {
    /// The target, a function of [`Atom::Index`] at most.
    pub(crate) target: Linear,
    /// The values of the index that the path allows.
    pub(crate) index: Option<Interval>,
    /// Whether a branch proves that, rather than the width of the index alone.
    pub(crate) guarded: bool,
    /// Whether the index may be less than that.
    pub(crate) may_be_negative: bool,
}

/// How the index of a table is told from the rest.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Mode {
    /// By a guard.
    Guarded,
    /// By its place: it is what is scaled.
    Scaled,
    /// Not at all: whether the target is a pointer as it is found in memory, an argument or a result,
    /// and nothing that is computed.
    Pointer,
    /// The same, where an entry of an indexed table is a pointer too.
    Entry,
}

impl Mode {
    /// Whether what is asked is where the target comes from, and not what it can be.
    pub(super) fn asks_for_origin(self) -> bool {
        matches!(self, Self::Pointer | Self::Entry)
    }
}

/// Predecessors and decoded blocks of one function.
pub(crate) struct Slicer<'s, 'a> {
    state: &'s State<'a>,
    /// (block, one of its predecessors, why), by block.
    predecessors: Vec<(BlockRef, BlockRef, EdgeKind)>,
    /// Of blocks with [`MANY`] predecessors, another with the same ones.
    alike: FxHashMap<BlockRef, BlockRef>,
    entered: FxHashSet<BlockRef>,
    decoded: FxHashMap<BlockRef, Rc<Vec<Instruction>>>,
    steps: FxHashMap<BlockRef, Rc<Vec<(u64, Effect)>>>,
    /// What [`Slicer::signature`] takes of blocks, by their starts.
    surroundings: FxHashMap<Pos, u64>,
    effects: Effects,
    /// The registers that called functions keep.
    kept: RefCell<FxHashMap<Pos, u16>>,
    has_frame_pointer: bool,
    owner: u32,
    /// Slices made before, which hold where nothing around them has changed.
    pub(crate) memory: Memory,
    /// Paths from which searches of this slicer have come to one solution only, by mode: jumps of one
    /// function often share most of their way back.
    walked: FxHashMap<Mode, FxHashMap<Path, Rc<Walked>>>,
}

/// A finished search with a single solution.
struct Walked {
    solution: Solution,
    /// The blocks that were walked through.
    around: Vec<BlockRef>,
}

/// Slices by the end of the jump's block and the mode.
pub(crate) type Memory = FxHashMap<(Pos, Mode), Slice>;

/// What a search gave, and from what.
pub(crate) struct Slice {
    solutions: Option<Vec<Solution>>,
    /// Starts of the blocks that were walked through.
    around: Vec<Pos>,
    signature: u64,
}

impl<'s, 'a> Slicer<'s, 'a> {
    /// A slicer of the function with this owner.
    pub(crate) fn new(state: &'s State<'a>, owner: u32, memory: Memory) -> Self {
        let mut slicer = Self {
            state,
            predecessors: Vec::new(),
            alike: FxHashMap::default(),
            entered: FxHashSet::default(),
            decoded: FxHashMap::default(),
            steps: FxHashMap::default(),
            surroundings: FxHashMap::default(),
            effects: Effects::new(),
            kept: RefCell::default(),
            has_frame_pointer: false,
            owner,
            memory,
            walked: FxHashMap::default(),
        };
        for fragment in state.fragments_of(owner) {
            slicer.note_edges(fragment, owner);
        }
        slicer.predecessors.sort_unstable();
        slicer.note_alike();
        slicer.has_frame_pointer = slicer.finds_frame_pointer(owner);
        slicer
    }

    fn note_edges(&mut self, fragment: u32, owner: u32) {
        let state = self.state;
        let code = &state.fragments[fragment as usize];
        let entries = (fragment == owner).then_some(code.start);
        let entries = entries.into_iter().chain(code.jumped_into.iter().copied());
        self.entered
            .extend(entries.filter_map(|entry| state.block_at(entry, fragment)));
        for (from, _) in state.reached_in(fragment) {
            let falls = crate::analyse::returns::call_falls_through(state, from);
            state.ways_out(from, |target, kind| {
                if kind == EdgeKind::CallFallthrough && !falls {
                    return;
                }
                if let Some(to) = state.block_at(target, fragment) {
                    self.predecessors.push((to, from, kind));
                }
            });
        }
    }

    /// All that a table leads to has the jumps through it as predecessors; threaded interpreters have hundreds of both.
    fn note_alike(&mut self) {
        let mut known: FxHashMap<u64, BlockRef> = FxHashMap::default();
        let groups = self.predecessors.chunk_by(|one, next| one.0 == next.0);
        for group in groups.filter(|group| group.len() >= MANY) {
            let from = |edge: &(BlockRef, BlockRef, EdgeKind)| (edge.1, edge.2);
            let mut hasher = FxHasher::default();
            group.iter().for_each(|edge| from(edge).hash(&mut hasher));
            let at = group[0].0;
            let first = *known.entry(hasher.finish()).or_insert(at);
            let others = self.edges_to(first);
            if first != at && group.iter().map(from).eq(others.iter().map(from)) {
                self.alike.insert(at, first);
            }
        }
        let firsts: Vec<BlockRef> = self.alike.values().copied().collect();
        self.alike.extend(firsts.into_iter().map(|at| (at, at)));
    }

    /// Whether the search has gone on to the same predecessors in the same state, from this or another block.
    fn went_on(&self, path: &Path, search: &mut Search) -> bool {
        self.alike.get(&path.at).is_some_and(|&at| {
            let path = Path { at, ..path.clone() };
            !search.gone_on.insert(path)
        })
    }

    /// Whether the entry block sets `rbp` up as a frame pointer.
    fn finds_frame_pointer(&mut self, owner: u32) -> bool {
        if self.state.fragments[owner as usize].blocks.is_empty() {
            return false;
        }
        let instructions = self.instructions(BlockRef {
            fragment: owner,
            block: 0,
        });
        instructions.iter().any(|instruction| {
            self.effects
                .of(instruction)
                .registers
                .iter()
                .any(|(register, value)| {
                    *register == RBP && value.as_ref().is_some_and(|value| is_based_on(value, RSP))
                })
        })
    }

    /// The instructions of a block.
    pub(crate) fn instructions(&mut self, at: BlockRef) -> Rc<Vec<Instruction>> {
        let state = self.state;
        Rc::clone(self.decoded.entry(at).or_insert_with(|| {
            let (code, block) = (state.tables.code, state.block(at));
            let bytes = code.bytes(block.start, block.end);
            Rc::new(
                Decoder::with_ip(64, bytes, code.address(block.start).0, DecoderOptions::NONE)
                    .iter()
                    .collect(),
            )
        }))
    }

    /// What the instructions of a block do, with their addresses.
    fn steps(&mut self, at: BlockRef) -> Rc<Vec<(u64, Effect)>> {
        if let Some(steps) = self.steps.get(&at) {
            return Rc::clone(steps);
        }
        let instructions = self.instructions(at);
        let effects = instructions
            .iter()
            .map(|instruction| (instruction.ip(), self.effects.of(instruction)));
        let steps = Rc::new(effects.collect());
        self.steps.insert(at, Rc::clone(&steps));
        steps
    }

    /// All solutions for the indirect jump that ends the block, or `None` if some path has none.
    pub(crate) fn solve(&mut self, at: BlockRef, mode: Mode) -> Option<Vec<Solution>> {
        let key = (self.state.block(at).end, mode);
        if let Some(known) = self.memory.remove(&key)
            && known.signature == self.signature(&known.around)
        {
            let solutions = known.solutions.clone();
            self.memory.insert(key, known);
            return solutions;
        }
        let mut search = Search::new(mode);
        let found = self.search(at, &mut search);
        let around = search.around(at);
        let mut starts: Vec<Pos> = around
            .iter()
            .map(|&at| self.state.block(at).start)
            .collect();
        starts.sort_unstable();
        if found.is_some() {
            self.note_walked(&mut search, around);
        }
        let solutions = found.map(|()| search.solutions);
        let slice = Slice {
            solutions: solutions.clone(),
            signature: self.signature(&starts),
            around: starts,
        };
        self.memory.insert(key, slice);
        solutions
    }

    /// Remembers where the paths of a finished search lead, if that is to one solution.
    fn note_walked(&mut self, search: &mut Search, around: Vec<BlockRef>) {
        if let [solution] = &search.solutions[..] {
            let solution = solution.clone();
            let walked = Rc::new(Walked { solution, around });
            let paths = search.seen.drain().map(|path| (path, Rc::clone(&walked)));
            self.walked.entry(search.mode).or_default().extend(paths);
        }
    }

    fn search(&mut self, at: BlockRef, search: &mut Search) -> Option<()> {
        let instructions = self.instructions(at);
        let (target, _) = operand(instructions.last()?, 0)?;
        let (guards, pending, uses) = (Vec::new(), Vec::new(), Uses::default());
        let start = Path {
            at,
            target,
            guards,
            pending,
            index: None,
            guarded: false,
            scaled: None,
            may_be_negative: false,
            uses,
        };
        let steps = self.steps(at);
        let (_, before) = steps.split_last()?;
        self.walk(start, before, search)?;
        while let Some(path) = search.work.pop() {
            let steps = self.steps(path.at);
            self.walk(path, &steps, search)?;
        }
        Some(())
    }

    /// A hash of all that walking through these blocks depends on.
    fn signature(&mut self, around: &[Pos]) -> u64 {
        let mut hasher = FxHasher::default();
        self.has_frame_pointer.hash(&mut hasher);
        for &start in around {
            let known = self.surroundings.get(&start).copied();
            known
                .unwrap_or_else(|| self.note_surroundings(start))
                .hash(&mut hasher);
        }
        hasher.finish()
    }

    /// A hash of all that walking through a block depends on.
    fn note_surroundings(&mut self, start: Pos) -> u64 {
        let mut hasher = FxHasher::default();
        if let Some(at) = self.state.block_at(start, self.owner) {
            (start, self.state.block(at).end, self.entered.contains(&at)).hash(&mut hasher);
            for &(_, from, kind) in self.edges_to(at) {
                (self.state.block(from).start, kind).hash(&mut hasher);
            }
        }
        let hash = hasher.finish();
        self.surroundings.insert(start, hash);
        hash
    }

    /// The edges that lead to a block.
    fn edges_to(&self, at: BlockRef) -> &[(BlockRef, BlockRef, EdgeKind)] {
        let first = self.predecessors.partition_point(|edge| edge.0 < at);
        let count = self.predecessors[first..].partition_point(|edge| edge.0 == at);
        &self.predecessors[first..first + count]
    }

    /// Walks a path back through (the rest of) a block and queues its predecessors.
    fn walk(&self, mut path: Path, steps: &[(u64, Effect)], search: &mut Search) -> Option<()> {
        path.simplify(search.mode);
        if self.is_solved(&path, search) {
            return Some(());
        }
        for (left, (here, effect)) in steps.iter().enumerate().rev() {
            if !path.is_touched_by(effect) {
                continue;
            }
            if let Some((register, value, condition)) = &effect.conditional
                && path.uses.registers >> register & 1 != 0
            {
                search.fork()?;
                let mut moved = path.clone();
                moved.substitute_register(*register, value);
                moved.pending.push(*condition);
                self.walk(moved, &steps[..left], search)?;
                path.pending.push(negated(*condition));
            }
            let kept = if effect.is_call && !search.mode.asks_for_origin() {
                self.kept(path.at)
            } else {
                0
            };
            self.step(&mut path, effect, kept, *here);
            path.simplify(search.mode);
            if path.is_found_pointer(search.mode) {
                return Some(());
            }
            if path.target.is_too_large() || path.is_hopeless() {
                return None;
            }
            if self.is_solved(&path, search) {
                return Some(());
            }
        }
        self.queue_predecessors(&path, search)
    }

    fn queue_predecessors(&self, path: &Path, search: &mut Search) -> Option<()> {
        let is_closed = path.scaled.is_some() && self.is_closed(path);
        let is_entered = self.entered.contains(&path.at);
        if is_closed && (is_entered || self.edges_to(path.at).is_empty()) {
            search.note(path.solution());
            return Some(());
        }
        if is_entered {
            return (search.mode.asks_for_origin() && path.is_argument()).then_some(());
        }
        if self.went_on(path, search) {
            return Some(());
        }
        // One path for all of them: hundreds of jumps may lead here, and most of what is behind them was walked before.
        let mut next = path.clone();
        for &(_, from, kind) in self.edges_to(path.at) {
            next.at = from;
            next.pending.truncate(path.pending.len());
            if matches!(kind, EdgeKind::Taken | EdgeKind::NotTaken) {
                next.pending.extend(self.condition(from, kind));
            }
            match self.walked.get(&search.mode).and_then(|all| all.get(&next)) {
                Some(walked) => search.join(walked),
                None if is_closed => search.push_closed(&next),
                None => search.push(&next)?,
            }
        }
        Some(())
    }

    /// The condition that holds when control leaves `from` by that way.
    fn condition(&self, from: BlockRef, kind: EdgeKind) -> Option<ConditionCode> {
        let (code, block) = (self.state.tables.code, self.state.block(from));
        let bytes = code.bytes(block.start, block.end);
        let last = match self.decoded.get(&from) {
            Some(instructions) => *instructions.last()?,
            None => Decoder::with_ip(64, bytes, code.address(block.start).0, DecoderOptions::NONE)
                .iter()
                .last()?,
        };
        let condition = last.condition_code();
        match (condition, kind) {
            (ConditionCode::None, _) => None,
            (_, EdgeKind::Taken) => Some(condition),
            _ => Some(negated(condition)),
        }
    }

    /// Carries the path over one instruction, backwards; `kept` are registers that it certainly keeps.
    fn step(&self, path: &mut Path, effect: &Effect, kept: u16, here: u64) {
        match &effect.flags {
            Flags::Kept => {}
            Flags::Compare { left, right, bits } => {
                // Guards speak of the state before the instruction: they are added after the
                // substitution of its other effects.
                let found: Vec<Guard> = path
                    .pending
                    .drain(..)
                    .filter_map(|condition| guard(condition, left, *right, *bits))
                    .collect();
                self.carry(path, effect, kept, here);
                found.into_iter().for_each(|guard| path.add_guard(guard));
                return;
            }
            Flags::Unknown => path.pending.clear(),
        }
        self.carry(path, effect, kept, here);
    }

    fn carry(&self, path: &mut Path, effect: &Effect, kept: u16, here: u64) {
        path.substitute(&mut |atom| match atom {
            Atom::Register(number) if kept >> number & 1 != 0 => None,
            Atom::Register(number) => {
                let (_, value) = effect
                    .registers
                    .iter()
                    .find(|(register, _)| register == number)?;
                Some(
                    value.clone().unwrap_or_else(|| {
                        Linear::atom(Atom::Opaque(here << 4 | u64::from(*number)))
                    }),
                )
            }
            _ => None,
        });
        if let Some(store) = &effect.store {
            self.carry_over_store(path, store, here);
        }
        if effect.writes_everything {
            path.spoil(&|_| true);
        } else if effect.writes_anywhere {
            path.spoil(&|address| !self.is_frame(address));
        }
        // A callee, or a store through a pointer, may write to a variable of the frame. (What the
        // target and the table's base are loaded from is not a variable but what was spilled.)
        let foreign = effect
            .store
            .as_ref()
            .is_some_and(|store| !self.is_frame(&store.address));
        if foreign || effect.writes_anywhere || effect.writes_everything {
            path.distrust_variables(&|address| self.is_frame(address));
        }
    }

    /// The registers that the call at the end of a block certainly keeps, of all.
    fn kept(&self, at: BlockRef) -> u16 {
        let block = self.state.block(at);
        let Exit::Call(callee) = block.exit else {
            return 0;
        };
        if self.state.landing_pad(at.fragment, block.end).is_some() {
            return 0;
        }
        let mut known = self.kept.borrow_mut();
        *known
            .entry(callee)
            .or_insert_with(|| kept(self.state, callee))
    }

    fn carry_over_store(&self, path: &mut Path, store: &Store, here: u64) {
        path.substitute(&mut |atom| match atom {
            Atom::Load {
                address,
                size,
                stale: false,
            } if *address == store.address && *size <= store.size => {
                Some(store.value.as_ref().map_or_else(
                    || Linear::atom(Atom::Opaque(here << 4 | 15)),
                    |value| value.zero_extended(size * 8),
                ))
            }
            _ => None,
        });
        let may_overlap = |address: &Linear| self.may_overlap(address, store);
        path.spoil(&may_overlap);
    }

    /// Whether the store may change what is loaded from `address`.
    fn may_overlap(&self, address: &Linear, store: &Store) -> bool {
        let apart = address.clone().plus(&store.address, u64::MAX);
        if let Some(distance) = apart.as_constant() {
            // Loads are at most eight bytes: none reaches further back than seven.
            return distance < u64::from(store.size)
                || distance > 7_u64.wrapping_neg().wrapping_sub(1);
        }
        // What a compiler keeps in its frame at a fixed place while it needs it again is not
        // written through other pointers in between; two registers may both point into the frame.
        self.is_frame(address) == self.is_frame(&store.address)
    }

    /// Whether the address is a fixed place in the function's frame.
    fn is_frame(&self, address: &Linear) -> bool {
        is_based_on(address, RSP) || self.has_frame_pointer && is_based_on(address, RBP)
    }

    fn is_solved(&self, path: &Path, search: &mut Search) -> bool {
        if search.mode.asks_for_origin() {
            // Where there is no code, as at zero, a jump leads nowhere.
            let constant = path.target.as_constant().map(crate::Address);
            let leaves = constant.is_some_and(|at| {
                let pos = self.state.tables.code.pos(at);
                pos.is_none_or(|pos| self.is_function(pos))
            });
            let is_frame = |address: &Linear| self.is_frame(address);
            return leaves || path.is_loaded_pointer(search.mode, is_frame);
        }
        let is_solved = path.scaled.is_none() && self.is_closed(path);
        if is_solved {
            search.note(path.solution());
        }
        is_solved
    }

    /// Whether a function starts at `pos` for certain, which can be no part of this one.
    fn is_function(&self, pos: Pos) -> bool {
        self.state.find(pos).is_some_and(|index| {
            let fragment = &self.state.fragments[index];
            let evidence = fragment.evidence;
            fragment.start == pos && evidence.is_proven() && !evidence.may_be_part()
        })
    }

    /// Whether the target is a function of the index and of memory that never changes.
    fn is_closed(&self, path: &Path) -> bool {
        let mut is_open = |atom: &Atom| match atom {
            Atom::Register(_) | Atom::Opaque(_) => true,
            Atom::Load { address, .. } => {
                let start = crate::Address(address.constant);
                address.as_constant().is_some()
                    && self.state.tables.code.binary.constant_at(start).is_none()
            }
            _ => false,
        };
        !path.target.any(&mut is_open)
    }
}

struct Search {
    mode: Mode,
    solutions: Vec<Solution>,
    work: Vec<Path>,
    seen: FxHashSet<Path>,
    /// Paths that have gone on from blocks with many predecessors, each at one block of those that have the same.
    gone_on: FxHashSet<Path>,
    states: FxHashMap<BlockRef, u32>,
    /// How often a path has become two inside of a block.
    forks: u32,
    /// Block visits that ask only where the index comes from.
    looks: usize,
    /// Finished searches that this one has run into.
    joined: Vec<Rc<Walked>>,
}

impl Search {
    fn new(mode: Mode) -> Self {
        let (solutions, work) = (Vec::new(), Vec::new());
        Self {
            mode,
            solutions,
            work,
            seen: FxHashSet::default(),
            gone_on: FxHashSet::default(),
            states: FxHashMap::default(),
            forks: 0,
            looks: 0,
            joined: Vec::new(),
        }
    }

    /// Counts a path that becomes two inside of a block; `None` when the search grows too large.
    fn fork(&mut self) -> Option<()> {
        self.forks += 1;
        (self.forks <= MOST_FORKS).then_some(())
    }

    fn note(&mut self, solution: Solution) {
        if !self.solutions.contains(&solution) {
            self.solutions.push(solution);
        }
    }

    /// Takes over where a path leads that another search has walked.
    fn join(&mut self, walked: &Rc<Walked>) {
        self.note(walked.solution.clone());
        if !self.joined.iter().any(|known| Rc::ptr_eq(known, walked)) {
            self.joined.push(Rc::clone(walked));
        }
    }

    /// The blocks on which the outcome depends, each once; `at` is where the jump is.
    fn around(&self, at: BlockRef) -> Vec<BlockRef> {
        let joined = self.joined.iter().flat_map(|walked| &walked.around);
        let own = self.states.keys().chain(joined).copied();
        let mut around: Vec<BlockRef> = own.chain([at]).collect();
        around.sort_unstable();
        around.dedup();
        around
    }

    /// Queues a path of which everything is known but what the index comes from, which may stay unknown.
    fn push_closed(&mut self, path: &Path) {
        if self.looks >= MOST_GUARD_VISITS {
            self.note(path.solution());
        } else if self.is_new(path) {
            self.looks += 1;
            self.states.entry(path.at).or_default();
            self.work.push(path.clone());
        }
    }

    /// Queues a path unless it was walked before; `None` when the search grows too large.
    fn push(&mut self, path: &Path) -> Option<()> {
        if self.is_new(path) {
            let states = self.states.entry(path.at).or_default();
            *states += 1;
            let (most, most_states) = match path.index {
                None if self.mode.asks_for_origin() => (MOST_VISITS, MOST_STATES),
                None if path.awaits_width() => (MOST_WIDTH_VISITS, MOST_WIDTH_STATES),
                None => (MOST_GUARD_VISITS, MOST_STATES),
                Some(_) => (MOST_VISITS, MOST_STATES),
            };
            if *states > most_states || self.seen.len() > most {
                return None;
            }
            self.work.push(path.clone());
        }
        Some(())
    }

    /// Whether the path is seen for the first time.
    fn is_new(&mut self, path: &Path) -> bool {
        !self.seen.contains(path) && self.seen.insert(path.clone())
    }
}
