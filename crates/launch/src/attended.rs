//! A program whose witnesses are breakpoints, and this process attends to them: the debugger's way of DPT §5. Nothing but `int3`
//! is put into the program, so it may be linked statically, and nothing need be loaded into it.
//!
//! - A breakpoint that is met is taken away, its instruction executed by a single step, and put back. Other threads of the
//!   process stand still meanwhile, so none runs past it.
//! - What is met is recorded when its instruction was executed: who is interrupted by a signal before that meets it again. Only a
//!   fault that nobody handles is a last word.
//! - Children are attended too. One that was made by `vfork` records for the thread that waits for it.
//! - Signals, also the program's own SIGTRAP, stops and exit codes are passed on as they are. When this process
//!   gives up, breakpoints are taken away and the program runs on.
//!
//! What the program could notice: its text is not what the file has; and where it meets a breakpoint while it blocks SIGTRAP the
//! system unblocks that, and takes its handler away if it has one.
//!
//! | part | file |
//! |---|---|
//! | a program started and attended to its end | this |
//! | it is held back until then | `attended/held.rs` |
//! | what happens to its threads | `attended/events.rs` |
//! | time and random numbers, alike in each run | `attended/calm.rs` |
//! | process numbers, alike in each run | `attended/apart.rs` |
//! | its memory with the breakpoints | `attended/space.rs` |
//! | what is recorded | `attended/tracks.rs` |
//! | system calls | `attended/system.rs` |

#[expect(
    unsafe_code,
    reason = "makes a namespace of processes between fork and exec; SAFETY.md argues it"
)]
mod apart;
mod calm;
mod events;
pub(crate) mod held;
mod space;
#[expect(
    unsafe_code,
    reason = "asks the system what no safe library offers; SAFETY.md argues it"
)]
pub(crate) mod system;
mod tracks;

use std::ffi::{OsStr, OsString};
use std::io;

use nix::sys::ptrace::Options;
use tomo_weave::Breakpoint;

use crate::passing::Passing;
use crate::start::Extra;
use crate::{Ended, Observed, StartError, Target, scarce, stand_in};
use calm::Calming;
use events::Attending;
use held::Hold;
use space::Wanted;

pub use calm::Calm;
pub use tracks::Keep;

/// What is attended to.
#[derive(Clone, Copy, Debug)]
pub struct Points<'p> {
    /// The module that is traced.
    pub module: &'p Observed,
    /// Where it starts, as it states it.
    pub entry: u64,
    /// The breakpoints, ascending.
    pub points: &'p [Breakpoint],
}

/// How a program went that was attended.
#[derive(Debug)]
pub struct Attended {
    /// How it ended.
    pub ended: Ended,
    /// Where its signal handlers are, as the module states it.
    pub handlers: Vec<u64>,
    /// Why not everything was recorded.
    pub problem: Option<io::Error>,
}

/// How a program is attended to.
#[derive(Debug, Default)]
pub struct Attendance<'p> {
    /// Its breakpoints, if it has any.
    pub points: Option<Points<'p>>,
    /// How it is calmed, if it is.
    pub calm: Option<Calm>,
}

/// Runs `target`, called as `name`, and attends to it until it ends, or all its processes if it is calmed; what its threads
/// record at breakpoints goes to `keep`.
///
/// # Errors
/// Where it does not start, or cannot be waited for.
pub fn attend(
    (target, name): (&Target, &OsStr),
    arguments: &[OsString],
    extra: Extra,
    attendance: Attendance<'_>,
    keep: Keep<'_>,
) -> Result<Attended, StartError> {
    let failed = |error| StartError::NotStarted(target.command.clone(), error);
    let Attendance { points, calm } = attendance;
    let apart = calm.as_ref().and_then(|calm| calm.apart.clone());
    let is_apart = apart.is_some();
    let (mut command, name) = target.start(name);
    command.args(arguments);
    extra.hand_on(&mut command);
    scarce::hand_on(&mut command);
    let hold = Hold {
        options: options(calm.is_some()),
        calmed: calm.is_some(),
        apart,
        open: Vec::new(),
    };
    let passing = Passing::prepare().map_err(StartError::Lost)?;
    passing.hand_on(&mut command);
    stand_in::is_started();
    let begun = held::begin((command, name), hold, |process, refused| {
        passing.to(process);
        let wanted = points.map(|points| Wanted {
            module: &points.module.path,
            entry: points.entry,
            points: points.points,
        });
        let attending = Attending::new(process, wanted, calm.map(Calming::new), keep);
        attending.complete(refused)
    });
    let (mut child, attended) = begun.map_err(failed)?;
    if is_apart {
        // Who waited for the program, and is over.
        let _ = child.wait();
    }
    attended
        .inspect(|attended| stand_in::has_ended(attended.ended))
        .map_err(StartError::Lost)
}

/// What is asked of the system about a program. One that is calmed cannot go on if nobody answers, so it ends with this process.
fn options(is_calmed: bool) -> Options {
    let always = Options::PTRACE_O_TRACEEXEC
        | Options::PTRACE_O_TRACECLONE
        | Options::PTRACE_O_TRACEFORK
        | Options::PTRACE_O_TRACEVFORK
        | Options::PTRACE_O_TRACEVFORKDONE;
    let calmed = Options::PTRACE_O_TRACESECCOMP
        | Options::PTRACE_O_TRACESYSGOOD
        | Options::PTRACE_O_EXITKILL;
    if is_calmed { always | calmed } else { always }
}
