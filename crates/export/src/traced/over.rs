//! Room that the rings of processes which are over give back to the disk while others go on: so a program that starts many, one
//! after the other, needs no more than those take that run at a time.
//!
//! A ring is its own process's alone, and nobody has it afterwards. What stands in it and was not taken yet stays.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};

use nix::fcntl::{FallocateFlags, fallocate};
use nix::sys::signal::kill;
use nix::unistd::Pid;
use tomo_wire::counting::{OWNERS, process_of};
use tomo_wire::tracing::{UNIT, units};

use super::taking::state_of;

/// Which slabs' rings have been given back.
pub(super) struct Over {
    done: HashSet<u32>,
    /// The namespace of processes in which this one is, as owners of slabs have it.
    namespace: u64,
}

impl Over {
    pub(super) fn new() -> Self {
        let namespace = fs::metadata("/proc/self/ns/pid").map_or(0, |file| file.ino());
        Self {
            done: HashSet::new(),
            namespace: namespace % (1 << 10),
        }
    }

    /// Gives back what the ring of this slab has besides what is still to be taken, if its process is over.
    pub(super) fn give_back(&mut self, file: &File, slab: u32) -> io::Result<()> {
        if self.done.contains(&slab) || !self.is_over(file, slab)? {
            return Ok(());
        }
        self.done.insert(slab);
        // Read now, when it is final.
        let Some(state) = state_of(file, slab)? else {
            return Ok(());
        };
        let taken = state.taken.get();
        let kept = taken..state.length().div_ceil(UNIT);
        // Of one that holds more than it has units for, which cannot be, nothing is given back.
        if kept.end.saturating_sub(kept.start) >= state.slots.get() {
            return Ok(());
        }
        let free = (kept.end..taken.saturating_add(state.slots.get())).map_while(|position| {
            let at = state.unit_at(position)?.checked_mul(UNIT)?;
            i64::try_from(at.checked_add(units())?).ok()
        });
        let how = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
        for at in free {
            // A file system that makes no holes keeps it until the end.
            let _ = fallocate(file, how, at, UNIT as i64);
        }
        Ok(())
    }

    fn is_over(&self, file: &File, slab: u32) -> io::Result<bool> {
        let mut owner = [0; 8];
        file.read_exact_at(&mut owner, OWNERS + 8 * u64::from(slab))?;
        let process = process_of(u64::from_le_bytes(owner), self.namespace);
        let process = process.and_then(|process| i32::try_from(process).ok());
        let is_over = |process| kill(Pid::from_raw(process), None) == Err(nix::errno::Errno::ESRCH);
        Ok(process.is_some_and(is_over))
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use tomo_wire::counting::{NAMESPACE_AT, Slabs};
    use tomo_wire::tracing::State;
    use zerocopy::{FromZeros as _, IntoBytes as _};

    use super::*;

    /// Slots of the ring.
    const SLOTS: u64 = 4;

    /// Tracks with one of `process`, of which a unit was taken and one and a half were not; and the ring's units, filled.
    fn tracks(process: u32) -> File {
        let file = tempfile::tempfile().expect("a file");
        let state = State {
            ring: 4096.into(),
            slots: SLOTS.into(),
            taken: 1.into(),
            full: (UNIT * 5 / 2).into(),
            ..State::new_zeroed()
        };
        let write = |bytes: &[u8], at| file.write_all_at(bytes, at).expect("written");
        write(state.as_bytes(), Slabs::head());
        let owner = Over::new().namespace << NAMESPACE_AT | u64::from(process) << 32;
        write(&owner.to_le_bytes(), OWNERS);
        write(&vec![7; (SLOTS * UNIT) as usize], units());
        file
    }

    /// Whether each unit of the ring has what was written there; what has nothing of it has no room on the disk either.
    fn is_there(file: &File) -> [bool; SLOTS as usize] {
        [0, 1, 2, 3].map(|slot| {
            let mut unit = vec![0; UNIT as usize];
            let at = units() + slot * UNIT;
            file.read_exact_at(&mut unit, at).expect("read");
            unit.iter().all(|byte| *byte == 7)
        })
    }

    #[test]
    fn of_a_process_that_is_over_what_was_not_taken_stays() {
        let mut child = Command::new("true").spawn().expect("started");
        child.wait().expect("ended");
        let file = tracks(child.id());
        let room = file.metadata().expect("told").blocks();
        Over::new().give_back(&file, 0).expect("done");
        assert_eq!(is_there(&file), [false, true, true, false]);
        assert!(file.metadata().expect("told").blocks() < room);
    }

    #[test]
    fn of_a_process_that_goes_on_all_stays() {
        let file = tracks(std::process::id());
        Over::new().give_back(&file, 0).expect("done");
        assert_eq!(is_there(&file), [true; SLOTS as usize]);
    }
}
