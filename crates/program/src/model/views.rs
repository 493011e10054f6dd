//! Functions, blocks and edges of a model, read where they lie.

use std::ops;

use super::graphs::Graphs;
use super::predecessors::Predecessors;
use super::records::*;
use super::sites::{CallView, IndirectJumpView};
use super::{BlockId, CallId, EdgeId, FunctionId};
use crate::names::demangle;
use crate::{Address, Block, Edge, EdgeKind, Function, Patchability, Range, Status, patchability};

/// A function of a model.
#[derive(Clone, Copy, Debug)]
pub struct FunctionView<'g> {
    pub(super) graphs: &'g Graphs<'g>,
    pub(super) id: FunctionId,
}

/// The items of `list` from `start` up to `end`, or none where the file says nonsense.
pub(super) fn part<T>(list: &[T], start: usize, end: usize) -> &[T] {
    list.get(start..end).unwrap_or_default()
}

/// `size` bytes from `start`, as many of them as there are addresses.
fn range(start: u64, size: u64) -> Range {
    Range::new(Address(start), Address(start.saturating_add(size))).unwrap_or_default()
}

impl<'g> FunctionView<'g> {
    fn record(&self) -> &'g FunctionRecord {
        &self.graphs.functions[self.id.index()]
    }

    /// From where to where its list goes in a section of `length` records.
    fn list(&self, first: fn(&FunctionRecord) -> u32, length: usize) -> ops::Range<usize> {
        let next = self.graphs.functions.get(self.id.index() + 1);
        first(self.record()) as usize..next.map_or(length, |next| first(next) as usize).min(length)
    }

    /// Its number.
    #[must_use]
    pub fn id(&self) -> FunctionId {
        self.id
    }

    /// Where it is entered.
    #[must_use]
    pub fn entry(&self) -> Address {
        Address(self.record().entry.get())
    }

    /// Bytes of all its ranges.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.record().size.get()
    }

    /// Its name as symbols or debug information state it.
    #[must_use]
    pub fn name(&self) -> Option<&'g str> {
        let named = self.record().flags & NAMED != 0;
        if named {
            self.graphs.names.get(self.id.index())
        } else {
            None
        }
    }

    /// Its name made readable, where it is mangled. Computed at each call.
    #[must_use]
    pub fn demangled(&self) -> Option<String> {
        demangle(self.name()?)
    }

    /// What to call it before people: its readable name, its name, or `sub_` and its entry.
    #[must_use]
    pub fn title(&self) -> String {
        let name = self.name().filter(|name| !name.is_empty());
        let readable = name.map(|name| demangle(name).unwrap_or_else(|| name.to_owned()));
        readable.unwrap_or_else(|| format!("sub_{:x}", self.entry()))
    }

    /// How much is known of it.
    #[must_use]
    pub fn status(&self) -> Status {
        self.record().status()
    }

    /// Whether control can come back from it.
    #[must_use]
    pub fn returns(&self) -> bool {
        self.record().flags & RETURNS != 0
    }

    /// Whether control may come back from it more than once, since it keeps where it returns to, and the stack pointer there, as
    /// `setjmp` does.
    #[must_use]
    pub fn returns_again(&self) -> bool {
        self.record().flags & RETURNS_AGAIN != 0
    }

    /// How many of its blocks end in a conditional branch.
    #[must_use]
    pub fn branches(&self) -> u32 {
        self.record().branches.get()
    }

    /// Its bytes: the part with the entry first, then the others by address.
    pub fn ranges(&self) -> impl ExactSizeIterator<Item = Range> + use<'g> {
        let list = self.list(|record| record.first_range.get(), self.graphs.ranges.len());
        part(self.graphs.ranges, list.start, list.end)
            .iter()
            .map(|record| range(record.start.get(), record.size.get()))
    }

    /// The numbers of its blocks.
    pub(super) fn block_numbers(&self) -> ops::Range<usize> {
        let list = self.list(|record| record.first_block.get(), self.graphs.blocks.len());
        list.start.min(list.end)..list.end
    }

    /// How many blocks it has.
    #[must_use]
    pub fn block_count(&self) -> usize {
        self.block_numbers().len()
    }

    /// Its blocks, by address.
    pub fn blocks(
        &self,
    ) -> impl ExactSizeIterator<Item = BlockView<'g>> + DoubleEndedIterator + use<'g> {
        let graphs = self.graphs;
        self.block_numbers().map(move |id| BlockView {
            graphs,
            id: BlockId(id as u32),
        })
    }

    /// The block of this function with this number.
    #[must_use]
    pub fn block(&self, id: BlockId) -> Option<BlockView<'g>> {
        self.block_numbers()
            .contains(&id.index())
            .then_some(BlockView {
                graphs: self.graphs,
                id,
            })
    }

    /// Position of a block among those of this function.
    #[must_use]
    pub fn position_of(&self, id: BlockId) -> Option<usize> {
        let numbers = self.block_numbers();
        numbers
            .contains(&id.index())
            .then(|| id.index() - numbers.start)
    }

    /// The block in which it is entered, if its blocks are known.
    #[must_use]
    pub fn entry_block(&self) -> Option<BlockView<'g>> {
        let numbers = self.block_numbers();
        let blocks = part(self.graphs.blocks, numbers.start, numbers.end);
        let found = blocks
            .binary_search_by_key(&self.entry().0, |block| block.address.get())
            .ok()?;
        self.blocks().nth(found)
    }

    /// Its edges, by the block they leave.
    pub fn edges(&self) -> impl Iterator<Item = EdgeView> + use<'g> {
        self.blocks().flat_map(|block| block.successors())
    }

    /// Its calls, by address.
    pub fn calls(&self) -> impl ExactSizeIterator<Item = CallView<'g>> + use<'g> {
        let graphs = self.graphs;
        let list = self.list(|record| record.first_call.get(), graphs.calls.len());
        (list.start.min(list.end)..list.end).map(move |id| CallView {
            graphs,
            id: CallId(id as u32),
        })
    }

    /// Its jumps through a register or memory, by address.
    pub fn indirect_jumps(&self) -> impl ExactSizeIterator<Item = IndirectJumpView<'g>> + use<'g> {
        let graphs = self.graphs;
        let list = self.list(|record| record.first_jump.get(), graphs.jumps.len());
        part(graphs.jumps, list.start, list.end)
            .iter()
            .map(move |record| IndirectJumpView {
                graphs,
                record: *record,
            })
    }

    /// For each of its blocks, the edges that enter it. Linear in its edges.
    #[must_use]
    pub fn predecessors(&self) -> Predecessors {
        Predecessors::of(self)
    }

    /// The function as the analysis gave it.
    #[must_use]
    pub fn to_function(&self) -> Function {
        let first = self.block_numbers().start as u32;
        Function {
            entry: self.entry(),
            ranges: self.ranges().collect(),
            name: self.name().map(str::to_owned),
            status: self.status(),
            returns: self.returns(),
            returns_again: self.returns_again(),
            blocks: self
                .blocks()
                .map(|b| Block {
                    range: b.range(),
                    instructions: b.instructions(),
                    forks_or_ends: b.forks_or_ends(),
                })
                .collect(),
            edges: self
                .edges()
                .map(|e| Edge {
                    from: e.from.0 - first,
                    to: e.address,
                    kind: e.kind,
                })
                .collect(),
            calls: self.calls().map(|call| call.to_call(first)).collect(),
            indirect_jumps: self
                .indirect_jumps()
                .map(|jump| jump.to_jump(first))
                .collect(),
            branches: self.branches(),
        }
    }
}

