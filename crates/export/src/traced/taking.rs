//! Taking tracks while a program records them, and packing what was taken: so a track needs no more room than its ring has,
//! however long the program runs.
//!
//! A unit is taken once the thread is past it and all its words are written: a word that is 0 is one whose writer was
//! interrupted and may still come. What was taken is in the packed file before the thread is told so; whoever kills this
//! process loses nothing.

use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use tomo_wire::counting::{MOST_SLABS, Slabs, USED};
use tomo_wire::tracing::{SLAB, State, TAKEN, UNIT, units};
use zerocopy::FromBytes as _;

use super::live::{Live, TRACKS};
use super::over::Over;
use super::packed::{Packer, Recorded};
use super::{PACKED, TraceError, file};

/// Takes the tracks of one run.
pub struct Taking {
    run: PathBuf,
    tracks: File,
    packer: Packer<BufWriter<File>>,
    unit: Vec<u8>,
    over: Over,
}

/// Units that are taken before the thread is told.
const AT_ONCE: u64 = 4;

impl Taking {
    /// Of the run in this folder.
    ///
    /// # Errors
    /// Where its files cannot be opened or written.
    pub fn of(run: &Path) -> Result<Self, TraceError> {
        let open = |path: PathBuf, file: io::Result<File>| {
            file.map_err(|error| TraceError::Io(path, error))
        };
        let path = run.join(TRACKS);
        let tracks = File::options().read(true).write(true).open(&path);
        let path_packed = run.join(PACKED);
        let packed = File::create(&path_packed);
        let packed = open(path_packed.clone(), packed)?;
        // What is taken first may be long in coming, and whoever is ended before that has a beginning all the same.
        let packer = Packer::new(BufWriter::new(packed)).and_then(|mut packer| {
            packer.flush()?;
            Ok(packer)
        });
        Ok(Self {
            run: run.into(),
            tracks: open(path, tracks)?,
            packer: packer.map_err(|error| TraceError::Io(path_packed, error))?,
            unit: vec![0; UNIT as usize],
            over: Over::new(),
        })
    }

    /// Takes what there is; whether there was anything.
    ///
    /// # Errors
    /// Where it cannot be read or written; then nothing more can be taken.
    pub fn take(&mut self) -> Result<bool, TraceError> {
        let mut took = false;
        let mut all = || -> io::Result<()> {
            let mut used = [0; 8];
            self.tracks.read_exact_at(&mut used, USED)?;
            for slab in 0..u64::from_le_bytes(used).min(MOST_SLABS.into()) as u32 {
                took |= self.take_of(slab)?;
            }
            Ok(())
        };
        all().map_err(|error| TraceError::Io(self.run.clone(), error))?;
        Ok(took)
    }

    fn take_of(&mut self, slab: u32) -> io::Result<bool> {
        let Some(state) = state_of(&self.tracks, slab)? else {
            return Ok(false);
        };
        let first = state.taken.get();
        let behind = state.position().min(first.saturating_add(AT_ONCE));
        // The program may have written what stands there.
        let place = |position| {
            let unit = state.unit_at(position)?.checked_mul(UNIT)?;
            unit.checked_add(units())
        };
        let mut taken = first;
        while taken < behind {
            let Some(at) = place(taken) else {
                break;
            };
            self.tracks.read_exact_at(&mut self.unit, at)?;
            if self.unit.as_chunks::<4>().0.contains(&[0; 4]) {
                break;
            }
            self.packer.add(slab, taken * UNIT, &self.unit)?;
            taken += 1;
        }
        if taken == first {
            self.over.give_back(&self.tracks, slab)?;
            return Ok(false);
        }
        self.packer.flush()?;
        self.unit.fill(0);
        for at in (first..taken).filter_map(place) {
            self.tracks.write_all_at(&self.unit, at)?;
        }
        self.tracks
            .write_all_at(&taken.to_le_bytes(), start_of(slab) + TAKEN)?;
        Ok(true)
    }

