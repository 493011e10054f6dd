//! What sampling would have seen (ABI §2.1, §5.3: one observation in a hundred, or in a thousand), simulated from how often
//! each predicate was true in each run.
//!
//! A predicate that was true n times in a run is seen to be true in it with the chance 1 − (1 − 1/r)^n, which is what
//! independent draws of each observation come to.

use tomo_isolate::{Complete, Known, Session, Stage};
use tomo_plan::random::Random;
use tomo_profile::scores::{Outcome, importance};

use super::IsolationError;
use super::results::Sampled;

/// One in so many.
const RATES: [u32; 2] = [100, 1000];
/// Draws at each rate.
const DRAWS: usize = 3;

/// Both rates; runs each case once with counters.
pub(super) fn sampled(
    session: &Session,
    complete: &Complete,
    stage: &Stage<'_>,
) -> Result<Vec<Sampled>, IsolationError> {
    let cases: Vec<usize> = complete.cases.iter().map(|case| case.0).collect();
    let counts = session.counts(&cases)?;
    let goal = stage.best().first().map_or(0.0, |row| stage.scores()[*row]);
    let mut all = Vec::new();
    for one_in in RATES {
        let mut random = Random::new(u64::from(one_in));
        let firsts: Vec<f64> = (0..DRAWS)
            .map(|_| {
                let first = first(complete, &counts, one_in, &mut random);
                first.map_or(0.0, |row| stage.scores()[row])
            })
            .collect();
        all.push(Sampled {
            one_in,
            draws: DRAWS,
            found: firsts.iter().filter(|score| **score > goal - 1e-9).count(),
            reached: firsts.iter().sum::<f64>() / DRAWS as f64,
        });
    }
    Ok(all)
}

/// The row that a draw puts first, if any predicts failure.
fn first(
    complete: &Complete,
    counts: &[Vec<u64>],
    one_in: u32,
    random: &mut Random,
) -> Option<usize> {
    let missed = (1.0 - 1.0 / f64::from(one_in)).ln();
    let failed = complete.cases.iter();
    let failed = failed.filter(|case| case.1 == Outcome::Failure).count() as u64;
    let mut best: Option<(f64, usize)> = None;
    let mut row = 0;
    while row < complete.rows() {
        let site = complete.site(row);
        if site.is_empty() {
            row += 1;
            continue;
        }
        let mut known = vec![Known::default(); site.len()];
        for (number, (_, outcome)) in complete.cases.iter().enumerate() {
            let held = |row: usize, random: &mut Random| {
                let count = counts[number].get(row).copied().unwrap_or(0);
                count > 0 && unit(random) < 1.0 - (missed * count as f64).exp()
            };
            let truths: Vec<bool> = site.clone().map(|row| held(row, random)).collect();
            add(&mut known, &truths, *outcome);
        }
        for (known, row) in known.iter().zip(site.clone()) {
            let score = importance(&known.tally(), failed);
            if score > 0.0 && best.is_none_or(|(highest, _)| score > highest) {
                best = Some((score, row));
            }
        }
        row = site.end;
    }
    best.map(|(_, row)| row)
}

/// A number from 0 to 1, without 1: 53 bits.
fn unit(random: &mut Random) -> f64 {
    (random.bits() >> 11) as f64 / (1u64 << 53) as f64
}

/// Adds a run to what is known of a site's predicates.
fn add(known: &mut [Known], truths: &[bool], outcome: Outcome) {
    let seen = truths.contains(&true);
    for (known, truth) in known.iter_mut().zip(truths) {
        let (seen_sum, true_sum) = match outcome {
            Outcome::Failure => (&mut known.failed_seen, &mut known.failed_true),
            Outcome::Success => (&mut known.passed_seen, &mut known.passed_true),
        };
        *seen_sum += u64::from(seen);
        *true_sum += u64::from(*truth);
    }
}
