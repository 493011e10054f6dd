//! The memory of a process with the breakpoints in it.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;

use tomo_weave::Breakpoint;

use crate::auxiliary;

/// `int3`.
const TRAP: [u8; 1] = [0xcc];

/// What is to be put into each process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted<'p> {
    /// The file that is traced.
    pub(super) module: &'p Path,
    /// Where it starts, as it states it.
    pub(super) entry: u64,
    pub(super) points: &'p [Breakpoint],
}

/// The memory of a process. Two that share it, as after `vfork`, share this.
#[derive(Debug)]
pub(super) struct Space<'p> {
    memory: File,
    /// What was added to stated addresses.
    bias: u64,
    /// By loaded address: what is there and the byte that was.
    places: HashMap<u64, (&'p Breakpoint, u8)>,
}

impl<'p> Space<'p> {
    /// Puts breakpoints into a process that has just become a program, if that is the one that is traced.
    pub(super) fn arm(process: i32, wanted: Wanted<'p>) -> io::Result<Option<Self>> {
        let identity = |path: &Path| fs::metadata(path).map(|found| (found.dev(), found.ino()));
        let own = format!("/proc/{process}/exe");
        if identity(Path::new(&own))? != identity(wanted.module)? {
            return Ok(None);
        }
        let memory = open(process)?;
        let entry = auxiliary::value(process, auxiliary::ENTRY)?;
        let bias = entry.wrapping_sub(wanted.entry);
        let mut space = Self {
            memory,
            bias,
            places: HashMap::with_capacity(wanted.points.len()),
        };
        let put = wanted.points.iter().try_for_each(|point| space.put(point));
        if let Err(error) = put {
            space.disarm()?;
            return Err(error);
        }
        Ok(Some(space))
    }

    fn put(&mut self, point: &'p Breakpoint) -> io::Result<()> {
        let place = point.address.wrapping_add(self.bias);
        let mut byte = [0];
        self.memory.read_exact_at(&mut byte, place)?;
        self.memory.write_all_at(&TRAP, place)?;
        self.places.insert(place, (point, byte[0]));
        Ok(())
    }

    /// The memory of a process that was forked from one with this.
    pub(super) fn of_child(&self, process: i32) -> io::Result<Self> {
        Ok(Self {
            memory: open(process)?,
            bias: self.bias,
            places: self.places.clone(),
        })
    }

    /// The breakpoint at a loaded address.
    pub(super) fn at(&self, place: u64) -> Option<&'p Breakpoint> {
        self.places.get(&place).map(|(point, _)| *point)
    }

    /// An address as the module states it.
    pub(super) fn stated(&self, place: u64) -> u64 {
        place.wrapping_sub(self.bias)
    }

    /// Takes the breakpoint at a loaded address away for a while, or puts it back.
    pub(super) fn show(&self, place: u64, is_there: bool) -> io::Result<()> {
        let Some((_, byte)) = self.places.get(&place) else {
            return Ok(());
        };
        let bytes = if is_there { TRAP } else { [*byte] };
        match self.memory.write_all_at(&bytes, place) {
            // The process ends, and its memory is gone already.
            Err(error) if error.kind() == io::ErrorKind::WriteZero => Ok(()),
            written => written,
        }
    }

    /// Takes all breakpoints away.
    pub(super) fn disarm(&self) -> io::Result<()> {
        let mut places = self.places.keys();
        places.try_for_each(|place| self.show(*place, false))
    }
}

fn open(process: i32) -> io::Result<File> {
    let path = format!("/proc/{process}/mem");
    File::options().read(true).write(true).open(path)
}
