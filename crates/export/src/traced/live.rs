//! The file of a run's tracks while it runs, or as it was left. Its units are read one by one: there is room in it for a ring of
//! them for each thread and process that ever was, which together may be more than there is memory.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use tomo_wire::tracing::{MOST_UNITS, Tracks, UNIT, units};

use super::TraceError;

/// The file of the tracks in a run's folder.
pub(super) const TRACKS: &str = "tracks";

/// The file.
pub(super) struct Live {
    path: PathBuf,
    file: File,
    length: u64,
    /// All that is before the units.
    head: Vec<u8>,
}

/// What follows in a slab's track.
struct Piece {
    slab: u32,
    /// How many bytes of the track came before.
    behind: u64,
    /// Where in the file its unit is, and how many of the unit's bytes are used.
    at: u64,
    used: usize,
}

impl Live {
    pub(super) fn open(run: &Path) -> Result<Self, TraceError> {
        let path = run.join(TRACKS);
        let read = || -> io::Result<(File, u64, Vec<u8>)> {
            let file = File::open(&path)?;
            let length = file.metadata()?.len();
            let mut head = vec![0; length.min(units()) as usize];
            file.read_exact_at(&mut head, 0)?;
            Ok((file, length, head))
        };
        match read() {
            Ok((file, length, head)) => Ok(Self {
                path,
                file,
                length,
                head,
            }),
            Err(error) => Err(TraceError::Io(path, error)),
        }
    }

    pub(super) fn tracks(&self) -> Result<Tracks<'_>, TraceError> {
        Tracks::read(&self.head, self.length)
            .map_err(|why| TraceError::Refused(self.path.clone(), why))
    }

    /// Visits what each slab's track has that nobody has taken, in order, a unit or less at a time: the slab, how many bytes
    /// of the track came before, and what follows.
    pub(super) fn rest(
        &self,
        tracks: &Tracks<'_>,
        mut visit: impl FnMut(u32, u64, &[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut unit = vec![0; UNIT as usize];
        for piece in rest_of(tracks) {
            let bytes = &mut unit[..piece.used];
            self.file.read_exact_at(bytes, piece.at)?;
            visit(piece.slab, piece.behind, bytes)?;
        }
        Ok(())
    }
}

fn rest_of(tracks: &Tracks<'_>) -> Vec<Piece> {
    let rows = (0..tracks.unit_count()).filter_map(|unit| Some((tracks.row(unit)?, unit)));
    let grown: BTreeMap<(u32, u64), u64> = rows.collect();
    let mut rest = Vec::new();
    for slab in 0..tracks.count() {
        let Some(state) = tracks.state(slab) else {
            continue;
        };
        let (taken, length) = (state.taken.get(), state.length());
        let behind = length.div_ceil(UNIT).min(taken.saturating_add(MOST_UNITS));
        rest.extend((taken..behind).map_while(|position| {
            let known = || grown.get(&(slab, position)).copied();
            Some(Piece {
                slab,
                behind: position * UNIT,
                at: tracks.unit(state.unit_at(position).or_else(known)?)?,
                used: length.checked_sub(position * UNIT)?.min(UNIT) as usize,
            })
        }));
    }
    rest
}
