//! Random programs and random executions, for tests and benchmarks. Written from the definition
//! of what programs do, sharing no code with placement, criterion or reconstruction.

mod execution;
mod generate;

pub use execution::{Ending, Execution, execute, record};
pub use generate::{Shape, program};

/// Pseudo-random numbers (SplitMix64, Steele, Lea, Flood, OOPSLA 2014), the same on every machine.
#[derive(Clone, Debug)]
pub struct Dice(pub u64);

impl Dice {
    /// The next number.
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `bound`, or 0.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.roll() >> 8) as usize % bound.max(1)
    }

    /// Arbitrary bytes.
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.roll() as u8).collect()
    }
}
