//! What is done for chains of calls: a function is entered, left, goes outside; see `tomo_wire::chains` for the
//! tree that is walked, and `crates/agent/src/chains.rs` for its invariant.
//!
//! What happens mostly is done in passing: a function that was entered before from the same chain by the same call
//! is found by some bits of its return address, and counted. Everything else is asked of a routine of the
//! agent, which changes no register and no flag.

use iced_x86::Register;
use tomo_program::Address;
use tomo_wire::chains::{ENTER, JUMP, LAND, LEAVE, MARK, NOW, WAY_BITS, field, way_of};

use super::live::Set;
use crate::trampoline::{Spot, Writer};

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A function begins. The return address is where the stack pointer is.
    Enter(Entry),
    /// The function ends, the stack pointer being where its return address is.
    Leave,
    /// The function announces a call by its site.
    Announce(u32),
    /// It makes a tail call from this site to that function.
    Tail(u32, Entry, Address),
    /// Control arrived in the function with this number by no return.
    Land(u32),
    /// The function makes a tail call from this site to where the operand says.
    Jump(u32, Operand),
}

/// A function that begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) number: u32,
    /// Whether no chain goes on from it.
    pub(crate) leaf: bool,
    /// How far below its return address those of its calls lie; 0 if it announces calls.
    pub(crate) depth: u32,
}

/// A `push` of what an indirect jump reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Operand {
    pub(crate) push: [u8; 8],
    pub(crate) length: u8,
    /// Where in it a displacement is that is counted from its end, and where the jump is.
    pub(crate) relative: Option<(u8, Address)>,
}

/// What is written apart from the way on which nearly everybody goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Apart {
    /// Where the branches end that lead there.
    branches: Vec<usize>,
    /// What brings back the registers.
    restore: Vec<u8>,
    then: Then,
    /// Where control goes on.
    back: Spot,
}

/// What is done there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    Ask(Asked),
    /// A tail call from this site is announced.
    Announce(u32, Set),
}

/// `lea rsp, [rsp - 128]`.
pub(crate) const BELOW: [u8; 5] = [0x48, 0x8d, 0x64, 0x24, 0x80];
const ABOVE: [u8; 8] = [0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0];

/// The numbers of registers.
const RAX: u8 = 0;
const RCX: u8 = 1;
const RSP: u8 = 4;
const RBP: u8 = 5;
const R12: u8 = 12;

impl Step {
    /// Appends its code, where `live` is looked at afterwards; what of it lies apart.
    pub(crate) fn write(
        self,
        writer: &mut Writer,
        live: Set,
        spot: impl Fn(Address) -> Spot,
        inner: impl Fn(Address) -> Spot,
    ) -> Option<Apart> {
        match self {
            Self::Enter(entry) => enter(writer, entry, live),
            Self::Leave => Some(leave(writer, live)),
            Self::Announce(site) => {
                announce(writer, site, live);
                None
            }
            Self::Tail(site, entry, to) => tail(writer, (site, entry), inner(to), live),
            Self::Land(function) => {
                Asked::new(LAND, function).write(writer);
                None
            }
            Self::Jump(site, operand) => {
                jump(writer, site, &operand, spot);
                None
            }
        }
    }
}

/// A routine is asked, below the red zone, with one number or two on the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Asked {
    routine: u32,
    said: u32,
    more: Option<u32>,
}

impl Asked {
    fn new(routine: u32, said: u32) -> Self {
        Self {
            routine,
            said,
            more: None,
        }
    }

    /// A function is entered.
    fn of(entry: Entry) -> Self {
        Self {
            routine: ENTER,
            said: entry.number | if entry.leaf { MARK } else { 0 },
            more: Some(entry.depth),
        }
    }

    fn write(self, writer: &mut Writer) {
        writer.copy(&BELOW);
        if let Some(more) = self.more {
            push(writer, more);
        }
        said_and_called(writer, self.routine, self.said);
        above(writer, if self.more.is_some() { 2 } else { 1 });
    }
}

fn push(writer: &mut Writer, number: u32) {
    writer.copy(&[0x68]);
    writer.copy(&number.to_le_bytes());
}

/// `lea rsp, [rsp + 128 + 8 * words]`.
fn above(writer: &mut Writer, words: u8) {
    writer.copy(&[0x48, 0x8d, 0xa4, 0x24, 0x80 + 8 * words, 0, 0, 0]);
}

/// `push said`, `call gs:[routine]`.
fn said_and_called(writer: &mut Writer, routine: u32, said: u32) {
    push(writer, said);
    writer.copy(&[0x65, 0xff, 0x14, 0x25]);
    writer.copy(&routine.to_le_bytes());
}

fn jump(writer: &mut Writer, site: u32, operand: &Operand, spot: impl Fn(Address) -> Spot) {
    writer.copy(&BELOW);
    let push = &operand.push[..usize::from(operand.length)];
    match operand.relative {
        Some((at, from)) => writer.moved(push, at.into(), spot(from)),
        None => writer.copy(push),
    }
    said_and_called(writer, JUMP, site);
    above(writer, 2);
}

