//! Means, deviations, medians, and the straight line through points.

use serde::{Deserialize, Serialize};

/// What a table says of several observations.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The mean.
    pub mean: f64,
    /// The standard deviation of a sample: the sum of squares is divided by one less than there are.
    pub deviation: f64,
    /// The least.
    pub least: f64,
    /// The most.
    pub most: f64,
    /// How many there are.
    pub count: usize,
}

impl Summary {
    /// Of these values; none if there are none.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        let count = values.len();
        let mean = values.iter().sum::<f64>() / count as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let least = values.iter().copied().min_by(f64::total_cmp)?;
        let most = values.iter().copied().max_by(f64::total_cmp)?;
        Some(Self {
            mean,
            deviation: (squares / count.saturating_sub(1).max(1) as f64).sqrt(),
            least,
            most,
            count,
        })
    }

    /// The standard error of the mean.
    #[must_use]
    pub fn standard_error(&self) -> f64 {
        self.deviation / (self.count as f64).sqrt()
    }
}

/// The median: of an even number of values, the mean of the two in the middle; none if there are none.
#[must_use]
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let high = *values.get(values.len() / 2)?;
    let low = values[(values.len() - 1) / 2];
    Some(f64::midpoint(low, high))
}

/// The straight line of least squares through points.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fit {
    /// How steep it is.
    pub slope: f64,
    /// Where it meets 0.
    pub offset: f64,
    /// Pearson's coefficient of correlation, from -1 to 1.
    pub correlation: f64,
}

impl Fit {
    /// Of at least two points that do not all lie above each other.
    #[must_use]
    pub fn of(points: &[(f64, f64)]) -> Option<Self> {
        let count = points.len() as f64;
        let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
        let (x, y) = (mean(|point| point.0), mean(|point| point.1));
        let sum = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
            points
                .iter()
                .map(|point| of(point.0 - x, point.1 - y))
                .sum()
        };
        let (xx, xy, yy) = (sum(&|x, _| x * x), sum(&|x, y| x * y), sum(&|_, y| y * y));
        let slope = xy / xx;
        (points.len() > 1 && xx > 0.0).then(|| Self {
            slope,
            offset: y - slope * x,
            correlation: if yy > 0.0 { xy / (xx * yy).sqrt() } else { 0.0 },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Fit, Summary, median};

    #[test]
    fn summaries_are_those_of_the_definition() {
        let summary = Summary::of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).expect("values");
        assert_eq!((summary.mean, summary.least, summary.most), (5.0, 2.0, 9.0));
        assert!((summary.deviation - (32.0_f64 / 7.0).sqrt()).abs() < 1e-12);
        assert!((summary.standard_error() - (32.0_f64 / 56.0).sqrt()).abs() < 1e-12);
        assert_eq!(Summary::of(&[]), None);
        assert_eq!(Summary::of(&[3.0]).expect("one").deviation, 0.0);
    }

    #[test]
    fn medians_of_odd_and_even_numbers() {
        assert_eq!(median([3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median([4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median([]), None);
    }

    #[test]
    fn a_line_through_points_that_lie_on_one() {
        let fit = Fit::of(&[(0.0, 1.0), (1.0, 3.0), (3.0, 7.0)]).expect("a line");
        assert!((fit.slope - 2.0).abs() < 1e-12 && (fit.offset - 1.0).abs() < 1e-12);
        assert!((fit.correlation - 1.0).abs() < 1e-12);
        assert_eq!(Fit::of(&[(1.0, 1.0), (1.0, 2.0)]), None);
        assert_eq!(Fit::of(&[(1.0, 1.0)]), None);
    }
}
