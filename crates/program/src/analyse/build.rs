//! From the finished state to the functions of the model.

use rustc_hash::FxHashSet;

use super::code::{Code, Pos};
use super::explore::{Exit, RawBlock};
use super::fragment::{self, Fragment};
use super::padding;
use super::return_address::{self, Unusual};
use super::returns::call_falls_through;
use super::state::{BlockRef, State};
use crate::{
    Block, Call, Callee, Edge, EdgeKind, Function, IndirectJump, Range, Reason, Resolution, Status,
};

/// The function whose entry is at the start of the fragment `owner`; `None` where a fragment is a
/// part of another function, or has turned out to hold nothing but padding.
///
/// `open` are those that may be entered anywhere ([`super::orphans`]).
pub(crate) fn function(
    state: &State<'_>,
    unusual: &Unusual,
    open: &FxHashSet<u32>,
    owner: u32,
) -> Option<Function> {
    if state.owner_of(owner) != owner || is_only_padding(state, owner) {
        return None;
    }
    let mut builder = Builder::new(state, (unusual, open), owner);
    builder.add_blocks();
    builder.add_ways_out();
    Some(builder.finish())
}

/// A start that only its position suggests (a symbol of size 0 at the end of a section, say).
fn is_only_padding(state: &State<'_>, owner: u32) -> bool {
    let fragment = &state.fragments[owner as usize];
    !fragment.sized && padding::is_padding(state.tables.code.bytes(fragment.start, fragment.end))
}

struct Builder<'s, 'a> {
    state: &'s State<'a>,
    unusual: &'s Unusual,
    open: &'s FxHashSet<u32>,
    code: &'a Code<'a>,
    owner: u32,
    reached: Vec<(BlockRef, RawBlock)>,
    function: Function,
    worst: Option<Reason>,
    measured: bool,
}

impl<'s, 'a> Builder<'s, 'a> {
    fn new(
        state: &'s State<'a>,
        (unusual, open): (&'s Unusual, &'s FxHashSet<u32>),
        owner: u32,
    ) -> Self {
        let code = state.tables.code;
        let home = &state.fragments[owner as usize];
        let function = Function {
            entry: code.address(home.start),
            ranges: state
                .fragments_of(owner)
                .filter_map(|part| range(code, &state.fragments[part as usize]))
                .collect(),
            name: name(state, home),
            status: Status::Exact,
            returns: state.reach.returns(owner),
            returns_again: unusual.keepers.contains(&owner),
            blocks: Vec::new(),
            edges: Vec::new(),
            calls: Vec::new(),
            indirect_jumps: Vec::new(),
            branches: 0,
        };
        Self {
            state,
            unusual,
            open,
            code,
            owner,
            reached: Vec::new(),
            function,
            worst: None,
            measured: false,
        }
    }

    fn blame(&mut self, reason: Reason) {
        let known = self.worst.into_iter().chain([reason]);
        self.worst = known.max_by_key(|reason| (reason.forbids(), *reason));
    }

    fn add_blocks(&mut self) {
        let mut fragments: Vec<u32> = self.state.fragments_of(self.owner).collect();
        fragments.sort_unstable();
        for fragment in fragments {
            for (at, block) in self.state.reached_in(fragment) {
                self.reached.push((at, block));
                self.function.blocks.extend(self.block(block));
            }
        }
    }

    fn block(&self, block: RawBlock) -> Option<Block> {
        let range = Range::sized(
            self.code.address(block.start),
            u64::from(block.end.since(block.start)),
        )?;
        Some(Block {
            range,
            instructions: block.instructions,
            forks_or_ends: block.forks_or_ends,
        })
    }

    fn add_ways_out(&mut self) {
        for from in 0..self.reached.len() {
            let (at, block) = self.reached[from];
            let index = u32::try_from(from).unwrap_or(u32::MAX);
            let falls = call_falls_through(self.state, at);
            let mut ways = Vec::new();
            self.state
                .ways_out(at, |target, kind| ways.push((target, kind)));
            for (target, kind) in ways {
                if kind != EdgeKind::CallFallthrough || falls {
                    self.add_edge(index, block, target, kind);
                }
            }
            self.add_exit(index, at, block, falls);
        }
        self.function.edges.sort_unstable();
        self.function.edges.dedup();
    }

