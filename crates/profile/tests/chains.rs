//! Trees of calls put together.

use proptest::collection::vec;
use proptest::prelude::*;
use tomo_profile::chains::{Chains, Meaning, Noted};
use tomo_wire::chains::Row;

/// Functions, each this long.
const FUNCTIONS: u32 = 4;
const LENGTH: u32 = 16;

/// A tree: each has one of those before it above it, and some are no tree's.
fn any_tree() -> impl Strategy<Value = Vec<Noted>> {
    let one = (
        any::<prop::sample::Index>(),
        0..6_u32,
        0..FUNCTIONS * LENGTH,
        prop::option::weighted(0.9, 0..=FUNCTIONS),
        0..5_u64,
    );
    vec(one, 0..30).prop_map(|all| {
        let noted = all.into_iter().enumerate();
        let noted = noted.map(|(at, (parent, way, site, function, calls))| Noted {
            parent: parent.index(at + 2),
            way,
            site,
            function,
            calls,
        });
        noted.collect()
    })
}

proptest! {
    /// Runs that are put together are as threads of one run.
    #[test]
    fn merged_trees_are_as_one(one in vec(any_tree(), 0..4), other in vec(any_tree(), 0..4)) {
        let rows: Vec<Row> = (0..FUNCTIONS)
            .map(|number| Row::of(u64::from(number * LENGTH), false, 0))
            .collect();
        let meaning = Meaning {
            origin: 0,
            rows: &rows,
            function_at: &|address| Some(address / u64::from(LENGTH) * u64::from(LENGTH)),
            // The last is not observed.
            is_observed: &|entry| entry < u64::from((FUNCTIONS - 1) * LENGTH),
            is_certain: &|_, _| true,
        };
        let of = |trees: &[Vec<Noted>]| {
            let mut chains = Chains::default();
            for tree in trees {
                chains.add_noted(tree.iter().copied(), &meaning);
            }
            chains
        };
        let mut merged = of(&one);
        merged.merge(&of(&other));
        let whole = of(&[one, other].concat());
        prop_assert_eq!(merged.all(), whole.all());
    }
}

/// They are the most that 64 bits hold, and it is said that there are more.
#[test]
fn calls_of_more_than_64_bits_do_not_start_anew() {
    let rows = [Row::of(0, false, 0)];
    let meaning = Meaning {
        origin: 0,
        rows: &rows,
        function_at: &|_| None,
        is_observed: &|_| false,
        is_certain: &|_, _| true,
    };
    let noted = |parent, calls| Noted {
        parent,
        way: 3,
        site: 0,
        function: Some(0),
        calls,
    };
    let mut chains = Chains::default();
    chains.add_noted([noted(0, u64::MAX - 1), noted(1, 1)], &meaning);
    assert_eq!(chains.calls(), Some(u64::MAX));
    let mut twice = chains.clone();
    twice.merge(&chains);
    assert_eq!(twice.calls(), None);
    assert_eq!(twice.inclusive(), [u64::MAX, u64::MAX, 2]);
}
