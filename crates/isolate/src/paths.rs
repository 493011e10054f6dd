//! Paths as predicates (HOLMES; ABI §2.2): where no branch and no result tells failures for certain, what tells them may
//! be several of them together. The functions of the best predictors are run with their acyclic paths counted, and
//! each path that ran in some run is a predicate: true of a run if it ran in it, observed if the function did.

use std::collections::{BTreeMap, BTreeSet};

use tomo_export::predicates::{PredicateError, Site, Sources};
use tomo_export::{Extent, PathEnd, path_counts};
use tomo_launch::{ChosenPaths, RunFolder};
use tomo_profile::scores::Outcome;
use tomo_program::{BlockId, Graphs};
use tomo_wire::counting::sums;
use tomo_wire::paths::Paths;
use tomo_wire::predicates::Kind;

use crate::answer::{self, Finding, Name};
use crate::asked::IsolateError;
use crate::counted::Counted;
use crate::many::each;
use crate::session::Session;
use crate::state::Known;
use crate::words::{Words, words};

/// Functions whose paths are followed at most.
const MOST: usize = 8;
/// Decisions along a path that are named.
const NAMED: usize = 8;

/// A path: its function's entry, its blocks' addresses, and where it went on.
type Path = (u64, Vec<u64>, u64);

/// What a run showed: functions of which a path was started, and the paths that ran.
#[derive(Default)]
struct Ran {
    functions: BTreeSet<u64>,
    paths: BTreeSet<Path>,
}

impl Session {
    /// Paths that predict failure better than the best of their function's branches and results, among `found`, does.
    pub(crate) fn along_paths(&self, found: &[Finding]) -> Result<Vec<Finding>, IsolateError> {
        let graphs = self.located.model.graphs()?;
        let weak = self.weak(&graphs, found);
        if weak.is_empty() {
            return Ok(Vec::new());
        }
        let runs = self.follow(&graphs, weak.keys().copied().collect())?;
        let mut known: BTreeMap<&Path, Known> = BTreeMap::new();
        for path in runs.iter().flat_map(|(_, ran)| &ran.paths) {
            known.entry(path).or_default();
        }
        for (outcome, ran) in &runs {
            for (path, known) in &mut known {
                let seen = ran.functions.contains(&path.0);
                add(known, *outcome, seen, ran.paths.contains(*path));
            }
        }
        let scored = known.into_iter().map(|(path, known)| {
            let importance = answer::importance(&known);
            (path, known, importance)
        });
        let best = |path: &Path| weak.get(&path.0).copied().unwrap_or(0.0);
        let mut better: Vec<_> = scored
            .filter(|(path, _, importance)| importance.value > best(path) + 1e-9)
            .collect();
        better.sort_by(|one, other| other.2.value.total_cmp(&one.2.value));
        let mut sources = Sources::default();
        let step = self.state.steps.len() as u32;
        let named = better.into_iter().take(answer::MOST);
        Ok(named
            .map(|(path, known, importance)| Finding {
                id: name(path),
                function: function(&graphs, path.0),
                line: self.first_line(path),
                words: self.along(&graphs, path, &mut sources),
                known: Known { step, ..known },
                importance,
                step,
                source: Vec::new(),
            })
            .collect())
    }

    /// The functions of predictors that are not certain: by entry, the Importance of the best of them.
    fn weak(&self, graphs: &Graphs<'_>, found: &[Finding]) -> BTreeMap<u64, f64> {
        let mut weak = BTreeMap::new();
        for finding in found {
            let Name::Predicate(id) = finding.id else {
                continue;
            };
            let mut sites = self.sites.sites.iter();
            let site = sites.find(|site| site.kind == id.kind && site.address.0 == id.site);
            let block = site.and_then(|site| graphs.block_at(site.block));
            let entry = block.and_then(|block| Some(block.function()?.entry().0));
            let Some(entry) = entry.filter(|_| finding.importance.value < 1.0 - 1e-9) else {
                continue;
            };
            if weak.len() < MOST || weak.contains_key(&entry) {
                let best = weak.entry(entry).or_insert(0.0f64);
                *best = best.max(finding.importance.value);
            }
        }
        weak
    }

