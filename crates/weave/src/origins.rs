//! Where what is executed elsewhere comes from (`tomo_wire::moved`): noted while it is written.
//!
//! Of what was added it is noted in front of which instruction it stands. How much lower the stack pointer is there, where
//! something is put aside for a while, is read from the code itself, once it is there: who writes an action need not say so.

use iced_x86::{
    Code, Decoder, DecoderOptions, Instruction, InstructionInfoFactory, OpAccess, Register,
};
use tomo_program::Address;
use tomo_wire::moved::{Place, Run};

/// What is said of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// It is the module's, from this instruction on, which is so long there.
    Own(Address, u32),
    /// It was added in front of this one.
    Before(Address),
    Nothing,
}

/// What is said from a byte on.
#[derive(Debug)]
struct Noted {
    at: u32,
    said: Said,
    /// Of the module's own: how far behind the first instruction the last one begins, and how long that is in the module.
    reach: u32,
    last: u32,
}

impl Noted {
    /// Whether the module's instruction `from` is the next one of these, at the byte `at`. Not behind a branch that became longer, be it
    /// that as many bytes are left out behind it.
    fn goes_on(&self, at: u32, from: Address) -> bool {
        let Said::Own(first, _) = self.said else {
            return false;
        };
        let within = at - self.at;
        within == self.reach + self.last && from == first.wrapping_add(within.into())
    }
}

/// What is said, byte by byte.
#[derive(Debug, Default)]
pub(crate) struct Origins(Vec<Noted>);

impl Origins {
    /// From the byte `at` on this is said.
    pub(crate) fn note(&mut self, at: u32, said: Said) {
        while self.0.last().is_some_and(|last| last.at == at) {
            self.0.pop();
        }
        let length = if let Said::Own(_, length) = said {
            length
        } else {
            0
        };
        match (self.0.last_mut(), said) {
            (Some(last), Said::Own(from, _)) if last.goes_on(at, from) => {
                (last.reach, last.last) = (at - last.at, length);
            }
            (Some(last), Said::Before(_) | Said::Nothing) if last.said == said => {}
            (None, Said::Nothing) => {}
            _ => self.0.push(Noted {
                at,
                said,
                reach: 0,
                last: length,
            }),
        }
    }

    /// The table of an image with this `code`, where `spot` tells how far behind the first region's start an address of the module
    /// lies; below 2^31, where others do not.
    pub(crate) fn table(&self, code: &[u8], spot: impl Fn(Address) -> Option<u32>) -> Vec<Run> {
        let mut runs = Vec::with_capacity(self.0.len() + 1);
        let end = code.len() as u32;
        let noted = &self.0[..self.0.partition_point(|one| one.at < end)];
        let ends = noted.iter().skip(1).map(|one| one.at);
        for (
            Noted {
                at, said, reach, ..
            },
            end,
        ) in noted.iter().zip(ends.chain([end]))
        {
            match *said {
                Said::Own(from, _) => {
                    let own = |from| Place::Own(from, *reach);
                    let place = spot(from).map_or(Place::Nowhere, own);
                    runs.push(Run::of(*at, place));
                }
                Said::Nothing => runs.push(Run::of(*at, Place::Nowhere)),
                Said::Before(next) => {
                    let added = code.get(*at as usize..end as usize).unwrap_or_default();
                    for (offset, depth) in depths(added) {
                        let before = spot(next).zip(depth);
                        let place = before
                            .map_or(Place::Nowhere, |(next, depth)| Place::Before(next, depth));
                        runs.push(Run::of(at + offset, place));
                    }
                }
            }
        }
        let is_open = |last: &Run| last.place() != Place::Nowhere;
        if runs.last().is_some_and(is_open) {
            runs.push(Run::of(end, Place::Nowhere));
        }
        runs
    }
}

/// From where on in code that was added, which begins with the program's stack pointer, that is how much lower, if that is
/// known.
fn depths(added: &[u8]) -> Vec<(u32, Option<u32>)> {
    let mut factory = InstructionInfoFactory::new();
    let mut depths = vec![(0, Some(0))];
    let mut depth = Some(0);
    for one in &mut Decoder::with_ip(64, added, 0, DecoderOptions::NONE) {
        depth = depth.and_then(|depth| after(depth, &one, &mut factory));
        let known = depth.and_then(|depth| u32::try_from(depth).ok());
        if depths.last().is_some_and(|(_, last)| *last != known) {
            depths.push((one.next_ip() as u32, known));
        }
    }
    depths.retain(|(at, _)| (*at as usize) < added.len());
    depths
}

