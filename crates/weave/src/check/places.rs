//! Asks the model whether a window is where it may be.

use std::collections::HashSet;

use iced_x86::{
    CpuidFeature, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory,
    Mnemonic, Register, UsedMemory,
};
use tomo_program::{
    Address, Binary, BlockView, Callee, EdgeKind, FunctionView, Graphs, Patchability, Reason,
    Status,
};
use tomo_wire::plan::{Entry, Tactic};

use super::{Flaw, Found, at};
use crate::block::is_call;
use crate::text::Text;

/// What the model says of all places.
pub(super) struct Places<'a> {
    graphs: &'a Graphs<'a>,
    text: &'a Text,
    /// Where control arrives otherwise than by running on inside a function.
    arrivals: HashSet<u64>,
}

impl<'a> Places<'a> {
    pub(super) fn of(graphs: &'a Graphs<'a>, binary: &Binary<'_>, text: &'a Text) -> Self {
        let mut arrivals: HashSet<u64> = binary.symbols().iter().map(|s| s.address.0).collect();
        arrivals.extend(binary.pointer_slots().iter().map(|slot| slot.1.0));
        arrivals.extend(binary.initial_functions().iter().map(|address| address.0));
        arrivals.extend(binary.plt().iter().map(|stub| stub.range.start().0));
        for function in graphs.functions() {
            arrivals.insert(function.entry().0);
            for edge in function.edges() {
                if !matches!(edge.kind, EdgeKind::Fallthrough | EdgeKind::NotTaken) {
                    arrivals.insert(edge.address.0);
                }
            }
            // Control comes back from the system, and perhaps twice.
            let unsure = function.unsure_system_calls();
            let unsure = unsure.filter_map(|block| function.block(block));
            arrivals.extend(unsure.map(|block| block.range().end().0));
            for call in function.calls() {
                let block = function.block(call.block());
                let block = block.filter(|block| comes_back(*block));
                arrivals.extend(block.map(|block| block.range().end().0));
                if let Callee::Function(entry) = call.callee() {
                    arrivals.insert(entry.0);
                }
            }
        }
        Self {
            graphs,
            text,
            arrivals,
        }
    }

    /// Proves that `window` observes `unit` and that nothing else arrives in it.
    pub(super) fn check(&self, window: &Found, unit: &Entry) -> Result<(), Flaw> {
        let wrong = |what| at(window.start, what);
        let start = Address(unit.from.get());
        let block = self.graphs.block_at(start);
        let block = block
            .filter(|block| block.address() == start)
            .ok_or(wrong("its unit starts no block"))?;
        let function = block.function().ok_or(wrong("its block has no function"))?;
        if block.patchability(function.status()) == Patchability::None {
            return Err(wrong("a window where no instruction surely starts"));
        }
        let inside = window.start.0 + 1..window.start.0 + window.length;
        if inside.clone().any(|byte| self.arrivals.contains(&byte)) {
            return Err(wrong("something arrives in the middle of the window"));
        }
        if matches!(window.tactic, Tactic::Retarget | Tactic::ShortRetarget) {
            return self.check_branch(window, unit, block);
        }
        let before = self.check_boundary(window, block).map_err(wrong)?;
        match function.status() {
            Status::Exact => inside
                .clone()
                .try_for_each(|byte| self.check_byte(Address(byte), block, &function)),
            Status::Partial(reason) if window.tactic == Tactic::Trap => {
                match reason != Reason::OverlappingInstructions && before == 0 {
                    true => Ok(()),
                    false => Err("a trap where an instruction may not start"),
                }
            }
            Status::Partial(Reason::OverlappingInstructions | Reason::EnteredInsideInstruction)
            | Status::Opaque(_) => Err("a window in a function of which too little is known"),
            Status::Partial(_) => {
                let first = self.decoder(block).map(|mut d| d.decode().len() as u64);
                match before == 0 && first.is_some_and(|first| first >= window.length) {
                    true => Ok(()),
                    false => Err("a window over several instructions of a partial function"),
                }
            }
        }
        .map_err(wrong)
    }

    /// Proves that `slot` is filling behind a block of an exact function, and that nothing arrives in it.
    pub(super) fn check_slot(&self, slot: &Found) -> Result<(), Flaw> {
        let wrong = |what| at(slot.start, what);
        let bytes = slot.start.0..slot.start.0 + slot.length;
        if bytes.clone().any(|byte| self.arrivals.contains(&byte)) {
            return Err(wrong("something arrives in the filling"));
        }
        let before = (1..=256).find_map(|back| {
            let address = slot.start.0.checked_sub(back)?;
            self.graphs.block_at(Address(address))
        });
        let block = before.ok_or(wrong("there is no block before the filling"))?;
        let function = block.function().ok_or(wrong("its block has no function"))?;
        if function.status() != Status::Exact {
            return Err(wrong("filling behind a function that is not exact"));
        }
        bytes
            .map(Address)
            .try_for_each(|byte| self.check_filling(byte, block))
            .map_err(wrong)
    }

