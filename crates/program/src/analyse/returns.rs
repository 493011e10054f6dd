//! Which functions can return, and what control can reach given that.
//!
//! A function returns if a return, or a tail call to a function that returns, can be reached from
//! its entry, where control passes a call only if the callee returns. The least solution is what
//! happens at run time: a function that returns does so after finitely many steps, which are a
//! derivation (Kruegel et al. call it non-return analysis; the formulation as a least fixpoint is
//! that of Meng and Miller, *Binary code is not easy*, ISSTA 2016, §4.3). Every block is visited
//! once and every call waits at most once for its callee: linear time.
//!
//! Afterwards the compiler's view is restored: behind a call whose callee never returns although
//! nobody declared so, the compiler went on generating code. Where nothing else reaches that code,
//! control is said to fall through to it after all. Each such call is looked at once, when it is reached:
//! what keeps control from going on there (something else reaches the code, there is none, the callee
//! returns) stays so.
//!
//! What is behind a call may also be what a jump leads to whose table was not read yet, and a way there that never runs
//! may be what keeps the table from being read. So as long as jumps have not settled, a function waits for the
//! view until all jumps that control reaches in it are known.

use rustc_hash::{FxHashMap, FxHashSet};

use super::code::{Destination, Pos};
use super::explore::{Bits, Exit, RawBlock};
use super::fragment::Fragment;
use super::padding;
use super::state::{BlockRef, State};
use crate::{EdgeKind, Resolution};

/// What control can reach.
#[derive(Default)]
pub(crate) struct Reach {
    /// By fragment: its blocks that control reaches.
    blocks: Vec<Bits>,
    /// By fragment: whether the function entered there can return. Only owners count.
    returns: Vec<bool>,
    /// By fragment: its blocks that end in a call behind which control goes on although the callee
    /// never returns.
    continued: Vec<Bits>,
    /// Whether the compiler's view of some function waits for its jumps.
    waits: bool,
}

impl Reach {
    /// Whether control can reach the block.
    pub(crate) fn reaches(&self, at: BlockRef) -> bool {
        self.blocks
            .get(at.fragment as usize)
            .is_some_and(|blocks| blocks.get(at.block))
    }

    /// Whether the function with this owner can return.
    pub(crate) fn returns(&self, owner: u32) -> bool {
        self.returns.get(owner as usize).copied().unwrap_or(true)
    }

    /// Whether the compiler's view of some function waits for its jumps, where all of it was computed anew.
    pub(crate) fn waits(&self) -> bool {
        self.waits
    }

    fn continues(&self, at: BlockRef) -> bool {
        self.continued
            .get(at.fragment as usize)
            .is_some_and(|blocks| blocks.get(at.block))
    }

    /// Forgets what is reached of a fragment.
    fn clear(&mut self, state: &State<'_>, fragment: u32) {
        let size = state.fragments[fragment as usize].blocks.len();
        self.blocks[fragment as usize] = Bits::with_size(size);
        self.continued[fragment as usize] = Bits::with_size(size);
    }
}

/// Computes [`Reach`] for the present state.
pub(crate) fn reach(state: &State<'_>) -> Reach {
    let mut search = Search::of_everything(state);
    search.run();
    search.restore_compilers_view();
    search.reach
}

/// Brings `old` up to date where only the functions with these owners have changed, and only by
/// new code. Where one of them turns out to return that did not, everything is computed anew.
pub(crate) fn update(state: &State<'_>, old: Reach, owners: &[u32]) -> Reach {
    let before: Vec<bool> = owners.iter().map(|&owner| old.returns(owner)).collect();
    let fragments: Vec<u32> = owners
        .iter()
        .flat_map(|&owner| state.fragments_of(owner))
        .collect();
    let mut search = Search::new(state, old);
    fragments
        .iter()
        .for_each(|&fragment| search.reach.clear(state, fragment));
    fragments
        .iter()
        .for_each(|&fragment| search.enter(fragment));
    search.run();
    search.restore_compilers_view();
    let same = owners
        .iter()
        .zip(before)
        .all(|(&owner, before)| search.reach.returns(owner) == before);
    if same { search.reach } else { reach(state) }
}

/// Whether control goes on behind the call that ends the block, in the reach already computed.
pub(crate) fn call_falls_through(state: &State<'_>, at: BlockRef) -> bool {
    let block = state.block(at);
    if ends_its_fragment(state, at) {
        return false;
    }
    match block.exit {
        Exit::Call(target) => match callee(state, target) {
            Callee::Declared => false,
            Callee::Function(owner) => state.reach.returns(owner) || state.reach.continues(at),
            Callee::Unknown => true,
        },
        Exit::CallImport(import) => {
            state.tables.code.import_returns(import)
                && (!ends_by_status(state, at) || state.reach.continues(at))
        }
        _ => true,
    }
}

