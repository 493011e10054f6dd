//! Which registers a called function leaves as they are.
//!
//! The System V ABI lets a function change nine registers. But a compiler that knows the callee keeps values in those of them that
//! it does not write (gcc's `-fipa-ra`), so a table's base may wait in one over a call. It is believed only where it is proven: all that
//! control can reach from the callee's entry until it is back is known from the bytes alone, and nothing there writes the register.

use iced_x86::{
    Decoder, DecoderOptions, Instruction, InstructionInfoFactory, InstructionInfoOptions, Mnemonic,
    OpKind, Register, UsedMemory,
};
use rustc_hash::FxHashMap;

use super::effect::{RSP, number, writes};
use crate::analyse::code::Pos;
use crate::analyse::explore::Exit;
use crate::analyse::state::{BlockRef, State};

/// Blocks after which a callee is too large to be looked through.
const MOST_BLOCKS: usize = 64;

/// The registers, a bit each, that a call of what starts at `callee` certainly keeps.
pub(super) fn kept(state: &State<'_>, callee: Pos) -> u16 {
    let mut walk = Walk {
        state,
        info: InstructionInfoFactory::new(),
        depths: FxHashMap::default(),
        work: Vec::new(),
        written: 0,
    };
    walk.all_from(callee).map_or(0, |()| !walk.written)
}

struct Walk<'s, 'a> {
    state: &'s State<'a>,
    info: InstructionInfoFactory,
    /// By block how far above the stack pointer the return address lies where the block starts.
    depths: FxHashMap<BlockRef, i64>,
    work: Vec<BlockRef>,
    written: u16,
}

impl Walk<'_, '_> {
    /// Walks through everything; `None` if control may come to what is not known.
    fn all_from(&mut self, callee: Pos) -> Option<()> {
        self.enter(callee, 0)?;
        while let Some(at) = self.work.pop() {
            let depth = self.pass(at, *self.depths.get(&at)?)?;
            self.leave(at, depth)?;
        }
        Some(())
    }

    fn enter(&mut self, target: Pos, depth: i64) -> Option<()> {
        let near = u32::try_from(self.state.find(target)?).ok()?;
        let at = self.state.block_at(target, near)?;
        match self.depths.insert(at, depth) {
            None => self.work.push(at),
            Some(before) => (before == depth).then_some(())?,
        }
        (self.depths.len() <= MOST_BLOCKS).then_some(())
    }

    /// Queues what control comes to behind the block.
    fn leave(&mut self, at: BlockRef, depth: i64) -> Option<()> {
        let block = self.state.block(at);
        match block.exit {
            Exit::Fallthrough => self.enter(block.end, depth),
            Exit::Branch(target) => {
                self.enter(target, depth)?;
                self.enter(block.end, depth)
            }
            Exit::Jump(target) => self.enter(target, depth),
            Exit::Call(_) | Exit::CallImport(_)
                if self.state.landing_pad(at.fragment, block.end).is_some() =>
            {
                None
            }
            Exit::Call(target) => {
                self.enter(target, 0)?;
                self.enter(block.end, depth)
            }
            Exit::CallImport(import) => {
                (!self.state.tables.code.import_returns(import)).then_some(())
            }
            Exit::Return => (depth == 0).then_some(()),
            Exit::Stop => Some(()),
            _ => None,
        }
    }

    /// Notes what the block writes; how far above the stack pointer the return address lies behind it.
    fn pass(&mut self, at: BlockRef, mut depth: i64) -> Option<i64> {
        let (code, block) = (self.state.tables.code, self.state.block(at));
        let bytes = code.bytes(block.start, block.end);
        let ip = code.address(block.start).0;
        for instruction in &mut Decoder::with_ip(64, bytes, ip, DecoderOptions::NONE) {
            if instruction.is_call_near() || matches!(instruction.mnemonic(), Mnemonic::Ret) {
                // What it does to the stack is undone, or is the end.
                (instruction.op_count() == u32::from(instruction.is_call_near())).then_some(())?;
                continue;
            }
            let moves_stack = self.note_writes(&instruction, depth)?;
            depth += if moves_stack {
                pushed(&instruction)?
            } else {
                0
            };
            (depth >= 0).then_some(())?;
        }
        Some(depth)
    }

    /// Notes the registers that an instruction writes; whether the stack pointer is one. `None` where it may write over the return
    /// address, or asks the system.
    fn note_writes(&mut self, instruction: &Instruction, depth: i64) -> Option<bool> {
        let asks = [Mnemonic::Syscall, Mnemonic::Sysenter, Mnemonic::Int];
        if asks.contains(&instruction.mnemonic()) {
            return None;
        }
        let info = self
            .info
            .info_options(instruction, InstructionInfoOptions::NONE);
        let used = info.used_registers().iter();
        let written = used.filter(|used| writes(used.access()));
        let written = written.filter_map(|used| number(used.register().full_register()));
        let written = written.fold(0, |all, number| all | 1 << number);
        self.written |= written;
        let is_push = instruction.mnemonic() == Mnemonic::Push;
        let mut stores = info.used_memory().iter();
        let is_apart = |store: &UsedMemory| is_push || is_below(store, depth);
        stores
            .all(|store| !writes(store.access()) || is_apart(store))
            .then_some(written >> RSP & 1 != 0)
    }
}

/// Whether a store by the stack pointer is below the return address; others are not meant for it.
fn is_below(store: &UsedMemory, depth: i64) -> bool {
    let size = i64::try_from(store.memory_size().size()).unwrap_or(i64::MAX);
    let end = store.displacement().cast_signed().checked_add(size);
    let is_plain = store.index() == Register::None && size > 0;
    store.base() != Register::RSP || is_plain && end.is_some_and(|end| end <= depth)
}

/// By how much an instruction that writes the stack pointer lowers it; `None` if that is not known.
fn pushed(instruction: &Instruction) -> Option<i64> {
    let register = instruction.op0_register();
    let number = || {
        let is_number = instruction.op1_kind() == OpKind::Immediate8to64
            || instruction.op1_kind() == OpKind::Immediate32to64;
        is_number.then(|| instruction.immediate(1).cast_signed())
    };
    match instruction.mnemonic() {
        Mnemonic::Push => Some(-i64::from(instruction.stack_pointer_increment())),
        Mnemonic::Pop if register.is_gpr64() && register != Register::RSP => Some(-8),
        Mnemonic::Sub if register == Register::RSP => number(),
        Mnemonic::Add if register == Register::RSP => Some(-number()?),
        _ => None,
    }
}
