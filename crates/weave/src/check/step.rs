//! Recognises the steps of chains of calls in machine code, each whole: from what they are to do, instruction by
//! instruction as it is decoded, with what saves and restores the registers that they use, and with what of
//! them lies apart.

use iced_x86::{Code, Instruction, OpKind, Register};
use tomo_wire::chains::{ENTER, JUMP, LAND, LEAVE, MARK, NOW, WAY_BITS, field, way_of};

use crate::staying::live::Set;

/// A step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) step: Step,
    /// What it changes.
    pub(super) changes: Set,
    /// Where control goes on.
    pub(super) behind: i64,
}

/// What it does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Enter {
        number: u32,
        leaf: bool,
        depth: u32,
    },
    Leave,
    Announce(u32),
    /// A tail call from a site, by the way in the node's table, to a spot.
    Tail {
        site: u32,
        way: u8,
        leaf: bool,
        to: i64,
    },
    Land(u32),
    /// A tail call from a site, and what it pushes.
    Jump(u32, Box<Instruction>),
}

/// Code that is read instruction by instruction.
struct Reading<'r> {
    /// The instruction at a spot, and where the next one is.
    at: &'r dyn Fn(i64) -> Option<(Instruction, i64)>,
    /// Where a direct branch leads.
    target: &'r dyn Fn(&Instruction) -> i64,
    here: i64,
}

/// An instruction in words: what it is and its operands, in the order of the manuals.
fn words(instruction: &Instruction) -> String {
    let operands = (0..instruction.op_count()).map(|operand| match instruction.op_kind(operand) {
        OpKind::Register => format!("{:?}", instruction.op_register(operand)),
        OpKind::Memory => format!(
            "{:?}:[{:?}+{:?}+{}]{}",
            instruction.memory_segment(),
            instruction.memory_base(),
            instruction.memory_index(),
            instruction.memory_displacement64().cast_signed(),
            instruction.memory_size().size(),
        ),
        OpKind::NearBranch64 => "there".into(),
        _ => format!("{}", constant(instruction, operand)),
    });
    let operands: Vec<String> = operands.collect();
    format!("{:?} {}", instruction.mnemonic(), operands.join(" "))
}

/// A constant operand; 0 where it is none.
fn constant(instruction: &Instruction, operand: u32) -> u64 {
    instruction.try_immediate(operand).unwrap_or_default()
}

/// `gs:[base + field]` of so many bytes.
fn part(base: Register, field: u8, size: usize) -> String {
    format!("GS:[{base:?}+None+{field}]{size}")
}

fn head(at: u32, size: usize) -> String {
    format!("GS:[None+None+{at}]{size}")
}

