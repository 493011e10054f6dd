//! Runs a trampoline in the head.
//!
//! Only what is known to leave registers, flags and everything but marks and alias alone is understood;
//! anything else is a flaw.

use iced_x86::{Code, Decoder, DecoderOptions, Instruction, OpKind, Register};
use tomo_program::Address;
use tomo_wire::image::Image;

use super::Flaw;

/// Signed spots are decoded as if the first region lay in the middle of the address space.
pub(super) const MIDDLE: i64 = 1 << 40;

/// What one trampoline does.
#[derive(Debug)]
pub(super) struct Trampoline {
    /// Bytes of its code.
    pub(super) length: usize,
    /// The probe that it marks.
    pub(super) mark: u32,
    /// What it stores behind the marks, in order: where, from the first region's start, and what.
    pub(super) stores: Vec<(i64, Vec<u8>)>,
    /// Where it goes, from the first region's start.
    pub(super) target: i64,
}

/// What is true between two instructions.
#[derive(Default)]
struct State {
    stores: Vec<(i64, Vec<u8>)>,
    /// How far the stack pointer is from where it was.
    stack: i64,
    /// How deep below it the saved rax is.
    saved: Option<i64>,
    value: Option<u64>,
}

impl Trampoline {
    /// Which probe the trampoline at `offset` begins by marking, and bytes of the instruction that does it.
    pub(super) fn mark(code: &[u8], offset: usize, header: &Image) -> Option<(u32, usize)> {
        let start = (MIDDLE + header.distance.get() + offset as i64) as u64;
        let mut decoder = Decoder::with_ip(64, code.get(offset..)?, start, DecoderOptions::NONE);
        let mut state = State::default();
        let instruction = decoder.decode();
        state.step(&instruction, MIDDLE).ok()?;
        let (spot, value) = state.stores.first()?;
        let probe = u32::try_from(spot - header.marks_distance()).ok()?;
        let marks = value == &[1] && probe < header.probes.get();
        marks.then_some((probe, instruction.len()))
    }

    /// The trampoline that starts `offset` bytes into `code`, all trampolines of the image.
    pub(super) fn read(code: &[u8], offset: usize, header: &Image) -> Result<Self, Flaw> {
        let wrong = |what| Flaw::Trampoline {
            offset: offset as u64,
            what,
        };
        let middle = MIDDLE;
        let start = (middle + header.distance.get() + offset as i64) as u64;
        let mut decoder = Decoder::with_ip(64, &code[offset..], start, DecoderOptions::NONE);
        let mut state = State::default();
        loop {
            let instruction = decoder.decode();
            if instruction.rflags_modified() != 0 || instruction.rflags_read() != 0 {
                return Err(wrong("it touches flags"));
            }
            if instruction.code() == Code::Jmp_rel32_64 {
                let length = (decoder.ip() - start) as usize;
                let target = instruction.near_branch_target() as i64 - middle;
                return state.finish(length, target, header).map_err(wrong);
            }
            state.step(&instruction, middle).map_err(wrong)?;
        }
    }
}

impl State {
    fn step(&mut self, instruction: &Instruction, middle: i64) -> Result<(), &'static str> {
        let rip = instruction.memory_base() == Register::RIP;
        let spot = (instruction.memory_displacement64() as i64).wrapping_sub(middle);
        match instruction.code() {
            Code::Mov_rm8_imm8 if rip && !segment(instruction) => {
                self.stores.push((spot, vec![instruction.immediate8()]));
            }
            Code::Mov_rm16_imm16 if rip && !segment(instruction) => {
                let value = instruction.immediate16().to_le_bytes().to_vec();
                self.stores.push((spot, value));
            }
            Code::Mov_rm32_imm32 if rip && !segment(instruction) => {
                let value = instruction.immediate32().to_le_bytes().to_vec();
                self.stores.push((spot, value));
            }
            Code::Mov_rm64_r64 if rip && instruction.op1_register() == Register::RAX => {
                let value = self.value.ok_or("it stores what it was given in rax")?;
                self.stores.push((spot, value.to_le_bytes().to_vec()));
            }
            Code::Lea_r64_m if moves_stack(instruction) => {
                self.stack += instruction.memory_displacement64() as i64;
            }
            Code::Push_r64 if instruction.op0_register() == Register::RAX => {
                if self.stack > -128 || self.saved.is_some() {
                    return Err("it pushes into the red zone");
                }
                self.stack -= 8;
                self.saved = Some(self.stack);
            }
            Code::Pop_r64 if instruction.op0_register() == Register::RAX => {
                if self.saved != Some(self.stack) {
                    return Err("it pops what it did not push");
                }
                self.stack += 8;
                self.saved = None;
                self.value = None;
            }
            Code::Mov_r64_imm64 if instruction.op0_register() == Register::RAX => {
                if self.saved.is_none() {
                    return Err("it changes rax");
                }
                self.value = Some(instruction.immediate64());
            }
            _ => return Err("it has an instruction that is none of a trampoline's"),
        }
        Ok(())
    }

    fn finish(
        mut self,
        length: usize,
        target: i64,
        header: &Image,
    ) -> Result<Trampoline, &'static str> {
        if self.stack != 0 || self.saved.is_some() || self.value.is_some() {
            return Err("it leaves the stack or rax changed");
        }
        if self.stores.is_empty() {
            return Err("it does nothing");
        }
        let (spot, value) = self.stores.remove(0);
        let probe = u32::try_from(spot - header.marks_distance());
        let probe = probe.ok().filter(|probe| *probe < header.probes.get());
        match (probe, value.as_slice()) {
            (Some(mark), [1]) => Ok(Trampoline {
                length,
                mark,
                stores: self.stores,
                target,
            }),
            _ => Err("it does not begin by marking"),
        }
    }
}

/// Which address has its alias at `spot`.
pub(super) fn of_alias(header: &Image, spot: i64) -> Option<Address> {
    let mut regions = header.regions().iter().enumerate();
    regions.find_map(|(index, region)| {
        let offset = spot.checked_sub(header.alias_distance(index))?;
        let offset = u64::try_from(offset).ok()?;
        (offset < region.length.get()).then(|| Address(region.address.get() + offset))
    })
}

/// Whether it names a segment, where addresses would be others.
fn segment(instruction: &Instruction) -> bool {
    instruction.has_segment_prefix()
}

fn moves_stack(instruction: &Instruction) -> bool {
    instruction.op0_register() == Register::RSP
        && instruction.op1_kind() == OpKind::Memory
        && instruction.memory_base() == Register::RSP
        && instruction.memory_index() == Register::None
}