/// Whether the block ends in a call of an import that ends the process for what it is given.
fn ends_by_status(state: &State<'_>, at: BlockRef) -> bool {
    let block = state.block(at);
    matches!(block.exit, Exit::CallImport(import)
        if state.tables.code.ends_by_status(import, block.start, block.end))
}

/// Whether the block's call is the last instruction of bytes that a table bounds: then the compiler
/// knew that it does not return.
fn ends_its_fragment(state: &State<'_>, at: BlockRef) -> bool {
    let (block, home) = (state.block(at), &state.fragments[at.fragment as usize]);
    if !home.sized || !block.exit.is_call() {
        return false;
    }
    let rest = state.tables.code.bytes(block.end, home.end);
    padding::padding_length(rest) == rest.len()
}

/// Whom a direct call reaches, as far as returning is concerned.
enum Callee {
    /// Declared never to return.
    Declared,
    /// The function with this owner.
    Function(u32),
    /// No function's entry.
    Unknown,
}

fn callee(state: &State<'_>, target: Pos) -> Callee {
    let Some(index) = state.find(target) else {
        return Callee::Unknown;
    };
    let fragment = &state.fragments[index];
    if fragment.start != target || state.owner[index] as usize != index {
        Callee::Unknown
    } else if fragment.declared_noreturn {
        Callee::Declared
    } else if is_left_and_resumed(state, fragment) {
        Callee::Unknown
    } else {
        Callee::Function(state.owner[index])
    }
}

/// Whether it is assembly of a runtime that leaves a stack to come back to it later, and then goes on behind the call: Go's switches
/// from one goroutine to another so. What only jumps to another function comes back as that does.
fn is_left_and_resumed(state: &State<'_>, fragment: &Fragment) -> bool {
    /// Jumps that are followed.
    const MOST: usize = 4;
    let is_foreign = |one: &Fragment| state.tables.has_foreign && one.unwind.0 == one.unwind.1;
    let mut at = fragment;
    for _ in 0..MOST {
        let [
            RawBlock {
                exit: Exit::Jump(target),
                ..
            },
        ] = at.blocks[..]
        else {
            break;
        };
        match state.find(target).filter(|_| is_foreign(at)) {
            Some(next) => at = &state.fragments[next],
            None => break,
        }
    }
    is_foreign(at)
}

struct Search<'s, 'a> {
    state: &'s State<'a>,
    reach: Reach,
    work: Vec<BlockRef>,
    /// Owners of functions just found to return.
    returned: Vec<u32>,
    /// By owner: calls of it that wait for its return.
    waiting: FxHashMap<u32, Vec<BlockRef>>,
    /// Blocks that end in calls that had to wait or do not come back for what they are given, but for those behind which the compiler's view was looked for.
    waited: Vec<BlockRef>,
    /// Owners of functions in which a jump was reached that leads who knows where.
    unknown: FxHashSet<u32>,
}

impl<'s, 'a> Search<'s, 'a> {
    fn new(state: &'s State<'a>, reach: Reach) -> Self {
        let waiting = FxHashMap::default();
        Self {
            state,
            reach,
            work: Vec::new(),
            returned: Vec::new(),
            waiting,
            waited: Vec::new(),
            unknown: FxHashSet::default(),
        }
    }

    /// A search that begins at every function.
    fn of_everything(state: &'s State<'a>) -> Self {
        let all = || 0..u32::try_from(state.fragments.len()).unwrap_or(u32::MAX);
        let mut reach = Reach::default();
        for fragment in all() {
            reach.blocks.push(Bits::default());
            reach.continued.push(Bits::default());
            reach.returns.push(false);
            reach.clear(state, fragment);
        }
        let mut search = Self::new(state, reach);
        all().for_each(|fragment| search.enter(fragment));
        search
    }

    /// Starts at the entry of a function, and where other functions jump into it.
    fn enter(&mut self, fragment: u32) {
        let code = &self.state.fragments[fragment as usize];
        if self.state.owner_of(fragment) == fragment {
            self.arrive(code.start, fragment);
            if code.blocks.is_empty() || code.drops_return_address() {
                self.set_returns(fragment);
            }
        }
        for &root in &code.jumped_into {
            self.arrive(root, fragment);
        }
    }

    fn arrive(&mut self, pos: Pos, near: u32) {
        if let Some(at) = self.state.block_at(pos, near) {
            self.arrive_at(at);
        }
    }

    fn arrive_at(&mut self, at: BlockRef) {
        if self.reach.blocks[at.fragment as usize].insert(at.block) {
            self.work.push(at);
        }
    }

    fn run(&mut self) {
        loop {
            if let Some(at) = self.work.pop() {
                self.leave(at);
            } else if let Some(owner) = self.returned.pop() {
                self.resume_waiting(owner);
            } else {
                break;
            }
        }
    }

