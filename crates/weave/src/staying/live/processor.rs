//! What instructions are said to read and write, held against a processor that executes them.
//!
//! An instruction is executed from two states that agree in all that it is said to read and in nothing else. Where
//! that is all that it reads, it leaves the same in memory, in what it is said to write and in what it reads,
//! goes on at the same place, or meets the same fault. Instructions are those of the encodings without AVX-512: each opcode of
//! each map, with each prefix that has a meaning, with registers that differ and that are the same, and with memory.

use std::collections::BTreeSet;

use iced_x86::{
    Code, Decoder, DecoderOptions, Instruction, InstructionInfoFactory, Mnemonic, OpKind, Register,
};
use tomo_testkit::steps::single::{Outcome, Processor, State};

use super::{Effect, FLAGS, Set};

/// The status flags' bits in the register of flags, in the order of `STATUS`.
const PLACES: [u32; 6] = [0, 2, 4, 6, 7, 11];
/// How many states each instruction is executed from, and the same again beside them.
const STATES: u32 = 4;

/// Numbers that look random.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A value as programs have them: small, an address of nothing, or any.
    fn value(&mut self) -> u64 {
        let number = self.next();
        match number % 4 {
            0 => number >> 58,
            1 => number >> 17,
            2 => number >> 32,
            _ => number,
        }
    }

    fn state(&mut self) -> State {
        State {
            registers: std::array::from_fn(|_| self.value()),
            flags: self.next(),
        }
    }
}

/// One encoding, with what the decoder makes of it.
struct Sample {
    bytes: [u8; 15],
    instruction: Instruction,
}

/// What makes two encodings the same here.
type Kind = (Code, [OpKind; 3], bool, bool, bool);

fn kind(instruction: &Instruction) -> Kind {
    let last = instruction.op_count().saturating_sub(1);
    (
        instruction.code(),
        [0, 1, 2].map(|at| instruction.op_kind(at)),
        instruction.op0_register() == instruction.op1_register(),
        instruction.has_rep_prefix() || instruction.has_repne_prefix(),
        instruction.op_kind(last) == OpKind::Immediate8 && instruction.immediate(last) & 0x3f == 0,
    )
}

/// What every encoding begins with, up to its opcode.
fn beginnings() -> Vec<Vec<u8>> {
    let prefixes: [&[u8]; 9] = [
        &[],
        &[0x66],
        &[0xf2],
        &[0xf3],
        &[0x48],
        &[0x66, 0x48],
        &[0xf2, 0x48],
        &[0xf3, 0x48],
        &[0xf0],
    ];
    let maps: [&[u8]; 4] = [&[], &[0x0f], &[0x0f, 0x38], &[0x0f, 0x3a]];
    let legacy = prefixes
        .iter()
        .flat_map(|prefix| maps.map(|map| [prefix, map].concat()));
    // VEX of three bytes: map; W, the register rbx, length, prefix.
    let vex = (1..=3u8).flat_map(|map| {
        let rest = [0u8, 0x80]
            .into_iter()
            .flat_map(|wide| (0..8u8).map(move |low| wide | low));
        rest.map(move |rest| vec![0xc4, 0xe0 | map, rest | (!3 & 0xf) << 3])
    });
    legacy.chain(vex).collect()
}

/// One sample of each kind.
fn samples() -> Vec<Sample> {
    let mut seen = BTreeSet::new();
    let mut samples = Vec::new();
    for beginning in beginnings() {
        for (opcode, digit) in
            (0..=255u8).flat_map(|opcode| (0..8u8).map(move |digit| (opcode, digit)))
        {
            // Registers that differ and that do not, and memory at rcx.
            let forms = [
                0xc1 | digit << 3,
                0xc0 | digit << 3 | digit,
                0x41 | digit << 3,
            ];
            for (form, constant) in forms
                .into_iter()
                .flat_map(|form| [0, 3, 0x21].map(|c| (form, c)))
            {
                let end = [opcode, form, constant, constant, constant, constant];
                let mut bytes = [0; 15];
                for (place, byte) in bytes.iter_mut().zip(beginning.iter().chain(&end)) {
                    *place = *byte;
                }
                let mut decoder =
                    Decoder::with_ip(64, &bytes, Processor::CODE, DecoderOptions::NONE);
                let instruction = decoder.decode();
                if can_be_tried(&instruction) && seen.insert(kind(&instruction)) {
                    samples.push(Sample { bytes, instruction });
                }
            }
        }
    }
    samples
}

