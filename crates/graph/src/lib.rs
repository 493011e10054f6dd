//! Flow graphs and their classic analyses, each from the literature.
//!
//! A [`FlowGraph`] is built once from a list of edges; analyses take it, or any other view of a
//! graph ([`Graph`]), and give a table that answers in O(1) or lists what was found:
//!
//! ```
//! use tomo_graph::{AcyclicPaths, Dominators, FlowGraph, Loops, NodeId, PathCount};
//!
//! // 0 → 1 → {2, 3} → 4, and back from 4 to 1 or out to 5.
//! let edges = [(0, 1), (1, 2), (1, 3), (2, 4), (3, 4), (4, 1), (4, 5)];
//! let edges = edges.map(|(from, to)| (NodeId(from), NodeId(to)));
//! let graph = FlowGraph::new(6, NodeId(0), edges)?;
//!
//! let dominators = Dominators::of(&graph);
//! assert_eq!(dominators.immediate(NodeId(4)), Some(NodeId(1)));
//! assert!(dominators.dominates(NodeId(1), NodeId(5)));
//!
//! let loops = Loops::of(&graph, &dominators);
//! assert_eq!(loops.depth_of(NodeId(3)), 1);
//! assert!(loops.is_reducible());
//!
//! // From the entry or from the loop's head, by 2 or by 3, out or back again.
//! assert_eq!(AcyclicPaths::of(&graph).count(), PathCount::Exact(8));
//! # Ok::<(), tomo_graph::GraphError>(())
//! ```
//!
//! The crate is pure: no input or output, no dependencies, no `unsafe`, no recursion. Every
//! analysis says what its answer is for nodes that the entry does not reach and for code that never
//! exits. Beside each stands an oracle written from the definition ([`check`]), and a function that
//! holds one against the other, driven by unit tests, property tests and fuzzing alike.

#![forbid(unsafe_code)]

mod acyclic;
mod closed_flow;
mod components;
mod control_dependence;
mod cycles;
mod depth_first;
mod diamonds;
mod dominators;
mod flow_graph;
mod graph;
mod id;
mod loop_forest;
mod loops;
mod post_dominators;
mod realizability;
mod simple_paths;
mod spanning;
mod union_find;
mod view;

#[doc(hidden)]
pub mod check;

pub use acyclic::{AcyclicPath, AcyclicPaths, PathCount, PathEnd};
pub use closed_flow::{FlowArc, FlowEnds, closed_flow};
pub use components::{ComponentId, Components};
pub use control_dependence::{ControlDependence, Controllers};
pub use cycles::{directed_cycles, find_cycle};
pub use depth_first::{DepthFirst, EdgeClass};
pub use diamonds::{Diamond, diamonds};
pub use dominators::Dominators;
pub use flow_graph::{FlowGraph, GraphError};
pub use graph::{Graph, Hop};
pub use id::{EdgeId, NodeId};
pub use loops::{LoopId, LoopKind, Loops};
pub use post_dominators::PostDominators;
pub use realizability::{Ambiguity, Conflict, FirstWitness, ambiguity, conflict, witness_set};
pub use simple_paths::{Budget, Enumeration};
pub use spanning::{SpanningTree, Weight, maximum_forest};
pub use view::{ExitEdge, Reversed, WithExit, Without};