/// A source position of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourcePosition<'m> {
    /// The file, as debug information states it.
    pub file: &'m str,
    /// Line, counted from 1.
    pub line: u32,
}

/// A block of a model.
#[derive(Clone, Copy, Debug)]
pub struct BlockView<'g> {
    pub(super) graphs: &'g Graphs<'g>,
    pub(super) id: BlockId,
}

impl<'g> BlockView<'g> {
    fn record(&self) -> &'g BlockRecord {
        &self.graphs.blocks[self.id.index()]
    }

    /// Its number.
    #[must_use]
    pub fn id(&self) -> BlockId {
        self.id
    }

    /// Where it starts.
    #[must_use]
    pub fn address(&self) -> Address {
        Address(self.record().address.get())
    }

    /// Its bytes.
    #[must_use]
    pub fn range(&self) -> Range {
        range(self.record().address.get(), self.size().into())
    }

    /// How many bytes it has.
    #[must_use]
    pub fn size(&self) -> u32 {
        self.record().size.get()
    }

    /// How many instructions it has.
    #[must_use]
    pub fn instructions(&self) -> u32 {
        self.record().instructions.get()
    }

    /// How many bytes its first instruction has, where that is known.
    #[must_use]
    pub fn first_instruction(&self) -> Option<u8> {
        Some(self.record().first_instruction()).filter(|size| *size > 0)
    }

    /// Whether it ends in a system call that may come back in two processes, or never.
    #[must_use]
    pub fn forks_or_ends(&self) -> bool {
        self.record().forks_or_ends()
    }

    /// The function it belongs to. Logarithmic.
    #[must_use]
    pub fn function(&self) -> Option<FunctionView<'g>> {
        let behind = self
            .graphs
            .functions
            .partition_point(|record| record.first_block.get() <= self.id.0);
        let id = FunctionId(u32::try_from(behind.checked_sub(1)?).ok()?);
        Some(FunctionView {
            graphs: self.graphs,
            id,
        })
    }

    /// The edges that leave it.
    pub fn successors(&self) -> impl ExactSizeIterator<Item = EdgeView> + use<'g> {
        let Self { graphs, id: from } = *self;
        let start = self.record().first_edge.get() as usize;
        let next = graphs.blocks.get(from.index() + 1);
        let end = next.map_or(graphs.edges.len(), |next| next.first_edge.get() as usize);
        part(graphs.edges, start, end)
            .iter()
            .enumerate()
            .map(move |(index, record)| {
                EdgeView::read(graphs, EdgeId((start + index) as u32), from, record)
            })
    }

    /// Its place in the source.
    #[must_use]
    pub fn source(&self) -> Option<SourcePosition<'g>> {
        let record = self.graphs.lines.get(self.id.index())?;
        let file = self.graphs.files.get(record.file.get() as usize)?;
        Some(SourcePosition {
            file,
            line: record.line.get(),
        })
    }

    /// What probe it can carry, in a function of which `status` is known.
    #[must_use]
    pub fn patchability(&self, status: Status) -> Patchability {
        patchability(
            status,
            self.address(),
            self.size(),
            self.record().first_instruction(),
        )
    }
}

