//! How much of a module's code nobody can say of whether it ran.

use rayon::prelude::*;
use tomo_profile::merge::Finding;
use tomo_program::{BlockView, FunctionView, Model, Range, Status};

use super::function::finding;
use crate::Findings;

/// Of how many of these bytes of code it is not known whether they ran: those of unknown blocks, and those of which the model does
/// not know to which block they belong. Filler inside of an exact function is not code that could have run.
pub(super) fn unknown_bytes(model: &Model, findings: &Findings, code: u64) -> u64 {
    let Ok(graphs) = model.graphs() else {
        return code;
    };
    let functions: Vec<_> = graphs.functions().collect();
    let parts = functions
        .par_iter()
        .map(|function| accounted_for(function, findings));
    let parts: Vec<_> = parts.collect();
    let mut claimed: Vec<_> = parts.iter().flat_map(|(claimed, _)| claimed).collect();
    claimed.sort_unstable_by_key(|range| range.start());
    let mut end = 0;
    let known: u64 = claimed
        .iter()
        .map(|range| {
            let new = range.end().0.saturating_sub(range.start().0.max(end));
            end = end.max(range.end().0);
            new
        })
        .sum();
    let unknown: u64 = parts.iter().map(|(_, unknown)| unknown).sum();
    code.saturating_sub(known).saturating_add(unknown).min(code)
}

/// The ranges of a function of which it is known whether they ran, but for as many bytes.
fn accounted_for(function: &FunctionView<'_>, findings: &Findings) -> (Vec<Range>, u64) {
    let is_known =
        |block: &BlockView<'_>| finding(&findings.blocks, block.id().index()) != Finding::Unknown;
    if function.status() == Status::Exact {
        let unknown = function.blocks().filter(|block| !is_known(block));
        let bytes = unknown.map(|block| u64::from(block.size())).sum();
        (function.ranges().collect(), bytes)
    } else {
        let known = function.blocks().filter(is_known);
        (known.map(|block| block.range()).collect(), 0)
    }
}
