//! Packing: from functions to the bytes of a model.
//!
//! One pass over the functions, each freed when it is packed, into one column a section; then the
//! columns are put behind each other, each freed when it is copied. At most the model and its
//! largest column are in memory at once, about 150 MB for three million blocks. Time: linear, but
//! for finding edges' targets (logarithmic in the blocks of the function) and for bringing blocks
//! in the order of addresses (linear where functions have no parts elsewhere).

use zerocopy::IntoBytes as _;
use zerocopy::little_endian::{U32, U64};

use super::format::{LONGEST_BUILD_ID, Layout, Section, Writer};
use super::records::*;
use super::strings::StringsBuilder;
use super::summary::Summary;
use crate::dwarf::{Lines, Position};
use crate::{
    Address, Block, Call, Callee, Edge, Facts, Function, IndirectJump, Status, patchability,
};

/// Packs `functions` and `facts` into the bytes of a model.
pub(super) fn pack(mut functions: Vec<Function>, mut facts: Facts) -> (Vec<u8>, Layout, Summary) {
    if facts
        .build_id
        .as_ref()
        .is_some_and(|id| id.len() > LONGEST_BUILD_ID)
    {
        facts.build_id = None;
        facts.warnings.push(format!(
            "the build id is longer than {LONGEST_BUILD_ID} bytes: left out"
        ));
    }
    functions.sort_by_key(|function| function.entry);
    let mut columns = Columns::sized_for(&functions, Summary::of_facts(&facts));
    for function in functions {
        columns.push(function);
    }
    columns.finish(facts)
}

/// The sections being filled.
struct Columns {
    summary: Summary,
    functions: Vec<FunctionRecord>,
    names: StringsBuilder,
    ranges: Vec<RangeRecord>,
    blocks: Vec<BlockRecord>,
    edges: Vec<EdgeRecord>,
    exits: Vec<U64>,
    calls: Vec<CallRecord>,
    jumps: Vec<IndirectJumpRecord>,
}

/// A position in a column as the file keeps it. The model has room for four billion of each.
fn number(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(u32::MAX)
}

impl Columns {
    /// Empty columns with room for just these functions.
    fn sized_for(functions: &[Function], summary: Summary) -> Self {
        let room = |count: fn(&Function) -> usize| functions.iter().map(count).sum::<usize>();
        Self {
            summary,
            functions: Vec::with_capacity(functions.len()),
            names: StringsBuilder::default(),
            ranges: Vec::with_capacity(room(|f| f.ranges.len())),
            blocks: Vec::with_capacity(room(|f| f.blocks.len())),
            edges: Vec::with_capacity(room(|f| f.edges.len())),
            exits: Vec::new(),
            calls: Vec::with_capacity(room(|f| f.calls.len())),
            jumps: Vec::with_capacity(room(|f| f.indirect_jumps.len())),
        }
    }

    fn push(&mut self, function: Function) {
        self.summary.count(&function);
        self.push_record(&function);
        let first_block = number(self.blocks.len());
        self.push_graph(&function, first_block);
        self.calls.extend(
            function
                .calls
                .iter()
                .map(|call| call_record(call, &function.blocks, first_block)),
        );
        self.jumps.extend(
            function
                .indirect_jumps
                .iter()
                .map(|jump| jump_record(jump, &function.blocks, first_block)),
        );
    }

    fn push_record(&mut self, function: &Function) {
        let (status, reason) = match function.status {
            Status::Exact => (0, 0),
            Status::Partial(reason) => (1, reason as u8),
            Status::Opaque(reason) => (2, reason as u8),
        };
        let named = if function.name.is_some() { NAMED } else { 0 };
        let returns = if function.returns { RETURNS } else { 0 };
        let again = if function.returns_again {
            RETURNS_AGAIN
        } else {
            0
        };
        let id = number(self.functions.len());
        self.functions.push(FunctionRecord {
            entry: function.entry.0.into(),
            size: function
                .ranges
                .iter()
                .map(|range| range.size())
                .sum::<u64>()
                .into(),
            first_range: number(self.ranges.len()).into(),
            first_block: number(self.blocks.len()).into(),
            first_call: number(self.calls.len()).into(),
            first_jump: number(self.jumps.len()).into(),
            branches: function.branches.into(),
            status,
            reason,
            flags: named | returns | again,
        });
        self.names
            .push(function.name.as_deref().unwrap_or_default());
        self.ranges
            .extend(function.ranges.iter().map(|range| RangeRecord {
                start: range.start().0.into(),
                size: range.size().into(),
                function: id.into(),
            }));
    }

