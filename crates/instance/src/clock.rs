//! Processor time of the program: so far, and in the end.

use std::fs;
use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use nix::unistd::{SysconfVar, sysconf};

/// Processor time that a process has used so far, if it is there and the system tells.
pub(crate) fn of_process(process: u32) -> Option<Duration> {
    let ticks = fields(process)?;
    let used: u64 = [11, 12].iter().filter_map(|at| number(&ticks, *at)).sum();
    let second = sysconf(SysconfVar::CLK_TCK).ok()??;
    let second = u64::try_from(second).ok().filter(|ticks| *ticks > 0)?;
    Some(Duration::from_nanos(
        used.saturating_mul(1_000_000_000) / second,
    ))
}

/// When a process was started, in a unit and from a time that are the system's; together with its number it
/// names the process for as long as the system runs. Nothing where it has ended, though nobody has waited for it yet.
pub(crate) fn birth(process: u32) -> Option<u64> {
    let fields = fields(process)?;
    let ended = fields
        .first()
        .is_none_or(|state| state == "Z" || state == "X");
    if ended { None } else { number(&fields, 19) }
}

/// Processor time of all children that have ended so far.
pub(crate) fn of_children() -> Duration {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_CHILDREN) else {
        return Duration::ZERO;
    };
    let micros = |time: nix::sys::time::TimeVal| {
        use nix::sys::time::TimeValLike as _;
        Duration::from_micros(u64::try_from(time.num_microseconds()).unwrap_or(0))
    };
    micros(usage.user_time()) + micros(usage.system_time())
}

/// What proc(5) says of a process, behind its name (which may hold anything): the state is the first.
fn fields(process: u32) -> Option<Vec<String>> {
    let stat = fs::read(format!("/proc/{process}/stat")).ok()?;
    let behind = stat.rsplit(|byte| *byte == b')').next()?;
    let behind = str::from_utf8(behind).ok()?;
    Some(behind.split_whitespace().map(str::to_owned).collect())
}

fn number(fields: &[String], at: usize) -> Option<u64> {
    fields.get(at)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    use std::process::{Command, Stdio};

    use super::{birth, of_process};

    /// The system cuts it after fifteen bytes, perhaps in the midst of a letter.
    #[test]
    fn a_process_has_a_birth_though_its_name_is_no_text() {
        let folder = tempfile::tempdir().expect("a folder");
        let program = folder.path().join(OsStr::from_bytes(b"\xff"));
        std::fs::copy("/bin/cat", &program).expect("copied");
        let mut program = Command::new(program);
        let mut waits = program.stdin(Stdio::piped()).spawn().expect("started");
        assert!(birth(waits.id()).is_some() && of_process(waits.id()).is_some());
        drop(waits.stdin.take());
        assert!(waits.wait().expect("ended").success());
    }

    #[test]
    fn this_process_has_a_birth_and_nobody_has_number_zero() {
        let me = std::process::id();
        assert!(birth(me).is_some_and(|birth| birth > 0));
        assert_eq!(birth(me), birth(me));
        assert!(of_process(me).is_some());
        assert_eq!((birth(0), of_process(0)), (None, None));
    }
}
