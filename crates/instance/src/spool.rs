//! The spool: final reports until the collector has settled them.
//!
//! A file a run, named by its number. It is bounded by number and by bytes; when it is full the oldest go, and
//! are counted, and the count goes with every later report.

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;

use crate::state::{State, StateError, numbered, replace};

/// Reports that are kept at most.
pub(crate) const MOST_REPORTS: usize = 512;
/// Bytes that they take at most.
pub(crate) const MOST_BYTES: u64 = 32 << 20;
/// Bytes that are sent at once, but for the last report.
const BATCH_BYTES: usize = 256 << 10;
/// Reports that are sent at once.
const BATCH_REPORTS: usize = 64;

/// The spool of an installation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spool<'s> {
    state: &'s State,
}

impl<'s> Spool<'s> {
    pub(crate) fn of(state: &'s State) -> Self {
        Self { state }
    }

    fn path(&self, run: u64) -> PathBuf {
        self.state.file("spool").join(run.to_string())
    }

    /// Keeps the final report of a run, in place of the oldest ones if need be.
    pub(crate) fn add(&self, run: u64, report: &[u8]) -> Result<(), StateError> {
        let path = self.path(run);
        replace(&path, report).map_err(|error| StateError::Io(path, error))?;
        self.bound(MOST_REPORTS, MOST_BYTES)
    }

    fn bound(&self, most_reports: usize, most_bytes: u64) -> Result<(), StateError> {
        let files = numbered(&self.state.file("spool"));
        let size = |path: &PathBuf| fs::metadata(path).map_or(0, |found| found.len());
        let mut bytes: u64 = files.iter().map(|(_, path)| size(path)).sum();
        let mut count = files.len();
        let mut dropped = 0;
        // The newest stays, however large it is.
        for (_, path) in files.iter().take(files.len().saturating_sub(1)) {
            if count <= most_reports && bytes <= most_bytes {
                break;
            }
            count -= 1;
            bytes = bytes.saturating_sub(size(path));
            // Whoever else removed it had it settled, or counts it.
            dropped += u64::from(fs::remove_file(path).is_ok());
        }
        self.state.count_dropped(dropped)
    }

    /// The oldest reports, as many as are sent at once, that are of a later run than `after`.
    pub(crate) fn batch(&self, after: u64) -> Vec<(u64, Vec<u8>)> {
        let mut batch = Vec::new();
        let mut bytes = 0;
        for (run, path) in numbered(&self.state.file("spool")) {
            if run <= after {
                continue;
            }
            if bytes >= BATCH_BYTES || batch.len() >= BATCH_REPORTS {
                break;
            }
            // What somebody else has settled meanwhile is gone.
            if let Ok(report) = fs::read(&path) {
                bytes += report.len();
                batch.push((run, report));
            }
        }
        batch
    }

    /// How many reports there are.
    pub(crate) fn len(&self) -> usize {
        numbered(&self.state.file("spool")).len()
    }

    /// Whether the report of this run waits.
    pub(crate) fn has(&self, run: u64) -> bool {
        self.path(run).exists()
    }

    /// The report of this run is settled; whether it was still there, so that what two send at the same time is counted
    /// once.
    pub(crate) fn remove(&self, run: u64) -> bool {
        fs::remove_file(self.path(run)).is_ok()
    }

    /// Sees to it that what waits is there after the system went down.
    pub(crate) fn sync(&self, run: u64) -> io::Result<()> {
        match File::open(self.path(run)) {
            Ok(file) => file.sync_all()?,
            // Settled, just now.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        }
        File::open(self.state.file("spool"))?.sync_all()
    }
}

#[cfg(test)]
mod tests {
    use super::Spool;
    use crate::state::State;

    #[test]
    fn the_oldest_go_and_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let state = State::open(folder.path()).unwrap();
        let spool = Spool::of(&state);
        for run in 1..=10 {
            spool.add(run, &[0; 100]).unwrap();
        }
        spool.bound(8, 1 << 20).unwrap();
        assert_eq!((spool.len(), state.lost().dropped), (8, 2));
        assert!(!spool.has(2) && spool.has(3));
        spool.bound(8, 350).unwrap();
        assert_eq!((spool.len(), state.lost().dropped), (3, 7));
        spool.bound(8, 0).unwrap();
        assert!(spool.len() == 1 && spool.has(10), "the newest stays");
    }

    #[test]
    fn batches_go_on_where_the_last_one_ended() {
        let folder = tempfile::tempdir().unwrap();
        let state = State::open(folder.path()).unwrap();
        let spool = Spool::of(&state);
        for run in 1..=100 {
            spool.add(run, &[run as u8]).unwrap();
        }
        let first = spool.batch(0);
        assert_eq!(first.len(), 64);
        let rest = spool.batch(first.last().unwrap().0);
        assert_eq!(rest.last().unwrap(), &(100, vec![100]));
        assert_eq!(first.len() + rest.len(), 100);
        assert!(spool.remove(100) && !spool.remove(100));
        spool.sync(100).unwrap();
        spool.sync(99).unwrap();
    }
}
