//! Results of which the branch behind the call tells.
//!
//! Callers mostly look at once at what a call returned: `test eax, eax; jne`. Then a way of the branch is one or two of the
//! result's cases. What marks a way that is one case tells of that case; on a way that is two of them the flags of the
//! comparison are still there, and which of the two it is takes a branch by sign, or by zero (`staying/split.rs`). So nothing
//! need be done behind the call, and on many ways nobody ever comes to where something is.
//!
//! That takes that nothing between the call's return and the branch may fault, and that the branch looks at a comparison with
//! zero of all bits that count.

use iced_x86::{
    ConditionCode, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register,
};

use crate::block::cannot_fault;
use crate::staying::code::Code;

/// Some of a result's cases: negative, zero, positive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cases(u8);

impl Cases {
    const NEGATIVE: u8 = 1;
    const ZERO: u8 = 2;
    const POSITIVE: u8 = 4;

    pub(super) fn has(self, case: u8) -> bool {
        self.0 >> case & 1 != 0
    }

    /// How many.
    pub(super) fn count(self) -> u32 {
        self.0.count_ones()
    }

    /// The first of them.
    pub(super) fn first(self) -> u8 {
        self.0.trailing_zeros() as u8
    }

    /// In which of them a condition holds that looks at a comparison of the result with zero.
    fn in_which(condition: ConditionCode) -> Option<Self> {
        Some(Self(match condition {
            ConditionCode::e | ConditionCode::be => Self::ZERO,
            ConditionCode::ne | ConditionCode::a => Self::NEGATIVE | Self::POSITIVE,
            ConditionCode::s | ConditionCode::l => Self::NEGATIVE,
            ConditionCode::ns | ConditionCode::ge => Self::ZERO | Self::POSITIVE,
            ConditionCode::le => Self::NEGATIVE | Self::ZERO,
            ConditionCode::g => Self::POSITIVE,
            _ => return None,
        }))
    }

    fn others(self) -> Self {
        Self(!self.0 & 7)
    }
}

/// Which cases of a result of so many bits the ways of the branch are at the end of the block behind its call: taken, and
/// not.
pub(super) fn ways(behind: &Code<'_>, bits: u8) -> Option<[Cases; 2]> {
    let (branch, before) = behind.instructions().split_last()?;
    let mut factory = InstructionInfoFactory::new();
    let mut following = Following {
        bytes: usize::from(bits / 8),
        holding: vec![Register::RAX],
        compared: false,
    };
    for one in before {
        if !cannot_fault(one) {
            return None;
        }
        following.step(one, &mut factory);
    }
    let branches = branch.is_jcc_short() || branch.is_jcc_near();
    if !branches || !following.compared {
        return None;
    }
    let taken = Cases::in_which(branch.condition_code())?;
    Some([taken, taken.others()])
}

/// Where the result is.
struct Following {
    /// How much of it counts.
    bytes: usize,
    /// Registers that have it.
    holding: Vec<Register>,
    /// Whether the flags are those of its comparison with zero.
    compared: bool,
}

impl Following {
    fn step(&mut self, one: &Instruction, factory: &mut InstructionInfoFactory) {
        if self.compares(one) {
            self.compared = true;
            return;
        }
        self.compared &= one.rflags_modified() == 0;
        let copies = one.mnemonic() == Mnemonic::Mov
            && one.op1_kind() == OpKind::Register
            && self.has(one.op1_register(), self.bytes.max(4));
        for used in factory.info(one).used_registers() {
            let reads = matches!(used.access(), OpAccess::Read | OpAccess::CondRead);
            if !reads {
                let written = used.register().full_register();
                self.holding.retain(|held| *held != written);
            }
        }
        if copies {
            self.holding.push(one.op0_register().full_register());
        }
    }

    /// Whether a register has the result, and at least so many bytes.
    fn has(&self, register: Register, bytes: usize) -> bool {
        let high = matches!(
            register,
            Register::AH | Register::BH | Register::CH | Register::DH
        );
        !high && register.size() >= bytes && self.holding.contains(&register.full_register())
    }

    fn compares(&self, one: &Instruction) -> bool {
        let register = one.op0_register();
        let all = one.op0_kind() == OpKind::Register
            && register.size() == self.bytes
            && self.has(register, self.bytes);
        all && match one.mnemonic() {
            Mnemonic::Test => one.op1_kind() == OpKind::Register && one.op1_register() == register,
            Mnemonic::Cmp => one.op1_kind() != OpKind::Register && one.immediate(1) == 0,
            _ => false,
        }
    }
}
