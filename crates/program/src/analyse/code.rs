//! The program's code as one dense space of 32-bit positions.
//!
//! The analysis handles millions of addresses; a [`Pos`] is half the size of an address and cannot
//! be mixed up with one. Position 0 is the lowest executable byte of the file.

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic};

use super::slice::effect::Effects;
use crate::Address;
use crate::elf::{Binary, PltTarget};

/// A byte of code: its distance from the lowest executable byte.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub(crate) struct Pos(pub(crate) u32);

impl Pos {
    /// The position `bytes` further on. Positions stay far below `u32::MAX`: see [`Code::new`].
    pub(crate) fn plus(self, bytes: u32) -> Self {
        Self(self.0.saturating_add(bytes))
    }

    /// Bytes between `earlier` and here (0 if `earlier` is later).
    pub(crate) fn since(self, earlier: Self) -> u32 {
        self.0.saturating_sub(earlier.0)
    }
}

/// Where a direct transfer to some address really goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Destination {
    /// Code of this file, outside the PLT.
    Code(Pos),
    /// An imported function, through its PLT stub.
    Import(u32),
    /// Through a PLT stub whose target is decided at run time (an indirect function) or unknown.
    Resolved,
    /// No code of this file.
    Outside,
}

/// The executable bytes of a file.
pub(crate) struct Code<'a> {
    /// The file they come from.
    pub(crate) binary: &'a Binary<'a>,
    base: u64,
    regions: Vec<(Pos, Pos, &'a [u8])>,
    stubs: Vec<(Pos, Pos, PltTarget)>,
    /// By import: whether a call to it may come back.
    returning: Vec<bool>,
    /// By import: whether that depends on its first argument.
    ending_by_status: Vec<bool>,
}

impl<'a> Code<'a> {
    /// The code of `binary`; `None` where it spans more than 4 GiB less a margin.
    pub(crate) fn new(binary: &'a Binary<'a>) -> Option<Self> {
        let base = binary
            .code()
            .first()
            .map_or(0, |region| region.range.start().0);
        let mut code = Self {
            binary,
            base,
            regions: Vec::new(),
            stubs: Vec::new(),
            returning: Vec::new(),
            ending_by_status: Vec::new(),
        };
        for region in binary.code() {
            let end = region.range.end().0.checked_sub(base)?;
            if end > u64::from(u32::MAX) - 4096 {
                return None;
            }
            let start = Pos(u32::try_from(region.range.start().0.checked_sub(base)?).ok()?);
            code.regions.push((
                start,
                start.plus(u32::try_from(region.bytes.len()).ok()?),
                region.bytes,
            ));
        }
        for stub in binary.plt() {
            if let (Some(start), Ok(size)) = (
                code.pos(stub.range.start()),
                u32::try_from(stub.range.size()),
            ) {
                code.stubs.push((start, start.plus(size), stub.target));
            }
        }
        code.stubs.sort_unstable_by_key(|stub| stub.0);
        code.returning = binary
            .imports()
            .iter()
            .map(|import| !super::names::never_returns(import.name))
            .collect();
        let by_status = binary.imports().iter().map(super::names::ends_by_status);
        code.ending_by_status = by_status.collect();
        Some(code)
    }

    /// Its position, where `address` is code.
    pub(crate) fn pos(&self, address: Address) -> Option<Pos> {
        let offset = u32::try_from(address.0.checked_sub(self.base)?).ok()?;
        self.region(Pos(offset)).map(|_| Pos(offset))
    }

    /// The stated address of `pos`.
    pub(crate) fn address(&self, pos: Pos) -> Address {
        Address(self.base + u64::from(pos.0))
    }

