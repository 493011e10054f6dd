//! The procedure linkage table: the stubs through which a program calls what it imports.
//!
//! AMD64 supplement §5.2, and what today's linkers make of it: GNU ld's `.plt` (lazy), `.plt.got`
//! and `.plt.sec` (with IBT), lld's `.plt` and `.iplt`, entries of 8 or 16 bytes. An entry is
//! recognised by its instructions alone:
//!
//! - `[endbr64] [bnd] jmp [rip+slot]` reaches what the loader writes into the slot;
//! - `[endbr64] push n; [bnd] jmp header` is the lazy half of relocation `n`;
//! - `push [rip+x]; [bnd] jmp [rip+y]` is the header that lazy halves share (or the one for TLS
//!   descriptors).
//!
//! In a file without section headers only stubs through slots of DT_JMPREL are recognised, since
//! nothing else tells them from ordinary functions. Linear in the size of the sections.

use iced_x86::{Code, Decoder, DecoderOptions, Instruction};
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
    let shape = match first.code() {
        Code::Jmp_rm64 => Shape::Through(slot_of(&first)?),
        Code::Push_rm64 => {
            slot_of(&first)?;
            let jump = next()?;
            slot_of(&jump).filter(|_| jump.code() == Code::Jmp_rm64)?;
            Shape::Header
        }
        Code::Pushq_imm32 | Code::Pushq_imm8 => {
            let jump = next()?;
            let is_near = matches!(jump.code(), Code::Jmp_rel32_64 | Code::Jmp_rel8_64);
            is_near.then(|| Shape::Lazy(first.immediate(0) as u32))?
        }
        _ => return None,
    };
    Some((shape, decoder.position()))
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

/// Entries have 16 bytes; but where a jump fits into 8 and the next 8 are a jump again (or
/// nothing), they have 8.
fn entry_size(rest: &[u8], address: Address, found: Option<(Shape, usize)>) -> usize {
    let Some((Shape::Through(_), used)) = found else {
        return 16;
    };
    if used > 8 {
        return 16;
    }
    let behind = rest.get(8..).unwrap_or_default();
    let next = shape(behind, address.wrapping_add(8));
    if behind.is_empty() || matches!(next, Some((Shape::Through(_), _))) {
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
