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
use crate::{system, told};

/// The commands, as the kernel calls their processes, that pass all signals on.
const PASS_ON: [&[u8]; 2] = [b"strace\n", b"tomo\n"];

/// Whether somebody traces this process who would keep its traps for himself. Where the system does not
/// tell, nobody does.
pub(crate) fn is_debugger() -> bool {
    system::pauses() > 0 && tracer().is_some_and(|process| passes_on(process) != Some(true))
}

/// The process that traces this one.
pub(crate) fn tracer() -> Option<u64> {
    let mut buffer = [0; 1024];
    let text = told::read(c"/proc/self/status", &mut buffer)?;
    let mut lines = text.split(|byte| *byte == b'\n');
    let line = lines.find_map(|line| line.strip_prefix(b"TracerPid:"))?;
    told::number(line.trim_ascii()).filter(|process| *process != 0)
}

/// Whether a process passes all signals on, as what the kernel calls it says.
fn passes_on(process: u64) -> Option<bool> {
    let mut path = Name::<32>::new();
    path.push(b"/proc/")?;
    path.push_number(process.try_into().ok()?)?;
    path.push(b"/comm")?;
    let mut buffer = [0; 16];
    let name = told::read(path.ended()?, &mut buffer)?;
    Some(PASS_ON.contains(&name))
}
