//! The procedure linkage table: the stubs through which a program calls what it imports.
//!
//! AMD64 supplement §5.2, and what today's linkers make of it: GNU ld's `.plt` (lazy), `.plt.got`
//! and `.plt.sec` (with IBT), lld's `.plt` and `.iplt`, mold's `.plt`, entries of 8, 16 or 32 bytes. An entry is
//! recognised by its instructions alone:
//!
//! - `[endbr64] [mov r11d, n] [bnd] jmp [rip+slot]` reaches what the loader writes into the slot;
//! - `mov r11, [rip+slot]; jmp` does, too, by way of a return that nobody predicts (lld's `-z retpolineplt`); lazy entries have
//!   `mov r11, [rip+slot]; call; jmp; push n; jmp header`;
//! - `[endbr64] push n; [bnd] jmp header` is the lazy half of relocation `n`;
//! - `[endbr64] [push r11] push [rip+x]; [bnd] jmp [rip+y]` is the header that lazy halves share (or the one for TLS
//!   descriptors).
//!
//! In a file without section headers only stubs through slots of DT_JMPREL are recognised, since
//! nothing else tells them from ordinary functions. Linear in the size of the sections.

use iced_x86::{Code, Decoder, DecoderOptions, Instruction, Register};
use object::elf;
use object::endian::LittleEndian as LE;

use super::relocations::{Slots, lookup};
use super::{PltStub, PltTarget, Region};
use crate::{Address, Range};

/// All stubs of all PLT sections, by address.
pub(crate) fn read(
    code: &[Region<'_>],
    slots: &Slots,
    relocations: &[elf::Rela64<LE>],
) -> Vec<PltStub> {
    let mut stubs = Vec::new();
    for region in code {
        if region.name.starts_with(".plt") || region.name == ".iplt" {
            read_section(region, slots, relocations, &mut stubs);
        } else if region.name.is_empty() {
            search(region, slots, relocations, &mut stubs);
        }
    }
    stubs
}

/// What the instructions at one place are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// A jump through a slot.
    Through(Address),
    /// The lazy half of a relocation.
    Lazy(u32),
    /// What lazy halves share.
    Header,
}

/// Reads the instructions at the start of `bytes`; also how many bytes they take.
fn shape(bytes: &[u8], address: Address) -> Option<(Shape, usize)> {
    let mut decoder = Decoder::with_ip(64, bytes, address.0, DecoderOptions::NONE);
    let mut next = || decoder.can_decode().then(|| decoder.decode());
    let mut first = next()?;
    if first.code() == Code::Endbr64 {
        first = next()?;
    }
    let is_counted = first.code() == Code::Mov_r32_imm32 && first.op0_register() == Register::R11D;
    let is_saved = first.code() == Code::Push_r64 && first.op0_register() == Register::R11;
    if is_counted || is_saved {
        let kind = if is_counted {
            Code::Jmp_rm64
        } else {
            Code::Push_rm64
        };
        first = next().filter(|first| first.code() == kind)?;
    }
    let shape = match first.code() {
        Code::Jmp_rm64 => Shape::Through(slot_of(&first)?),
        Code::Push_rm64 => {
            slot_of(&first)?;
            let jump = next()?;
            slot_of(&jump).filter(|_| jump.code() == Code::Jmp_rm64)?;
            Shape::Header
        }
        Code::Pushq_imm32 | Code::Pushq_imm8 => {
            next().filter(is_near_jump)?;
            Shape::Lazy(first.immediate(0) as u32)
        }
        Code::Mov_r64_rm64 if first.op0_register() == Register::R11 => {
            let onwards = next()?;
            if onwards.code() == Code::Call_rel32_64 {
                next().filter(is_near_jump)?;
                next().filter(|lazy| lazy.code() == Code::Pushq_imm32)?;
                next().filter(is_near_jump)?;
            } else if !is_near_jump(&onwards) {
                return None;
            }
            Shape::Through(slot_of(&first)?)
        }
        _ => return None,
    };
    Some((shape, decoder.position()))
}

