//! Calls and indirect jumps of a model, read where they lie.

use super::graphs::Graphs;
use super::records::*;
use super::views::FunctionView;
use super::{BlockId, CallId};
use crate::{Address, Call, Callee, IndirectJump, Resolution};

/// A call of a model.
#[derive(Clone, Copy, Debug)]
pub struct CallView<'g> {
    pub(super) graphs: &'g Graphs<'g>,
    pub(super) id: CallId,
}

impl<'g> CallView<'g> {
    fn record(&self) -> &'g CallRecord {
        &self.graphs.calls[self.id.index()]
    }

    /// Its number.
    #[must_use]
    pub fn id(&self) -> CallId {
        self.id
    }

    /// The block that it ends.
    #[must_use]
    pub fn block(&self) -> BlockId {
        BlockId(self.record().block.get())
    }

    /// Where the call instruction starts.
    #[must_use]
    pub fn address(&self) -> Address {
        address_in(self.graphs, self.block(), self.record().offset.get())
    }

    /// Whom it calls.
    #[must_use]
    pub fn callee(&self) -> Callee {
        let record = self.record();
        match record.kind {
            CALLS_FUNCTION => Callee::Function(Address(record.callee.get())),
            CALLS_IMPORT => {
                u32::try_from(record.callee.get()).map_or(Callee::Indirect, Callee::Import)
            }
            _ => Callee::Indirect,
        }
    }

    /// The function of the program that it calls.
    #[must_use]
    pub fn function(&self) -> Option<FunctionView<'g>> {
        match self.callee() {
            Callee::Function(entry) => self.graphs.function_starting_at(entry),
            Callee::Import(_) | Callee::Indirect => None,
        }
    }

    /// The name of the import that it calls.
    #[must_use]
    pub fn import(&self) -> Option<&'g str> {
        match self.callee() {
            Callee::Import(import) => self.graphs.imports.get(import as usize),
            Callee::Function(_) | Callee::Indirect => None,
        }
    }

    /// Whether the callee can come back.
    #[must_use]
    pub fn returns(&self) -> bool {
        self.record().flags & RETURNS != 0
    }

    /// Whether debug information says that the result is void.
    #[must_use]
    pub fn is_void(&self) -> bool {
        self.record().flags & VOID != 0
    }

    /// Whether it is a return site (ABI §2.1): it can come back, with a result for all we know.
    #[must_use]
    pub fn is_return_site(&self) -> bool {
        self.returns() && !self.is_void()
    }

    pub(super) fn to_call(self, first: u32) -> Call {
        let block = self.block().0.saturating_sub(first);
        let (callee, returns, void) = (self.callee(), self.returns(), self.is_void());
        Call {
            block,
            address: self.address(),
            callee,
            returns,
            void,
        }
    }
}

/// The address `offset` bytes behind the start of `block`.
fn address_in(graphs: &Graphs<'_>, block: BlockId, offset: u32) -> Address {
    let start = graphs
        .blocks
        .get(block.index())
        .map_or(0, |block| block.address.get());
    Address(start).wrapping_add(offset.into())
}

/// A jump through a register or memory.
#[derive(Clone, Copy, Debug)]
pub struct IndirectJumpView<'g> {
    pub(super) graphs: &'g Graphs<'g>,
    pub(super) record: IndirectJumpRecord,
}

impl<'g> IndirectJumpView<'g> {
    /// The block that it ends.
    #[must_use]
    pub fn block(&self) -> BlockId {
        BlockId(self.record.block.get())
    }

    /// Where the jump instruction starts.
    #[must_use]
    pub fn address(&self) -> Address {
        address_in(self.graphs, self.block(), self.record.offset.get())
    }

    /// What is known of its targets.
    #[must_use]
    pub fn resolution(&self) -> Resolution {
        Resolution::from_code(self.record.resolution).unwrap_or(Resolution::Unresolved)
    }

    /// The name of the import it jumps to, where it is a tail call to one.
    #[must_use]
    pub fn import(&self) -> Option<&'g str> {
        self.graphs.imports.get(self.import_number()? as usize)
    }

    fn import_number(&self) -> Option<u32> {
        Some(self.record.import.get()).filter(|import| *import != NONE)
    }

    pub(super) fn to_jump(self, first: u32) -> IndirectJump {
        let block = self.block().0.saturating_sub(first);
        IndirectJump {
            block,
            address: self.address(),
            resolution: self.resolution(),
            import: self.import_number(),
        }
    }
}