/// Where an edge leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// To a block of the same function.
    Block(BlockId),
    /// Out of the function.
    Outside,
}

/// An edge of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EdgeView {
    /// Its number.
    pub id: EdgeId,
    /// The block it leaves.
    pub from: BlockId,
    /// Where it leads.
    pub target: Target,
    /// The address of where it leads.
    pub address: Address,
    /// Why control may pass along it.
    pub kind: EdgeKind,
}

impl EdgeView {
    /// What tells it from the others that leave its block: where it leads, and in the highest bit whether that is because a branch was
    /// not taken. Both ways of a branch may lead to one block.
    #[must_use]
    pub fn key(&self) -> u64 {
        let is_behind = u64::from(self.kind == EdgeKind::NotTaken);
        self.address.0 | is_behind << 63
    }

    /// Where an edge with this key leads.
    #[must_use]
    pub fn address_of(key: u64) -> Address {
        Address(key & !(1 << 63))
    }

    fn read(graphs: &Graphs<'_>, id: EdgeId, from: BlockId, record: &EdgeRecord) -> Self {
        let number = record.target.get();
        let kind = EdgeKind::from_code(record.kind & !EXIT).unwrap_or(EdgeKind::JumpInto);
        let block = if record.kind & EXIT == 0 {
            graphs.blocks.get(number as usize)
        } else {
            None
        };
        let exit = || {
            graphs
                .exits
                .get(number as usize)
                .map_or(0, |address| address.get())
        };
        let address = Address(block.map_or_else(exit, |block| block.address.get()));
        let target = block.map_or(Target::Outside, |_| Target::Block(BlockId(number)));
        Self {
            id,
            from,
            target,
            address,
            kind,
        }
    }

    /// The block of the same function it leads to.
    #[must_use]
    pub fn block(&self) -> Option<BlockId> {
        match self.target {
            Target::Block(id) => Some(id),
            Target::Outside => None,
        }
    }
}