impl Reading<'_> {
    fn next(&mut self) -> Option<Instruction> {
        let (instruction, next) = (self.at)(self.here)?;
        self.here = next;
        Some(instruction)
    }

    fn expect(&mut self, wanted: &str) -> Option<Instruction> {
        self.next().filter(|is| words(is) == wanted)
    }

    /// Goes on only if `wanted` is next.
    fn accept(&mut self, wanted: &str) -> bool {
        let before = self.here;
        let is = self.expect(wanted).is_some();
        if !is {
            self.here = before;
        }
        is
    }

    fn branch(&mut self, mnemonic: &str) -> Option<i64> {
        let branch = self.expect(&format!("{mnemonic} there"))?;
        Some((self.target)(&branch))
    }

    fn move_stack(&mut self, by: i64) -> Option<()> {
        self.expect(&format!("Lea RSP SS:[RSP+None+{by}]0"))?;
        Some(())
    }

    /// Registers that are saved below the red zone.
    fn saved(&mut self) -> Option<Vec<Register>> {
        let before = self.here;
        let mut saved = Vec::new();
        if self.move_stack(-128).is_none() {
            self.here = before;
            return Some(saved);
        }
        loop {
            let before = self.here;
            let push = self.next()?;
            if push.code() != Code::Push_r64 {
                self.here = before;
                return (!saved.is_empty()).then_some(saved);
            }
            saved.push(push.op0_register());
        }
    }

    fn restored(&mut self, saved: &[Register]) -> Option<()> {
        for register in saved.iter().rev() {
            self.expect(&format!("Pop {register:?}"))?;
        }
        match saved.is_empty() {
            true => Some(()),
            false => self.move_stack(128),
        }
    }

    fn pushed(&mut self) -> Option<u32> {
        let push = self
            .next()
            .filter(|push| push.code() == Code::Pushq_imm32)?;
        Some(constant(&push, 0) as u32)
    }

    fn asked(&mut self, routine: u32, words: i64) -> Option<()> {
        self.expect(&format!("Call {}", head(routine, 8)))?;
        self.move_stack(128 + 8 * words)
    }

    /// What lies apart at `spot`: registers are restored, the routine is asked, and control goes back to `behind`.
    fn apart<T>(
        &self,
        spot: i64,
        saved: &[Register],
        ask: impl FnOnce(&mut Self) -> Option<T>,
        behind: i64,
    ) -> Option<T> {
        let mut apart = Reading {
            here: spot,
            ..*self
        };
        apart.restored(saved)?;
        let asked = ask(&mut apart)?;
        (apart.branch("Jmp")? == behind).then_some(asked)
    }
}

fn enters(reading: &mut Reading<'_>) -> Option<Step> {
    reading.move_stack(-128)?;
    let depth = reading.pushed()?;
    let said = reading.pushed()?;
    reading.asked(ENTER, 2)?;
    Some(Step::Enter {
        number: said & !MARK,
        leaf: said & MARK != 0,
        depth,
    })
}

fn leaves(reading: &mut Reading<'_>) -> Option<Step> {
    reading.move_stack(-128)?;
    reading.pushed().filter(|said| *said == 0)?;
    reading.asked(LEAVE, 1)?;
    Some(Step::Leave)
}

fn lands(reading: &mut Reading<'_>) -> Option<Step> {
    reading.move_stack(-128)?;
    let said = reading.pushed()?;
    reading.asked(LAND, 1)?;
    Some(Step::Land(said))
}

fn jumps(reading: &mut Reading<'_>) -> Option<Step> {
    reading.move_stack(-128)?;
    let push = reading.next()?;
    if !matches!(push.code(), Code::Push_rm64 | Code::Push_r64) {
        return None;
    }
    let site = reading.pushed()?;
    reading.asked(JUMP, 2)?;
    Some(Step::Jump(site, Box::new(push)))
}

fn follows(reading: &mut Reading<'_>) -> Option<(Step, Set)> {
    let saved = reading.saved()?;
    let depth = match saved.len() {
        0 => 0,
        count => 128 + 8 * count,
    };
    let first = reading.next()?;
    let a32 = first.op0_register();
    let a = a32.full_register();
    let mut b = Register::None;
    let mut at = Register::RSP;
    if depth > 0 {
        let places = reading.next()?;
        b = places.op0_register();
        at = b;
        if words(&places) != format!("Lea {b:?} SS:[RSP+None+{depth}]0") {
            return None;
        }
    }
    reading.expect(&format!("Cmp {} {at:?}", part(a, field::SLOT, 8)))?;
    let apart = reading.branch("Jne")?;
    let load = reading.next()?;
    let way = load
        .memory_displacement64()
        .checked_sub(field::WAYS.into())?;
    let way = u8::try_from(way).ok().filter(|way| way & !WAY_BITS == 0)?;
    let compared = reading.next()?;
    let marked = constant(&compared, 1) as u32;
    let right = words(&first) == format!("Mov {a32:?} {}", head(NOW, 4))
        && words(&load) == format!("Mov {a32:?} {}", part(a, field::WAYS + way, 4))
        && words(&compared)
            == format!("Cmp {} {}", part(a, field::SITE, 4), constant(&compared, 1))
        && marked & MARK != 0;
    let other = reading.branch("Jne")?;
    reading.expect(&format!("Inc {}", part(a, field::COUNT, 8)))?;
    let leaf = reading.accept(&format!("Mov {a32:?} {}", part(a, field::AFTER, 4)));
    match leaf {
        true => {
            reading.expect(&format!("Mov {} {a32:?}", head(NOW, 4)))?;
        }
        false if becomes_innermost(reading, (a, b), depth) => {}
        false => return None,
    }
    reading.restored(&saved)?;
    let to = reading.branch("Jmp")?;
    if !right || other != apart || a == b || saved.is_empty() != (depth == 0) {
        return None;
    }
    let announced = reading.apart(apart, &saved, announces, reading.here)?;
    if announced.0 != Step::Announce(marked) {
        return None;
    }
    let step = Step::Tail {
        site: marked & !MARK,
        way,
        leaf,
        to,
    };
    let changed = changes(&[a, b], &saved).with(Set::STATUS);
    Some((step, changed.with(announced.1)))
}

