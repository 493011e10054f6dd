//! All functions of a program with their graphs, and how to find one.

use std::collections::HashSet;

use rayon::prelude::*;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, KnownLayout};

use super::format::{Layout, ModelError, Section};
use super::records::*;
use super::strings::Strings;
use super::views::{BlockView, FunctionView};
use super::{BlockId, FunctionId};
use crate::names::{demangle, is_called};
use crate::{Address, EdgeKind};

/// The functions of a model, checked. Copying it is cheap; views borrow it.
#[derive(Clone, Copy, Debug)]
pub struct Graphs<'m> {
    pub(super) functions: &'m [FunctionRecord],
    pub(super) names: Strings<'m>,
    pub(super) ranges: &'m [RangeRecord],
    range_order: &'m [U32],
    spans: &'m [SpanRecord],
    pub(super) blocks: &'m [BlockRecord],
    pub(super) edges: &'m [EdgeRecord],
    pub(super) exits: &'m [U64],
    pub(super) calls: &'m [CallRecord],
    pub(super) jumps: &'m [IndirectJumpRecord],
    pub(super) files: Strings<'m>,
    pub(super) lines: &'m [LineRecord],
    pub(super) imports: Strings<'m>,
}

/// What a name stands for.
#[derive(Clone, Debug)]
pub struct Named<'g> {
    /// The functions that are meant, by address.
    pub functions: Vec<FunctionView<'g>>,
    /// Whether the name was only a part of theirs.
    pub by_part: bool,
}

impl<'m> Graphs<'m> {
    /// Lays slices over the sections.
    pub(super) fn read(layout: &Layout, bytes: &'m [u8]) -> Result<Self, ModelError> {
        let strings = |section| Strings::read(layout.bytes(bytes, section), section);
        Ok(Self {
            functions: column(layout, bytes, Section::Functions)?,
            names: strings(Section::Names)?,
            ranges: column(layout, bytes, Section::Ranges)?,
            range_order: column(layout, bytes, Section::RangeOrder)?,
            spans: column(layout, bytes, Section::Spans)?,
            blocks: column(layout, bytes, Section::Blocks)?,
            edges: column(layout, bytes, Section::Edges)?,
            exits: column(layout, bytes, Section::Exits)?,
            calls: column(layout, bytes, Section::Calls)?,
            jumps: column(layout, bytes, Section::IndirectJumps)?,
            files: strings(Section::Files)?,
            lines: column(layout, bytes, Section::Lines)?,
            imports: strings(Section::Imports)?,
        })
    }

    /// Checks that walks end soon: lists that start behind each other share nothing, so all
    /// functions together have no more blocks, edges, calls than there are.
    pub(super) fn check(&self) -> Result<(), ModelError> {
        let in_order = self.functions.is_sorted_by(|one, next| {
            one.entry.get() <= next.entry.get()
                && one.first_range.get() <= next.first_range.get()
                && one.first_block.get() <= next.first_block.get()
                && one.first_call.get() <= next.first_call.get()
                && one.first_jump.get() <= next.first_jump.get()
        });
        if !in_order {
            let what = "functions are not in the order of their entries and lists";
            return Err(ModelError::Malformed {
                section: Section::Functions.name(),
                what,
            });
        }
        if !self.blocks.is_sorted_by_key(|block| block.first_edge.get()) {
            let what = "their edges are not in their order";
            return Err(ModelError::Malformed {
                section: Section::Blocks.name(),
                what,
            });
        }
        Ok(())
    }

