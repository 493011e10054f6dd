//! The exact optimum of small cases: as an integer linear program for an existing solver, and by
//! trying everything.

use good_lp::{Expression, Solution, SolverModel, constraint, microlp, variable, variables};
use tomo_plan::distribution::{Bound, SetId, UnitId, UnitSets};

/// The most weight of sets that so many variants can observe, each set counted once.
///
/// One 0-1 variable per variant and unit (is it probed there?), per variant and set (is it observed
/// there? only if all its units are probed) and per set (is it observed? only if somewhere).
pub(crate) fn optimum(sets: &UnitSets, weights: &[u64], bound: &Bound, variants: usize) -> u128 {
    let mut problem = variables!();
    let binary = || variable().binary();
    let probed = problem.add_vector(binary(), variants * sets.unit_count());
    let observed = problem.add_vector(binary(), variants * sets.len());
    let seen = problem.add_vector(binary(), sets.len());
    let weight: Expression = sets
        .ids()
        .map(|set| weights[set.index()] as f64 * seen[set.index()])
        .sum();
    let mut model = problem.maximise(weight.clone()).using(microlp);
    for variant in 0..variants {
        let row = &probed[variant * sets.unit_count()..][..sets.unit_count()];
        let cost: Expression = row
            .iter()
            .zip(0..)
            .map(|(&x, unit)| bound.cost(UnitId(unit)) as f64 * x)
            .sum();
        model = model.with(constraint!(cost <= bound.limit() as f64));
        for set in sets.ids() {
            let here = observed[variant * sets.len() + set.index()];
            for unit in sets.units(set) {
                model = model.with(constraint!(here <= row[unit.index()]));
            }
        }
    }
    for set in sets.ids() {
        let anywhere: Expression = (0..variants)
            .map(|variant| observed[variant * sets.len() + set.index()])
            .sum();
        model = model.with(constraint!(seen[set.index()] <= anywhere));
    }
    let solution = model.solve().expect("placing nothing is a solution");
    solution.eval(weight).round() as u128
}

/// The same by trying every choice of sets for each variant.
pub(crate) fn by_trying(sets: &UnitSets, weights: &[u64], bound: &Bound, variants: usize) -> u128 {
    let fits = |&choice: &u32| {
        let mut units: Vec<UnitId> = chosen(sets, choice)
            .flat_map(|set| sets.units(set))
            .copied()
            .collect();
        units.sort_unstable();
        units.dedup();
        bound.cost_of(&units) <= bound.limit()
    };
    let choices: Vec<u32> = (0..1 << sets.len()).filter(fits).collect();
    let mut unions = vec![0];
    for _ in 0..variants {
        let joined = unions
            .iter()
            .flat_map(|union| choices.iter().map(move |c| union | c));
        unions = joined.collect();
        unions.sort_unstable();
        unions.dedup();
    }
    let weight = |union: u32| {
        chosen(sets, union)
            .map(|set| u128::from(weights[set.index()]))
            .sum()
    };
    unions.into_iter().map(weight).max().unwrap_or(0)
}

fn chosen(sets: &UnitSets, choice: u32) -> impl Iterator<Item = SetId> + use<> {
    sets.ids().filter(move |set| choice >> set.0 & 1 == 1)
}
