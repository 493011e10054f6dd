//! Writes the machine code of trampolines.
//!
//! Everything a trampoline needs lies at a fixed distance from it, so addresses here are *spots*:
//! distances from the first region's start in the process, whatever its load address. A displacement is the
//! difference of two of them (Intel SDM vol. 2, §2.2.1.6, RIP-relative addressing: counted from
//! the end of the instruction, immediate included).
//!
//! No instruction here reads or writes flags, and the only register that is changed for a moment is
//! saved below the 128 bytes under the stack pointer that belong to the interrupted code (System V
//! ABI, AMD64 supplement, §3.2.2: the red zone).

use crate::origins::{Origins, Said};
use crate::staying::moved::Condition;

/// Opcode of a `jmp` with a 32-bit displacement.
pub(crate) const JUMP: u8 = 0xe9;

/// A distance from the first region's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Spot(pub(crate) i64);

impl Spot {
    pub(crate) fn plus(self, bytes: i64) -> Self {
        Self(self.0.wrapping_add(bytes))
    }
}

/// Writes what seldom happens.
type Seldom = fn(&mut Writer);

/// Appends instructions whose first byte of all is at a given spot.
pub(crate) struct Writer {
    pub(crate) bytes: Vec<u8>,
    start: Spot,
    /// Whether all displacements fitted in 32 bits.
    pub(crate) fits: bool,
    /// What seldom happens and is written behind all else: where the branch to it ends, and what writes it.
    seldom: Vec<(usize, Seldom)>,
    /// Of what was written where it comes from.
    pub(crate) origins: Origins,
    /// Where displacements of 32 bits are, ascending, and to what they lead.
    pub(crate) displacements: Vec<(u32, Spot)>,
}

impl Writer {
    pub(crate) fn new(start: Spot, capacity: usize) -> Self {
        Self {
            bytes: Vec::with_capacity(capacity),
            start,
            fits: true,
            seldom: Vec::new(),
            origins: Origins::default(),
            displacements: Vec::new(),
        }
    }

    /// Of what comes next this is said.
    pub(crate) fn note(&mut self, said: Said) {
        self.origins.note(self.bytes.len() as u32, said);
    }

    /// Where the next instruction will be.
    pub(crate) fn here(&self) -> Spot {
        self.start.plus(self.bytes.len() as i64)
    }

    /// An instruction of these opcode bytes with a displacement to `target` and an immediate.
    fn relative(&mut self, opcode: &[u8], target: Spot, immediate: &[u8]) {
        let size = opcode.len() + 4 + immediate.len();
        let displacement = i32::try_from(target.0 - self.here().plus(size as i64).0);
        self.fits &= displacement.is_ok();
        self.bytes.extend(opcode);
        self.displacements.push((self.bytes.len() as u32, target));
        self.bytes
            .extend(displacement.unwrap_or_default().to_le_bytes());
        self.bytes.extend(immediate);
    }

    /// `mov byte ptr [rip + …], value`. 7 bytes.
    pub(crate) fn store_byte(&mut self, target: Spot, value: u8) {
        self.relative(&[0xc6, 0x05], target, &[value]);
    }

    /// `cmp byte ptr [rip + …], 0`. 7 bytes.
    pub(crate) fn is_byte_zero(&mut self, target: Spot) {
        self.relative(&[0x80, 0x3d], target, &[0]);
    }

    /// `mov word ptr [rip + …], value`. 9 bytes.
    pub(crate) fn store_word(&mut self, target: Spot, value: [u8; 2]) {
        self.relative(&[0x66, 0xc7, 0x05], target, &value);
    }

    /// `mov dword ptr [rip + …], value`. 10 bytes.
    pub(crate) fn store_dword(&mut self, target: Spot, value: [u8; 4]) {
        self.relative(&[0xc7, 0x05], target, &value);
    }

    /// Stores eight bytes at once, by way of rax. 32 bytes.
    pub(crate) fn store_quadword(&mut self, target: Spot, value: [u8; 8]) {
        self.bytes.extend([0x48, 0x8d, 0x64, 0x24, 0x80]); // lea rsp, [rsp - 128]
        self.bytes.push(0x50); // push rax
        self.bytes.extend([0x48, 0xb8]); // movabs rax, value
        self.bytes.extend(value);
        self.relative(&[0x48, 0x89, 0x05], target, &[]); // mov [rip + …], rax
        self.bytes.push(0x58); // pop rax
        self.bytes.extend([0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0]); // lea rsp, [rsp + 128]
    }

