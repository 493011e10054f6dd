//! What one instruction does to registers, memory and flags, as far as jump tables need it.
//!
//! Whatever is not modelled is said to be unknown: a register that an instruction writes in an
//! unmodelled way becomes opaque, so the slice can miss a table but never invent one.

use iced_x86::{
    Instruction, InstructionInfoFactory, InstructionInfoOptions, Mnemonic, OpAccess, OpKind,
    Register, RflagsBits,
};

use super::value::{Atom, Linear};

/// `rsp` in [`Atom::Register`].
pub(crate) const RSP: u8 = 4;
/// `rbp` in [`Atom::Register`].
pub(crate) const RBP: u8 = 5;
/// Registers that a called function may change: rax, rcx, rdx, rsi, rdi, r8 to r11.
const CALLER_SAVED: [u8; 9] = [0, 1, 2, 6, 7, 8, 9, 10, 11];

/// What an instruction does, all in terms of the state before it.
#[derive(Debug, Default)]
pub(crate) struct Effect {
    /// Registers with their new values; `None` is unknown.
    pub(crate) registers: Vec<(u8, Option<Linear>)>,
    /// What it writes to memory.
    pub(crate) store: Option<Store>,
    /// Whether anything outside the stack may change.
    pub(crate) writes_anywhere: bool,
    /// Whether anything at all may change: a write of unknown or unusual size.
    pub(crate) writes_everything: bool,
    /// Whether it is a call.
    pub(crate) is_call: bool,
    /// What the flags tell afterwards.
    pub(crate) flags: Flags,
    /// A conditional move: the value of the register if the condition holds.
    pub(crate) conditional: Option<(u8, Linear, iced_x86::ConditionCode)>,
}

/// A write to memory.
#[derive(Debug)]
pub(crate) struct Store {
    /// Where.
    pub(crate) address: Linear,
    /// How many bytes.
    pub(crate) size: u8,
    /// What, if known.
    pub(crate) value: Option<Linear>,
}

/// What the flags tell after an instruction.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) enum Flags {
    /// What they told before.
    #[default]
    Kept,
    /// How `left` compares with a number, both `bits` wide.
    Compare {
        /// Left operand.
        left: Linear,
        /// Right operand.
        right: u64,
        /// Their width.
        bits: u8,
    },
    /// Nothing that is understood.
    Unknown,
}

/// Finds effects; keeps the decoder library's scratch memory.
pub(crate) struct Effects {
    info: InstructionInfoFactory,
}

impl Effects {
    /// A new finder.
    pub(crate) fn new() -> Self {
        Self {
            info: InstructionInfoFactory::new(),
        }
    }

    /// What `instruction` does.
    pub(crate) fn of(&mut self, instruction: &Instruction) -> Effect {
        let mut effect = Effect {
            flags: flags(instruction),
            ..Effect::default()
        };
        if instruction.is_call_near() || instruction.is_call_near_indirect() {
            effect
                .registers
                .extend(CALLER_SAVED.map(|register| (register, None)));
            effect.flags = Flags::Unknown;
            effect.writes_anywhere = true;
            effect.is_call = true;
            return effect;
        }
        if !modelled(instruction, &mut effect) {
            self.unmodelled(instruction, &mut effect);
        }
        effect
    }

    /// Everything that the instruction writes becomes unknown.
    fn unmodelled(&mut self, instruction: &Instruction, effect: &mut Effect) {
        let info = self
            .info
            .info_options(instruction, InstructionInfoOptions::NONE);
        for used in info.used_registers() {
            if writes(used.access())
                && let Some(number) = number(used.register().full_register())
            {
                // What is written to 32 bits, which is a write of 64, has zeros above them.
                let first = instruction.op0_register();
                let is_first = first.is_gpr32() && first.full_register() == used.register();
                let is_short = is_first && used.access() == OpAccess::Write;
                let unknown = Atom::Opaque(instruction.ip() << 4 | u64::from(number));
                let value = is_short.then(|| Linear::atom(unknown).zero_extended(32));
                effect.registers.push((number, value));
            }
        }
        if matches!(
            instruction.mnemonic(),
            Mnemonic::Syscall | Mnemonic::Sysenter | Mnemonic::Int
        ) {
            // The system's answer, and what it writes.
            effect.registers.push((0, None));
            effect.writes_anywhere = true;
        }
        for used in info.used_memory() {
            if writes(used.access()) {
                let size = u8::try_from(used.memory_size().size()).unwrap_or(0);
                if !(1..=64).contains(&size) {
                    effect.writes_everything = true;
                    continue;
                }
                match address(instruction).filter(|_| !instruction.is_string_instruction()) {
                    Some(address) => {
                        effect.store = Some(Store {
                            address,
                            size,
                            value: None,
                        })
                    }
                    None => effect.writes_anywhere = true,
                }
            }
        }
    }
}

pub(super) fn writes(access: OpAccess) -> bool {
    matches!(
        access,
        OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite
    )
}

/// The number of a 64-bit general-purpose register.
pub(super) fn number(register: Register) -> Option<u8> {
    register
        .is_gpr64()
        .then(|| u8::try_from(register.number()).unwrap_or(0))
}

