//! How often each set is placed, summed up so that BALANCE and ALLUSED (PDT §4.3) can be told at any
//! time, and are kept up in constant time per set placed or taken away.
//!
//! PDT recomputes BALANCE in O(|E|) at every move, because each move changes the average from which
//! every set is measured. But only two groups matter: sets used at most ⌊average⌋ times and
//! those used more often. With A the lengths and B the lengths times uses in the lower group, A′ and B′
//! in the other, T all uses and m sets,
//!
//! m · BALANCE = Σ length · |m · times − T| = (T · A − m · B) + (m · B′ − T · A′).
//!
//! One placement changes T by one, so ⌊T / m⌋ by one at most, and then the sets of just one number
//! of uses change sides; their lengths are kept summed per number of uses.

/// Sums over all sets by how often each is placed.
#[derive(Clone, Debug)]
pub(super) struct Tally {
    sets: u64,
    /// T: placements of all sets together.
    uses: u64,
    /// ⌊T / m⌋.
    level: u64,
    /// Per number of uses, the lengths of the sets used so often.
    lengths: Vec<u64>,
    /// A and B: sets used at most `level` times.
    low: Side,
    /// A + A′ and B + B′.
    all: Side,
}

#[derive(Clone, Copy, Debug, Default)]
struct Side {
    length: u64,
    /// Lengths times uses. With at most 2^24 variants below 2^56.
    weighted: u64,
}

impl Side {
    fn add(&mut self, length: u64, times: u64) {
        self.length += length;
        self.weighted += length * times;
    }

    fn take(&mut self, length: u64, times: u64) {
        self.length -= length;
        self.weighted -= length * times;
    }
}

impl Tally {
    /// None of the sets, which have these lengths, is placed in any of so many variants.
    pub(super) fn new(lengths: impl Iterator<Item = u64>, variants: usize) -> Self {
        let mut sets = 0;
        let length = lengths.inspect(|_| sets += 1).sum();
        let mut by_times = vec![0; variants + 2];
        by_times[0] = length;
        let side = Side {
            length,
            weighted: 0,
        };
        Self {
            sets,
            uses: 0,
            level: 0,
            lengths: by_times,
            low: side,
            all: side,
        }
    }

    /// A set of this length that was placed `times` times is placed once more.
    pub(super) fn place(&mut self, length: u64, times: u64) {
        self.shift(length, times, times + 1);
        self.uses += 1;
        if (self.level + 1) * self.sets <= self.uses {
            self.level += 1;
            self.low.add(self.lengths[self.level as usize], self.level);
        }
    }

    /// A set of this length that was placed `times` times, at least once, is placed once less.
    pub(super) fn take(&mut self, length: u64, times: u64) {
        self.shift(length, times, times - 1);
        self.uses -= 1;
        if self.level * self.sets > self.uses {
            self.low.take(self.lengths[self.level as usize], self.level);
            self.level -= 1;
        }
    }

    fn shift(&mut self, length: u64, from: u64, to: u64) {
        self.lengths[from as usize] -= length;
        self.lengths[to as usize] += length;
        self.all.take(length, from);
        self.all.add(length, to);
        if from <= self.level {
            self.low.take(length, from);
        }
        if to <= self.level {
            self.low.add(length, to);
        }
    }

    /// How often sets are placed, all together.
    pub(super) fn uses(&self) -> u64 {
        self.uses
    }

    /// BALANCE times the number of sets.
    pub(super) fn balance(&self) -> u128 {
        let (sets, uses) = (u128::from(self.sets), u128::from(self.uses));
        let (low, all) = (self.low, self.all);
        let below = uses * u128::from(low.length) - sets * u128::from(low.weighted);
        let above = sets * u128::from(all.weighted - low.weighted)
            - uses * u128::from(all.length - low.length);
        below + above
    }

    /// By how much BALANCE times the number of sets rises when one set more is placed, but for that
    /// set's own part in it: the average rises away from the sets below it, and towards the others.
    pub(super) fn rise(&self) -> i128 {
        2 * i128::from(self.low.length) - i128::from(self.all.length)
    }

    /// ALLUSED: the lengths of sets that are placed nowhere.
    pub(super) fn unused(&self) -> u128 {
        u128::from(self.lengths[0])
    }
}

#[cfg(test)]
mod tests {
    use super::Tally;
    use crate::random::Random;

    /// BALANCE times the number of sets, by definition.
    fn balance(lengths: &[u64], times: &[u64]) -> u128 {
        let (sets, uses) = (times.len() as u64, times.iter().sum::<u64>());
        let away = |times: u64| u128::from((sets * times).abs_diff(uses));
        let pairs = lengths.iter().zip(times);
        pairs
            .map(|(&length, &times)| u128::from(length) * away(times))
            .sum()
    }

    #[test]
    fn the_sums_are_those_of_the_definition_after_every_change() {
        let mut random = Random::new(5);
        for count in [1, 2, 3, 7, 20] {
            let lengths: Vec<u64> = (0..count).map(|_| 1 + random.below(9) as u64).collect();
            let mut times = vec![0; count];
            let mut tally = Tally::new(lengths.iter().copied(), 6);
            for _ in 0..2000 {
                let set = random.below(count);
                let is_up = times[set] == 0 || times[set] < 6 && random.below(2) == 0;
                if is_up {
                    tally.place(lengths[set], times[set]);
                    times[set] += 1;
                } else {
                    tally.take(lengths[set], times[set]);
                    times[set] -= 1;
                }
                let unused = (0..count)
                    .filter(|&set| times[set] == 0)
                    .map(|set| lengths[set]);
                assert_eq!(tally.balance(), balance(&lengths, &times));
                assert_eq!(tally.unused(), u128::from(unused.sum::<u64>()));
            }
        }
    }
}