    /// Follows every way out of a reached block.
    fn leave(&mut self, at: BlockRef) {
        let state = self.state;
        state.ways_out(at, |target, kind| match kind {
            EdgeKind::CallFallthrough => {
                if self.passes_call(at) {
                    self.stay_or_leave(at, target);
                }
            }
            _ => self.stay_or_leave(at, target),
        });
        let owner = state.owner_of(at.fragment);
        let block = state.block(at);
        match block.exit {
            Exit::Call(target) if state.calls_itself_inside(block, target) => {
                self.set_returns(owner)
            }
            Exit::Return | Exit::Broken | Exit::JumpResolved | Exit::BranchOutside => {
                self.set_returns(owner)
            }
            Exit::JumpImport(import) if state.tables.code.import_returns(import) => {
                self.set_returns(owner)
            }
            Exit::JumpIndirect => {
                let resolved = state
                    .jumps
                    .get(&block.end)
                    .map_or(Resolution::Unresolved, |jump| jump.resolution);
                if resolved == Resolution::Unresolved {
                    self.unknown.insert(owner);
                }
                if resolved == Resolution::TailCall || resolved.is_open() {
                    self.set_returns(owner);
                }
            }
            _ => {}
        }
    }

    /// Whether control passes the call at the end of the block now; if not yet, it waits.
    fn passes_call(&mut self, at: BlockRef) -> bool {
        if ends_its_fragment(self.state, at) {
            return false;
        }
        match self.state.block(at).exit {
            Exit::Call(target) => match callee(self.state, target) {
                Callee::Declared => false,
                Callee::Unknown => true,
                Callee::Function(owner) => {
                    if !self.reach.returns[owner as usize] {
                        self.waiting.entry(owner).or_default().push(at);
                        self.waited.push(at);
                    }
                    self.reach.returns[owner as usize]
                }
            },
            Exit::CallImport(import) if self.state.tables.code.import_returns(import) => {
                let ends = ends_by_status(self.state, at);
                self.waited.extend(ends.then_some(at));
                !ends
            }
            Exit::CallImport(_) => false,
            _ => true,
        }
    }

    /// Goes on at `target`, in this function or, by a tail call, in another.
    fn stay_or_leave(&mut self, from: BlockRef, target: Pos) {
        let state = self.state;
        let home = &state.fragments[from.fragment as usize];
        let next = BlockRef {
            block: from.block + 1,
            ..from
        };
        let following = home.blocks.get(next.block as usize);
        if following.is_some_and(|following| following.start == target) {
            return self.arrive_at(next);
        }
        if home.start <= target && target < home.end {
            return self.arrive(target, from.fragment);
        }
        let owner = state.owner_of(from.fragment);
        let Some(other) = state
            .find(target)
            .and_then(|index| u32::try_from(index).ok())
        else {
            let code = state.tables.code;
            return match code.destination(code.address(target)) {
                Destination::Import(import) if !code.import_returns(import) => {}
                _ => self.set_returns(owner),
            };
        };
        if state.owner_of(other) == owner {
            self.arrive(target, other);
        } else if state.owner_of(other) == other && state.fragments[other as usize].start == target
        {
            if self.reach.returns[other as usize] {
                self.set_returns(owner);
            } else {
                self.waiting.entry(other).or_default().push(from);
            }
        } else {
            self.set_returns(owner);
        }
    }

    /// The function returns.
    fn set_returns(&mut self, owner: u32) {
        let declared = self.state.fragments[owner as usize].declared_noreturn;
        if !declared && !std::mem::replace(&mut self.reach.returns[owner as usize], true) {
            self.returned.push(owner);
        }
    }

    /// Whatever waited for the function's return goes on.
    fn resume_waiting(&mut self, owner: u32) {
        for at in self.waiting.remove(&owner).unwrap_or_default() {
            let block = self.state.block(at);
            if block.exit.is_call() {
                self.stay_or_leave(at, block.end);
            } else {
                self.set_returns(self.state.owner_of(at.fragment));
            }
        }
    }

    /// Lets control go on behind calls of functions that never return, though nobody says so, where the
    /// compiler did. What that brings to light comes after all that was known before. How many calls it looked at.
    fn restore_compilers_view(&mut self) -> usize {
        let mut looked_at = 0;
        while !self.waited.is_empty() {
            let mut calls = std::mem::take(&mut self.waited);
            calls.sort_unstable();
            looked_at += calls.len();
            for at in calls {
                if !self.ends_in_undeclared(at) {
                    continue;
                }
                let waits = self.waits_for_jumps(at);
                self.reach.waits |= waits;
                if !waits {
                    self.restore(at);
                }
            }
        }
        looked_at
    }