/// What is changed of `used` that was not `saved`.
fn changes(used: &[Register], saved: &[Register]) -> Set {
    let unsaved = used.iter().filter(|register| !saved.contains(register));
    unsaved.fold(Set::NONE, |set, register| {
        set.with(Set::register(*register))
    })
}

fn enters_in_passing(reading: &mut Reading<'_>) -> Option<(Step, Set)> {
    let saved = reading.saved()?;
    let depth = match saved.len() {
        0 => 0,
        count => 128 + 8 * count,
    };
    let first = reading.next()?;
    let a32 = first.op0_register();
    let a = a32.full_register();
    let loads = format!("Mov {a32:?} {}", head(NOW, 4));
    // Which is the other register shows further on.
    let mut ahead = Reading { ..*reading };
    let b = std::iter::from_fn(|| ahead.next())
        .take(4)
        .find(|next| next.code() == Code::Movzx_r32_rm8)?
        .op0_register()
        .full_register();
    let b32 = b.full_register32();
    let at = match depth {
        0 => Register::RSP,
        _ => {
            reading.expect(&format!("Lea {b:?} SS:[RSP+None+{depth}]0"))?;
            b
        }
    };
    reading.expect(&format!("Cmp {} {at:?}", part(a, field::SLOT, 8)))?;
    let apart = reading.branch("Jbe")?;
    reading.expect(&format!("Movzx {b32:?} SS:[RSP+None+{depth}]1"))?;
    let mixed = reading
        .next()
        .filter(|mix| mix.code() == Code::Xor_rm32_imm8)?;
    reading.expect(&format!("And {b32:?} {WAY_BITS}"))?;
    reading.expect(&format!("Mov {a32:?} GS:[{a:?}+{b:?}+{}]4", field::WAYS))?;
    reading.expect(&format!("Mov {b:?} SS:[RSP+None+{depth}]8"))?;
    reading.expect(&format!("Cmp {} {b:?}", part(a, field::BACK, 8)))?;
    let same = [reading.branch("Jne")?];
    let compared = reading.next()?;
    let number = constant(&compared, 1) as u32;
    let compares = format!(
        "Cmp {} {}",
        part(a, field::FUNCTION, 4),
        constant(&compared, 1)
    );
    let same = [same[0], reading.branch("Jne")?];
    let mixes = format!("Xor {b32:?} {}", way_of(number));
    let right = words(&first) == loads && words(&compared) == compares && words(&mixed) == mixes;
    if !right || same != [apart; 2] || a == b {
        return None;
    }
    reading.expect(&format!("Inc {}", part(a, field::COUNT, 8)))?;
    let leaf = !becomes_innermost(reading, (a, b), depth);
    reading.restored(&saved)?;
    let asked = reading.apart(apart, &saved, enters, reading.here)?;
    let same = matches!(asked, Step::Enter { number: n, leaf: l, .. } if (n, l) == (number, leaf));
    same.then(|| (asked, changes(&[a, b], &saved).with(Set::STATUS)))
}