    fn add_edge(&mut self, from: u32, block: RawBlock, target: Pos, kind: EdgeKind) {
        let to = self.code.address(target);
        let kind = match self.own_block(target) {
            Some(true) => kind,
            Some(false) => return self.blame(Reason::OverlappingInstructions),
            None => match self.foreign(target) {
                Some(_) if self.is_gap(block, target) => return self.blame(Reason::RunsOffTheEnd),
                Some(kind) => {
                    // Where that goes is in a register, be it another function or one more part of this one.
                    if self.code.is_indirect_thunk(target) {
                        self.blame(Reason::UnresolvedIndirectJump);
                    }
                    kind
                }
                None => return self.blame(Reason::RunsOffTheEnd),
            },
        };
        self.function.edges.push(Edge { from, to, kind });
    }

    /// Whether a reached block of this function starts at `target`; `None` outside the function.
    fn own_block(&self, target: Pos) -> Option<bool> {
        let fragment = self.state.find(target)?;
        if self.state.owner[fragment] != self.owner {
            return None;
        }
        let found = self
            .reached
            .binary_search_by_key(&target, |(_, block)| block.start)
            .is_ok();
        Some(found)
    }

    /// How a target outside of the function is entered.
    fn foreign(&self, target: Pos) -> Option<EdgeKind> {
        if self.code.is_stub(target) {
            return Some(EdgeKind::TailCall);
        }
        let fragment = self.state.find(target)?;
        let entered = self.state.fragments[fragment].start == target
            && self.state.owner[fragment] as usize == fragment;
        Some(if entered {
            EdgeKind::TailCall
        } else {
            EdgeKind::JumpInto
        })
    }

    /// Whether control would run into another function over the end of this one's stated bytes,
    /// which no compiler makes it do.
    fn is_gap(&self, block: RawBlock, target: Pos) -> bool {
        let running = block.end == target && !matches!(block.exit, Exit::Jump(_) | Exit::Branch(_));
        running && self.code.is_stub(target)
    }

    fn add_exit(&mut self, index: u32, at: BlockRef, block: RawBlock, falls: bool) {
        match block.exit {
            Exit::Branch(_) => self.function.branches += 1,
            Exit::BranchOutside => {
                self.function.branches += 1;
                self.blame(Reason::JumpOutsideText);
            }
            Exit::JumpOutside => self.blame(Reason::JumpOutsideText),
            Exit::Broken => {
                let fault = self.state.fragments[at.fragment as usize].fault;
                self.blame(fault.unwrap_or(Reason::InvalidInstruction));
            }
            Exit::JumpIndirect => self.add_indirect(index, block, None),
            Exit::JumpImport(import) => self.add_indirect(index, block, Some(import)),
            Exit::JumpResolved => self.add_indirect(index, block, None),
            Exit::Call(_) | Exit::CallImport(_) | Exit::CallIndirect => {
                self.add_call(index, block, falls)
            }
            Exit::Fallthrough | Exit::Jump(_) | Exit::Return | Exit::Stop => {}
        }
    }

    fn add_call(&mut self, index: u32, block: RawBlock, returns: bool) {
        let debug = self.state.tables.debug;
        let (callee, void) = match block.exit {
            Exit::Call(target) => {
                let fragment = self
                    .state
                    .find(target)
                    .map(|fragment| &self.state.fragments[fragment]);
                let void = fragment.is_some_and(|fragment| {
                    fragment.start == target && fragment::returns_void(debug, fragment)
                });
                (Callee::Function(self.code.address(target)), void)
            }
            Exit::CallImport(import) => {
                let name = self
                    .code
                    .binary
                    .imports()
                    .get(import as usize)
                    .map(|import| import.name);
                (
                    Callee::Import(import),
                    name.is_some_and(|name| fragment::import_returns_void(debug, name)),
                )
            }
            _ => (Callee::Indirect, false),
        };
        if let Exit::Call(target) = block.exit
            && (self.state.calls_itself_inside(block, target) || self.is_stray(target))
        {
            self.blame(Reason::UnusualControlTransfer);
        }
        let address = self.code.last_instruction(block.start, block.end);
        self.function.calls.push(Call {
            block: index,
            address,
            callee,
            returns,
            void,
        });
    }