    /// Takes the rest, once the program has ended. How many threads found no more room, and how many had none at all.
    ///
    /// # Errors
    /// Where files cannot be read or written; then they stay as they are.
    pub fn finish(mut self) -> Result<(u64, u64), TraceError> {
        while self.take()? {}
        let live = Live::open(&self.run)?;
        let tracks = live.tracks()?;
        let handlers: Vec<u64> = tracks.handlers().collect();
        let write = || -> io::Result<(u64, u64)> {
            let packer = &mut self.packer;
            live.rest(&tracks, |slab, behind, piece| {
                packer.add(slab, behind, piece)
            })?;
            self.packer.finish(tracks.lost(), &handlers)?;
            fs::remove_file(self.run.join(TRACKS))?;
            Ok(tracks.lost())
        };
        write().map_err(|error| TraceError::Io(self.run.join(PACKED), error))
    }
}

/// Where a slab starts in the file.
fn start_of(slab: u32) -> u64 {
    Slabs::head() + u64::from(slab) * SLAB
}

/// How far the track of a slab is. One that was just promised may not be in the file yet.
pub(super) fn state_of(tracks: &File, slab: u32) -> io::Result<Option<State>> {
    let mut bytes = [0; size_of::<State>()];
    if tracks.read_exact_at(&mut bytes, start_of(slab)).is_err() {
        return Ok(None);
    }
    let state = State::read_from_bytes(&bytes).map_err(|_| io::ErrorKind::InvalidData)?;
    Ok(Some(state))
}

/// What was recorded in the run in this folder, taken or not.
///
/// # Errors
/// Where there is nothing that can be read.
pub(super) fn recorded(run: &Path) -> Result<(u64, Recorded), TraceError> {
    let packed = run.join(PACKED);
    let (mut size, mut recorded) = (0, Recorded::default());
    if packed.exists() {
        let bytes = file(&packed)?;
        let read = Recorded::read(&bytes[..]);
        recorded = read.map_err(|error| TraceError::Io(packed, error))?;
        size = bytes.len() as u64;
    }
    if run.join(TRACKS).exists() {
        let live = Live::open(run)?;
        let tracks = live.tracks()?;
        let (mut added, mut is_cut) = (0, false);
        let read = live.rest(&tracks, |slab, behind, piece| {
            added += piece.len() as u64;
            is_cut |= recorded.add(slab, behind, piece).is_none();
            Ok(())
        });
        read.map_err(|error| TraceError::Io(run.join(TRACKS), error))?;
        size += added;
        recorded.is_cut = is_cut;
        (recorded.full, recorded.lost) = tracks.lost();
        recorded.handlers = tracks.handlers().collect();
    } else if size == 0 {
        return Err(TraceError::NoTrace(run.into()));
    }
    Ok((size, recorded))
}

#[cfg(test)]
mod tests {
    use zerocopy::{FromZeros as _, IntoBytes as _};

    use super::*;

    #[test]
    fn of_a_thread_whose_state_is_nonsense_nothing_is_taken() {
        let folder = tempfile::tempdir().expect("a folder");
        let sound = State {
            full: (2 * UNIT).into(),
            ring: 4096.into(),
            slots: 1.into(),
            ..State::new_zeroed()
        };
        let far_away = State {
            first: (u64::MAX / 2).into(),
            ..sound
        };
        let taken = State {
            taken: u64::MAX.into(),
            ..sound
        };
        for state in [far_away, taken] {
            let tracks = File::create(folder.path().join(TRACKS)).expect("made");
            tracks.write_all_at(&[1], USED).expect("written");
            let at = Slabs::head();
            tracks.write_all_at(state.as_bytes(), at).expect("written");
            let mut taking = Taking::of(folder.path()).expect("opened");
            assert!(!taking.take().expect("read"), "{state:?}");
        }
    }
}
