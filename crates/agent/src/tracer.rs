//! Whether a debugger traces this process.
//!
//! A debugger stops at each SIGTRAP, and one that it did not ask for it does not pass on: the program would
//! go on behind the trap of a probe, in the middle of an instruction. Nor can it put breakpoints into
//! text that is shared. So under a debugger nothing is armed; its user wants to see the program as it
//! is anyway. What only watches system calls passes all signals on, and does not hinder.
//!
//! To ask costs as much as arming a small program. So first comes a question that costs next to
//! nothing: a traced thread was stopped at least once, when its tracer came or when it executed the
//! program, and the kernel counts that among the times at which it gave up the processor. A process that
//! starts has never done so otherwise, or seldom.

use crate::names::Name;
use crate::system::{self, Access};

/// The commands, as the kernel calls their processes, that pass all signals on.
const PASS_ON: [&[u8]; 2] = [b"strace\n", b"tomo\n"];

/// Whether somebody traces this process who would keep its traps for himself. Where the system does not
/// tell, nobody does.
pub(crate) fn is_debugger() -> bool {
    system::pauses() > 0 && tracer().is_some_and(|process| !passes_on(process))
}

/// The process that traces this one.
fn tracer() -> Option<u32> {
    let mut text = [0; 1024];
    let file = system::open(c"/proc/self/status", Access::Read, true).ok()?;
    let length = file.read_at(&mut text, 0).ok()?;
    let mut lines = text.get(..length)?.split(|byte| *byte == b'\n');
    let line = lines.find_map(|line| line.strip_prefix(b"TracerPid:"))?;
    let number = line.trim_ascii().iter().try_fold(0, |number: u32, digit| {
        let digit = digit.checked_sub(b'0').filter(|digit| *digit < 10)?;
        number.checked_mul(10)?.checked_add(digit.into())
    })?;
    (number != 0).then_some(number)
}

fn passes_on(process: u32) -> bool {
    command(process).is_some_and(|(name, length)| {
        let name = name.get(..length).unwrap_or(&[]);
        PASS_ON.contains(&name)
    })
}

/// What the kernel calls a process, and a line's end.
fn command(process: u32) -> Option<([u8; 16], usize)> {
    let mut path = Name::<32>::new();
    path.push(b"/proc/")?;
    path.push_number(process)?;
    path.push(b"/comm")?;
    let file = system::open(path.ended()?, Access::Read, true).ok()?;
    let mut name = [0; 16];
    let length = file.read_at(&mut name, 0).ok()?;
    Some((name, length))
}
