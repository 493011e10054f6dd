//! Modules that set the base of `gs` themselves.
//!
//! Probes that stay find by it what belongs to their thread (`slabs.rs`). Who sets it, and calls code with such probes before setting
//! it back (WebAssembly that was compiled ahead of time does, whose memory it leads to), would have them write there. The launcher
//! refuses such a module where it is observed itself. Here all others are looked at, those that come later, too, before any of
//! their code runs: once one is found no such probe is armed, and those that are there leave.
//!
//! What is looked for is the instruction `wrgsbase`. Who asks the system to set it (`arch_prctl`, as Wine does) is not noticed.

use core::sync::atomic::{AtomicBool, Ordering};

use tomo_wire::roster::RosterView;

use crate::loader::{self, Module};
use crate::{given, slabs, symbols};

/// Whether a module sets it.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// Whether probes cannot rely on `gs`.
pub(crate) fn is_taken() -> bool {
    IS_TAKEN.load(Ordering::Relaxed)
}

/// Looks at all modules that are there, before anything is armed, but for those of the roster.
pub(crate) fn look_at_all(roster: &RosterView<'_>) {
    let is_observed = |module: &Module<'_>| {
        let id = module.build_id();
        let mut entries = roster.entries.iter();
        id.is_some() && entries.any(|entry| entry.module.build_id() == id)
    };
    loader::for_each(|module| {
        if !is_taken() && !is_observed(&module) && sets(&module) {
            IS_TAKEN.store(true, Ordering::Relaxed);
        }
    });
}

/// Looks at a module that has come, none of which has run, where there are such probes.
pub(crate) fn look_at(module: &Module<'_>) {
    if slabs::size() > 0 && !is_taken() && sets(module) {
        IS_TAKEN.store(true, Ordering::Relaxed);
        given::to_who_takes_the_segment();
    }
}

/// Libraries that nearly every program has, and that leave `gs` alone, as the ABI does: reading all of them takes a short program's time.
const LIBRARIES: [&[u8]; 6] = [
    b"libc.so.6",
    b"libm.so.6",
    b"libgcc_s.so.1",
    b"libstdc++.so.6",
    b"libpthread.so.0",
    b"ld-linux-x86-64.so.2",
];

fn sets(module: &Module<'_>) -> bool {
    let name = module.path.to_bytes().rsplit(|byte| *byte == b'/').next();
    let is_known = name.is_some_and(|name| LIBRARIES.contains(&name));
    // Ours sets it for those who count.
    !is_known && !symbols::is_agent(module) && module.texts().any(has_instruction)
}

/// Whether these bytes have `wrgsbase` in them (Intel, *Software Developer's Manual*, vol. 2, WRFSBASE/WRGSBASE): `f3`, a REX prefix or
/// none, `0f ae`, and a ModRM byte with 3 for both its mode and what is done.
fn has_instruction(text: &[u8]) -> bool {
    /// A few words, which are looked at at once.
    const SOME: usize = 64;
    const RARE: u8 = 0xae;
    let is_one = |at: usize| {
        let before = |bytes: usize| at.checked_sub(bytes).and_then(|at| text.get(at));
        let is_prefixed = match before(2) {
            Some(0xf3) => true,
            Some(0x40..=0x4f) => before(3) == Some(&0xf3),
            _ => false,
        };
        is_prefixed && before(1) == Some(&0x0f) && matches!(text.get(at + 1), Some(0xd8..=0xdf))
    };
    let has_one = |(number, some): (usize, &[u8])| {
        let has_rare = some.iter().fold(false, |has, byte| has | (*byte == RARE));
        let mut places = some.iter().enumerate();
        has_rare && places.any(|(at, byte)| *byte == RARE && is_one(number * SOME + at))
    };
    text.chunks(SOME).enumerate().any(has_one)
}

#[cfg(test)]
mod tests {
    use super::has_instruction;

    #[test]
    fn the_instruction_is_found_wherever_it_is() {
        // wrgsbase rdi; wrgsbase r15; wrgsbase eax.
        let each: [&[u8]; 3] = [
            b"\xf3\x48\x0f\xae\xdf",
            b"\xf3\x49\x0f\xae\xdf",
            b"\xf3\x0f\xae\xd8",
        ];
        for instruction in each {
            for place in 0..200 {
                let mut text = vec![0xae; place];
                text.extend(instruction);
                text.extend([0x90; 70]);
                assert!(has_instruction(&text), "{instruction:x?} at {place}");
                assert!(!has_instruction(&text[..place + instruction.len() - 1]));
            }
        }
        // rdgsbase rax; wrfsbase rdi; sfence; stmxcsr [rax]; xrstor; what lacks its prefix.
        let others: [&[u8]; 6] = [
            b"\xf3\x48\x0f\xae\xc8",
            b"\xf3\x48\x0f\xae\xd7",
            b"\x0f\xae\xf8",
            b"\x0f\xae\x18",
            b"\x48\x0f\xae\x28",
            b"\x48\x0f\xae\xdf",
        ];
        assert!(others.into_iter().all(|bytes| !has_instruction(bytes)));
        assert!(!has_instruction(b""));
    }
}
