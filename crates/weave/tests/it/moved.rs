//! Where a thread in an image's trampolines is: what is said to be the module's own must be that, what was added must stand in front of
//! the instruction that it is said to, on all of its ways, and what may fault must be the module's. Held against a decoder of its own.

use std::collections::HashMap;

use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, OpKind, Register};
use tomo_program::{Address, Binary};
use tomo_wire::image::Image;
use tomo_wire::moved::{Place, Run, copy_of, origin};

use crate::woven::Program;

/// An image's trampolines, and the program's own code.
struct Held<'h> {
    name: &'h str,
    binary: Binary<'h>,
    runs: &'h [Run],
    code: &'h [u8],
    /// Where the module's text starts, and where the trampolines are, as stated.
    first: u64,
    start: u64,
}

impl Held<'_> {
    fn decoded(bytes: &[u8], address: u64) -> Instruction {
        Decoder::with_ip(64, bytes, address, DecoderOptions::NONE).decode()
    }

    fn executed(&self, offset: u32) -> Instruction {
        let bytes = &self.code[offset as usize..];
        Self::decoded(bytes, self.start.wrapping_add(offset.into()))
    }

    fn original(&self, address: u64) -> Instruction {
        let bytes = self.binary.code_at(Address(address));
        Self::decoded(bytes.expect("the module's code"), address)
    }

    /// What is said of an address in the trampolines, as an address of the module; of another one that it is itself.
    fn said(&self, address: u64) -> Option<u64> {
        let offset = address.wrapping_sub(self.start);
        match offset < self.code.len() as u64 {
            true => {
                origin(self.runs, offset as u32).map(|origin| self.first + u64::from(origin.from))
            }
            false => Some(address),
        }
    }

    /// Behind unconditional jumps of the module, which may have been left out.
    fn behind_jumps(&self, mut address: u64) -> u64 {
        while self.binary.code_at(Address(address)).is_some() {
            match self.original(address) {
                jump if jump.is_jmp_short_or_near() => address = jump.near_branch_target(),
                _ => break,
            }
        }
        address
    }

    /// Control goes on at `address`, where it must be in front of `next`.
    fn leads(&self, address: u64, next: u64) {
        let Some(said) = self.said(address) else {
            return;
        };
        assert!(
            said == next || self.behind_jumps(said) == self.behind_jumps(next),
            "{}: {address:#x} is said to be in front of {said:#x}, and comes from one in front of {next:#x}",
            self.name
        );
    }

    /// The module's own from the places `from` to `end` on, said to be those at `first` and to `reach` so far behind; whether control may
    /// run on behind them.
    fn own(&self, (from, end): (u32, u32), first: u64, reach: u32) -> bool {
        let (mut offset, mut runs_on) = (from, false);
        let (mut at, mut last) = (first, first);
        while offset < end {
            let (executed, original) = (self.executed(offset), self.original(at));
            last = at;
            assert!(
                same(&executed, &original),
                "{}: {:?} at {offset:#x} is not {:?} at {at:#x}",
                self.name,
                executed.code(),
                original.code()
            );
            offset += executed.len() as u32;
            runs_on = falls_through(&executed);
            if offset == end && runs_on {
                let behind = at + original.len() as u64;
                self.leads(self.start.wrapping_add(offset.into()), behind);
            }
            // Behind a jump that became longer what was never executed may be left out.
            let same_length = executed.len() == original.len();
            assert!(
                same_length || offset == end || !runs_on,
                "{}: {offset:#x}",
                self.name
            );
            at += executed.len() as u64;
        }
        assert_eq!(offset, end, "{}", self.name);
        assert_eq!(last, first + u64::from(reach), "{}: {from:#x}", self.name);
        runs_on
    }

    /// Of some of the runs: where their last instruction and the one behind it are said to be executed, if they are elsewhere, they are.
    fn are_copied(&self) {
        /// All runs are looked at for each.
        const SOME: usize = 1000;
        let step = self.runs.len().div_ceil(SOME).max(1);
        for run in self.runs.iter().step_by(step) {
            if let Place::Own(at, reach) = run.place() {
                let last = self.first + u64::from(at) + u64::from(reach);
                self.is_copied(last);
                let behind = last + self.original(last).len() as u64;
                if self.binary.code_at(Address(behind)).is_some() {
                    self.is_copied(behind);
                }
            }
        }
    }

    /// Where an instruction of the module is said to be executed, if it is elsewhere, it is.
    fn is_copied(&self, address: u64) {
        let copy = copy_of(self.runs, address.wrapping_sub(self.first) as u32);
        let executed = copy.map(|copy| self.executed(copy));
        let is_same = executed.is_none_or(|executed| same(&executed, &self.original(address)));
        assert!(is_same, "{}: {copy:x?} is not {address:#x}", self.name);
    }

    /// What was added from the places `from` to `end` on, said to be in front of `next`: it is the weaver's, and goes on there.
    fn added(&self, from: u32, end: u32, next: u64, added: Added) {
        let mut offset = from;
        while offset < end {
            let one = self.executed(offset);
            let own = !one.is_invalid() && is_own(&one, added);
            assert!(
                own,
                "{}: {:?} at {offset:#x} is not named",
                self.name,
                one.code()
            );
            offset += one.len() as u32;
            if one.is_jcc_short_or_near() || one.is_jmp_short_or_near() && added != Added::Chains {
                self.leads(one.near_branch_target(), next);
            }
            if offset == end && falls_through(&one) {
                self.leads(self.start.wrapping_add(offset.into()), next);
            }
        }
        assert_eq!(offset, end, "{}", self.name);
    }
}

/// How much lower than the program's the stack pointer is, where that is known: now, and where branches lead.
#[derive(Default)]
struct Depth {
    now: Option<i64>,
    there: HashMap<u64, i64>,
}