fn is_near_jump(instruction: &Instruction) -> bool {
    matches!(instruction.code(), Code::Jmp_rel32_64 | Code::Jmp_rel8_64)
}

/// The address that a RIP-relative operand refers to.
fn slot_of(instruction: &Instruction) -> Option<Address> {
    let relative = instruction.is_ip_rel_memory_operand();
    relative.then(|| Address(instruction.ip_rel_memory_address()))
}

/// Splits one PLT section into its entries.
fn read_section(
    region: &Region<'_>,
    slots: &Slots,
    relocations: &[elf::Rela64<LE>],
    stubs: &mut Vec<PltStub>,
) {
    let mut at = 0;
    while at < region.bytes.len() {
        let address = region.range.start().wrapping_add(at as u64);
        let rest = &region.bytes[at..];
        let found = shape(rest, address);
        let size = entry_size(rest, address, found).min(rest.len());
        let target = found.map_or(PltTarget::Unknown, |(shape, _)| {
            target(shape, slots, relocations)
        });
        let padding = found.is_none() && is_padding(&rest[..size]);
        if !padding && let Some(range) = Range::sized(address, size as u64) {
            stubs.push(PltStub { range, target });
        }
        at += size;
    }
}

/// Entries have 16 bytes, or 32 if they need more; but where a jump fits into 8 and the next 8 are a jump again (or
/// nothing), they have 8.
fn entry_size(rest: &[u8], address: Address, found: Option<(Shape, usize)>) -> usize {
    let used = found.map_or(1, |(_, used)| used);
    let is_through = |found| matches!(found, Some((Shape::Through(_), _)));
    if !is_through(found) || used > 8 {
        return used.next_multiple_of(16);
    }
    let behind = rest.get(8..).unwrap_or_default();
    let next = shape(behind, address.wrapping_add(8));
    if behind.is_empty() || is_through(next) {
        8
    } else {
        16
    }
}

fn is_padding(bytes: &[u8]) -> bool {
    bytes.iter().all(|&byte| matches!(byte, 0 | 0x90 | 0xcc))
}

/// Whom an entry reaches.
fn target(shape: Shape, slots: &Slots, relocations: &[elf::Rela64<LE>]) -> PltTarget {
    match shape {
        Shape::Header => PltTarget::Header,
        Shape::Through(slot) => in_slot(slot, slots),
        Shape::Lazy(index) => relocations
            .get(index as usize)
            .map_or(PltTarget::Unknown, |rela| {
                in_slot(Address(rela.r_offset.get(LE)), slots)
            }),
    }
}

fn in_slot(slot: Address, slots: &Slots) -> PltTarget {
    let import = lookup(&slots.imports, slot).map(PltTarget::Import);
    let function = || lookup(&slots.pointers, slot).map(PltTarget::Function);
    let resolver = || lookup(&slots.resolvers, slot).map(PltTarget::Resolver);
    import
        .or_else(function)
        .or_else(resolver)
        .unwrap_or(PltTarget::Unknown)
}

