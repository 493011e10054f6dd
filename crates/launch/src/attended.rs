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
mod space;
#[expect(
    unsafe_code,
    reason = "asks the system what no safe library offers; SAFETY.md argues it"
)]
mod system;
mod tracks;

use std::ffi::{OsStr, OsString};
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use nix::sys::ptrace::{self, Options};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use tomo_weave::Breakpoint;

use crate::passing::Passing;
use crate::start::Extra;
use crate::{Ended, Observed, StartError, Target, numbered, scarce, stand_in};
use calm::Calming;
use events::Attending;
use space::Wanted;
use system::Held;

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
    let mut command = Command::new(&target.command);
    command.arg0(name).args(arguments);
    extra.hand_on(&mut command);
    scarce::hand_on(&mut command);
    let (mut hear, tell) = io::pipe().map_err(failed)?;
    let (told, mut permit) = io::pipe().map_err(failed)?;
    let held = Held {
        tell,
        told,
        other: permit.as_raw_fd(),
        calmed: calm.is_some(),
        apart,
    };
    let passing = Passing::prepare().map_err(StartError::Lost)?;
    passing.hand_on(&mut command);
    system::hold_back(&mut command, held);
    numbered::hand_on(&mut command, name);
    stand_in::is_started();
    std::thread::scope(|scope| {
        // It comes back when the program has started, which waits for this thread. With the command goes its end of the pipe.
        let mut spawning = Some(scope.spawn(move || command.spawn()));
        let mut spawned = || spawning.take()?.join().ok();
        let mut number = [0; 4];
        let process = match hear.read_exact(&mut number) {
            Ok(()) => i32::from_le_bytes(number),
            Err(error) => {
                return Err(failed(spawned().and_then(Result::err).unwrap_or(error)));
            }
        };
        let seized = ptrace::seize(Pid::from_raw(process), options(calm.is_some()));
        let answer = match seized {
            Ok(()) => system::ATTENDED,
            Err(_) => system::ALONE,
        };
        permit.write_all(&[answer]).map_err(StartError::Lost)?;
        if (seized.is_err() || !starts(process))
            && let Some(Err(error)) = spawned()
        {
            return Err(failed(error));
        }
        passing.to(process);
        let wanted = points.map(|points| Wanted {
            module: &points.module.path,
            entry: points.entry,
            points: points.points,
        });
        let attending = Attending::new(process, wanted, calm.map(Calming::new), keep);
        let attended = attending.complete(seized.err().map(io::Error::from));
        if is_apart && let Some(Ok(mut child)) = spawned() {
            // Who waited for the program, and is over.
            let _ = child.wait();
        }
        attended
            .inspect(|attended| stand_in::has_ended(attended.ended))
            .map_err(StartError::Lost)
    })
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

/// Waits until a process that was held back becomes the program; whether it does.
fn starts(process: i32) -> bool {
    let id = Id::Pid(Pid::from_raw(process));
    let flags = WaitPidFlag::WEXITED
        | WaitPidFlag::WSTOPPED
        | WaitPidFlag::WNOWAIT
        | WaitPidFlag::__WALL
        | WaitPidFlag::__WNOTHREAD;
    // Who ends before that is left to the standard library, which waits for it itself.
    !matches!(
        waitid(id, flags),
        Ok(WaitStatus::Exited(..) | WaitStatus::Signaled(..))
    )
}