/// The address of the memory operand, as a value before the instruction.
pub(crate) fn address(instruction: &Instruction) -> Option<Linear> {
    if instruction.segment_prefix() != Register::None {
        return None;
    }
    if instruction.is_ip_rel_memory_operand() {
        return Some(Linear::constant(instruction.ip_rel_memory_address()));
    }
    let mut sum = Linear::constant(instruction.memory_displacement64());
    for (register, scale) in [
        (instruction.memory_base(), 1),
        (instruction.memory_index(), instruction.memory_index_scale()),
    ] {
        if register != Register::None {
            sum = sum.plus(&Linear::register(number(register)?), u64::from(scale));
        }
    }
    Some(sum)
}

/// The value of an operand (zero-extended), and its width in bits.
pub(crate) fn operand(instruction: &Instruction, index: u32) -> Option<(Linear, u8)> {
    match instruction.op_kind(index) {
        OpKind::Register => {
            let register = instruction.op_register(index);
            let full = number(register.full_register())?;
            if matches!(
                register,
                Register::AH | Register::BH | Register::CH | Register::DH
            ) {
                return None;
            }
            let bits = u8::try_from(register.size() * 8).ok()?;
            Some((Linear::register(full).zero_extended(bits), bits))
        }
        OpKind::Memory => {
            let size = u8::try_from(instruction.memory_size().size())
                .ok()
                .filter(|size| matches!(size, 1 | 2 | 4 | 8))?;
            Some((
                Linear::atom(Atom::Load {
                    address: address(instruction)?,
                    size,
                    stale: false,
                }),
                size * 8,
            ))
        }
        kind if is_immediate(kind) => Some((Linear::constant(instruction.immediate(index)), 64)),
        _ => None,
    }
}

fn is_immediate(kind: OpKind) -> bool {
    matches!(
        kind,
        OpKind::Immediate8
            | OpKind::Immediate16
            | OpKind::Immediate32
            | OpKind::Immediate64
            | OpKind::Immediate8to16
            | OpKind::Immediate8to32
            | OpKind::Immediate8to64
            | OpKind::Immediate32to64
    )
}

/// Models the instruction; `false` if it cannot.
fn modelled(instruction: &Instruction, effect: &mut Effect) -> bool {
    match instruction.mnemonic() {
        Mnemonic::Nop
        | Mnemonic::Endbr64
        | Mnemonic::Cmp
        | Mnemonic::Test
        | Mnemonic::Jmp
        | Mnemonic::Bt => true,
        Mnemonic::Push => push(instruction, effect),
        Mnemonic::Pop => pop(instruction, effect),
        Mnemonic::Leave => {
            let saved = Linear::atom(Atom::Load {
                address: Linear::register(RBP),
                size: 8,
                stale: false,
            });
            effect
                .registers
                .push((RSP, Some(Linear::register(RBP).plus_constant(8))));
            effect.registers.push((RBP, Some(saved)));
            true
        }
        _ if instruction.is_jcc_short_or_near() => true,
        _ if instruction.op_count() > 0 && is_cmov(instruction) => {
            conditional_move(instruction, effect)
        }
        _ => match result(instruction) {
            Some(value) => assign(instruction, value, effect),
            None => false,
        },
    }
}

fn is_cmov(instruction: &Instruction) -> bool {
    instruction.condition_code() != iced_x86::ConditionCode::None
        && instruction.op_count() == 2
        && instruction.op0_kind() == OpKind::Register
        && instruction.op0_register().is_gpr()
}

fn conditional_move(instruction: &Instruction, effect: &mut Effect) -> bool {
    let (Some((source, _)), Some((_, bits))) = (operand(instruction, 1), operand(instruction, 0))
    else {
        return false;
    };
    let Some(target) = number(instruction.op0_register().full_register()) else {
        return false;
    };
    if bits < 32 {
        return false;
    }
    // The 32-bit form clears the upper half whether or not it moves.
    effect
        .registers
        .push((target, Some(Linear::register(target).zero_extended(bits))));
    effect.conditional = Some((
        target,
        source.zero_extended(bits),
        instruction.condition_code(),
    ));
    true
}

fn push(instruction: &Instruction, effect: &mut Effect) -> bool {
    let below = Linear::register(RSP).plus_constant(8_u64.wrapping_neg());
    let value = operand(instruction, 0).map(|(value, _)| value);
    effect.registers.push((RSP, Some(below.clone())));
    effect.store = Some(Store {
        address: below,
        size: 8,
        value,
    });
    instruction.stack_pointer_increment() == -8
}

fn pop(instruction: &Instruction, effect: &mut Effect) -> bool {
    let top = Linear::atom(Atom::Load {
        address: Linear::register(RSP),
        size: 8,
        stale: false,
    });
    effect
        .registers
        .push((RSP, Some(Linear::register(RSP).plus_constant(8))));
    match (instruction.op0_kind(), number(instruction.op0_register())) {
        (OpKind::Register, Some(target)) => effect.registers.push((target, Some(top))),
        _ => effect.registers.clear(),
    }
    instruction.stack_pointer_increment() == 8 && !effect.registers.is_empty()
}

