//! What room there is on the disk that a file is on, and how it is taken.

use tomo_wire::PAGE;

use super::{Errno, FULL, File, call, may_grow_to};

/// The kernel's words where a file system knows no such call.
const NOT_SUPPORTED: Errno = Errno(95);
const NO_CALL: Errno = Errno(38);

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
        match unsafe { call(ALLOCATE, [self.0, 0, start as usize, length as usize, 0, 0]) } {
            Err(NOT_SUPPORTED | NO_CALL) => self.touch(start, length),
            result => result.map(|_| ()),
        }
    }

    /// The same where the file system does not do it by itself (ext2, and some that are shared over a network): a byte is written
    /// back to each block, which is there from then on. Nobody else stores to these bytes meanwhile.
    fn touch(&self, start: u64, length: u64) -> Result<(), Errno> {
        let [_, block, ..] = self.system()?;
        let block = block.clamp(512, PAGE);
        let end = start.saturating_add(length);
        // The first byte, one in each block behind that, and the last, so that the file is as long.
        let blocks = (start / block + 1..end.div_ceil(block)).map(|number| number * block);
        let last = end.saturating_sub(1);
        let all = [start].into_iter().chain(blocks).chain([last]);
        for at in all.filter(|at| (start..end).contains(at)) {
            let mut byte = [0];
            self.read_at(&mut byte, at)?;
            self.write_at(&byte, at)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{File, memory_file};

    fn blocks(file: &File) -> i64 {
        file.status().expect("a file").blocks
    }

    #[test]
    fn what_is_touched_is_there_and_stays_as_it_was() {
        let file = memory_file(c"touched").expect("a file");
        file.write_at(b"before", 8190).expect("room");
        let before = blocks(&file);
        file.touch(100, 5 * 4096).expect("room");
        assert_eq!(file.status().expect("a file").length, 100 + 5 * 4096);
        assert!(
            blocks(&file) > before && blocks(&file) >= 6 * 8,
            "{}",
            blocks(&file)
        );
        let mut found = [0; 6];
        file.read_at(&mut found, 8190).expect("read");
        assert_eq!(&found, b"before");
        file.touch(7, 0).expect("nothing");
    }
}