    /// The blocks of `function`, each with where its edges start, and the edges.
    fn push_graph(&mut self, function: &Function, first_block: u32) {
        let mut edges = function.edges.iter().peekable();
        for (index, block) in (0..).zip(&function.blocks) {
            self.blocks.push(BlockRecord {
                address: block.range.start().0.into(),
                size: u32::try_from(block.range.size()).unwrap_or(u32::MAX).into(),
                instructions: block.instructions.into(),
                first_edge: number(self.edges.len()).into(),
                first_and_last: match block.forks_or_ends {
                    true => FORKS_OR_ENDS,
                    false => 0,
                },
            });
            while let Some(edge) = edges.next_if(|edge| edge.from <= index) {
                let record = self.edge_record(edge, &function.blocks, first_block);
                self.edges.push(record);
            }
        }
        debug_assert!(
            edges.next().is_none(),
            "edges are sorted by the block they leave"
        );
    }

    fn edge_record(&mut self, edge: &Edge, blocks: &[Block], first_block: u32) -> EdgeRecord {
        let target = if edge.kind.is_intraprocedural() {
            block_starting_at(edge, blocks)
        } else {
            None
        };
        if let Some(block) = target {
            return EdgeRecord {
                target: (first_block + block).into(),
                kind: edge.kind as u8,
            };
        }
        self.exits.push(edge.to.0.into());
        EdgeRecord {
            target: number(self.exits.len() - 1).into(),
            kind: edge.kind as u8 | EXIT,
        }
    }

    /// Puts everything behind each other.
    fn finish(mut self, facts: Facts) -> (Vec<u8>, Layout, Summary) {
        let order = by_address(&self.blocks);
        set_first_instructions(&mut self.blocks, &order, &facts.first_instructions);
        self.count_patchability();
        let lines = line_records(&facts.lines, &order);
        let spans = spans(&self.blocks, &order);
        drop(order);
        let mut writer = Writer::new(self.content_bytes(&lines), &facts);
        writer.section(Section::Summary, &self.summary.to_section());
        writer.section(Section::Warnings, &strings(&facts.warnings));
        writer.section(Section::Imports, &strings(&facts.imports));
        writer.section(Section::Files, &strings(&facts.lines.files));
        writer.section(
            Section::RangeOrder,
            ranges_by_address(&self.ranges).as_bytes(),
        );
        writer.section(Section::Spans, spans.as_bytes());
        let mut column = |section, bytes: &[u8]| writer.section(section, bytes);
        give(self.blocks, |records| {
            column(Section::Blocks, records.as_bytes())
        });
        give(self.edges, |records| {
            column(Section::Edges, records.as_bytes())
        });
        give(lines, |records| column(Section::Lines, records.as_bytes()));
        give(self.calls, |records| {
            column(Section::Calls, records.as_bytes())
        });
        give(self.names.finish(), |bytes| column(Section::Names, bytes));
        give(self.functions, |records| {
            column(Section::Functions, records.as_bytes())
        });
        give(self.ranges, |records| {
            column(Section::Ranges, records.as_bytes())
        });
        give(self.exits, |addresses| {
            column(Section::Exits, addresses.as_bytes())
        });
        give(self.jumps, |records| {
            column(Section::IndirectJumps, records.as_bytes())
        });
        let (bytes, layout) = writer.finish();
        (bytes, layout, self.summary)
    }

    /// About how many bytes the sections have in all.
    fn content_bytes(&self, lines: &[LineRecord]) -> usize {
        size_of_val(&*self.functions)
            + size_of_val(&*self.ranges) * 2
            + size_of_val(&*self.blocks)
            + size_of_val(&*self.edges)
            + size_of_val(&*self.exits)
            + size_of_val(&*self.calls)
            + size_of_val(&*self.jumps)
            + size_of_val(lines)
            + self.names.bytes()
            + 65_536
    }