/// Whether the node in `a` becomes the innermost, which is read then.
fn becomes_innermost(
    reading: &mut Reading<'_>,
    (a, b): (Register, Register),
    depth: usize,
) -> bool {
    let before = reading.here;
    let at = match depth {
        0 => Register::RSP,
        _ => b,
    };
    let becomes = (depth == 0 || reading.accept(&format!("Lea {b:?} SS:[RSP+None+{depth}]0")))
        && reading.accept(&format!("Mov {} {at:?}", part(a, field::SLOT, 8)))
        && reading.accept(&format!("Mov {} {:?}", head(NOW, 4), a.full_register32()));
    if !becomes {
        reading.here = before;
    }
    becomes
}

fn leaves_in_passing(reading: &mut Reading<'_>) -> Option<(Step, Set)> {
    const RCX: Register = Register::RCX;
    let saved = reading.saved()?;
    let depth = match saved.as_slice() {
        [] => 0,
        [RCX] => 136,
        _ => return None,
    };
    let now = head(NOW, 4);
    reading.expect(&format!("Mov ECX {now}"))?;
    reading.expect(&format!("Mov RCX {}", part(RCX, field::SLOT, 8)))?;
    reading.expect("Not RCX")?;
    reading.expect(&format!("Lea RCX SS:[RSP+RCX+{}]0", depth + 1))?;
    let on = reading.branch("Jrcxz")?;
    let apart = reading.branch("Jmp")?;
    if on != reading.here {
        return None;
    }
    reading.expect(&format!("Mov ECX {now}"))?;
    reading.expect(&format!("Mov ECX {}", part(RCX, field::AFTER, 4)))?;
    reading.expect(&format!("Mov {now} ECX"))?;
    reading.restored(&saved)?;
    let step = reading.apart(apart, &saved, leaves, reading.here)?;
    Some((step, changes(&[RCX], &saved)))
}

fn announces(reading: &mut Reading<'_>) -> Option<(Step, Set)> {
    let saved = reading.saved()?;
    let first = reading.next()?;
    let used = first.op0_register();
    let stores = reading.next()?;
    let site = constant(&stores, 1) as u32;
    let wide = used.full_register();
    let right = words(&first) == format!("Mov {used:?} {}", head(NOW, 4))
        && words(&stores) == format!("Mov {} {}", part(wide, field::OUT, 4), constant(&stores, 1))
        && saved.len() <= 1;
    reading.restored(&saved)?;
    right.then(|| (Step::Announce(site), changes(&[wide], &saved)))
}

/// Reads a step, and says what it changes.
type Passing = fn(&mut Reading<'_>) -> Option<(Step, Set)>;

/// The step that begins at `spot`, if one does. `at` reads instructions, `target` says where branches lead.
pub(super) fn read(
    spot: i64,
    at: &dyn Fn(i64) -> Option<(Instruction, i64)>,
    target: &dyn Fn(&Instruction) -> i64,
) -> Option<Found> {
    let whole = |what: &dyn Fn(&mut Reading<'_>) -> Option<(Step, Set)>| {
        let mut reading = Reading {
            at,
            target,
            here: spot,
        };
        let (step, changes) = what(&mut reading)?;
        Some(Found {
            step,
            changes,
            behind: reading.here,
        })
    };
    let asks: [fn(&mut Reading<'_>) -> Option<Step>; 4] = [enters, leaves, lands, jumps];
    let passing: [Passing; 4] = [enters_in_passing, leaves_in_passing, follows, announces];
    passing.iter().find_map(|step| whole(step)).or_else(|| {
        let ask = |ask: &fn(&mut Reading<'_>) -> Option<Step>| {
            whole(&|reading| Some((ask(reading)?, Set::NONE)))
        };
        asks.iter().find_map(ask)
    })
}
