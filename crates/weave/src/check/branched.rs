//! The checker of results of which the branch behind the call tells.
//!
//! A mark that stands for a way of a branch, and for a case of a result, is right for both if that case is that way: whoever returns
//! from the call goes through the block behind it to its branch, nobody else comes there, nothing on the way may fault, and the
//! flags on which it branches are those of a comparison with zero of what came back. Two cases that are one way are told
//! apart right behind the branch, where its flags are as it found them.

use std::collections::HashMap;

use iced_x86::{ConditionCode, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, Register};
use tomo_program::Address;
use tomo_wire::predicates::{Kind, Row};

use super::counted::Walk;
use super::predicates::{Act, Came, Claims, Done, Notes, What};
use super::{Flaw, at};
use crate::block::cannot_fault;

/// The branch behind a call, and in which cases of the result it is taken.
struct Branching {
    branch: Address,
    /// By case: negative, zero, positive.
    taken: [bool; 3],
}

/// Registers that hold a result as a whole, and whether the flags are those of a comparison of it with zero.
struct State {
    holding: u32,
    compared: bool,
}

/// Where two cases of a result are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Apart {
    /// Where the module would be at this address, into which only the way leads.
    Start(Address),
    /// Right on the way of this branch when it is taken, or not.
    Way(Address, bool),
}

impl Claims<'_> {
    /// Rows that share the mark of a way are the cases that are that way.
    pub(super) fn check_shared(&self, walk: &mut Walk<'_>) -> Result<(), Flaw> {
        for (own, shared) in &self.shared {
            let site = Address(shared.site.get());
            let branching = self.branching(walk, shared);
            let right = branching.is_some_and(|branching| {
                let taken = own.case == 0;
                let alike = branching.taken.iter().filter(|one| **one == taken).count();
                own.site.get() == branching.branch.0
                    && branching.taken.get(usize::from(shared.case)) == Some(&taken)
                    && alike == 1
            });
            if own.kind() != Some(Kind::Branch) || shared.kind() != Some(Kind::Result) || !right {
                return Err(at(site, "another one's mark does not tell of it"));
            }
        }
        Ok(())
    }

    /// Two cases are told apart by the flags, the first by the mark `first`.
    pub(super) fn check_apart(
        &self,
        walk: &mut Walk<'_>,
        notes: &Notes,
        (act, came): (&Act, Came),
        done: &mut Done,
    ) -> Result<(), Flaw> {
        let wrong = |what| Err(at(act.address, what));
        let What::Apart(first, by_sign) = act.what else {
            return Ok(());
        };
        let rows = self.by_number.get(first as usize..first as usize + 2);
        let Some([one, other]) = rows else {
            return wrong("no two cases are told apart");
        };
        let cases = [usize::from(one.case), usize::from(other.case)];
        let alike = (one.kind(), one.site, one.width) == (other.kind(), other.site, other.width);
        let branching = self.branching(walk, one).filter(|_| alike);
        let Some(branching) = branching.filter(|_| cases[0] < cases[1]) else {
            return wrong("no result is told apart there");
        };
        let taken = branching.taken[cases[0]];
        let alike = branching.taken.iter().filter(|one| **one == taken).count();
        if branching.taken[cases[1]] != taken || alike != 2 || by_sign != (cases[0] == 0) {
            return wrong("two cases are told apart that are not one way");
        }
        let only = self.only_entered_by(Address(one.site.get()), u8::from(!taken));
        let apart = match came {
            Came::Way(copy, branch, way) if (branch, way) == (branching.branch, taken) => {
                done.ways.insert((copy, way, first));
                if !walk.leads.contains(&branch) {
                    done.told.insert((branch, first));
                }
                Apart::Way(branch, way)
            }
            _ if only == Some(act.address) && !notes.disturbed.contains(&act.address) => {
                Apart::Start(act.address)
            }
            _ => return wrong("others come to where a result is told apart"),
        };
        for number in [first, first + 1] {
            if *done.apart.entry(number).or_insert((first, apart)) != (first, apart) {
                return wrong("a result is told apart in two ways");
            }
        }
        Ok(())
    }

    /// Whether two cases are told apart wherever control goes their way.
    pub(super) fn is_told_apart(
        &self,
        walk: &Walk<'_>,
        notes: &Notes,
        done: &Done,
        (first, place): (u32, Apart),
    ) -> bool {
        match place {
            Apart::Start(place) => {
                let copies = notes.copies.get(&place).map_or(&[][..], Vec::as_slice);
                let by_end: HashMap<i64, &Act> =
                    notes.acts.iter().map(|act| (act.end, act)).collect();
                let told = |spot: &i64| {
                    let before = |spot: &i64| {
                        let act = by_end.get(spot)?;
                        // Nobody comes to two places by one way.
                        let came = notes.came.get(spot);
                        let only = matches!(came, Some(Came::Mark(_) | Came::Way(..)));
                        only.then_some(*act)
                    };
                    let acts = std::iter::successors(before(spot), |act| before(&act.spot));
                    acts.take(8)
                        .any(|act| matches!(act.what, What::Apart(number, _) if number == first))
                };
                let here = walk.in_place.contains(&place) && !walk.needless.contains(&place);
                let stays = here && !walk.entrances.contains(&place);
                !stays && !copies.is_empty() && copies.iter().all(told)
            }
            Apart::Way(branch, way) => {
                let mut copies = notes.branches.iter().filter(|copy| copy.1 == branch);
                let told = |copy: &(i64, Address)| done.ways.contains(&(copy.0, way, first));
                let here = walk.in_place.contains(&branch) && !walk.needless.contains(&branch);
                let stays = here && !walk.entrances.contains(&branch);
                let leads = way && walk.leads.contains(&branch);
                (leads || !stays) && copies.all(told)
            }
        }
    }

    /// How the branch at the end of the block behind a call depends on what came back.
    fn branching(&self, walk: &mut Walk<'_>, row: &Row) -> Option<Branching> {
        let site = Address(row.site.get());
        if row.kind() != Some(Kind::Result) || self.arrives_otherwise(walk, site, true) {
            return None;
        }
        let block = self.graphs.block_at(site)?;
        if block.address() != site {
            return None;
        }
        let bytes = u32::from(row.bits() / 8);
        let mut state = State {
            holding: 1,
            compared: false,
        };
        let mut here = site;
        loop {
            let instruction = walk.original(here)?.instruction;
            let next = here.wrapping_add(instruction.len() as u64);
            if next == block.range().end() {
                let branches = instruction.is_jcc_short() || instruction.is_jcc_near();
                let taken = taken_in(instruction.condition_code())?;
                return (branches && state.compared).then_some(Branching {
                    branch: here,
                    taken,
                });
            }
            if !cannot_fault(&instruction) {
                return None;
            }
            state = state.behind(&instruction, bytes, &mut walk.factory);
            here = next;
        }
    }
}