/// How much lower the stack pointer is behind an instruction that found it `depth` lower; `None` where that cannot be told.
fn after(depth: i64, one: &Instruction, factory: &mut InstructionInfoFactory) -> Option<i64> {
    if one.code() == Code::Lea_r64_m && one.op0_register() == Register::RSP {
        let same = one.memory_base() == Register::RSP && one.memory_index() == Register::None;
        return same.then(|| depth - one.memory_displacement64().cast_signed());
    }
    if one.is_invalid() {
        return None;
    }
    // A routine that is called takes its return address, and leaves what it was told.
    if one.is_call_near_indirect() {
        return Some(depth);
    }
    let moved = one.stack_pointer_increment();
    if moved != 0 {
        return Some(depth - i64::from(moved));
    }
    let info = factory.info(one);
    let mut used = info.used_registers().iter();
    let changes = used.any(|used| {
        let reads = matches!(
            used.access(),
            OpAccess::Read | OpAccess::CondRead | OpAccess::NoMemAccess
        );
        used.register().full_register() == Register::RSP && !reads
    });
    (!changes).then_some(depth)
}

#[cfg(test)]
mod tests {
    use super::{Origins, Said, depths};
    use tomo_program::Address;
    use tomo_wire::moved::{Place, Run, copy_of};

    const BELOW: [u8; 5] = [0x48, 0x8d, 0x64, 0x24, 0x80];
    const ABOVE: [u8; 8] = [0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0];

    #[test]
    fn what_is_put_aside_is_taken_from_the_code() {
        // mov byte [rip], 1; lea rsp, [rsp - 128]; push rax; pop rax; lea rsp, [rsp + 128]; nop
        let code = [
            &[0xc6, 5, 0, 0, 0, 0, 1][..],
            &BELOW,
            &[0x50, 0x58],
            &ABOVE,
            &[0x90],
        ]
        .concat();
        let known = |at: u32, depth: u32| (at, Some(depth));
        let expected = [
            known(0, 0),
            known(12, 128),
            known(13, 136),
            known(14, 128),
            known(22, 0),
        ];
        assert_eq!(depths(&code), expected);
        // lea rsp, [rsp - 128]; push 1; call gs:[8]; lea rsp, [rsp + 136]; nop
        let call = [0x65, 0xff, 0x14, 0x25, 8, 0, 0, 0];
        let above = [0x48, 0x8d, 0xa4, 0x24, 0x88, 0, 0, 0];
        let code = [&BELOW[..], &[0x68, 1, 0, 0, 0], &call, &above, &[0x90]].concat();
        let expected = [known(0, 0), known(5, 128), known(10, 136), known(26, 0)];
        assert_eq!(depths(&code), expected);
        // and rsp, -16; nop: who knows.
        assert_eq!(
            depths(&[0x48, 0x83, 0xe4, 0xf0, 0x90]),
            [known(0, 0), (4, None)]
        );
        assert_eq!(depths(&[0x50, 0x90]), [known(0, 0), known(1, 8)]);
    }

    #[test]
    fn what_is_left_out_behind_a_longer_branch_is_in_no_run() {
        let mut origins = Origins::default();
        origins.note(0, Said::Own(Address(0x1000), 2));
        // Six bytes for two, and what comes next comes four bytes later in the module, too.
        origins.note(6, Said::Own(Address(0x1006), 1));
        origins.note(7, Said::Nothing);
        let spot = |address: Address| u32::try_from(address.0.checked_sub(0x1000)?).ok();
        let table = origins.table(&[0x90; 8], spot);
        let copies = [0, 2, 6].map(|from| copy_of(&table, from));
        assert_eq!(copies, [Some(0), None, Some(6)]);
    }

    #[test]
    fn instructions_in_a_row_are_one_run() {
        let mut origins = Origins::default();
        let notes = [
            (0, Said::Nothing),
            (0, Said::Before(Address(0x1000))),
            (2, Said::Own(Address(0x1000), 2)),
            (4, Said::Own(Address(0x1002), 2)),
            // A branch that became longer.
            (6, Said::Own(Address(0x1004), 2)),
            (12, Said::Own(Address(0x1006), 1)),
            (13, Said::Before(Address(0x1007))),
            (13, Said::Own(Address(0x1007), 1)),
            (14, Said::Nothing),
            (14, Said::Nothing),
            // Nowhere in the module.
            (15, Said::Before(Address(0x800))),
        ];
        for (at, said) in notes {
            origins.note(at, said);
        }
        let spot = |address: Address| u32::try_from(address.0.checked_sub(0x1000)?).ok();
        let table = origins.table(&[0x90; 16], spot);
        let expected = [
            Run::of(0, Place::Before(0, 0)),
            Run::of(2, Place::Own(0, 4)),
            Run::of(12, Place::Own(6, 1)),
            Run::of(14, Place::Nowhere),
            Run::of(15, Place::Nowhere),
        ];
        assert_eq!(table, expected);
        let copies = [0, 2, 4, 5, 6, 7, 8].map(|from| copy_of(&table, from));
        let expected_copies = [Some(2), Some(4), Some(6), None, Some(12), Some(13), None];
        assert_eq!(
            copies, expected_copies,
            "nothing of a branch that became longer is what follows it"
        );
        let table = origins.table(&[0x90; 14], spot);
        assert_eq!(table, expected[..4], "what is said of nothing is left out");
    }
}