    /// Bytes from `start` up to `end`, cut at the end of the region that holds `start`.
    pub(crate) fn bytes(&self, start: Pos, end: Pos) -> &'a [u8] {
        let Some(&(from, to, bytes)) = self.region(start) else {
            return &[];
        };
        &bytes[start.since(from) as usize..end.min(to).max(start).since(from) as usize]
    }

    /// Whether at `pos` is what gcc writes for indirect branches that no processor may guess (`-mindirect-branch=thunk`): a call over
    /// a loop that never ends, and then the return address is overwritten.
    pub(crate) fn is_indirect_thunk(&self, pos: Pos) -> bool {
        // call 1f; 2: pause; lfence; jmp 2b; 1:
        const THUNK: [u8; 12] = [0xe8, 7, 0, 0, 0, 0xf3, 0x90, 0x0f, 0xae, 0xe8, 0xeb, 0xf9];
        self.bytes(pos, pos.plus(THUNK.len() as u32)) == THUNK
    }

    /// The end of the region that holds `pos`.
    pub(crate) fn region_end(&self, pos: Pos) -> Pos {
        self.region(pos).map_or(pos, |region| region.1)
    }

    /// The regions, by position.
    pub(crate) fn regions(&self) -> impl Iterator<Item = (Pos, Pos)> {
        self.regions.iter().map(|&(start, end, _)| (start, end))
    }

    /// Where the last instruction of a block starts.
    pub(crate) fn last_instruction(&self, start: Pos, end: Pos) -> Address {
        let mut decoder = Decoder::with_ip(
            64,
            self.bytes(start, end),
            self.address(start).0,
            DecoderOptions::NONE,
        );
        let mut last = self.address(start);
        let mut instruction = Instruction::default();
        while decoder.can_decode() {
            decoder.decode_out(&mut instruction);
            last = Address(instruction.ip());
        }
        last
    }

    /// Whether the instruction at `pos` computes its own address, as code does that counts from where it is (of the large model).
    pub(crate) fn holds_itself(&self, pos: Pos) -> bool {
        let (bytes, address) = (self.bytes(pos, pos.plus(16)), self.address(pos));
        let instruction = Decoder::with_ip(64, bytes, address.0, DecoderOptions::NONE).decode();
        instruction.is_ip_rel_memory_operand() && instruction.ip_rel_memory_address() == address.0
    }

    /// Whether a block that ends in an indirect jump reads words that lie among the code, where nobody can have put an address.
    pub(crate) fn reads_words_of_code(&self, start: Pos, end: Pos) -> bool {
        let (bytes, address) = (self.bytes(start, end), self.address(start));
        let mut decoder = Decoder::with_ip(64, bytes, address.0, DecoderOptions::NONE);
        decoder.iter().any(|instruction| {
            let is_read =
                instruction.is_jmp_near_indirect() || instruction.mnemonic() == Mnemonic::Mov;
            is_read
                && instruction.is_ip_rel_memory_operand()
                && self
                    .pos(Address(instruction.ip_rel_memory_address()))
                    .is_some()
        })
    }

    fn region(&self, pos: Pos) -> Option<&(Pos, Pos, &'a [u8])> {
        let after = self.regions.partition_point(|region| region.0 <= pos);
        self.regions
            .get(after.checked_sub(1)?)
            .filter(|region| pos < region.1)
    }

    /// Whether `pos` lies in a PLT stub.
    pub(crate) fn is_stub(&self, pos: Pos) -> bool {
        self.stub(pos).is_some()
    }

    /// The start of the first PLT stub behind `pos`.
    pub(crate) fn next_stub(&self, pos: Pos) -> Pos {
        let after = self.stubs.partition_point(|stub| stub.0 <= pos);
        self.stubs.get(after).map_or(Pos(u32::MAX), |stub| stub.0)
    }

    /// The PLT stubs' ranges, by position.
    pub(crate) fn stub_ranges(&self) -> impl Iterator<Item = (Pos, Pos)> {
        self.stubs.iter().map(|&(start, end, _)| (start, end))
    }

    /// The bytes that PLT stubs take.
    pub(crate) fn stub_bytes(&self) -> u64 {
        self.stubs
            .iter()
            .map(|stub| u64::from(stub.1.since(stub.0)))
            .sum()
    }

    fn stub(&self, pos: Pos) -> Option<PltTarget> {
        let after = self.stubs.partition_point(|stub| stub.0 <= pos);
        self.stubs
            .get(after.checked_sub(1)?)
            .filter(|stub| pos < stub.1)
            .map(|stub| stub.2)
    }

    /// Where a direct call or jump to `address` goes.
    pub(crate) fn destination(&self, address: Address) -> Destination {
        let Some(pos) = self.pos(address) else {
            return Destination::Outside;
        };
        match self.stub(pos) {
            None => Destination::Code(pos),
            Some(PltTarget::Import(import)) => Destination::Import(import),
            Some(PltTarget::Function(function)) => self
                .pos(function)
                .map_or(Destination::Resolved, Destination::Code),
            Some(_) => Destination::Resolved,
        }
    }

    /// Where a call or jump through the 8-byte slot at `slot` goes, if the loader decides that.
    pub(crate) fn through_slot(&self, slot: Address) -> Option<Destination> {
        if let Some(import) = self.binary.import_in_slot(slot) {
            return Some(Destination::Import(import));
        }
        if self.binary.resolver_in_slot(slot).is_some() {
            return Some(Destination::Resolved);
        }
        // Only slots that the program cannot write keep the loader's value.
        self.binary.constant_at(slot)?;
        let target = self.binary.pointer_in_slot(slot)?;
        Some(self.destination(target))
    }

    /// Whether a call to this import may come back.
    pub(crate) fn import_returns(&self, import: u32) -> bool {
        self.returning.get(import as usize).copied().unwrap_or(true)
    }

    /// Whether the call of this import that ends the block from `start` to `end` gives it a status by which it ends the process.
    pub(crate) fn ends_by_status(&self, import: u32, start: Pos, end: Pos) -> bool {
        let by_status = self.ending_by_status.get(import as usize);
        by_status.is_some_and(|&by_status| by_status) && {
            let (bytes, address) = (self.bytes(start, end), self.address(start));
            status(bytes, address).is_some_and(|status| status != 0)
        }
    }
}

/// The first argument of the call that these instructions end in, an `int`, if one of them gives it.
fn status(bytes: &[u8], start: Address) -> Option<u32> {
    const FIRST: u8 = 7;
    let mut effects = Effects::new();
    let mut status = None;
    for instruction in Decoder::with_ip(64, bytes, start.0, DecoderOptions::NONE) {
        if instruction.mnemonic() == Mnemonic::Call {
            break;
        }
        for (register, value) in effects.of(&instruction).registers {
            if register == FIRST {
                status = value.and_then(|value| value.as_constant());
            }
        }
    }
    status.map(|status| status as u32)
}
