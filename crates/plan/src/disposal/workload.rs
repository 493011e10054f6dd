//! What an instance does with its time: which probes it comes to, when, and how often.
//!
//! The study ran one server program under 15 configurations chosen at random (DIS §4.2); Figure 5 shows
//! coverage that rises fast and levels off, at much the same height for all, with some blocks that only
//! some instances reach. [`Mix`] draws workloads of that kind from a seed.

use crate::random::Random;

/// The first time that a run comes to a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Hit {
    /// When, in time of the run without any probes.
    pub at: u64,
    /// Which probe.
    pub probe: u32,
    /// How often it comes to it in all.
    pub times: u64,
}

/// A run without probes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Workload {
    /// How long it takes.
    pub length: u64,
    /// Its hits, by time, each probe once.
    pub hits: Vec<Hit>,
}

/// A population of configurations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mix {
    /// Probes of the program.
    pub probes: u32,
    /// Configurations.
    pub profiles: u32,
    /// How many of a thousand probes every configuration comes to.
    pub common: u32,
    /// How many of a thousand of the others one configuration comes to.
    pub own: u32,
    /// How long a run takes.
    pub length: u64,
    /// By how many thousandths a configuration may come later to a probe than another.
    pub spread: u32,
    /// How often a run comes to a probe that it comes to, on average.
    pub times: u64,
}

impl Mix {
    /// One workload for each of so many instances, each of a configuration chosen at random.
    #[must_use]
    pub fn draw(&self, instances: usize, seed: u64) -> Vec<Workload> {
        let mut random = Random::new(seed);
        let profiles: Vec<Workload> = self.profiles(&mut random);
        (0..instances)
            .filter_map(|_| profiles.get(random.below(profiles.len())).cloned())
            .collect()
    }

    fn profiles(&self, random: &mut Random) -> Vec<Workload> {
        let chance = |random: &mut Random, share: u32| (random.below(1000) as u32) < share;
        let common: Vec<bool> = (0..self.probes)
            .map(|_| chance(random, self.common))
            .collect();
        let base: Vec<u64> = (0..self.probes).map(|_| self.moment(random)).collect();
        let mut profile = |_| {
            let mut hits = Vec::new();
            for probe in 0..self.probes {
                let at = base[probe as usize];
                if common[probe as usize] || chance(random, self.own) {
                    let late = u128::from(at) * u128::from(self.spread) / 1000;
                    let late = random.below(late as usize + 1) as u64;
                    let times = 1 + random.below((2 * self.times) as usize) as u64;
                    let at = at.saturating_add(late).min(self.length);
                    hits.push(Hit { at, probe, times });
                }
            }
            hits.sort_by_key(|hit| (hit.at, hit.probe));
            Workload {
                length: self.length,
                hits,
            }
        };
        (0..self.profiles.max(1)).map(&mut profile).collect()
    }

    /// A time that is mostly early: the cube of an evenly distributed share.
    fn moment(&self, random: &mut Random) -> u64 {
        let share = random.below(1 << 16) as u128;
        ((u128::from(self.length) * share * share * share) >> 48) as u64
    }
}
