//! What room there is on the disk that a file is on, and how it is taken.

use super::{Errno, FULL, File, call, may_grow_to};

const FILE_SYSTEM: usize = 138;
const ALLOCATE: usize = 285;

/// How much of a disk's room is left to the program at most: 1 GiB.
const MOST_LEFT: u64 = 1 << 30;

impl File {
    /// What is told of the file system that the file is in; `struct statfs` of x86-64 in words: kind, bytes of a block,
    /// blocks, free ones, and free ones for who has no privileges.
    fn system(&self) -> Result<[u64; 15], Errno> {
        let mut told = [0_u64; 15];
        let to = (&raw mut told) as usize;
        // SAFETY: the kernel fills one `struct statfs`, which has this size.
        unsafe { call(FILE_SYSTEM, [self.0, to, 0, 0, 0, 0]) }.map(|_| told)
    }

    /// Whether it is kept in memory alone, as far as the system tells.
    pub(crate) fn is_in_memory(&self) -> bool {
        const IN_MEMORY: u64 = 0x0102_1994;
        self.system().is_ok_and(|[kind, ..]| kind == IN_MEMORY)
    }

    /// How many bytes there are where the file is, and how many of these are free.
    fn room(&self) -> Result<(u64, u64), Errno> {
        let [_, bytes, all, _, free, ..] = self.system()?;
        Ok((all.saturating_mul(bytes), free.saturating_mul(bytes)))
    }

    /// Sees to it that there is room for these bytes, so that storing to them cannot fail. The last of a disk's room is left
    /// to the program.
    pub(crate) fn allocate(&self, start: u64, length: u64) -> Result<(), Errno> {
        may_grow_to(start.saturating_add(length))?;
        let (all, free) = self.room()?;
        if free.saturating_sub(length) < (all / 20).min(MOST_LEFT) {
            return Err(FULL);
        }
        // SAFETY: nothing in memory changes.
        unsafe { call(ALLOCATE, [self.0, 0, start as usize, length as usize, 0, 0]) }.map(|_| ())
    }
}