    /// Whether a call of `target` does not come back behind itself.
    fn is_stray(&self, target: Pos) -> bool {
        let callee = self.state.find(target);
        callee.is_some_and(|callee| self.unusual.strays.contains(&self.state.owner[callee]))
    }

    fn add_indirect(&mut self, index: u32, block: RawBlock, import: Option<u32>) {
        let resolution = if block.exit == Exit::JumpIndirect {
            self.state
                .jumps
                .get(&block.end)
                .map_or(Resolution::Unresolved, |jump| jump.resolution)
        } else {
            Resolution::TailCall
        };
        match resolution {
            Resolution::Unresolved => self.blame(Reason::UnresolvedIndirectJump),
            Resolution::GuardedTable => {}
            // What such a jump reaches is known by excluding all else, so all else must be known.
            Resolution::MeasuredTable | Resolution::Labels => self.measured = true,
            Resolution::TailCall => self.measured |= block.exit == Exit::JumpIndirect,
        }
        let address = self.code.last_instruction(block.start, block.end);
        if self.code.reads_words_of_code(block.start, block.end) {
            self.blame(Reason::Template);
        }
        self.function.indirect_jumps.push(IndirectJump {
            block: index,
            address,
            resolution,
            import,
        });
    }

    fn finish(mut self) -> Function {
        let home = &self.state.fragments[self.owner as usize];
        if self.unusual.strays.contains(&self.owner)
            || return_address::splits_stack(self.code, home)
        {
            self.blame(Reason::UnusualControlTransfer);
        }
        if self.holds_open_label() {
            self.blame(Reason::HeldLabel);
        }
        if self.open.contains(&self.owner) {
            self.blame(Reason::OrphanedPart);
        }
        if (self.measured || self.holds_labels()) && !self.accounts_for_all_bytes() {
            self.blame(Reason::UnreachedBytes);
        }
        for part in self.state.fragments_of(self.owner) {
            let fragment = &self.state.fragments[part as usize];
            // Below such a pointer there is no room for anybody.
            if fragment.stack_leads_aside {
                self.blame(Reason::UnusualControlTransfer);
            }
            if fragment.has_broken_exceptions {
                self.blame(Reason::BrokenExceptionTable);
            }
            if fragment
                .jumped_into
                .iter()
                .any(|&inside| self.own_block(inside) == Some(false))
            {
                self.blame(Reason::EnteredInsideInstruction);
            }
        }
        let has_entry = self
            .function
            .blocks
            .iter()
            .any(|block| block.range.start() == self.function.entry);
        self.function.status = match self.worst {
            _ if self.is_restartable() => Status::Opaque(Reason::Restartable),
            _ if !self.is_proven() => Status::Opaque(Reason::MaybeData),
            _ if self.is_foreign() => Status::Opaque(Reason::Foreign),
            _ if !has_entry => Status::Opaque(self.worst.unwrap_or(Reason::NoBytes)),
            Some(reason @ (Reason::UnusualControlTransfer | Reason::Template)) => {
                Status::Opaque(reason)
            }
            Some(reason) => Status::Partial(reason),
            None => Status::Exact,
        };
        self.function
    }

    /// Whether it is known to be code.
    fn is_proven(&self) -> bool {
        let home = &self.state.fragments[self.owner as usize];
        home.evidence.is_proven()
    }

    /// Whether a sequence that the kernel may have begin anew is in it, or the handler of one.
    fn is_restartable(&self) -> bool {
        let ranges = &self.state.tables.restartable;
        let has_one = |part: u32| {
            let fragment = &self.state.fragments[part as usize];
            let first = ranges.partition_point(|range| range.1 <= fragment.start);
            ranges
                .get(first)
                .is_some_and(|range| range.0 < fragment.end)
        };
        self.state.fragments_of(self.owner).any(has_one)
    }

    /// Whether it has no unwind entry, where foreign code has none.
    fn is_foreign(&self) -> bool {
        let unwound = |part: u32| {
            let (first, end) = self.state.fragments[part as usize].unwind;
            first < end
        };
        self.state.tables.has_foreign && !self.state.fragments_of(self.owner).any(unwound)
    }

    /// Whether an instruction of the function holds an address inside it.
    fn holds_labels(&self) -> bool {
        self.state.fragments_of(self.owner).any(|part| {
            let taken = &self.state.fragments[part as usize].taken;
            taken.iter().any(|&label| {
                self.own_block(label).is_some() && self.code.address(label) != self.function.entry
            })
        })
    }

