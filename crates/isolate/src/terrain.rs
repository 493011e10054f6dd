//! The program as a fleet's search sees it, made for a collector that has no model: the graph, and which of its sites
//! and predicates are which rows.

use tomo_export::predicates::Sites;
use tomo_graph::Graph as _;
use tomo_plan::search::{IcdgError, PredicateId, SiteId};
use tomo_program::{FunctionView, Graphs};
use tomo_protocol::{Routine, Terrain};

use crate::map::{Map, routines};

/// The terrain of a program with these sites.
///
/// # Errors
/// Where the program is too large to be searched.
pub fn terrain(graphs: &Graphs<'_>, sites: &Sites) -> Result<Terrain, IcdgError> {
    let map = Map::of(graphs, sites)?;
    let first = |site: u32| {
        let number = map.site(SiteId(site))?;
        Some(sites.sites[number].first as u32)
    };
    let row = |predicate: u32| map.row(PredicateId(predicate)).map(|row| row as u32);
    Ok(Terrain {
        routines: described(graphs, sites),
        sites: (0..map.icdg.site_count() as u32).map(first).collect(),
        rows: (0..map.icdg.predicate_count() as u32).map(row).collect(),
    })
}

fn described(graphs: &Graphs<'_>, sites: &Sites) -> Vec<Routine> {
    let functions: Vec<FunctionView<'_>> = graphs.functions().collect();
    let made = routines(graphs, &functions, sites);
    let each = made.iter().zip(&functions);
    each.map(|(routine, function)| {
        let graph = &routine.graph;
        let mut blocks: Vec<u64> = function.blocks().map(|block| block.address().0).collect();
        let ends = function.blocks().map(|block| block.range().end().0);
        let end = ends.max().unwrap_or(0);
        // A function without a graph counts as one block.
        blocks.resize(graph.node_count(), function.entry().0);
        Routine {
            blocks,
            end,
            entry: graph.entry().0,
            edges: graph
                .edges()
                .iter()
                .map(|(from, to)| (from.0, to.0))
                .collect(),
            exits: graph
                .nodes()
                .filter(|node| graph.is_exit(*node))
                .map(|node| node.0)
                .collect(),
            calls: routine
                .calls
                .iter()
                .map(|(node, callee)| (node.0, *callee))
                .collect(),
            values: routine
                .values
                .iter()
                .map(|(node, count)| (node.0, *count))
                .collect(),
            root: routine.root,
        }
    })
    .collect()
}
