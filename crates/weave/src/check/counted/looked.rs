//! Liveness by its definition: is there a path to somebody who looks?

use std::collections::HashSet;

use tomo_program::{Address, BlockId, BlockView, Status};

use super::Walk;
use crate::block::is_call;
use crate::check::trampolines::MIDDLE;
use crate::staying::live::{Effect, Set};

impl Walk<'_> {
    /// Whether there is a path from `address` to somebody who looks at `what`, and nobody on it who writes it first.
    pub(in crate::check) fn is_looked_at(&mut self, address: Address, what: Set) -> bool {
        if let Some(&known) = self.looked_at.get(&(address, what)) {
            return known;
        }
        let mut seen = HashSet::new();
        let mut waiting = vec![(address, what)];
        let mut found = false;
        while let Some((address, what)) = waiting.pop() {
            if found || !seen.insert((address, what)) {
                continue;
            }
            let Some(ways) = self.ways(address, what) else {
                found = true;
                continue;
            };
            waiting.extend(ways);
        }
        self.looked_at.insert((address, what), found);
        found
    }

    /// Where control may be behind the instruction at `address`, with what of `what` is not written by it; `None` if
    /// it may be looked at.
    fn ways(&mut self, address: Address, what: Set) -> Option<Vec<(Address, Set)>> {
        let block = self.graphs.block_at(address)?;
        block.function().filter(|f| f.status() == Status::Exact)?;
        let instruction = self.original(address)?.instruction;
        let effect = Effect::of(&instruction, &mut self.factory);
        if effect.reads.has_any(what) {
            return None;
        }
        let rest = what.without(effect.writes);
        if rest == Set::NONE {
            return Some(Vec::new());
        }
        let next = address.wrapping_add(instruction.len() as u64);
        if next < block.range().end() {
            return Some(vec![(next, rest)]);
        }
        let ways = match is_call(&instruction) {
            true => {
                vec![self.entry(self.address(instruction.near_branch_target() as i64 - MIDDLE))?]
            }
            false => self.successors(&block)?,
        };
        Some(ways.into_iter().map(|way| (way, rest)).collect())
    }

    /// The entry of a function all of which is known.
    fn entry(&self, address: Address) -> Option<Address> {
        let function = self.graphs.function_starting_at(address)?;
        (function.status() == Status::Exact && function.entry_block().is_some()).then_some(address)
    }

    fn successors(&self, block: &BlockView<'_>) -> Option<Vec<Address>> {
        let ways = block.successors().map(|edge| {
            let inside: Option<BlockId> = edge.block();
            let known = inside.is_some() || self.starts_known_block(edge.address);
            known.then_some(edge.address)
        });
        let ways: Vec<Address> = ways.collect::<Option<_>>()?;
        (!ways.is_empty()).then_some(ways)
    }

    fn starts_known_block(&self, address: Address) -> bool {
        let block = self.graphs.block_at(address);
        let block = block.filter(|block| block.address() == address);
        let function = block.and_then(|block| block.function());
        function.is_some_and(|function| function.status() == Status::Exact)
    }
}