    /// Bytes as they are.
    pub(crate) fn copy(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
    }

    /// An instruction that was at `from`, with a displacement of four bytes at the offset `at` that is
    /// counted from the instruction's end.
    pub(crate) fn moved(&mut self, bytes: &[u8], at: usize, from: Spot) {
        let mut bytes = bytes.to_vec();
        let field = bytes.get_mut(at..).and_then(|rest| rest.first_chunk_mut());
        let way = from.0 - self.here().0;
        let moved = field.and_then(|field: &mut [u8; 4]| {
            let displacement = i64::from(i32::from_le_bytes(*field)).checked_add(way)?;
            *field = i32::try_from(displacement).ok()?.to_le_bytes();
            Some(displacement)
        });
        self.fits &= moved.is_some();
        let target = self
            .here()
            .plus(bytes.len() as i64 + moved.unwrap_or_default());
        self.displacements
            .push(((self.bytes.len() + at) as u32, target));
        self.bytes.extend(bytes);
    }

    /// `jcc` with a 32-bit displacement, 6 bytes; or, without a condition, [a jump](Self::jump).
    pub(crate) fn go(&mut self, condition: Option<Condition>, target: Spot) {
        match condition {
            Some(Condition(condition)) => self.relative(&[0x0f, 0x80 | condition], target, &[]),
            None => self.jump(target),
        }
    }

    /// The same with a displacement of 8 bits. 2 bytes.
    pub(crate) fn go_near(&mut self, condition: Option<Condition>, target: Spot) {
        let way = i8::try_from(target.0 - self.here().plus(2).0);
        self.fits &= way.is_ok();
        let opcode = condition.map_or(0xeb, |Condition(condition)| 0x70 | condition);
        self.copy(&[opcode, way.unwrap_or_default().cast_unsigned()]);
    }

    /// `jcc` to what will be [landed](Self::land). 6 bytes.
    pub(crate) fn branch_ahead(&mut self, condition: u8) -> usize {
        self.copy(&[0x0f, 0x80 | condition, 0, 0, 0, 0]);
        self.bytes.len()
    }

    /// Lets the branch that ends at `branch` lead here.
    pub(crate) fn land(&mut self, branch: usize) {
        let way = (self.bytes.len() - branch) as u32;
        let field = self.bytes.get_mut(branch - 4..branch);
        field
            .into_iter()
            .for_each(|field| field.copy_from_slice(&way.to_le_bytes()));
    }

    /// A branch of this opcode to what will be [landed](Self::land_short), less than 128 bytes on. 2 bytes.
    pub(crate) fn short_ahead(&mut self, opcode: u8) -> usize {
        self.copy(&[opcode, 0]);
        self.bytes.len()
    }

    /// Lets the short branch that ends at `branch` lead here.
    pub(crate) fn land_short(&mut self, branch: usize) {
        let way = i8::try_from(self.bytes.len() - branch);
        self.fits &= way.is_ok();
        if let Some(field) = self.bytes.get_mut(branch - 1) {
            *field = way.unwrap_or_default().cast_unsigned();
        }
    }

    /// Lets the branch that ends at `branch` lead to code that `write` appends once all else is written, and that leads back
    /// to behind the branch.
    pub(crate) fn later(&mut self, branch: usize, write: Seldom) {
        self.seldom.push((branch, write));
    }

    /// Appends what was put off.
    pub(crate) fn write_seldom(&mut self) {
        for (branch, write) in std::mem::take(&mut self.seldom) {
            self.note(Said::Nothing);
            self.land(branch);
            write(self);
            self.jump(self.start.plus(branch as i64));
        }
    }

    /// `jmp` with a 32-bit displacement. 5 bytes.
    pub(crate) fn jump(&mut self, target: Spot) {
        self.relative(&[JUMP], target, &[]);
    }
}

/// The displacement at `from` of a branch to `to` that ends with it, unless that is too far.
pub(crate) fn displacement(from: Spot, to: Spot) -> Option<[u8; 4]> {
    let displacement = i32::try_from(to.0 - from.plus(4).0).ok()?;
    Some(displacement.to_le_bytes())
}

/// What a trampoline is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job {
    /// Its probe's mark.
    pub(crate) mark: Spot,
    /// The window.
    pub(crate) window: Spot,
    /// The window through the writable mapping.
    pub(crate) alias: Spot,
    /// The bytes of the module from the start of the window's word.
    pub(crate) word: [u8; 8],
    /// The bytes of the window as the module has them.
    pub(crate) original: [u8; 5],
}
