//! The counts of several runs of a program put together: what each counted is added up.
//!
//! Counters may have stood elsewhere in each run, but counts mean the same. What one run does not tell is not known of all
//! of them, and a function whose counters contradict each other in one of them is left out.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use tomo_program::FunctionId;

use super::{Counts, FunctionCounts};

/// Counts of a function add up to more than 64 bits hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("counts add up to more than 64 bits hold")]
pub struct TooMany(pub FunctionId);

/// What all of these runs of one program tell together. A function that some of them have nothing of, because it
/// did not run there, ran as often as in the others.
///
/// # Errors
/// Where counts are too many.
pub fn merge(runs: impl IntoIterator<Item = Counts>) -> Result<Counts, TooMany> {
    let mut functions: BTreeMap<FunctionId, FunctionCounts> = BTreeMap::new();
    let mut all = Counts::default();
    for run in runs {
        for function in run.functions {
            match functions.entry(function.function) {
                Entry::Vacant(free) => {
                    free.insert(function);
                }
                Entry::Occupied(known) => known.into_mut().add(&function)?,
            }
        }
        all.uncounted.extend(run.uncounted);
        all.contradictory.extend(run.contradictory);
    }
    all.uncounted.sort_unstable();
    all.uncounted.dedup();
    all.contradictory.sort_by_key(|(function, _)| *function);
    all.contradictory.dedup_by_key(|(function, _)| *function);
    for (function, _) in &all.contradictory {
        functions.remove(function);
    }
    all.functions = functions.into_values().collect();
    Ok(all)
}

impl FunctionCounts {
    fn add(&mut self, other: &Self) -> Result<(), TooMany> {
        let function = self.function;
        let add = |mine: &mut Option<u64>, other: Option<u64>| {
            *mine = match (*mine, other) {
                (Some(one), Some(two)) => Some(one.checked_add(two).ok_or(TooMany(function))?),
                _ => None,
            };
            Ok(())
        };
        add(&mut self.activations, other.activations)?;
        for (mine, other) in self.blocks.iter_mut().zip(&other.blocks) {
            add(mine, *other)?;
        }
        for ((_, mine), (_, other)) in self.edges.iter_mut().zip(&other.edges) {
            add(mine, *other)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{TooMany, merge};
    use crate::{Counts, FunctionCounts};
    use tomo_profile::counts::CountError;
    use tomo_program::FunctionId;

    fn run(functions: &[(u32, Option<u64>)]) -> Counts {
        let function = |&(id, count): &(u32, Option<u64>)| FunctionCounts {
            function: FunctionId(id),
            activations: count,
            blocks: vec![count, Some(1)],
            edges: Vec::new(),
        };
        Counts {
            functions: functions.iter().map(function).collect(),
            ..Counts::default()
        }
    }

    #[test]
    fn what_runs_counted_is_added_up() {
        let all = merge([
            run(&[(1, Some(3)), (4, None)]),
            run(&[(1, Some(4)), (2, Some(5)), (4, Some(6))]),
        ]);
        let all = all.expect("few enough").functions;
        let told: Vec<_> = all
            .iter()
            .map(|it| (it.function.0, it.activations))
            .collect();
        assert_eq!(told, [(1, Some(7)), (2, Some(5)), (4, None)]);
        let blocks: Vec<_> = all.iter().map(|it| it.blocks[1]).collect();
        assert_eq!(blocks, [Some(2), Some(1), Some(2)]);
    }

    #[test]
    fn what_one_run_contradicts_is_told_of_none() {
        let mut contradicting = run(&[(2, Some(1))]);
        let error = CountError::Length {
            expected: 1,
            found: 2,
        };
        contradicting.contradictory = vec![(FunctionId(1), error)];
        let all = merge([run(&[(1, Some(3)), (2, Some(1))]), contradicting]);
        let all = all.expect("few enough");
        assert_eq!(all.functions.len(), 1);
        assert_eq!(all.contradictory.len(), 1);
    }

    #[test]
    fn counts_that_are_too_many_are_no_counts() {
        let all = merge([run(&[(1, Some(u64::MAX))]), run(&[(1, Some(1))])]);
        assert_eq!(all.err(), Some(TooMany(FunctionId(1))));
    }
}
