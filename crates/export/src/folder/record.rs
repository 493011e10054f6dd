//! Records of runs that may still go on.
//!
//! Marks appear in the order in which code ran, and a file is read in the order of its bytes. What was read in between
//! may be such as the program never left: a mark that came late, without one before it that came earlier.
//! Marks never disappear, so what is read twice alike was there as a whole at some moment between.

use std::path::Path;

use tomo_profile::records::{Sighting, read_record};
use tomo_wire::record::{MARKS, Record};

use super::{content, plain};

/// How often a record is read again that changes meanwhile. Whether its run has ended says nothing: what that left in the
/// background goes on.
const TRIES: usize = 16;
/// How records say that a signal ended the run.
const BY_SIGNAL: u32 = 2;

/// Reads a record of a run that `signal` ended, if one did. Of one that would not stand still its marks are
/// [loose](tomo_profile::records::Kind::loose).
pub(super) fn read(path: &Path, signal: Option<u32>) -> Result<Sighting, String> {
    let again = || content(path, length).map_err(|error| plain(&error));
    let mut bytes = again()?;
    let mut stands = false;
    for _ in 0..TRIES {
        let before = std::mem::replace(&mut bytes, again()?);
        let marks = MARKS as usize..;
        stands = before.get(marks.clone()) == bytes.get(marks);
        if stands {
            break;
        }
    }
    let mut sighting = read_record(&bytes).map_err(|error| error.to_string())?;
    sighting.kind.loose |= !stands;
    if let Some(signal) = signal {
        sighting.kind.cut = true;
        sighting.marks.live.outcome = (BY_SIGNAL, signal);
    }
    Ok(sighting)
}

/// How long a record is by its header. Of what is none the first page is enough to say so.
pub(super) fn length(start: &[u8]) -> u64 {
    Record::read(start, u64::MAX).map_or(0, |record| record.length())
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::FileExt as _;
    use std::sync::atomic::{AtomicBool, Ordering};

    use tomo_wire::ModuleId;
    use tomo_wire::record::{MARKS, Record};

    /// Marks at the beginning and at the end of a record that is long to read come in this order.
    #[test]
    fn no_mark_is_read_without_the_one_before_it() {
        const PROBES: u32 = 1 << 20;
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("m.record");
        let file = File::create(&path).expect("made");
        let module = ModuleId::by_build_id(&[7], 1).expect("an id");
        let record = Record::of(module, 9, PROBES, [1; 16], 1);
        let last = u64::from(PROBES) - 1;
        let (reading, done) = (AtomicBool::new(false), AtomicBool::new(false));
        for _ in 0..60 {
            file.set_len(0).expect("empty");
            file.set_len(record.length()).expect("room");
            file.write_all_at(&record.sealed(), 0).expect("a header");
            reading.store(false, Ordering::Relaxed);
            done.store(false, Ordering::Relaxed);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    while !reading.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                    for mark in [0, last] {
                        file.write_all_at(&[1], MARKS + mark).expect("marked");
                    }
                    done.store(true, Ordering::Relaxed);
                });
                reading.store(true, Ordering::Relaxed);
                while !done.load(Ordering::Relaxed) {
                    let seen = super::read(&path, None).expect("a record");
                    let hits = seen.marks.hits;
                    let torn = hits.contains(last as usize) && !hits.contains(0);
                    assert!(!torn || seen.kind.loose);
                }
            });
        }
    }
}