/// The value that the instruction gives its first operand, if that is all it does.
fn result(instruction: &Instruction) -> Option<Linear> {
    let source = |index| operand(instruction, index).map(|(value, _)| value);
    let width = |index| operand(instruction, index).map(|(_, bits)| bits);
    match instruction.mnemonic() {
        Mnemonic::Mov | Mnemonic::Movzx => source(1),
        Mnemonic::Movsx | Mnemonic::Movsxd => Some(source(1)?.sign_extended(width(1)?)),
        Mnemonic::Cdqe => Some(Linear::register(0).sign_extended(32)),
        Mnemonic::Cwde => Some(Linear::register(0).sign_extended(16)),
        Mnemonic::Lea => address(instruction),
        Mnemonic::Add => Some(source(0)?.plus(&source(1)?, 1)),
        Mnemonic::Sub if is_same_register(instruction) => Some(Linear::constant(0)),
        Mnemonic::Sub => Some(source(0)?.plus(&source(1)?, u64::MAX)),
        Mnemonic::Inc => Some(source(0)?.plus_constant(1)),
        Mnemonic::Dec => Some(source(0)?.plus_constant(u64::MAX)),
        Mnemonic::Neg => Some(source(0)?.times(u64::MAX)),
        Mnemonic::Not => Some(source(0)?.times(u64::MAX).plus_constant(u64::MAX)),
        Mnemonic::Xor if is_same_register(instruction) => Some(Linear::constant(0)),
        // With a constant of which no bit can be set in the other operand, `or` would be a sum; it
        // does not occur in table jumps, and neither does any other `xor`.
        Mnemonic::And => Some(source(0)?.masked(source(1)?.as_constant()?)),
        Mnemonic::Shl | Mnemonic::Sal => {
            Some(source(0)?.times(1_u64.checked_shl(shift_count(instruction)?)?))
        }
        Mnemonic::Shr => {
            Some(source(0)?.shifted_right(u8::try_from(shift_count(instruction)?).ok()?))
        }
        Mnemonic::Imul if instruction.op_count() == 3 => {
            Some(source(1)?.times(source(2)?.as_constant()?))
        }
        _ => None,
    }
}

fn is_same_register(instruction: &Instruction) -> bool {
    instruction.op0_kind() == OpKind::Register
        && instruction.op1_kind() == OpKind::Register
        && instruction.op0_register() == instruction.op1_register()
}

fn shift_count(instruction: &Instruction) -> Option<u32> {
    let (_, bits) = operand(instruction, 0)?;
    let count = u32::try_from(operand(instruction, 1)?.0.as_constant()?).ok()?;
    (count < u32::from(bits)).then_some(count)
}

/// Gives the first operand (or `rax` where that is implied) its new value.
fn assign(instruction: &Instruction, value: Linear, effect: &mut Effect) -> bool {
    if matches!(instruction.mnemonic(), Mnemonic::Cdqe | Mnemonic::Cwde) {
        let wide = instruction.mnemonic() == Mnemonic::Cdqe;
        effect
            .registers
            .push((0, Some(if wide { value } else { value.zero_extended(32) })));
        return true;
    }
    if instruction.op0_kind() == OpKind::Memory {
        let Some(address) = address(instruction) else {
            return false;
        };
        let size = u8::try_from(instruction.memory_size().size()).unwrap_or(u8::MAX);
        effect.store = Some(Store {
            address,
            size,
            value: Some(value.zero_extended(size.saturating_mul(8))),
        });
        return true;
    }
    let register = instruction.op0_register();
    let Some(target) = number(register.full_register()) else {
        return false;
    };
    let value = match register.size() {
        8 => Some(value),
        4 => Some(value.zero_extended(32)),
        // The upper bits stay; as an opaque multiple they vanish where only the lower ones count.
        size @ (1 | 2)
            if !matches!(
                register,
                Register::AH | Register::BH | Register::CH | Register::DH
            ) =>
        {
            let bits = if size == 1 { 8 } else { 16 };
            let upper = Linear::atom(Atom::Opaque(instruction.ip())).times(1 << bits);
            Some(upper.plus(&value.zero_extended(bits), 1))
        }
        _ => None,
    };
    effect.registers.push((target, value));
    true
}

/// What the flags tell after the instruction.
fn flags(instruction: &Instruction) -> Flags {
    if instruction.rflags_modified()
        & (RflagsBits::CF | RflagsBits::ZF | RflagsBits::SF | RflagsBits::OF)
        == RflagsBits::NONE
    {
        return Flags::Kept;
    }
    let left = operand(instruction, 0);
    match (instruction.mnemonic(), left) {
        (Mnemonic::Cmp | Mnemonic::Sub, Some((left, bits))) => {
            match operand(instruction, 1).and_then(|right| right.0.as_constant()) {
                Some(right) => Flags::Compare { left, right, bits },
                None => Flags::Unknown,
            }
        }
        (Mnemonic::Test, Some((left, bits))) if is_same_register(instruction) => Flags::Compare {
            left,
            right: 0,
            bits,
        },
        _ => Flags::Unknown,
    }
}
