//! A record says what became of a program that was armed from outside: what an agent would note.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use nix::fcntl::{Flock, FlockArg};
use tomo_wire::record::{LIVE, Live, Reason};
use zerocopy::{FromZeros as _, IntoBytes as _};

/// Notes that this process is armed.
pub(super) fn armed(record: &File, process: i32) -> io::Result<()> {
    change(record, |live| {
        live.armed += 1;
        live.process = u64::from(process.cast_unsigned()).into();
    })
}

/// Notes that a process is not armed, and why.
pub(super) fn refused(record: &File, reason: Reason, errno: i32) -> io::Result<()> {
    change(record, |live| {
        live.refused += 1;
        live.reason = (reason as u32).into();
        live.errno = (errno as u32).into();
        live.reasons |= reason.bit();
    })
}

/// Changes what is noted. Records of programs without an agent are changed by launchers alone, one at a time.
fn change(record: &File, how: impl FnOnce(&mut Live)) -> io::Result<()> {
    let locked = Flock::lock(record.try_clone()?, FlockArg::LockExclusive);
    let file = locked.map_err(|(_, error)| io::Error::from(error))?;
    let mut live = Live::new_zeroed();
    file.read_exact_at(live.as_mut_bytes(), LIVE)?;
    how(&mut live);
    file.write_all_at(live.as_bytes(), LIVE)
}
