//! Recursive traversal: from known starts to the blocks of one fragment.
//!
//! Decoding follows control flow only (Schwarz, Debray, Andrews, *Disassembly of executable code
//! revisited*, WCRE 2002, §3.2): no line table and no linear sweep is believed, so that data
//! between instructions is never taken for code. Every call is followed as if it returned; what a
//! call that never returns hides is cut later ([`super::returns`]). Time is linear in the bytes
//! decoded.

use iced_x86::{
    Code as Opcode, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register,
};

use super::code::{Code, Destination, Pos};
use super::padding::{is_nops, padding_length};
use super::system;
use crate::{Address, Reason};

/// How control leaves a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Exit {
    /// Into the block behind it.
    Fallthrough,
    /// Conditionally to the target (code or a PLT stub), else into the block behind it.
    Branch(Pos),
    /// To the target (code or a PLT stub).
    Jump(Pos),
    /// To an imported function through its slot (a tail call).
    JumpImport(u32),
    /// To a function that the loader chooses, through its slot (a tail call).
    JumpResolved,
    /// To wherever a register or memory says.
    JumpIndirect,
    /// To an address that is no code, if the condition holds; else into the block behind it.
    BranchOutside,
    /// To an address that is no code.
    JumpOutside,
    /// Back to the caller.
    Return,
    /// Calls the target, then into the block behind it if that returns.
    Call(Pos),
    /// Calls an imported function, likewise.
    CallImport(u32),
    /// Calls whatever a register or memory says, likewise.
    CallIndirect,
    /// Nowhere: a trap that the compiler placed where control cannot come.
    Stop,
    /// Nowhere known: bytes that are no instruction, or a clash with other instructions.
    Broken,
}

impl Exit {
    /// Whether control may pass on to the byte behind the block (if a call returns).
    pub(crate) fn falls_through(self) -> bool {
        self.is_call()
            || matches!(
                self,
                Self::Fallthrough | Self::Branch(_) | Self::BranchOutside
            )
    }

    /// Whether the block ends in a call.
    pub(crate) fn is_call(self) -> bool {
        matches!(
            self,
            Self::Call(_) | Self::CallImport(_) | Self::CallIndirect
        )
    }
}

/// One block, as found by traversal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawBlock {
    /// Its first byte.
    pub(crate) start: Pos,
    /// The byte behind its last.
    pub(crate) end: Pos,
    /// How many instructions it has.
    pub(crate) instructions: u32,
    /// How control leaves it.
    pub(crate) exit: Exit,
    /// Whether it ends in a system call that may come back twice or never.
    pub(crate) forks_or_ends: bool,
}

/// What traversal of one fragment found.
#[derive(Default, Debug)]
pub(crate) struct Explored {
    /// Blocks by start; disjoint unless `fault` says that instructions overlap.
    pub(crate) blocks: Vec<RawBlock>,
    /// Which bytes start an instruction, a bit each from the fragment's start.
    pub(crate) starts: Bits,
    /// Code addresses that instructions materialise (function pointers, labels), unsorted.
    pub(crate) taken: Vec<Pos>,
    /// Where direct jumps, branches and running on lead outside of the fragment, unsorted.
    pub(crate) leaving: Vec<Pos>,
    /// The worst that was met.
    pub(crate) fault: Option<Reason>,
    /// Whether any block ends in an indirect jump.
    pub(crate) indirect: bool,
    /// Whether the stack pointer is made to point at something that is at a fixed place: at data, as a rule.
    pub(crate) stack_leads_aside: bool,
}

/// Explores fragments, reusing its memory from one to the next.
pub(crate) struct Explorer<'a> {
    code: &'a Code<'a>,
    starts: Bits,
    middles: Bits,
    leaders: Bits,
    work: Vec<u32>,
    exits: Vec<(u32, Exit)>,
    system_calls: Vec<system::Call>,
}

impl<'a> Explorer<'a> {
    /// An explorer of `code`.
    pub(crate) fn new(code: &'a Code<'a>) -> Self {
        Self {
            code,
            starts: Bits::default(),
            middles: Bits::default(),
            leaders: Bits::default(),
            work: Vec::new(),
            exits: Vec::new(),
            system_calls: Vec::new(),
        }
    }