    /// All functions, by entry.
    pub fn functions(
        &self,
    ) -> impl ExactSizeIterator<Item = FunctionView<'_>> + DoubleEndedIterator {
        (0..self.functions.len() as u32).map(|id| FunctionView {
            graphs: self,
            id: FunctionId(id),
        })
    }

    /// The function with this number.
    #[must_use]
    pub fn function(&self, id: FunctionId) -> Option<FunctionView<'_>> {
        (id.index() < self.functions.len()).then_some(FunctionView { graphs: self, id })
    }

    /// The functions into the middle of which others jump. Linear in the edges.
    #[must_use]
    pub fn entered_within(&self) -> HashSet<FunctionId> {
        let ways_out = self.functions().flat_map(|function| function.edges());
        let into = ways_out.filter(|edge| edge.kind == EdgeKind::JumpInto);
        let entered = into.filter_map(|edge| Some(self.block_at(edge.address)?.function()?.id()));
        entered.collect()
    }

    /// The block with this number.
    #[must_use]
    pub fn block(&self, id: BlockId) -> Option<BlockView<'_>> {
        (id.index() < self.blocks.len()).then_some(BlockView { graphs: self, id })
    }

    /// The function that starts at `entry`.
    #[must_use]
    pub fn function_starting_at(&self, entry: Address) -> Option<FunctionView<'_>> {
        let found = self
            .functions
            .binary_search_by_key(&entry.0, |function| function.entry.get())
            .ok()?;
        self.function(FunctionId(u32::try_from(found).ok()?))
    }

    /// The function that starts at `address`, else the one with a block there, else the one with a
    /// byte there. Logarithmic.
    #[must_use]
    pub fn function_at(&self, address: Address) -> Option<FunctionView<'_>> {
        self.function_starting_at(address)
            .or_else(|| self.block_at(address)?.function())
            .or_else(|| self.function_with_range_at(address))
    }

    fn function_with_range_at(&self, address: Address) -> Option<FunctionView<'_>> {
        let range = |order: &U32| self.ranges.get(order.get() as usize);
        let behind = self.range_order.partition_point(|order| {
            range(order).is_some_and(|range| range.start.get() <= address.0)
        });
        let found = range(self.range_order.get(behind.checked_sub(1)?)?)?;
        let inside = address.0.checked_sub(found.start.get())? < found.size.get();
        if inside {
            self.function(FunctionId(found.function.get()))
        } else {
            None
        }
    }

    /// The block with a byte at `address`. Logarithmic.
    #[must_use]
    pub fn block_at(&self, address: Address) -> Option<BlockView<'_>> {
        let behind = self
            .spans
            .partition_point(|span| span.start.get() <= address.0);
        let span = self.spans.get(behind.checked_sub(1)?)?;
        let first = span.first_block.get() as usize;
        let blocks = self
            .blocks
            .get(first..first.checked_add(span.blocks.get() as usize)?)?;
        let within = blocks
            .partition_point(|block| block.address.get() <= address.0)
            .checked_sub(1)?;
        let block = &blocks[within];
        let inside = address.0.checked_sub(block.address.get())? < u64::from(block.size.get());
        if inside {
            self.block(BlockId(u32::try_from(first + within).ok()?))
        } else {
            None
        }
    }

    /// The functions that `name` stands for: those with just this mangled name; else those with
    /// just this demangled name (see [`is_called`]); else those with this as a part of it.
    /// Linear, on all processors.
    #[must_use]
    pub fn functions_named(&self, name: &str) -> Named<'_> {
        if name.is_empty() {
            return Named {
                functions: Vec::new(),
                by_part: true,
            };
        }
        let exact = self.having(|mangled| mangled == name);
        if !exact.is_empty() {
            return Named {
                functions: exact,
                by_part: false,
            };
        }
        let demangled = self
            .having(|mangled| demangle(mangled).is_some_and(|readable| is_called(&readable, name)));
        if !demangled.is_empty() {
            return Named {
                functions: demangled,
                by_part: false,
            };
        }
        let part = |mangled: &str| {
            mangled.contains(name)
                || demangle(mangled).is_some_and(|readable| readable.contains(name))
        };
        Named {
            functions: self.having(part),
            by_part: true,
        }
    }

    /// The functions whose mangled name pleases `test`.
    fn having(&self, test: impl Fn(&str) -> bool + Sync) -> Vec<FunctionView<'_>> {
        let ids = (0..self.functions.len() as u32)
            .into_par_iter()
            .with_min_len(256);
        ids.map(|id| FunctionView {
            graphs: self,
            id: FunctionId(id),
        })
        .filter(|function| function.name().is_some_and(&test))
        .collect()
    }
}

/// The bytes of `section` as records.
fn column<'m, T>(layout: &Layout, bytes: &'m [u8], section: Section) -> Result<&'m [T], ModelError>
where
    T: FromBytes + KnownLayout + Immutable + zerocopy::Unaligned,
{
    let what = "it is no whole number of records";
    <[T]>::ref_from_bytes(layout.bytes(bytes, section)).map_err(|_| ModelError::Malformed {
        section: section.name(),
        what,
    })
}
