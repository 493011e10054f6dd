//! Scores against their definitions, and sequential tests against simulated runs.

use proptest::prelude::*;
use tomo_graph::check::{Entropy, generate};
use tomo_graph::{Graph, NodeId};
use tomo_plan::coverage::{Ending, Flow, Subdivision};
use tomo_plan::predicates::{Model, implied};
use tomo_plan::random::Random;
use tomo_profile::scores::{
    Decision, DoubleDichotomy, Heuristic, OddsTest, Outcome, Sufficiency, SufficiencyRule, Tallies,
    Tally, TestError, best, fail_count, importance, importance_interval, increase, mann_whitney,
    max_importance, recover, t_statistic, t_test,
};

fn tally(failed_true: u64, passed_true: u64, failed_seen: u64, passed_seen: u64) -> Tally {
    Tally {
        failed_true,
        passed_true,
        failed_seen,
        passed_seen,
    }
}

fn near(a: f64, b: f64) {
    assert!((a - b).abs() < 1e-9, "{a} is not {b}");
}

fn chance(random: &mut Random, of_a_thousand: usize) -> bool {
    random.below(1000) < of_a_thousand
}

fn any_tally() -> impl Strategy<Value = Tally> {
    (0u64..60, 0u64..60).prop_flat_map(|(failed, passed)| {
        (0..=failed, 0..=passed).prop_map(move |(f, s)| tally(f, s, failed, passed))
    })
}

#[test]
fn increase_is_failure_less_context() {
    // 30 of 40 runs with p true failed; 50 of 100 that reached its site.
    near(increase(&tally(30, 10, 50, 50)), 0.25);
    near(increase(&Tally::default()), -1.0);
}

#[test]
fn importance_is_the_harmonic_mean() {
    // log 10 / log 100 is a half.
    let p = tally(10, 0, 50, 50);
    near(importance(&p, 100), 2.0 / (1.0 / 0.5 + 1.0 / 0.5));
    near(importance(&p, 1), 0.0);
    near(importance(&tally(0, 5, 50, 50), 100), 0.0);
}

/// ABI §4.3: a branch that is always taken has Increase 0, whatever F(p) is; MaxImportance sees what
/// may lie behind it.
#[test]
fn abi_a_branch_that_is_always_taken_has_no_importance() {
    let p = tally(90, 10, 90, 10);
    near(increase(&p), 0.0);
    near(importance(&p, 100), 0.0);
    let hypothetical = tally(90, 0, 90, 10);
    near(max_importance(&p, 100), importance(&hypothetical, 100));
    assert!(max_importance(&p, 100) > 0.1);
    // FailCount cannot tell these two apart.
    near(fail_count(&p), fail_count(&hypothetical));
}

/// Student's test on two samples by its definition, with means and variances of the samples written
/// out, and the tail of t with 6 degrees of freedom in closed form.
#[test]
fn t_test_is_student_s() {
    let p = tally(3, 1, 4, 4);
    let (t, freedom) = t_statistic(&p).expect("defined");
    // Means 3/4 and 1/4; sums of squares 3/4 each; pooled variance 1/4; error √(1/8).
    near(t, 0.5 / (0.125f64).sqrt());
    near(freedom, 6.0);
    let z = t / (6.0 + t * t).sqrt();
    let within = z * (1.0 + 0.5 * (1.0 - z * z) + 0.375 * (1.0 - z * z).powi(2));
    near(t_test(&p), within);
    near(t_test(&tally(1, 3, 4, 4)), -within);
}

#[test]
fn tests_that_say_nothing_are_zero_and_limits_are_one() {
    for silent in [
        Tally::default(),
        tally(1, 0, 1, 0),
        tally(1, 0, 1, 1),
        tally(5, 5, 5, 5),
        tally(0, 0, 9, 9),
        tally(1, 3, 3, 9),
    ] {
        near(t_test(&silent), 0.0);
    }
    near(t_test(&tally(5, 0, 5, 5)), 1.0);
    near(t_test(&tally(0, 5, 5, 5)), -1.0);
}