/// Finds stubs by the slots of DT_JMPREL in code whose sections are unknown.
fn search(
    region: &Region<'_>,
    slots: &Slots,
    relocations: &[elf::Rela64<LE>],
    stubs: &mut Vec<PltStub>,
) {
    let mut wanted: Vec<u64> = relocations
        .iter()
        .map(|rela| rela.r_offset.get(LE))
        .collect();
    wanted.sort_unstable();
    let aligned = (region.range.start().0.wrapping_neg() & 15) as usize;
    for at in (aligned..region.bytes.len()).step_by(16) {
        let rest = &region.bytes[at..];
        // Cheap test first: ff 25 is the jump, f2 its bnd prefix, f3 0f 1e fa endbr64.
        if !matches!(
            rest,
            [0xff, 0x25, ..] | [0xf2, 0xff, 0x25, ..] | [0xf3, 0x0f, 0x1e, 0xfa, ..]
        ) {
            continue;
        }
        let address = region.range.start().wrapping_add(at as u64);
        let Some((Shape::Through(slot), _)) = shape(rest, address) else {
            continue;
        };
        let range = Range::sized(address, rest.len().min(16) as u64);
        if let Some(range) = range.filter(|_| wanted.binary_search(&slot.0).is_ok()) {
            stubs.push(PltStub {
                range,
                target: in_slot(slot, slots),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The targets of the entries of a section at 0x1000, with imports 0 and 1 in the slots at 0x3000 and 0x3008.
    fn targets(bytes: &[u8]) -> Vec<(u64, u64, PltTarget)> {
        let slots = Slots {
            imports: vec![(Address(0x3000), 0), (Address(0x3008), 1)],
            ..Slots::default()
        };
        let region = Region {
            name: ".plt",
            range: Range::sized(Address(0x1000), bytes.len() as u64).expect("a range"),
            bytes,
        };
        let mut stubs = Vec::new();
        read_section(&region, &slots, &[], &mut stubs);
        let each = stubs
            .iter()
            .map(|stub| (stub.range.start().0, stub.range.size(), stub.target));
        each.collect()
    }

    /// A displacement from behind it, `at` bytes into the section, to an address.
    fn to(at: usize, address: u64) -> [u8; 4] {
        let behind = 0x1000 + at as u64 + 4;
        (address.wrapping_sub(behind) as u32).to_le_bytes()
    }

    const INT3: [u8; 16] = [0xcc; 16];
    const ENDBR64: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];

    #[test]
    fn stubs_of_mold() {
        let mut code = [&ENDBR64[..], &[0x41, 0x53, 0xff, 0x35], &to(8, 0x2ff0)].concat();
        code.extend([&[0xff, 0x25][..], &to(14, 0x2ff8), &INT3[2..]].concat());
        for number in 0..2 {
            code.extend([&ENDBR64[..], &[0x41, 0xbb, number, 0, 0, 0, 0xff, 0x25]].concat());
            code.extend(to(code.len(), 0x3000 + 8 * u64::from(number)));
        }
        let header = (0x1000, 32, PltTarget::Header);
        let stubs = [
            (0x1020, 16, PltTarget::Import(0)),
            (0x1030, 16, PltTarget::Import(1)),
        ];
        assert_eq!(targets(&code), [&[header][..], &stubs].concat());
    }

    #[test]
    fn stubs_that_nobody_predicts() {
        let mov = [0x4c, 0x8b, 0x1d];
        let mut lazy = Vec::new();
        for number in 0..2 {
            let slot = to(lazy.len() + 3, 0x3000 + 8 * u64::from(number));
            lazy.extend([&mov[..], &slot, &[0xe8, 0, 0, 0, 0, 0xe9, 0, 0, 0, 0]].concat());
            lazy.extend([&[0x68, number, 0, 0, 0, 0xe9, 0, 0, 0, 0][..], &INT3[..5]].concat());
        }
        let imports = [PltTarget::Import(0), PltTarget::Import(1)];
        assert_eq!(
            targets(&lazy),
            [(0x1000, 32, imports[0]), (0x1020, 32, imports[1])]
        );
        let mut now = [&mov[..], &to(3, 0x3000), &[0xe9, 0, 0, 0, 0], &INT3[..4]].concat();
        now.extend([&mov[..], &to(19, 0x3008), &[0xe9, 0, 0, 0, 0], &INT3[..4]].concat());
        assert_eq!(
            targets(&now),
            [(0x1000, 16, imports[0]), (0x1010, 16, imports[1])]
        );
        // A load into another register is none of these.
        let other = [
            &[0x4c, 0x8b, 0x15][..],
            &to(3, 0x3000),
            &[0xe9, 0, 0, 0, 0],
            &INT3[..4],
        ]
        .concat();
        assert_eq!(targets(&other), [(0x1000, 16, PltTarget::Unknown)]);
    }
}
