//! PACKING as PDT §4.3 prints it. **For study only**: it rewards what it is meant to avoid.
//!
//! pack_i = 0 if Max(OV) = ov_i, and 1 / (Max(OV) − ov_i) otherwise; PACKING = Σ pack_i. The further
//! a variant's overlap is from the largest one, the smaller is its fraction: of two variants
//! with overlaps 10 and 9 the sum is 1, with 10 and 1 it is 1/9, so a climb that minimises it packs
//! one variant and spoils the others. (OV is printed as the sum of all ov_i; a maximum of it makes
//! sense only over the variants.) O(variants), as PDT says.

use super::objective::FRACTION;

/// PACKING as printed over the variants' overlaps, times 2^20, each fraction rounded down.
#[must_use]
pub fn packing(overlaps: &[u64]) -> u128 {
    let most = overlaps.iter().copied().max().unwrap_or(0);
    let short = overlaps.iter().map(|&overlap| u128::from(most - overlap));
    short.filter(|&gap| gap > 0).map(|gap| FRACTION / gap).sum()
}

#[cfg(test)]
mod tests {
    use super::{FRACTION, packing};

    #[test]
    fn it_falls_as_a_variant_gets_further_from_the_maximum() {
        let costs: Vec<u128> = (0..10)
            .rev()
            .map(|overlap| packing(&[10, overlap]))
            .collect();
        assert_eq!(costs[0], FRACTION);
        assert!(costs.windows(2).all(|pair| pair[1] < pair[0]), "{costs:?}");
    }

    #[test]
    fn equal_overlaps_cost_nothing_even_without_any() {
        assert_eq!(packing(&[7, 7, 7]), 0);
        assert_eq!(packing(&[0, 0]), 0);
        assert_eq!(packing(&[]), 0);
    }
}