/// In which cases a branch with this condition is taken behind a comparison with zero: no carry, no overflow.
fn taken_in(condition: ConditionCode) -> Option<[bool; 3]> {
    let flags = [(false, true), (true, false), (false, false)];
    let holds = |(zero, sign): (bool, bool)| match condition {
        ConditionCode::e | ConditionCode::be => Some(zero),
        ConditionCode::ne | ConditionCode::a => Some(!zero),
        ConditionCode::s | ConditionCode::l => Some(sign),
        ConditionCode::ns | ConditionCode::ge => Some(!sign),
        ConditionCode::le => Some(zero || sign),
        ConditionCode::g => Some(!zero && !sign),
        _ => None,
    };
    let [negative, zero, positive] = flags.map(holds);
    Some([negative?, zero?, positive?])
}

impl State {
    fn has(&self, register: Register, bytes: u32) -> bool {
        let high = [Register::AH, Register::BH, Register::CH, Register::DH].contains(&register);
        let number = register.full_register().number();
        register.is_gpr()
            && !high
            && register.size() as u32 >= bytes
            && self.holding >> number & 1 != 0
    }

    fn behind(&self, one: &Instruction, bytes: u32, factory: &mut InstructionInfoFactory) -> Self {
        let left = one.op0_register();
        let whole = self.has(left, bytes) && left.size() as u32 == bytes;
        let against = match one.mnemonic() {
            Mnemonic::Test => one.op1_register() == left,
            Mnemonic::Cmp => one.op1_register() == Register::None && one.immediate(1) == 0,
            _ => false,
        };
        if one.op_count() == 2 && whole && against {
            return Self {
                compared: true,
                ..*self
            };
        }
        let mut holding = self.holding;
        for used in factory.info(one).used_registers() {
            let register = used.register();
            if register.is_gpr() && !matches!(used.access(), OpAccess::Read | OpAccess::CondRead) {
                holding &= !(1 << register.full_register().number());
            }
        }
        // What is written of a register in fewer than four bytes leaves the rest of it.
        if one.mnemonic() == Mnemonic::Mov
            && left.is_gpr()
            && self.has(one.op1_register(), bytes.max(4))
        {
            holding |= 1 << left.full_register().number();
        }
        Self {
            holding,
            compared: self.compared && one.rflags_modified() == 0,
        }
    }
}
