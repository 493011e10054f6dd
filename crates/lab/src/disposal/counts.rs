//! How often each probe of a marked program was executed, and when first: what its collector wrote
//! (`tests/programs/study/marks.c` says in which form).

use std::path::Path;

use tomo_plan::disposal::{Hit, Workload};

/// What one run did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Nanoseconds of the processor, from start to end.
    pub length: u64,
    /// For each probe: how often it was executed, and at which nanosecond first.
    pub probes: Vec<(u64, u64)>,
}

/// Why a file holds no counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CountsError {
    /// Its length.
    #[error("holds {0} bytes, which are no counts of {1} probes")]
    Length(usize, u64),
    /// A probe came to later than the program ended.
    #[error("probe {0} was come to first after the end")]
    Late(usize),
}

impl Counts {
    /// The counts in the bytes of a file.
    ///
    /// # Errors
    /// Where they are not of the form.
    pub fn parse(bytes: &[u8]) -> Result<Self, CountsError> {
        let words: Vec<u64> = bytes
            .chunks_exact(8)
            .map(|word| {
                word.iter()
                    .rev()
                    .fold(0, |sum, &byte| sum << 8 | u64::from(byte))
            })
            .collect();
        let (length, number) = match words[..] {
            [length, number, ..] => (length, number),
            _ => return Err(CountsError::Length(bytes.len(), 0)),
        };
        let (pairs, rest) = words[2..].as_chunks::<2>();
        if !rest.is_empty() || !bytes.len().is_multiple_of(8) || pairs.len() as u64 != number {
            return Err(CountsError::Length(bytes.len(), number));
        }
        let probes: Vec<_> = pairs.iter().map(|&[count, first]| (count, first)).collect();
        match probes.iter().position(|&(_, first)| first > length) {
            Some(late) => Err(CountsError::Late(late)),
            None => Ok(Self { length, probes }),
        }
    }

    /// The counts in the file `path`.
    pub(crate) fn read(path: &Path) -> Result<Self, super::StudyError> {
        let bytes = std::fs::read(path).map_err(super::StudyError::io(path))?;
        Self::parse(&bytes).map_err(|error| super::StudyError::Counts(path.into(), error))
    }

    /// How many probes were executed, each time counted.
    #[must_use]
    pub fn executed(&self) -> u64 {
        self.probes.iter().map(|(count, _)| count).sum()
    }

    /// How many probes were executed at all.
    #[must_use]
    pub fn unique(&self) -> u64 {
        self.probes.iter().filter(|(count, _)| *count > 0).count() as u64
    }

    /// What the simulation is fed with: the run as it would have been without probes, `length` long in
    /// any unit of time; a probe comes first at the same share of it.
    #[must_use]
    pub fn workload(&self, length: u64) -> Workload {
        let scaled = |at: u64| {
            let at = u128::from(at) * u128::from(length) / u128::from(self.length.max(1));
            u64::try_from(at).unwrap_or(length)
        };
        let probes = (0..).zip(&self.probes);
        let mut hits: Vec<Hit> = probes
            .filter(|(_, (count, _))| *count > 0)
            .map(|(probe, &(times, first))| Hit {
                at: scaled(first),
                probe,
                times,
            })
            .collect();
        hits.sort_by_key(|hit| (hit.at, hit.probe));
        Workload { length, hits }
    }
}

#[cfg(test)]
mod tests {
    use super::{Counts, CountsError};

    fn bytes(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn counts_say_how_often_and_when_first() {
        let counts = Counts::parse(&bytes(&[100, 3, 7, 50, 0, 0, 1, 20])).expect("counts");
        assert_eq!((counts.executed(), counts.unique()), (8, 2));
        let work = counts.workload(1000);
        let hits: Vec<_> = work
            .hits
            .iter()
            .map(|hit| (hit.at, hit.probe, hit.times))
            .collect();
        assert_eq!((work.length, hits), (1000, vec![(200, 2, 1), (500, 0, 7)]));
    }

    #[test]
    fn what_is_cut_short_is_refused() {
        let whole = bytes(&[100, 2, 7, 50, 0, 0]);
        for length in (0..whole.len()).chain([whole.len() - 1]) {
            assert!(Counts::parse(&whole[..length]).is_err(), "{length}");
        }
        let late = Counts::parse(&bytes(&[100, 1, 1, 101]));
        assert_eq!(late, Err(CountsError::Late(0)));
    }
}