/// Whether one step is one instruction, which leaves the process as it was but for what is looked at.
fn can_be_tried(instruction: &Instruction) -> bool {
    use Mnemonic::*;
    let segment = instruction.op0_register().is_segment_register();
    let other = matches!(
        instruction.mnemonic(),
        Popf | Popfq
            | Iret
            | Iretd
            | Iretq
            | Xrstor
            | Xrstor64
            | Wrpkru
            | Wrfsbase
            | Wrgsbase
            | Xbegin
    );
    !instruction.is_invalid() && !segment && !other && !super::asks_the_system(instruction)
}

/// Makes the memory that the instruction names be there, where that is a matter of registers.
fn aim(instruction: &Instruction, state: &mut State) {
    use Mnemonic::*;
    let middle = Processor::DATA.start + 0x800;
    let mut set = |register: Register, value| {
        state.registers[register.full_register().number()] = value;
    };
    set(Register::RSP, middle);
    match instruction.mnemonic() {
        Leave | Enter => set(Register::RBP, middle),
        Xlatb => set(Register::RBX, middle),
        Clzero => set(Register::RAX, middle),
        Maskmovq | Maskmovdqu | Vmaskmovdqu => set(Register::RDI, middle),
        Movdir64b => set(instruction.op0_register(), middle),
        _ => {}
    }
    if instruction.is_string_instruction() {
        set(Register::RSI, middle + 0x100);
        set(Register::RDI, middle);
        set(Register::RCX, 5);
    }
    if instruction.memory_base() != Register::None {
        set(instruction.memory_base(), middle);
    }
}

/// Whether there is a bit of `set` for the register or flag with this number.
fn has(set: Set, number: u32) -> bool {
    set.has_any(Set(1 << number))
}

/// The register or flag with this number.
fn value(state: &State, number: u32) -> u64 {
    match number.checked_sub(FLAGS) {
        None => state.registers[number as usize],
        Some(flag) => state.flags >> PLACES[flag as usize] & 1,
    }
}

/// `one` with everything that is not in `reads` taken from `other`.
fn beside(one: &State, other: &State, reads: Set) -> State {
    let mut state = *one;
    for number in (0..FLAGS + 6).filter(|&number| !has(reads, number)) {
        match number.checked_sub(FLAGS) {
            None => state.registers[number as usize] = other.registers[number as usize],
            Some(flag) => {
                let bit = 1 << PLACES[flag as usize];
                state.flags = state.flags & !bit | other.flags & bit;
            }
        }
    }
    state
}

/// What contradicts that the instruction did this from states that agree in `effect.reads`. Flags that are not defined
/// afterwards may be anything.
fn contradiction(
    instruction: &Instruction,
    effect: Effect,
    one: &Outcome,
    two: &Outcome,
) -> Option<String> {
    let (
        Outcome::Done {
            state: a,
            next: to_a,
            data: data_a,
        },
        Outcome::Done {
            state: b,
            next: to_b,
            data: data_b,
        },
    ) = (one, two)
    else {
        return (one != two).then(|| "another fault".to_owned());
    };
    if to_a != to_b {
        return Some("goes on elsewhere".to_owned());
    }
    if data_a != data_b {
        return Some("leaves other data".to_owned());
    }
    let known = effect
        .reads
        .with(effect.writes)
        .without(Set::flags(instruction.rflags_undefined()));
    let differs =
        (0..FLAGS + 6).find(|&number| has(known, number) && value(a, number) != value(b, number));
    differs.map(|number| format!("leaves another {}", name(number)))
}

