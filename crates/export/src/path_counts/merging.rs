//! The paths of several runs of a program put together.
//!
//! Runs may have counted different paths (`--function`, `--select`): what each counted is added up, and what a path asked
//! for by name did not do in one run it may have done in another. Paths mean the same only where a function was drawn
//! with the same ends; where runs differ in that they are not put together.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use tomo_program::{BlockId, FunctionId};
use tomo_wire::paths::{Asked, Reason};

use super::{FunctionPaths, PathCounts, PathEnd, listed};

/// Why runs are not put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAlike {
    /// In one of them the paths of a function end elsewhere than in another.
    #[error("paths end elsewhere in one run than in another")]
    Ends(FunctionId),
    /// Counts add up to more than 64 bits hold.
    #[error("counts add up to more than 64 bits hold")]
    TooMany(FunctionId),
}

impl NotAlike {
    /// Of which function that is.
    #[must_use]
    pub fn function(self) -> FunctionId {
        let (Self::Ends(function) | Self::TooMany(function)) = self;
        function
    }
}

/// What all of these runs of one program tell together.
///
/// # Errors
/// Where they cannot be put together.
pub fn merge(runs: impl IntoIterator<Item = PathCounts>) -> Result<PathCounts, NotAlike> {
    let mut functions: BTreeMap<FunctionId, FunctionPaths> = BTreeMap::new();
    let mut left: BTreeMap<FunctionId, Reason> = BTreeMap::new();
    let mut contradictory = Vec::new();
    for run in runs {
        for function in run.functions {
            match functions.entry(function.function) {
                Entry::Vacant(free) => {
                    free.insert(function);
                }
                Entry::Occupied(known) => known.into_mut().add(function)?,
            }
        }
        left.extend(run.left);
        contradictory.extend(run.contradictory);
    }
    contradictory.sort_unstable();
    contradictory.dedup();
    left.retain(|function, _| !functions.contains_key(function));
    let mut functions: Vec<_> = functions.into_values().collect();
    functions.sort_by_key(|function| function.function);
    Ok(PathCounts {
        functions,
        left: left.into_iter().collect(),
        contradictory,
    })
}

impl FunctionPaths {
    fn add(&mut self, other: Self) -> Result<(), NotAlike> {
        let sorted = |mut one: Vec<BlockId>| {
            one.sort();
            one
        };
        let ends = |one: &Self| {
            let mut breaks: Vec<_> = one
                .breaks
                .iter()
                .map(|(edge, kind)| (edge.from, edge.address, *kind))
                .collect();
            breaks.sort_by_key(|(from, to, kind)| (*from, to.0, *kind));
            (breaks, sorted(one.unfollowed.clone()))
        };
        if ends(self) != ends(&other) {
            return Err(NotAlike::Ends(self.function));
        }
        let too_many = NotAlike::TooMany(self.function);
        self.started = match (self.started, other.started) {
            (Some(one), Some(other)) => Some(one.checked_add(other).ok_or(too_many)?),
            _ => None,
        };
        if self.asked != other.asked || self.named() != other.named() {
            self.asked = None;
        }
        let mut all: BTreeMap<(Vec<BlockId>, PathEnd), u64> = BTreeMap::new();
        let mine = std::mem::take(&mut self.ran).into_iter();
        let mine = mine.chain(std::mem::take(&mut self.idle));
        for path in mine.chain(other.ran).chain(other.idle) {
            let sum = all.entry((path.blocks, path.end)).or_default();
            *sum = sum.checked_add(path.count).ok_or(too_many)?;
        }
        let (idle, ran) = listed(all).into_iter().partition(|path| path.count == 0);
        (self.idle, self.ran) = (idle, ran);
        self.ran.sort_by_key(|path| std::cmp::Reverse(path.count));
        if self.asked.is_none() {
            self.idle.clear();
        }
        Ok(())
    }

    /// The paths that are asked for by name.
    fn named(&self) -> BTreeSet<(&[BlockId], PathEnd)> {
        let all = self.ran.iter().chain(&self.idle);
        let all = all.filter(|_| self.asked == Some(Asked::Named));
        all.map(|path| (path.blocks.as_slice(), path.end)).collect()
    }
}