/// Registers that may be used, with what saves and restores them.
struct Scratch {
    registers: Vec<u8>,
    pushed: Vec<u8>,
}

impl Scratch {
    /// So many, of those that nobody looks at where there are any.
    fn of(live: Set, count: usize) -> Self {
        let usable = (0..16).filter(|number| ![RSP, RBP, R12].contains(number));
        let (free, taken): (Vec<u8>, Vec<u8>) =
            usable.partition(|number| !live.has_any(Set::numbered(*number)));
        let mut registers: Vec<u8> = free.into_iter().take(count).collect();
        let missing = count - registers.len();
        let pushed: Vec<u8> = taken.into_iter().take(missing).collect();
        registers.extend(&pushed);
        Self { registers, pushed }
    }

    /// How much lower the stack pointer is.
    fn depth(&self) -> u32 {
        match self.pushed.len() as u32 {
            0 => 0,
            count => 128 + 8 * count,
        }
    }

    fn save(&self, writer: &mut Writer) {
        if !self.pushed.is_empty() {
            writer.copy(&BELOW);
        }
        for &register in &self.pushed {
            writer.copy(&push_or_pop(0x50, register));
        }
    }

    fn restore(&self) -> Vec<u8> {
        let pops = self.pushed.iter().rev();
        let mut bytes: Vec<u8> = pops.flat_map(|one| push_or_pop(0x58, *one)).collect();
        if !self.pushed.is_empty() {
            bytes.extend(ABOVE);
        }
        bytes
    }
}

fn push_or_pop(opcode: u8, register: u8) -> Vec<u8> {
    match register {
        0..8 => vec![opcode | register],
        _ => vec![0x41, opcode | register & 7],
    }
}

/// An instruction on memory relative to `gs`.
struct Access<'w>(&'w mut Writer);

impl Access<'_> {
    /// With the operand `gs:[base + field]`; `wide` for 64 bits.
    fn field(&mut self, opcode: u8, register: u8, base: u8, field: u8, wide: bool) {
        let rex = 0x40 | u8::from(wide) << 3 | register >> 3 << 2 | base >> 3;
        self.0.copy(&[
            0x65,
            rex,
            opcode,
            0x40 | (register & 7) << 3 | base & 7,
            field,
        ]);
    }

    /// With the operand `gs:[place]`, of 32 bits.
    fn place(&mut self, opcode: u8, register: u8, place: u32) {
        let rex = 0x40 | register >> 3 << 2;
        self.0
            .copy(&[0x65, rex, opcode, 4 | (register & 7) << 3, 0x25]);
        self.0.copy(&place.to_le_bytes());
    }
}

const LOAD: u8 = 0x8b;
const STORE: u8 = 0x89;
const COMPARE: u8 = 0x39;

/// `lea to, [rsp + offset]`, or another instruction of 64 bits.
fn on_stack(writer: &mut Writer, opcode: u8, to: u8, offset: u32) {
    writer.copy(&[0x48 | to >> 3 << 2, opcode, 0x84 | (to & 7) << 3, 0x24]);
    writer.copy(&offset.to_le_bytes());
}

/// A function begins. Where flags are looked at, everything is asked.
fn enter(writer: &mut Writer, entry: Entry, live: Set) -> Option<Apart> {
    if live.has_any(Set::STATUS) {
        Asked::of(entry).write(writer);
        return None;
    }
    let scratch = Scratch::of(live, 2);
    let (a, b) = (scratch.registers[0], scratch.registers[1]);
    let depth = scratch.depth();
    let mut branches = Vec::new();
    scratch.save(writer);
    // Under way is what lies above.
    Access(writer).place(LOAD, a, NOW);
    compare_slot(writer, COMPARE, (a, b), depth);
    branches.push(writer.branch_ahead(6)); // jbe
    // movzx b, byte [rsp + depth]; xor b, …; and b, WAY_BITS; mov a, gs:[a + b + WAYS]
    writer.copy(&[0x40 | b >> 3 << 2, 0x0f, 0xb6, 0x84 | (b & 7) << 3, 0x24]);
    writer.copy(&depth.to_le_bytes());
    writer.copy(&[0x40 | b >> 3, 0x83, 0xf0 | b & 7, way_of(entry.number)]);
    writer.copy(&[0x40 | b >> 3, 0x83, 0xe0 | b & 7, WAY_BITS]);
    let rex = 0x40 | a >> 3 << 2 | b >> 3 << 1 | a >> 3;
    let index = (b & 7) << 3 | a & 7;
    writer.copy(&[0x65, rex, LOAD, 0x44 | (a & 7) << 3, index, field::WAYS]);
    // It must have been entered by this call, and be this function.
    on_stack(writer, LOAD, b, depth);
    Access(writer).field(COMPARE, b, a, field::BACK, true);
    branches.push(writer.branch_ahead(5)); // jne
    Access(writer).field(0x81, 7, a, field::FUNCTION, false);
    writer.copy(&entry.number.to_le_bytes());
    branches.push(writer.branch_ahead(5));
    Access(writer).field(0xff, 0, a, field::COUNT, true); // inc
    if !entry.leaf {
        compare_slot(writer, STORE, (a, b), depth);
        Access(writer).place(STORE, a, NOW);
    }
    let restore = scratch.restore();
    writer.copy(&restore);
    Some(Apart {
        branches,
        restore,
        then: Then::Ask(Asked::of(entry)),
        back: writer.here(),
    })
}

