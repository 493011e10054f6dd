//! How a cost grows with size: the slope of the least-squares line through the logarithms, that
//! is the exponent `k` of `cost ≈ c · size^k`. 1 is linear.

/// The exponent over these (size, cost) pairs; none of fewer than two different sizes.
pub(super) fn exponent(points: &[(f64, f64)]) -> Option<f64> {
    let positive = points
        .iter()
        .filter(|(size, cost)| *size > 0.0 && *cost > 0.0);
    let logs: Vec<_> = positive
        .map(|(size, cost)| (size.ln(), cost.ln()))
        .collect();
    let count = logs.len() as f64;
    let mean_size = logs.iter().map(|(size, _)| size).sum::<f64>() / count;
    let mean_cost = logs.iter().map(|(_, cost)| cost).sum::<f64>() / count;
    let spread: f64 = logs
        .iter()
        .map(|(size, _)| (size - mean_size).powi(2))
        .sum();
    let joint: f64 = logs
        .iter()
        .map(|(size, cost)| (size - mean_size) * (cost - mean_cost))
        .sum();
    (spread > 0.0).then(|| joint / spread)
}

/// The middle value; of two middle ones the mean; none of nothing.
pub(super) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    let lower = values[(values.len() - 1) / 2];
    Some((lower + upper) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::{exponent, median};

    #[test]
    fn a_power_law_gives_its_exponent() {
        for power in [0.0, 0.5, 1.0, 1.7] {
            let points = [1.0, 2.0, 10.0, 77.0].map(|size: f64| (size, 3.0 * size.powf(power)));
            let found = exponent(&points).unwrap();
            assert!((found - power).abs() < 1e-12, "{found} for {power}");
        }
    }

    #[test]
    fn too_little_gives_none() {
        assert_eq!(exponent(&[]), None);
        assert_eq!(exponent(&[(1.0, 2.0)]), None);
        assert_eq!(exponent(&[(1.0, 2.0), (1.0, 3.0)]), None);
        assert_eq!(exponent(&[(1.0, 2.0), (0.0, 3.0)]), None);
    }

    #[test]
    fn medians_are_in_the_middle() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(Vec::new()), None);
    }
}
