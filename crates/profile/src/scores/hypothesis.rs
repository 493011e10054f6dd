//! TTest and the Mann-Whitney U test: whether p is true more often in failed than in successful runs.
//!
//! Source: ABI §4.3. Student, *The Probable Error of a Mean*, Biometrika 6(1), 1908, with the pooled
//! variance, on the samples of 0 and 1 (was p true in a run that reached its site?) of both outcomes;
//! Mann, Whitney, Annals of Mathematical Statistics 18(1), 1947, with the normal approximation, mid
//! ranks and the usual correction for ties (Lehmann, *Nonparametrics*, 1975, §1.3), without one for
//! continuity.
//!
//! The score is the confidence c = 1 − P that the means differ, taken as −c where p was true more
//! rarely in failed runs. Where a test says nothing it is 0: a sample is empty, both are constant and
//! alike, or there are no degrees of freedom. Two constant samples that differ give 1: the limit.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

use super::Tally;

/// The t statistic of the two samples, infinite if both are constant and differ, and its degrees of
/// freedom; nothing where the test says nothing.
#[must_use]
pub fn t_statistic(tally: &Tally) -> Option<(f64, f64)> {
    let (n, m) = (tally.failed_seen as f64, tally.passed_seen as f64);
    let freedom = n + m - 2.0;
    if n < 1.0 || m < 1.0 || freedom <= 0.0 {
        return None;
    }
    let (a, b) = (tally.failed_true as f64 / n, tally.passed_true as f64 / m);
    let squares = n * a * (1.0 - a) + m * b * (1.0 - b);
    // Means that are equal are so as fractions; as quotients they may differ in the last place.
    if cross(tally) == std::cmp::Ordering::Equal {
        return (squares > 0.0).then_some((0.0, freedom));
    }
    let error = (squares / freedom * (1.0 / n + 1.0 / m)).sqrt();
    Some(((a - b) / error, freedom))
}

/// How F(p) / F(p observed) compares with S(p) / S(p observed), exactly.
fn cross(tally: &Tally) -> std::cmp::Ordering {
    let product = |a: u64, b: u64| u128::from(a) * u128::from(b);
    product(tally.failed_true, tally.passed_seen)
        .cmp(&product(tally.passed_true, tally.failed_seen))
}

/// TTest(p), from −1 to 1.
#[must_use]
pub fn t_test(tally: &Tally) -> f64 {
    let Some((t, freedom)) = t_statistic(tally) else {
        return 0.0;
    };
    if t.is_infinite() {
        return t.signum();
    }
    let tail = |t: f64| StudentsT::new(0.0, 1.0, freedom).map_or(0.5, |student| student.sf(t));
    confidence(t, 2.0 * tail(t.abs()))
}

/// The same by the U test, from −1 to 1.
#[must_use]
pub fn mann_whitney(tally: &Tally) -> f64 {
    let (n, m) = (tally.failed_seen as f64, tally.passed_seen as f64);
    let all = n + m;
    if n < 1.0 || m < 1.0 || all < 2.0 {
        return 0.0;
    }
    let (held, passing) = (tally.failed_true as f64, tally.passed_true as f64);
    let ones = held + passing;
    let zeros = all - ones;
    // Pairs in which the failed run has the greater value, those that are tied by half.
    let pairs = held * (m - passing) + 0.5 * (held * passing + (n - held) * (m - passing));
    let cubes = |ties: f64| ties * ties * ties - ties;
    let variance = n * m / 12.0 * (all + 1.0 - (cubes(ones) + cubes(zeros)) / (all * (all - 1.0)));
    if variance <= 0.0 || cross(tally) == std::cmp::Ordering::Equal {
        return 0.0;
    }
    let z = (pairs - n * m / 2.0) / variance.sqrt();
    confidence(z, 2.0 * Normal::standard().sf(z.abs()))
}

fn confidence(sign: f64, chance: f64) -> f64 {
    (1.0 - chance.clamp(0.0, 1.0)).copysign(sign)
}