    /// Whether an instruction holds an address inside of the function, and no known jump leads there: one of somebody else's may (out of
    /// a nested function, for instance). Behind what is reached there may be data, unless a table says that it is the function's.
    fn holds_open_label(&self) -> bool {
        let fragments = self.state.fragments_of(self.owner);
        let labels = fragments.flat_map(|part| {
            let fragment = &self.state.fragments[part as usize];
            let is_reached = |label: &&Pos| self.own_block(**label) == Some(true);
            let of_others = fragment.held.iter();
            let of_others = of_others.filter(move |label| fragment.sized || is_reached(label));
            fragment.taken.iter().filter(is_reached).chain(of_others)
        });
        let is_open = |label: &&Pos| {
            let is_entry = self.code.address(**label) == self.function.entry;
            !is_entry && !self.code.holds_itself(**label)
        };
        // Most functions hold none.
        let mut open = labels.filter(is_open).peekable();
        open.peek().is_some() && {
            let ends = self.reached.iter().map(|(_, block)| block.end);
            let jumps = ends.filter_map(|end| self.state.jumps.get(&end));
            let known: FxHashSet<Pos> = jumps.flat_map(|jump| &jump.targets).copied().collect();
            open.any(|label| !known.contains(label))
        }
    }

    /// Whether all bytes of the function are reached, entries of its tables, or padding.
    fn accounts_for_all_bytes(&self) -> bool {
        let known = self.accounted();
        self.state.fragments_of(self.owner).all(|part| {
            let fragment = &self.state.fragments[part as usize];
            let inside = known
                .iter()
                .filter(|range| range.0 >= fragment.start && range.0 < fragment.end);
            let mut at = fragment.start;
            for &(start, end) in inside.chain(&[(fragment.end, fragment.end)]) {
                if start > at && !padding::is_padding(self.code.bytes(at, start)) {
                    return false;
                }
                at = at.max(end);
            }
            true
        })
    }

    /// The bytes of the function that are known to be something, by position.
    fn accounted(&self) -> Vec<(Pos, Pos)> {
        let mut known = Vec::new();
        for &(at, block) in &self.reached {
            known.push((block.start, block.end));
            let tables = self
                .state
                .jumps
                .get(&block.end)
                .into_iter()
                .flat_map(|jump| &jump.tables);
            known.extend(tables.filter_map(|table| {
                self.code
                    .pos(table.0)
                    .zip(self.code.pos(table.1.wrapping_add(3)))
            }));
            if block.exit.is_call() && !call_falls_through(self.state, at) {
                // Behind a call that it knows not to return, rustc puts a jump to a shared trap.
                let dead = padding::jump_length(self.code.bytes(block.end, block.end.plus(5)));
                known.push((block.end, block.end.plus(dead)));
            }
        }
        known.sort_unstable();
        known
    }
}

/// The bytes of a fragment: as stated, or as far as its blocks go.
fn range(code: &Code<'_>, fragment: &Fragment) -> Option<Range> {
    let end = if fragment.sized {
        fragment.end
    } else {
        fragment
            .blocks
            .iter()
            .map(|block| block.end)
            .max()
            .unwrap_or(fragment.start)
    };
    Range::sized(
        code.address(fragment.start),
        u64::from(end.since(fragment.start)),
    )
}

/// Of several symbols of one function, that by which the source calls it.
fn name(state: &State<'_>, home: &Fragment) -> Option<String> {
    let tables = state.tables;
    let all = tables.code.binary.symbols();
    let symbol = home.symbol.and_then(|index| all.get(index as usize));
    let debug = home
        .debug
        .and_then(|index| tables.debug.functions.get(index as usize))
        .and_then(|function| function.name.as_deref());
    let called = symbol.and_then(|symbol| {
        let here = all.partition_point(|it| it.address < symbol.address);
        let here = all[here..].iter();
        let here = here.take_while(|it| it.address == symbol.address);
        here.map(|it| it.name).find(|name| Some(*name) == debug)
    });
    called
        .or(symbol.map(|symbol| symbol.name))
        .or(debug)
        .map(str::to_owned)
        .or_else(|| {
            tables
                .go
                .name(tables.code.address(home.start))
                .map(str::to_owned)
        })
}