    fn count_patchability(&mut self) {
        for (index, function) in self.functions.iter().enumerate() {
            let end = self
                .functions
                .get(index + 1)
                .map_or(self.blocks.len(), |next| next.first_block.get() as usize);
            let status = function.status();
            for block in &self.blocks[function.first_block.get() as usize..end] {
                let start = Address(block.address.get());
                let what = patchability(status, start, block.size.get(), block.first_instruction());
                self.summary.count_patchability(what);
            }
        }
    }
}

/// Lets `take` have `column`, which is freed afterwards.
fn give<T>(column: Vec<T>, take: impl FnOnce(&[T])) {
    take(&column);
}

fn strings(list: &[String]) -> Vec<u8> {
    list.iter().collect::<StringsBuilder>().finish()
}

/// The number, within its function, of the block that `edge` leads to. It is often the next one.
fn block_starting_at(edge: &Edge, blocks: &[Block]) -> Option<u32> {
    let next = edge.from as usize + 1;
    let found = match blocks.get(next) {
        Some(block) if block.range.start() == edge.to => next,
        _ => blocks
            .binary_search_by_key(&edge.to, |block| block.range.start())
            .ok()?,
    };
    u32::try_from(found).ok()
}

/// How far `address` is behind the start of the block with number `block` of a function.
fn offset_in(blocks: &[Block], block: u32, address: Address) -> u32 {
    let start = blocks.get(block as usize).map(|block| block.range.start());
    let offset = start.and_then(|start| address.offset_from(start));
    offset
        .and_then(|offset| u32::try_from(offset).ok())
        .unwrap_or(0)
}

fn call_record(call: &Call, blocks: &[Block], first_block: u32) -> CallRecord {
    let (kind, callee) = match call.callee {
        Callee::Function(entry) => (CALLS_FUNCTION, entry.0),
        Callee::Import(import) => (CALLS_IMPORT, import.into()),
        Callee::Indirect => (CALLS_INDIRECT, 0),
    };
    let returns = if call.returns { RETURNS } else { 0 };
    let void = if call.void { VOID } else { 0 };
    CallRecord {
        block: first_block.saturating_add(call.block).into(),
        offset: offset_in(blocks, call.block, call.address).into(),
        callee: callee.into(),
        kind,
        flags: returns | void,
    }
}

fn jump_record(jump: &IndirectJump, blocks: &[Block], first_block: u32) -> IndirectJumpRecord {
    IndirectJumpRecord {
        block: first_block.saturating_add(jump.block).into(),
        offset: offset_in(blocks, jump.block, jump.address).into(),
        import: jump.import.unwrap_or(NONE).into(),
        resolution: jump.resolution as u8,
    }
}

/// The numbers of all blocks in the order of their addresses.
fn by_address(blocks: &[BlockRecord]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..number(blocks.len())).collect();
    order.sort_by_key(|block| blocks[*block as usize].address.get());
    order
}

/// The numbers of all ranges in the order of their starts.
fn ranges_by_address(ranges: &[RangeRecord]) -> Vec<U32> {
    let mut order: Vec<U32> = (0..number(ranges.len())).map(U32::new).collect();
    order.sort_by_key(|range| ranges[range.get() as usize].start.get());
    order
}

fn set_first_instructions(blocks: &mut [BlockRecord], order: &[u32], sizes: &[u8]) {
    for (block, size) in order.iter().zip(sizes) {
        blocks[*block as usize].first_and_last |= *size;
    }
}

/// Maximal runs of blocks whose numbers and addresses ascend together.
fn spans(blocks: &[BlockRecord], order: &[u32]) -> Vec<SpanRecord> {
    let runs = order.chunk_by(|before, after| before + 1 == *after);
    let span = |run: &[u32]| SpanRecord {
        start: blocks[run[0] as usize].address,
        first_block: run[0].into(),
        blocks: number(run.len()).into(),
    };
    runs.map(span).collect()
}

/// Source positions in the order of the blocks' numbers; nothing where nothing is known.
fn line_records(lines: &Lines, order: &[u32]) -> Vec<LineRecord> {
    if lines.at.iter().all(Option::is_none) {
        return Vec::new();
    }
    let unknown = LineRecord {
        file: NONE.into(),
        line: 0.into(),
    };
    let mut records = vec![unknown; order.len()];
    for (block, position) in order.iter().zip(&lines.at) {
        if let Some(Position { file, line }) = *position {
            records[*block as usize] = LineRecord {
                file: file.into(),
                line: line.into(),
            };
        }
    }
    records
}
