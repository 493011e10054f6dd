//! Tables of counts, read.
//!
//! Source: BL96, §3.4, and SPP §3. O(entries · length of paths).

use tomo_graph::FlowGraph;
use tomo_plan::counting::Frequencies;
use tomo_plan::paths::selective::Selection;
use tomo_plan::paths::{ArcId, PathDag, PathPlan, Way};

use super::Decoder;

/// Why a table cannot be what probes recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// A number that no path has.
    #[error("path {number} was counted; the function has {total}")]
    NoSuchPath {
        /// The number.
        number: u64,
        /// How many paths there are.
        total: u64,
    },
    /// Counts of one thing add up to more than 64 bits hold.
    #[error("counts add up to more than 64 bits hold")]
    Overflow,
}

/// A path and how often it ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathCount {
    /// Its ways.
    pub arcs: Vec<ArcId>,
    /// How often it ran to its end.
    pub count: u64,
}

/// What a selection recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selected {
    /// The selected paths that ran.
    pub paths: Vec<PathCount>,
    /// How often other paths were counted that end where selected ones do. (Others leave nothing.)
    pub others: u64,
}

/// The paths of a table that a plan for all paths recorded.
///
/// # Errors
/// If a number in it is no path's.
pub fn all_counts(
    plan: &PathPlan,
    table: impl IntoIterator<Item = (u64, u64)>,
) -> Result<Vec<PathCount>, TableError> {
    let decoder = Decoder::of(plan);
    let total = plan.numbering().total();
    let ran = table.into_iter().filter(|entry| entry.1 > 0);
    ran.map(|(number, count)| {
        let mut arcs = Vec::new();
        if decoder.decode(number, &mut arcs) {
            Ok(PathCount { arcs, count })
        } else {
            Err(TableError::NoSuchPath { number, total })
        }
    })
    .collect()
}

/// The paths of a table that a selection recorded.
///
/// # Errors
/// If the counts of other paths overflow.
pub fn selected_counts(
    dag: &PathDag,
    selection: &Selection,
    table: impl IntoIterator<Item = (u64, u64)>,
) -> Result<Selected, TableError> {
    let ranges = selection.ranges(dag);
    let mut selected = Selected::default();
    for (sum, count) in table.into_iter().filter(|entry| entry.1 > 0) {
        if let Some(arcs) = selection.path(dag, &ranges, sum) {
            selected.paths.push(PathCount { arcs, count });
        } else {
            add(&mut selected.others, count)?;
        }
    }
    Ok(selected)
}

/// How often each edge and exit ran on these paths: of what ended in a path's end that is
/// everything. As many activations are said to have been entered as left again.
///
/// # Errors
/// If a count overflows.
pub fn frequencies(
    graph: &FlowGraph,
    dag: &PathDag,
    paths: &[PathCount],
) -> Result<Frequencies, TableError> {
    let mut sums = Frequencies::none(graph);
    for path in paths {
        for &id in &path.arcs {
            match dag.arc(id).way {
                Way::Start(_) => {}
                Way::Edge(edge) | Way::Break(edge, _) => {
                    add(&mut sums.edges[edge.index()], path.count)?;
                }
                Way::Exit(node) => {
                    add(&mut sums.exits[node.index()], path.count)?;
                    add(&mut sums.entries, path.count)?;
                }
            }
        }
    }
    Ok(sums)
}

fn add(sum: &mut u64, count: u64) -> Result<(), TableError> {
    *sum = sum.checked_add(count).ok_or(TableError::Overflow)?;
    Ok(())
}