    /// Decodes everything that control reaches from `roots` inside `start..end`. Where instructions
    /// clash, those reached from earlier roots stay.
    pub(crate) fn explore(
        &mut self,
        start: Pos,
        end: Pos,
        roots: impl IntoIterator<Item = Pos>,
    ) -> Explored {
        let size = end.since(start);
        for bits in [&mut self.starts, &mut self.middles, &mut self.leaders] {
            bits.clear(size);
        }
        self.exits.clear();
        self.system_calls.clear();
        self.work.clear();
        let mut out = Explored::default();
        let bytes = self.code.bytes(start, end);
        let mut decoder =
            Decoder::with_ip(64, bytes, self.code.address(start).0, DecoderOptions::NONE);
        for root in roots
            .into_iter()
            .filter(|&root| root >= start && root < end)
        {
            self.work.push(root.since(start));
            while let Some(leader) = self.work.pop() {
                self.run(leader, start, size, &mut decoder, &mut out);
            }
        }
        // Who holds the address of an instruction may have somebody jump there.
        let inner = out.taken.iter().filter(|&&at| at >= start && at < end);
        for at in inner.map(|at| at.since(start)) {
            if self.starts.get(at) {
                self.leaders.set(at);
            }
        }
        self.cut_into_blocks(start, size, &mut out);
        out
    }

    /// Decodes from `at` until control cannot fall through or meets what is decoded already.
    fn run(
        &mut self,
        leader: u32,
        start: Pos,
        size: u32,
        decoder: &mut Decoder<'_>,
        out: &mut Explored,
    ) {
        let mut instruction = Instruction::default();
        let mut at = leader;
        if self.starts.get(at) {
            self.leaders.set(at);
            return;
        }
        if at >= size || decoder.set_position(at as usize).is_err() {
            return;
        }
        decoder.set_ip(self.code.address(start.plus(at)).0);
        let mut number = system::Number::default();
        while at < size {
            if self.starts.get(at) {
                self.leaders.set(at);
                return;
            }
            decoder.decode_out(&mut instruction);
            let length = u32::try_from(instruction.len()).unwrap_or(0);
            if let Some(fault) = self.clash(at, length, &instruction) {
                out.fault = out.fault.max(Some(fault));
                // What ran up to here ends here. Where nothing did, whoever leads here finds no block.
                if at > leader {
                    self.exits.push((at, Exit::Broken));
                    self.leaders.unset(at);
                }
                return;
            }
            if at == leader {
                self.leaders.set(at);
            }
            self.starts.set(at);
            self.middles.set_range(at + 1, at + length);
            self.note_addresses(&instruction, out);
            out.stack_leads_aside |= leads_stack_aside(&instruction);
            at += length;
            self.system_calls.extend(number.step(&instruction, at));
            if let Some(exit) = self.exit(&instruction, at, start, size) {
                self.exits.push((at, exit));
                self.follow(exit, start, size, out);
                out.indirect |= exit == Exit::JumpIndirect;
                if !exit.falls_through() {
                    return;
                }
                if at < size {
                    self.leaders.set(at);
                } else if exit.is_call() {
                    return;
                }
            }
        }
        out.leaving.push(start.plus(size));
    }

    /// Why the instruction cannot stand at `at`, if it cannot.
    fn clash(&self, at: u32, length: u32, instruction: &Instruction) -> Option<Reason> {
        if instruction.is_invalid() || length == 0 {
            Some(Reason::InvalidInstruction)
        } else if self.middles.get(at) || self.starts.any(at + 1, at + length) {
            Some(Reason::OverlappingInstructions)
        } else {
            None
        }
    }

    /// How control leaves the instruction that ends at `at`, unless it just goes on.
    fn exit(&self, instruction: &Instruction, at: u32, start: Pos, size: u32) -> Option<Exit> {
        if instruction.mnemonic() == Mnemonic::Int3 {
            // A breakpoint in the middle of code is passed when its handler returns, also in front of what aligns that; one in
            // front of other padding, or of nothing else, is padding, or a trap that the compiler placed at an end.
            let rest = self.code.bytes(start.plus(at), start.plus(size));
            let (padding, behind) = rest.split_at(padding_length(rest));
            let goes_on = !behind.is_empty() && is_nops(padding);
            return (!goes_on).then_some(Exit::Stop);
        }
        exit_of(instruction, self.code)
    }

    fn follow(&mut self, exit: Exit, start: Pos, size: u32, out: &mut Explored) {
        let (Exit::Branch(target) | Exit::Jump(target)) = exit else {
            return;
        };
        if target >= start && target.since(start) < size {
            self.work.push(target.since(start));
        } else {
            out.leaving.push(target);
        }
    }

    /// Notes the code addresses that an instruction computes.
    fn note_addresses(&self, instruction: &Instruction, out: &mut Explored) {
        if instruction.memory_base() == Register::RIP {
            if instruction.mnemonic() == Mnemonic::Lea {
                let target = Address(instruction.ip_rel_memory_address());
                out.taken.extend(self.code.pos(target));
            }
        } else if !self.code.binary.is_position_independent() {
            out.taken
                .extend(immediate(instruction).and_then(|value| self.code.pos(Address(value))));
        }
    }

