//! The file beside an image that says what its marks, or its counters, mean. Without it what a run records tells nothing,
//! not even that nothing was hit; so it belongs to what must be there for a module to be observed.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use tomo_wire::predicates::Predicates;
use tomo_wire::tally::Tally;

use crate::known::{KnownModule, image_path};
use crate::state::State;

/// How much of a file is looked at: everything, or what a start has the time for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// The header, and whether as much follows as it promises.
    Heads,
    /// All of it.
    Through,
}

impl KnownModule {
    /// Whether what its marks, or its counters, mean is there and is that of its image.
    pub(crate) fn is_meant(&self, state: &State, look: Look) -> bool {
        let predicates = self.predicates.as_ref().is_none_or(|name| {
            let named = predicates(&image_path(state, name), look);
            named == Some(self.plan.0)
        });
        let tally = self.tally.as_ref().is_none_or(|name| {
            let named = tally(&image_path(state, name), look);
            named == Some(self.plan.0)
        });
        predicates && tally
    }
}

/// What names the predicates in the file, if it is sound.
fn predicates(path: &Path, look: Look) -> Option<u64> {
    let header = match look {
        Look::Heads => head::<{ size_of::<Predicates>() }>(path)
            .and_then(|(head, length)| Predicates::head(&head, length).ok()),
        Look::Through => fs::read(path)
            .ok()
            .and_then(|file| Some(Predicates::read(&file).ok()?.0)),
    };
    header.map(|header| header.name())
}

/// What names the plan of the counters in the file, if it is sound.
fn tally(path: &Path, look: Look) -> Option<u64> {
    let header = match look {
        Look::Heads => head::<{ size_of::<Tally>() }>(path)
            .and_then(|(head, length)| Tally::head(&head, length).ok()),
        Look::Through => fs::read(path)
            .ok()
            .and_then(|file| Some(Tally::read(&file).ok()?.0)),
    };
    header.map(|header| header.plan.get())
}

/// The first bytes of a file, and how many it has.
fn head<const N: usize>(path: &Path) -> Option<([u8; N], u64)> {
    let file = File::open(path).ok()?;
    let mut head = [0; N];
    file.read_exact_at(&mut head, 0).ok()?;
    Some((head, file.metadata().ok()?.len()))
}

#[cfg(test)]
mod tests {
    use super::{Look, tally};
    use tomo_wire::tally::Tally;
    use zerocopy::IntoBytes as _;
    use zerocopy::little_endian::U32;

    #[test]
    fn what_is_cut_is_known_by_its_head_and_what_is_damaged_by_all_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("of.tally");
        let units = [U32::new(3), U32::new(5)];
        let whole = [Tally::sealed(7, 0, &units).as_slice(), units.as_bytes()].concat();
        let seen = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            (tally(&path, Look::Heads), tally(&path, Look::Through))
        };
        assert_eq!(seen(&whole), (Some(7), Some(7)));
        for length in 0..whole.len() {
            assert_eq!(seen(&whole[..length]), (None, None));
        }
        assert_eq!(seen(&vec![0; whole.len()]), (None, None));
        let mut damaged = whole.clone();
        *damaged.last_mut().unwrap() ^= 1;
        assert_eq!(seen(&damaged), (Some(7), None));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(tally(&path, Look::Heads), None);
    }
}
