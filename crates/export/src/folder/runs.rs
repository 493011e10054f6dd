//! Runs: each put together from the records of its processes, then all of a kind.
//!
//! Processes that are forked begin in the midst of functions, so their records are read together with those of
//! the processes that they come from; where those are missing, they are [loose](Kind::loose). A run was cut if one of its
//! processes was.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use fixedbitset::FixedBitSet;
use tomo_profile::merge::{Marks, SEVERAL};
use tomo_profile::records::{Kind, Sighting};
use tomo_wire::ModuleId;

use super::Group;

/// What tells runs apart under one plan: their names; of those that have none, what they saw.
type Key = (u64, [u8; 16], Option<(Kind, FixedBitSet)>);

/// All runs, by plan.
#[derive(Default)]
pub(super) struct Runs(BTreeMap<Key, Run>);

/// What the processes of one run saw under one plan.
struct Run {
    module: ModuleId,
    cut: bool,
    /// Whether marks of a process of it are loose, and whether those of one are not.
    loose: bool,
    whole: bool,
    marks: Marks,
    by_parts: bool,
    paths: BTreeSet<PathBuf>,
    records: BTreeSet<([u8; 16], i64)>,
}

impl Runs {
    /// Adds a record; whether the runs of its folder carried parts of the probes, and where its module was, is
    /// known from elsewhere. One that contradicts those that are known under its plan is not added, and the answer is no.
    pub(super) fn add(&mut self, seen: Sighting, by_parts: bool, path: Option<PathBuf>) -> bool {
        let Sighting {
            kind,
            module,
            marks,
        } = seen;
        let nameless = marks.run == SEVERAL;
        let content = nameless.then(|| (kind, marks.hits.clone()));
        let record = (marks.run, marks.created);
        let run = self
            .0
            .entry((kind.plan, marks.run, content))
            .or_insert_with(|| Run {
                module,
                cut: false,
                loose: false,
                whole: false,
                marks: marks.clone(),
                by_parts: false,
                paths: BTreeSet::new(),
                records: BTreeSet::new(),
            });
        if run.module != module || !run.marks.join(&marks) {
            return false;
        }
        run.cut |= kind.cut;
        // What only counts processes that have records of their own has no marks.
        run.loose |= kind.loose;
        run.whole |= !kind.loose && !marks.hits.is_clear();
        run.by_parts |= by_parts;
        run.paths.extend(path);
        run.records.insert(record);
        true
    }

    /// What all runs of each kind say together, without their plans.
    pub(super) fn groups(self) -> Vec<Group> {
        let mut kinds: BTreeMap<Kind, Vec<Run>> = BTreeMap::new();
        for ((plan, _, _), run) in self.0 {
            let kind = Kind {
                plan,
                cut: run.cut,
                loose: run.loose && !run.whole,
            };
            kinds.entry(kind).or_default().push(run);
        }
        let groups = kinds.into_iter();
        groups
            .filter_map(|(kind, runs)| group(kind, runs))
            .collect()
    }
}

fn group(kind: Kind, runs: Vec<Run>) -> Option<Group> {
    let first = runs.first()?;
    let mut group = Group {
        kind,
        module: first.module,
        plan: Vec::new(),
        marks: first.marks.clone(),
        runs: Vec::new(),
        by_parts: false,
        paths: BTreeSet::new(),
        records: BTreeSet::new(),
    };
    let is_merged: Vec<bool> = runs.iter().map(|run| run.is_merge_of(&runs)).collect();
    for (run, is_merged) in runs.into_iter().zip(is_merged) {
        // All have the shape of their plan.
        let _ = group.marks.join(&run.marks);
        group.by_parts |= run.by_parts;
        group.paths.extend(run.paths);
        if !is_merged {
            group.records.extend(run.records);
            group.runs.push(run.marks);
        }
    }
    Some(group)
}

impl Run {
    /// Whether this is no more than some of the others together, as what stands beside the runs that were merged is.
    fn is_merge_of(&self, all: &[Self]) -> bool {
        if self.marks.run != SEVERAL {
            return false;
        }
        let mine = &self.marks.hits;
        let others = all.iter().filter(|other| !std::ptr::eq(*other, self));
        let parts = others.filter(|other| other.marks.hits.is_subset(mine));
        let mut together = FixedBitSet::with_capacity(mine.len());
        let mut any = false;
        for part in parts {
            together.union_with(&part.marks.hits);
            any = true;
        }
        any && together == *mine
    }
}