    /// Ends blocks at system calls that may come back twice or never; where these end, in order.
    fn end_at_system_calls(&mut self, size: u32) -> Vec<u32> {
        let is_entered = |from, to| self.leaders.any(from, to);
        let calls = self.system_calls.iter();
        let unsure = calls.filter(|call| call.is_unsure(is_entered));
        let mut ends: Vec<u32> = unsure.map(|call| call.end).collect();
        ends.sort_unstable();
        for &end in ends.iter().filter(|&&end| end < size) {
            if self.starts.get(end) {
                self.leaders.set(end);
            }
        }
        ends
    }

    fn cut_into_blocks(&mut self, start: Pos, size: u32, out: &mut Explored) {
        // Where an instruction ends in front of broken bytes, its own exit counts.
        self.exits
            .sort_unstable_by_key(|&(end, exit)| (end, exit == Exit::Broken));
        let unsure = self.end_at_system_calls(size);
        let mut exits = self.exits.iter().copied().peekable();
        let mut leader = self.leaders.next(0, size);
        while leader < size {
            let next = self.leaders.next(leader + 1, size);
            while exits.next_if(|exit| exit.0 <= leader).is_some() {}
            let (end, exit) = match exits.peek() {
                Some(&(end, exit)) if end <= next => (end, exit),
                _ => (next, Exit::Fallthrough),
            };
            if self.starts.get(leader) {
                out.blocks.push(RawBlock {
                    start: start.plus(leader),
                    end: start.plus(end),
                    instructions: self.starts.count(leader, end),
                    exit,
                    forks_or_ends: unsure.binary_search(&end).is_ok(),
                });
            }
            leader = next;
        }
        out.starts = self.starts.clone();
        for list in [&mut out.taken, &mut out.leaving] {
            list.sort_unstable();
            list.dedup();
            list.shrink_to_fit();
        }
        out.blocks.shrink_to_fit();
    }
}

/// The 32- or 64-bit immediate that may be an address, if the instruction has one.
fn immediate(instruction: &Instruction) -> Option<u64> {
    (0..instruction.op_count()).find_map(|operand| match instruction.op_kind(operand) {
        OpKind::Immediate32 | OpKind::Immediate64 | OpKind::Immediate32to64 => {
            Some(instruction.immediate(operand))
        }
        _ => None,
    })
}

/// Whether the instruction gives the stack pointer an address that it states.
fn leads_stack_aside(instruction: &Instruction) -> bool {
    let is_stack = matches!(instruction.op0_register(), Register::RSP | Register::ESP);
    let states = match instruction.mnemonic() {
        Mnemonic::Lea => matches!(
            instruction.memory_base(),
            Register::RIP | Register::EIP | Register::None
        ),
        Mnemonic::Mov => immediate(instruction).is_some(),
        _ => false,
    };
    is_stack && states
}

/// How control leaves the instruction, unless it just goes on.
pub(crate) fn exit_of(instruction: &Instruction, code: &Code<'_>) -> Option<Exit> {
    match instruction.flow_control() {
        FlowControl::Next => (instruction.mnemonic() == Mnemonic::Hlt).then_some(Exit::Stop),
        FlowControl::ConditionalBranch => Some(branch(code, instruction.near_branch_target())),
        FlowControl::XbeginXabortXend => match instruction.code() {
            Opcode::Xbegin_rel16 | Opcode::Xbegin_rel32 => {
                Some(branch(code, instruction.near_branch_target()))
            }
            _ => None,
        },
        FlowControl::UnconditionalBranch => Some(jump(code, instruction.near_branch_target())),
        FlowControl::IndirectBranch => Some(indirect_jump(instruction, code)),
        FlowControl::Return => Some(Exit::Return),
        FlowControl::Call => call(instruction, code),
        FlowControl::IndirectCall => Some(indirect_call(instruction, code)),
        FlowControl::Interrupt => None,
        FlowControl::Exception => Some(Exit::Stop),
    }
}

fn branch(code: &Code<'_>, target: u64) -> Exit {
    match code.destination(Address(target)) {
        Destination::Code(target) => Exit::Branch(target),
        // A conditional tail call: the stub itself is where the edge leads.
        Destination::Import(_) | Destination::Resolved => code
            .pos(Address(target))
            .map_or(Exit::BranchOutside, Exit::Branch),
        Destination::Outside => Exit::BranchOutside,
    }
}

fn jump(code: &Code<'_>, target: u64) -> Exit {
    match code.destination(Address(target)) {
        Destination::Code(target) => Exit::Jump(target),
        Destination::Import(_) | Destination::Resolved => code
            .pos(Address(target))
            .map_or(Exit::JumpOutside, Exit::Jump),
        Destination::Outside => Exit::JumpOutside,
    }
}