/// All pairs compared, and the variance from the mid ranks themselves.
#[test]
fn mann_whitney_is_the_rank_test() {
    let (failed, passed) = (
        [1.0, 1.0, 0.0, 1.0, 0.0],
        [0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0],
    );
    let all: Vec<f64> = failed.iter().chain(&passed).copied().collect();
    let rank = |x: f64| {
        let below = all.iter().filter(|&&y| y < x).count() as f64;
        let equal = all.iter().filter(|&&y| y == x).count() as f64;
        below + (equal + 1.0) / 2.0
    };
    let sum: f64 = failed.iter().map(|&x| rank(x)).sum();
    let (n, m) = (5.0, 7.0);
    let mean = (n + m + 1.0) / 2.0;
    let spread: f64 = all.iter().map(|&x| (rank(x) - mean).powi(2)).sum::<f64>() / (n + m - 1.0);
    let z = (sum - n * mean) / (n * m / (n + m) * spread).sqrt();
    // The normal distribution from its error function's series.
    let series = |x: f64| {
        let (mut term, mut total) = (x, x);
        for k in 1..60 {
            term *= -x * x / f64::from(k);
            total += term / f64::from(2 * k + 1);
        }
        2.0 / std::f64::consts::PI.sqrt() * total
    };
    near(mann_whitney(&tally(3, 2, 5, 7)), series(z / 2f64.sqrt()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn scores_are_finite_and_within_their_bounds(p in any_tally(), more in 0u64..50) {
        let failed = p.failed_seen + more;
        prop_assert!((0.0..=1.0).contains(&importance(&p, failed)));
        prop_assert!((0.0..=1.0).contains(&max_importance(&p, failed)));
        let hypothetical = tally(p.failed_true, 0, p.failed_true, p.passed_true);
        near(max_importance(&p, failed), importance(&hypothetical, failed));
        prop_assert!((-1.0..=1.0).contains(&t_test(&p)));
        prop_assert!((-1.0..=1.0).contains(&mann_whitney(&p)));
        let bounds = importance_interval(&p, failed, p.passed_seen + more, 1.96);
        prop_assert!(bounds.low <= bounds.value && bounds.value <= bounds.high);
        prop_assert_eq!(bounds.value, importance(&p, failed));
    }

    #[test]
    fn turning_outcomes_round_turns_the_sign(p in any_tally()) {
        let turned = tally(p.passed_true, p.failed_true, p.passed_seen, p.failed_seen);
        near(t_test(&p), -t_test(&turned));
        near(mann_whitney(&p), -mann_whitney(&turned));
    }

    #[test]
    fn the_best_is_the_first_of_the_highest(tallies in prop::collection::vec(any_tally(), 0..40)) {
        let tallies = Tallies { predicates: tallies, failed: 70, passed: 70 };
        for heuristic in [
            Heuristic::FailCount, Heuristic::Importance, Heuristic::MaxImportance,
            Heuristic::TTest, Heuristic::MannWhitney,
        ] {
            let mut expected: Option<(usize, f64)> = None;
            for p in 0..tallies.predicates.len() {
                let score = heuristic.score(&tallies, p);
                if expected.is_none_or(|(_, highest)| score > highest) {
                    expected = Some((p, score));
                }
            }
            prop_assert_eq!(best(heuristic, &tallies, 0..tallies.predicates.len()), expected);
        }
    }

    #[test]
    fn tallies_add_up(sites in prop::collection::vec((any::<bool>(), 0u8..4), 0..60)) {
        let outcome = |failed| if failed { Outcome::Failure } else { Outcome::Success };
        let feed = |part: &[(bool, u8)]| {
            let mut tallies = Tallies::new(2);
            for &(failed, truths) in part {
                tallies.run(outcome(failed));
                tallies.site(outcome(failed), 0, &[truths & 1 == 1, truths & 2 == 2]);
            }
            tallies
        };
        let (all, half) = (feed(&sites), sites.len() / 2);
        let (one, two) = (feed(&sites[..half]), feed(&sites[half..]));
        for p in 0..2 {
            prop_assert_eq!(all.predicates[p], one.predicates[p].plus(two.predicates[p]));
        }
        let seen = sites.iter().filter(|site| site.0 && site.1 != 0).count() as u64;
        prop_assert_eq!(all.predicates[1].failed_seen, seen);
        prop_assert_eq!(all.failed + all.passed, sites.len() as u64);
    }
}

/// Runs drawn from known chances: the interval holds the true Importance about 95 times in 100.
#[test]
fn importance_intervals_hold_what_they_say() {
    let mut random = Random::new(7);
    // A fifth of the runs fail; p is true in 70 of 100 failed runs and 20 of 100 others, its site is
    // reached in 90 of 100.
    let (runs, trials) = (4000u64, 600);
    let expected = |share: f64| share * runs as f64;
    let truth = {
        let p = (expected(0.2 * 0.9 * 0.7), expected(0.8 * 0.9 * 0.2));
        let rise = p.0 / (p.0 + p.1) - 0.2;
        let depth = p.0.ln() / expected(0.2).ln();
        2.0 / (1.0 / rise + 1.0 / depth)
    };
    let mut held = 0;
    for _ in 0..trials {
        let mut tallies = Tallies::new(2);
        for _ in 0..runs {
            let failed = chance(&mut random, 200);
            let outcome = if failed {
                Outcome::Failure
            } else {
                Outcome::Success
            };
            tallies.run(outcome);
            if chance(&mut random, 900) {
                let truth = chance(&mut random, if failed { 700 } else { 200 });
                tallies.site(outcome, 0, &[truth, !truth]);
            }
        }
        let bounds =
            importance_interval(&tallies.predicates[0], tallies.failed, tallies.passed, 1.96);
        held += u32::from(bounds.low <= truth && truth <= bounds.high);
    }
    // 570 expected; four deviations of the count are 21.
    assert!((549..=591).contains(&held), "{held} of {trials}");
}

/// How many of `trials` tests end with `wanted`, of runs half of which fail.
fn decided(test: OddsTest, rates: (usize, usize), wanted: Decision, trials: u64) -> u32 {
    let ends = |seed| {
        let mut random = Random::new(seed);
        let mut test = DoubleDichotomy::new(test);
        for _ in 0..20_000 {
            let failed = chance(&mut random, 500);
            let truth = chance(&mut random, if failed { rates.0 } else { rates.1 });
            let outcome = if failed {
                Outcome::Failure
            } else {
                Outcome::Success
            };
            if test.run(outcome, truth) != Decision::Open {
                break;
            }
        }
        test.decision()
    };
    (0..trials).filter(|&seed| ends(seed) == wanted).count() as u32
}

#[test]
fn the_sequential_test_keeps_its_error_rates() {
    let test = OddsTest::new(3.0, 0.05, 0.1).expect("a test");
    let trials = 4000;
    // Four deviations above 200 of 4,000 are 255, above 400 they are 476.
    for rate in [50, 300, 800] {
        let wrong = decided(test, (rate, rate), Decision::Predictive, trials);
        assert!(
            (40..=255).contains(&wrong),
            "{wrong} wrong discoveries at {rate}"
        );
    }
    // Odds 1/3 against 1/9 are 3: chances 250 and 100 of 1,000.
    let missed = decided(test, (250, 100), Decision::NotPredictive, trials);
    assert!((80..=476).contains(&missed), "{missed} missed");
    let found = decided(test, (250, 100), Decision::Predictive, trials);
    assert_eq!(found + missed, 4000);
}

/// What the sequential test is for: a test of fixed size at 5 %, asked after each run, errs far oftener.
#[test]
fn asking_a_fixed_test_after_every_run_goes_wrong() {
    let wrong = (0..300).filter(|&seed| {
        let mut random = Random::new(seed);
        let mut tallies = Tallies::new(2);
        (0..1000).any(|_| {
            let failed = chance(&mut random, 500);
            let truth = chance(&mut random, 300);
            let outcome = if failed {
                Outcome::Failure
            } else {
                Outcome::Success
            };
            tallies.site(outcome, 0, &[truth, !truth]);
            t_test(&tallies.predicates[0]) > 0.9
        })
    });
    // One-sided at 5 %: asked once it would be 15 of 300.
    assert!(wrong.count() > 90);
}

#[test]
fn many_predicates_share_the_error_rate() {
    let test = OddsTest::new(3.0, 0.1, 0.1).expect("a test");
    let trials = 400;
    let wrong = (0..trials).filter(|&seed| {
        let mut random = Random::new(seed);
        let mut data = Sufficiency::new(test, 20, SufficiencyRule::FirstFound, 3000);
        while !data.is_reached() {
            data.run();
            let outcome = if chance(&mut random, 500) {
                Outcome::Failure
            } else {
                Outcome::Success
            };
            for site in 0..10 {
                let truth = chance(&mut random, 300);
                data.site(outcome, 2 * site, &[truth, !truth]);
            }
        }
        data.decisions()
            .any(|decision| decision == Decision::Predictive)
    });
    // 40 expected at most; four deviations are 24.
    let wrong = wrong.count();
    assert!(wrong <= 64, "{wrong} of {trials}");
    assert!(wrong > 0, "the bound is not so loose");
}

#[test]
fn a_site_that_is_hardly_reached_does_not_hold_up_the_search() {
    let test = OddsTest::new(2.0, 0.05, 0.05).expect("a test");
    let mut data = Sufficiency::new(test, 2, SufficiencyRule::AllDecided, 50);
    for _ in 0..49 {
        data.run();
    }
    assert!(!data.is_reached());
    data.run();
    assert!(data.is_reached());
    assert!(data.decisions().all(|decision| decision == Decision::Open));
}

#[test]
fn tests_that_cannot_be_are_refused() {
    assert_eq!(OddsTest::new(1.0, 0.05, 0.05), Err(TestError::Odds(1.0)));
    assert!(OddsTest::new(f64::NAN, 0.05, 0.05).is_err());
    assert_eq!(
        OddsTest::new(2.0, 0.5, 0.5),
        Err(TestError::Rates(0.5, 0.5))
    );
    assert!(OddsTest::new(2.0, f64::NAN, 0.5).is_err());
}

/// One walk, or several, of a divided flow: how often each node runs.
fn wander(divided: &Subdivision, random: &mut Random, counts: &mut [u64]) -> bool {
    let flow = divided.flow();
    let mut node = flow.entry();
    for _ in 0..200 {
        counts[node.index()] += 1;
        let ways: Vec<_> = flow.successors(node).collect();
        if flow.is_exit(node) && (ways.is_empty() || random.below(2) == 0) {
            return true;
        }
        node = ways[random.below(ways.len())];
    }
    false
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn what_is_left_out_is_recovered(
        bytes in prop::collection::vec(any::<u8>(), 0..96), values: u16, seed: u64,
    ) {
        let graph = generate(&mut Entropy::new(&bytes), 12);
        let flow = Flow::new(&graph, Ending::AtExits, |_| false);
        let divided = Subdivision::of(&flow).expect("small");
        let value = |node: NodeId| values >> node.0 & 1 == 1 && node.index() < graph.node_count();
        let mut random = Random::new(seed);
        let mut counts = vec![0u64; divided.flow().node_count()];
        for _ in 0..3 {
            // A walk that takes too long is of no use; what never exits never ends.
            prop_assume!(wander(&divided, &mut random, &mut counts));
        }
        for model in [Model::Counts, Model::Binary] {
            let removal = implied(&divided, model, value);
            let seen = |count: u64| if model == Model::Binary { count.min(1) } else { count };
            let truth: Vec<u64> = counts[graph.node_count()..].iter().map(|&c| seen(c)).collect();
            let told = removal.told_by.iter().zip(&truth);
            let mut edges: Vec<u64> = told.map(|(by, &c)| if by.is_some() { 77 } else { c }).collect();
            let site = |node: NodeId| value(node).then(|| seen(counts[node.index()]));
            recover(&divided, &removal, site, &mut edges);
            // Binary data of several predicates of one site may add up to more than one.
            prop_assert_eq!(edges.into_iter().map(seen).collect::<Vec<_>>(), truth);
        }
    }
}