    fn decoder(&self, block: BlockView<'_>) -> Option<Decoder<'a>> {
        let bytes = self.text.from(block.address())?;
        let bytes = bytes.get(..block.size() as usize)?;
        let start = block.address().0;
        Some(Decoder::with_ip(64, bytes, start, DecoderOptions::NONE))
    }

    /// How many instructions are before the window in its block; none of them may fault.
    fn check_boundary(&self, window: &Found, block: BlockView<'_>) -> Result<usize, &'static str> {
        let mut decoder = self
            .decoder(block)
            .ok_or("its block is outside of the text")?;
        let mut before = 0;
        while decoder.can_decode() && decoder.ip() < window.start.0 {
            if may_fault(&decoder.decode()) {
                return Err("something before the window in its block may fault");
            }
            before += 1;
        }
        match decoder.ip() == window.start.0 && decoder.can_decode() {
            true => Ok(before),
            false => Err("the window starts at no instruction of its block"),
        }
    }

    /// One byte of a window of `block`, behind its first.
    fn check_byte(
        &self,
        byte: Address,
        block: BlockView<'_>,
        function: &FunctionView<'_>,
    ) -> Result<(), &'static str> {
        if block.range().contains(byte) {
            return Ok(());
        }
        let Some(other) = self.graphs.block_at(byte) else {
            return self.check_filling(byte, block);
        };
        // Every block from there back to this one is entered by running on, and in no other way.
        let mut here = other;
        let predecessors = function.predecessors();
        while here.id() != block.id() {
            let edges = predecessors.of_block(here.id());
            let [edge] = edges else {
                return Err("the window covers a block with several ways in");
            };
            let runs_on = matches!(edge.kind, EdgeKind::Fallthrough | EdgeKind::NotTaken);
            let before = function
                .block(edge.from)
                .ok_or("a block of another function")?;
            if !runs_on
                || before.range().end() != here.address()
                || self.arrivals.contains(&here.address().0)
            {
                return Err("the window covers a block that is entered otherwise");
            }
            here = before;
        }
        Ok(())
    }

    /// A byte of no block: filling, directly behind a block that does not run on.
    fn check_filling(&self, byte: Address, block: BlockView<'_>) -> Result<(), &'static str> {
        let end = block.range().end();
        let bytes = self.text.from(end).unwrap_or_default();
        let mut decoder = Decoder::with_ip(64, bytes, end.0, DecoderOptions::NONE);
        while decoder.ip() <= byte.0 {
            let start = decoder.ip();
            let filler = decoder.decode();
            let known = matches!(filler.mnemonic(), Mnemonic::Nop | Mnemonic::Int3);
            let clear = (start..decoder.ip()).all(|b| self.graphs.block_at(Address(b)).is_none());
            if !known || !clear {
                return Err("the window covers bytes that are neither its block's nor filling");
            }
        }
        let mut last = Instruction::default();
        let mut decoder = self
            .decoder(block)
            .ok_or("its block is outside of the text")?;
        while decoder.can_decode() {
            decoder.decode_out(&mut last);
        }
        let gone = matches!(
            last.flow_control(),
            FlowControl::UnconditionalBranch | FlowControl::IndirectBranch | FlowControl::Return
        );
        let called = is_call(&last) && !comes_back(block);
        match gone || last.mnemonic() == Mnemonic::Ud2 || called {
            true => Ok(()),
            false => Err("the window covers filling into which control may run"),
        }
    }

    /// A displacement belongs to the branch that ends the block, and leads where the unit says.
    fn check_branch(&self, window: &Found, unit: &Entry, block: BlockView<'_>) -> Result<(), Flaw> {
        let wrong = |what| at(window.start, what);
        let mut last = Instruction::default();
        let mut decoder = self
            .decoder(block)
            .ok_or(wrong("its block is outside of the text"))?;
        while decoder.can_decode() {
            decoder.decode_out(&mut last);
        }
        let target = last.near_branch_target();
        let is_branch = matches!(
            last.flow_control(),
            FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch
        );
        let leads = block
            .successors()
            .any(|edge| edge.address.0 == unit.to.get() && edge.kind != EdgeKind::NotTaken);
        let ends = block.range().end().0 == window.start.0 + window.length;
        match is_branch && ends && leads && target == unit.to.get() {
            true => Ok(()),
            false => Err(wrong("the displacement is not of the edge's branch")),
        }
    }
}

/// Whether a call at the end of `block` may return: unless all ways on are known and this is none.
fn comes_back(block: BlockView<'_>) -> bool {
    let exact = |function: FunctionView<'_>| function.status() == Status::Exact;
    let mut ways = block.successors();
    !block.function().is_some_and(exact) || ways.any(|edge| edge.kind == EdgeKind::CallFallthrough)
}

/// Whether control may not arrive at the next instruction: anything that touches memory other than words of the stack at
/// fixed distances or the system, leaves, divides, or computes with floating point numbers.
fn may_fault(instruction: &Instruction) -> bool {
    let mut factory = InstructionInfoFactory::new();
    let memory = factory.info(instruction).used_memory();
    let on_stack = |one: &UsedMemory| {
        (one.base(), one.index(), one.segment()) == (Register::RSP, Register::None, Register::SS)
    };
    // Vectors may have to be aligned.
    let is_plain = |one: &CpuidFeature| {
        use CpuidFeature::{INTEL186, INTEL286, INTEL386, INTEL486, INTEL8086, X64};
        matches!(
            *one,
            INTEL8086 | INTEL186 | INTEL286 | INTEL386 | INTEL486 | X64
        )
    };
    let word = instruction.cpuid_features().iter().all(is_plain)
        && !instruction.is_stack_instruction()
        && memory.iter().all(on_stack);
    let touches = !memory.is_empty() && !word;
    let computes = instruction.cpuid_features().contains(&CpuidFeature::FPU);
    let name = format!("{:?}", instruction.mnemonic()).to_lowercase();
    let float = ["ss", "sd", "ps", "pd"]
        .iter()
        .any(|end| name.ends_with(end));
    let moves = ["mov", "and", "or", "xor", "unpck"]
        .iter()
        .any(|start| name.starts_with(start))
        || name.starts_with("cmov");
    instruction.flow_control() != FlowControl::Next
        || instruction.is_privileged()
        || instruction.is_invalid()
        || touches
        || computes
        || (float && !moves)
        || matches!(instruction.mnemonic(), Mnemonic::Div | Mnemonic::Idiv)
}