    /// Whether the block ends in a call of a function that never returns, though nobody says so.
    fn ends_in_undeclared(&self, at: BlockRef) -> bool {
        let Exit::Call(target) = self.state.block(at).exit else {
            return ends_by_status(self.state, at);
        };
        match callee(self.state, target) {
            Callee::Function(owner) => !self.reach.returns[owner as usize],
            Callee::Declared | Callee::Unknown => false,
        }
    }

    /// Whether a jump of the block's function, of which nothing is known yet, may lead behind the call.
    fn waits_for_jumps(&self, at: BlockRef) -> bool {
        let owner = self.state.owner_of(at.fragment);
        !self.state.has_settled && self.unknown.contains(&owner)
    }

    /// Lets control go on behind such a call, if nothing else reaches what is there.
    fn restore(&mut self, at: BlockRef) {
        let (state, end) = (self.state, self.state.block(at).end);
        let home = &state.fragments[at.fragment as usize];
        let Some(next) = state.block_at(end, at.fragment).filter(|_| end < home.end) else {
            return;
        };
        // A trap behind such a call was put there by the compiler, in place of code.
        let bytes = state.tables.code.bytes(end, state.block(next).end);
        if self.reach.reaches(next) || padding::padding_length(bytes) == bytes.len() {
            return;
        }
        self.reach.continued[at.fragment as usize].insert(at.block);
        self.arrive(end, at.fragment);
        self.run();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Binary;
    use crate::analyse::code::Code;
    use crate::analyse::fragment::Tables;
    use crate::analyse::{discover, parts};
    use crate::dwarf::DebugInfo;
    use crate::unwind::Unwind;

    /// Where the code of [`program`] begins.
    const CODE: u64 = 0x40_0000;

    /// A program without tables that is entered at the first byte of `code`.
    fn program(code: &[u8]) -> Vec<u8> {
        let size = (0x78 + code.len() as u64).to_le_bytes();
        let start = CODE - 0x78;
        let header: [&[u8]; 3] = [
            b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\x3e\0\x01\0\0\0",
            &[CODE, 0x40, 0].map(u64::to_le_bytes).concat(),
            b"\0\0\0\0\x40\0\x38\0\x01\0\0\0\0\0\0\0",
        ];
        // A segment that is loaded (PT_LOAD), to be read and executed (PF_R | PF_X).
        let segment: [&[u8]; 4] = [
            b"\x01\0\0\0\x05\0\0\0",
            &[0, start, start].map(u64::to_le_bytes).concat(),
            &[size, size].concat(),
            &0_u64.to_le_bytes(),
        ];
        [&header.concat(), &segment.concat(), code].concat()
    }

    /// So many calls of a function that never returns, each behind the one before, with code between them.
    fn calls_in_a_row(count: usize) -> Vec<u8> {
        // inc %eax; call 1f
        const ONE: usize = 7;
        // inc %eax; ret; 1: jmp 1b
        let behind = [0xff, 0xc0, 0xc3, 0xeb, 0xfe];
        let mut code = Vec::new();
        for left in (0..count).rev() {
            let distance = u32::try_from(left * ONE + 3).expect("a short program");
            code.extend([0xff, 0xc0, 0xe8]);
            code.extend(distance.to_le_bytes());
        }
        code.extend(behind);
        code
    }

    /// A chain of calls behind each of which only the compiler went on: each is looked at once, though only
    /// what was restored before shows the next one.
    #[test]
    fn a_call_that_never_returns_is_looked_at_once() {
        const CALLS: usize = 1000;
        let file = program(&calls_in_a_row(CALLS));
        let binary = Binary::parse(&file).expect("a program");
        let code = Code::new(&binary).expect("a short program");
        let (unwind, debug) = (Unwind::default(), DebugInfo::default());
        let tables = Tables {
            code: &code,
            unwind: &unwind,
            go: &crate::go::Stated::default(),
            debug: &debug,
            has_foreign: false,
            restartable: Vec::new(),
        };
        let mut state = State::new(&tables);
        let starts = state.fragments.iter().map(|fragment| fragment.start);
        let starts = starts.collect();
        discover::explore(&mut state, starts, &());
        parts::group(&mut state);
        let mut search = Search::of_everything(&state);
        search.run();
        assert_eq!(search.restore_compilers_view(), CALLS);
        let blocks = state.fragments[0].blocks.len();
        let blocks = 0..u32::try_from(blocks).expect("few");
        assert_eq!(blocks.len(), CALLS + 1);
        let at = |block| BlockRef { fragment: 0, block };
        assert!(blocks.clone().all(|block| search.reach.reaches(at(block))));
        assert!(search.reach.returns(0) && !search.reach.returns(1));
        let continued = |&block: &u32| search.reach.continues(at(block));
        assert_eq!(blocks.filter(continued).count(), CALLS);
    }
}
