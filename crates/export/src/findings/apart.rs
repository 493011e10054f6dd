//! What follows from single runs where all of them together leave something unknown.
//!
//! An `if` whose body ran in one run and was passed by in another: together the two hit all blocks, which one
//! run would have done by passing the body always. What the second did *not* hit tells that it passed the
//! body by. Only that something ran is taken from a single run. Runs that did the same in a function are read
//! once, and functions that all runs together tell everything of are not read again.

use std::collections::BTreeSet;

use rayon::prelude::*;
use tomo_profile::coverage::Mark;
use tomo_profile::merge::{Finding, Marks as Saw};
use tomo_profile::records::Kind;
use tomo_program::{FunctionView, Graphs, Status};

use super::Findings;
use super::marks::{Probes, mark};
use super::reader::{Found, Reader};
use crate::Group;

/// What is known of one function, in place.
struct Part<'f, 'g> {
    function: FunctionView<'g>,
    blocks: &'f mut [Finding],
    edges: &'f mut [Finding],
    entered: &'f mut Finding,
}

impl Findings {
    /// Adds what follows from each run of a group by itself.
    pub(super) fn read_apart(&mut self, graphs: &Graphs<'_>, probes: &Probes, group: &Group) {
        if group.runs.len() < 2 || group.kind.loose {
            return;
        }
        let entered = graphs.entered_within();
        let (mut blocks, mut edges) = (&mut self.blocks[..], &mut self.edges[..]);
        let mut parts = Vec::new();
        for (function, entered_at) in graphs.functions().zip(&mut self.functions) {
            let part = Part {
                function,
                blocks: split(&mut blocks, function.block_count()),
                edges: split(&mut edges, function.edges().count()),
                entered: entered_at,
            };
            // Elsewhere nothing is inferred, so nothing is lost by reading all runs together.
            let is_exact = function.status() == Status::Exact && !entered.contains(&function.id());
            if is_exact && !self.early.contains(&function.entry()) && part.leaves_unknown() {
                parts.push(part);
            }
        }
        let kind = group.kind;
        parts
            .into_par_iter()
            .for_each(|mut part| part.read(probes, &group.runs, kind));
    }
}

/// Takes the first ones away.
fn split<'f>(all: &mut &'f mut [Finding], count: usize) -> &'f mut [Finding] {
    let findings = std::mem::take(all);
    let (first, rest) = findings.split_at_mut(count.min(findings.len()));
    *all = rest;
    first
}

impl Part<'_, '_> {
    fn leaves_unknown(&self) -> bool {
        let mut all = self.blocks.iter().chain(self.edges.iter());
        all.any(|finding| *finding == Finding::Unknown)
    }

    fn read(&mut self, probes: &Probes, runs: &[Saw], kind: Kind) {
        let own = probes.of_function(self.function);
        let marks = |run: &Saw| -> Vec<Mark> {
            let marks = own.iter().map(|probe| mark(*probe, &run.hits));
            marks.collect()
        };
        let seen: BTreeSet<Vec<Mark>> = runs.iter().map(marks).collect();
        for marks in seen.iter().filter(|marks| marks.contains(&Mark::Hit)) {
            let (blocks, edges) = marks.split_at(self.blocks.len());
            let reader = Reader::with(self.function, blocks, edges.to_vec(), kind);
            self.add(&reader.read(false));
            if !self.leaves_unknown() {
                break;
            }
        }
    }

    /// Adds what is found to have run.
    fn add(&mut self, found: &Found) {
        if !found.fits {
            return;
        }
        let add = |mine: &mut Finding, theirs: Finding| {
            if theirs.ran() == Some(true) {
                *mine = mine.or(theirs);
            }
        };
        add(self.entered, found.entered);
        let blocks = self.blocks.iter_mut().zip(&found.blocks);
        blocks.for_each(|(mine, theirs)| add(mine, *theirs));
        let edges = self.edges.iter_mut().zip(&found.edges);
        edges.for_each(|(mine, theirs)| add(mine, *theirs));
    }
}
