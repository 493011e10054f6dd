//! Sets of addresses in the text, one bit for each byte, that many threads fill at once.
//!
//! Two such sets say what a window may cover. *Starts*: where a block starts, or anything else that
//! is known. *Entered*: where control may arrive otherwise than by running on from the byte before.
//! A window may have none of the latter anywhere but at its own start.

use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;
use tomo_program::{
    Address, Binary, BlockView, Callee, EdgeKind, EdgeView, FunctionView, Graphs, Status,
};

use crate::text::Text;

/// Whether the call that ends the block is known not to come back.
pub(crate) fn stays_away(block: &BlockView<'_>) -> bool {
    let comes_back = |edge: EdgeView| edge.kind == EdgeKind::CallFallthrough;
    let exact = |function: FunctionView<'_>| function.status() == Status::Exact;
    block.function().is_some_and(exact) && !block.successors().any(comes_back)
}

/// A set of addresses.
#[derive(Debug)]
pub(crate) struct Spots {
    regions: Vec<(u64, Vec<AtomicU64>)>,
}

impl Spots {
    fn new(text: &Text) -> Self {
        let regions = text.regions.iter().map(|region| {
            let words = region.bytes.len().div_ceil(64);
            let bits = (0..words).map(|_| AtomicU64::new(0)).collect();
            (region.address, bits)
        });
        Self {
            regions: regions.collect(),
        }
    }

    fn word(&self, address: Address) -> Option<(&AtomicU64, u64)> {
        self.regions.iter().find_map(|(start, bits)| {
            let offset = address.0.checked_sub(*start)?;
            let word = bits.get(usize::try_from(offset / 64).ok()?)?;
            Some((word, 1 << (offset % 64)))
        })
    }

    /// Adds an address; those outside of the text are of no interest. Relaxed: whoever reads the
    /// set does so after all threads that fill it have been joined.
    fn insert(&self, address: Address) {
        if let Some((word, bit)) = self.word(address) {
            word.fetch_or(bit, Ordering::Relaxed);
        }
    }

    /// Whether the address is in the set.
    pub(crate) fn has(&self, address: Address) -> bool {
        self.word(address)
            .is_some_and(|(word, bit)| word.load(Ordering::Relaxed) & bit != 0)
    }

    /// Whether an address of `start + 1 .. start + length` is in the set.
    pub(crate) fn has_inside(&self, start: Address, length: u64) -> bool {
        (1..length).any(|byte| self.has(start.wrapping_add(byte)))
    }
}

/// Where things start, and where control arrives.
#[derive(Debug)]
pub(crate) struct Ways {
    /// Where a block, a function's bytes, or a stub starts.
    pub(crate) starts: Spots,
    /// Where control arrives by more than running on: targets of jumps, landing pads, return
    /// addresses, functions, and whatever symbols or pointers name.
    pub(crate) entered: Spots,
    /// Those of them where it may arrive from anywhere but a direct branch of the same function.
    pub(crate) outer: Spots,
    /// Where another function jumps into the middle of one.
    pub(crate) foreign: Spots,
}

impl Ways {
    /// All ways of the program. Linear, on all processors.
    pub(crate) fn of(text: &Text, binary: &Binary<'_>, graphs: &Graphs<'_>) -> Self {
        let ways = Self {
            starts: Spots::new(text),
            entered: Spots::new(text),
            outer: Spots::new(text),
            foreign: Spots::new(text),
        };
        graphs
            .functions()
            .collect::<Vec<_>>()
            .par_iter()
            .with_min_len(64)
            .for_each(|function| ways.add_function(function));
        ways.add_tables(binary);
        ways
    }

    /// Control may arrive at `address` from anywhere.
    fn enter(&self, address: Address) {
        self.entered.insert(address);
        self.outer.insert(address);
    }

    fn add_function(&self, function: &FunctionView<'_>) {
        self.enter(function.entry());
        for range in function.ranges() {
            self.starts.insert(range.start());
        }
        for block in function.blocks() {
            self.starts.insert(block.address());
            let end = block.range().end();
            for edge in block.successors() {
                let runs_on = matches!(edge.kind, EdgeKind::Fallthrough | EdgeKind::NotTaken);
                let branches = matches!(edge.kind, EdgeKind::Taken | EdgeKind::Jump);
                if !((runs_on || branches) && edge.block().is_some()) {
                    self.enter(edge.address);
                } else if branches || edge.address != end {
                    self.entered.insert(edge.address);
                }
                if edge.kind == EdgeKind::JumpInto {
                    self.foreign.insert(edge.address);
                }
            }
        }
        for call in function.calls() {
            if let Callee::Function(entry) = call.callee() {
                self.enter(entry);
            }
            if let Some(block) = function.block(call.block()).filter(|b| !stays_away(b)) {
                self.enter(block.range().end());
            }
        }
    }

    /// What symbols, relocations and the loader name. A pointer to the middle of a block is more than
    /// the model knows of; it costs a window, and nothing else.
    fn add_tables(&self, binary: &Binary<'_>) {
        let slots = binary.pointer_slots().iter().chain(binary.resolver_slots());
        for &(_, target) in slots {
            self.enter(target);
        }
        for symbol in binary.symbols() {
            self.enter(symbol.address);
        }
        for &address in binary.initial_functions().iter().chain(&binary.entry()) {
            self.enter(address);
        }
        for stub in binary.plt() {
            self.starts.insert(stub.range.start());
            self.enter(stub.range.start());
        }
    }
}
