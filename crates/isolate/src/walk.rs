//! The search of HOLMES, function by function, as ABI §5.5 describes it, to compare with: which functions are watched next is
//! told by weak predictors, whose Importance lies between 0.5 and 0.75; those of all sites that are next to
//! theirs. Next to a function are those that call it or that it calls, which is what there is of a program
//! dependence graph here.

use std::collections::BTreeSet;

use tomo_plan::search::Search;
use tomo_program::{EdgeKind, Graphs};

use crate::asked::IsolateError;
use crate::rehearse::Stage;

/// Importance of weak predictors.
const WEAK: std::ops::Range<f64> = 0.5..0.75;

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Walk {
    /// Whether a predictor as good as the best was seen.
    pub found: bool,
    /// Sites that were watched until then, or in all.
    pub seen: usize,
    /// Steps.
    pub steps: usize,
    /// Whether it ended since no weak predictor led further.
    pub stuck: bool,
}

impl Stage<'_> {
    /// Searches function by function, from where runs crash, or from what always runs.
    ///
    /// # Errors
    /// Where the model is damaged.
    pub fn walk(&self) -> Result<Walk, IsolateError> {
        let graphs = self.session.located.model.graphs()?;
        let by_function = self.sites_by_function(&graphs);
        let beside = neighbours(&graphs);
        let goal = self.best.first().map_or(0.0, |row| self.scores[*row]);
        let mut next = self.first_functions(&graphs);
        let mut known = BTreeSet::new();
        let mut walk = Walk {
            found: false,
            seen: 0,
            steps: 0,
            stuck: false,
        };
        while !next.is_empty() && !walk.found {
            walk.steps += 1;
            known.extend(next.iter().copied());
            let mut around = BTreeSet::new();
            for function in next {
                let sites = by_function.get(function).map_or(&[][..], Vec::as_slice);
                walk.seen += sites.len();
                let rows = sites.iter().flat_map(|site| {
                    let site = &self.session.sites.sites[*site];
                    site.first..site.first + site.told.len()
                });
                let scores: Vec<f64> = rows.map(|row| self.scores[row]).collect();
                walk.found |= goal > 0.0 && scores.iter().any(|score| *score > goal - 1e-9);
                if scores.iter().any(|score| WEAK.contains(score)) {
                    around.extend(beside[function].iter().copied());
                }
            }
            next = around.difference(&known).copied().collect();
        }
        walk.stuck = !walk.found;
        Ok(walk)
    }

    /// Functions by number: their sites that are watched.
    fn sites_by_function(&self, graphs: &Graphs<'_>) -> Vec<Vec<usize>> {
        let mut by_function = vec![Vec::new(); graphs.functions().count()];
        for site in self.session.observable() {
            let block = graphs.block_at(self.session.sites.sites[site].block);
            let function = block.and_then(|block| Some(block.function()?.id().index()));
            if let Some(sites) = function.and_then(|function| by_function.get_mut(function)) {
                sites.push(site);
            }
        }
        by_function
    }

    /// Where it begins.
    fn first_functions(&self, graphs: &Graphs<'_>) -> BTreeSet<usize> {
        if !self.crashes.is_empty() {
            return self.crashes.iter().map(|place| place.0 as usize).collect();
        }
        let session = self.session;
        let icdg = &session.map.icdg;
        let search = Search::forward(icdg);
        let sites = search.plan().filter_map(|site| session.map.site(site));
        let function = |site: usize| {
            let block = graphs.block_at(session.sites.sites[site].block)?;
            Some(block.function()?.id().index())
        };
        sites.filter_map(function).collect()
    }
}

/// Functions by number: those that call them or that they call.
fn neighbours(graphs: &Graphs<'_>) -> Vec<BTreeSet<usize>> {
    let mut beside = vec![BTreeSet::new(); graphs.functions().count()];
    for function in graphs.functions() {
        let one = function.id().index();
        let calls = function.calls();
        let called = calls.filter_map(|call| Some(call.function()?.id().index()));
        let jumps = function
            .edges()
            .filter(|edge| edge.kind == EdgeKind::TailCall);
        let jumped =
            jumps.filter_map(|edge| Some(graphs.function_starting_at(edge.address)?.id().index()));
        for other in called.chain(jumped).collect::<Vec<_>>() {
            beside[one].insert(other);
            beside[other].insert(one);
        }
    }
    beside
}