fn name(number: u32) -> String {
    match number.checked_sub(FLAGS) {
        None => format!("{:?}", Register::RAX + number),
        Some(flag) => {
            ["carry", "parity", "adjust", "zero", "sign", "overflow"][flag as usize].to_owned()
        }
    }
}

/// What became of one sample.
enum Verdict {
    /// It never was executed: it faults, or does not do the same twice.
    Untried,
    Agrees,
    Differs(String),
}

fn judge(
    processor: &mut Processor,
    sample: &Sample,
    effect: Effect,
    numbers: &mut Numbers,
) -> Verdict {
    let mut verdict = Verdict::Untried;
    for _ in 0..STATES {
        let mut one = numbers.state();
        aim(&sample.instruction, &mut one);
        let other = beside(&one, &numbers.state(), effect.reads);
        let [first, again, beside] =
            [one, one, other].map(|state| processor.execute(&sample.bytes, &state).unwrap());
        if first != again || matches!(first, Outcome::Signalled(_)) {
            continue;
        }
        match contradiction(&sample.instruction, effect, &first, &beside) {
            None => verdict = Verdict::Agrees,
            Some(what) => return Verdict::Differs(what),
        }
    }
    verdict
}

#[test]
fn instructions_read_and_write_what_they_are_said_to() {
    let mut processor = Processor::new().unwrap();
    let (mut numbers, mut factory) = (Numbers(1), InstructionInfoFactory::new());
    let mut agreed = 0;
    let mut wrong = Vec::new();
    for sample in samples() {
        let effect = Effect::of(&sample.instruction, &mut factory);
        match judge(&mut processor, &sample, effect, &mut numbers) {
            Verdict::Untried => {}
            Verdict::Agrees => agreed += 1,
            Verdict::Differs(what) => wrong.push(format!(
                "{:?} ({:02x?}): {what}",
                sample.instruction.code(),
                &sample.bytes[..sample.instruction.len()]
            )),
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {agreed} differ: {wrong:#?}",
        wrong.len()
    );
    assert!(agreed > 3_000, "{agreed} were tried");
}

#[test]
fn a_wrong_word_is_noticed() {
    let mut processor = Processor::new().unwrap();
    let mut numbers = Numbers(1);
    let mut noticed = |bytes: &[u8], change: fn(&mut Effect)| {
        let instruction =
            Decoder::with_ip(64, bytes, Processor::CODE, DecoderOptions::NONE).decode();
        let mut effect = Effect::of(&instruction, &mut InstructionInfoFactory::new());
        change(&mut effect);
        let mut sample = Sample {
            bytes: [0; 15],
            instruction,
        };
        sample.bytes[..bytes.len()].copy_from_slice(bytes);
        matches!(
            judge(&mut processor, &sample, effect, &mut numbers),
            Verdict::Differs(_)
        )
    };
    assert!(!noticed(&[0x48, 0x01, 0xc1], |_| {}), "add rcx, rax");
    assert!(noticed(&[0x48, 0x01, 0xc1], |effect| effect.reads =
        effect.reads.without(Set::numbered(0))));
    assert!(
        noticed(&[0xb0, 1], |effect| effect.writes =
            effect.writes.with(Set::numbered(0))),
        "mov al, 1"
    );
    assert!(
        noticed(&[0xff, 0xc0], |effect| effect.writes =
            effect.writes.with(Set::CARRY)),
        "inc eax"
    );
    assert!(
        noticed(&[0x72, 0x10], |effect| effect.reads = Set::NONE),
        "jc"
    );
    assert!(
        noticed(&[0x88, 0x01], |effect| effect.reads =
            effect.reads.without(Set::numbered(0))),
        "mov [rcx], al"
    );
}