impl Depth {
    /// What was added from the places `from` to `end` on, where this is said to be the depth.
    fn follow(&mut self, held: &Held<'_>, (from, end): (u32, u32), said: Option<u32>) {
        let mut offset = from;
        while offset < end {
            let one = held.executed(offset);
            self.now = self.now.or_else(|| self.there.remove(&one.ip()));
            if let Some(said) = said {
                // Where nothing leads from here something else begins.
                let depth = *self.now.get_or_insert(0);
                assert_eq!(depth, i64::from(said), "{}: {offset:#x}", held.name);
            }
            let lea = one.code() == Code::Lea_r64_m && one.op0_register() == Register::RSP;
            self.now = self.now.map(|depth| match lea {
                true => depth - one.memory_displacement64().cast_signed(),
                // What a routine is told it leaves where it is.
                false if one.is_call_near_indirect() => depth,
                false => depth - i64::from(one.stack_pointer_increment()),
            });
            let target = Some(one.near_branch_target()).filter(|target| *target > one.ip());
            self.there.extend(target.zip(self.now));
            if one.is_invalid() || one.is_jmp_short_or_near() {
                self.now = None;
            }
            offset += one.len().max(1) as u32;
        }
    }
}

/// Holds what is said of what is executed elsewhere against the `image` of a program, to which this is added; gives how much is the
/// program's own.
pub(crate) fn prove(name: &str, program: &Program, image: &[u8], added: Added) -> usize {
    let header = Image::read(image, image.len() as u64).expect("an image");
    let runs = header.moved(image).expect("where it comes from");
    let first = header.regions()[0].address.get();
    let at = header.trampolines.get() as usize;
    let held = Held {
        name,
        binary: program.binary(),
        runs,
        code: &image[at..at + header.trampolines_length.get() as usize],
        first,
        start: first.wrapping_add_signed(header.distance.get()),
    };
    let last = runs.last().map(Run::place);
    assert!(last.is_none_or(|last| last == Place::Nowhere), "{name}");
    held.are_copied();
    let (mut own, mut depth) = (0, Depth::default());
    for pair in runs.windows(2) {
        let (from, end) = (pair[0].offset.get(), pair[1].offset.get());
        let place = pair[0].place();
        match place {
            Place::Own(at, reach) => {
                let runs_on = held.own((from, end), first + u64::from(at), reach);
                depth = Depth::default();
                depth.now = runs_on.then_some(0);
                own += 1;
            }
            Place::Before(next, said) => {
                held.added(from, end, first + u64::from(next), added);
                depth.follow(&held, (from, end), Some(said));
            }
            Place::Nowhere => depth.follow(&held, (from, end), None),
        }
    }
    own
}

/// What is added to the program's own.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Added {
    /// What counts or marks.
    Sums,
    /// What chains of calls need: in front of a jump out of a function it asks where that leads, and does what is done there.
    Chains,
    /// Words in tracks.
    Words,
}

impl Added {
    /// Whether such an instruction uses memory by other registers.
    fn uses_more(self, code: Code) -> bool {
        match self {
            Self::Sums => false,
            Self::Chains => code == Code::Push_rm64,
            Self::Words => matches!(
                code,
                Code::Mov_rm32_imm32
                    | Code::Mov_rm32_r32
                    | Code::Mov_rm64_r64
                    | Code::Shl_rm64_1
                    | Code::Or_rm32_imm8
                    | Code::Or_rm8_imm8
            ),
        }
    }
}

/// Whether what is executed does what the original did, wherever it is. Where control goes is proven elsewhere.
fn same(executed: &Instruction, original: &Instruction) -> bool {
    if original.flow_control() != FlowControl::Next {
        // Branches that are inverted or widened.
        return executed.flow_control() != FlowControl::Next
            || memory(original).is_some() && memory(executed) == memory(original);
    }
    let operands = |one: &Instruction| -> Vec<(OpKind, Register)> {
        (0..one.op_count())
            .map(|at| (one.op_kind(at), one.op_register(at)))
            .collect()
    };
    executed.code() == original.code()
        && operands(executed) == operands(original)
        && memory(executed) == memory(original)
        && immediates(executed) == immediates(original)
}

fn immediates(one: &Instruction) -> Vec<u64> {
    let all = (0..one.op_count()).map(|at| one.try_immediate(at).unwrap_or(0));
    all.collect()
}

/// The memory that it uses: the registers, and the displacement, which is an address where it is counted from the instruction.
fn memory(one: &Instruction) -> Option<(Register, Register, Register, u32, u64)> {
    let uses = (0..one.op_count()).any(|at| one.op_kind(at) == OpKind::Memory);
    uses.then(|| {
        (
            one.segment_prefix(),
            one.memory_base(),
            one.memory_index(),
            one.memory_index_scale(),
            one.memory_displacement64(),
        )
    })
}

/// What the weaver adds uses memory of its own alone: by its distance, by that to `gs`, of the stack, or of a track, where it stores
/// words; and it asks where a jump will lead before that is made.
fn is_own(one: &Instruction, added: Added) -> bool {
    memory(one).is_none_or(|(segment, base, ..)| {
        segment == Register::GS
            || matches!(base, Register::RIP | Register::EIP | Register::RSP)
            || added.uses_more(one.code())
            // These use none.
            || matches!(one.code(), Code::Lea_r64_m | Code::Lea_r32_m)
            || matches!(one.code(), Code::Nop_rm16 | Code::Nop_rm32 | Code::Nop_rm64)
    })
}

fn falls_through(one: &Instruction) -> bool {
    matches!(
        one.flow_control(),
        FlowControl::Next | FlowControl::ConditionalBranch
    )
}
