//! Witnesses as breakpoints: where they are, and what meeting each of them says.
//!
//! The debugger's way of DPT §5: nothing is put into the process but `int3`. A node's witness and an arrival are at the start of
//! the block, a way's at the branch, which is executed by a single step that shows where it goes.

use std::collections::BTreeMap;

use iced_x86::{Code as Code64, Instruction, Mnemonic};
use tomo_plan::witnesses::{FunctionId, Place};
use tomo_wire::tracing::{self as wire, block};

use super::{Traced, chart};
use crate::staying::code::Code;

/// A place where control is stopped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Breakpoint {
    /// Where it is, as the module states it.
    pub address: u64,
    /// The witness of arriving there, and whether the stack pointer belongs to it.
    pub arrival: Option<(u32, bool)>,
    /// The witness of the block that starts there.
    pub node: Option<u32>,
    /// Witnesses of the ways that the branch there takes: where to, as the module states it, and which.
    pub ways: Vec<(u64, u32)>,
    /// Whether its instruction repeats itself, a step for each time.
    pub repeats: bool,
}

/// Whether a breakpoint may be at this instruction of a block. Not where a step would wait for other threads, which stand still
/// meanwhile, or where it could be seen in the flags.
pub(super) fn may_be_at(code: &Code<'_>, at: usize) -> bool {
    let waits = |one: &Instruction| {
        matches!(
            one.mnemonic(),
            Mnemonic::Syscall
                | Mnemonic::Sysenter
                | Mnemonic::Int
                | Mnemonic::Int3
                | Mnemonic::Int1
                | Mnemonic::Pushf
                | Mnemonic::Pushfq
                | Mnemonic::Popf
                | Mnemonic::Popfq
                | Mnemonic::Iretq
        )
    };
    let instruction = code.instructions().get(at);
    instruction.is_some_and(|one| !waits(one) && one.code() != Code64::INVALID)
}

fn repeats(one: &Instruction) -> bool {
    one.has_rep_prefix() || one.has_repne_prefix()
}

impl Traced<'_> {
    /// The breakpoints of a run, ascending; arrivals have the numbers of `drawn`.
    pub(crate) fn breakpoints(&self, drawn: &chart::Drawn, run: u32) -> Vec<Breakpoint> {
        let mut all: BTreeMap<u64, Breakpoint> = BTreeMap::new();
        let mut at = |one: &Instruction, change: &mut dyn FnMut(&mut Breakpoint)| {
            let point = all.entry(one.ip()).or_insert_with(|| Breakpoint {
                address: one.ip(),
                repeats: repeats(one),
                ..Breakpoint::default()
            });
            change(point);
        };
        for (number, subject) in self.subjects.iter().enumerate() {
            let first = drawn.functions[number].first.get() as usize;
            for (n, code) in subject.codes.iter().enumerate() {
                let Some(start) = code.instructions().first().filter(|_| run == 0) else {
                    continue;
                };
                let row = &drawn.blocks[first + n];
                let with_stack = row.flags.get() & block::WITH_STACK != 0;
                if row.arrival.get() != wire::NONE {
                    let arrival = (row.arrival.get(), with_stack);
                    at(start, &mut |point| point.arrival = Some(arrival));
                }
            }
            let id = FunctionId(number as u32);
            for (witness, place) in self.distribution.witnesses_of(id) {
                if !self.is_in(witness, run) {
                    continue;
                }
                match place {
                    Place::Node(node) => {
                        if let Some(start) = subject.codes[node.index()].instructions().first() {
                            at(start, &mut |point| point.node = Some(witness.0));
                        }
                    }
                    Place::Edge(edge) => {
                        let edge = &subject.edges[edge.index()];
                        let to = subject.codes[edge.to].start().0;
                        if let Some(branch) = subject.codes[edge.from].last_instruction() {
                            at(branch, &mut |point| point.ways.push((to, witness.0)));
                        }
                    }
                }
            }
        }
        all.into_values().collect()
    }
}
