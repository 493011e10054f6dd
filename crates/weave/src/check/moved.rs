//! Whether what a trampoline executes is what was displaced: instruction by instruction, both decoded where they
//! are, so that equal operands name equal places.

use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction};

use super::trampolines::MIDDLE;

/// What was found to be the same.
#[derive(Debug)]
pub(super) struct Moved {
    /// Bytes of the module that are executed elsewhere.
    pub(super) displaced: u64,
    /// Bytes of code that do it.
    pub(super) length: usize,
}

/// Code that is read at its place.
struct Reading<'c> {
    decoder: Decoder<'c>,
    bytes: &'c [u8],
    start: u64,
}

impl<'c> Reading<'c> {
    /// Code at a spot, which is counted from the first region's start.
    fn new((spot, bytes): (i64, &'c [u8])) -> Self {
        let start = (MIDDLE + spot) as u64;
        Self {
            decoder: Decoder::with_ip(64, bytes, start, DecoderOptions::NONE),
            bytes,
            start,
        }
    }

    /// How many bytes were read.
    fn length(&self) -> u64 {
        self.decoder.ip() - self.start
    }

    /// The bytes of the instruction that was just read, without what says where an operand is relative
    /// to it.
    fn bytes(&self, instruction: &Instruction) -> Vec<u8> {
        let from = (instruction.ip() - self.start) as usize;
        let bytes = self.bytes.get(from..from + instruction.len());
        let mut bytes = bytes.unwrap_or_default().to_vec();
        if instruction.is_ip_rel_memory_operand() {
            let offsets = self.decoder.get_constant_offsets(instruction);
            let field = offsets.displacement_offset();
            if let Some(field) = bytes.get_mut(field..field + 4) {
                field.fill(0);
            }
        }
        bytes
    }
}

/// Compares code with the module's `original` bytes until at least `least` of these were displaced and control is
/// back behind them. Both come with the spots where they are.
pub(super) fn same(
    code: (i64, &[u8]),
    original: (i64, &[u8]),
    least: u64,
) -> Result<Moved, &'static str> {
    let (mut is, mut was) = (Reading::new(code), Reading::new(original));
    loop {
        if !was.decoder.can_decode() {
            return Err("it displaces more than there is");
        }
        let (new, old) = (is.decoder.decode(), was.decoder.decode());
        let runs_on = means_the_same(&new, &old)?;
        if old.near_branch_target() == 0 && is.bytes(&new) != was.bytes(&old) {
            return Err("it executes other bytes than were displaced");
        }
        if runs_on && was.length() < least {
            continue;
        }
        if runs_on {
            let back = is.decoder.decode();
            if back.code() != Code::Jmp_rel32_64 || back.near_branch_target() != was.decoder.ip() {
                return Err("it does not go back behind what it displaced");
            }
        }
        return Ok(Moved {
            displaced: was.length(),
            length: is.length() as usize,
        });
    }
}

/// Whether control may run on behind `old`, which `new` must be but for its place.
pub(super) fn means_the_same(new: &Instruction, old: &Instruction) -> Result<bool, &'static str> {
    let to_the_same = new.near_branch_target() == old.near_branch_target();
    let (same, runs_on) = match old.flow_control() {
        FlowControl::Next => (new == old, true),
        FlowControl::Return | FlowControl::IndirectBranch => (new == old, false),
        FlowControl::ConditionalBranch => {
            let branches = new.is_jcc_near() && (old.is_jcc_near() || old.is_jcc_short());
            let same = new.condition_code() == old.condition_code();
            (branches && same && to_the_same, true)
        }
        FlowControl::UnconditionalBranch => {
            let jumps = new.code() == Code::Jmp_rel32_64 && old.is_jmp_short_or_near();
            (jumps && to_the_same, false)
        }
        _ => return Err("it executes what cannot be moved"),
    };
    match same {
        true => Ok(runs_on),
        false => Err("it executes something else than was displaced"),
    }
}