    /// Runs all cases with the paths of these functions counted.
    fn follow(
        &self,
        graphs: &Graphs<'_>,
        entries: BTreeSet<u64>,
    ) -> Result<Vec<(Outcome, Ran)>, IsolateError> {
        self.same()?;
        let chosen = ChosenPaths::Of(entries);
        let observe =
            |folder: &mut RunFolder| folder.follow(&self.module, &self.images, &chosen, &());
        let count = self.options.cases.cases.len();
        let made = each(count, self.options.jobs, |case| {
            let counted = self.counted(case, "paths", observe)?;
            Ok((counted.outcome, ran(graphs, &counted)?))
        });
        made.into_iter().collect()
    }

    /// The line of the first branch along a path.
    fn first_line(&self, path: &Path) -> Option<tomo_export::predicates::Line> {
        let mut sites = path.1.iter().filter_map(|block| self.branch(*block));
        sites.find_map(|site| site.line.clone())
    }

    /// The branch in which a block ends, if it does.
    fn branch(&self, block: u64) -> Option<&Site> {
        let mut sites = self.sites.sites.iter();
        sites.find(|site| site.kind == Kind::Branch && site.block.0 == block)
    }

    /// What was decided along a path, in words.
    fn along(&self, graphs: &Graphs<'_>, path: &Path, sources: &mut Sources) -> Words {
        let (entry, blocks, end) = path;
        let next = blocks.iter().skip(1).chain(std::iter::once(end));
        let mut decisions = Vec::new();
        let mut more = 0;
        for (block, next) in blocks.iter().zip(next) {
            let Some(site) = self.branch(*block) else {
                continue;
            };
            let case = site.ways.iter().position(|way| way.0 == *next);
            let Some(case) = case.filter(|_| site.ways[0] != site.ways[1]) else {
                continue;
            };
            if decisions.len() < NAMED {
                let said = words(site, case as u8, sources);
                let line = site.line.as_ref().map(|line| line.line);
                let line = line.map_or_else(String::new, |line| format!(" (line {line})"));
                decisions.push(said.what + &line);
            } else {
                more += 1;
            }
        }
        let mut what = match decisions.is_empty() {
            true => "the path without any decision".into(),
            false => format!("the path on which {}", decisions.join(", then ")),
        };
        if more > 0 {
            what += &format!(", and {more} more decisions");
        }
        let name = function(graphs, *entry);
        let place = match self.first_line(path) {
            Some(line) => line.short(),
            None => format!("{name} at {entry:#x}"),
        };
        Words {
            place,
            what: what + " was run",
            inferred: None,
        }
    }
}

/// Its name: the function's entry, and what tells its paths apart.
fn name(path: &Path) -> Name {
    let words = path.1.iter().chain([&path.2]);
    let bytes: Vec<u8> = words.flat_map(|word| word.to_le_bytes()).collect();
    Name::Path {
        entry: path.0,
        path: tomo_wire::checksum(&bytes) as u32,
    }
}

fn function(graphs: &Graphs<'_>, entry: u64) -> String {
    let found = graphs.function_starting_at(tomo_program::Address(entry));
    found.map_or_else(String::new, |function| function.title())
}

/// What the counters of a run say.
fn ran(graphs: &Graphs<'_>, counted: &Counted) -> Result<Ran, IsolateError> {
    let refused = |refusal| IsolateError::Predicates(PredicateError::Refused(refusal));
    let (header, rows) = Paths::read(&counted.file).map_err(refused)?;
    let mut values = vec![0; header.counters.get() as usize];
    sums(&counted.slabs, header.at.get(), &mut values).map_err(refused)?;
    let start = |block: BlockId| graphs.block(block).map_or(0, |block| block.address().0);
    let mut ran = Ran::default();
    for one in path_counts(graphs, &rows, &values, Extent::All).functions {
        let Some(function) = graphs.function(one.function) else {
            continue;
        };
        let entry = function.entry().0;
        if one.started.is_some_and(|times| times > 0) {
            ran.functions.insert(entry);
        }
        for path in one.ran {
            let end = match path.end {
                PathEnd::Exit => 0,
                PathEnd::Edge(block) => start(block),
            };
            let blocks = path.blocks.into_iter().map(start).collect();
            ran.paths.insert((entry, blocks, end));
        }
    }
    Ok(ran)
}

fn add(known: &mut Known, outcome: Outcome, seen: bool, truth: bool) {
    let (all, seen_sum, true_sum) = match outcome {
        Outcome::Failure => (
            &mut known.failed,
            &mut known.failed_seen,
            &mut known.failed_true,
        ),
        Outcome::Success => (
            &mut known.passed,
            &mut known.passed_seen,
            &mut known.passed_true,
        ),
    };
    *all += 1;
    *seen_sum += u64::from(seen);
    *true_sum += u64::from(truth);
}
