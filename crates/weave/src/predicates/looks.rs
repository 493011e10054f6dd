//! How many bits of a result matter: as many as the caller looks at.
//!
//! From behind the call along all ways of the function to the first instruction that reads `rax`, or a part of it: its
//! width there is that of the result; the widest, where several come first. A caller that overwrites
//! it on all ways does not look, and the call is no site. One that returns with it passes it on: then the
//! result of its own callers, or of other calls of the same function, tells the width; and where nobody does,
//! all of the register counts. No convention is believed but that `rax` holds the result.

use std::collections::{HashMap, HashSet};

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, OpAccess, Register,
};
use tomo_program::{
    Address, BlockId, BlockView, CallView, Callee, EdgeKind, EdgeView, FunctionView, Graphs,
};
use tomo_wire::predicates::{Width, width};

use crate::text::Text;

/// What becomes of a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Looks {
    /// The most bits that are read first.
    bits: Option<u8>,
    /// Whether it may still be there when the function is left.
    passes_on: bool,
}

/// The width of the result of each call that is a site, by the address behind it; as in a row.
#[derive(Debug, Default)]
pub(crate) struct Widths {
    known: HashMap<Address, u8>,
}

/// A call whose result is only passed on.
struct Open {
    behind: Address,
    callee: Callee,
    caller: Address,
}

impl Widths {
    /// Those of all functions.
    pub(crate) fn of(text: &Text, graphs: &Graphs<'_>) -> Self {
        let mut widths = Self::default();
        let mut by_callee: HashMap<Callee, u8> = HashMap::new();
        let mut open = Vec::new();
        let mut factory = InstructionInfoFactory::new();
        for function in graphs.functions() {
            for call in function.calls().filter(CallView::is_return_site) {
                let Some(behind) = behind(&function, &call) else {
                    continue;
                };
                let looks = looks(text, &function, behind.id(), &mut factory);
                let behind = behind.address();
                let callee = call.callee();
                match looks.bits {
                    Some(bits) => {
                        widths.known.insert(behind, width(bits, Width::Used));
                        if callee != Callee::Indirect {
                            let widest = by_callee.entry(callee).or_default();
                            *widest = bits.max(*widest);
                        }
                    }
                    None if looks.passes_on => open.push(Open {
                        behind,
                        callee,
                        caller: function.entry(),
                    }),
                    None => {}
                }
            }
        }
        widths.settle(open, by_callee);
        widths
    }

    /// The width of the result that arrives at `behind`, if it is one that somebody may look at.
    pub(crate) fn at(&self, behind: Address) -> Option<u8> {
        self.known.get(&behind).copied()
    }

    /// What is passed on is what the caller's callers get. Each pass names at least one more.
    fn settle(&mut self, mut open: Vec<Open>, mut by_callee: HashMap<Callee, u8>) {
        loop {
            let before = open.len();
            open.retain(|call| {
                let own = by_callee.get(&Callee::Function(call.caller));
                let Some(&bits) = own.or_else(|| by_callee.get(&call.callee)) else {
                    return true;
                };
                self.known
                    .insert(call.behind, width(bits, Width::Elsewhere));
                if call.callee != Callee::Indirect {
                    by_callee.entry(call.callee).or_insert(bits);
                }
                false
            });
            if open.len() == before {
                break;
            }
        }
        let whole = |call: Open| (call.behind, width(64, Width::Whole));
        self.known.extend(open.into_iter().map(whole));
    }
}

/// The block behind a call, if the call comes back in the model.
pub(crate) fn behind<'g>(
    function: &FunctionView<'g>,
    call: &CallView<'g>,
) -> Option<BlockView<'g>> {
    let block = function.block(call.block())?;
    let comes_back = |edge: &EdgeView| edge.kind == EdgeKind::CallFallthrough;
    let edge = block.successors().find(comes_back)?;
    function.block(edge.block()?)
}

/// Who looks first at what is in `rax` at the start of `from`.
fn looks(
    text: &Text,
    function: &FunctionView<'_>,
    from: BlockId,
    factory: &mut InstructionInfoFactory,
) -> Looks {
    let mut looks = Looks::default();
    let mut seen = HashSet::from([from]);
    let mut waiting = vec![from];
    while let Some(block) = waiting.pop() {
        let Some(block) = function.block(block) else {
            looks.passes_on = true;
            continue;
        };
        let bytes = text.from(block.address()).unwrap_or_default();
        let bytes = bytes.get(..block.size() as usize).unwrap_or_default();
        if !through(bytes, block.address(), factory, &mut looks) {
            continue;
        }
        for edge in block.successors() {
            match edge.block() {
                Some(next) if seen.insert(next) => waiting.push(next),
                Some(_) => {}
                None => looks.passes_on = true,
            }
        }
    }
    looks
}

/// Goes through a block; whether the value is still there at its end.
fn through(
    bytes: &[u8],
    start: Address,
    factory: &mut InstructionInfoFactory,
    looks: &mut Looks,
) -> bool {
    for instruction in &mut Decoder::with_ip(64, bytes, start.0, DecoderOptions::NONE) {
        let (read, written) = access(&instruction, factory);
        if let Some(bits) = read {
            looks.bits = looks.bits.max(Some(bits));
            return false;
        }
        match instruction.flow_control() {
            FlowControl::Return => {
                looks.passes_on = true;
                return false;
            }
            // What it is given in `rax` is at most how many vectors it gets.
            FlowControl::Call | FlowControl::IndirectCall => return false,
            _ if written || instruction.is_invalid() => return false,
            _ => {}
        }
    }
    true
}

/// How many bits of `rax` an instruction reads, and whether it writes any.
fn access(instruction: &Instruction, factory: &mut InstructionInfoFactory) -> (Option<u8>, bool) {
    let info = factory.info(instruction);
    let (mut read, mut written) = (None, false);
    for used in info.used_registers() {
        let register = used.register();
        if register.full_register() != Register::RAX {
            continue;
        }
        let bits = match register {
            Register::AL => 8,
            Register::AH | Register::AX => 16,
            Register::EAX => 32,
            _ => 64,
        };
        match used.access() {
            OpAccess::Write | OpAccess::CondWrite => written = true,
            OpAccess::None | OpAccess::NoMemAccess => {}
            OpAccess::Read | OpAccess::CondRead => read = read.max(Some(bits)),
            _ => (read, written) = (read.max(Some(bits)), true),
        }
    }
    (read, written)
}