/// A function follows in place of another: behind its own entering if that came here before, else all is left to it.
fn tail(writer: &mut Writer, (site, entry): (u32, Entry), to: Spot, live: Set) -> Option<Apart> {
    if live.has_any(Set::STATUS) {
        announce(writer, site | MARK, live);
        return None;
    }
    let scratch = Scratch::of(live, 2);
    let (a, b) = (scratch.registers[0], scratch.registers[1]);
    let mut branches = Vec::new();
    scratch.save(writer);
    Access(writer).place(LOAD, a, NOW);
    compare_slot(writer, COMPARE, (a, b), scratch.depth());
    branches.push(writer.branch_ahead(5)); // jne
    let way = (site as u8 ^ way_of(entry.number)) & WAY_BITS;
    // Too far for a displacement of one byte.
    writer.copy(&[
        0x65,
        0x40 | a >> 3 << 2 | a >> 3,
        LOAD,
        0x80 | (a & 7) << 3 | a & 7,
    ]);
    writer.copy(&u32::from(field::WAYS + way).to_le_bytes());
    Access(writer).field(0x81, 7, a, field::SITE, false); // cmp
    writer.copy(&(site | MARK).to_le_bytes());
    branches.push(writer.branch_ahead(5));
    Access(writer).field(0xff, 0, a, field::COUNT, true); // inc
    match entry.leaf {
        true => Access(writer).field(LOAD, a, a, field::AFTER, false),
        false => compare_slot(writer, STORE, (a, b), scratch.depth()),
    }
    Access(writer).place(STORE, a, NOW);
    let restore = scratch.restore();
    writer.copy(&restore);
    writer.jump(to);
    Some(Apart {
        branches,
        restore,
        then: Then::Announce(site, live),
        back: writer.here(),
    })
}

/// Compares the slot of the node in `a`, or sets it, with where the return address is.
fn compare_slot(writer: &mut Writer, opcode: u8, (a, b): (u8, u8), depth: u32) {
    let slot = match depth {
        0 => RSP,
        _ => {
            on_stack(writer, 0x8d, b, depth); // lea
            b
        }
    };
    Access(writer).field(opcode, slot, a, field::SLOT, true);
}

/// A function ends, whoever looks at flags. Its slot is where the stack pointer is, or else it is asked.
fn leave(writer: &mut Writer, live: Set) -> Apart {
    let scratch = match live.has_any(Set::register(Register::RCX)) {
        true => Scratch {
            registers: vec![RCX],
            pushed: vec![RCX],
        },
        false => Scratch {
            registers: vec![RCX],
            pushed: Vec::new(),
        },
    };
    scratch.save(writer);
    Access(writer).place(LOAD, RCX, NOW);
    Access(writer).field(LOAD, RCX, RCX, field::SLOT, true);
    writer.copy(&[0x48, 0xf7, 0xd1]); // not rcx
    writer.copy(&[0x48, 0x8d, 0x8c, 0x0c]); // lea rcx, [rsp + rcx + depth + 1]
    writer.copy(&(scratch.depth() + 1).to_le_bytes());
    writer.copy(&[0xe3, 5]); // jrcxz
    writer.copy(&[0xe9, 0, 0, 0, 0]);
    let branch = writer.bytes.len();
    Access(writer).place(LOAD, RCX, NOW);
    Access(writer).field(LOAD, RCX, RCX, field::AFTER, false);
    Access(writer).place(STORE, RCX, NOW);
    let restore = scratch.restore();
    writer.copy(&restore);
    Apart {
        branches: vec![branch],
        restore,
        then: Then::Ask(Asked::new(LEAVE, 0)),
        back: writer.here(),
    }
}

fn announce(writer: &mut Writer, site: u32, live: Set) {
    let scratch = Scratch::of(live, 1);
    let register = scratch.registers.first().copied().unwrap_or(RAX);
    scratch.save(writer);
    Access(writer).place(LOAD, register, NOW);
    Access(writer).field(0xc7, 0, register, field::OUT, false); // mov
    writer.copy(&site.to_le_bytes());
    writer.copy(&scratch.restore());
}

impl Apart {
    /// Appends it.
    pub(crate) fn write(&self, writer: &mut Writer) {
        for &branch in &self.branches {
            writer.land(branch);
        }
        writer.copy(&self.restore);
        match self.then {
            Then::Ask(asked) => asked.write(writer),
            Then::Announce(site, live) => announce(writer, site | MARK, live),
        }
        writer.jump(self.back);
    }
}

/// How many registers nobody looks at that could be used.
pub(crate) fn spare(live: Set) -> usize {
    let scratch = (0..16).filter(|number| ![RSP, RBP, R12].contains(number));
    scratch
        .filter(|number| !live.has_any(Set::numbered(*number)))
        .count()
}
