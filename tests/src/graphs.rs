//! Flow graphs of real programs, for measuring algorithms on what they are for, and made-up ones of
//! like sizes for where the program is missing.

use std::path::Path;

use anyhow::Result;
use tomo_graph::{FlowGraph, NodeId};
use tomo_program::{Cache, FunctionView, Request, load};

/// The large library that figures are told of: 110 MB, of which 45 MB are code.
pub const LARGE_LIBRARY: &str = "/usr/lib/x86_64-linux-gnu/libLLVM-14.so.1";

/// Where graphs come from, for people.
pub struct Graphs {
    /// What they are of.
    pub origin: String,
    /// One per function.
    pub graphs: Vec<FlowGraph>,
}

impl Graphs {
    /// Those of [`LARGE_LIBRARY`] if it is there, else made-up ones. Its model is kept where `tomo`
    /// keeps models.
    ///
    /// # Errors
    /// If the library is there and cannot be analysed.
    pub fn large() -> Result<Self> {
        let cache = Cache::from_environment(|name| std::env::var_os(name));
        let library = Path::new(LARGE_LIBRARY);
        if library.exists() {
            return Ok(Self {
                origin: "libLLVM-14.so.1".into(),
                graphs: of_program(library, cache.as_ref())?,
            });
        }
        Ok(Self {
            origin: "made-up graphs of the sizes in libLLVM-14.so.1, which is missing".into(),
            graphs: made_up(),
        })
    }
}

/// The graphs of all functions of a program whose blocks are known.
///
/// # Errors
/// If it cannot be analysed.
pub fn of_program(path: &Path, cache: Option<&Cache>) -> Result<Vec<FlowGraph>> {
    let request = Request {
        path,
        cache,
        refresh: false,
        whole: true,
    };
    let loaded = load(&request, &())?;
    let graphs = loaded.model.graphs()?;
    let known = graphs.functions().filter(|f| f.entry_block().is_some());
    known.map(|function| of_function(&function)).collect()
}

/// The graph of one function, blocks by address. Control leaves where an edge leads out of the
/// function, and where none leads on.
///
/// # Errors
/// If the model contradicts itself.
pub fn of_function(function: &FunctionView<'_>) -> Result<FlowGraph> {
    let position = |id| function.position_of(id).map(|at| NodeId(at as u32));
    let mut edges = Vec::new();
    let mut exits = Vec::new();
    for edge in function.edges() {
        let from = position(edge.from).unwrap_or(NodeId(u32::MAX));
        match edge.block() {
            Some(block) => edges.push((from, position(block).unwrap_or(NodeId(u32::MAX)))),
            None => exits.push(from),
        }
    }
    let entry = function
        .entry_block()
        .and_then(|block| position(block.id()));
    let graph = FlowGraph::new(
        function.block_count(),
        entry.unwrap_or(NodeId(u32::MAX)),
        edges,
    )?;
    Ok(graph.with_exits(exits)?)
}

/// How many blocks functions have at every hundredth of them, by size, in libLLVM 14; the last is
/// the largest.
const SIZES: [usize; 100] = [
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 4, 4, 5, 5, 5,
    6, 6, 6, 7, 7, 7, 7, 7, 8, 8, 8, 9, 9, 10, 10, 10, 11, 11, 12, 12, 13, 13, 14, 14, 15, 15, 15,
    16, 17, 17, 18, 19, 19, 20, 20, 21, 22, 22, 23, 24, 25, 26, 27, 28, 29, 30, 32, 33, 35, 37, 39,
    41, 43, 45, 48, 52, 55, 60, 66, 72, 80, 90, 103, 120, 147, 194, 319, 8799,
];

/// How many functions libLLVM 14 has.
const FUNCTIONS: usize = 95_000;

/// As many graphs as libLLVM has functions, of as many blocks up to 1,000, out of statements in
/// sequence: branches, loops, early exits. The same every time.
#[must_use]
pub fn made_up() -> Vec<FlowGraph> {
    let mut state = 14u64;
    let mut dice = move |bound: usize| {
        let next = state.wrapping_mul(6_364_136_223_846_793_005);
        state = next.wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % bound
    };
    (0..FUNCTIONS)
        .filter_map(|number| made_up_of(SIZES[number % SIZES.len()].min(1000), &mut dice).ok())
        .collect()
}

/// One graph of about so many blocks: an edge is refined again and again, as a grammar would.
fn made_up_of(size: usize, dice: &mut impl FnMut(usize) -> usize) -> Result<FlowGraph> {
    let mut edges = vec![(0, 1)];
    let mut nodes = 2;
    while nodes < size {
        let at = dice(edges.len());
        let (from, to) = edges[at];
        let (a, b) = (nodes, nodes + 1);
        let (added, others): (usize, &[(usize, usize)]) = match dice(8) {
            0 => (1, &[(a, to)]),
            1 | 2 => (1, &[(a, to), (from, to)]),
            3..=5 => (2, &[(a, to), (from, b), (b, to)]),
            6 => (2, &[(a, b), (b, a), (a, to)]),
            _ => (2, &[(a, b), (a, to)]),
        };
        nodes += added;
        edges[at] = (from, a);
        edges.extend_from_slice(others);
    }
    if size == 1 {
        (nodes, edges) = (1, Vec::new());
    }
    let id = |node: usize| NodeId(node as u32);
    let edges = edges.into_iter().map(|(from, to)| (id(from), id(to)));
    Ok(FlowGraph::new(nodes, id(0), edges)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tomo_graph::{DepthFirst, Graph};

    /// Made-up graphs are of the sizes that they are said to be, and reached in all their parts.
    #[test]
    fn made_up_graphs_have_their_sizes() {
        let graphs = made_up();
        assert_eq!(graphs.len(), FUNCTIONS);
        for (graph, size) in graphs.iter().zip(SIZES).take(99) {
            assert!((size..=size + 1).contains(&graph.node_count()));
            assert_eq!(DepthFirst::of(graph).preorder().len(), graph.node_count());
        }
    }
}
