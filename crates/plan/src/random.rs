//! Random numbers from a seed, the same on every machine, in every version of this crate.
//!
//! Source: Blackman, Vigna, *Scrambled Linear Pseudorandom Number Generators*, TOMS 47(4), 2021
//! (xoshiro256++), seeded by SplitMix64 (Steele, Lea, Flood, OOPSLA 2014) as its authors advise;
//! numbers below a bound after Lemire, *Fast Random Integer Generation in an Interval*, TOMACS
//! 29(1), 2019, which is free of bias.
//!
//! Our own and not a crate's, because a plan is named by its seed: what a seed gives must not
//! change when a dependency does. Not for secrets.

/// A generator of random numbers, fixed by its seed.
#[derive(Clone, Debug)]
pub struct Random {
    state: [u64; 4],
}

impl Random {
    /// The generator of this seed. Any seed will do, zero too.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut splitter = seed;
        Self {
            state: [(); 4].map(|()| split(&mut splitter)),
        }
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        let [a, b, c, d] = &mut self.state;
        let drawn = a.wrapping_add(*d).rotate_left(23).wrapping_add(*a);
        let shifted = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= shifted;
        *d = d.rotate_left(45);
        drawn
    }

    /// A number below `bound`, each equally likely; 0 if `bound` is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        let bound = bound as u64;
        loop {
            let wide = u128::from(self.bits()) * u128::from(bound);
            // The lowest `2^64 mod bound` values of the low half are what makes a bias.
            let low = wide as u64;
            if low >= bound || low >= bound.wrapping_neg() % bound.max(1) {
                return (wide >> 64) as usize;
            }
        }
    }

    /// Brings `items` into a random order (Fisher, Yates), each order equally likely.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for end in (1..items.len()).rev() {
            items.swap(end, self.below(end + 1));
        }
    }
}

/// One step of SplitMix64.
fn split(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::{Random, split};

    /// The vector that the authors' C code gives for the state 1, 2, 3, 4.
    #[test]
    fn xoshiro_gives_the_published_numbers() {
        let mut random = Random {
            state: [1, 2, 3, 4],
        };
        let expected = [
            41_943_041,
            58_720_359,
            3_588_806_011_781_223,
            3_591_011_842_654_386,
            9_228_616_714_210_784_205,
            9_973_669_472_204_895_162,
        ];
        assert_eq!(expected.map(|_| random.bits()), expected);
    }

    #[test]
    fn splitmix_gives_the_published_numbers() {
        let mut state = 1_477_776_061_723_855_037;
        let expected = [1_985_237_415_132_408_290, 2_979_275_885_539_914_483];
        assert_eq!(expected.map(|_| split(&mut state)), expected);
    }

    #[test]
    fn numbers_below_a_bound_are_all_drawn_and_none_else() {
        let mut random = Random::new(7);
        let mut counts = [0_u32; 6];
        for _ in 0..6000 {
            counts[random.below(6)] += 1;
        }
        assert!(
            counts.iter().all(|count| (850..1150).contains(count)),
            "{counts:?}"
        );
        assert_eq!(random.below(0), 0);
        assert_eq!(random.below(1), 0);
    }

    #[test]
    fn shuffling_keeps_what_it_shuffles_and_a_seed_its_order() {
        let order = |seed| {
            let mut items: Vec<u32> = (0..50).collect();
            Random::new(seed).shuffle(&mut items);
            items
        };
        assert_eq!(order(3), order(3));
        assert_ne!(order(3), order(4));
        let mut sorted = order(3);
        sorted.sort_unstable();
        assert_eq!(sorted, (0..50).collect::<Vec<_>>());
    }
}