fn indirect_jump(instruction: &Instruction, code: &Code<'_>) -> Exit {
    match slot(instruction).and_then(|slot| code.through_slot(slot)) {
        Some(Destination::Code(target)) => Exit::Jump(target),
        Some(Destination::Import(import)) => Exit::JumpImport(import),
        Some(Destination::Resolved) => Exit::JumpResolved,
        Some(Destination::Outside) | None => Exit::JumpIndirect,
    }
}

/// Calls, less `syscall`, `sysenter` and their like, which go on with the next instruction.
fn call(instruction: &Instruction, code: &Code<'_>) -> Option<Exit> {
    if instruction.mnemonic() != Mnemonic::Call || !instruction.is_call_near() {
        return None;
    }
    Some(
        match code.destination(Address(instruction.near_branch_target())) {
            Destination::Code(target) => Exit::Call(target),
            Destination::Import(import) => Exit::CallImport(import),
            Destination::Resolved | Destination::Outside => Exit::CallIndirect,
        },
    )
}

fn indirect_call(instruction: &Instruction, code: &Code<'_>) -> Exit {
    match slot(instruction).and_then(|slot| code.through_slot(slot)) {
        Some(Destination::Code(target)) => Exit::Call(target),
        Some(Destination::Import(import)) => Exit::CallImport(import),
        Some(Destination::Resolved | Destination::Outside) | None => Exit::CallIndirect,
    }
}

/// The 8-byte slot at a fixed address through which the instruction jumps or calls.
fn slot(instruction: &Instruction) -> Option<Address> {
    if instruction.op0_kind() != OpKind::Memory || instruction.memory_index() != Register::None {
        return None;
    }
    match instruction.memory_base() {
        Register::RIP => Some(Address(instruction.ip_rel_memory_address())),
        Register::None if instruction.segment_prefix() == Register::None => {
            Some(Address(instruction.memory_displacement64()))
        }
        _ => None,
    }
}

/// A set of small numbers that is cheap to clear.
#[derive(Clone, Default, Debug)]
pub(crate) struct Bits {
    words: Vec<u64>,
}

impl Bits {
    /// Empties the set and makes room for numbers up to `size` and an instruction beyond.
    fn clear(&mut self, size: u32) {
        self.words.clear();
        self.words.resize(size as usize / 64 + 2, 0);
    }

    /// Whether `bit` is in the set.
    pub(crate) fn get(&self, bit: u32) -> bool {
        self.words
            .get(bit as usize / 64)
            .is_some_and(|word| word >> (bit % 64) & 1 != 0)
    }

    fn set(&mut self, bit: u32) {
        self.words[bit as usize / 64] |= 1 << (bit % 64);
    }

    fn unset(&mut self, bit: u32) {
        self.words[bit as usize / 64] &= !(1 << (bit % 64));
    }

    /// Adds `from..to`, which spans at most 64 numbers (an instruction has at most 15 bytes).
    fn set_range(&mut self, from: u32, to: u32) {
        if from < to {
            let mask = u128::from(u64::MAX >> (64 - (to - from))) << (from % 64);
            let index = from as usize / 64;
            self.words[index] |= mask as u64;
            self.words[index + 1] |= (mask >> 64) as u64;
        }
    }

    fn any(&self, from: u32, to: u32) -> bool {
        self.next(from, to) < to
    }

    /// An empty set for numbers below `size`.
    pub(crate) fn with_size(size: usize) -> Self {
        Self {
            words: vec![0; size / 64 + 1],
        }
    }

    /// Adds `bit`, which must be below the size; whether it is new.
    pub(crate) fn insert(&mut self, bit: u32) -> bool {
        let word = &mut self.words[bit as usize / 64];
        let old = std::mem::replace(word, *word | 1 << (bit % 64));
        old != *word
    }

    /// The smallest member from `from` on, or `size` if none is below it.
    fn next(&self, from: u32, size: u32) -> u32 {
        if from >= size {
            return size;
        }
        let mut index = from as usize / 64;
        let mut word = self.words[index] >> (from % 64) << (from % 64);
        while word == 0 {
            index += 1;
            if index * 64 >= size as usize {
                return size;
            }
            word = self.words[index];
        }
        size.min(
            u32::try_from(index * 64)
                .unwrap_or(size)
                .saturating_add(word.trailing_zeros()),
        )
    }

    /// How many members lie in `from..to`.
    fn count(&self, from: u32, to: u32) -> u32 {
        let (first, last) = (from as usize / 64, to as usize / 64);
        let below = |bit: u32| (1_u64 << (bit % 64)) - 1;
        let whole: u32 = self.words[first..last]
            .iter()
            .map(|word| word.count_ones())
            .sum();
        whole + (self.words[last] & below(to)).count_ones()
            - (self.words[first] & below(from)).count_ones()
    }
}
